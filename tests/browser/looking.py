"""Looking at a page as people do: what it complains of, whether it fits, what its plots hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDE, NARROW = 1280, 390
HEIGHT = 900


@dataclass
class Looking:
    """An open page.

    Attributes:
        page: Playwright's page.
        complaints: Errors and warnings of its console, and requests that left the machine.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)

    @property
    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(script))

    @property
    def first_paint_ms(self) -> float:
        """When the first text was on the screen."""
        script = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        return float(self.page.evaluate(script))


def look(browser: Browser, address: str, *, width: int = WIDE, dark: bool = False) -> Looking:
    """Open an address in a window of its own; the caller closes ``page.context``."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT},
        color_scheme="dark" if dark else "light",
    )
    page = context.new_page()
    seen = Looking(page)

    def console(message: Any) -> None:
        if message.type in ("error", "warning"):
            seen.complaints.append(f"{message.type}: {message.text}")

    page.on("console", console)
    page.on("pageerror", lambda error: seen.complaints.append(f"uncaught: {error}"))
    page.on("request", lambda request: _note_request(seen, request.url))
    page.goto(address)
    return seen


def _note_request(seen: Looking, url: str) -> None:
    local = ("file://", "data:", "blob:", "http://127.0.0.1", "http://localhost")
    if not url.startswith(local):
        seen.complaints.append(f"asked the network for {url}")
