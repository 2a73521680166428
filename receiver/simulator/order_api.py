"""The order API as a merchant's system would call it: registers orders and asks what became of them."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import quote, urlsplit

import requests

TIMEOUT_SECONDS = (5, 20)


class TriggerError(Exception):
    """The run cannot go on; the text is a sentence for people."""


class OrderApi:
    """One service under ``url``; one HTTP session a thread, since posts go out in several."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._local = threading.local()

    @property
    def http(self) -> requests.Session:
        """This thread's session."""
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            # Proxies and netrc of the environment mean nothing for this machine, and looking them
            # up costs more than the post.
            session.trust_env = urlsplit(self.url).hostname not in ("127.0.0.1", "localhost", "::1")
            self._local.session = session
        return session

    def register(self, reference: str, amount_minor: int, currency: str) -> None:
        """Register an order, or find it registered with the same facts. Raises TriggerError."""
        facts = {"reference": reference, "amount_minor": amount_minor, "currency": currency}
        answer = self._ask("POST", "/api/orders", json=facts)
        if answer.status_code not in (200, 201):
            raise TriggerError(f"the order {reference} was not registered: {_sentence(answer)}")

    def order(self, reference: str) -> dict[str, Any]:
        """The order with its state and events. Raises TriggerError."""
        answer = self._ask("GET", f"/api/orders/{quote(reference, safe='')}")
        if answer.status_code != 200:
            raise TriggerError(f"the order {reference} cannot be read: {_sentence(answer)}")
        return _object(answer)

    def event(self, receipt: str) -> dict[str, Any] | None:
        """The event of a receipt, or None."""
        answer = self._ask("GET", f"/api/events/{quote(receipt, safe='')}")
        return _object(answer) if answer.status_code == 200 else None

    def _ask(self, method: str, path: str, **options: Any) -> requests.Response:
        try:
            return self.http.request(
                method,
                self.url + path,
                headers={"Authorization": f"Bearer {self._token}"},
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
                **options,
            )
        except requests.RequestException as error:
            raise TriggerError(
                f"no answer from {self.url} ({type(error).__name__}): is the service up?"
            ) from error


def _object(answer: requests.Response) -> dict[str, Any]:
    try:
        body = answer.json()
    except requests.JSONDecodeError as error:
        raise TriggerError(f"{answer.url} did not answer JSON") from error
    return body if isinstance(body, dict) else {}


def _sentence(answer: requests.Response) -> str:
    try:
        error = answer.json()["error"]
        return f"{error['message']} ({answer.status_code} {error['code']})"
    except (requests.JSONDecodeError, KeyError, TypeError):
        return f"status {answer.status_code}"
