"""Bodies and headers from strangers as text that a page can show: bounded, readable, nothing hidden."""

from __future__ import annotations

import json
from typing import Any

from flask import Response

MAX_SHOWN = 256 * 1024
"""Bytes of a payload that a page shows; the download has all of them."""


def download(body: bytes, filename: str) -> Response:
    """The exact bytes, as an attachment that no browser interprets."""
    response = Response(body, mimetype="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{filename}"'
    return response


def header_pairs(kept: list[Any] | None) -> list[list[str]]:
    """The kept headers as pairs of texts, whatever else a row may hold."""
    return [
        [str(part) for part in pair[:2]] for pair in kept or () if isinstance(pair, list) and len(pair) >= 2
    ]


def as_text(body: bytes | None) -> str | None:
    """The bytes as text: what is no UTF-8, and NUL, as escapes."""
    if body is None:
        return None
    # Latin-1 would show wrong letters; what is no UTF-8 is shown as escapes.
    return body[:MAX_SHOWN].decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def pretty(body: bytes | None) -> str | None:
    """The JSON indented, texts readable; None where it is none, or holds what indenting would hide."""
    if body is None or len(body) > MAX_SHOWN:
        return None
    try:
        document = json.loads(body.decode("utf-8-sig"), parse_float=_Literal, object_pairs_hook=_pairs)
        indented = json.dumps(document, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return indented.encode("utf-8", "backslashreplace").decode().replace("\0", "\\u0000")


class _Literal(float):
    """A number shown as it was written: 1.10 stays 1.10."""

    def __new__(cls, text: str) -> _Literal:
        number = super().__new__(cls, text)
        number.text = text  # type: ignore[attr-defined]
        return number

    def __repr__(self) -> str:
        text: str = self.text  # type: ignore[attr-defined]
        return text


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice: only the raw text shows it")
    return document
