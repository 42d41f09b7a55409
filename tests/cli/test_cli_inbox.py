"""``mailcheck wait``, ``inbox`` and ``send-sample`` against a real daemon."""

import json
import re
import shlex
import smtplib
from pathlib import Path

import pytest

from tests.cli.command_line import Mailcheck, Outcome, run_command
from tests.servers.daemon import HOST, Daemon
from tests.servers.http_stub import Searching, serving
from tests.servers.webhook_receiver import running_receiver
from tests.table import rows

pytestmark = pytest.mark.end_to_end


def suggested(outcome: Outcome) -> list[str]:
    """Return the suggested command as a list of words."""
    (line,) = re.findall("^next: mailcheck (.*)$", outcome.errors, re.M)
    return shlex.split(line)


NO_MESSAGE = "00000000-0000-4000-8000-000000000000"

OVERVIEW = (
    r"2\S+Z  \S{36}  dev-\S+  sample@example\.com  Confirm your address\n"
    r"code: 482913\nlink: https://\S+  <- best link\n\n[\s\S]+"
)


@pytest.fixture
def mailcheck(daemon: Daemon, tmp_path: Path) -> Mailcheck:
    """Run ``mailcheck`` with the daemon's configuration."""
    daemon.request("DELETE", "/inbox/messages")
    config = tmp_path / "mailcheck.toml"
    config.write_text(
        f'[smtp]\nlisten = "{HOST}:{daemon.smtp_port}"\n'
        f'[web]\nlisten = "{HOST}:{daemon.http_port}"\n'
        f'[storage]\nstate_directory = "{daemon.folder / "var"}"\n'
    )

    def call(*arguments: str) -> Outcome:
        return run_command("--config", str(config), *arguments)

    return call


def test_a_sample_is_sent_and_waited_for(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """The command that ``send-sample`` suggests prints the code of the sent mail."""
    sent = mailcheck("send-sample")
    assert sent.status == 0
    assert sent.output == f"sent to {daemon.address('sample')}\n"
    waited = run_command(*suggested(sent))
    assert (waited.status, waited.output, waited.errors) == (0, "482913\n", "")


@rows(
    ("--code", r"482913\n"),
    ("--link", r"https://example\.com/confirm\?token=7f3a\n"),
    ("--json", r'\{\n  "id": "[\s\S]+"text": "[\s\S]+\}\n'),
    ("", OVERVIEW),
)
def test_what_a_wait_prints(mailcheck: Mailcheck, shape: str, pattern: str) -> None:
    """A wait prints the code, the link, the whole mail as JSON, or a summary."""
    mailcheck("send-sample")
    waited = mailcheck("wait", "--after", "c0", *([shape] if shape else []))
    assert waited.status == 0
    assert re.fullmatch(pattern, waited.output), waited.output


def test_filters_of_a_wait(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """A wait with filters that do not match is status 1, and lists the mail that arrived."""
    mailcheck("send-sample", daemon.address("one"))
    found = mailcheck("wait", "--after=c0", "--tag=one", "--from=sample", "--subject=confirm")
    assert found.status == 0
    vain = mailcheck("wait", "--after=c0", "--tag=once", "--timeout=1")
    assert (vain.status, vain.output) == (1, "")
    assert "one" in vain.errors


def test_an_inbox_is_listed(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """``inbox`` has a line for each mail, newest first, and shows a mail by its id."""
    empty = mailcheck("inbox")
    assert (empty.status, empty.output) == (0, "")
    assert empty.errors.startswith("mailcheck: the inbox is empty: send mail to dev-")
    assert mailcheck("inbox", "--tag=x").errors == "mailcheck: no mail matches\n"
    for tag in ("a", "b"):
        mailcheck("send-sample", daemon.address(tag))
    lines = mailcheck("inbox").lines
    assert [line.split()[2] for line in lines] == [daemon.address("b"), daemon.address("a")]
    assert mailcheck("inbox", "--tag", "a").lines == lines[1:]
    assert mailcheck("inbox", "--limit", "1").lines == lines[:1]
    assert mailcheck("inbox", "-q", "tag:a confirm newer:1h").lines == lines[1:]
    assert mailcheck("inbox", "--query", "is:read").output == ""
    message_id = lines[0].split()[1]
    for words in (["show", message_id], [message_id], [message_id[:13]], ["show", message_id[:13]]):
        assert mailcheck("inbox", *words, "--code").output == "482913\n"
    assert mailcheck("inbox", "list").lines == lines
    listed = json.loads(mailcheck("inbox", "--json").output)
    assert listed == daemon.get("/inbox/messages", limit=20).json
    assert listed["messages"][0]["id"] == message_id
    written = mailcheck("inbox", "--jsonl").lines
    assert [json.loads(line) for line in written] == listed["messages"]
    ids = [one["id"] for one in listed["messages"]]
    assert "text" in json.loads(mailcheck("inbox", ids[0], "--json").output)
    both = json.loads(mailcheck("inbox", *ids, "--json").output)["messages"]
    assert [one["id"] for one in both] == ids
    assert "text" in json.loads(mailcheck("inbox", ids[0], "--jsonl").output)
    assert json.loads(mailcheck("inbox", "--tag", "none", "--json").output)["messages"] == []


@rows(
    (["lst"], "lst is not the id of a message; did you mean `inbox list`?"),
    (["show"], "name the mail to show: mailcheck inbox show ID"),
    (["list", "0198a2c4"], "`inbox list` takes no ids; `inbox show ID` shows a mail"),
    (["show", "hello"], "hello is not the id of a message; `inbox list` shows the ids"),
    (["0000000"], "no message has an id that begins with 0000000"),
    (["delete", "0000000"], "no message has an id that begins with 0000000"),
)
def test_a_word_that_is_no_id_is_told(mailcheck: Mailcheck, words: list[str], hint: str) -> None:
    """A word that is neither an action nor an id is a usage error."""
    outcome = mailcheck("inbox", *words)
    assert (outcome.status, outcome.output) == (2, "")
    assert hint in outcome.errors


def test_all_pages_are_listed(mailcheck: Mailcheck, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list says how many mails it leaves out; ``--all`` follows the pages to the end."""
    monkeypatch.setenv("MAILCHECK_API_KEY", "mck_key")
    with serving(Searching) as url:
        page = mailcheck("inbox", "--jsonl", "--url", url)
        whole = mailcheck("inbox", "--all", "--json", "--url", url)
        lines = mailcheck("inbox", "--all", "--jsonl", "--url", url)
        last = mailcheck("inbox", "--page", "2", "--json", "--url", url)
    assert page.errors == "100 of 101 mails; --all lists all of them, and --page 2 the next ones\n"
    found = json.loads(whole.output)
    ids = [one["id"] for one in found["messages"]]
    assert (len(ids), len(set(ids))) == (101, 101)
    assert (found["total"], found["nextPage"], whole.errors) == (101, None, "")
    assert [json.loads(line)["id"] for line in lines.lines] == ids
    assert [one["id"] for one in json.loads(last.output)["messages"]] == ["m100"]


def test_a_search_says_what_it_did_not_look_into(
    mailcheck: Mailcheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mail that has just come may match as well: a list that looks into mails does not hide it."""
    monkeypatch.setenv("MAILCHECK_API_KEY", "mck_key")
    with serving(Searching) as url:
        searched = mailcheck("inbox", "--json", "-q", "cherry", "--url", url)
        listed = mailcheck("inbox", "--json", "--url", url)
    found = json.loads(searched.output)
    assert (searched.status, len(found["messages"]), found["notSearched"]) == (0, 100, 2)
    assert searched.errors == ("2 new mails have not been searched yet; run the command again\n")
    assert listed.errors == ""


def test_an_address_is_taken_and_waited_for(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """``new`` prints an address with its cursor; the wait it suggests gets the mail to it."""
    taken = mailcheck("new", "signup")
    address, cursor = taken.output.split()
    assert (address, cursor) == (daemon.address("signup"), daemon.cursor())
    mailcheck("send-sample", address)
    waited = run_command(*suggested(taken), "--code")
    assert (waited.status, waited.output, waited.errors) == (0, "482913\n", "")
    unused = json.loads(mailcheck("new", "--json").output)
    assert unused["email"] == unused["address"] == daemon.address(unused["tag"])
    assert mailcheck("new").output.split()[0] != unused["email"]


def test_a_wait_looks_back_ten_minutes(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """Without a cursor the newest mail of the last ten minutes counts, and its age is printed."""
    for tag in ("a", "b", "a"):
        mailcheck("send-sample", daemon.address(tag))
    newest = mailcheck("inbox", "--tag", "a").lines[0]
    waited = mailcheck("wait", "--to", daemon.address("a"))
    assert (waited.status, waited.lines[0]) == (0, newest)
    assert re.fullmatch(r"it arrived \d+ s ago; --new waits for the next one\n", waited.errors)
    assert "text" in json.loads(mailcheck("wait", "--json").output)
    assert mailcheck("wait", "--new", "--timeout", "1").status == 1


def test_several_mails_or_none(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """``--count`` prints a line for each, the oldest first; ``--none`` expects that none comes."""
    for tag in ("a", "b", "a"):
        mailcheck("send-sample", daemon.address(tag))
    lines = mailcheck("inbox").lines[::-1]
    assert mailcheck("wait", "--count", "2", "--after", "c0").lines == lines[:2]
    assert mailcheck("wait", "--count", "2").lines == lines[1:]
    assert mailcheck("wait", "--count", "2", "--tag", "a", "--code").lines == ["482913"] * 2
    assert mailcheck("wait", "--count", "4", "--timeout", "1").status == 1
    listed = mailcheck("wait", "--count", "1", "--jsonl", "--after", "c0").lines
    assert [json.loads(line)["id"] for line in listed] == [lines[0].split()[1]]
    found = json.loads(mailcheck("wait", "--count", "2", "--json", "--after", "c0").output)
    assert [one["id"] for one in found["messages"]] == [line.split()[1] for line in lines[:2]]
    assert found["cursor"] == found["messages"][1]["cursor"]
    quiet = mailcheck("wait", "--none", "--timeout", "1")
    assert (quiet.status, quiet.output, quiet.errors) == (0, "", "")
    loud = mailcheck("wait", "--none", "--after", "c0", "--tag", "b")
    assert (loud.status, loud.errors.splitlines()[0]) == (1, lines[1])


def test_mails_are_deleted(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """Messages are deleted by id, by tag, or all of them."""
    for tag in ("a", "b", "b", "c", "d"):
        mailcheck("send-sample", daemon.address(tag))
    ids = [line.split()[1] for line in mailcheck("inbox").lines]
    assert mailcheck("inbox", "delete", *ids[:2]).errors == "deleted: 2\n"
    assert mailcheck("inbox", "delete", "--tag", "b").errors == "deleted: 2\n"
    assert [line.split()[1] for line in mailcheck("inbox").lines] == ids[4:]
    assert mailcheck("inbox", "delete", "--all").status == 0
    assert daemon.total() == 0


def test_the_newest_code(mailcheck: Mailcheck) -> None:
    """``inbox --code`` and ``--link`` without an id use the newest mail."""
    mailcheck("send-sample")
    mailcheck("send-sample")
    assert mailcheck("inbox", "--code").output == "482913\n"
    assert mailcheck("inbox", "--link").lines == ["https://example.com/confirm?token=7f3a"]


def test_mail_is_handed_in_where_the_daemon_says(daemon: Daemon, tmp_path: Path) -> None:
    """``send-sample`` and ``test`` ask the daemon for its ports, whatever is configured locally."""
    reach = ["--url", f"http://{HOST}:{daemon.http_port}"]
    reach += ["--key-file", str(daemon.folder / "var" / "api-key")]
    assert run_command("send-sample", *reach).status == 0
    told = run_command("test", "--timeout", "1", *reach)
    assert f"swaks --server {HOST}:{daemon.smtp_port} " in told.errors
    made = json.loads(run_command("test", "--no-wait", "--json", *reach).output)
    assert made["email"] == made["address"]


@rows(
    (["wait", "--after", "nonsense"], 2, "after must be a cursor"),
    (["inbox", "--limit", "0"], 2, "must be an integer from 1 to 100"),
    (["inbox", "-q", "newer:yesterday"], 2, "you sent newer:yesterday"),
    (["inbox", NO_MESSAGE], 1, "no such message"),
    (["send-sample", "nobody@elsewhere.example"], 1, "did not accept the mail"),
    (["send-sample", "--server", "nonsense"], 2, "host:port"),
    (["send-sample", "--server", f"{HOST}:1"], 3, "cannot be reached"),
    (["send-sample", "--url", f"http://{HOST}:1"], 3, "is it running?"),
    (["new", "--url", f"http://{HOST}:1"], 3, "cannot be reached"),
    (["wait", "--url", f"http://{HOST}:1"], 3, "start it with `mailcheck serve`"),
    (["wait", "--new", "--after", "c0"], 2, "not allowed with"),
    (["wait", "--none", "--count", "2"], 2, "not allowed with"),
    (["wait", "--count", "101"], 2, "must be an integer from 1 to 100"),
    (["new", "two words"], 2, "tag"),
    (["inbox", "--all", "--limit", "3"], 2, "remove --limit and --page"),
    (["inbox", NO_MESSAGE, "--all"], 2, "remove it, or the ids"),
    (["inbox", "--page", "0"], 2, "must be an integer from 1"),
    (["inbox", "--json", "--jsonl"], 2, "not allowed with"),
    (["inbox", "--code"], 1, "the inbox is empty"),
    (["inbox", "delete"], 2, "name the mails to delete"),
    (["inbox", "delete", "--all", "--tag", "a"], 2, "name the mails to delete"),
    (["inbox", "delete", "--all", "-q", ""], 2, "name the mails to delete"),
    (["inbox", "delete", "--all", "--limit", "1"], 2, "name the mails to delete"),
    (["inbox", "delete", "--tag", "a", "--page", "2"], 2, "name the mails to delete"),
    (["inbox", "delete", NO_MESSAGE], 1, "no such message"),
    (["wait", "--key-file", "none"], 2, "no API key"),
    (["wait", "--code", "--link"], 2, "not allowed with"),
)
def test_problems(mailcheck: Mailcheck, arguments: list[str], status: int, error: str) -> None:
    """Status 2 is wrong usage, 1 a failure, 3 an unreachable daemon."""
    outcome = mailcheck(*arguments)
    assert (outcome.status, outcome.output) == (status, "")
    assert error in outcome.errors
    assert "Traceback" not in outcome.errors


def test_a_mail_without_a_code(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """A mail without a code is an error for ``--code``, not an empty line."""
    with smtplib.SMTP(HOST, daemon.smtp_port) as smtp:
        smtp.sendmail("", [daemon.address()], "Content-Type: text/html\r\n\r\n<p>no code</p>")
    outcome = mailcheck("wait", "--after", "c0", "--code")
    assert (outcome.status, outcome.output) == (1, "")
    overview = mailcheck("wait", "--after", "c0")
    assert "(no subject)" in overview.output
    assert "(no text part" in overview.output


def test_the_key_and_the_address_from_the_environment(
    mailcheck: Mailcheck, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MAILCHECK_API_KEY and MAILCHECK_URL work without a configuration."""
    mailcheck("send-sample")
    monkeypatch.setenv("MAILCHECK_URL", f"http://{HOST}:{daemon.http_port}")
    assert run_command("inbox").status == 2
    monkeypatch.setenv("MAILCHECK_API_KEY", daemon.key)
    assert len(run_command("inbox").lines) == 1
    monkeypatch.setenv("MAILCHECK_API_KEY", "wrong")
    outcome = run_command("inbox")
    assert outcome.status == 3
    assert "key" in outcome.errors


def test_webhooks(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """A webhook is created, tested as suggested, gets its mail, gets it again, and is deleted."""
    with running_receiver() as receiver:
        url = f"{receiver.url}/mail"
        made = mailcheck("webhook", "add", url, "--tag", "hook", "--from", "samp")
        assert made.status == 0, made
        webhook, receiver.secrets["/mail"] = made.output.split()
        tried = run_command(*suggested(made))
        assert (tried.status, tried.output[:17]) == (0, "accepted with 204")
        mailcheck("send-sample", daemon.address("hook"))
        mailcheck("send-sample", daemon.address("other"))
        hooked = mailcheck("inbox", "--tag", "hook", "--jsonl").output
        receiver.wait_for("/mail", 2)
        replayed = mailcheck("webhook", "replay", webhook)
        assert replayed.errors == f"{webhook}: sending the mail after c0 again\n"
        got = receiver.wait_for("/mail", 3)
        assert all(one.is_signed for one in got)
        assert [one.message["tag"] for one in got] == ["webhook-test", "hook", "hook"]
        assert json.loads(hooked)["id"] == got[2].message["id"]
        receiver.statuses["/mail"] = 503
        refused = mailcheck("webhook", "test", webhook)
        assert (refused.status, refused.output) == (1, "")
        assert refused.errors == "mailcheck: it was not accepted: it answered 503\n"
        listed = mailcheck("webhook", "list").lines
        assert [line.split()[0] for line in listed] == [webhook]
        assert listed[0].endswith(f"{url}  tag=hook  from=samp")
        assert mailcheck("webhook", "secret", webhook).output.startswith("whsec_")
        assert mailcheck("webhook", "resume", webhook).status == 0
        assert mailcheck("webhook", "remove", webhook).errors == f"{webhook}: removed\n"
    assert json.loads(mailcheck("webhook", "list", "--json").output) == {"webhooks": []}
    assert mailcheck("webhook", "remove", webhook).status == 1
    assert mailcheck("webhook", "add", "ftp://example.com").status == 2
