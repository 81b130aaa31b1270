"""Chromium with one page, and the pictures of what it showed: kept below build/screenshots, for people to look at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_MS = 30_000
SIZE: ViewportSize = {"width": 1400, "height": 1000}
Scheme = Literal["light", "dark"]


@dataclass
class Window:
    """A page and what it complained of."""

    page: Page
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    """Everybody who was asked for something."""

    def watch(self) -> None:
        self.page.set_default_timeout(_PATIENCE_MS)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("request", lambda request: self.hosts.update(filter(None, [urlsplit(request.url).netloc])))

    def beside(self) -> Window:
        """Another one. What it complains of is told here too."""
        browser = self.page.context.browser
        assert browser is not None
        opened = Window(browser.new_page(viewport=SIZE), self.errors, self.hosts)
        opened.watch()
        return opened

    def keep(self, name: str, *, whole: bool = False) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole)


@contextmanager
def chromium() -> Iterator[Browser]:
    """As long as it is open, no other event loop can run in this thread: for one test, or a module of them."""
    program = next(path for name in _NAMES if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window_of(browser: Browser, scheme: Scheme = "light") -> Iterator[Window]:
    """Of a person of its own: nothing of other windows is known in it."""
    opened = Window(browser.new_page(viewport=SIZE, color_scheme=scheme))
    opened.watch()
    try:
        yield opened
    finally:
        opened.page.close()


@contextmanager
def window(scheme: Scheme = "light") -> Iterator[Window]:
    with chromium() as browser, window_of(browser, scheme) as opened:
        yield opened
