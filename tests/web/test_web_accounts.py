"""Accounts and the audit log over the REST API."""

from twisted.logger import capturedLogs, formatEvent

from mailcheck.core.audit import Actor
from mailcheck.core.projects import Role
from tests.house import House, result_of, run
from tests.web.test_web_projects import Team, team

__all__ = ["team"]


def test_an_account_is_created_changed_and_deleted(team: Team) -> None:
    """The operator manages accounts; a name is deleted only with a confirmation."""
    key = team.of_operator
    made = team.send("POST", "/accounts", key, name="carol@example.com").json
    one = f"/accounts/{made['id']}"
    assert made["isProject"] is False
    changed = team.send("PATCH", one, key, maxMessages=5, retentionHours=48).json
    assert (changed["maxMessages"], changed["maxBytes"], changed["retentionHours"]) == (5, None, 48)
    changed = team.send("PATCH", one, key, maxMessages=None, name="carol").json
    assert (changed["maxMessages"], changed["retentionHours"], changed["name"]) == (
        None,
        48,
        "carol",
    )
    assert team.send("PATCH", one, key, name="ann").status == 409
    link = team.send("POST", f"{one}/sign-in-link", key).json["url"]
    code = link.partition("code=")[2]
    signed_in = run(team.house.assembly.accounts.sign_in.follow_link(code, "192.0.2.7"))
    assert signed_in.account.id == made["id"]
    assert team.send("GET", one, key).json["sessions"] == 1
    assert team.send("POST", f"{one}/end-access", key).json["sessions"] == 1
    assert team.send("GET", one, key).json["sessions"] == 0
    assert team.send("PUT", f"{one}/identity", key, subject="x").status == 403
    assert team.send("DELETE", f"{one}?name=carol@example.com", key).status == 400
    assert team.send("DELETE", f"{one}?name=carol", key).status == 200
    assert team.send("GET", one, key).status == 404


def test_a_disabled_account_is_refused_and_keys_in_projects_go_on(team: Team) -> None:
    """Disabling refuses the own keys; a key that the person made in a project stays valid."""
    key, bob = team.of_operator, f"/accounts/{team.bob.id}"
    run(team.house.assembly.accounts.projects.set_member(team.shop, team.bob, Role.OWNER))
    of_bob = team.key(team.bob, ["project:admin", "inbox:read"])
    keys = f"/projects/{team.shop.id}/keys"
    made = team.send("POST", keys, of_bob, name="of bob", scopes=["inbox:read"]).json
    assert team.send("GET", bob, key).json["sharedKeys"] == 1
    assert team.send("POST", f"{bob}/disable", key).json["disabledAt"] is not None
    assert team.send("GET", "/projects", of_bob).status == 401
    assert team.house.get("/inbox", key=made["secret"]).status == 200
    (listed,) = (
        one for one in team.send("GET", keys, team.of_ann).json["keys"] if one["id"] == made["id"]
    )
    assert listed["madeBy"] == {"id": team.bob.id, "name": "bob", "hasLeft": True}
    assert team.send("POST", f"{bob}/enable", key).json["disabledAt"] is None
    assert team.send("GET", "/projects", of_bob).status == 200
    operator = f"/accounts/{team.house.account.id}"
    assert team.send("POST", f"{operator}/disable", key).status == 409


def test_the_list_is_searched_and_sorted(team: Team) -> None:
    """Names are searched in any case, and the order is chosen."""

    def names(query: str) -> list[str]:
        found = team.send("GET", f"/accounts?{query}", team.of_operator).json
        return [one["name"] for one in found["accounts"]]

    assert names("") == ["ann", "bob", "first", "lab", "shop"]
    assert names("kind=project") == ["lab", "shop"]
    assert names("search=AN&kind=person") == ["ann"]
    team.house.receive(team.house.address(account=team.bob))
    assert names("sort=largest")[0] == "bob"
    assert names("limit=2&page=2") == ["first", "lab"]


def test_only_the_operator_sees_accounts(team: Team) -> None:
    """A key with the scope of an account that lost the role is refused."""
    assert team.send("GET", "/accounts", team.of_ann).status == 403
    run(team.house.assembly.accounts.keep.make_operator(team.ann))
    refused = team.send("GET", "/accounts", team.of_operator)
    assert (refused.status, "operator" in refused.json["error"]) == (403, True)


def test_the_audit_log_is_read_with_a_cursor(team: Team) -> None:
    """Entries come in the order of commits; each project reads its own ones only."""
    path = f"/projects/{team.shop.id}/audit"
    first = team.send("GET", f"{path}?after=a0&limit=1", team.of_shop).json
    assert [one["action"] for one in first["entries"]] == ["project created"]
    assert first["hasMore"]
    rest = team.send("GET", f"{path}?after={first['cursor']}", team.of_shop).json
    assert {one["account"] for one in rest["entries"]} == {"shop"}
    assert not rest["hasMore"]
    assert team.send("GET", f"{path}?after={rest['cursor']}", team.of_shop).json["entries"] == []
    team.send("POST", f"/projects/{team.shop.id}/keys", team.of_ann, name="x", scopes=["tests"])
    (added,) = team.send("GET", f"{path}?after={rest['cursor']}", team.of_shop).json["entries"]
    assert added["action"] == "key issued"
    assert added["actor"].startswith("API key ")
    chosen = team.send("GET", "/audit?action=project+created&after=a0", team.of_operator).json
    assert [one["account"] for one in chosen["entries"]] == ["shop", "lab"]
    newest = team.send("GET", "/audit?limit=1", team.of_operator).json
    assert newest["entries"] == [added]
    assert team.send("GET", f"/projects/{team.lab.id}/audit", team.of_shop).status == 404
    assert team.send("GET", "/audit", team.of_shop).status == 403


def test_a_wait_for_the_audit_log(team: Team) -> None:
    """A wait is answered by the next entry, and by an empty list when its time is over."""
    house, path = team.house, f"/projects/{team.shop.id}/audit"
    cursor = team.send("GET", path, team.of_shop).json["cursor"]
    pending = house.ask("GET", f"{path}?after={cursor}&timeout=20", key=team.of_shop)
    assert not pending.is_answered
    rename(team, "shop 2")
    (entry,) = pending.answer().json["entries"]
    assert (entry["action"], entry["actor"]) == ("account renamed", "boss")
    cursor = pending.answer().json["cursor"]
    pending = house.ask("GET", f"{path}?after={cursor}&timeout=2", key=team.of_shop)
    for _ in range(3):
        house.pass_time(1)
    assert pending.answer().json == {"entries": [], "cursor": cursor, "hasMore": False}


def test_a_wait_ends_with_its_key(team: Team) -> None:
    """A wait for the audit log ends as soon as its key is revoked."""
    house, path = team.house, f"/projects/{team.shop.id}/audit"
    pending = house.ask("GET", f"{path}?after=a9999&timeout=20", key=team.of_shop)
    keep = house.assembly.accounts.keep
    for key in run(keep.list_keys(team.shop)):
        run(keep.revoke_key(key.id))
    assert pending.answer().status == 401


def test_the_journal_has_each_entry_once(house: House) -> None:
    """Entries are written to the log of the daemon, and not a second time."""
    accounts = house.assembly.accounts
    with capturedLogs() as events:
        run(accounts.audit_journal.write())
    assert [event["action"] for event in events] == ["account created", "key issued"]
    assert str(formatEvent(events[1])).startswith("audit: id=")
    assert result_of(accounts.audit_store.unjournaled(10)) == []
    run(accounts.keep.rename(house.account, "renamed", Actor("boss")))
    assert [one.actor for one in result_of(accounts.audit_store.unjournaled(10))] == ["boss"]
    run(accounts.audit_journal.write())
    assert result_of(accounts.audit_store.unjournaled(10)) == []


def rename(team: Team, name: str) -> None:
    """Rename the shop on the machine of the daemon."""
    run(team.house.assembly.accounts.keep.rename(team.shop, name, Actor("boss")))
