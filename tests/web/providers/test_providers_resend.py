"""The API of Resend."""

import base64
import json
from typing import Any

from mailcheck.core.rights import make_rights
from tests.house import House
from tests.table import rows
from tests.web.provider_requests import (
    ask,
    headers_for,
    newest,
    post,
    raw_mail,
    received,
    with_fields,
)

EMAILS, BATCH = "/providers/resend/emails", "/providers/resend/emails/batch"


def test_all_fields_are_in_the_mail(house: House) -> None:
    """Copies, reply-to, headers, tags, files and the time to send are in mail and envelope."""
    value = with_fields(
        EMAILS,
        cc="cc@customer.example",
        bcc=["bcc@customer.example"],
        reply_to=["help@example.com"],
        headers={"X-Entity": "42"},
        scheduled_at="in 1 min",
        tags=[{"name": "kind", "value": "order"}],
        attachments=[
            {"filename": "a.txt", "content": base64.b64encode(b"one").decode()},
            {"filename": "b.bin", "content": [0, 255]},
            {"filename": "c.bin", "content": {"type": "Buffer", "data": [1]}},
            {"filename": "d", "path": "https://example.com/d.pdf"},
            {"filename": "l.png", "content": "AA==", "content_id": "logo"},
        ],
    )
    assert post(house, EMAILS, value).status == 200
    messages = received(house)
    to = {one["to"] for one in messages}
    assert to == {f"{name}@customer.example" for name in ("you", "cc", "bcc")}
    mail = raw_mail(house, messages[0])
    assert (mail["Cc"], mail["Bcc"]) == ("cc@customer.example", None)
    assert (mail["Reply-To"], mail["X-Entity"]) == ("help@example.com", "42")
    assert (mail["X-Scheduled-At"], mail["X-Resend-Tag-kind"]) == ("in 1 min", "order")
    files: dict[str, Any] = {
        str(part.get_filename()): part.get_payload(decode=True) for part in mail.iter_attachments()
    }
    assert (files["a.txt"], files["b.bin"], files["c.bin"]) == (b"one", b"\0\xff", b"\1")
    assert files["d.url.txt"].strip() == b"https://example.com/d.pdf"
    assert [one["contentId"] for one in messages[0]["attachments"]].count("logo") == 1


@rows(b"", b"{", b"[" * 100_000, b"\xff")
def test_a_body_that_is_not_json_is_400(house: House, body: bytes) -> None:
    """A body that cannot be parsed gets Resend's validation error."""
    answer = post(house, EMAILS, body)
    assert (answer.status, answer.json["name"]) == (400, "validation_error")


def test_a_batch_is_stored_whole_or_not_at_all(house: House) -> None:
    """One invalid mail or one fault rejects a batch; a good one has an id for each mail."""
    good = with_fields(EMAILS)
    assert post(house, BATCH, [good, with_fields(EMAILS, to="nobody")]).status == 422
    fault = with_fields(EMAILS, to="you+fault.data-451@customer.example")
    assert post(house, BATCH, [good, fault]).status == 500
    assert received(house) == []
    ids = [one["id"] for one in post(house, BATCH, [good, good]).json["data"]]
    assert sorted(ids) == sorted(one["deliveryId"] for one in received(house))
    assert post(house, BATCH, [good] * 101).status == 422


def test_a_permissive_batch_reports_each_error(house: House) -> None:
    """With ``x-batch-validation: permissive`` the good mails are stored."""
    value = [with_fields(EMAILS, to="nobody"), with_fields(EMAILS)]
    answer = post(house, BATCH, value, headers={"x-batch-validation": "permissive"})
    assert [one["index"] for one in answer.json["errors"]] == [0]
    assert len(answer.json["data"]) == len(received(house)) == 1


def test_an_idempotency_key_sends_once(house: House) -> None:
    """An equal request with the same key gets the same id; another one, and another key, differ."""
    headers = {"Idempotency-Key": "order-1"}
    first = post(house, EMAILS, headers=headers)
    assert post(house, EMAILS, headers=headers).json == first.json
    assert len(received(house)) == 1
    other = post(house, EMAILS, with_fields(EMAILS, subject="Other"), headers=headers)
    assert (other.status, other.json["name"]) == (409, "invalid_idempotent_request")
    assert post(house, EMAILS, headers={"Idempotency-Key": "order-2"}).json != first.json
    house.pass_time(24 * 3600 + 1)
    assert post(house, EMAILS, headers=headers).json != first.json


def test_an_idempotency_key_of_another_account_is_another_key(house: House) -> None:
    """Accounts do not see each other's idempotency keys."""
    other = house.issue_key(house.add_account("second"))
    headers = {"Idempotency-Key": "order-1"}
    assert (
        post(house, EMAILS, headers=headers).json
        != post(house, EMAILS, headers=headers, key=other).json
    )


def test_a_failed_request_is_not_stored_for_its_key(house: House) -> None:
    """After an error, the same key sends the mail."""
    headers = {"Idempotency-Key": "order-1"}
    assert post(house, EMAILS, with_fields(EMAILS, to="nobody"), headers=headers).status == 422
    assert post(house, EMAILS, headers=headers).status == 200


def test_a_request_that_runs_holds_its_key(house: House) -> None:
    """A second request with the key of one that is not answered yet gets Resend's 409."""
    data = json.dumps(with_fields(EMAILS, to="you+fault.slow-5@customer.example")).encode()
    headers = {**headers_for(EMAILS, house.key), "Idempotency-Key": "order-1"}
    pending = house.open(EMAILS, "POST", data=data, headers=headers)
    second = post(house, EMAILS, data, headers=headers)
    assert (second.status, second.json["name"]) == (409, "concurrent_idempotent_requests")
    house.pass_time(5)
    assert pending.answer().status == 200


def test_a_sent_mail_is_shown(house: House) -> None:
    """``GET /emails/{id}`` has the mail; another account does not find it."""
    sent = post(house, EMAILS, with_fields(EMAILS, reply_to="help@example.com")).json["id"]
    shown = house.open(f"{EMAILS}/{sent}", headers=headers_for(EMAILS, house.key)).answer().json
    assert (shown["id"], shown["to"]) == (sent, ["you@customer.example"])
    assert (shown["subject"], shown["reply_to"]) == ("Your order", ["help@example.com"])
    other = house.issue_key(house.add_account("second"))
    answer = house.open(f"{EMAILS}/{sent}", headers=headers_for(EMAILS, other)).answer()
    assert (answer.status, answer.json["name"]) == (404, "not_found")


def test_a_template_is_shown_by_its_values(house: House) -> None:
    """A template, which exists at Resend only, gives a text with its name and variables."""
    value = {"to": "you@customer.example", "template": {"id": "welcome", "variables": {"x": 7}}}
    assert post(house, EMAILS, value).status == 200
    (message,) = received(house)
    assert "welcome" in message["text"]
    assert '"x": 7' in message["text"]


LONG = "<p>é</p>\r\n" * 400


@rows(
    {"from": "a@x.test", "html": "<p>h</p>", "text": None},
    {"from": "Shop <a@x.test>", "html": "<p>h</p>\n", "text": "t\r\nu"},
    {"from": '"Shop, Inc." <a@x.test>', "html": None, "text": "é\n\n"},
    {"from": "<a@x.test>", "html": "a\rb", "text": " "},
    {"from": "Ünï <a@x.test>", "html": "x" * 5_000, "text": None},
    {"bcc": "b@x.test", "scheduled_at": "in 1 min", "tags": [{"name": "a", "value": "b"}]},
    {"bcc": ["b@x.test", "B <c@x.test>"]},
)
def test_a_mail_is_shown_as_it_was_sent(house: House, fields: dict[str, Any]) -> None:
    """Author, texts, blind copies and tags are those of the request, character by character."""
    sent = post(house, EMAILS, with_fields(EMAILS, **fields)).json["id"]
    shown = ask(house, f"{EMAILS}/{sent}").json
    bcc = fields.get("bcc")
    for name, value in {**fields, "bcc": [bcc] if isinstance(bcc, str) else bcc or []}.items():
        assert shown[name] == value, name
    assert shown["message_id"] == raw_mail(house, newest(house))["Message-ID"]


def test_a_long_text_is_shown_with_the_line_breaks_of_the_mail(house: House) -> None:
    """The request is not stored as a whole, so a line break is a line feed."""
    sent = post(house, EMAILS, with_fields(EMAILS, html=LONG)).json["id"]
    assert ask(house, f"{EMAILS}/{sent}").json["html"] == LONG.replace("\r\n", "\n")


def test_mails_are_listed_in_pages(house: House) -> None:
    """The list has each mail of Resend once, the newest first, before or after another one."""
    house.receive()
    post(house, "/providers/postmark/email")
    to = ["a@customer.example", "b@customer.example"]
    ids = [post(house, EMAILS, with_fields(EMAILS, to=to)).json["id"] for _ in range(5)]
    ids.reverse()

    def page(query: str) -> tuple[list[str], bool]:
        found = ask(house, f"{EMAILS}?{query}").json
        assert found["object"] == "list"
        return [one["id"] for one in found["data"]], found["has_more"]

    assert page("") == (ids, False)
    assert page("limit=2") == (ids[:2], True)
    assert page(f"limit=2&after={ids[1]}") == (ids[2:4], True)
    assert page(f"limit=2&after={ids[3]}") == (ids[4:], False)
    assert page(f"limit=2&before={ids[4]}") == (ids[2:4], True)
    assert page(f"before={ids[1]}") == (ids[:1], False)
    assert page(f"after={ids[4]}") == ([], False)
    listed = ask(house, EMAILS).json["data"][0]
    assert (listed["to"], listed["last_event"]) == (to, "delivered")
    assert "html" not in listed


@rows("limit=0", "limit=101", "limit=x", "limit=-1", "limit=" + "9" * 5_000, "limit=\u0661")
def test_a_wrong_limit_is_named(house: House, query: str) -> None:
    """A limit that is no number from 1 to 100 is an error that says so."""
    answer = ask(house, f"{EMAILS}?{query.encode().decode('latin-1')}")
    assert (answer.status, answer.json["name"]) == (422, "validation_error")
    assert "from 1 to 100" in answer.json["message"]


def test_an_unknown_mail_begins_no_page(house: House) -> None:
    """A page after a mail that does not exist, or is another account's, is not found."""
    other = house.issue_key(house.add_account("second"))
    sent = post(house, EMAILS, key=other).json["id"]
    for query in ("after=x", f"before={sent}"):
        assert ask(house, f"{EMAILS}?{query}").status == 404
    assert ask(house, EMAILS).json["data"] == []


def test_a_change_is_confirmed(house: House) -> None:
    """A new time and a cancellation are answered with the id; the mail stays delivered."""
    sent = post(house, EMAILS).json["id"]
    for method, path in (("PATCH", sent), ("POST", f"{sent}/cancel")):
        assert ask(house, f"{EMAILS}/{path}", method).json == {"object": "email", "id": sent}
        assert ask(house, f"{EMAILS}/{path.replace(sent, 'x')}", method).status == 404
    assert ask(house, f"{EMAILS}/{sent}").json["last_event"] == "delivered"
    reader = house.issue_key(house.account, rights=make_rights(["inbox:read"]))
    assert ask(house, f"{EMAILS}/{sent}", "PATCH", reader).status == 401


@rows(
    ("bounced@resend.dev", "bounced"),
    ("complained+a@resend.dev", "complained"),
    ("suppressed@resend.dev", "suppressed"),
    ("delivered@resend.dev", "delivered"),
    ("you+event.open@customer.example", "opened"),
)
def test_the_last_event_is_that_of_the_recipient(house: House, to: str, expected: str) -> None:
    """Test recipients and tags choose the last event of a mail."""
    sent = post(house, EMAILS, with_fields(EMAILS, to=to)).json["id"]
    assert ask(house, f"{EMAILS}/{sent}").json["last_event"] == expected


def test_a_mail_of_another_provider_is_shown_by_its_header(house: House) -> None:
    """The request of another provider has other fields, so the mail itself is shown."""
    post(house, "/providers/sendgrid/v3/mail/send")
    (message,) = received(house)
    shown = ask(house, f"{EMAILS}/{message['deliveryId']}").json
    assert (shown["from"], shown["bcc"], shown["tags"]) == ("Shop <shop@example.com>", [], [])
