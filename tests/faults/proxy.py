"""A proxy on a database's Unix socket that can keep the server's answers back."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy.engine import make_url

SOCKET = ".s.PGSQL.5432"


class Proxy:
    """Connections to ``url`` reach the same database; ``hold`` keeps what it answers until ``release``."""

    def __init__(self, database_url: str, folder: Path) -> None:
        parsed = make_url(database_url)
        host = parsed.query["host"]
        self._target = str(Path(host if isinstance(host, str) else host[0], SOCKET))
        query = {**parsed.query, "host": str(folder)}
        self.url = parsed.set(query=query).render_as_string(hide_password=False)
        self._open = threading.Event()
        self._open.set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        """Keep the server's answers from now on."""
        self._open.clear()

    def release(self) -> None:
        """Pass on what was kept, and everything after it."""
        self._open.set()

    def close(self) -> None:
        """Take no more connections."""
        self.release()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            asking = threading.Thread(target=self._pump, args=(client, server, False), daemon=True)
            asking.start()
            self._pump(server, client, answers=True)
            asking.join()

    def _pump(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                if answers:
                    self._open.wait(60)
                target.sendall(part)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxied(database_url: str) -> Iterator[Proxy]:
    """A proxy for the block."""
    folder = Path(tempfile.mkdtemp(prefix="receiver-proxy-"))
    proxy = Proxy(database_url, folder)
    try:
        yield proxy
    finally:
        proxy.close()
        shutil.rmtree(folder, ignore_errors=True)
