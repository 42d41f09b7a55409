"""``mailcheck account invite`` and ``mailcheck account set-password``."""

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mailcheck.assembly.accounts import AccountParts
from mailcheck.cli.access.store_access import with_accounts
from mailcheck.config.reading import load_config
from tests.cli.command_line import Mailcheck
from tests.table import rows

LINK = re.compile(r"http://127\.0\.0\.1:8080/sign-up\?invitation=([a-z2-7]{32})\n")

Ask = Callable[[Callable[[AccountParts], Any]], Any]


@pytest.fixture
def ask(config_file: Path) -> Ask:
    """Call the daemon's operations on the store that the commands wrote to."""

    def call(question: Callable[[AccountParts], Any]) -> Any:
        return with_accounts(load_config(config_file, {}), question)

    return call


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Provide text on the standard input of commands."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def is_password(ask: Ask, password: str) -> bool:
    """Return whether a password is that of alice."""

    async def look(accounts: AccountParts) -> bool:
        account = await accounts.keep.find("alice")
        return await accounts.sign_in.is_password(account, password)

    return bool(ask(look))


def test_an_invitation(mailcheck: Mailcheck, ask: Ask) -> None:
    """Standard output has only the link, and its code is an invitation."""
    invited = mailcheck("account", "invite")
    assert invited.status == 0
    found = LINK.fullmatch(invited.output)
    assert found is not None
    assert "it can be used once, within 7 days" in invited.errors

    async def require(accounts: AccountParts) -> None:
        assert found is not None
        await accounts.invitations.require(found[1])

    ask(require)
    assert mailcheck("account", "invite").output != invited.output


def test_an_invitation_leads_to_the_daemon_of_the_folder(mailcheck: Mailcheck) -> None:
    """The link has the URL of the running daemon."""
    Path("var").mkdir(exist_ok=True)
    Path("var", "url").write_text("http://127.0.0.1:18080\n")
    assert mailcheck("account", "invite").output.startswith("http://127.0.0.1:18080/sign-up?")


def test_an_invitation_nobody_can_use(mailcheck: Mailcheck, config_file: Path) -> None:
    """If registration is closed, the command says so."""
    config_file.write_text(config_file.read_text() + '[accounts]\nregistration = "closed"\n')
    assert "registration is closed" in mailcheck("account", "invite").errors


def test_a_password_is_set(mailcheck: Mailcheck, ask: Ask, typed: Callable[[str], None]) -> None:
    """The password is read from standard input with its spaces, and is never printed."""
    mailcheck("account", "add", "alice")
    for password in ("battery staple", "correct horse "):
        typed(f"{password}\nmore\n")
        done = mailcheck("account", "set-password", "alice")
        assert (done.status, done.output) == (0, "")
        assert password not in done.errors
    assert is_password(ask, "correct horse ")
    assert not is_password(ask, "battery staple")


def test_a_password_is_made_up(mailcheck: Mailcheck, ask: Ask) -> None:
    """A generated password is printed alone, and works."""
    mailcheck("account", "add", "alice")
    done = mailcheck("account", "set-password", "alice", "--generate")
    assert done.status == 0
    assert re.fullmatch(r"([a-z2-7]{4}-){3}[a-z2-7]{4}\n", done.output)
    assert is_password(ask, done.output.strip())


@rows(
    ("alice", "short", "at least 10"),
    ("alice", "", "at least 10"),
    ("bob", "x" * 20, "too easy to guess"),
)
def test_a_password_that_will_not_do(
    mailcheck: Mailcheck, typed: Callable[[str], None], name: str, password: str, problem: str
) -> None:
    """An unsuitable password is an error with status 1."""
    mailcheck("account", "add", name)
    typed(f"{password}\n")
    done = mailcheck("account", "set-password", name)
    assert done.status == 1
    assert problem in done.errors


def test_nobody_to_set_a_password_for(mailcheck: Mailcheck, typed: Callable[[str], None]) -> None:
    """A missing account is named."""
    typed("correct horse\n")
    done = mailcheck("account", "set-password", "bob")
    assert done.status == 1
    assert "'bob'" in done.errors
