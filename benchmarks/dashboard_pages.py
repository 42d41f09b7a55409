"""What the pages cost: a long list on the server, a live update, the first page over the wire.

Run it with ``python -m benchmarks.dashboard_pages`` (needs Debian's package
chromium, and what ``make test`` installs). The daemon is a process of its own;
the browser is a real one, without a window. There is no peer: each mail tool's
page is another page.

Targets: a list of 500 messages is rendered within 150 ms; a mail is on an open
page at most 100 ms after it was stored (the 250 after DATA); the first page, with all it
needs, is under 60 KB.
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

MESSAGES = 500
ROUNDS = 25
LIVE_MAILS = 100
PAUSE = 0.02  # seconds between live mails: one after the other, as a person's tests send them
MAX_RENDER, MAX_LIVE, MAX_PAGE = 0.150, 0.100, 60_000

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
    """Measure everything and print it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_daemon(Path(folder), limits_waits_per_key=1_000) as daemon,
        running_browser() as browser,
        watched_page(browser, daemon.http_port) as watched,
    ):
        for path in ("/", "/sign-up"):
            report_page(watched, path)
        person = sign_up(watched, daemon)
        report_page(watched, "/inbox")
        report_live(watched, person)
        fill(person, daemon)
        report_page(watched, "/inbox")
        report_list(watched, daemon)


def fill(person: Person, daemon: Daemon) -> None:
    """Receive so many mails that the list holds 500."""
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        for number in range(MESSAGES - LIVE_MAILS):
            address = person.tagged(f"tag-{number % 20}")
            client.sendmail("shop@example.com", [address], mail(f"Order {number}"))


def report_list(watched: Watched, daemon: Daemon) -> None:
    """Print how long a list of 500 messages takes, asked for as a program does."""
    cookies = "; ".join(f"{one['name']}={one['value']}" for one in watched.context.cookies())
    connection = HTTPConnection(HOST, daemon.http_port)
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        connection.request("GET", f"/inbox?limit={MESSAGES}", headers={"Cookie": cookies})
        body = connection.getresponse().read()
        times.append(time.perf_counter() - began)
        assert len(re.findall(rb'<li id="m-', body)) == MESSAGES
    _print(f"list of {MESSAGES} messages, whole request", statistics.median(times), MAX_RENDER)


def report_live(watched: Watched, person: Person) -> None:
    """Print how long after its storing a mail is on an open page."""
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
    """Print what a first visit to a page costs over the wire: nothing of it is cached."""
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
