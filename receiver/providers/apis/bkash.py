"""bKash's API: the search by ``trxID``, under a token granted for app key, secret, user and password.

The grant is limited to a few an hour, so that the token is kept. The answer names no order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import requests

from receiver.providers.amounts import MAJOR_ANY
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import ClientCredentials, Secrets
from receiver.providers.asking import Answer, Question
from receiver.providers.body_map import Where
from receiver.providers.described_api import ApiDescription, Call, Part
from receiver.providers.payment_api import NotFound, Unavailable
from receiver.providers.payment_event import Kind

_PAYMENT = Where(
    transaction_id=("trxID",),
    amount=("amount",),
    currency=("currency",),
    unit=MAJOR_ANY,
)
_STATUSES = by_status(
    ("transactionStatus",),
    _PAYMENT,
    {"Completed": Kind.SUCCEEDED, "Initiated": Kind.PENDING, "Failed": Kind.FAILED},
)
_NOT_FOUND = frozenset({"2016", "2033"})
_UNAUTHORIZED = frozenset({"2001", "2079"})


@dataclass(frozen=True)
class GrantedToken(ClientCredentials):
    """bKash's own form of client credentials."""

    names: tuple[str, ...] = ("app_key", "app_secret", "username", "password")

    def headers(
        self, http: requests.Session, url: str, secrets: Secrets, deadline: float
    ) -> dict[str, str] | Unavailable:
        token = self.token(http, url, secrets, deadline)
        if isinstance(token, Unavailable):
            return token
        return {"Authorization": token, "X-APP-Key": secrets["app_key"]}

    def question(self, url: str, secrets: Secrets) -> Question:
        return Question(
            url + self.path,
            {"username": secrets["username"], "password": secrets["password"]},
            method="POST",
            json={"app_key": secrets["app_key"], "app_secret": secrets["app_secret"]},
        )

    def granted(self, answer: Answer) -> tuple[object, object]:
        return answer.document.get("id_token"), answer.document.get("expires_in")


def _judge(document: Mapping[str, Any]) -> NotFound | Unavailable | None:
    """It says 200 whatever happened; the code tells."""
    code = str(document.get("statusCode", "0000"))
    if code == "0000":
        return None
    if code in _NOT_FOUND:
        return NotFound("the API does not know this trxID", 200)
    if code in _UNAUTHORIZED:
        return Unavailable("unauthorized", f"the API refuses our credentials ({code[:8]})")
    return Unavailable("refused", f"the API refused the question ({code[:8]})")


BKASH_API = ApiDescription(
    live="https://tokenized.pay.bka.sh/v1.2.0-beta",
    sandbox="https://tokenized.sandbox.bka.sh/v1.2.0-beta",
    keys=GrantedToken("/tokenized/checkout/token/grant"),
    calls=(
        (
            Call(
                "/tokenized/checkout/general/searchTransaction",
                (Part(_STATUSES),),
                json={"trxID": "{transaction}"},
                judge=_judge,
            ),
        ),
    ),
)
