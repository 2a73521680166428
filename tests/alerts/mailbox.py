"""Real servers that alerts are told to: one for mail, one for posts; both may be out of order."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller

from receiver.alert_settings import AlertSettings
from receiver.settings import Settings
from tests.running import free_port


@dataclass
class Mailbox:
    """What a mail server took."""

    port: int
    mails: list[Message] = field(default_factory=list)
    refuse: bool = False

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        if self.refuse:
            return "451 later"
        self.mails.append(message_from_bytes(envelope.content, policy=default))
        return "250 OK"

    @property
    def subjects(self) -> list[str]:
        return [str(mail["Subject"]) for mail in self.mails]

    def text(self, number: int = -1) -> str:
        """The readable text of a mail."""
        mail: Any = self.mails[number]
        return str(mail.get_body(("plain",)).get_content())


@contextlib.contextmanager
def mail_server() -> Iterator[Mailbox]:
    """A mail server on a port of this machine."""
    box = Mailbox(free_port())
    controller = Controller(box, hostname="127.0.0.1", port=box.port)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()


@dataclass
class Hook:
    """What a web hook was posted; ``status`` is what it answers."""

    url: str
    posts: list[dict[str, Any]] = field(default_factory=list)
    status: int = 200


@contextlib.contextmanager
def hook_server() -> Iterator[Hook]:
    """A web server that takes posts; the token stands in its path, as with chats."""
    hook = Hook("")

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if hook.status == 200:
                hook.posts.append(json.loads(body))
            self.send_response(hook.status)
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
    hook.url = f"json://127.0.0.1:{server.server_port}/hooks/t0ken-of-the-chat"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def alert_settings(**environ: str) -> AlertSettings:
    """Alert settings as an environment gives them."""
    return Settings.from_env({"DATABASE_URL": "postgresql:///none", **environ}).alerts
