"""One message: its fields, its raw bytes, its HTML."""

import base64
from typing import Any
from urllib.parse import urlencode

from twisted.internet.defer import maybeDeferred

from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.messages import Envelope, Session, TlsFacts
from tests.house import House, mail, result_of
from tests.table import rows

ALTERNATIVE = (
    b"From: =?utf-8?q?J=C3=BCrgen?= <juergen@example.com>\r\n"
    b"Subject: =?utf-8?b?4pyTIFdlbGNvbWU=?=\r\n"
    b"Received: from b.example\r\n"
    b"Received: from a.example\r\n"
    b" by c.example\r\n"
    b"X-Mixed: one\r\n"
    b"x-mixed: two\r\n"
    b"MIME-Version: 1.0\r\n"
    b'Content-Type: multipart/alternative; boundary="sep"\r\n\r\n'
    b"--sep\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nH\xc3\xa9llo\r\n"
    b"--sep\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n<b>H\xe9llo</b>\r\n--sep--\r\n"
)


def only(house: House, raw: bytes | None = None) -> str:
    """Receive a mail, and return the id of its message."""
    house.receive(raw=raw)
    message_id: str = house.get("/inbox/messages?limit=1").json["messages"][0]["id"]
    return message_id


def read(house: House, raw: bytes) -> Any:
    """Receive a mail, and request its message."""
    return house.get(f"/inbox/messages/{only(house, raw)}").json


def test_a_message_is_what_the_wait_returned(house: House) -> None:
    """A message is the same as in the wait, with its authentication results."""
    pending = house.ask("GET", "/inbox/wait")
    house.receive(raw=ALTERNATIVE)
    waited = pending.answer().json
    read_later = house.get(f"/inbox/messages/{waited['id']}").json
    assert read_later.pop("authentication")["spf"]["result"] == "none"
    assert read_later == waited


def test_text_html_and_headers(house: House) -> None:
    """Both bodies are decoded. Repeated header fields are joined by newlines in order."""
    message = read(house, ALTERNATIVE)
    assert message["from"] == {"address": "juergen@example.com", "name": "Jürgen"}
    assert message["subject"] == "✓ Welcome"
    assert message["text"].strip() == "Héllo"
    assert message["html"].strip() == "<b>Héllo</b>"
    headers = message["headers"]
    assert headers["received"] == "from b.example\nfrom a.example by c.example"
    assert headers["x-mixed"] == "one\ntwo"
    assert headers["subject"] == "✓ Welcome"
    assert [name for name, _ in message["headerList"]][:4] == [
        "From",
        "Subject",
        "Received",
        "Received",
    ]
    assert ["x-mixed", "two"] in message["headerList"]
    assert message["size"] == len(ALTERNATIVE)


def test_a_mail_without_a_part_has_empty_strings(house: House) -> None:
    """Missing parts of a mail are empty strings or lists, never absent or null."""
    message = read(house, b"X: y\r\n\r\n")
    for name in ("text", "html", "subject", "tag"):
        assert message[name] == "", name
    assert message["from"] == {"address": "", "name": ""}
    for name in ("links", "codes", "attachments", "extraction"):
        assert message[name] == [], name
    assert message["bestLink"] is None


def test_the_envelope(house: House) -> None:
    """The envelope contains sender, recipient, client address, HELO name and encryption."""
    session = Session("2001:db8::7", "[IPv6:2001:db8::7]", True, TlsFacts("TLSv1.3", "AES"))
    recipient = house.address("Tag")
    receiver = house.assembly.receiver
    accepted = result_of(
        maybeDeferred(receiver.accept_recipient, session, "", parse_mailbox(recipient))
    )
    result_of(maybeDeferred(receiver.deliver, session, Envelope("", (accepted,)), mail()))
    message = house.get("/inbox/wait?after=c0").json
    assert message["envelope"] == {
        "mailFrom": "",
        "rcptTo": recipient,
        "helo": "[IPv6:2001:db8::7]",
        "clientAddress": "2001:db8::7",
        "tls": {"version": "TLSv1.3", "cipher": "AES"},
    }
    plain = read(house, mail())
    assert plain["envelope"]["tls"] is None
    assert plain["envelope"]["mailFrom"] == "shop@example.com"


def test_candidates_are_shown_with_their_reasons(house: House) -> None:
    """Extraction contains each candidate with score and reasons, including rejected ones."""
    message = read(house, mail(body="Your code is 482913. Copyright 2026, order 99887766554."))
    by_value = {one["value"]: one for one in message["extraction"]}
    assert by_value["482913"]["accepted"]
    assert by_value["482913"]["reasons"]
    assert any(not one["accepted"] for one in message["extraction"])
    assert message["codes"] == [one["value"] for one in message["extraction"] if one["accepted"]]


@rows(
    (mail(), "utf-8"),
    (mail("Grüße €"), "utf-8"),
    (b"Subject: \xff\r\n\r\n\xfe\r\n", "base64"),
    (b"", "utf-8"),
    (b"\r\n.\r\n..\r\n", "utf-8"),
    (b"no header at all", "utf-8"),
    (ALTERNATIVE, "base64"),
)
def test_the_raw_bytes_are_what_came(house: House, raw: bytes, encoding: str) -> None:
    """Raw contains the exact bytes after DATA: as text if they are UTF-8, otherwise in Base64."""
    message_id = only(house, raw)
    body = house.get(f"/inbox/messages/{message_id}/raw").json
    assert (body["id"], body["encoding"]) == (message_id, encoding)
    text = body["raw"]
    assert (text.encode() if encoding == "utf-8" else base64.b64decode(text, validate=True)) == raw


@rows("message/rfc822", "Message/RFC822", "text/html, message/rfc822;q=0.9", "*/*, message/rfc822")
def test_the_raw_bytes_as_a_download(house: House, accept: str) -> None:
    """With Accept: message/rfc822, the exact bytes are an .eml file; otherwise it is JSON."""
    raw = b"Subject: \xff\r\n\r\n\xfe\x00\r\n"
    message_id = only(house, raw)
    path = f"/inbox/messages/{message_id}/raw"
    answer = house.ask("GET", path, headers={"Accept": accept}).answer()
    assert answer.body == raw
    assert answer.headers["content-type"] == "message/rfc822"
    assert f'filename="{message_id}.eml"' in answer.headers["content-disposition"]
    for other in ("", "*/*", "application/json", "message/partial", "text/*"):
        answer = house.ask("GET", path, headers={"Accept": other}).answer()
        assert answer.json["encoding"] == "base64"


def test_the_html_part_is_a_download(house: House) -> None:
    """The HTML of a mail is a download, so its scripts do not run on our origin."""
    raw = b"Content-Type: text/html\r\n\r\n<script>alert(document.domain)</script>\xe2\x82\xac"
    message_id = only(house, raw)
    answer = house.get(f"/inbox/messages/{message_id}/html")
    assert answer.body == "<script>alert(document.domain)</script>€".encode()
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-disposition"].startswith(
        f'attachment; filename="{message_id}.html"'
    )
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"


def test_all_addresses_of_the_header_are_shown_and_found(house: House) -> None:
    """To, Cc, Bcc and Reply-To are complete; `q` and `to:` find every address."""
    people = ", ".join(f"Person {number} <p{number}@team.example>" for number in range(300))
    raw = (
        f"From: shop@example.com\r\nTo: {people}\r\n"
        "Cc: =?utf-8?q?J=C3=B6rg?= <joerg@copy.example>\r\n"
        "Bcc: hidden@blind.example\r\nReply-To: Desk <answers@desk.example>\r\nSubject: x\r\n"
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b\r\n"
        'Content-Type: application/pdf; name="ticket 4711.pdf"\r\n\r\n%PDF\r\n--b--\r\n'
    ).encode()
    house.receive(house.address("many"), raw=raw)
    (listed,) = house.get("/inbox/messages").json["messages"]
    shown = house.get(f"/inbox/messages/{listed['id']}").json
    addresses = shown["addresses"]
    assert len(addresses["to"]) == 300
    assert addresses["to"][299] == {"address": "p299@team.example", "name": "Person 299"}
    assert addresses["cc"] == [{"address": "joerg@copy.example", "name": "J\u00f6rg"}]
    assert addresses["bcc"] == [{"address": "hidden@blind.example", "name": ""}]
    assert addresses["replyTo"] == [{"address": "answers@desk.example", "name": "Desk"}]
    assert shown["to"] == house.address("many")
    for found in (
        "p299@team.example",
        "to:p299@team.example",
        "to:jorg",
        "hidden@blind",
        "4711.pdf",
    ):
        assert house.get(f"/inbox/messages?{urlencode({'q': found})}").json["total"] == 1, found
    # The filters of lists and waits use only the recipient.
    assert house.get("/inbox/messages?to=p299%40team.example").json["total"] == 0
