"""Attachments: listed, downloaded, and never executed by a browser."""

import re
from typing import Any
from urllib.parse import unquote, urlsplit

from mailcheck.web.site.replies import download_reply
from tests.house import Answer, House
from tests.table import rows


def mail_with(*headers: str, body: bytes = b"data") -> bytes:
    """Create a mail with one attachment that has these header fields."""
    head = "\r\n".join(headers).encode("utf-8", "surrogateescape")
    return (
        b'Subject: x\r\nContent-Type: multipart/mixed; boundary="sep"\r\n\r\n'
        b"--sep\r\n\r\nhello\r\n--sep\r\n" + head + b"\r\n\r\n" + body + b"\r\n--sep--\r\n"
    )


def fetch(house: House, raw: bytes) -> tuple[Any, Answer]:
    """Receive a mail. Return the entry of its attachment, and its download."""
    cursor = house.get("/inbox").json["cursor"]
    house.receive(raw=raw)
    message = house.get(f"/inbox/wait?after={cursor}").json
    (listed,) = message["attachments"]
    path = urlsplit(listed["url"]).path.removeprefix("/api/v1")
    return listed, house.get(path)


def saved_names(answer: Answer) -> tuple[str, str]:
    """Return the names under which old and new browsers save a download (RFC 6266)."""
    found = re.fullmatch(
        r"attachment; filename=\"([A-Za-z0-9._ -]+)\"; filename\*=UTF-8''([A-Za-z0-9._~%-]+)",
        answer.headers["content-disposition"],
    )
    assert found, answer.headers["content-disposition"]
    return found[1], unquote(found[2], errors="strict")


def test_an_attachment_is_listed_and_downloaded(house: House) -> None:
    """An attachment is listed with its properties, and its URL returns its decoded bytes."""
    listed, answer = fetch(
        house,
        mail_with(
            'Content-Type: application/pdf; name="report.pdf"',
            "Content-Disposition: attachment",
            "Content-Transfer-Encoding: base64",
            "Content-ID: <part1@example.com>",
            body=b"JVBERi0xLjcK",
        ),
    )
    assert listed["id"] == "1"
    assert listed["filename"] == "report.pdf"
    assert listed["contentType"] == "application/pdf"
    assert listed["size"] == 9
    assert listed["contentId"] == "part1@example.com"
    assert answer.body == b"%PDF-1.7\n"
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["cache-control"] == "no-store"
    assert saved_names(answer) == ("report.pdf", "report.pdf")


def test_the_url_needs_the_key(house: House) -> None:
    """The URL of an attachment is part of the API: without the key it is 401."""
    listed, _ = fetch(house, mail_with("Content-Disposition: attachment; filename=a.txt"))
    assert listed["url"].startswith("http://127.0.0.1:8080/api/v1/inbox/messages/")
    assert house.open(urlsplit(listed["url"]).path).answer().status == 401


SAFE = ("application/octet-stream", "text/plain")
ACTIVE = [
    "text/html",
    "image/svg+xml",
    "application/xhtml+xml",
    "text/xml",
    "application/javascript",
]
CONTENT_TYPES: dict[str, tuple[str, ...]] = {
    **{one: (one,) for one in ACTIVE},
    "text/html; charset=utf-7": ("text/html",),
    "text/html\x0bX": ("text/html",),
    "text/ html": ("text/html",),
    "a/b/c": ("a/b",),
    **dict.fromkeys(("html", "/", "*/*", "t\u00e9xt/html", "\udcff/x", "x/" + "y" * 500), SAFE),
    **dict.fromkeys(("text/plain\r\n X-Injected: yes", "text/html, text/plain"), SAFE),
}
"""Declared types, and the types of their downloads."""


@rows(*CONTENT_TYPES)
def test_any_content_type_is_a_download(house: House, declared: str) -> None:
    """What a browser would execute is saved; an invalid type is replaced and adds no header."""
    script = b"<script>alert(1)</script>"
    fields = (f"Content-Type: {declared}", "Content-Disposition: inline; filename=x.html")
    _, answer = fetch(house, mail_with(*fields, body=script))
    assert (answer.status, answer.body) == (200, script)
    assert "x-injected" not in answer.headers
    assert answer.headers["content-type"] in CONTENT_TYPES[declared]
    assert answer.headers["content-disposition"].startswith("attachment;")


HOSTILE_NAMES = [
    ('"a\\"; filename=\\"b.exe"', None),
    ('"a\r\n X-Injected: yes"', None),
    ('"=?utf-8?q?a=0D=0AX-Injected:_yes?="', None),
    ('"../../etc/passwd"', None),
    ('"..\\\\..\\\\boot.ini"', None),
    ('"C:\\\\windows\\\\x.dll"', None),
    ('"\u202egnp.exe"', None),
    ('"a;b=c.txt"', "a;b=c.txt"),
    ('"50% off.txt"', "50% off.txt"),
    ('"%0d%0aX-Injected: yes"', None),
    ('"Ünïcödé €.txt"', "Ünïcödé €.txt"),
    ('"=?utf-8?b?8J+SqS50eHQ=?="', "💩.txt"),
    ('"\udcff\udcfe.txt"', None),
    ('""', None),
    ('"."', None),
    ('".htaccess"', None),
    ('"a\x00b.txt"', None),
    ('"\t\x01\x7f.txt"', None),
    ('"' + "ü" * 200 + '.pdf"', "ü" * 200 + ".pdf"),
    ('"' + "a" * 3_000 + '.pdf"', "a" * 251 + ".pdf"),
    ("*=utf-8''%e2%82%ac%20rates.txt", "€ rates.txt"),
    ("*=utf-8''a%0d%0aX-Injected%3a%20yes", None),
]


@rows(*HOSTILE_NAMES)
def test_a_hostile_file_name(house: House, parameter: str, name: str | None) -> None:
    """No file name injects a header, leaves its folder, or loses its extension when shortened."""
    equals = "" if parameter.startswith("*") else "="
    header = f"Content-Disposition: attachment; filename{equals}{parameter}"
    listed, answer = fetch(house, mail_with(header))
    assert answer.status == 200
    assert "x-injected" not in answer.headers
    plain, full = saved_names(answer)
    for text in (plain, full):
        assert text.strip(" .") == text
        assert not re.search(r"[/\\\x00-\x1f\x7f\u202a-\u202e]", text)
    assert full == (listed["filename"] or "attachment")
    if name is not None:
        assert full == name
        assert plain.rpartition(".")[2] == name.rpartition(".")[2]


def test_a_name_without_ascii_characters() -> None:
    """A name without ASCII characters has a fallback for old browsers and itself for new ones."""
    reply = download_reply(b"", "image/png", "日/本\ud800")
    plain, full = reply.headers["Content-Disposition"].split("; ")[1:]
    assert (plain, full) == ('filename="____"', "filename*=UTF-8''%E6%97%A5%2F%E6%9C%AC%3F")
    assert 'filename="attachment"' in download_reply(b"", "a/b", "").headers["Content-Disposition"]
