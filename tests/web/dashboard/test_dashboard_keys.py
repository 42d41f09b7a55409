"""API keys on the dashboard: created, shown once, listed and revoked."""

import ast
import json
import re
import shlex
from html import unescape

from mailcheck.operations.accounts.own_keys import MAX_KEYS
from tests.house import run
from tests.table import rows
from tests.web.dashboard.browser import NEW_KEY, Browser


def create(ann: Browser, name: str = "CI") -> str:
    """Create a key by the form and return its secret."""
    assert ann.submit("/keys", name=name).status == 200
    return ann.find(NEW_KEY)


def key_ids(ann: Browser) -> list[str]:
    """Return the ids of the listed keys, newest first."""
    return re.findall(r'action="/p/me/keys/([a-z2-7]+)/revoke"', ann.open("/keys").body.decode())


def test_a_key_from_the_dashboard_opens_the_api(ann: Browser) -> None:
    """A new key is shown, and works at once for the account's inbox."""
    secret = create(ann)
    account = run(ann.house.assembly.accounts.keep.find("ann"))
    body = ann.house.get("/inbox", key=secret).json
    assert body["address"].startswith(account.mailbox_name)


def test_how_to_connect(ann: Browser) -> None:
    """The page *Connect* has the same snippets, with a placeholder for the key."""
    secret, texts = snippets(ann)
    page = ann.open("/connect").body.decode()
    found = re.findall(r'<pre id="snippet-(\w+)"[^>]*>(.*?)</pre>', page, re.DOTALL)
    shown = {name: unescape(text).replace("YOUR_API_KEY", secret) for name, text in found}
    assert shown == texts
    assert secret not in page


def test_a_key_is_shown_once(ann: Browser) -> None:
    """After its creation only the first letters of a key are shown."""
    secret = create(ann, "Laptop")
    for path in ("/keys", "/", "/account"):
        assert secret not in ann.open(path).body.decode()
    assert "Laptop" in ann.read("/keys")
    assert f"{secret[:8]}…" in ann.page.text


def snippets(ann: Browser) -> tuple[str, dict[str, str]]:
    """Create a key; return its secret and the snippets."""
    page = ann.submit("/keys", name="CI").body.decode()
    found = re.findall(r'<pre id="snippet-(\w+)"[^>]*>(.*?)</pre>', page, re.DOTALL)
    return ann.find(NEW_KEY), {name: unescape(text) for name, text in found}


def test_snippets_contain_the_key(ann: Browser) -> None:
    """Each snippet contains the key and the address of this service, and can be copied."""
    secret, texts = snippets(ann)
    programs = {"curl", "python", "pytest", "javascript", "playwright", "claude", "mcp"}
    mailers = {"django", "rails", "laravel", "nodemailer"}
    assert set(texts) == programs | mailers
    for name, text in texts.items():
        assert secret in text
        assert ("2587" if name in mailers else "http://127.0.0.1:8080") in text
        assert f"snippet-{name}" in ann.page.ids
    for name in ("python", "pytest", "django"):
        ast.parse(texts[name])
    (server,) = json.loads(texts["mcp"])["mcpServers"].values()
    assert server["url"] == "http://127.0.0.1:8080/mcp"
    assert server["headers"] == {"Authorization": f"Bearer {secret}"}
    words = shlex.split(texts["claude"].replace("\\\n", " "))
    assert words[-1] == f"Authorization: Bearer {secret}"


def test_the_usage_of_a_key(ann: Browser) -> None:
    """The requests of today and of this minute are shown with both limits."""
    secret = create(ann)
    assert "never" in ann.read("/keys")
    assert "0 of 1,000 today" in ann.page.text
    for _ in range(3):
        ann.house.get("/inbox", key=secret)
    for _ in range(2):
        assert "3 of 1,000 today" in ann.read("/keys")
        assert "3 of 60 this minute" in ann.page.text
    assert ann.house.get("/inbox", key=secret).headers["x-ratelimit-remaining"] == "56"
    ann.house.pass_time(60)
    assert "4 of 1,000 today" in ann.read("/keys")
    assert "0 of 60 this minute" in ann.page.text
    assert "2026-11-21 12:00 UTC" in ann.page.text


def test_a_key_with_its_own_limits(ann: Browser) -> None:
    """A key with its own limits shows them."""
    accounts = ann.house.assembly.accounts.keep
    account = run(accounts.find("ann"))
    run(accounts.issue_key(account, "big", per_minute=6000, per_day=1_000_000))
    assert "0 of 1,000,000 today" in ann.read("/keys")
    assert "0 of 6,000 this minute" in ann.page.text


def test_a_limited_key(ann: Browser) -> None:
    """A key that was created with limits has them, and the page shows them."""
    answer = ann.submit(
        "/keys", name="CI", scope="inbox:read", tags="sign", tag_prefix="run-", days="7"
    )
    assert answer.status == 200
    secret, house = ann.find(NEW_KEY), ann.house
    assert house.get("/inbox/address?tag=run-1", key=secret).status == 200
    assert house.get("/inbox/address?tag=other", key=secret).status == 403
    assert house.get("/inbox/webhooks", key=secret).status == 403
    ann.open("/keys")
    rights = "inbox:read; the tag 'sign' or tags that begin with 'run-'"
    assert f"limited to {rights}" in ann.page.text
    assert "expires 2026-11-28 12:00 UTC" in ann.page.text
    house.pass_time(8 * 24 * 3600)
    assert house.ask("GET", "/inbox", key=secret).answer().status == 401


@rows(
    ({"tags": "sign", "scope": "tests"}, "can only have the scopes"),
    ({"tags": "no:tag"}, "is not a tag"),
    ({"tag_prefix": ".run"}, "does not begin a tag"),
    ({"scope": "everything"}, "is not a scope"),
    ({"days": "31"}, "Choose one of the offered times"),
)
def test_wrong_limits_of_a_key(ann: Browser, form: dict[str, str], problem: str) -> None:
    """A limit that makes no sense creates no key, and the page says why."""
    answer = ann.submit("/keys", name="CI", **form)
    assert answer.status == 400
    assert problem in unescape(answer.body.decode())
    assert key_ids(ann) == []


def test_revoking(ann: Browser) -> None:
    """A revoked key is not listed and rejected; other keys still work."""
    first = create(ann, "first")
    ann.house.pass_time(1)
    second = create(ann, "second")
    newest, oldest = key_ids(ann)
    assert ann.follow(ann.submit(f"/keys/{oldest}/revoke")).status == 200
    assert "The key has been revoked" in ann.page.text
    assert key_ids(ann) == [newest]
    assert ann.house.ask("GET", "/inbox", key=first).answer().status == 401
    assert ann.house.ask("GET", "/inbox", key=second).answer().status == 200
    assert ann.submit(f"/keys/{oldest}/revoke").status == 404


def test_keys_of_others(ann: Browser, bob: Browser) -> None:
    """A key of another account is neither shown nor revoked: it is 404, like an unknown one."""
    create(ann, "a secret of ann")
    (mine,) = key_ids(ann)
    bob.open("/keys")
    assert "a secret of ann" not in bob.page.text
    answers = [bob.submit(f"/keys/{one}/revoke") for one in (mine, "a" * 13)]
    texts = {
        answer.body.decode().partition("<main")[2].partition("</main>")[0] for answer in answers
    }
    assert [answer.status for answer in answers] == [404, 404]
    assert len(texts) == 1
    assert key_ids(ann) == [mine]


@rows("", "   ", "x" * 61, "a\x07b", "a\u202eb", "a\r\nb")
def test_invalid_names(ann: Browser, name: str) -> None:
    """A key needs a printable name; the problem is shown beside the form."""
    assert ann.submit("/keys", name=name).status == 400
    assert "1 to 60 printable characters" in ann.page.text
    assert key_ids(ann) == []


def test_simulated_failures(ann: Browser) -> None:
    """The form of a key sets simulated failures and resets them; invalid values are rejected."""
    secret = create(ann)
    (key_id,) = key_ids(ann)
    for sent, status, kept in (("3", 303, 3), ("0", 400, 3), ("x", 400, 3), ("", 303, None)):
        assert ann.submit(f"/keys/{key_id}/fault", every=sent).status == status
        assert ann.house.get("/inbox/faults", key=secret).json["every"] == kept
        ann.open("/keys")
        assert ("rejects 1 of 3 mails" in ann.page.text) == (kept == 3)


def test_simulated_failures_of_another_account(ann: Browser) -> None:
    """The simulated failures of another account's key cannot be set."""
    create(ann)
    (theirs,) = run(ann.house.assembly.accounts.keep.list_keys(ann.house.account))
    assert ann.submit(f"/keys/{theirs.id}/fault", every="1").status == 404


def test_the_number_of_keys_is_limited(ann: Browser) -> None:
    """The number of valid keys of an account is limited."""
    for number in range(MAX_KEYS):
        create(ann, f"key {number}")
    assert ann.submit("/keys", name="one more").status == 409
    assert "at most 20 keys" in ann.page.text
    ann.submit(f"/keys/{key_ids(ann)[0]}/revoke")
    create(ann, "one more")


def test_a_key_is_rotated(ann: Browser) -> None:
    """The new key is shown once; the older one stays valid for the chosen time."""
    older = create(ann, "CI")
    (key_id,) = key_ids(ann)
    wrong = ann.submit(f"/p/me/keys/{key_id}/rotate", overlap="2")
    assert "choose one of the offered times" in wrong.body.decode().lower()
    ann.submit(f"/p/me/keys/{key_id}/rotate", overlap="1")
    newer = ann.find(NEW_KEY)
    for secret in (older, newer):
        assert ann.house.get("/inbox", key=secret).status == 200
    ann.house.pass_time(3_601)
    assert ann.house.get("/inbox", key=older).status == 401
    assert ann.house.get("/inbox", key=newer).status == 200


def test_limits_of_a_key(ann: Browser) -> None:
    """A key gets lower limits; only the operator sets higher ones."""
    refused = ann.submit("/keys", name="CI", per_day="1000000")
    assert "must be an integer from 1 to" in refused.body.decode()
    assert key_ids(ann) == []
    assert ann.submit("/keys", name="CI", per_minute="5", per_day="7").status == 200
    assert "0 of 7 today" in ann.open("/keys").body.decode()


def test_the_list_of_keys_is_searched_and_sorted(ann: Browser) -> None:
    """Keys are found by a part of their name, and shown in the chosen order."""
    for name in ("laptop", "Agent", "CI"):
        create(ann, name)
        ann.house.pass_time(1)

    def names(query: str) -> list[str]:
        return re.findall(r'<td class="name">(\w+)', ann.open(f"/keys?{query}").body.decode())

    assert names("") == ["CI", "Agent", "laptop"]
    assert names("sort=name") == ["Agent", "CI", "laptop"]
    assert names("search=agen") == ["Agent"]
    assert "No key has this name" in ann.open("/keys?search=x").body.decode()


def test_requests_by_day_are_shown(ann: Browser) -> None:
    """The page has a chart of the requests of all keys, with the numbers beside it."""
    secret = create(ann)
    assert "Requests by day" not in ann.open("/keys").body.decode()
    for _ in range(3):
        ann.house.get("/inbox", key=secret)
    run(ann.house.assembly.accounts.authenticator.save_key_uses())
    shown = ann.open("/keys").body.decode()
    assert "at most 3 requests a day" in shown
    assert "Requests by day" in shown
