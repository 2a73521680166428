"""Visits of a provider's own URL: once, in the background, never along a redirect."""

from __future__ import annotations

import responses

from receiver.web import visits
from tests.running import wait_for

URL = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t"


@responses.activate
def test_a_visit_fetches_the_url_once_and_follows_nothing() -> None:
    """The confirmation is one GET; an answer that leads elsewhere ends the visit."""
    responses.get(URL, status=302, headers={"Location": "http://169.254.169.254/"})

    visits.visit("bkash", URL)

    wait_for(lambda: len(responses.calls) == 1, what="the visit")
    wait_for(_all_free, what="the end of the visit")
    assert [call.request.url for call in responses.calls] == [URL]


@responses.activate
def test_a_visit_that_fails_frees_its_place() -> None:
    """Nobody is there: the place is free again, and the provider will ask once more."""
    for _ in range(visits.AT_ONCE * 3):
        visits.visit("bkash", "https://nobody.invalid/")
        wait_for(_all_free, what="the end of the visit")


def _all_free() -> bool:
    taken = [visits._free.acquire(blocking=False) for _ in range(visits.AT_ONCE)]
    for _ in filter(None, taken):
        visits._free.release()
    return all(taken)
