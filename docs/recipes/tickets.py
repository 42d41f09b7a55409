"""A small ticket system that receives mail as Postmark posts it: the program of "Test an
application that receives mail".

    SMTP_PORT=2525 python tickets.py

It listens at port 9000, and sends its answers to SMTP_HOST and SMTP_PORT. It does not depend on
mailcheck.
"""

import json
import os
import smtplib
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

tickets: dict[str, list[str]] = {}


def is_automatic(mail: dict) -> bool:
    """Return whether it is a bounce or an automatic reply, which must not be answered."""
    headers = {one["Name"].lower(): one["Value"] for one in mail["Headers"]}
    return headers.get("return-path") == "<>" or headers.get("auto-submitted", "no") != "no"


def take(mail: dict) -> None:
    """Open a ticket, or add to the ticket in the address, and answer."""
    number = mail["MailboxHash"].removeprefix("ticket-") or str(len(tickets) + 1)
    texts = tickets.setdefault(number, [])
    texts.append(mail["StrippedTextReply"] or mail["TextBody"])
    answer = EmailMessage()
    answer["From"] = f"Support <support+ticket-{number}@tickets.example>"
    answer["To"] = mail["From"]
    answer["Subject"] = f"[Ticket {number}] message {len(texts)}"
    answer.set_content(f"You wrote:\n\n{texts[-1]}\n")
    host, port = os.environ.get("SMTP_HOST", "127.0.0.1"), int(os.environ.get("SMTP_PORT", "2525"))
    with smtplib.SMTP(host, port, timeout=30) as smtp:
        smtp.send_message(answer)


class Receiver(BaseHTTPRequestHandler):
    """The URL for inbound mail."""

    def do_POST(self) -> None:
        """Take a mail."""
        mail = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not is_automatic(mail):
            take(mail)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    ThreadingHTTPServer(
        ("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver
    ).serve_forever()
