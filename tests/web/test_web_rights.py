"""Keys that are limited to scopes, to tags, or to a time."""

import re
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from mailcheck.assembly.doors.agents import build_tools
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.core.errors import InvalidParameter, NotPermitted
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.rights import Rights, Scope, make_rights
from tests.house import House, mail, result_of, run
from tests.table import rows
from tests.web.mcp.agent import APPS, Agent

PATHS = {
    "message_id": "01a1fc41-0219-76dd-ac7e-95beebac7c40",
    "attachment_id": "1",
    "test_id": "aaaaaaaaaaaaa",
    "webhook_id": "aaaaaaaaaaaaa",
    "route_id": "aaaaaaaaaaaaa",
    "watch_id": "aaaaaaaaaaaaa",
    "alert_id": "aaaaaaaaaaaaa",
    "report_id": "aaaaaaaaaaaaa",
    "project_id": "aaaaaaaaaaaaa",
    "account_id": "aaaaaaaaaaaaa",
    "invitation_id": "aaaaaaaaaaaaa",
    "key_id": "aaaaaaaaaaaaa",
}


EVERY = frozenset(Scope)


def limited_key(
    house: House, scopes: Sequence[str] = (), tags: Sequence[str] = (), prefix: str | None = None
) -> str:
    """Return a key of the first account with only these rights."""
    return house.issue_key(house.account, rights=make_rights(scopes, tags, prefix))


def keys_by_scopes(house: House) -> Callable[[frozenset[Scope]], str]:
    """Return a function that returns the key with some scopes, which is issued once."""
    return cache(lambda scopes: limited_key(house, sorted(scopes)))


def test_a_route_answers_only_keys_with_its_scopes(house: House) -> None:
    """A key with the scopes of a route is not 403; one with all scopes but one of those is."""
    key = keys_by_scopes(house)
    for route in build_routes(house.assembly):
        path = route.path
        for name, value in PATHS.items():
            path = path.replace(f"<{name}>", value)
        needed = frozenset(route.operation.scopes)
        pending = house.ask(route.method, path, key=key(needed))
        if pending.is_answered and "event-stream" not in pending.media_type:
            assert pending.answer().status != 403, (route.method, path)
        pending.hang_up()
        for lacking in needed:
            refusal = house.ask(route.method, path, key=key(EVERY - {lacking})).answer()
            assert refusal.status == 403, (route.method, path, lacking)
            assert lacking in refusal.json["error"]


def test_every_route_declares_a_scope(house: House) -> None:
    """No route is open to every limited key by mistake."""
    assert all(route.operation.scopes for route in build_routes(house.assembly))


def test_a_tool_answers_only_keys_with_its_scopes(house: House) -> None:
    """A key with all scopes but one of those of a tool is told which one it lacks."""
    key = keys_by_scopes(house)
    for tool in build_tools(house.assembly):
        assert tool.scopes
        for lacking in tool.scopes:
            agent = Agent(house, key=key(EVERY - {lacking}), extensions=APPS)
            assert f"does not have the scope {lacking}" in agent.fail(tool.name)


def test_a_key_without_scopes_may_do_everything(house: House) -> None:
    """A key that was issued without limits has all rights."""
    assert house.get("/inbox/messages").status == 200
    assert make_rights() == Rights(None, None)


def test_a_key_of_some_tags_sees_no_other_mail(house: House) -> None:
    """Lists, counts, waits, events and messages contain only mail to the tags of the key."""
    key = limited_key(house, tags=["Sign"], prefix="run-")
    for tag in ("sign", "run-1", "secret", "", "run"):
        house.receive(house.address(tag), raw=mail(subject=f"for {tag}"))
    everything = house.get("/inbox/messages").json["messages"]
    seen = house.get("/inbox/messages", key=key).json
    assert sorted(one["tag"] for one in seen["messages"]) == ["run-1", "sign"]
    assert seen["total"] == 2
    for query in ("tag=secret", "q=for", "subject=for", "tagPrefix=s", "is:read"):
        listed = house.get(f"/inbox/messages?{query}", key=key)
        if listed.status == 200:
            assert {one["tag"] for one in listed.json["messages"]} <= {"run-1", "sign"}
    overview = house.get("/inbox", key=key).json
    assert overview["total"] == 2
    assert sorted(one["tag"] for one in overview["tags"]) == ["run-1", "sign"]
    for one in everything:
        is_theirs = one["tag"] in ("sign", "run-1")
        for suffix in ("", "/raw", "/html", "/checks"):
            status = house.get(f"/inbox/messages/{one['id']}{suffix}", key=key).status
            assert (status == 200) is is_theirs, (one["tag"], suffix, status)
        for method, suffix in (("POST", "/share"), ("DELETE", "")):
            path = f"/inbox/messages/{one['id']}{suffix}"
            status = house.ask(method, path, key=key).answer().status
            assert (status == 200) is is_theirs
    house.receive(house.address("run-2"))
    assert house.ask("DELETE", "/inbox/messages", key=key).answer().json["deleted"] == 1
    left = house.get("/inbox/messages").json["messages"]
    assert sorted(one["tag"] for one in left) == ["", "run", "secret"]


def test_a_wait_with_a_key_of_some_tags(house: House) -> None:
    """A wait is woken by mail to its tags only, and its 408 does not reveal other mail."""
    key = limited_key(house, prefix="run-")
    cursor = house.get("/inbox", key=key).json["cursor"]
    pending = house.ask("GET", f"/inbox/wait?after={cursor}&timeout=5", key=key)
    house.receive(house.address("secret"), raw=mail(subject="private plans"))
    house.refuse("secret", "private reason")
    assert not pending.is_answered
    house.pass_time(6)
    answer = pending.answer()
    assert answer.status == 408
    assert "private" not in answer.body.decode()
    assert "secret" not in answer.body.decode()
    pending = house.ask("GET", f"/inbox/wait?after={cursor}&timeout=5", key=key)
    house.receive(house.address("run-7"))
    assert pending.answer().json["tag"] == "run-7"


def test_an_address_outside_of_the_tags_is_refused(house: House) -> None:
    """An address that the key could not read is 403, and the error names the tags."""
    key = limited_key(house, prefix="run-")
    answer = house.get("/inbox/address?tag=other", key=key)
    assert answer.status == 403
    assert "tags that begin with 'run-'" in answer.json["error"]
    assert house.get("/inbox/address?tag=run-a", key=key).status == 200
    assert house.get("/inbox/address?tag=run-a&unique=true", key=key).status == 200
    assert house.get("/inbox/address?unique=true", key=key).json["tag"].startswith("run-")
    assert Agent(house, key=key).use("new_address")["tag"].startswith("run-")


def test_an_agent_with_a_key_of_some_tags(house: House) -> None:
    """The tools find no message with another tag."""
    house.receive(house.address("secret"))
    house.receive(house.address("run-1"), raw=mail(subject="Mine"))
    ids = {one["tag"]: one["id"] for one in house.get("/inbox/messages").json["messages"]}
    agent = Agent(house, key=limited_key(house, prefix="run-"))
    listed = agent.use("list_messages")["messages"]
    assert [one["subject"] for one in listed] == ["Mine"]
    for tool in ("get_message", "extract", "share_link", "delete_message"):
        assert "no such message" in agent.fail(tool, id=ids["secret"])
        assert agent.use(tool, id=ids["run-1"])


def test_an_agent_reads_no_attachment_of_another_tag(house: House) -> None:
    """Attachments and links to them follow the scopes and tags of the key."""
    header = "Content-Type: application/pdf\r\nContent-Disposition: attachment"
    raw = f"Subject: x\r\n{header}\r\n\r\n%PDF".encode()
    for tag in ("secret", "run-1"):
        house.receive(house.address(tag), raw=raw)
    ids = {one["tag"]: one["id"] for one in house.get("/inbox/messages").json["messages"]}
    agent = Agent(house, key=limited_key(house, prefix="run-"))
    assert "no such message" in agent.fail("get_attachment", id=ids["secret"], attachmentId="1")
    assert agent.use("get_attachment", id=ids["run-1"], attachmentId="1")["downloadUrl"]


def test_an_expired_key_is_refused(house: House) -> None:
    """A key answers until it expires, then it is 401; a running wait ends with 401 too."""
    now = house.assembly.runtime.now()
    key = house.issue_key(house.account, expires_at=Instant(now + DAY))
    assert house.get("/inbox", key=key).status == 200
    house.pass_time(DAY / 1000 - 20)
    pending = house.ask("GET", "/inbox/events", key=key)
    house.pass_time(30)
    run(house.assembly.accounts.ended_access.check())
    assert "expired" in pending.answer().body.decode()
    answer = house.get("/inbox", key=key)
    assert answer.status == 401
    assert "expired at 20" in answer.json["error"]


@rows(
    (["inbox"], [], None, "'inbox' is not a scope; send one of domains, inbox:read"),
    ([], ["a b"], None, "'a b' is not a tag"),
    ([], [""], None, "it is empty"),
    ([], ["a"] * 51, None, "at most 50 tags; you sent 51"),
    ([], [], "", "it is empty"),
    ([], [], ".run", "'.run' does not begin a tag"),
    (["domains"], ["a"], None, "you sent domains"),
)
def test_wrong_rights(
    scopes: Sequence[str], tags: Sequence[str], prefix: str | None, problem: str
) -> None:
    """Rights that make no sense are rejected; the error says what to send."""
    with pytest.raises(InvalidParameter, match=re.escape(problem)):
        make_rights(scopes, tags, prefix)


def test_a_key_without_the_scope_to_write_submits_no_mail(house: House) -> None:
    """The submission port accepts only keys that may write to the inbox."""
    receiver = house.receiver
    with pytest.raises(NotPermitted, match="does not have the scope inbox:write"):
        result_of(receiver.authenticate("", limited_key(house, ["inbox:read"]), "192.0.2.7"))
    result_of(receiver.authenticate("", limited_key(house, ["inbox:write"]), "192.0.2.7"))
