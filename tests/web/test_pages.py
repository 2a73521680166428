"""The pages: each can be shown with anything in the database, and says what it must."""

from __future__ import annotations

import pytest

from tests.web.conftest import SignIn

PAGES = (
    "/status",
    "/events",
    "/failures",
    "/orders",
    "/sources",
    "/sources/demo",
    "/sources/lesson",
    "/audit",
)


@pytest.mark.parametrize("path", PAGES)
def test_each_page_can_be_shown_on_an_empty_database(sign_in: SignIn, path: str) -> None:
    """Nothing registered, nothing received: every page still says so."""
    response = sign_in("viewer").get(path)
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/html")
