"""The load generator: keep-alive connections on plain sockets and epoll, one process, no client library.

Each connection posts one signed event after the other and waits for its answer. A post costs the
generator some 40 us of CPU, signing included; its share of the machine is reported with the figures.
"""

from __future__ import annotations

import hashlib
import hmac
import multiprocessing
import os
import secrets
import select
import socket
import time
from dataclasses import dataclass, field

BODY_BYTES = 1024


@dataclass
class Load:
    """What one round came to. ``latencies`` in seconds, of answers with 2xx alone."""

    seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    latencies: list[float] = field(default_factory=list)
    broken: int = 0
    generator_cores: float = 0.0

    @property
    def accepted(self) -> int:
        """Answers with 2xx."""
        return sum(count for status, count in self.statuses.items() if 200 <= status < 300)

    @property
    def rate(self) -> float:
        """Answers with 2xx per second."""
        return self.accepted / self.seconds

    def percentile_ms(self, share: float) -> float:
        """The latency that ``share`` of the posts stay within."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 if ordered else float("nan")


def post(secret: str, number: int, *, order: str | None = None, path: str = "/webhooks/demo") -> bytes:
    """One signed post of the demo protocol, 1 KiB of body, with ids of its own."""
    order = order or f"ord_{number:012d}"
    head = (
        f'{{"id":"evt_{number:012d}","type":"payment.succeeded","created_at":"2026-03-01T12:00:00Z",'
        f'"sequence":2,"data":{{"order_id":"{order}","transaction_id":"tx_{number:012d}",'
        f'"amount":1860,"currency":"EUR"}},"note":"'
    )
    body = (head + "n" * (BODY_BYTES - len(head) - 2) + '"}').encode()
    stamp = str(int(time.time()))
    signature = hmac.new(secret.encode(), f"v1:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Demo-Webhooks/1\r\nAccept: */*\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"X-Timestamp: {stamp}\r\nX-Signature: v1={signature}\r\n\r\n"
    ).encode() + body


class _Connection:
    __slots__ = ("received", "sent_at", "socket")

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.sent_at = 0.0

    def send(self, request: bytes) -> None:
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def status(self) -> int:
        """Read on; the status once an answer is whole, else 0. Raises ConnectionError."""
        piece = self.socket.recv(65536)
        if not piece:
            raise ConnectionError
        self.received += piece
        head, mark, body = self.received.partition(b"\r\n\r\n")
        if not mark:
            return 0
        lower = head.lower()
        start = lower.index(b"content-length:") + 15
        end = lower.find(b"\r", start)
        if len(body) < int(lower[start : end if end != -1 else len(lower)]):
            return 0
        self.received = b""
        return int(head[9:12])


def drive(
    port: int, *, secret: str, connections: int = 32, seconds: float = 5.0, warm: float = 1.0
) -> tuple[Load, int]:
    """Load a server from a process of its own; returns the measured part and every 2xx there was."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(writer, port, secret, connections, seconds, warm))
    child.start()
    writer.close()  # so that a child that dies is noticed
    load, accepted = reader.recv()
    child.join()
    return load, accepted


def _child(writer: object, port: int, secret: str, connections: int, seconds: float, warm: float) -> None:
    first = secrets.randbelow(10**6) * 10**6
    number = first
    accepted = 0
    load = Load()
    for length, measured in ((warm, False), (seconds, True)):
        load = Load()
        number = _run(load, port, secret, connections, length, number)
        accepted += load.accepted
        if measured:
            break
    writer.send((load, accepted))  # type: ignore[attr-defined]


def _run(load: Load, port: int, secret: str, connections: int, seconds: float, number: int) -> int:
    poll = select.epoll()
    by_file: dict[int, _Connection] = {}
    for _ in range(connections):
        connection = _Connection(port)
        by_file[connection.socket.fileno()] = connection
        poll.register(connection.socket.fileno(), select.EPOLLIN)
    cpu = sum(os.times()[:2])
    started = time.perf_counter()
    ends = started + seconds
    for connection in by_file.values():
        connection.send(post(secret, number))
        number += 1
    busy = len(by_file)
    while busy:
        for file, _ in poll.poll(30):
            connection = by_file[file]
            try:
                status = connection.status()
            except OSError:
                load.broken += 1
                poll.unregister(file)
                busy -= 1
                continue
            if not status:
                continue
            now = time.perf_counter()
            load.statuses[status] = load.statuses.get(status, 0) + 1
            if 200 <= status < 300:
                load.latencies.append(now - connection.sent_at)
            if now < ends:
                connection.send(post(secret, number))
                number += 1
            else:
                busy -= 1
    load.seconds = time.perf_counter() - started
    load.generator_cores = (sum(os.times()[:2]) - cpu) / load.seconds
    for connection in by_file.values():
        connection.socket.close()
    return number
