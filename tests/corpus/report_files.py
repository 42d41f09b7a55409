"""Reads the reports of the corpus, and packs and mails them as reporters do."""

import gzip
import io
import zipfile
from email.message import EmailMessage
from pathlib import Path

FOLDER = Path(__file__).parent / "reports"


def document(name: str) -> bytes:
    """Return the content of a report file, not compressed."""
    return (FOLDER / name).read_bytes()


def zipped(data: bytes, name: str = "report.xml", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Pack a file into a zip archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr(name, data)
    return packed.getvalue()


def report_mail(
    data: bytes,
    content_type: str,
    filename: str,
    *,
    author: str = "noreply@reporter.example",
    recipient: str = "dmarc@example.org",
    text: str | None = "This is an aggregate report.\n",
) -> bytes:
    """Return the mail that delivers a report; without ``text`` the report is the whole mail."""
    mail = EmailMessage()
    mail["From"], mail["To"] = author, recipient
    mail["Subject"] = f"Report Domain: example.org Submitter: {author.rpartition('@')[2]}"
    mail["Date"] = "Fri, 20 Nov 2026 03:00:00 +0000"
    mail["Message-ID"] = f"<{len(data)}.{filename}@reporter.example>"
    main, sub = content_type.split("/")
    if text is None:
        mail.set_content(data, main, sub, filename=filename, disposition="attachment")
    else:
        mail.set_content(text)
        mail.add_attachment(data, main, sub, filename=filename)
    return mail.as_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def gzipped(data: bytes) -> bytes:
    """Pack with gzip."""
    return gzip.compress(data, mtime=0)
