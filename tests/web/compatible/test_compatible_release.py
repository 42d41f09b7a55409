"""Release of a captured mail by clients of Mailpit, MailHog and Mailosaur."""

from typing import Any

import pytest

from mailcheck.config.options import InboxOptions, ReleaseOptions
from mailcheck.ports.probes import Relayed
from mailcheck.web.compatible.facade import SENDS_NOTHING
from tests.house import House, config_in_memory
from tests.web.compatible.mailosaur import Client, address, sign_up
from tests.web.compatible.open_site import OpenSite

RELEASE = ReleaseOptions(
    relay="relay.example:25",
    sender="release@here.example",
    allow_recipients=("*=ops@there.example", "*=@team.example"),
)
OPS = "ops@there.example"


@pytest.fixture
def site() -> OpenSite:
    """The listener of Mailpit's clients, with a mail and the release of mail."""
    site = OpenSite(release=RELEASE)
    site.send()
    return site


def mail_id(site: OpenSite) -> str:
    """Return the id of the mail."""
    answer: str = site.ask("GET", "/api/v1/messages").answer().json["messages"][0]["ID"]
    return answer


def test_mailpit_releases_a_mail(site: OpenSite) -> None:
    """Mailpit's clients send a list of addresses and get ok."""
    path = f"/api/v1/message/{mail_id(site)}/release"
    answer = site.ask("POST", path, json={"To": [OPS, "ann@team.example"]}).answer()
    assert (answer.status, answer.body) == (200, b"ok")
    ((sender, recipients, _),) = site.house.hosts.released
    assert (sender, recipients) == ("release@here.example", (OPS, "ann@team.example"))
    relay = site.ask("GET", "/api/v1/webui").answer().json["MessageRelay"]
    assert (relay["Enabled"], relay["ReturnPath"]) == (True, "release@here.example")
    for to in ([], ["x@evil.example"], [OPS, "x@evil.example"]):
        assert site.ask("POST", path, json={"To": to}).answer().status == 400
    assert len(site.house.hosts.released) == 1


def test_mailhog_releases_a_mail_over_the_relay_of_the_operator(site: OpenSite) -> None:
    """The server that a client of MailHog names is not used."""
    path = f"/api/v1/messages/{mail_id(site)}/release"
    asked = {"email": OPS, "host": "192.0.2.1", "port": "25", "username": "u", "password": "p"}
    answer = site.ask("POST", path, json=asked).answer()
    assert (answer.status, answer.body) == (200, b"")
    assert [one[1] for one in site.house.hosts.released] == [(OPS,)]
    site.house.hosts.relayed = Relayed(550, "the relay answered 550 no", is_permanent=True)
    answer = site.ask("POST", path, json=asked).answer()
    assert (answer.status, "550 no" in answer.json["error"]) == (502, True)


def test_mailosaur_forwards_a_message() -> None:
    """Mailosaur's forward releases the message as it is, and returns it."""
    options: dict[str, Any] = {"inbox": InboxOptions(), "release": RELEASE}
    house = House(config_in_memory(**options))
    client, to = Client(house), address(house)
    raw = sign_up(to)
    house.receive(to, raw=raw)
    message_id = client.search(subject="Welcome").answer().json["items"][0]["id"]
    asked = {"to": OPS, "cc": "ann@team.example", "text": "see this", "subject": "Look"}
    answer = client.send("POST", f"/api/messages/{message_id}/forward", asked)
    assert (answer.status, answer.json["id"]) == (200, message_id)
    assert house.hosts.released[0][1] == (OPS, "ann@team.example")
    assert house.hosts.released[0][2].endswith(raw)
    asked = {"to": f"{OPS}, x@evil.example", "text": "see this"}
    assert client.send("POST", f"/api/messages/{message_id}/forward", asked).status == 400


def test_without_the_option_they_answer_as_before() -> None:
    """Without `[release]`, each product's route refuses as it did."""
    site = OpenSite()
    site.send()
    one = mail_id(site)
    answer = site.ask("POST", f"/api/v1/message/{one}/release", json={"To": [OPS]}).answer()
    assert (answer.status, answer.body.decode()) == (403, SENDS_NOTHING)
    answer = site.ask("POST", f"/api/v1/messages/{one}/release", json={"email": OPS}).answer()
    assert (answer.status, answer.json["error"]) == (403, SENDS_NOTHING)
    answer = Client(site.house).send("POST", "/api/messages/x/forward", {"to": OPS})
    assert (answer.status, answer.json["message"]) == (400, SENDS_NOTHING)
    assert not site.ask("GET", "/api/v1/webui").answer().json["MessageRelay"]["Enabled"]
