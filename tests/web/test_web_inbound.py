"""The routes of mail into applications over REST."""

import json
from base64 import b64encode
from typing import Any

import pytest

from mailcheck.api.requests.inbound import LARGEST_LETTER
from mailcheck.ports.probes import InboundAnswer
from tests.fakes.scripted_receivers import OWN_HOST
from tests.house import Answer, House, run
from tests.table import rows

ROUTES = "/inbound/routes"
URL = "http://app.example.com/in"
ROUTE = {"to": "support@*", "format": "mailcheck", "url": URL}


@pytest.fixture(autouse=True)
def _delivering(house: House) -> None:
    run(house.assembly.inbound.deliver.start())


def post(house: House, path: str, **body: Any) -> Answer:
    """Post a JSON object."""
    return house.ask("POST", path, data=json.dumps(body).encode()).answer()


def sent_to(house: House, route: Answer, **letter: Any) -> Any:
    """Send a mail to an application; return the request that it got."""
    answer = post(house, f"{ROUTES}/{route.json['id']}/messages", **letter)
    assert answer.status == 200, answer.json
    return json.loads(house.receivers.inbound[-1].body)["data"]


def test_a_secret_is_shown_once(house: House) -> None:
    """A route is shown as it was made, changed and deleted, without its secret and password."""
    made = post(house, ROUTES, **ROUTE, user="u", password="hidden", fault="twice").json
    secret = made.pop("secret")
    assert house.get(ROUTES).json == {"routes": [made]}
    one = f"{ROUTES}/{made['id']}"
    assert house.get(one).json == made
    change = json.dumps({"fault": "", "speed": 1}).encode()
    changed = house.ask("PATCH", one, data=change).answer()
    assert changed.json == {**made, "fault": None, "speed": 1}
    listed = house.get(ROUTES).body.decode()
    assert not {secret, "hidden"} & set(listed.split('"'))
    assert house.ask("DELETE", one).answer().json == {"success": True, "id": made["id"]}
    assert house.get(one).status == 404


def test_a_password_stays_with_its_application(house: House) -> None:
    """A URL of another host gets neither user nor password, unless they are sent as well."""
    route = post(house, ROUTES, **{**ROUTE, "format": "rails"}, user="u", password="hidden").json
    one = f"{ROUTES}/{route['id']}"

    def sent(**change: Any) -> str:
        house.ask("PATCH", one, data=json.dumps(change).encode()).answer()
        post(house, f"{one}/messages", text="Hi")
        return dict(house.receivers.inbound[-1].headers).get("Authorization", "")

    own = sent(url=f"{URL}/other")
    assert own.startswith("Basic ")
    assert sent(url="http://elsewhere.example/in") != own
    assert house.get(one).json["user"] == ""
    assert sent(url=URL, user="u", password="hidden") == own


@rows(
    ({}, "to"),
    ({**ROUTE, "to": "nobody"}, "to"),
    ({**ROUTE, "format": "pigeon"}, "format"),
    ({**ROUTE, "url": "smtp://a.example"}, "url"),
    ({**ROUTE, "url": f"https://{OWN_HOST}/"}, "url"),
    ({**ROUTE, "format": "smtp"}, "url"),
    ({**ROUTE, "format": "smtp", "url": "smtp://a.example/path"}, "url"),
    ({**ROUTE, "secret": "not of Standard Webhooks"}, "secret"),
    ({**ROUTE, "speed": 0}, "speed"),
    ({**ROUTE, "format": "cloudflare", "fault": "wrong-signature"}, "fault"),
    ({**ROUTE, "more": 1}, "more"),
)
def test_invalid_routes(house: House, body: dict[str, Any], named: str) -> None:
    """An invalid route is 400 with a sentence that names the field, and is not made."""
    answer = post(house, ROUTES, **body)
    assert answer.status == 400
    assert named in answer.json["error"]
    assert house.get(ROUTES).json == {"routes": []}


def test_all_fields_reach_the_application(house: House) -> None:
    """Author, recipients, texts, files and verdicts of a mail are those of the request."""
    route = post(house, ROUTES, **ROUTE)
    got = sent_to(
        house,
        route,
        **{"from": "Ana <ana@c.test>", "to": ["in@app.test"], "bcc": ["blind@app.test"]},
        subject="Ticket",
        text="Hello",
        html="<p>Hello</p>",
        files=[{"name": "a.txt", "content": b64encode(b"file").decode()}],
        spf="fail",
        spamScore=7.5,
        envelopeFrom="",
    )
    assert (got["envelope"]["mailFrom"], got["envelope"]["rcptTo"]) == (
        "",
        ["in@app.test", "blind@app.test"],
    )
    assert (got["subject"], got["text"].strip(), got["html"].strip()) == (
        "Ticket",
        "Hello",
        "<p>Hello</p>",
    )
    assert got["attachments"][0]["filename"] == "a.txt"
    assert got["verdicts"]["spf"] == "fail"


def test_a_whole_mail_is_sent_as_it_is(house: House) -> None:
    """A raw mail is sent to the recipients that it names."""
    raw = b"From: a@b.test\r\nTo: c@d.test\r\nSubject: Raw\r\n\r\n\xff\r\n"
    route = post(house, ROUTES, **{**ROUTE, "format": "smtp", "url": "smtp://127.0.0.1:25"})
    path = f"{ROUTES}/{route.json['id']}/messages"
    assert post(house, path, raw=b64encode(raw).decode()).status == 200
    (mailed,) = house.receivers.mailed
    assert (mailed.raw_message, mailed.recipients) == (raw, ("c@d.test",))


@rows(
    ({"raw": "!"}, "raw"),
    ({"raw": "", "ready": "empty"}, "raw"),
    ({"to": ["nobody"]}, "to"),
    ({"from": "a@b.test, c@d.test"}, "from"),
    ({"ready": "unheard-of"}, "ready"),
    ({"files": [{"nme": "a"}]}, "files"),
    ({"fault": "bad"}, "fault"),
    ({"spf": "maybe"}, "spf"),
    ({"spamScore": 1e9}, "spamScore"),
    ({"envelopeFrom": "no address at all"}, "envelopeFrom"),
    ({"messageId": "a", "mailId": "b"}, "mailId"),
)
def test_invalid_mails(house: House, letter: dict[str, Any], named: str) -> None:
    """An invalid mail is 400 with a sentence that names the field, and nothing is sent."""
    route = post(house, ROUTES, **ROUTE)
    answer = post(house, f"{ROUTES}/{route.json['id']}/messages", **letter)
    assert answer.status == 400
    assert named in answer.json["error"]
    assert house.receivers.inbound == []


def test_a_wait_ends_with_the_answer(house: House) -> None:
    """A wait for attempts returns when the application has taken the mail."""
    route = post(house, ROUTES, **ROUTE)
    house.receivers.inbound_answers = [InboundAnswer(500, body="läuft nicht".encode())]
    sent = post(house, f"{ROUTES}/{route.json['id']}/messages", text="Hi").json
    pending = house.ask("GET", f"/inbound/attempts?mail={sent['id']}&wait=30")
    assert not pending.is_answered
    house.pass_time(1)
    page = pending.answer().json
    assert (page["delivered"], page["pending"], page["total"]) == (True, 0, 2)
    assert page["attempts"][1]["answer"] == "läuft nicht"
    assert page["deliveries"][0]["state"] == "delivered"
    timed = house.ask("GET", f"/inbound/attempts?route={'a' * 13}&wait=1")
    house.pass_time(1)
    assert timed.answer().json["delivered"] is False
    assert house.get("/inbound/attempts?wait=5&page=2").status == 400


def test_large_letters(house: House) -> None:
    """A mail of a megabyte of JSON is taken, and a larger body is 413."""
    route = post(house, ROUTES, **ROUTE)
    path = f"{ROUTES}/{route.json['id']}/messages"
    text = "ü" * 200_000
    assert post(house, path, text=text).status == 200
    assert post(house, path, text="x" * LARGEST_LETTER).status == 413
