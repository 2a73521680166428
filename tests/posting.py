"""What a provider sends, made by hand: bodies and signatures with nothing but hashlib and hmac.

The product's own signing is not used here, so that a fault in it cannot hide itself.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import time
from typing import Any

from tests.conftest import DEMO_SECRET, LESSON_SECRET, STANDARD_SECRET


def payment(event_id: str, order: str, **changes: Any) -> bytes:
    """A `payment.succeeded` of 25.00 EUR; ``data`` and top-level fields can be replaced (None drops)."""
    data = {
        "order_id": order,
        "transaction_id": f"tx_{order}",
        "amount": 2500,
        "currency": "EUR",
        **changes.pop("data", {}),
    }
    document = {"id": event_id, "type": "payment.succeeded", "created_at": "2026-03-01T12:00:00Z", **changes}
    kept = {name: value for name, value in data.items() if value is not None}
    return json.dumps({**document, "data": kept}).encode()


def hex_mac(secret: str, message: bytes) -> str:
    """HMAC-SHA256 in lower-case hex."""
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def demo(body: bytes, *, secret: str = DEMO_SECRET, at: object = None) -> dict[str, str]:
    """The headers of `demo`: ``v1=`` over ``v1:{time}:{body}``."""
    stamp = str(int(time.time()) if at is None else at)
    return {
        "X-Timestamp": stamp,
        "X-Signature": f"v1={hex_mac(secret, f'v1:{stamp}:'.encode() + body)}",
    }


def lesson(body: bytes, *, secret: str = LESSON_SECRET) -> dict[str, str]:
    """The header of `lesson`: the MAC of the raw body."""
    return {"X-Signature": hex_mac(secret, body)}


def standard(
    body: bytes, event_id: str, *, secret: str = STANDARD_SECRET, at: int | None = None
) -> dict[str, str]:
    """The headers of Standard Webhooks."""
    stamp = str(int(time.time()) if at is None else at)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"{event_id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }


def speak(address: tuple[str, int], *pieces: bytes, seconds: float = 10.0) -> bytes:
    """Send raw bytes, piece after piece, and read until the server closes or has answered once.

    Raises TimeoutError when neither comes in time.
    """
    with socket.create_connection(address, timeout=seconds) as connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                break
        return read_answer(connection)


def read_answer(connection: socket.socket) -> bytes:
    """One HTTP answer with its body; what came before the close where it is no whole answer."""
    got = b""
    while True:
        head, mark, rest = got.partition(b"\r\n\r\n")
        if mark:
            lengths = [
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            ]
            if head.startswith(b"HTTP/1.1 100"):
                return head + mark
            if lengths and len(rest) >= lengths[0]:
                return got
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return got
        if not part:
            return got
        got += part


def request_bytes(path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """A POST as bytes; Content-Length only where ``headers`` has it."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """A chunked body of these chunks."""
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end
