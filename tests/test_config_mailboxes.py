"""The mailboxes that reports are fetched from, in the configuration."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from mailcheck.assembly.reports import report_mailboxes
from mailcheck.config.options import Config, MailboxOptions, ReportsOptions
from mailcheck.config.reading import ConfigError, load_config
from mailcheck.core.domains.report_mailboxes import ReportMailbox, Then, Tls, TokenGrant
from mailcheck.core.instants import MINUTE
from tests.table import rows

IMAP = {"account": "shop", "imap": "imap.example.com:993", "user": "r@example.com"}
PASSWORD = {"password": "secret"}
OAUTH = {"token_url": "https://login.example.com/token", "client_id": "c", "client_secret": "k"}
MAILDIR = {"account": "shop", "maildir": "/var/mail/reports"}


def load(
    folder: Path, *tables: Mapping[str, object], **variables: str
) -> tuple[MailboxOptions, ...]:
    """Load a file with tables."""
    path = folder / "mailcheck.toml"
    lines = []
    for table in tables:
        lines += ["[[reports.mailboxes]]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    path.write_text("\n".join(lines))
    return load_config(path, variables).reports.mailboxes


def test_mailboxes(tmp_path: Path) -> None:
    """Each table is a mailbox, with a password or with OAuth, or a Maildir."""
    token = tmp_path / "token"
    token.write_text("refresh\n")
    tables: list[Mapping[str, object]] = [
        IMAP | PASSWORD | {"then": "move", "move_to": "Done", "every_minutes": 30},
        IMAP | OAUTH | {"folder": "Reports", "refresh_token_file": str(token)},
        MAILDIR,
    ]
    config = load(tmp_path, *tables)
    assert report_mailboxes(_with(config)) == (
        ReportMailbox(
            "shop",
            "imap.example.com",
            993,
            user="r@example.com",
            password="secret",
            then=Then.MOVE,
            move_to="Done",
            interval=30 * MINUTE,
        ),
        ReportMailbox(
            "shop",
            "imap.example.com",
            993,
            Tls.IMPLICIT,
            user="r@example.com",
            grant=TokenGrant("https://login.example.com/token", "c", "k", "refresh"),
            folder="Reports",
        ),
        ReportMailbox("shop", maildir="/var/mail/reports"),
    )


def _with(mailboxes: tuple[MailboxOptions, ...]) -> Config:
    return Config(reports=ReportsOptions(mailboxes=mailboxes))


def test_a_variable(tmp_path: Path) -> None:
    """The environment can have the tables, too."""
    text = '[{account = "shop", maildir = "/mail"}]'
    (found,) = load(tmp_path, MAILCHECK_REPORTS_MAILBOXES=text)
    assert found == MailboxOptions("shop", maildir="/mail")


@rows(
    (IMAP | PASSWORD | {"acount": "x"}, "table 1 has no option acount; did you mean account"),
    (IMAP | {"password": "a", "password_file": "b"}, "set either password or password_file"),
    (IMAP | {"password_file": "/nowhere"}, "the file /nowhere cannot be read"),
    (IMAP | PASSWORD | {"then": "delete"}, "then must be one of mark, move, leave, not 'delete'"),
    (IMAP | PASSWORD | {"every_minutes": 0}, "every_minutes must be at least 1"),
    ({"imap": "a.example:993"}, "account is empty"),
    ({"account": "shop"}, "set either imap or maildir"),
    (IMAP | PASSWORD | MAILDIR, "set either imap or maildir"),
    (IMAP | PASSWORD | {"imap": "a.example"}, "imap 'a.example': write host:port"),
    (IMAP | PASSWORD | {"user": ""}, "requires user"),
    (IMAP | PASSWORD | {"user": "a\nb"}, "user contains a control character"),
    (IMAP, r"set either password \(or password_file\) or token_url"),
    (IMAP | PASSWORD | OAUTH, r"set either password \(or password_file\) or token_url"),
    (IMAP | PASSWORD | {"tls": "none"}, "tls = none is for a server on this machine"),
    (IMAP | PASSWORD | {"then": "move"}, "then = move requires move_to"),
    (IMAP | PASSWORD | {"move_to": "Done"}, "then = move requires move_to"),
    (IMAP | PASSWORD | {"then": "move", "move_to": "INBOX"}, "move_to is the folder itself"),
    (IMAP | OAUTH | {"token_url": "http://a.example"}, "'http://a.example' is not an https URL"),
    (IMAP | OAUTH | {"client_id": ""}, "requires client_id"),
    (IMAP | OAUTH | {"client_secret": ""}, "requires client_secret, refresh_token or both"),
    (MAILDIR | {"maildir": "mail"}, "maildir 'mail' is not an absolute path"),
    (MAILDIR | {"password": "x"}, "password is not an option of a Maildir"),
    (MAILDIR | {"then": "leave"}, "then = leave is not possible in a Maildir"),
    (MAILDIR | {"then": "move", "move_to": MAILDIR["maildir"]}, "move_to is the Maildir itself"),
)
def test_wrong_tables(tmp_path: Path, table: dict[str, object], problem: str) -> None:
    """Each mistake is named with the line and the table, and no secret is shown."""
    with pytest.raises(ConfigError, match=problem) as caught:
        load(tmp_path, table)
    assert "line 1: " in str(caught.value)
    assert "table 1" in str(caught.value)
    assert "secret" not in str(caught.value).replace("client_secret", "")


def test_the_same_mailbox_twice(tmp_path: Path) -> None:
    """Two tables cannot mean the same mailbox."""
    with pytest.raises(ConfigError, match="table 2: is the mailbox of table 1"):
        load(tmp_path, IMAP | PASSWORD, IMAP | PASSWORD | {"account": "other"})


def test_a_single_table(tmp_path: Path) -> None:
    """A table in single brackets is a mistake, whose message does not show the password."""
    path = tmp_path / "mailcheck.toml"
    path.write_text("[reports.mailboxes]\npassword = 'secret'\n")
    with pytest.raises(ConfigError, match="list of tables, each with double brackets") as caught:
        load_config(path, {})
    assert "secret" not in str(caught.value)
