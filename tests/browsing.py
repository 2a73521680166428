"""A real browser for tests: headless Chromium from the machine's packages, driven by Playwright.

With SCREENSHOTS=<folder> pages are kept as pictures.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (apt-get install chromium)")

only_pictures = pytest.mark.skipif(
    "SCREENSHOTS" not in os.environ, reason="only for pictures to look at: set SCREENSHOTS=<folder>"
)

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def run_browser() -> Iterator[Any]:
    """One Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the extra `test` brings playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


def keep(page: Any, name: str) -> None:
    """Keep the whole page as a picture, where pictures are asked for."""
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        shown = "".join(character if character.isalnum() else "_" for character in name)[:80]
        page.screenshot(path=str(Path(folder) / f"{shown}.png"), full_page=True)
