"""Objects of another account are 404, never 403, and appear nowhere."""

import pytest

from tests.house import House
from tests.table import rows


@pytest.fixture
def message_id(house: House) -> str:
    """A message with an attachment in the inbox of the first account."""
    house.receive(
        house.address("secret"),
        raw=(
            b"From: a@example.com\r\nSubject: secret plans\r\n"
            b'Content-Type: application/pdf; name="p.pdf"\r\n'
            b"Content-Disposition: attachment\r\n\r\nsecret\r\n"
        ),
    )
    found: str = house.get("/inbox/messages").json["messages"][0]["id"]
    return found


@pytest.fixture
def stranger(house: House) -> str:
    """A key of another account."""
    return house.issue_key(house.add_account("stranger"))


@rows(
    ("GET", ""),
    ("HEAD", ""),
    ("DELETE", ""),
    ("GET", "/raw"),
    ("GET", "/html"),
    ("GET", "/attachments/1"),
    ("POST", "/share"),
)
def test_a_message_of_another_account_is_not_found(
    house: House, message_id: str, stranger: str, method: str, suffix: str
) -> None:
    """Every route of a message responds to another account as for an unknown id."""
    theirs = house.ask(method, f"/inbox/messages/{message_id}{suffix}", key=stranger).answer()
    nobodys = house.ask(method, f"/inbox/messages/nobodys{suffix}", key=stranger).answer()
    assert theirs.status == nobodys.status == 404
    assert theirs.body == nobodys.body
    ours = house.get(f"/inbox/messages/{message_id}")
    assert ours.status == 200
    assert house.open(ours.json["shareUrl"].partition("8080")[2]).answer().status == 200


def test_nothing_of_another_account_is_listed(house: House, message_id: str, stranger: str) -> None:
    """Overview, lists, searches and counts of another account do not include the message."""
    assert message_id
    body = house.get("/inbox", key=stranger).json
    assert (body["total"], body["tags"], body["cursor"]) == (0, [], "c0")
    assert body["address"] != house.address()
    to = house.address("secret").replace("+", "%2B")
    for query in (
        "",
        "tag=secret",
        "q=secret",
        "subject=plans",
        "from=a%40example.com",
        f"to={to}",
    ):
        listed = house.get(f"/inbox/messages?{query}", key=stranger).json
        assert (listed["messages"], listed["total"], listed["cursor"]) == ([], 0, "c0")
