"""The inbox tools."""

import json
from typing import Any

from jsonschema import Draft202012Validator

from mailcheck.core.rights import Rights, TagLimit
from mailcheck.web.mcp.dispatch import TOOL_CALL
from tests.house import House, mail
from tests.table import rows
from tests.web.mcp.agent import BOTH_MODES, STATELESS, TOOL_NAMES, Agent, failure_of, marker_of


def received(house: House, tag: str = "", **content: Any) -> str:
    """Receive a mail, and return the message's id."""
    house.receive(house.address(tag), raw=mail(**content))
    message_id: str = house.get("/inbox/messages?limit=1").json["messages"][0]["id"]
    return message_id


@BOTH_MODES
def test_all_are_listed_in_order(agent: Agent) -> None:
    """tools/list begins with the inbox tools, in constant order."""
    assert list(agent.tools()) == TOOL_NAMES
    assert list(agent.tools()) == TOOL_NAMES


def test_the_list_is_short(agent: Agent) -> None:
    """The list of tools, which uses up context in every conversation, has less than 16 KB."""
    assert len(agent.request("tools/list").body) < 16_000


def test_each_tool_says_what_it_takes_and_gives(agent: Agent) -> None:
    """Each tool has a description, and two valid schemas of JSON Schema 2020-12."""
    for tool in agent.tools().values():
        assert len(tool["description"]) > 60
        assert tool["title"]
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False


def test_only_deletion_is_destructive(agent: Agent) -> None:
    """Only delete_message has the hint that it is destructive."""
    hints = {name: tool["annotations"] for name, tool in agent.tools().items()}
    changing = {name for name in hints if not hints[name]["readOnlyHint"]}
    assert changing == {"delete_message", "generate_test", "send_inbound"}
    assert {name for name in hints if hints[name].get("destructiveHint")} == {"delete_message"}
    assert {name for name in hints if not hints[name].get("idempotentHint", True)} == {
        "generate_test",
        "send_inbound",
    }
    reading = {"wait_for_message", "list_messages", "get_message", "extract"}
    reading |= {"check_domain", "check_mx", "check_blocklists", "get_reports"}
    reading |= {"wait_for_test", "get_attachment", "send_inbound", "get_inbound"}
    assert {name for name in hints if hints[name].get("openWorldHint", True)} == reading


def test_a_new_address_is_taken_before_the_mail_is_sent(agent: Agent, house: House) -> None:
    """new_address returns a unique tag and a cursor from which a wait misses no mail."""
    received(house)
    first, second = agent.use("new_address"), agent.use("new_address")
    assert first["tag"] != second["tag"]
    assert first["address"] == house.address(first["tag"])
    house.receive(first["address"], raw=mail(subject="Mine"))
    house.receive(second["address"], raw=mail(subject="Other"))
    arrived = agent.use("wait_for_message", tag=first["tag"], after=first["cursor"])
    assert arrived["message"]["subject"] == "Mine"
    assert arrived["timedOut"] is False


def test_a_given_tag_is_used(agent: Agent, house: House) -> None:
    """new_address with a tag returns its address; with an empty tag, the address without one."""
    assert agent.use("new_address", tag="Sign.Up")["address"] == house.address("Sign.Up")
    assert agent.use("new_address", tag="")["address"] == house.address()


def test_the_text_of_simple_tools_is_their_json(agent: Agent) -> None:
    """For clients without structured content, the text contains the same JSON."""
    result = agent.call("new_address", {"tag": "a"}).result
    (block,) = result["content"]
    assert json.loads(block["text"]) == result["structuredContent"]


def test_a_message_is_read_whole(agent: Agent, house: House) -> None:
    """get_message returns all that REST returns in the parts that are requested."""
    message_id = received(house, "a")
    parts = ["text", "html", "links", "headers", "files"]
    message = agent.use("get_message", id=message_id, include=parts)["message"]
    same = house.get(f"/inbox/messages/{message_id}").json
    exact = {"id", "to", "subject", "receivedAt", "links", "bestLink", "codes"}
    assert {name: message[name] for name in exact} == {name: same[name] for name in exact}
    assert (message["html"], message["files"]) == ("", [])
    assert same["text"].strip() in message["text"]
    assert message["headers"]["subject"] == "Welcome"
    assert message["envelope"]["mailFrom"] == "shop@example.com"


def test_codes_and_links_come_with_reasons(agent: Agent, house: House) -> None:
    """Extract returns codes, links, and every candidate with its reasons."""
    message_id = received(house, body="Your code is 482913: https://example.com/confirm?t=7f3a")
    found = agent.use("extract", id=message_id)
    assert found["id"] == message_id
    assert found["codes"] == ["482913"]
    assert found["bestLink"] == "https://example.com/confirm?t=7f3a"
    taken = {one["value"]: one for one in found["candidates"] if one["accepted"]}
    assert taken["482913"]["reasons"]


def test_lists_are_filtered_and_paged(agent: Agent, house: House) -> None:
    """list_messages has the filters and pages of REST, newest first."""
    for number in range(3):
        received(house, "a", subject=f"Mail {number}")
    received(house, "b", subject="Another")
    page = agent.use("list_messages", tag="A", limit=2)
    assert [message["subject"] for message in page["messages"]] == ["Mail 2", "Mail 1"]
    assert (page["total"], page["nextPage"]) == (3, 2)
    rest = agent.use("list_messages", tag="A", limit=2, page=2)
    assert [message["subject"] for message in rest["messages"]] == ["Mail 0"]
    assert "nextPage" not in rest
    found = agent.use("list_messages", q="code from:SHOP subject:other")
    assert [message["subject"] for message in found["messages"]] == ["Another"]
    newer = agent.use("list_messages", after=page["cursor"])
    assert newer["messages"] == []


def test_the_share_link_opens_the_message(agent: Agent, house: House) -> None:
    """share_link returns the existing link of a message. It works without a key and stays valid."""
    message_id = received(house)
    first, second = (agent.use("share_link", id=message_id) for _ in range(2))
    assert first == second
    assert first["expiresAt"] == "2026-11-22T12:00:00.000Z"
    path = first["shareUrl"].removeprefix("http://127.0.0.1:8080")
    assert house.open(path).answer().json["id"] == message_id


def test_a_deleted_message_is_gone(agent: Agent, house: House) -> None:
    """delete_message deletes one message. A second call is an error."""
    message_id, kept = received(house), received(house)
    assert agent.use("delete_message", id=message_id) == {"id": message_id, "deleted": True}
    assert "no such message" in agent.fail("delete_message", id=message_id)
    assert [one["id"] for one in house.get("/inbox/messages").json["messages"]] == [kept]


def test_a_cursor_names_a_message(agent: Agent, house: House) -> None:
    """The tools for one mail take its cursor as its id, and fail if there is no such mail."""
    message_id = received(house)
    (listed,) = agent.use("list_messages")["messages"]
    assert agent.use("get_message", id=listed["cursor"])["message"]["id"] == message_id
    stranger = Agent(house, house.issue_key(house.add_account("stranger")), agent.version)
    for cursor in (listed["cursor"], "c0", "cff"):
        assert "no such message" in stranger.fail("get_message", id=cursor)
    limited = Agent(house, house.issue_key(house.account, rights=Rights(tags=TagLimit(("b",)))))
    assert "no such message" in limited.fail("get_message", id=listed["cursor"])
    assert agent.use("delete_message", id=listed["cursor"])["id"] == message_id
    assert "no such message" in agent.fail("get_message", id=listed["cursor"])


@rows("get_message", "extract", "share_link", "delete_message")
def test_a_message_of_another_account_is_not_found(agent: Agent, house: House, tool: str) -> None:
    """A message of another account is not found."""
    message_id = received(house)
    stranger = Agent(house, house.issue_key(house.add_account(tool)), agent.version)
    assert stranger.fail(tool, id=message_id) == stranger.fail(tool, id="nothing")
    assert agent.use("share_link", id=message_id)["id"] == message_id


BAD_ARGUMENTS: list[tuple[str, dict[str, Any], str]] = [
    ("get_message", {}, "the argument id is missing"),
    ("get_message", {"id": 7}, "id must be a string, not the number 7"),
    ("get_message", {"id": "x" * 501}, "id must have at most 500 characters; got 501"),
    ("get_message", {"id": "a\0b"}, "id contains a NUL or a lone surrogate"),
    ("get_message", {"id": "a", "more": 1}, "unknown argument 'more'. The arguments are id"),
    ("new_address", {"tag": "two words"}, "tag: a tag is a dot-atom"),
    ("wait_for_message", {"timeout": "30"}, "timeout must be a number, not a string"),
    (
        "wait_for_message",
        {"timeout": 0.5},
        "timeout must be a number of seconds from 1 to 60; got 0.5",
    ),
    ("wait_for_message", {"timeout": 30000}, "milliseconds?"),
    ("wait_for_message", {"after": "yesterday"}, "after must be a cursor from an earlier response"),
    ("wait_for_message", {"after": "cff"}, "after is a cursor of another inbox"),
    ("wait_for_message", {"q": "x"}, "unknown argument 'q'"),
    ("list_messages", {"limit": 0}, "limit must be an integer from 1 to 100; got 0"),
]


@rows(*BAD_ARGUMENTS)
def test_bad_arguments_are_explained_to_the_model(
    agent: Agent, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    """An invalid argument is a failed call with a message that names it."""
    assert sentence in failure_of(agent.call(tool, arguments))


@BOTH_MODES
def test_unknown_tools_are_the_clients_mistake(agent: Agent) -> None:
    """An unknown tool is a protocol error that lists the tools."""
    reply = agent.call("send_mail")
    assert reply.error["code"] == -32602
    assert reply.error["message"].startswith("Unknown tool: send_mail. The tools are new_address")
    assert reply.status == (400 if agent.version == STATELESS else 200)


@BOTH_MODES
@rows({}, {"name": 7}, {"name": "extract", "arguments": ["id"]})
def test_malformed_calls_are_the_clients_mistake(agent: Agent, params: dict[str, Any]) -> None:
    """A call without a tool, or with arguments that are not an object, is a protocol error."""
    headers = {"Mcp-Name": None} if params.get("name") == 7 else {}
    reply = agent.request(TOOL_CALL, params, headers)
    if agent.version == STATELESS and params.get("name") == 7:
        assert reply.error["code"] == -32020
    else:
        assert reply.error["code"] == -32602


NEWSLETTER = (
    b"From: News <news@example.com>\r\nSubject: News\r\nMIME-Version: 1.0\r\n"
    + b"".join(b"X-Filter-%d: %s\r\n" % (number, b"word " * 60) for number in range(50))
    + b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n'
    + b"--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    + "Your code is 482913. \u201cNews\u201d \u4e2d\u6587 and\tmore.\r\n".encode() * 2_000
    + b"--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    + b"".join(b'<p><a href="https://example.com/%060d">"more"</a></p>\r\n' % n for n in range(900))
    + b"".join(
        b"--b\r\nContent-Disposition: attachment; filename=%d.txt\r\n\r\nx\r\n" % number
        for number in range(40)
    )
    + b"--b--\r\n"
)


def test_the_checks_of_a_mail(agent: Agent, house: House) -> None:
    """On request, get_message contains the compatibility and accessibility of the HTML.

    Mail without HTML has no such results. Text of the sender stays inside the fence.
    """
    html = '<p style="border-radius:4px">Hi <img src="https://a.example/x?![y](z)"></p>'
    house.receive(raw=f"From: a@b.example\r\nContent-Type: text/html\r\n\r\n{html}".encode())
    message_id = agent.use("list_messages")["messages"][0]["cursor"]
    assert "checks" not in agent.use("get_message", id=message_id)["message"]
    result = agent.call("get_message", {"id": message_id, "include": ["checks"]}).result
    checks = result["structuredContent"]["message"]["checks"]
    (feature,) = checks["compatibility"]
    assert (feature["title"], feature["lines"]) == ("border-radius", [1])
    assert any(text.startswith("Outlook ") for text in feature["programs"])
    assert [one["lines"] for one in checks["accessibility"]] == [[], [1]]
    assert checks["notJudged"][0].startswith("1 picture: ")
    text = result["content"][0]["text"]
    assert text.index(f"<<<{marker_of(result)}\n") < text.index("border-radius")
    assert "![" not in text
    plain = agent.use("get_message", id=received(house), include=["checks"])["message"]["checks"]
    assert (plain["hasHtml"], plain["compatibility"], plain["accessibility"]) == (False, [], [])


def test_a_long_newsletter_is_read_in_pieces(agent: Agent, house: House) -> None:
    """get_message returns 2,000 characters, counts the rest, and reads on from an offset."""
    house.receive(raw=NEWSLETTER)
    message_id = agent.use("list_messages")["messages"][0]["cursor"]
    reply = agent.call("get_message", {"id": message_id})
    assert len(reply.body) < 7_000
    found = reply.result["structuredContent"]
    assert found["message"]["codes"][0] == "482913"
    assert found["more"]["links"] == 900
    assert found["more"]["files"] == 40
    assert found["more"]["html"] > 20_000
    text = reply.result["content"][0]["text"]
    assert text.startswith("Cut: read on with offset=2000. Not included: html (")
    pieces, offset = "", 0
    while offset is not None:
        found = agent.use("get_message", id=message_id, offset=offset, length=9_000)
        pieces += "\n".join(found["message"]["text"].split("\n")[1:-1])
        offset = found.get("nextOffset")
    assert len(pieces) == 20_000
    assert pieces.startswith("Your code is 482913")
    parts = ["html", "links", "headers", "files"]
    found = agent.use("get_message", id=message_id, include=parts, length=20_000)
    assert len(found["message"]["html"]) > 20_000
    assert (len(found["message"]["links"]), len(found["message"]["files"])) == (100, 40)
    assert set(found["more"]) == {"text"}


def test_the_headers_name_other_addresses(agent: Agent, house: House) -> None:
    """The headers of a message contain the first addresses of To, and Cc."""
    many = ", ".join(f"p{number}@team.example" for number in range(300))
    raw = f"From: a@example.com\r\nTo: {many}\r\nCc: Ann <ann@copy.example>\r\nSubject: x\r\n\r\nHi"
    house.receive(house.address("a"), raw=raw.encode())
    found = agent.use("get_message", id="c1", include=["headers"])["message"]
    assert found["headers"]["to"].startswith("p0@team.example, p1@team.example")
    assert found["headers"]["cc"] == "Ann <ann@copy.example>"
    assert found["envelope"]["mailFrom"] == "shop@example.com"
    assert "text" not in found


def test_a_new_address_has_a_form_without_plus(agent: Agent, house: House) -> None:
    """Mail to the form without + reaches the same tag, which a wait for the tag receives."""
    taken = agent.use("new_address")
    assert "+" not in taken["plusFree"]
    house.receive(taken["plusFree"])
    arrived = agent.use("wait_for_message", tag=taken["tag"], after=taken["cursor"])
    assert arrived["message"]["codes"] == ["482913"]
    assert agent.use("new_address", tag="")["plusFree"] == house.address()
    assert "plusFree" not in agent.use("new_address", tag="a+b")


LINK = f"https://app.example.com/confirm?token={'7f3aZk91Qm0x' * 6}&user=4711"


def size_of(result: Any) -> int:
    """Return the number of bytes of both forms of a result."""
    structured = json.dumps(result["structuredContent"], ensure_ascii=False, separators=(",", ":"))
    return len((result["content"][0]["text"] + structured).encode())


def test_a_wait_and_a_list_are_short(agent: Agent, house: House) -> None:
    """A mail with a code and a link of 120 characters takes 900 bytes, and 20 mails 4 KB."""
    assert len(LINK) == 120
    author = "Example Shop <no-reply@shop.example.com>"
    raw = mail("Confirm your address", f"Your code is 482913, or open {LINK}", author)
    for _ in range(20):
        house.receive(raw=raw)
    result = agent.call("wait_for_message", {"after": "c0"}).result
    assert result["structuredContent"]["message"]["bestLink"] == LINK
    assert size_of(result) <= 900
    assert size_of(agent.call("list_messages").result) <= 4_096
