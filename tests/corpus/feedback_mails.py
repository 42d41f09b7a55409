"""Reads the failure reports and complaints of the corpus, and writes others."""

from pathlib import Path

FOLDER = Path(__file__).parent / "feedback"

FIELDS = (
    "Feedback-Type: auth-failure\n"
    "User-Agent: Filter/1.0\n"
    "Version: 1\n"
    "Auth-Failure: dmarc\n"
    "Identity-Alignment: none\n"
    "Original-Mail-From: <bounce+ann@news.example.org>\n"
    "Original-Rcpt-To: <bob.secret@receiver.example>\n"
    "Authentication-Results: mx.receiver.example; dmarc=fail header.from=example.org\n"
    "Source-IP: 203.0.113.66\n"
    "Reported-Domain: example.org\n"
)

REPORTED = (
    "Feedback-ID: autumn:8841:newsletter:newsmill\n"
    "From: Ann Secret <ann.secret@example.org>\n"
    "To: Bob Secret <bob.secret@receiver.example>\n"
    "Subject: A secret subject\n"
    "\n"
    "A secret text.\n"
)


LETTER = (
    b"From: Feedback Loop <loop@google.com>\nTo: fbl\nSubject: Confirm your address\n"
    b"Date: Fri, 20 Nov 2026 03:00:00 +0000\nMessage-ID: <%d@google.com>\n"
    b"MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n"
    b"<p>Your code is <b>482913</b>. <a href='https://google.com/confirm?t=7f3a'>Confirm</a></p>\n"
).replace(b"\n", b"\r\n")
"""A mail with which a receiver lets the owner confirm an address; ``%d`` is its number."""


def feedback_file(name: str) -> bytes:
    """Return a mail of the corpus with the line ends of SMTP."""
    return (FOLDER / name).read_bytes().replace(b"\n", b"\r\n")


def feedback_mail(
    fields: str | bytes = FIELDS,
    reported: str | bytes = REPORTED,
    *,
    author: str = "reports@google.com",
    message_id: str = "1@google.com",
    attached_as: str = "message/rfc822",
) -> bytes:
    """Return a report about one mail."""
    head = (
        f"From: {author}\nTo: ruf@example.org\nSubject: a report\n"
        f"Date: Fri, 20 Nov 2026 03:00:00 +0000\nMessage-ID: <{message_id}>\n"
        "MIME-Version: 1.0\n"
        "Content-Type: multipart/report; report-type=feedback-report; boundary=outer\n\n"
        "--outer\nContent-Type: text/plain\n\nA report.\n"
        "--outer\nContent-Type: message/feedback-report\n\n"
    )
    mail = b"".join(
        one if isinstance(one, bytes) else one.encode()
        for one in (
            head,
            fields,
            f"\n--outer\nContent-Type: {attached_as}\n\n",
            reported,
            "\n--outer--\n",
        )
    )
    return mail.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
