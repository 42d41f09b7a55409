"""Measure the README's first wait after a start, from the 250 of its mail to the response.

    .venv/bin/python -m benchmarks.first_wait

The daemon is started a number of times, the first time without a database. Its first wait is
alternately parked before the mail arrives, or requested after the 250 as in the README. A second
mail with another tag follows. Half of the runs pause for two seconds after the start, as a person
would; in the others the mail is sent as soon as the daemon is ready. The measured time starts when
the sender has read the 250 after DATA, and ends with the last byte of the response. It is negative
if the response was faster.

Target: 10 ms.
"""

import argparse
import json
import smtplib
import tempfile
import time
from pathlib import Path

from benchmarks.waiting_clients import Connection
from tests.servers.daemon import API, HOST, Daemon, running_daemon

TARGET = 10.0  # milliseconds
STARTS = 8
REST = 2.0  # seconds
MAIL = (
    b"From: shop@example.com\r\nSubject: Welcome\r\n\r\n"
    b"Your code is 482913: https://example.com/confirm?t=7f3a\r\n"
)


def request(daemon: Daemon, tag: str, cursor: str) -> bytes:
    """Return the request of a wait."""
    head = f"GET {API}/inbox/wait?tag={tag}&after={cursor} HTTP/1.1\r\nHost: {HOST}\r\n"
    return f"{head}X-API-Key: {daemon.key}\r\n\r\n".encode()


def milliseconds(daemon: Daemon, tag: str, *, is_parked: bool) -> float:
    """Send a mail, and return the time from its 250 to the response of the wait."""
    answer = daemon.get("/inbox/address", tag=tag).json
    waiting = Connection(daemon.http_port)
    with smtplib.SMTP(HOST, daemon.smtp_port) as client:
        client.ehlo()
        client.mail("shop@example.com")
        client.rcpt(answer["address"])
        client.putcmd("DATA")
        client.getreply()
        if is_parked:
            waiting.send(request(daemon, tag, answer["cursor"]))
            time.sleep(0.1)  # until the wait has found an empty inbox and is parked
        client.send(MAIL + b".\r\n")
        code, said = client.getreply()
        accepted = time.perf_counter()
        if code != 250:
            raise SystemExit(f"the mail was not accepted: {code} {said!r}")
        if not is_parked:
            waiting.send(request(daemon, tag, answer["cursor"]))
        response, answered = waiting.read()
    waiting.close()
    if json.loads(response.body())["codes"] != ["482913"]:
        raise SystemExit("the wait returned another mail")
    return (answered - accepted) * 1e3


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--starts", type=int, default=STARTS)
    starts = parser.parse_args().starts
    print("start   rest   wait     first wait   second wait   (after the 250)")
    with tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as name:
        for number in range(1, starts + 1):
            is_parked, rest = number % 2 == 0, REST if number % 4 in (1, 2) else 0.0
            with running_daemon(Path(name)) as daemon:
                time.sleep(rest)
                first = milliseconds(daemon, f"first{number}", is_parked=is_parked)
                second = milliseconds(daemon, f"second{number}", is_parked=is_parked)
                daemon.stop()
            verdict = "ok" if max(first, second) <= TARGET else "TOO LATE"
            how = "parked" if is_parked else "asked"
            times = f"{first:9.2f} ms  {second:9.2f} ms"
            print(f"{number:5}  {rest:3.0f} s   {how:6} {times}   {verdict}", flush=True)


if __name__ == "__main__":
    main()
