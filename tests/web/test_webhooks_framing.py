"""How a request is framed on the wire, in raw sockets to the shipped server: chunks, lengths, limits."""

from __future__ import annotations

import socket
import time

import psutil
import pytest

from tests import posting
from tests.posting import chunked, payment, read_answer, request_bytes, speak
from tests.running import wait_for

LIMIT = 1024 * 1024


def status_of(answer: bytes) -> int | None:
    """The status of a raw answer; None where the server only closed."""
    return int(answer.split(b" ", 2)[1]) if answer else None


def stored(web, event_id: str) -> list[bytes]:
    return [
        row["payload"]
        for row in web.rows(
            "SELECT p.payload FROM webhook_events e JOIN webhook_payloads p ON p.id = e.payload_id"
            " WHERE provider_event_id = %(id)s",
            {"id": event_id},
        )
    ]


def signed(event_id: str, **more: object) -> tuple[bytes, dict[str, str]]:
    body = payment(event_id, "o_1", **more)
    return body, posting.demo(body)


@pytest.mark.field_case(108)
def test_a_chunked_body_is_read_whole(web):
    """Three chunks that split a character: stored to the byte, with a trailer too."""
    body = '{"id": "evt_chunked", "type": "x", "note": "Zoë ☕"}'.encode()
    cut = body.index("☕".encode()) + 1
    headers = {**posting.demo(body), "Transfer-Encoding": "chunked"}
    pieces = (body[:10], body[10:cut], body[cut:])
    other = body.replace(b"evt_chunked", b"evt_trailer")
    trailer = {**posting.demo(other), "Transfer-Encoding": "chunked", "Trailer": "X-Sum"}

    first = speak(
        web.address,
        request_bytes("/webhooks/demo", headers),
        *(chunked(piece, end=b"") for piece in pieces),
        b"0\r\n\r\n",
    )
    second = speak(
        web.address, request_bytes("/webhooks/demo", trailer, chunked(other, end=b"0\r\nX-Sum: 1\r\n\r\n"))
    )

    assert (status_of(first), status_of(second)) == (200, 200)
    assert stored(web, "evt_chunked") == [body]
    assert stored(web, "evt_trailer") == [other]


@pytest.mark.field_case(110)
@pytest.mark.parametrize(
    ("headers", "framed"),
    [
        ({"Transfer-Encoding": "chunked"}, b"zz\r\n%s\r\n0\r\n\r\n"),
        ({"Transfer-Encoding": "chunked"}, b"-5\r\n%s\r\n0\r\n\r\n"),
        ({"Transfer-Encoding": "chunked"}, b"5\r\n%s\r\n0\r\n\r\n"),
        ({"Transfer-Encoding": "gzip"}, b"%s"),
        ({"Transfer-Encoding": "chunked, identity"}, b"%s"),
        ({"Content-Length": "-5"}, b"%s"),
        ({"Content-Length": "abc"}, b"%s"),
        ({"Content-Length": "+10"}, b"%s"),
        ({"Content-Length": "9" * 5000}, b"%s"),
        ({"Content-Length": "10", "content-length": "20"}, b"%s"),
        ({"Content-Length": "10", "Transfer-Encoding": "chunked"}, b"5\r\nhello\r\n0\r\n\r\n"),
        ({"Content-Length": "\xb2"}, b"%s"),
    ],
)
def test_broken_framing_is_400_or_a_closed_connection(web, headers, framed):
    """Nothing of it reaches the inbox, and neither a 5xx nor a wait comes of it."""
    body, signature = signed("evt_framing")
    sent = framed % body if b"%s" in framed else framed
    began = time.monotonic()

    answer = speak(web.address, request_bytes("/webhooks/demo", {**signature, **headers}, sent), seconds=5)

    assert status_of(answer) in (400, 413, 501, None)
    assert time.monotonic() - began < 4
    assert stored(web, "evt_framing") == []


@pytest.mark.field_case(110)
@pytest.mark.parametrize("framing", ["no-last-chunk", "short", "nothing"])
def test_a_body_cut_off_is_not_stored(web, framing):
    """The sender goes away before the announced end: no row, and no fault in the log."""
    body, signature = signed(f"evt_cut_{framing}")
    sent = {
        "no-last-chunk": request_bytes(
            "/webhooks/demo", {**signature, "Transfer-Encoding": "chunked"}, chunked(body, end=b"")
        ),
        "short": request_bytes("/webhooks/demo", {**signature, "Content-Length": str(len(body) + 7)}, body),
        "nothing": request_bytes("/webhooks/demo", {**signature, "Content-Length": str(len(body))}),
    }[framing]
    with socket.create_connection(web.address, timeout=5) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = read_answer(connection)

    assert status_of(answer) in (400, None)
    assert stored(web, f"evt_cut_{framing}") == []
    assert "Traceback" not in web.log()


def test_no_length_and_no_chunks_mean_no_body(web):
    """The server does not wait for bytes that nobody announced."""
    began = time.monotonic()

    answer = speak(web.address, request_bytes("/webhooks/demo", posting.demo(b"")), seconds=5)

    assert status_of(answer) == 400
    assert time.monotonic() - began < 3


def test_the_next_request_of_a_connection_is_read_at_its_beginning(web):
    """After a refusal that read no body, what was left of it is never taken for a request."""
    body, signature = signed("evt_pipelined")
    refused = request_bytes(
        "/webhooks/nobody", {"Content-Length": "60"}, b"GET /smuggled HTTP/1.1\r\n\r\n".ljust(60)
    )
    right = request_bytes("/webhooks/demo", {**signature, "Content-Length": str(len(body))}, body)
    with socket.create_connection(web.address, timeout=5) as connection:
        connection.sendall(refused)
        first = read_answer(connection)
        connection.sendall(right)
        second = read_answer(connection)

    assert (status_of(first), status_of(second)) in ((404, 200), (404, None))


@pytest.mark.field_case(112)
def test_an_expectation_is_met_before_the_body(web):
    """100 Continue, then 200 without delay."""
    body, signature = signed("evt_expect")
    head = request_bytes(
        "/webhooks/demo", {**signature, "Content-Length": str(len(body)), "Expect": "100-continue"}
    )
    began = time.monotonic()
    with socket.create_connection(web.address, timeout=5) as connection:
        connection.sendall(head)
        interim = read_answer(connection)
        connection.sendall(body)
        answer = read_answer(connection)

    assert interim.startswith(b"HTTP/1.1 100")
    assert status_of(answer) == 200
    assert time.monotonic() - began < 3


@pytest.mark.field_case(112)
def test_an_unknown_expectation_hangs_nobody(web):
    """417, or ignored; no wait."""
    body, signature = signed("evt_expect_other")
    headers = {**signature, "Content-Length": str(len(body)), "Expect": "cake"}

    answer = speak(web.address, request_bytes("/webhooks/demo", headers, body), seconds=5)

    assert status_of(answer) in (200, 400, 417)


def _memory(web) -> int:
    return sum(psutil.Process(pid).memory_info().rss for pid in web.workers())


@pytest.mark.field_case(113)
def test_a_body_beyond_the_limit_is_413_and_not_held_in_memory(web):
    """Announced too long, chunked without end, one byte too many; exactly the limit is taken."""
    before = _memory(web)
    announced = speak(
        web.address,
        request_bytes("/webhooks/demo", {**posting.demo(b""), "Content-Length": "60000000"}),
        seconds=5,
    )
    endless = request_bytes("/webhooks/demo", {**posting.demo(b""), "Transfer-Encoding": "chunked"})
    block = chunked(b"x" * 65536, end=b"")
    without_end = speak(web.address, endless, *[block] * 200, seconds=10)
    exact = payment("evt_exact", "o_1")
    exact += b" " * (LIMIT - len(exact))
    more = exact + b" "

    assert status_of(announced) == 413
    assert status_of(without_end) in (413, None)
    assert web.post("demo", more, posting.demo(more)).status_code == 413
    assert web.post("demo", exact, posting.demo(exact)).status_code == 200
    assert stored(web, "evt_exact") == [exact]
    assert _memory(web) - before < 60 * 1024 * 1024
    wait_for(
        lambda: web.rows(
            "SELECT 1 FROM webhook_rejections WHERE reason = 'too_large' HAVING sum(count) >= 2"
        ),
        what="the operator sees what was too large",
    )


def test_a_body_that_drips_ends_at_the_deadline(server):
    """A sender that never ends its body holds a connection for the deadline, and no longer."""
    from tests.running import new_database, run_web

    body, signature = signed("evt_slow")
    with (
        new_database(server) as url,
        run_web(url, environment={"READ_TIMEOUT_SECONDS": "1"}) as web,
        socket.create_connection(web.address, timeout=10) as connection,
    ):
        began = time.monotonic()
        connection.sendall(request_bytes("/webhooks/demo", {**signature, "Content-Length": "500"}, body[:20]))
        answer = read_answer(connection)

        assert status_of(answer) == 408
        assert 0.9 < time.monotonic() - began < 5


@pytest.mark.field_case(31)
def test_a_zero_byte_in_the_path_is_404(web):
    """An encoded NUL in the source's name reaches no statement."""
    assert status_of(speak(web.address, request_bytes("/webhooks/%00", {"Content-Length": "0"}))) == 404
    assert status_of(speak(web.address, request_bytes("/webhooks/demo%00", {"Content-Length": "0"}))) == 404
    assert "Traceback" not in web.log()


@pytest.mark.field_case(117)
@pytest.mark.parametrize("path", ["/webhooks/demo", "/webhooks/demo/", "/webhooks//demo", "//webhooks/demo"])
def test_nothing_answers_a_post_with_a_redirect(web, path):
    """Over plain HTTP behind a proxy, with any host and any slashes."""
    body, signature = signed("evt_slash")
    headers = {
        **signature,
        "Content-Length": str(len(body)),
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Host": "www.example",
    }

    answer = speak(web.address, request_bytes(path, headers, body))

    assert status_of(answer) in ((200,) if path in ("/webhooks/demo", "/webhooks/demo/") else (200, 404))
