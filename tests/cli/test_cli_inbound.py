"""``mailcheck inbound``: output and exit statuses."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailcheck.ports.probes import InboundAnswer
from tests.cli.command_line import Mailcheck
from tests.cli.house_commands import commands_at
from tests.house import House, config_in_memory, run


@pytest.fixture
def house() -> Iterator[House]:
    """An application that takes what it gets."""
    house = House(config_in_memory())
    run(house.assembly.inbound.deliver.start())
    yield house
    run(house.assembly.inbound.deliver.stop())


@pytest.fixture
def inbound(house: House, tmp_path: Path) -> Iterator[Mailcheck]:
    """Run ``mailcheck inbound`` with the key of its first account."""
    with commands_at(house, tmp_path, "inbound") as inbound:
        yield inbound


def test_mail_is_sent_to_an_application(inbound: Mailcheck, house: House, tmp_path: Path) -> None:
    """A route is added, a mail is sent with a file, and a refusal is status 1."""
    assert inbound("routes").errors.startswith("no route yet")
    url = "http://app.example.com/in"
    made = inbound("add", "support@*", url, "--format", "postmark")
    route, secret = made.lines[0].split()
    assert secret.startswith("whsec_")
    assert inbound("routes").lines == [f"{route}  postmark  support@*  {url}"]
    (tmp_path / "a.txt").write_text("file")
    sent = inbound("send", route, "--text", "Hi", "--file", str(tmp_path / "a.txt"))
    assert (sent.status, sent.lines[0].split()[-2:]) == (0, ["200", "taken"])
    body = json.loads(house.receivers.inbound[-1].body)
    assert (body["TextBody"].strip(), body["Attachments"][0]["Name"]) == ("Hi", "a.txt")
    house.receivers.inbound_answers = [InboundAnswer(403)]
    refused = inbound("send", route, "--ready", "empty", "--json")
    assert (refused.status, json.loads(refused.output)["delivered"]) == (1, False)
    assert len(inbound("attempts").lines) == 2
    mail_id = json.loads(refused.output)["attempts"][0]["mailId"]
    assert inbound("send", route, "--mail", mail_id, "--wait", "0").status == 0
    assert inbound("add", "support@*", "ftp://a").status == 2
    assert inbound("remove", route).lines == [f"deleted {route}"]
