"""Mail of any bytes, read through every route: the result is valid JSON without a new header."""

import base64
import json
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailcheck.api.shapes import CHUNK
from mailcheck.operations.concurrency import REST
from tests.house import Answer, House, mail
from tests.web.raw_http import RawHttp, request

pytestmark = [pytest.mark.attack, pytest.mark.untraced]


def read_everywhere(house: House, raw: bytes, tag: str = "x") -> Any:
    """Receive a mail, read it by every route, and return the whole message."""
    cursor = house.get("/inbox/address").json["cursor"]
    pending = house.ask("GET", f"/inbox/wait?after={cursor}&tag={quote(tag)}")
    house.receive(house.address(tag), raw=raw)
    message = pending.answer().json
    path = f"/inbox/messages/{message['id']}"
    read_later = house.get(path).json
    assert set(read_later.pop("authentication")) == {"spf", "dkim", "dmarc"}
    assert read_later == message
    listed = house.get(f"/inbox/messages?after={cursor}&limit=1").json["messages"][0]
    assert listed.pop("isRead") is False
    assert listed == {name: message[name] for name in listed}
    _check_raw(house, path, raw)
    html = house.get(path + "/html")
    assert html.body == message["html"].encode("utf-8", "replace")
    for attachment in message["attachments"]:
        answer = house.get(urlsplit(attachment["url"]).path.removeprefix("/api/v1"))
        assert len(answer.body) == attachment["size"]
        _check_no_new_header(answer)
    shared = house.open(urlsplit(message["shareUrl"]).path).answer()
    told = shared.json
    assert set(told.pop("authentication")) == {"spf", "dkim", "dmarc"}
    assert told == message
    house.get("/inbox")
    for name, value in (("subject", message["subject"]), ("from", message["from"]["address"])):
        found = house.ask("GET", "/inbox/messages", params={name: value[:100], "after": cursor})
        assert found.answer().json["total"] == 1
    return message


def _check_raw(house: House, path: str, raw: bytes) -> None:
    body = house.get(path + "/raw").json
    text = body["raw"]
    assert (text.encode() if body["encoding"] == "utf-8" else base64.b64decode(text)) == raw
    exact = house.ask("GET", path + "/raw", headers={"Accept": "message/rfc822"}).answer()
    assert exact.body == raw


def _check_no_new_header(answer: Answer) -> None:
    assert not [name for name in answer.headers if name.startswith("x-injected")]


def every(strategy: st.SearchStrategy[bytes], house: House, most: int) -> None:
    """Read some mails of a strategy. Each is read by all routes."""

    @settings(database=None, max_examples=most)
    @given(strategy)
    def check(raw: bytes) -> None:
        read_everywhere(house, raw)

    check()


HOSTILE_TEXTS = st.one_of(
    st.binary(max_size=60).filter(lambda data: b"\n" not in data and b"\r" not in data),
    st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(
        [
            b"<script>alert(1)</script>",
            b"\x00\x01\x1b[31m\x7f",
            b"\xed\xa0\x80\xff\xfe",
            b'"; filename="evil.exe',
            b"=?utf-7?q?+2AA-?=",
            b"=?utf-16?b?2AA=?=",
            b"=?utf-8?q?a=0D=0AX-Injected:_yes?=",
            b"=?x-unknown?q?=00=ff?=",
            b"=?utf-8?b?" + b"7aCA" * 5 + b"?=",
            b'"\\"<a@b>" <c@d>, (comment <e@f>) g@h',
            b"\xe2\x80\xae\xe2\x80\xa8\xc2\x85",
            b"' OR 1=1 --",
            b"%s%n%%{}\\u0000",
            b"]]>",
        ]
    ),
)

FIELD_NAMES = st.sampled_from(
    [
        *(
            b"From",
            b"Subject",
            b"To",
            b"Date",
            b"Received",
            b"Content-Type",
            b"Content-Disposition",
        ),
        *(b"Content-Transfer-Encoding", b"Content-ID", b"__proto__", b"X-\xff", b"constructor"),
    ]
)

CONTENT_TYPES = st.sampled_from(
    [
        b"text/plain",
        b"text/html; charset=utf-16",
        b"text/plain; charset=utf-7",
        b"text/html; charset=punycode",
        b"text/plain; charset=rot13",
        b"text/plain; charset=\xff",
        b"multipart/mixed; boundary=b",
        b'multipart/alternative; boundary="b"',
        b'application/octet-stream; name="=?utf-8?q?=0d=0aX-Injected:1?="',
        b"message/rfc822",
        b"image/svg+xml; name*=utf-8''%00%0d%0a%2f..%ed%a0%80",
        b"text/html\r\n\t; charset=shift_jis",
    ]
)

ENCODINGS = st.sampled_from([b"base64", b"quoted-printable", b"x-uuencode", b"8bit", b"\xff", b""])


@st.composite
def hostile_mails(draw: st.DrawFn) -> bytes:
    """Return a mail with hostile fields and parts."""
    lines = [
        draw(FIELD_NAMES)
        + draw(st.sampled_from([b": ", b":", b" : ", b":\t"]))
        + draw(HOSTILE_TEXTS)
        for _ in range(draw(st.integers(0, 6)))
    ]
    lines.append(b"Content-Type: " + draw(CONTENT_TYPES))
    lines.append(b"Content-Transfer-Encoding: " + draw(ENCODINGS))
    body = b""
    for _ in range(draw(st.integers(0, 4))):
        part = [
            b"\r\n--b",
            b"Content-Type: " + draw(CONTENT_TYPES),
            b"Content-Disposition: attachment; filename=" + draw(HOSTILE_TEXTS),
            b"Content-Transfer-Encoding: " + draw(ENCODINGS),
            b"",
            draw(st.binary(max_size=80)),
        ]
        body += b"\r\n".join(part)
    end = draw(st.sampled_from([b"\r\n--b--\r\n", b"", b"\r\n--b"]))
    return b"\r\n".join(lines) + b"\r\n\r\n" + draw(HOSTILE_TEXTS) + body + end


def test_any_bytes_at_all(house: House) -> None:
    """Bytes that are not a mail are stored, and every route answers with valid JSON."""
    every(st.binary(max_size=200), house, 15)


def test_mail_with_hostile_fields_and_parts(house: House) -> None:
    """Control characters, surrogates, broken charsets and names stay inside JSON strings."""
    every(hostile_mails(), house, 30)


def test_a_large_mail_is_read_over_a_real_parser(house: House) -> None:
    """A mail of a megabyte is returned completely, as JSON and as bytes, in one response each."""
    raw = mail(body="\U0001f4a9 0123456789" * 70_000)
    house.receive(raw=raw)
    message_id = house.get("/inbox/messages").json["messages"][0]["id"]
    path = f"/api/v1/inbox/messages/{message_id}/raw"
    key = f"X-API-Key: {house.key}"
    client = RawHttp(house)
    client.send(request(path, key))
    for _ in range(len(raw) // CHUNK + 2):  # reactor turns in which the JSON is written
        house.pass_time(REST)
    assert client.answers(("GET", path))[0].json["raw"].encode() == raw
    assert RawHttp(house).ask(path, key, "Accept: message/rfc822").body == raw
    reader = house.ask("GET", path[7:-4])
    while not reader.is_answered:
        house.pass_time(REST)
    assert len(json.dumps(reader.answer().json["text"])) > 800_000
