"""Mail that is built to make lists large."""

import json

import pytest

from mailcheck.api.inbox.messages import MAX_LINK_CHARACTERS, MAX_LISTED_LINKS
from tests.house import House, mail
from tests.web.mcp.agent import Agent

pytestmark = pytest.mark.attack


@pytest.mark.parametrize(("count", "length"), [(900, 450), (900, 40), (3, 7_000), (2, 40)])
def test_a_mail_of_links_makes_no_list_large(house: House, count: int, length: int) -> None:
    """A list shows the first links of a mail and the number of the others; the mail has all."""
    begin = "https://example.com/"
    links = [f"{begin}{number:x<{length - len(begin)}}" for number in range(count)]
    house.receive(house.address(), raw=mail("Links", "\r\n".join(links)))
    (listed,) = house.get("/inbox/messages").json["messages"]
    shown, left_out = listed["links"], listed.get("linksLeftOut", 0)
    assert ("linksLeftOut" in listed) == (count > 2)
    assert shown == links[: len(shown)]
    assert len(shown) + left_out == count
    assert 0 < len(shown) <= MAX_LISTED_LINKS
    assert len("".join(shown)) <= MAX_LINK_CHARACTERS
    assert house.get(f"/inbox/messages/{listed['id']}").json["links"] == links
    gathered = house.get("/inbox/wait/many?count=1&after=c0&timeout=1").json["messages"]
    assert gathered[0]["links"] == shown
    assert len(json.dumps(Agent(house).use("list_messages"))) < 30_000
