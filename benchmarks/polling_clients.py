"""Requests and time of a client of Mailpit that waits for a mail by polling, with and without hold.

The client searches ten times a second, as test suites do. Each mail comes 1.5 seconds after the
wait has begun.
"""

import json
import smtplib
import statistics
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from tests.servers.daemon import HOST, free_ports, running_daemon

WAITS = 20
DELAY = 1.5
INTERVAL = 0.1
HOLDS = (0.0, 1.0, 2.0)


def send(port: int, to: str, sent: list[float]) -> None:
    """Send a mail after the delay, and record when it was accepted."""
    time.sleep(DELAY)
    with smtplib.SMTP(HOST, port) as smtp:
        smtp.sendmail("a@example.com", [to], f"To: {to}\r\nSubject: hi\r\n\r\nhello\r\n")
        sent.append(time.monotonic())


def wait(connection: HTTPConnection, to: str) -> int:
    """Poll until there is mail to an address; return the number of requests."""
    requests = 0
    while True:
        requests += 1
        connection.request("GET", f"/api/v1/search?query=to:{to}")
        if json.loads(connection.getresponse().read())["messages_count"]:
            return requests
        time.sleep(INTERVAL)


def measure(folder: Path, hold: float) -> tuple[float, Sequence[float]]:
    """Return the requests per wait, and the seconds from the 250 of each mail to the answer."""
    api, smtp = free_ports(2)
    options = {"mailpit_listen": f"{HOST}:{api}", "mailpit_smtp_listen": f"{HOST}:{smtp}"}
    requests, delays = 0, []
    with running_daemon(folder, compatible_hold=hold, **options):
        connection = HTTPConnection(HOST, api, timeout=60)
        for number in range(WAITS):
            sent: list[float] = []
            to = f"user-{number}@customer.example"
            sending = Thread(target=send, args=(smtp, to, sent))
            sending.start()
            requests += wait(connection, to)
            ended = time.monotonic()
            sending.join()
            delays.append(max(0.0, ended - sent[0]))
    return requests / WAITS, delays


def main() -> None:
    """Print a line for each hold."""
    for hold in HOLDS:
        with TemporaryDirectory() as folder:
            requests, delays = measure(Path(folder), hold)
        p50 = statistics.median(delays) * 1000
        what = "polling alone" if not hold else f"hold of {hold:g} s"
        print(f"{what:>14}: {requests:5.1f} requests per wait, p50 {p50:6.1f} ms after the 250")


if __name__ == "__main__":
    main()
