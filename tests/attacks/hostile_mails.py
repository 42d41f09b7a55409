"""Read the hostile mails of ``hostile_mails.toml``."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_suffix(".toml")

_HEAD = "From: {sender}\r\nTo: you@example.com\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n"
_PART = "Content-Type: {kind}; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{text}\r\n"
_BOUNDARY = "=-=hostile=-="
_HTML = {"name", "html", "repeated", "times"}


@dataclass(frozen=True, slots=True)
class HostileMail:
    """A hostile mail, and the ``tag`` that it is sent to."""

    name: str
    raw_message: bytes
    tag: str
    html: str
    is_html_only: bool
    """Whether the header and the structure are those of other mails."""


def read_hostile_mails() -> Sequence[HostileMail]:
    """Return all of them."""
    rows = tomllib.loads(_FILE.read_text("utf-8"))["mail"]
    return [_make(**row, is_html_only=row.keys() <= _HTML) for row in rows]


def _make(
    name: str,
    html: str = "",
    repeated: str = "",
    times: int = 0,
    text: str = "",
    subject: str = "hello",
    sender: str = "Mallory <mallory@canary.test>",
    tag: str = "",
    headers: Sequence[str] = (),
    attachments: Sequence[Sequence[str]] = (),
    *,
    is_html_only: bool,
) -> HostileMail:
    html = repeated * times + html
    parts = [_PART.format(kind="text/plain", text=text)] if text else []
    parts += [_PART.format(kind="text/html", text=html)] if html else []
    parts += [_attach(*attachment) for attachment in attachments]
    head = _HEAD.format(sender=sender, subject=subject)
    head += "".join(f"{line}\r\n" for line in headers)
    if len(parts) == 1:
        written = head + parts[0]
    else:
        head += f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"\r\n'
        inside = "".join(f"--{_BOUNDARY}\r\n{part}" for part in parts)
        written = f"{head}\r\n{inside}--{_BOUNDARY}--\r\n"
    # A mail has no bare line breaks and no NUL. Where the HTML has one, the mail has it encoded.
    lines = written.replace("\r\n", "\n").replace("\r", "&#13;").replace("\0", "&#0;").split("\n")
    raw_message = "\r\n".join(lines).encode("utf-8")
    return HostileMail(name, raw_message, tag, html, is_html_only)


def _attach(filename: str, kind: str, content: str, content_id: str = "") -> str:
    quoted = filename.replace("\\", "\\\\").replace('"', '\\"')
    head = f'Content-Type: {kind}\r\nContent-Disposition: attachment; filename="{quoted}"\r\n'
    if content_id:
        head += f"Content-ID: <{content_id}>\r\n"
    return f"{head}\r\n{content}\r\n"
