"""Objects of another account are 404, never 403, and appear nowhere."""

import pytest

from tests.house import House, mail


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


@pytest.mark.parametrize(
    ("method", "suffix"),
    [
        ("GET", ""),
        ("HEAD", ""),
        ("DELETE", ""),
        ("GET", "/raw"),
        ("GET", "/html"),
        ("GET", "/attachments/1"),
        ("POST", "/share"),
    ],
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


def test_a_wait_is_not_woken_by_another_accounts_mail(house: House, stranger: str) -> None:
    """A wait of another account with the same tag does not match, and its 408 is empty."""
    pending = house.ask("GET", "/inbox/wait?tag=secret&timeout=5", key=stranger)
    past = house.ask("GET", "/inbox/wait?timeout=5&since=2026-01-01T00:00:00Z", key=stranger)
    house.receive(house.address("secret"))
    house.pass_time(5)
    for one in (pending, past):
        answer = one.answer()
        assert answer.status == 408
        assert (answer.json["seen"], answer.json["cursor"]) == ([], "c0")


def test_a_bulk_delete_leaves_other_accounts_alone(
    house: House, message_id: str, stranger: str
) -> None:
    """A deletion without filters deletes only messages of the same account."""
    for query in ("", "?tag=secret"):
        answer = house.ask("DELETE", f"/inbox/messages{query}", key=stranger).answer()
        assert answer.json == {"success": True, "deleted": 0}
    assert house.get(f"/inbox/messages/{message_id}").status == 200


def test_mail_to_two_accounts_is_two_messages(house: House, stranger: str) -> None:
    """One mail to two accounts results in two messages, which are deleted separately."""
    account = house.add_account("third")
    key = house.issue_key(account)
    house.receive(house.address("a"), house.address("b", account), raw=mail("shared"))
    mine = house.get("/inbox/messages").json["messages"]
    theirs = house.get("/inbox/messages", key=key).json["messages"]
    assert [one["tag"] for one in mine] == ["a"]
    assert [one["tag"] for one in theirs] == ["b"]
    assert mine[0]["shareUrl"] != theirs[0]["shareUrl"]
    assert house.ask("DELETE", f"/inbox/messages/{mine[0]['id']}").answer().status == 200
    answer = house.get(f"/inbox/messages/{theirs[0]['id']}/raw", key=key)
    assert answer.json["raw"].encode() == mail("shared")
    whole = house.get(f"/inbox/messages/{theirs[0]['id']}", key=key).body.decode()
    assert house.account.mailbox_name not in whole
