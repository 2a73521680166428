"""Logs: one JSON line per event and attempt on standard error; ids, lengths and hashes only.

Nothing here knows bodies or secrets, and the last processor cuts what looks like one, so that a
careless call still gives nothing away.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

FORBIDDEN_KEYS = frozenset(
    {"authorization", "cookie", "secret", "password", "token", "signature", "payload", "body"}
)
"""Fields that no log line may carry; their values are replaced."""

_URL_CREDENTIALS = re.compile(r"(\w+://)[^/@\s]*@")
_QUERY = re.compile(r"(https?://[^\s?]+)\?[^\s]*")
_QUOTED = re.compile(
    r"(DETAIL:|\[parameters:).*?"
    r"(?=\n(?:HINT:|CONTEXT:|QUERY:|\[SQL|\(Background|The above|During|Traceback|\[parameters|  File )|\Z)",
    re.DOTALL,
)
"""What PostgreSQL and the driver repeat of a row: it may hold anything that a stranger sent."""


def scrub(text: str) -> str:
    """Cut what an error repeats out of a text for people: URLs' credentials and queries, rows' values."""
    if "://" in text:
        text = _QUERY.sub(r"\1?[cut]", _URL_CREDENTIALS.sub(r"\1", text))
    if "DETAIL:" in text or "[parameters:" in text:
        text = _QUOTED.sub(r"\1 [cut]", text)
    return text


def _guard(_logger: Any, _name: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in line.items():
        if key.lower() in FORBIDDEN_KEYS:
            line[key] = "[redacted]"
        elif isinstance(value, str):
            line[key] = scrub(value)
    return line


_ENCODER = json.JSONEncoder(default=repr)


def _line(fields: Any, **_how: Any) -> str:
    # json.dumps builds an encoder for each call that names a default, and there is a line an event.
    return _ENCODER.encode(fields)


def quieten() -> None:
    """Errors alone, to standard error: for commands, which say what they did themselves."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def configure(level: str = "INFO") -> None:
    """Send structlog and the standard library's loggers to standard error as JSON lines."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _guard,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(serializer=_line)],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level)),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(getattr(logging, level), logging.WARNING), force=True)
    logging.captureWarnings(capture=True)


def logger(name: str) -> Any:
    """A bound logger; ``name`` stands in each line as ``room``."""
    # Lazy: modules make their loggers at import, before `configure` ran.
    return structlog.get_logger(room=name)
