"""Every route of Mailpit's API, and what its clients rely on."""

import base64
import hashlib
import json
from functools import reduce
from typing import Any
from urllib.parse import quote

import pytest

from mailcheck.checks.deliverability.content_filter import (
    FilterProblem,
    FilterRule,
    FilterVerdict,
    unavailable,
)
from mailcheck.core.errors import FaultMet
from mailcheck.operations.inbox.open_inbox import CHAOS_LIFETIME, Chaos
from mailcheck.web.compatible.mailpit.routes import MAILPIT
from mailcheck.web.compatible.mailpit.sniffing import sniff_type
from mailcheck.web.site.application import Route
from tests.house import run
from tests.table import rows
from tests.web.compatible.open_site import RICH, TEXT, OpenSite, mail
from tests.web.compatible.sites import Asked


@pytest.fixture
def searched() -> OpenSite:
    """The listeners with a message."""
    site = OpenSite()
    raw = mail(more="Cc: boss@customer.example\r\nReply-To: help@example.com\r\n")
    site.send("jane@customer.example", "hidden+promo@customer.example", raw=raw)
    return site


def listed(site: OpenSite, path: str = "/api/v1/messages") -> Any:
    """Return a list of messages."""
    answer = site.get(path)
    assert answer.status == 200, answer.body
    return answer.json


def search(site: OpenSite, query: str, more: str = "") -> list[str]:
    """Return the subjects of the messages that match."""
    found = listed(site, f"/api/v1/search?query={quote(query)}{more}")
    assert found["messages_count"] == len(found["messages"])
    return [one["Subject"] for one in found["messages"]]


def newest(site: OpenSite) -> Any:
    """Return the newest message."""
    return site.get("/api/v1/message/latest").json


def test_mail_to_anyone_is_listed(site: OpenSite) -> None:
    """A mail to any recipient is in the list, with every field that clients read."""
    assert site.send("jane@customer.example", "+x@other.example").startswith("250")
    found = listed(site)
    (message,) = found.pop("messages")
    assert found == {
        "total": 1,
        "unread": 1,
        "count": 1,
        "messages_count": 1,
        "messages_unread": 1,
        "start": 0,
        "tags": ["x"],
    }
    assert len(message.pop("ID")) == 36
    assert message.pop("Created").endswith("Z")
    assert message.pop("Size") > 100
    assert message == {
        "MessageID": "one@example.com",
        "Read": False,
        "From": {"Name": "Shop", "Address": "shop@example.com"},
        "To": [
            {"Name": "", "Address": "jane@customer.example"},
            {"Name": "", "Address": "+x@other.example"},
        ],
        "Cc": [],
        "Bcc": [],
        "ReplyTo": [],
        "Subject": "Welcome",
        "Username": "",
        "Tags": ["x"],
        "Attachments": 0,
        "Snippet": "Your code is 482913: \u2026",
    }


def test_blind_copies_are_recipients_that_the_header_does_not_name(site: OpenSite) -> None:
    """A recipient of the envelope alone is in Bcc."""
    site.send("jane@customer.example", "hidden@customer.example", raw=mail())
    assert listed(site)["messages"][0]["Bcc"] == [
        {"Name": "", "Address": "hidden@customer.example"}
    ]


def test_lines_may_end_with_a_line_feed(site: OpenSite) -> None:
    """Mail of programs that do not write CRLF is accepted, as Mailpit accepts it."""
    assert site.send(raw=mail().replace(b"\r\n", b"\n") + b"\r\n").startswith("250")
    assert listed(site)["messages"][0]["Subject"] == "Welcome"


def test_a_whole_message(site: OpenSite) -> None:
    """It has bodies, attachments with digests, inline pictures and unsubscribe links."""
    site.send("jane@customer.example", raw=RICH)
    message = newest(site)
    assert message["Subject"] == "Invoice \u20ac"
    assert message["From"] == {"Name": "Sh\u00f6p", "Address": "shop@example.com"}
    assert message["To"] == [{"Name": "Jane", "Address": "jane@customer.example"}]
    assert [one["Address"] for one in message["Cc"]] == ["boss@customer.example"]
    assert [one["Address"] for one in message["ReplyTo"]] == ["help@example.com"]
    assert message["ReturnPath"] == "shop@example.com"
    assert message["Date"] == "2026-11-21T09:00:00.000Z"
    assert "Hi" in message["HTML"]
    assert message["ListUnsubscribe"] == {
        "Header": "<https://example.com/leave>, <mailto:leave@example.com>",
        "Links": ["https://example.com/leave", "mailto:leave@example.com"],
        "Errors": "",
        "HeaderPost": "List-Unsubscribe=One-Click",
    }
    (file,), (picture,) = message["Attachments"], message["Inline"]
    assert (file["FileName"], file["ContentType"], file["Size"]) == ("a.txt", "text/plain", 5)
    assert file["Checksums"]["SHA256"] == hashlib.sha256(b"hello").hexdigest()
    assert (picture["ContentID"], picture["ContentType"]) == ("logo", "image/png")
    part = site.get(f"/api/v1/message/{message['ID']}/part/{file['PartID']}")
    assert (part.body, part.headers["content-type"]) == (b"hello", "text/plain")
    thumb = f"/api/v1/message/{message['ID']}/part/{picture['PartID']}/thumb"
    assert site.get(thumb).headers["content-type"] == "image/png"
    assert site.get(thumb.replace(f"/{picture['PartID']}/", f"/{file['PartID']}/")).status == 404


def test_headers_and_raw(site: OpenSite) -> None:
    """Header fields are lists by name; the raw mail is what was sent."""
    site.send(raw=mail(more="X-A: one\r\nX-A: two\r\n"))
    headers = site.get("/api/v1/message/latest/headers").json
    assert headers["X-A"] == ["one", "two"]
    assert headers["Message-Id"] == ["<one@example.com>"]
    raw = site.get("/api/v1/message/latest/raw")
    assert raw.body == mail(more="X-A: one\r\nX-A: two\r\n")
    assert raw.headers["content-type"].startswith("text/plain")


def test_reading_a_message_marks_it_as_read(site: OpenSite) -> None:
    """A message that a client gets is read; lists do not change that."""
    site.send()
    listed(site)
    assert listed(site)["unread"] == 1
    newest(site)
    assert (listed(site)["unread"], listed(site)["messages"][0]["Read"]) == (0, True)


def test_marking_messages(site: OpenSite) -> None:
    """Some messages by id, some by a search, or all are marked."""
    site.send(raw=mail("First"))
    site.send(raw=mail("Second"))
    first = listed(site)["messages"][1]["ID"]
    for body, unread in (
        ({"IDs": [first], "Read": True}, 1),
        ({"Read": False}, 2),
        ({"Search": "subject:second", "Read": True}, 1),
        ({"ids": [], "Read": True}, 0),
    ):
        answer = site.ask("PUT", "/api/v1/messages", json=body).answer()
        assert (answer.status, answer.body) == (200, b"ok")
        assert listed(site)["unread"] == unread
    assert site.ask("PUT", "/api/v1/messages").answer().status == 400


def test_deleting_messages(site: OpenSite) -> None:
    """Messages are deleted by id, as JSON or as a form, or all of them without an id."""
    for number in range(4):
        site.send(raw=mail(str(number)))
    ids = [one["ID"] for one in listed(site)["messages"]]
    assert site.ask("DELETE", "/api/v1/messages", json={"IDs": ids[:1]}).answer().body == b"ok"
    site.submit("DELETE", "/api/v1/messages", ids=ids[1]).answer()
    assert [one["ID"] for one in listed(site)["messages"]] == ids[2:]
    site.ask("DELETE", "/api/v1/messages").answer()
    assert listed(site)["total"] == 0


@rows("application/x-www-form-urlencoded", "text/plain", "application/xml", "what", "")
def test_a_list_of_ids_is_read_under_every_type(site: OpenSite, media_type: str) -> None:
    """JSON is read whatever Content-Type says, as ``curl -d`` sends it: one message is deleted."""
    for number in range(2):
        site.send(raw=mail(str(number)))
    first, second = (one["ID"] for one in listed(site)["messages"])
    headers = {"Content-Type": media_type}
    data = json.dumps({"IDs": [first]}).encode()
    answer = site.ask("DELETE", "/api/v1/messages", data=data, headers=headers).answer()
    assert (answer.status, answer.body) == (200, b"ok")
    assert [one["ID"] for one in listed(site)["messages"]] == [second]
    answer = site.ask("DELETE", "/api/v1/messages", data=b"<all/>", headers=headers).answer()
    assert (answer.status, listed(site)["total"]) == (400, 1)
    site.ask("DELETE", "/api/v1/messages").answer()


@rows("GET", "DELETE")
def test_a_search_needs_a_query(searched: OpenSite, method: str) -> None:
    """Without one, nothing is listed and nothing is deleted, as with Mailpit."""
    for query in ("", "?query=%20"):
        answer = searched.ask(method, f"/api/v1/search{query}").answer()
        assert answer.status == 400
        assert answer.body in (
            b"Error: no search query",
            b"query has no value; nothing was deleted",
        )
    assert searched.ask("DELETE", "/api/v1/search?query=to:").answer().status == 400
    assert search(searched, "subject:Welcome") == ["Welcome"]


def test_the_latest_match(site: OpenSite) -> None:
    """With a search, ``latest`` is the newest message that matches, in every route."""
    site.send(raw=mail("Old order"))
    site.send(raw=mail("News"))
    for path in ("/api/v1/message/latest", "/view/latest.txt", "/api/v1/message/latest/headers"):
        assert site.get(f"{path}?query=subject:order").status == 200
        assert site.get(f"{path}?query=subject:missing").status == 404
        assert site.get(f"{path}?query=after:never").status == 400
    found = site.get("/api/v1/message/latest?query=subject:order").json
    assert found["Subject"] == "Old order"


def test_marks_by_id_or_by_search(site: OpenSite) -> None:
    """A request with both is an error, as with Mailpit."""
    site.send()
    body = {"IDs": [newest(site)["ID"]], "Search": "subject:Welcome", "Read": True}
    assert site.ask("PUT", "/api/v1/messages", json=body).answer().status == 400
    body = {"IDs": [newest(site)["ID"]], "Read": False}
    assert site.ask("PUT", "/api/v1/messages", json=body).answer().status == 200
    assert listed(site)["unread"] == 1


def test_dates_are_in_a_time_zone(site: OpenSite) -> None:
    """A date begins at midnight of ``tz``; an unknown zone is an error."""
    site.send()
    assert search(site, "after:2001-01-01", "&tz=Pacific/Auckland") == ["Welcome"]
    answer = site.get("/api/v1/search?query=after:2026-01-01&tz=Nowhere")
    assert (answer.status, b"Nowhere" in answer.body) == (400, True)


@rows("has:inline", "larger:much", "after:yesterday", "is:funny")
def test_a_term_that_is_not_offered_is_an_error(searched: OpenSite, query: str) -> None:
    """It is not taken for a word that no message contains."""
    answer = searched.get(f"/api/v1/search?query={query}")
    assert answer.status == 400
    assert query.partition(":")[2].encode() in answer.body


def test_the_html_check(site: OpenSite) -> None:
    """Features without full support are warnings with percentages; they add up to 100."""
    site.send(raw=RICH)
    found = site.get("/api/v1/message/latest/html-check").json
    warning = next(one for one in found["Warnings"] if one["Slug"] == "css-display-flex")
    assert warning["Score"]["Found"] == 1
    assert warning["URL"].startswith("https://www.caniemail.com/")
    total = found["Total"]
    assert total["Supported"] + total["Partial"] + total["Unsupported"] == pytest.approx(100)
    assert 0 < total["Supported"] < 100
    site.send(raw=mail())
    assert site.get("/api/v1/message/latest/html-check").status == 400


def test_the_link_check(site: OpenSite) -> None:
    """Every link has the status of its answer."""
    site.send()
    found = site.get("/api/v1/message/latest/link-check?follow=true").json
    (link,) = found["Links"]
    assert link["URL"] == "https://example.com/confirm?t=7f3a"
    assert (link["StatusCode"] > 0, found["Errors"]) == (True, 0)


def test_the_spam_check(site: OpenSite) -> None:
    """The verdict of SpamAssassin, or the reason why there is none."""
    site.send()
    rule = FilterRule("GTUBE", 1000.0, "BODY: Generic Test")
    site.house.content_filter.outcome = FilterVerdict(1000.0, 5.0, True, (rule,))
    assert site.get("/api/v1/message/latest/sa-check").json == {
        "IsSpam": True,
        "Error": "",
        "Score": 1000.0,
        "Rules": [{"Score": 1000.0, "Name": "GTUBE", "Description": "BODY: Generic Test"}],
    }
    site.house.content_filter.outcome = unavailable(FilterProblem.TIMEOUT)
    found = site.get("/api/v1/message/latest/sa-check").json
    assert (found["Rules"], "did not finish" in found["Error"]) == (None, True)


def test_sending_over_the_api(site: OpenSite) -> None:
    """The mail is received with all its parts, and its id leads to it."""
    answer = site.ask(
        "POST",
        "/api/v1/send",
        json={
            "From": {"Email": "from@example.com", "Name": "From"},
            "To": [{"Email": "jane@example.com", "Name": "Jane"}],
            "Cc": [{"Email": "cc@example.com"}],
            "Bcc": ["bcc@example.com"],
            "ReplyTo": [{"Email": "reply@example.com"}],
            "Subject": "Hello",
            "Text": "text",
            "HTML": "<p>html</p>",
            "Headers": {"X-Own": "1"},
            "Tags": ["one"],
            "Attachments": [
                {"Filename": "a.txt", "Content": "aGVsbG8="},
                {"Filename": "b.txt", "Content": "data:text/plain;base64,aGVsbG8="},
            ],
        },
    ).answer()
    message = site.get(f"/api/v1/message/{answer.json['ID']}").json
    assert (message["Subject"], message["Text"].strip()) == ("Hello", "text")
    assert [one["Address"] for one in message["Bcc"]] == ["bcc@example.com"]
    sent = [(one["FileName"], one["Size"]) for one in message["Attachments"]]
    assert sent == [("a.txt", 5), ("b.txt", 5)]
    assert message["Tags"] == ["one"]
    headers = site.get(f"/api/v1/message/{answer.json['ID']}/headers").json
    assert (headers["X-Own"], headers["X-Tags"]) == (["1"], ["one"])


PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(50)).decode()


def sent(site: OpenSite, **more: Any) -> Any:
    """Send a mail over the API, and return the message under the id that was returned."""
    given = {"From": {"Email": "a@x.test"}, "To": [{"Email": "b@x.test"}], "Subject": "s", **more}
    answer = site.ask("POST", "/api/v1/send", json=given).answer()
    assert answer.status == 200, answer.body
    return site.get(f"/api/v1/message/{answer.json['ID']}").json


def test_names_in_any_case_and_null(site: OpenSite) -> None:
    """Names are compared without case also in inner objects, and null is no value, as in Go."""
    message = sent(
        site,
        TO=[{"email": "b@x.test", "NAME": "Bob"}, {"Email": "c@x.test", "Name": None}],
        cc=None,
        text="t",
        html=None,
        attachments=[{"content": "aGk=", "FILENAME": "a.txt", "contenttype": None}],
        Headers={"X-Own": "1"},
        Unknown={"x": None},
    )
    assert message["To"] == [
        {"Name": "Bob", "Address": "b@x.test"},
        {"Name": "", "Address": "c@x.test"},
    ]
    assert [one["FileName"] for one in message["Attachments"]] == ["a.txt"]
    assert site.get("/api/v1/message/latest/headers").json["X-Own"] == ["1"]


@rows("Subject", "subject", "TO", "Reply-To", "Date", "Mime-Version", "content-type", "X-Tags")
def test_header_fields_that_are_not_overwritten(site: OpenSite, name: str) -> None:
    """A header field that follows from another field of the request is an error."""
    body = {
        "From": {"Email": "a@x.test"},
        "To": [{"Email": "b@x.test"}],
        "Tags": ["t"],
        "Headers": {name: "x"},
    }
    answer = site.ask("POST", "/api/v1/send", json=body).answer()
    assert (answer.status, answer.json) == (400, {"Error": f'cannot overwrite header: "{name}"'})


def test_files_that_are_sent(site: OpenSite) -> None:
    """The type of a file is that of its bytes, unless it is given; a Content-ID makes it inline."""
    message = sent(
        site,
        HTML="<p>no picture</p>",
        Attachments=[
            {"Content": PICTURE, "Filename": "noext"},
            {"Content": PICTURE, "Filename": "a.pdf"},
            {"Content": PICTURE, "Filename": "b.png", "ContentType": "application/x-own"},
            {"Content": PICTURE, "Filename": "c.png", "ContentID": "c1"},
        ],
    )
    types = [one["ContentType"] for one in message["Attachments"]]
    assert types == ["image/png", "image/png", "application/x-own"]
    assert [(one["FileName"], one["ContentID"]) for one in message["Inline"]] == [("c.png", "c1")]


@rows(
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"%PDF-1.7", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"RIFF0000WEBPVP8 ", "image/webp"),
    (b"RIFF0000WAVE", "audio/wave"),
    (b" \n<!doctype html>", "text/html"),
    (b"<p>", "text/html"),
    (b"<path>", "text/plain"),
    (b"<?xml version='1.0'?>", "text/xml"),
    (b"a,b\n", "text/plain"),
    ("größer".encode("latin-1"), "text/plain"),
    (b"", "text/plain"),
    (b"a\0b", "application/octet-stream"),
    (b"x" * 600 + b"\0", "text/plain"),
)
def test_the_type_of_bytes(data: bytes, media_type: str) -> None:
    """Types are found as browsers find them, in the first 512 bytes."""
    assert sniff_type(data) == media_type


@rows({"To": []}, {"To": None}, {})
def test_a_mail_without_a_recipient_is_refused(site: OpenSite, more: Any) -> None:
    """It would be stored for nobody, under an id that leads nowhere."""
    body = {"From": {"Email": "a@x.test"}, "Subject": "s", **more}
    answer = site.ask("POST", "/api/v1/send", json=body).answer()
    assert (answer.status, "recipient" in answer.json["Error"]) == (400, True)


def test_line_ends_of_bodies(site: OpenSite) -> None:
    """Text and HTML have the line ends with which they were sent, after decoding."""
    parts = (
        b"Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\none\r\ntwo\r\n--b\r\n"
        b"Content-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        + base64.b64encode(b"<p>one</p>\n<p>two</p>")
        + b"\r\n--b--\r\n"
    )
    site.send(raw=b"Subject: s\r\nMIME-Version: 1.0\r\n" + parts)
    message = newest(site)
    assert message["Text"] == "one\r\ntwo"
    assert message["HTML"] == "<p>one</p>\n<p>two</p>"
    assert site.get("/view/latest.txt").body == b"one\r\ntwo"


def test_the_header_has_the_fields_that_mailpit_adds(site: OpenSite) -> None:
    """They are the sender, recipients that no field names, and an id if the mail has none."""
    raw = b"From: a@x.test\r\nSubject: =?utf-8?q?=C3=BC?=\r\nX: a\r\n b\r\n\r\nt\r\n"
    site.send("ann@x.test", "bob@x.test", raw=raw)
    headers = site.get("/api/v1/message/latest/headers").json
    message = newest(site)
    assert headers == {
        "Bcc": ["ann@x.test, bob@x.test"],
        "From": ["a@x.test"],
        "Message-Id": [f"<{message['MessageID']}>"],
        "Return-Path": ["<shop@example.com>"],
        "Subject": ["=?utf-8?q?=C3=BC?="],
        "X": ["a b"],
    }
    assert message["From"] == {"Name": "", "Address": "a@x.test"}


def test_the_name_of_a_client(site: OpenSite) -> None:
    """It is the name of SMTP AUTH, or that of HTTP Basic, with which the mail was sent."""
    site.talk(
        b"EHLO client",
        b"AUTH PLAIN " + base64.b64encode(b"\0shop\x07\0any"),
        b"MAIL FROM:<a@x.test>",
        b"RCPT TO:<b@x.test>",
        b"DATA",
        mail() + b".",
    )
    assert listed(site)["messages"][0]["Username"] == "shop?"
    headers = {"Authorization": "Basic " + base64.b64encode(b"billing:x").decode()}
    body = {"From": {"Email": "a@x.test"}, "To": [{"Email": "b@x.test"}]}
    site.ask("POST", "/api/v1/send", json=body, headers=headers).answer()
    assert newest(site)["Username"] == "billing"
    site.send()
    assert newest(site)["Username"] == ""


def test_numbers_that_mailpit_ignores(site: OpenSite) -> None:
    """A text that is no number, or a negative one, is the same as none; the limit 0 means all."""
    for number in range(3):
        site.send(raw=mail(str(number)))
    for path in ("/api/v1/messages?", "/api/v1/search?query=from:shop&"):
        for query, start, count in (
            ("start=x&limit=y", 0, 3),
            ("start=-1&limit=-1", 0, 3),
            ("start=1.5&limit=0", 0, 3),
            ("start=99999999999999999999&limit=2", 0, 2),
            ("start=&limit=", 0, 3),
        ):
            found = listed(site, path + query)
            assert (found["start"], found["count"]) == (start, count), query
    assert site.get("/api/v1/message/latest/link-check?follow=maybe").status == 200


@rows(
    ({"To": [{"Email": "a@example.com"}]}, "From"),
    ({"From": {"Email": "nonsense"}, "To": [{"Email": "a@b.example"}]}, "nonsense"),
    ({"From": {"Email": "a@b.example"}, "Attachments": [{}]}, "Content"),
)
def test_a_mail_that_cannot_be_sent(site: OpenSite, body: Any, words: str) -> None:
    """The error is JSON and names what is wrong, and no mail is stored."""
    answer = site.ask("POST", "/api/v1/send", json=body).answer()
    assert (answer.status, words in answer.json["Error"]) == (400, True)
    assert listed(site)["total"] == 0


def test_tags_information_and_settings(site: OpenSite) -> None:
    """Tags are those of addresses; the information counts messages; chaos is on."""
    site.send("a+b@example.com")
    assert site.get("/api/v1/tags").json == ["b"]
    found = site.get("/api/v1/info").json
    assert (found["Messages"], found["Unread"], found["Tags"]) == (1, 1, {"b": 1})
    counted = found["RuntimeStats"]
    assert counted.pop("Memory") > 0
    assert counted.pop("SMTPAcceptedSize") > 100
    assert counted == {
        "Uptime": 0,
        "MessagesDeleted": 0,
        "SMTPAccepted": 1,
        "SMTPRejected": 0,
        "SMTPIgnored": 0,
    }
    found = site.get("/api/v1/webui").json
    assert (found["ChaosEnabled"], found["MessageRelay"]["Enabled"]) == (True, False)
    assert set(found["MessageRelay"].values()) == {False, ""}
    assert {"PreserveMessageIDs", "RecipientAllowlist"} <= set(found["MessageRelay"])


def tags_of(site: OpenSite, query: str = "") -> Any:
    """Return the tags of the newest message, in both views."""
    found = site.get(f"/api/v1/search?query={query}").json if query else listed(site)
    summary = found["messages"][0]
    assert site.get(f"/api/v1/message/{summary['ID']}").json["Tags"] == summary["Tags"]
    return summary["Tags"]


class TestSetTags:
    """Tags that clients set are the keywords of the messages."""

    def test_tags_replace_those_before(self, site: OpenSite) -> None:
        """All messages of a mail get them; the +tag of a recipient stays."""
        site.send("a+b@example.com", "c@example.com")
        site.send("other@example.com")
        mail = listed(site)["messages"][1]["ID"]
        for tags in (["old"], ["New order", "paid", "PAID", " "]):
            body = {"IDs": [mail], "Tags": tags}
            answer = site.ask("PUT", "/api/v1/tags", json=body).answer()
            assert (answer.status, answer.body) == (200, b"ok")
        assert tags_of(site, "tag:PAID") == ["b", "New order", "PAID"]
        assert site.get("/api/v1/tags").json == ["b", "New order", "PAID"]
        assert site.get("/api/v1/info").json["Tags"] == {"b": 1, "New order": 2, "PAID": 2}
        for query, count in (
            ('tag:"new order"', 1),
            ("tag:new", 0),
            ("tag:old", 0),
            ("is:tagged", 1),
            ("-is:tagged", 1),
            ("!tag:paid", 1),
        ):
            assert site.get(f"/api/v1/search?query={query}").json["messages_count"] == count, query
        site.ask("PUT", "/api/v1/tags", json={"IDs": [mail], "Tags": []}).answer()
        assert site.get("/api/v1/tags").json == ["b"]

    def test_messages_that_are_named_only(self, site: OpenSite) -> None:
        """Without ids, or with an unknown one, no message is changed."""
        site.send()
        bodies: list[dict[str, Any]] = [{}, {"IDs": None}, {"IDs": []}, {"IDs": ["unknown"]}]
        for body in bodies:
            answer = site.ask("PUT", "/api/v1/tags", json={**body, "Tags": ["x"]}).answer()
            assert (answer.status, answer.body) == (200, b"ok")
        assert tags_of(site) == []

    def test_rename_and_delete(self, site: OpenSite) -> None:
        """They are about all messages and any case; marks of mail programs are kept."""
        site.send("a+b@example.com")
        mail = newest(site)["ID"]
        site.get(f"/api/v1/message/{mail}")
        site.ask("PUT", "/api/v1/tags", json={"IDs": [mail], "Tags": ["One"]}).answer()
        answer = site.ask("PUT", "/api/v1/tags/one", json={"Name": "Two words"}).answer()
        assert (answer.status, tags_of(site)) == (200, ["b", "Two words"])
        assert newest(site)["Read"]
        answer = site.ask("DELETE", "/api/v1/tags/two%20words").answer()
        assert (answer.status, tags_of(site)) == (200, ["b"])

    @rows(
        ("/api/v1/tags/b", {"Name": "c"}, "+tags of recipients stay"),
        ("/api/v1/tags/missing", {"Name": "c"}, "no message was given the tag 'missing'"),
        ("/api/v1/tags", {"IDs": [], "Tags": ["\\Seen"]}, "got '\\\\Seen'"),
        ("/api/v1/tags/b", {"Name": "a(b"}, "got 'a(b'"),
        ("/api/v1/tags", {"IDs": ["x"], "Tags": ["a,b"]}, "got 'a,b'"),
        ("/api/v1/tags", {"IDs": ["x"], "Tags": ["x" * 101]}, "up to 100"),
        (
            "/api/v1/tags",
            {"IDs": [], "Tags": [f"t{n}" for n in range(101)]},
            "at most 100 tags",
        ),
    )
    def test_tags_that_cannot_be_set(
        self, site: OpenSite, path: str, body: Any, words: str
    ) -> None:
        """The error names the tag and the reason."""
        site.send("a+b@example.com")
        answer = site.ask("PUT", path, json=body).answer()
        assert (answer.status, words in answer.body.decode()) == (400, True), answer.body

    def test_tags_of_new_mail(self, site: OpenSite) -> None:
        """They are those of the field X-Tags and of the sending request; invalid ones are left
        out of mail, and an error of requests.
        """
        site.send(raw=mail(more="X-Tags: Shop order, paid, a(b, gr\u00f6\u00dfe\r\n"))
        assert tags_of(site) == ["paid", "Shop order"]
        request = {
            "From": {"Email": "shop@example.com"},
            "To": [{"Email": "ann@example.com"}],
            "Tags": ["sent by API"],
        }
        assert site.ask("POST", "/api/v1/send", json=request).answer().status == 200
        assert tags_of(site) == ["sent by API"]
        # The same keyword in our own API.
        found = site.house.get("/inbox/messages", params={"q": 'keyword:"Sent by api"'})
        assert [one["keywords"] for one in found.json["messages"]] == [["sent by API"]]
        answer = site.ask("POST", "/api/v1/send", json={**request, "Tags": ["a(b"]}).answer()
        assert (answer.status, b"a(b" in answer.body) == (400, True)


def test_probes_of_health(site: OpenSite) -> None:
    """Both answer ok, with a Date header, which clients read as the time."""
    for path in ("/livez", "/readyz"):
        answer = site.get(path)
        assert (answer.status, answer.body) == (200, b"ok")
        assert answer.headers["date"].endswith("GMT")


def test_chaos_rejects_mail(site: OpenSite) -> None:
    """A trigger with 100 percent rejects every mail; without triggers all are accepted again."""
    wanted = {"Recipient": {"ErrorCode": 452, "Probability": 100}}
    found = site.ask("PUT", "/api/v1/chaos", json=wanted).answer().json
    assert found["Recipient"] == {"ErrorCode": 452, "Probability": 100}
    assert found["Authentication"] == {"ErrorCode": 535, "Probability": 0}
    assert "452 4.3.0 simulated failure" in site.talk(
        b"EHLO x", b"MAIL FROM:<a@b.example>", b"RCPT TO:<c@d.example>"
    )
    site.ask("PUT", "/api/v1/chaos", json={"Authentication": wanted["Recipient"]}).answer()
    assert "452" in site.talk(b"EHLO x", b"AUTH PLAIN AGEAYg==")
    assert site.ask("PUT", "/api/v1/chaos", json={}).answer().json == site.get("/api/v1/chaos").json
    assert site.send().startswith("250")


def test_chaos_in_a_cluster(site: OpenSite) -> None:
    """Another daemon has the same triggers after two seconds, and all end after a day."""
    runtime = site.house.assembly.runtime
    random_bytes, memory = (
        runtime.clocks.random_bytes,
        runtime.persistent_state.memory,
    )
    other = Chaos(memory, "", random_bytes, runtime.now, is_on=True)
    run(other.meet("recipient"))
    wanted = {"Recipient": {"ErrorCode": 452, "Probability": 100}}
    site.ask("PUT", "/api/v1/chaos", json=wanted).answer()
    site.pass_time(2)
    with pytest.raises(FaultMet):
        run(other.meet("sender", "recipient"))
    run(other.meet("sender"))
    site.pass_time(CHAOS_LIFETIME / 1000)
    run(other.meet("recipient"))


@rows({"ErrorCode": 200, "Probability": 1}, {"ErrorCode": 451, "Probability": 101})
def test_a_trigger_out_of_range(site: OpenSite, trigger: Any) -> None:
    """It is an error that names the value."""
    answer = site.ask("PUT", "/api/v1/chaos", json={"Sender": trigger}).answer()
    assert answer.status == 400


def test_views(site: OpenSite) -> None:
    """The HTML shows inline pictures, and runs and loads nothing unasked; the text is plain."""
    site.send(raw=RICH)
    identity = newest(site)["ID"]
    page = site.get(f"/view/{identity}.html")
    assert "data:image/png;base64,iVBORw0KGgo=" in page.body.decode()
    assert "script" not in page.headers["content-security-policy"].replace("allow-scripts", "!")
    assert page.headers["content-security-policy"].startswith("sandbox ")
    assert (
        site.ask("GET", f"/view/{identity}")
        .answer()
        .headers["location"]
        .endswith(f"/view/{identity}.html")
    )
    site.send()
    assert site.get("/view/latest.txt").body.decode().strip() == TEXT
    assert site.get("/view/latest.html").status == 404
    answer = site.ask("GET", "/view/latest").answer()
    assert (answer.status, answer.headers["location"].endswith(".txt")) == (302, True)


REMOTE = (
    b"From: a@example.org\r\nSubject: pixel\r\nContent-Type: text/html\r\n\r\n"
    b'<img src="http://198.51.100.1/pixel"><style>@import "http://198.51.100.1/css"; '
    b"@font-face { font-family: x; src: url(http://198.51.100.1/font) }</style>"
    b'<video poster="http://198.51.100.1/poster"></video><script>alert(1)</script>\r\n'
)
"""A mail that loads a picture, a style sheet, a font and a poster, and runs a script."""


@rows(
    ("", "none", False),
    ("?remote=1", "none", True),
    ("?remote=1", "same-origin", True),
    ("?remote=1", "cross-site", False),
    ("?remote=0", "none", False),
)
def test_views_load_nothing_unasked(
    site: OpenSite, query: str, fetched_by: str, shows_pictures: bool
) -> None:
    """Remote pictures are shown to a person who asks for them, and nothing else is ever loaded."""
    site.send(raw=REMOTE)
    headers = {"Sec-Fetch-Site": fetched_by, "Sec-Fetch-Mode": "navigate"}
    page = site.get(f"/view/latest.html{query}", headers=headers)
    text, policy = page.body.decode(), page.headers["content-security-policy"]
    assert ("http://198.51.100.1/pixel" in text) is shows_pictures
    assert ("img-src data: https: http:" in policy) is shows_pictures
    for name in ("css", "font", "poster", "alert"):
        assert name not in text.partition("<body>")[2]
        assert f"198.51.100.1/{name}" not in text
    assert "default-src 'none'" in policy
    assert "allow-scripts" not in policy


def test_the_root_leads_to_the_dashboard(site: OpenSite) -> None:
    """There is no other page for people."""
    answer = site.ask("GET", "/").answer()
    assert answer.status == 302
    place = answer.headers["location"]
    assert place.startswith("http://127.0.0.1:8080/p/")
    assert place.endswith("/inbox")


def test_unknown_messages(site: OpenSite) -> None:
    """Ids that lead to no message are 404, also for other methods and without any mail."""
    for path in ("", "/headers", "/raw", "/part/1", "/html-check", "/link-check", "/sa-check"):
        for identity in ("nonsense", "latest"):
            assert site.get(f"/api/v1/message/{identity}{path}").status == 404
    assert site.get("/view/nonsense.html").status == 404


@rows(*MAILPIT.routes)
def test_every_declared_route(site: OpenSite, route: Route[Any]) -> None:
    """A route that is offered answers without an error; the others answer with their reason."""
    if not listed(site)["total"]:
        site.send("jane@customer.example", raw=RICH)
    identity = listed(site)["messages"][-1]["ID"]
    part = site.get(f"/api/v1/message/{identity}").json["Inline"][0]["PartID"]
    tagged = {"IDs": [identity], "Tags": ["one"], "Name": "two"}
    site.ask("PUT", "/api/v1/tags", json=tagged).answer()
    values = {"<id>": identity, "<part>": part, "<tag>": "one"}
    path = reduce(lambda path, name: path.replace(name, values[name]), values, route.path)
    body = {"From": {"Email": "a@b.example"}, "To": [{"Email": "c@d.example"}], **tagged}
    query = "?query=nothing" if path == "/api/v1/search" else ""
    if path.endswith("/release"):
        body = {"To": ["c@d.example"]}
    options = {} if route.is_destructive else {"json": body}
    asked = site.ask(route.method, path + query, **options)
    answer = asked.answer()
    if path.endswith("/release"):
        assert answer.status == 403, "[release] is not set"
    elif path == "/api/events":
        assert (answer.status, b"handshake" in answer.body) == (400, True)
    elif path.endswith(".txt") or answer.status == 302:
        assert answer.status in (200, 302)
    else:
        assert answer.status == 200


def ask_held(site: OpenSite, path: str) -> Asked:
    """Send a request that is held."""
    asked = site.ask("GET", path)
    site.pass_time(1.5)
    assert not asked.is_answered
    return asked


@rows(
    "/api/v1/messages",
    "/api/v1/search?query=to:jane",
    "/api/v1/search?query=482913",
    "/api/v1/message/latest",
    "/view/latest.txt",
)
def test_a_search_waits_for_its_mail(path: str) -> None:
    """A request that finds nothing is answered when a matching mail arrives, and has it."""
    site = OpenSite(hold=2.0)
    asked = ask_held(site, path)
    site.send()
    assert asked.is_answered
    assert b"482913" in asked.answer().body
