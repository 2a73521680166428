"""Visits: a provider that wants a URL of its own fetched once, to confirm a subscription.

Outside the request, without following redirects, under a short time limit. The URL comes from a
verified request and was looked at by the provider's description (its own host, https). A visit that
fails is asked for again by the provider, so that nothing is kept of it but a log line.
"""

from __future__ import annotations

import threading

from receiver.logs import logger

TIMEOUT_SECONDS = (3.0, 10.0)
"""To connect, and for each read."""

AT_ONCE = 4
"""Visits under way at once in one process; further ones are left to the provider's next try."""

log = logger("intake")
_free = threading.BoundedSemaphore(AT_ONCE)


def visit(source: str, url: str) -> None:
    """Fetch ``url`` once, in a thread of its own."""
    if not _free.acquire(blocking=False):
        log.warning("visit.put_off", source=source)
        return
    threading.Thread(target=_visit, args=(source, url), name="visit", daemon=True).start()


def _visit(source: str, url: str) -> None:
    # Imported here: few processes ever make a visit, and the module costs each of them memory.
    import requests

    try:
        with requests.get(url, timeout=TIMEOUT_SECONDS, allow_redirects=False, stream=True) as answer:
            log.warning("visit.made", source=source, status=answer.status_code)
    except requests.RequestException as error:
        log.warning("visit.failed", source=source, error=type(error).__name__)
    finally:
        _free.release()
