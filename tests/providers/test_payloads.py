"""Payload files that carry a signature of their own; what all mean: `tests/web/test_every_payload.py`."""

import pytest
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.registry import provider
from receiver.settings import Secret, Source
from tests.web.test_every_payload import SECRETS, body_of, name_of

NOW = 1_790_000_000


@pytest.mark.parametrize(
    "payload", ["adyen-succeeded", "adyen-failed", "adyen-refunded", "sslcommerz-failed"]
)
def test_a_payload_file_keeps_its_own_signature_where_it_has_one_for_our_secret(payload):
    """The signatures inside the files of SSLCommerz hold under the store password that they name."""
    name = name_of(payload)
    source = Source(name, name, (Secret("env:S", SECRETS[name]),))
    verdict = provider(name).verify(source, Headers(), body_of(payload), NOW)

    assert isinstance(verdict, Verified) == (name == "sslcommerz")
