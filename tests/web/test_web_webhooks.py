"""The routes of webhooks: accepted and rejected requests, and separation of accounts."""

import json
from typing import Any

import pytest

from mailcheck.core.webhooks import LONGEST_URL
from tests.fakes.scripted_receivers import OWN_HOST, ScriptedReceivers
from tests.house import Answer, House
from tests.table import rows

URL = "https://ci.example.com/mail"
WEBHOOKS = "/inbox/webhooks"


@pytest.fixture(autouse=True)
def receivers(house: House) -> ScriptedReceivers:
    """Receivers that accept everything."""
    return house.receivers


def create(house: House, key: str = "", **body: Any) -> Answer:
    """Create a webhook."""
    given = json.dumps({"url": URL, **body}).encode()
    return house.ask("POST", WEBHOOKS, key=key, data=given).answer()


def test_a_webhook_is_shown_as_created(house: House) -> None:
    """A webhook is shown as it was created, but without the secret."""
    filters: dict[str, Any] = {
        "tag": "",
        "tagPrefix": "run-7-",
        "to": "ann@customer.example",
        "from": "shop",
        "subject": "Welcome",
        "header": ["Reply-To:support@", "X-Run:7"],
        "text": "code",
        "hasAttachment": False,
    }
    made = create(house, **filters).json
    secret = made.pop("secret")
    assert made["filter"] == filters
    assert house.get(WEBHOOKS).json == {"webhooks": [made]}
    shown = house.get(f"{WEBHOOKS}/{made['id']}")
    assert shown.json == {**made, "deliveries": []}
    assert secret not in shown.body.decode()


@rows(
    ({}, "url"),
    ({"url": 7}, "url"),
    ({"url": "ftp://ci.example.com/"}, "url"),
    ({"url": "https://"}, "url"),
    ({"url": "https://user:secret@ci.example.com/"}, "url"),
    ({"url": "https://ci.example.com/#here"}, "url"),
    ({"url": "https://ci.example.com:99999/"}, "url"),
    ({"url": "https://ci.example.com:0/"}, "url"),
    ({"url": "https://[::1/"}, "url"),
    ({"url": "https://[fe80::1%25eth0]/"}, "url"),
    ({"url": "https://a..b/"}, "url"),
    ({"url": "https://b\u00fccher.example/"}, "url"),
    ({"url": "https://ci.example.com/a b"}, "url"),
    ({"url": "https://ci.example.com/\r\nX: y"}, "url"),
    ({"url": "https://ci.example.com/" + "x" * LONGEST_URL}, "url"),
    ({"url": f"https://{OWN_HOST}/"}, "url"),
    ({"url": URL, "tag": "a b"}, "tag"),
    ({"url": URL, "tag": None}, "tag"),
    ({"url": URL, "header": ["no colon"]}, "header"),
    ({"url": URL, "header": [7]}, "header"),
    ({"url": URL, "hasAttachment": "yes"}, "hasAttachment"),
    ({"url": URL, "after": "c9"}, "after"),
    ({"url": URL, "after": "nonsense"}, "after"),
    ({"url": URL, "since": "2026-11-21T10:00:00Z"}, "which may contain only"),
    ({"url": URL, "tga": "a"}, "which may contain only"),
)
def test_invalid_webhooks(house: House, body: dict[str, Any], named: str) -> None:
    """An invalid webhook is 400 with a sentence that names the problem, and is not created."""
    answer = house.ask("POST", WEBHOOKS, data=json.dumps(body).encode()).answer()
    assert answer.status == 400
    assert named in answer.json["error"]
    assert house.get(WEBHOOKS).json["webhooks"] == []


@rows(
    "http://127.0.0.1:9000/mail?a=%20&b=c",
    "http://[::1]:9000/",
    "http://localhost:9000/",
    "http://receiver:8000/hooks",
    "https://xn--bcher-kva.example./x",
)
def test_valid_webhooks(house: House, url: str) -> None:
    """All kinds of addresses and names are accepted. Their target is checked at delivery."""
    assert create(house, url=url).json["url"] == url


def test_a_receiver_is_known_by_its_account(house: House, receivers: ScriptedReceivers) -> None:
    """The operator allows private receivers by the name of the account."""
    made = create(house).json
    house.ask("POST", f"{WEBHOOKS}/{made['id']}/test").answer()
    assert receivers.accounts == ["first"]


def test_a_replay_names_its_cursor(house: House) -> None:
    """A replay without a cursor, or with one that the inbox has not reached, is 400."""
    path = f"{WEBHOOKS}/{create(house).json['id']}/replay"
    for body in (b"{}", b'{"after": "c9"}', b'{"after": 0}', b'{"before": "c0"}', b"c0"):
        assert house.ask("POST", path, data=body).answer().status == 400
