"""The demo provider as a real HTTP server of a test, with a book that the test writes."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from flask import Flask
from werkzeug.serving import WSGIRequestHandler, make_server

from receiver.simulator.demo_api import demo_api
from receiver.simulator.demo_book import DemoBook

KEY = "dkey_test"


@dataclass
class Provider:
    """A running demo API. ``asked`` are the paths of its requests, with their queries."""

    book: DemoBook
    url: str
    asked: list[str] = field(default_factory=list)


class _Quiet(WSGIRequestHandler):
    """Connections that stay open, and no line for each request."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        pass


@contextlib.contextmanager
def run_provider(folder: Path, *, slow_seconds: float = 15.0) -> Iterator[Provider]:
    """Serve a new book until the end of the block."""
    book = DemoBook(folder / "book.sqlite")
    app = Flask("demo-provider", static_folder=None)
    provider = Provider(book, "")
    app.register_blueprint(demo_api(book, KEY, slow_seconds=slow_seconds))

    def served(environ: dict[str, Any], start: Any) -> Any:
        provider.asked.append(f"{environ['PATH_INFO']}?{environ['QUERY_STRING']}")
        return app(environ, start)

    server = make_server("127.0.0.1", 0, served, threaded=True, request_handler=_Quiet)
    provider.url = f"http://127.0.0.1:{server.server_port}/demo-api"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join(5)
        server.server_close()


def body(event_id: str, kind: str, order: str, transaction: str, at: datetime, **data: Any) -> bytes:
    """A demo event's body, 25.00 EUR unless told otherwise."""
    document = {
        "id": event_id,
        "type": kind,
        "created_at": at.isoformat(),
        "sequence": 1,
        "data": {
            "order_id": order,
            "transaction_id": transaction,
            "amount": 2500,
            "currency": "EUR",
            **data,
        },
    }
    return json.dumps(document).encode()
