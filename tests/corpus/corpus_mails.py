"""The corpus of mails with and without one-time codes, built from compact sources.

Each TOML file of a part has ``[[mail]]`` tables. ``text`` and ``html`` are the words of the
sender. ``frame`` names the page around the HTML (logo, preheader, footer with address, phone and
years, tracking pixel). Frames are in the ``frames.toml`` of the part or, if several parts share
them, in the folder above. Charset, transfer encoding and MIME structure differ between mails and
depend on the id of the mail, so a run can be repeated.
"""

import base64
import quopri
import tomllib
import zlib
from dataclasses import dataclass
from email.header import Header
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_LEGACY = ("iso-8859-1", "iso-8859-2", "iso-8859-9", "windows-1252", "windows-1251", "koi8-r")
_LEGACY_CJK = ("iso-2022-jp", "gb2312", "big5", "euc-kr")
_ENCODINGS = ("quoted-printable", "base64", "8bit")
_PIXEL = base64.b64encode(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;")


@dataclass(frozen=True, slots=True)
class CorpusMail:
    """A mail as bytes, with its expected codes and link; ``best`` is `None` if it is not judged."""

    id: str
    raw: bytes
    codes: tuple[str, ...]
    best: str | None


def load_part(part: str) -> list[CorpusMail]:
    """Build all mails of a part, given its folder: ``tuning``, ``world/held_out``."""
    folder = _HERE / part
    places = (place / "frames.toml" for place in (folder, folder.parent))
    frames = tomllib.loads(next(filter(Path.exists, places)).read_text("utf-8"))
    return [
        _build(f"{path.stem}/{source['id']}", source, frames)
        for path in sorted((_HERE / part).glob("*.toml"))
        for source in tomllib.loads(path.read_text("utf-8")).get("mail", [])
    ]


def _build(mail_id: str, source: dict[str, Any], frames: dict[str, Any]) -> CorpusMail:
    choice = zlib.crc32(mail_id.encode())
    parts = []
    if "text" in source:
        parts.append(_text_part("plain", source["text"], choice))
    if "html" in source:
        page = frames["frames"][source.get("frame", "bare")]
        page = page.replace("{footer}", frames["footers"].get(source.get("footer", ""), ""))
        page = page.replace("{preheader}", source.get("preheader", ""))
        page = page.replace("{body}", source["html"])
        parts.append(_text_part("html", page, choice >> 4))
    body = parts[0] if len(parts) == 1 else _multipart("alternative", parts, choice)
    if choice % 5 == 1:
        image = (
            b"Content-Type: image/gif\nContent-ID: <logo>\nContent-Transfer-Encoding: base64\n\n"
        )
        body = _multipart("related", [body, image + _PIXEL], choice)
    elif choice % 5 == 2:
        pdf = b'Content-Type: application/pdf; name="482913.pdf"\n\n%PDF-1.4 118273\n'
        body = _multipart("mixed", [body, pdf], choice)
    raw = (_header(source, choice) + body).replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    return CorpusMail(mail_id, raw, tuple(source.get("codes", ())), source.get("best"))


def _header(source: dict[str, Any], choice: int) -> bytes:
    subject = source["subject"]
    if choice % 4 and not subject.isascii():
        subject = Header(subject, "utf-8").encode()
    lines = [
        f"Received: from mx{choice % 90}.sender.example (198.51.100.{choice % 250})",
        f"\tby inbox.example with ESMTPS id {choice:08x}; Sat, 21 Nov 2026 10:04:17 +0000",
        f"From: {source['from']}",
        "To: dev-aaaaaaaaaaaaa+signup@inbox.example",
        f"Subject: {subject}",
        f"Message-ID: <{choice}.48213@sender.example>",
        "MIME-Version: 1.0",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8")


def _text_part(subtype: str, text: str, choice: int) -> bytes:
    charset = _charset(text, choice)
    encoding = _ENCODINGS[choice % 3]
    data = text.encode(charset)
    if encoding == "base64":
        data = base64.encodebytes(data)
    elif encoding == "quoted-printable":
        data = quopri.encodestring(data)
    head = f"Content-Type: text/{subtype}; charset={charset}\nContent-Transfer-Encoding: {encoding}"
    return head.encode() + b"\n\n" + data


def _charset(text: str, choice: int) -> str:
    """Return UTF-8, or for a third of the mails the first older charset with every character."""
    if choice % 3 == 0:
        is_cjk = any(character >= "\u2e80" for character in text)
        for charset in _LEGACY_CJK if is_cjk else _LEGACY:
            try:
                text.encode(charset)
            except UnicodeEncodeError:
                continue
            return charset
    return "utf-8"


def _multipart(subtype: str, parts: list[bytes], choice: int) -> bytes:
    boundary = f"=_{subtype[:3]}{choice % 1000000:06d}"
    head = f'Content-Type: multipart/{subtype}; boundary="{boundary}"\n\n'.encode()
    line = f"\n--{boundary}".encode()
    return head + b"".join(line + b"\n" + part for part in parts) + line + b"--\n"
