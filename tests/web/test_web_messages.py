"""Overview, address and list of an inbox: GET /inbox, /inbox/address, /inbox/messages."""

from typing import Any

from mailcheck.config.options import InboxOptions
from mailcheck.operations.inbox.messages import OVERVIEW_TAGS
from tests.house import House, config_in_memory, mail
from tests.table import rows


def listed(house: House, query: str = "", key: str = "") -> Any:
    """Return the body of a list."""
    return house.get(f"/inbox/messages?{query}", key=key).json


def test_an_empty_inbox(house: House) -> None:
    """An inbox without mail has an address, a cursor, and no tags."""
    body = house.get("/inbox").json
    assert body["address"] == house.address()
    assert body["mailbox"] == house.account.mailbox_name
    assert body["domain"] == "mailcheck.example"
    assert body["retentionHours"] == 24
    assert (body["total"], body["tags"], body["cursor"]) == (0, [], "c0")
    assert listed(house) == {"messages": [], "nextPage": None, "total": 0, "cursor": "c0"}


def test_the_overview_says_which_tags_it_does_not_show(house: House) -> None:
    """With more than 200 tags the overview has a hint; otherwise it has none."""
    for number in range(OVERVIEW_TAGS):
        house.receive(house.address(f"t{number}"))
    assert "hint" not in house.get("/inbox").json
    house.receive(house.address("one-more"))
    body = house.get("/inbox").json
    assert len(body["tags"]) == OVERVIEW_TAGS
    assert body["hint"].startswith("tags has the newest 200 of 201 tags; ")


@rows((24.0, 24), (1.5, 1.5), (0.25, 0.25), (720.0, 720))
def test_the_retention_is_shown(hours: float, shown: float) -> None:
    """The overview contains the retention in hours, after which mail expires."""
    house = House(config_in_memory(inbox=InboxOptions(retention_hours=hours)))
    house.receive()
    body = house.get("/inbox").json
    assert body["retentionHours"] == shown
    assert isinstance(body["retentionHours"], type(shown))
    house.pass_time(hours * 3600 - 1)
    assert house.get("/inbox").json["total"] == 1
    house.pass_time(1)
    assert house.get("/inbox").json["total"] == 0


def test_an_address_carries_its_tag(house: House) -> None:
    """An address with or without a tag is returned with the current cursor."""
    house.receive()
    assert house.get("/inbox/address?tag=Sign.Up").json == {
        "address": house.address("Sign.Up"),
        "email": house.address("Sign.Up"),
        "tag": "Sign.Up",
        "mailbox": house.account.mailbox_name,
        "domain": "mailcheck.example",
        "cursor": "c1",
    }
    for query in ("", "?tag=", "?unique=false", "?unique=0"):
        assert house.get(f"/inbox/address{query}").json["address"] == house.address()


def test_a_unique_tag_is_made_by_the_server(house: House) -> None:
    """``unique=true`` generates another tag or suffix each time, and mail to it arrives."""
    for query, beginning in (("unique=true", ""), ("unique=1&tag=login", "login-"), ("unique", "")):
        tags = {house.get(f"/inbox/address?{query}").json["tag"] for _ in range(5)}
        assert len(tags) == 5
        assert all(tag.startswith(beginning) for tag in tags)
        for tag in tags:
            house.receive(house.address(tag))
            assert listed(house, f"tag={tag}")["total"] == 1


def test_a_unique_tag_fits_an_address(house: House) -> None:
    """A tag that is too long for the unique suffix is 400."""
    longest = "a" * 32
    address = house.get(f"/inbox/address?unique=true&tag={longest}").json["address"]
    assert len(address.partition("@")[0]) == 64
    house.receive(address)
    answer = house.get(f"/inbox/address?unique=true&tag={longest}a")
    assert answer.status == 400
    assert answer.json["error"] == ("tag must have at most 32 octets with unique=true")


def test_a_list_leaves_the_bodies_out(house: House) -> None:
    """An entry of a list contains codes and links, but no text, HTML and headers."""
    house.receive(house.address("a"))
    (message,) = listed(house)["messages"]
    whole = house.get(f"/inbox/messages/{message['id']}").json
    assert message["codes"] == ["482913"]
    assert message.pop("isRead") is False
    assert message == {name: whole[name] for name in message}
    assert {"text", "html", "headers", "headerList", "attachments"} <= set(whole) - set(message)


def test_unparsed_messages_are_counted(house: House) -> None:
    """A list with a content filter counts the messages that are not parsed yet."""
    house.receive(raw=mail("Hello", "a cherry"))
    for query in ("q=cherry", "text=cherry", "hasAttachment=false"):
        found = listed(house, query)
        assert (found["total"], found["notSearched"]) == (0, 1)
    assert "notSearched" not in listed(house, "subject=hello")
    listed(house)  # derives the texts, as the background worker does
    found = listed(house, "q=cherry")
    assert found["total"] == 1
    assert "notSearched" not in found


def test_any_author_is_found(house: House) -> None:
    """Both from= and from: look at all authors of a mail."""
    house.receive(raw=mail(author="Ann <ann@a.example>, Bob <bob@b.example>"))
    for query in ("from=bob@b.example", "q=from:bob", "from=ann", "q=-from:carol"):
        assert listed(house, query)["total"] == 1, query
    assert listed(house, "from=carol")["total"] == 0


def test_an_unknown_field_is_answered_with_the_nearest(house: House) -> None:
    """It is never searched in silence, and neither is an unknown word of a field."""
    house.receive()
    for written, meant in (("subjct:welcome", "subject:?"), ("is:unred", "is:unread?")):
        answer = house.get(f"/inbox/messages?q={written}")
        assert answer.status == 400
        assert f"id you mean {meant}" in answer.json["error"]


def test_a_search_of_html(house: House) -> None:
    """An HTML-only mail is found by its visible text, not by its markup."""
    head = b"Subject: x\r\nContent-Type: text/html\r\n\r\n"
    house.receive(raw=head + b"<p>Ihr Best&auml;tigungs<b>code</b>&nbsp;ist <i>da</i></p>")
    listed(house)  # derives the texts, as the background worker does
    assert listed(house, "q=%22bestatigungscode+ist+da%22")["total"] == 1
    assert listed(house, "q=auml")["total"] == 0
