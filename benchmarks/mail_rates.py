"""Measure what a daemon needs at a rate of mails: CPU and memory of all its processes.

    .venv/bin/python -m benchmarks.mail_rates [10 100 1000]

Ten senders keep their connections and send mails of 5 KB with a code and links, evenly spread. If
the machine is too slow for a rate, the achieved rate is printed, to which the CPU figures belong.
"""

import argparse
import smtplib
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import cpu_seconds, own_pss_bytes, processes
from tests.end_to_end.load import send
from tests.servers.daemon import HOST, running_daemon

SENDERS = 10
SECONDS = 12.0
NO_LIMIT = 10**12
MAIL = (
    b"From: a@example.com\r\nSubject: rate\r\n\r\n"
    + b"Your code is 123456, see https://example.com/confirm now.\r\n" * 85
)


def send_at(port: int, recipient: str, rate: float, first: float, sent: list[float]) -> None:
    """Send mails over one connection, each at its time, for `SECONDS`."""
    end, due = time.monotonic() + SECONDS, time.monotonic() + first
    with smtplib.SMTP(HOST, port, timeout=60) as client:
        while time.monotonic() < end:
            time.sleep(max(0.0, due - time.monotonic()))
            due += 1 / rate
            if send(client, [recipient], MAIL) == 250:
                sent.append(time.monotonic())


def measure(folder: Path, rate: int) -> None:
    """Run a daemon at a rate, and print its figures."""
    options = {
        "spamassassin_spamd": "off",
        "inbox_max_messages": NO_LIMIT,
        "inbox_max_bytes": NO_LIMIT,
    }
    with running_daemon(folder, **options) as daemon:
        recipient, sent = daemon.address("rate"), list[float]()
        each = rate / SENDERS
        threads = [
            threading.Thread(
                target=send_at, args=(daemon.smtp_port, recipient, each, number / rate, sent)
            )
            for number in range(SENDERS)
        ]
        pid = daemon.process.pid
        used, memory = cpu_seconds(pid), 0
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            memory = max(memory, sum(map(own_pss_bytes, processes(pid))))
            time.sleep(0.5)
        used = cpu_seconds(pid) - used
        achieved = len(sent) / SECONDS
        print(
            f"{rate} mails a second: {achieved:.0f} achieved, CPU {used / SECONDS:.0%} of a core, "
            f"{used / max(1, len(sent)) * 1000:.1f} ms for each mail, memory {memory / 1e6:.0f} MB",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rates", nargs="*", type=int, default=[10, 100, 1000])
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mailcheck-rates-") as folder:
        for rate in options.rates:
            measure(Path(folder) / str(rate), rate)


if __name__ == "__main__":
    main()
