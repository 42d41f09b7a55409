"""Measure the pages: rendering a long list, a live update, and the size of the first page.

Run it with ``python -m benchmarks.dashboard_pages`` (needs Debian's package
chromium-headless-shell, and the packages that ``make test`` installs). The daemon is a process of
its own, and the browser is a real one without a window. There is no peer, because the pages of
other mail tools have other contents.

Targets: the list of an inbox of 10,000 messages, and a page of 500 of them, is rendered within
150 ms. A mail appears on an open page at most 100 ms after it was stored (the 250 after DATA), and
opens beside the list at most 60 ms after the key was pressed. A first page with all its files is
smaller than 80 KB.
"""

import re
import smtplib
import statistics
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.measuring import percentile
from tests.browser.people import Person, sign_up
from tests.browser.watching import Watched, running_browser, watched_page
from tests.house import mail
from tests.servers.daemon import HOST, Daemon, running_daemon

STORED = 10_000
MESSAGES = 500
OPENED = 40
ROUNDS = 25
LIVE_MAILS = 100
PAUSE = 0.02  # seconds between live mails, as the tests of one developer send them
MAX_RENDER, MAX_LIVE, MAX_OPEN, MAX_PAGE = 0.150, 0.100, 0.060, 80_000

OBSERVE = """() => {
  window.arrivals = {};
  new MutationObserver((changes) => {
    const now = performance.timeOrigin + performance.now();
    for (const change of changes) for (const row of change.addedNodes) {
      const subject = row.querySelector && row.querySelector(".subject");
      if (subject) window.arrivals[subject.textContent] = now;
    }
  }).observe(document.getElementById("mails"), {childList: true});
}"""


def main() -> None:
    """Measure everything and print the results."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_daemon(Path(folder), limits_waits_per_key=1_000) as daemon,
        running_browser() as browser,
        watched_page(browser.running(), daemon.http_port) as watched,
    ):
        for path in ("/", "/sign-up"):
            report_page(watched, path)
        person = sign_up(watched, daemon)
        report_page(watched, "/inbox")
        report_live(watched, person)
        fill(person, daemon)
        report_page(watched, "/inbox")
        report_opening(watched)
        report_list(watched, daemon, 50)
        report_list(watched, daemon, MESSAGES)


def fill(person: Person, daemon: Daemon) -> None:
    """Receive mails until the inbox holds as many as its quota allows."""
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        for number in range(STORED - LIVE_MAILS):
            address = person.tagged(f"tag-{number % 20}")
            client.sendmail("shop@example.com", [address], mail(f"Order {number}"))


OPENING = """() => {
  window.opened = [];
  let pressed;
  document.addEventListener("keydown", () => { pressed = performance.now(); }, true);
  new MutationObserver(() => {
    if (document.querySelector("#mail h1")) window.opened.push(performance.now() - pressed);
  }).observe(document.getElementById("mail-pane"), {childList: true});
}"""


def report_opening(watched: Watched) -> None:
    """Print how long after the key press the next mail is shown beside the list."""
    page = watched.page
    page.set_viewport_size({"width": 1440, "height": 900})
    watched.go("/inbox")
    page.evaluate(OPENING)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    for number in range(1, OPENED):
        page.wait_for_function("many => window.opened.length >= many", arg=number)
        page.keyboard.press("j")
    page.wait_for_function("many => window.opened.length >= many", arg=OPENED)
    times = [one / 1000 for one in page.evaluate("window.opened")]
    _print("a mail beside the list after its key, p50", percentile(times, 50), MAX_OPEN)
    _print("a mail beside the list after its key, p95", percentile(times, 95), MAX_OPEN)


def report_list(watched: Watched, daemon: Daemon, rows: int) -> None:
    """Print how long the request for a page of a list takes, without a browser."""
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in watched.context.cookies())
    connection = HTTPConnection(HOST, daemon.http_port)
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        connection.request("GET", f"/inbox?limit={rows}", headers={"Cookie": cookies})
        body = connection.getresponse().read()
        times.append(time.perf_counter() - began)
        assert len(re.findall(rb'<li id="m-', body)) == rows
    _print(f"{rows} of {STORED} messages, whole request", statistics.median(times), MAX_RENDER)


def report_live(watched: Watched, person: Person) -> None:
    """Print how long after it was stored a mail appears on an open page."""
    page = watched.page
    page.locator("#live[data-state=open]").wait_for()
    page.evaluate(OBSERVE)
    stored = {}
    with smtplib.SMTP(HOST, person.daemon.smtp_port) as client:
        for number in range(LIVE_MAILS):
            subject = f"Live {number}"
            client.sendmail("shop@example.com", [person.address], mail(subject))
            stored[subject] = time.time() * 1000
            time.sleep(PAUSE)
    page.get_by_text(f"Live {LIVE_MAILS - 1}", exact=True).wait_for()
    arrived: dict[str, float] = page.evaluate("window.arrivals")
    delays = [
        (arrived[subject] - at) / 1000 for subject, at in stored.items() if subject in arrived
    ]
    assert len(delays) == LIVE_MAILS
    _print("live update, p50", percentile(delays, 50), MAX_LIVE)
    _print("live update, p99", percentile(delays, 99), MAX_LIVE)


def report_page(watched: Watched, path: str) -> None:
    """Print how many bytes a first visit to a page transfers, with an empty cache."""
    session = watched.context.new_cdp_session(watched.page)
    sizes: list[float] = []
    done: Any = sizes.append
    session.on("Network.loadingFinished", lambda event: done(event["encodedDataLength"]))
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    watched.go(path)
    watched.page.wait_for_timeout(300)
    session.detach()
    total = sum(sizes)
    verdict = "ok" if total < MAX_PAGE else "MISSED"
    print(f"{path + ', first visit':45} {total / 1000:8.1f} KB in {len(sizes)}  {verdict}")


def _print(what: str, seconds: float, target: float) -> None:
    verdict = "ok" if seconds <= target else "MISSED"
    print(f"{what:45} {seconds * 1000:8.1f} ms, target {target * 1000:.0f}  {verdict}")


if __name__ == "__main__":
    main()
