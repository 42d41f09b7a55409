"""A page in a real browser that records requests, console messages, dialogs and navigation.

with watched_page(browser, daemon.http_port) as watched:
    watched.page.goto(...)
    watched.require_quiet()
"""

import contextlib
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Playwright,
    Request,
    sync_playwright,
)

CHROMIUM = Path("/usr/bin/chromium-headless-shell")
"""Chromium without a user interface, which takes half the time for a page."""
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No other host resolves: requests to others are recorded and never leave this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

DEADLINE = 60_000  # milliseconds
PATIENCE = 150  # seconds; the longest test takes a third of it on a busy machine
POLL = 20  # milliseconds
GRAVE = ("serious", "critical")
"""Impacts of issues that no page may have."""

ALSO = ("aria-allowed-role", "landmark-unique")
"""Rules of axe with a smaller impact that no page may break."""

REFUSED = ("csp", "origin")
"""Failures of requests that the browser did not send: by the policy or the same-origin rule."""

NOT_FOUND = "Failed to load resource: net::ERR_NAME_NOT_RESOLVED"

HERE = ("data", "blob", "about")
"""Schemes of addresses that need no network."""


@dataclass
class Watched:
    """A page, and everything that was recorded in its browser context."""

    context: BrowserContext
    page: Page
    origin: str
    requests: list[str] = field(default_factory=list)
    strange: list[Request] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    moves: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """Open a page of the daemon."""
        self.page.goto(self.origin + path)

    def go_until(self, path: str, is_so: Callable[[], bool]) -> None:
        """Reload a page until it shows the effect of a request sent when another page closed."""

        def is_shown() -> bool:
            self.go(path)
            return is_so()

        self._wait(is_shown, f"{path} never showed the effect")

    def wait_until(self, script: str) -> None:
        """Wait until the page answers an expression in JavaScript with a true value.

        Playwright's own ``wait_for_function`` repeats the expression in the page, where the
        policy of the page forbids it.
        """
        self._wait(lambda: self.page.evaluate(script), f"never became true: {script}")

    def press_to_leave(self, key: str, pattern: str) -> None:
        """Press a key that navigates to another page.

        The key is released on the new page: a closing page may never confirm a key event, and
        Playwright would wait for that without a timeout.
        """
        self.page.keyboard.down(key)
        self.page.wait_for_url(pattern)
        self.page.keyboard.up(key)

    def forget(self) -> None:
        """Clear the recordings, and close all pages that were opened."""
        for seen in (self.requests, self.complaints, self.dialogs, self.moves):
            seen.clear()
        self.strange.clear()
        for page in self.pages[1:]:
            page.close()
        del self.pages[1:]

    @property
    def elsewhere(self) -> list[str]:
        """Return the requests to other hosts, including requests blocked by the policy."""
        return [f"{request.resource_type} {request.url}" for request in self.strange]

    def sent_elsewhere(self) -> list[str]:
        """Return the requests really sent to other hosts, after the browser reported failures."""
        complaint = f"the browser did not report failures of {self.elsewhere}"
        self._wait(lambda: all(request.failure for request in self.strange), complaint)
        return [request.url for request in self.strange if request.failure not in REFUSED]

    def troubles(self) -> list[str]:
        """Return everything that must not happen on any page."""
        return [
            *(f"asked elsewhere: {url}" for url in self.elsewhere),
            *(f"complained: {text}" for text in self.complaints),
            *(f"opened a dialog: {text}" for text in self.dialogs),
            *(f"opened a page: {page.url}" for page in self.pages[1:]),
        ]

    def require_quiet(self) -> None:
        """Fail if anything was requested elsewhere, logged as a problem, or opened."""
        if self.troubles():
            raise AssertionError("\n".join(self.troubles()))

    def require_accessible(self, *rules: str) -> None:
        """Fail if axe finds a serious or critical issue, or one of the rules in `ALSO`.

        :param rules: the rules to check. Without them, all are checked.
        """
        # The script bypasses the policy of the page, as a browser extension does.
        self.page.evaluate(AXE.read_text("utf-8"))
        violations = self.page.evaluate(
            "rules => axe.run(document, {iframes: false, resultTypes: ['violations'],"
            " ...(rules.length && {runOnly: rules})}).then(found => found.violations)",
            list(rules),
        )
        faults = [
            f"{one['id']}: {one['help']}: {[node['html'] for node in one['nodes']]}"
            for one in violations
            if one["impact"] in GRAVE or one["id"] in ALSO
        ]
        if faults:
            raise AssertionError("\n".join(faults))

    def _wait(self, is_so: Callable[[], bool], complaint: str) -> None:
        for _ in range(DEADLINE // POLL):
            if is_so():
                return
            self.page.wait_for_timeout(POLL)
        raise AssertionError(complaint)

    def _note(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in HERE:
            return
        self.requests.append(request.url)
        if f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.strange.append(request)

    def _watch(self, page: Page) -> None:
        self.pages.append(page)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("framenavigated", lambda frame: self.moves.append(frame.url))

    def take_unloaded_images(self) -> None:
        """Remove images of other hosts that could not be loaded from the recordings."""
        self.strange[:] = [
            request
            for request in self.strange
            if (request.resource_type, request.url[:4]) != ("image", "http")
        ]
        self.complaints[:] = [one for one in self.complaints if NOT_FOUND not in one]

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def start(self) -> None:
        """Start recording."""
        context = self.context
        context.set_default_timeout(DEADLINE)
        context.on("request", self._note)
        context.on("page", self._watch)
        context.on("dialog", self._dismiss)
        context.on(
            "console",
            lambda message: (
                self.complaints.append(f"{message.type}: {message.text}")
                if message.type in ("error", "warning")
                else None
            ),
        )


@contextlib.contextmanager
def watched_page(browser: Browser, port: int, **options: Any) -> Iterator[Watched]:
    """Open a page in its own context, without cookies and cache."""
    context = browser.new_context(**options)
    origin = f"http://127.0.0.1:{port}"
    watched: Watched = Watched(context, None, origin)  # type: ignore[arg-type]
    watched.start()
    watched.page = context.new_page()
    try:
        yield watched
    finally:
        context.close()


class OneBrowser:
    """One Chromium for all tests, replaced if it does not answer.

    Some calls of Playwright have no timeout, and on a busy machine a browser sometimes never
    answers. It is killed then: the call fails, and the next test gets a new browser.
    """

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._mark = f"--mailcheck-browser={uuid.uuid4()}"
        self._browser: Browser | None = None

    def launch(self, *arguments: str) -> Browser:
        """Start another browser, with these arguments."""
        return self._playwright.chromium.launch(
            executable_path=str(CHROMIUM), headless=True, args=arguments
        )

    def running(self) -> Browser:
        """Return the browser, and start it if none is connected."""
        if self._browser is None or not self._browser.is_connected():
            self._browser = self.launch(*ARGUMENTS, self._mark)
        return self._browser

    @contextlib.contextmanager
    def lent(self) -> Iterator[Browser]:
        """Lend the browser to a test, and kill it if the test takes too long."""
        watch = Timer(PATIENCE, self._end)
        watch.start()
        try:
            yield self.running()
        finally:
            watch.cancel()

    def _end(self) -> None:
        """Kill the browser's processes, since it may not answer a request to close."""
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._mark in (process / "cmdline").read_text():
                    os.kill(int(process.name), signal.SIGKILL)


_running: list[OneBrowser] = []


@contextlib.contextmanager
def running_browser() -> Iterator[OneBrowser]:
    """Provide a browser that starts when it is first lent.

    Playwright runs once in a process, so that users at the same time share the browser.
    """
    if _running:
        yield _running[0]
        return
    with sync_playwright() as playwright:
        _running.append(OneBrowser(playwright))
        try:
            yield _running[0]
        finally:
            _running.clear()
