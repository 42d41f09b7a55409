"""``mailcheck wait``, ``inbox`` and ``send-sample`` against a real daemon."""

import json
import re
import smtplib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import Mailcheck, Outcome, run_command
from tests.servers.daemon import HOST, Daemon, running_daemon

pytestmark = pytest.mark.end_to_end


OVERVIEW = (
    r"2\S+Z  \S{36}  dev-\S+  sample@example\.com  Confirm your address\n"
    r"code: 482913\nlink: https://\S+  <- the one to click\n\n[\s\S]+"
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for the tests of this module."""
    with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


@pytest.fixture
def mailcheck(daemon: Daemon, tmp_path: Path) -> Mailcheck:
    """Run ``mailcheck`` as on the daemon's machine, with its configuration."""
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
    """The command that ``send-sample`` suggests prints the code of the mail that it sent."""
    sent = mailcheck("send-sample")
    assert sent.status == 0
    assert sent.output == f"sent to {daemon.address('sample')}\n"
    suggested = sent.errors.removeprefix("next: mailcheck ").split()
    assert suggested[0] == "wait"
    waited = mailcheck(*suggested)
    assert (waited.status, waited.output, waited.errors) == (0, "482913\n", "")


@pytest.mark.parametrize(
    ("shape", "pattern"),
    [
        ("--code", r"482913\n"),
        ("--link", r"https://example\.com/confirm\?token=7f3a\n"),
        ("--json", r'\{\n  "id": "[\s\S]+"text": "[\s\S]+\}\n'),
        ("", OVERVIEW),
    ],
)
def test_what_a_wait_prints(mailcheck: Mailcheck, shape: str, pattern: str) -> None:
    """A wait prints the code, the link, the whole mail as JSON, or an overview of it."""
    mailcheck("send-sample")
    waited = mailcheck("wait", "--after", "c0", *([shape] if shape else []))
    assert waited.status == 0
    assert re.fullmatch(pattern, waited.output), waited.output


def test_filters_of_a_wait(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """Filters narrow what a wait takes; in vain it is status 1 and says what did come."""
    mailcheck("send-sample", daemon.address("one"))
    found = mailcheck("wait", "--after=c0", "--tag=one", "--from=sample", "--subject=confirm")
    assert found.status == 0
    vain = mailcheck("wait", "--after=c0", "--tag=two", "--timeout=1")
    assert (vain.status, vain.output) == (1, "")
    assert "one" in vain.errors


def test_an_inbox_is_listed(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """``inbox`` has a line for each mail, the newest first; an id shows that mail."""
    assert mailcheck("inbox").output == ""
    for tag in ("a", "b"):
        mailcheck("send-sample", daemon.address(tag))
    lines = mailcheck("inbox").lines
    assert [line.split()[2] for line in lines] == [daemon.address("b"), daemon.address("a")]
    assert mailcheck("inbox", "--tag", "a").lines == lines[1:]
    assert mailcheck("inbox", "--limit", "1").lines == lines[:1]
    assert mailcheck("inbox", "-q", "tag:a confirm newer:1h").lines == lines[1:]
    assert mailcheck("inbox", "--query", "is:read").output == ""
    message_id = lines[0].split()[1]
    assert mailcheck("inbox", message_id, "--code").output == "482913\n"
    listed = [json.loads(line) for line in mailcheck("inbox", "--json").lines]
    assert listed[0]["id"] == message_id


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["wait", "--after", "nonsense"], 2, "after is a cursor"),
        (["inbox", "--limit", "0"], 2, "limit is a whole number"),
        (["inbox", "-q", "newer:yesterday"], 2, "you sent newer:yesterday"),
        (["inbox", "none"], 1, "no such message"),
        (["send-sample", "nobody@elsewhere.example"], 1, "did not take the mail"),
        (["send-sample", "--server", "nonsense"], 2, "host:port"),
        (["send-sample", "--server", f"{HOST}:1"], 1, "did not take the mail"),
        (["wait", "--url", f"http://{HOST}:1"], 1, ""),
        (["wait", "--key-file", "none"], 2, "no API key"),
        (["wait", "--code", "--link"], 2, "not allowed with"),
    ],
)
def test_problems(mailcheck: Mailcheck, arguments: list[str], status: int, error: str) -> None:
    """What was asked wrongly is status 2, what went wrong is 1; both are told in a line."""
    outcome = mailcheck(*arguments)
    assert (outcome.status, outcome.output) == (status, "")
    assert error in outcome.errors
    assert "Traceback" not in outcome.errors


def test_a_mail_without_a_code(mailcheck: Mailcheck, daemon: Daemon) -> None:
    """Asking for the code of a mail that has none is a problem, not an empty line."""
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
    """MAILCHECK_API_KEY and MAILCHECK_URL serve where there is no configuration."""
    mailcheck("send-sample")
    monkeypatch.setenv("MAILCHECK_URL", f"http://{HOST}:{daemon.http_port}")
    assert run_command("inbox").status == 2
    monkeypatch.setenv("MAILCHECK_API_KEY", daemon.key)
    assert len(run_command("inbox").lines) == 1
    monkeypatch.setenv("MAILCHECK_API_KEY", "wrong")
    outcome = run_command("inbox")
    assert outcome.status == 1
    assert "key" in outcome.errors
