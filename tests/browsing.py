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


def barriers(page: Any) -> list[str]:
    """What on the page keeps people out who use a keyboard, a screen reader, or weak eyes."""
    script = Path(__file__).with_name("barriers.js").read_text()
    found: list[str] = page.evaluate(script[script.index("() =>") :].rstrip().rstrip(";"))
    return found


def focus_unseen(page: Any, steps: int) -> list[str]:
    """What the Tab key reaches in so many steps without showing where it is."""
    unseen = []
    for _ in range(steps):
        page.keyboard.press("Tab")
        outline, shown = page.evaluate(
            "(e => [getComputedStyle(e).outlineStyle, e.outerHTML.slice(0, 80)])(document.activeElement)"
        )
        # Past the last one the focus is on the page itself.
        if outline == "none" and not shown.startswith("<body"):
            unseen.append(shown)
    return unseen
