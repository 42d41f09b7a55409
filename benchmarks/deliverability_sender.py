"""Send mails for `benchmarks.deliverability_report`, in a process of its own.

Each line of the input is a JSON list of jobs ``[seconds, recipient, file]``. A mail is sent so many
seconds after its line was read, over a connection of its own that names the simulated client with
XCLIENT. For each line the process prints the times (of the monotonic clock) at which the last octet
of each mail was sent.
"""

import json
import smtplib
import sys
import threading
import time
from pathlib import Path

from tests.operations.scored_mails import ADDRESS, HELO, SENDER

HOST = "127.0.0.1"


class Sender:
    """A mail to send. The commands before DATA are sent ahead of time."""

    def __init__(self, port: int, recipient: str, file: str) -> None:
        self.ended = 0.0
        raw = Path(file).read_bytes()
        self._message = smtplib._quote_periods(raw) + b".\r\n"  # type: ignore[attr-defined]
        self._client = client = smtplib.SMTP(HOST, port, local_hostname=HELO, timeout=60)
        client.ehlo()
        for command, arguments in (
            ("XCLIENT", f"ADDR={ADDRESS} HELO={HELO}"),
            ("EHLO", HELO),
            ("MAIL", f"FROM:<{SENDER}>"),
            ("RCPT", f"TO:<{recipient}>"),
            ("DATA", ""),
        ):
            code, reply = client.docmd(command, arguments)
            assert code < 400, (command, code, reply)

    def send(self) -> None:
        """Send the message, and wait until it is accepted."""
        self._client.send(self._message)
        self.ended = time.monotonic()
        code, reply = self._client.getreply()
        assert code == 250, (code, reply)
        self._client.quit()


def main() -> None:
    """Run jobs until the input ends."""
    port = int(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        jobs = json.loads(line)
        senders = [Sender(port, recipient, file) for _, recipient, file in jobs]
        began = time.monotonic()
        threads = []
        for (seconds, _, _), sender in zip(jobs, senders, strict=True):
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            threads.append(threading.Thread(target=sender.send))
            threads[-1].start()
        for thread in threads:
            thread.join()
        print(json.dumps([sender.ended for sender in senders]), flush=True)


if __name__ == "__main__":
    main()
