"""Reading forms and query strings: bad values are a 400 with a sentence, never a fault."""

from __future__ import annotations

from uuid import UUID

from flask import abort, request

from receiver.inbox.filter import FilterError, check_text

MAX_REASON = 500


def text_field(name: str, limit: int = 255) -> str:
    """A field of the form, trimmed; empty when it is missing."""
    text = request.form.get(name, "").strip()
    if len(text) > limit:
        raise FilterError(name, f"{name} is longer than {limit} characters")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise FilterError(name, f"{name} is not valid Unicode text")
    return text


def reason_field() -> str:
    """The reason that every act asks for; it stands in the record of acts."""
    reason = text_field("reason", MAX_REASON)
    if not reason:
        raise FilterError("reason", "a reason must be given: it stands in the record of acts")
    return reason


def integer_field(name: str) -> int:
    """A whole number of the form, as the page itself wrote it."""
    text = request.form.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise FilterError(name, f"{name} must be a whole number")
    return int(text)


def page_before() -> UUID | None:
    """The id after which a page goes on."""
    text = request.args.get("before", "")
    if not text:
        return None
    try:
        return UUID(text)
    except ValueError:
        abort(400, "`before` is the id that the last page ended with.")


def number_before() -> int | None:
    """The row number after which a page goes on."""
    text = request.args.get("before", "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        abort(400, "`before` is the number that the last page ended with.")
    return int(text) if text else None


def query_text(name: str) -> str | None:
    """A text of the query string, or None when it is empty. Raises FilterError."""
    text = request.args.get(name, "")
    if not text:
        return None
    check_text(name, text)
    return text
