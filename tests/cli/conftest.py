"""Fixtures of the command line, with the daemon's files in a folder of the test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.workers.scheduling import DirectWorker
from tests.cli.command_line import Mailcheck, Outcome, run_command
from tests.servers.daemon import Daemon, running_daemon


@pytest.fixture(autouse=True)
def _no_settings_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove the options from the environment, and change to an empty folder."""
    for name in list(os.environ):
        if name.startswith("MAILCHECK_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for all commands of a process. It has no DNS, and its inbox has mail of others."""
    options = {"spamassassin_spamd": "off", "webhooks_allow": ["developer=127.0.0.0/8"]}
    with running_daemon(tmp_path_factory.mktemp("daemon"), **options) as daemon:
        yield daemon


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The path of the database, whose folder does not exist yet."""
    return tmp_path / "var" / "mail.db"


@pytest.fixture
def config_file(tmp_path: Path, database: Path) -> Path:
    """A configuration file."""
    path = tmp_path / "mailcheck.toml"
    path.write_text(f'[storage]\nurl = "sqlite:{database}"\nmin_free = 0\n')
    return path


@pytest.fixture
def mailcheck(elsewhere: Mailcheck, database: Path) -> Mailcheck:
    """Run ``mailcheck`` with the configuration file, after a daemon has created its database."""
    database.parent.mkdir(exist_ok=True)
    if database.exists():
        return elsewhere
    engine = SqliteEngine(str(database), DirectWorker(), DirectWorker())
    engine.open()
    engine.close()
    return elsewhere


@pytest.fixture
def elsewhere(config_file: Path) -> Mailcheck:
    """Run ``mailcheck`` with the configuration file, where no daemon has run."""

    def call(*arguments: str) -> Outcome:
        return run_command("--config", str(config_file), *arguments)

    return call
