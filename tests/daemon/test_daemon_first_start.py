"""The first start: account, API key and password, and the printed instructions."""

import io
import stat
from pathlib import Path

import pytest
from twisted.internet.testing import MemoryReactorClock

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import AccountsOptions
from mailcheck.core.identifiers import KEY_FILE, PASSWORD_FILE
from mailcheck.daemon.first_start import (
    ACCOUNT_NAME,
    RETRY,
    FirstStart,
    Shown,
)
from mailcheck.daemon.first_steps import FirstSteps
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.fakes.clock_and_randomness import repeatable_bytes
from tests.house import CHEAP_HASH, EmptyHouse, House, config_in_memory, result_of, run
from tests.table import rows

STEPS = FirstSteps(
    mail=("127.0.0.1:2525",),
    submission=(),
    imap=(),
    urls=PublicUrls("http://127.0.0.1:8080"),
    per_minute=60,
    per_day=1000,
    retention_hours=24.0,
)


CHEAP = AccountsOptions(password_cost=CHEAP_HASH)


class Output(io.StringIO):
    """An output that may be a terminal."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """Return whether the output is a terminal."""
        return self._is_terminal


class Laptop:
    """The store and state directory of a daemon that can be started several times."""

    def __init__(self, folder: Path, house: House) -> None:
        self.folder = folder
        self.house = house
        self.notes: list[str] = []
        self.reactor = MemoryReactorClock()
        self.keys = folder / KEY_FILE
        self.passwords = folder / PASSWORD_FILE

    def start(self, *, preset: str = "", is_terminal: bool = False) -> str:
        """Start the daemon and return its output."""
        self.output, self.reactor = Output(is_terminal), MemoryReactorClock()
        self.notes = []
        self.service = FirstStart(
            self.house.assembly.accounts.keep,
            self.house.assembly.accounts.sign_in,
            repeatable_bytes(),
            preset,
            self.folder,
            "mailcheck.example",
            STEPS,
            self.notes.append,
            self.reactor,
            self.output,
        )
        self.service.startService()
        assert (self.notes, self.output.getvalue()) == ([], "")
        self.reactor.run()
        return self.output.getvalue()

    def key(self) -> str:
        """Return the key in the state directory."""
        return self.keys.read_text().strip()

    def password(self) -> str:
        """Return the password in the state directory."""
        return self.passwords.read_text().strip()

    def opens_dashboard(self, password: str, name: str = ACCOUNT_NAME) -> bool:
        """Return whether this is the password of the account."""
        sign_in = self.house.assembly.accounts.sign_in
        account = run(self.house.assembly.accounts.keep.find(name))
        return bool(run(sign_in.is_password(account, password)))

    def is_valid(self, secret: str) -> bool:
        """Return whether the key is valid."""
        return bool(run(self.house.assembly.accounts.authenticator.identify(secret)))

    def count_keys(self) -> int:
        """Return the number of keys of all accounts."""
        accounts = self.house.assembly.accounts.keep
        return sum(len(run(accounts.list_keys(one))) for one in run(accounts.accounts()))


@pytest.fixture
def laptop(tmp_path: Path) -> Laptop:
    """A new state directory."""
    return Laptop(tmp_path / "var", EmptyHouse(config_in_memory(accounts=CHEAP)))


def test_the_first_start(laptop: Laptop) -> None:
    """The first start makes the operator's account, a key and a password, and prints no secret."""
    text = laptop.start()
    (account,) = run(laptop.house.assembly.accounts.keep.accounts())
    assert (account.name, account.is_operator) == (ACCOUNT_NAME, True)
    assert laptop.is_valid(laptop.key())
    assert laptop.opens_dashboard(laptop.password())
    for file in (laptop.keys, laptop.passwords):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text().strip() not in text
        assert str(file) in text
    assert f"{account.mailbox_name}@mailcheck.example" in text
    assert f"{account.mailbox_name}+signup@mailcheck.example" in text
    assert "http://127.0.0.1:8080/\n" in text
    assert f"sign in as developer, password: in {laptop.passwords}" in text


@pytest.mark.parametrize("preset", ["", "a key of our own choice"])
def test_secrets_are_shown_once_to_a_terminal(laptop: Laptop, preset: str) -> None:
    """A terminal gets the password once, and the key once unless it is preset."""
    shown = laptop.start(preset=preset, is_terminal=True)
    key, password = laptop.key(), laptop.password()
    assert (password in shown, key in shown) == (True, not preset)
    later = laptop.start(preset=preset, is_terminal=True)
    assert (password in later, key in later) == (False, False)
    assert str(laptop.passwords) in later
    assert laptop.password() == password
    assert laptop.opens_dashboard(password)


def test_a_password_of_ones_own(laptop: Laptop) -> None:
    """A changed password is kept, and the old file is no longer named."""
    laptop.start()
    (account,) = run(laptop.house.assembly.accounts.keep.accounts())
    run(laptop.house.assembly.accounts.sign_in.set_password(account, "my own password"))
    for _ in range(2):
        text = laptop.start(is_terminal=True)
        assert "password: as configured" in text
        assert str(laptop.passwords) not in text
        assert laptop.opens_dashboard("my own password")
        laptop.passwords.unlink(missing_ok=True)


def test_later_starts(laptop: Laptop) -> None:
    """Later starts keep the account and the key, and print the instructions again."""
    laptop.start()
    key = laptop.key()
    text = laptop.start()
    assert laptop.key() == key
    assert laptop.count_keys() == 1
    assert len(run(laptop.house.assembly.accounts.keep.accounts())) == 1
    assert "Try it in another terminal" in text


def test_a_key_file_that_has_gone(laptop: Laptop) -> None:
    """A lost key is replaced by a new one for the same account."""
    laptop.start()
    old = laptop.key()
    laptop.keys.unlink()
    laptop.start()
    assert laptop.key() != old
    assert laptop.is_valid(laptop.key())
    assert len(run(laptop.house.assembly.accounts.keep.accounts())) == 1


def test_a_key_file_of_another_database(laptop: Laptop) -> None:
    """A key that is unknown to the store is replaced, in a private file."""
    laptop.folder.mkdir()
    laptop.keys.write_text("mck_of_another_life\n")
    laptop.keys.chmod(0o644)
    laptop.start()
    assert laptop.is_valid(laptop.key())
    assert stat.S_IMODE(laptop.keys.stat().st_mode) == 0o600


def test_an_account_that_is_there(laptop: Laptop) -> None:
    """If accounts exist, the key is for the oldest one."""
    accounts = laptop.house.assembly.accounts.keep
    first = run(accounts.add("mine"))
    laptop.house.clock.advance(1)
    run(accounts.add("other"))
    text = laptop.start()
    assert first.mailbox_name in text
    assert [len(run(accounts.list_keys(one))) for one in run(accounts.accounts())] == [1, 0]


def test_a_preset_key(laptop: Laptop) -> None:
    """A preset key works, is written to the file and is not printed."""
    preset = "a key of our own choice"
    for _ in range(2):
        text = laptop.start(preset=preset, is_terminal=True)
        assert preset not in text
        assert laptop.key() == preset
        assert laptop.is_valid(preset)
        assert laptop.count_keys() == 1
        assert stat.S_IMODE(laptop.keys.stat().st_mode) == 0o600


def test_another_preset_key(laptop: Laptop) -> None:
    """A changed preset key works. The old one must be revoked by the operator."""
    laptop.start(preset="the first preset key")
    laptop.start(preset="the second preset key")
    assert laptop.key() == "the second preset key"
    assert laptop.is_valid("the first preset key")
    assert laptop.is_valid("the second preset key")


@pytest.mark.parametrize("preset", ["", "a key of our own choice"])
def test_a_folder_that_can_not_be_written(laptop: Laptop, preset: str) -> None:
    """A problem of the key's file is reported until the key can be written."""
    laptop.folder.write_text("no folder")
    assert laptop.start(preset=preset) == ""
    (problem,) = laptop.notes
    assert problem.startswith("[Errno ")
    laptop.folder.unlink()
    laptop.reactor.advance(RETRY)
    assert laptop.notes == [problem, ""]
    assert laptop.is_valid(laptop.key())
    assert laptop.count_keys() == 1
    assert "mailcheck is ready" in laptop.output.getvalue()


def test_a_store_that_is_away(laptop: Laptop) -> None:
    """A problem of the store is reported until it answers or the daemon stops."""
    result_of(laptop.house.assembly.runtime.engine.close())
    assert laptop.start() == ""
    laptop.reactor.advance(RETRY)
    assert len(laptop.notes) == 2
    assert all(laptop.notes)
    laptop.service.stopService()
    assert not laptop.reactor.getDelayedCalls()


def test_nothing_is_told_too_early(laptop: Laptop) -> None:
    """The account is reported as ready when its key works, before the output."""
    writer = BlockedWorker()
    house = EmptyHouse(
        config_in_memory(accounts=CHEAP), Workers(writer, DirectWorker(), DirectWorker())
    )
    held = Laptop(laptop.folder, house)
    writer.hold_calls()
    assert held.start(preset="a key of our own choice") == ""
    assert held.notes == []
    writer.let_go()
    assert held.notes == [""]
    assert held.is_valid("a key of our own choice")


def test_what_is_not_offered() -> None:
    """Missing listeners are reported as such."""
    steps = FirstSteps((), (), (), PublicUrls("http://x"), 1, 2, 0.5)
    nothing = Shown(None, None)
    key = Shown(Path("var/api-key"), None)
    text = steps("dev-abc@mailcheck.example", key, "ann", nothing)
    assert "not received" in text
    assert "not offered" in text
    assert "sign in as ann, password: as configured" in text
    assert "mail is kept 0.5 hours" in text


@rows(True, False)
def test_the_commands_are_complete(laptop: Laptop, is_terminal: bool) -> None:
    """The text has limits, and commands without placeholders."""
    text = laptop.start(is_terminal=is_terminal)
    assert "60 requests a minute, 1000 a day, mail is kept 24 hours" in text
    assert "{" not in text
    assert f"KEY=$(cat {laptop.keys})" in text
    assert "swaks --server 127.0.0.1:2525" in text
    assert "$API/inbox/wait?tag=signup&after=$CURSOR" in text


@pytest.mark.parametrize("preset", ["", "a key that I chose"])
def test_two_daemons_start_for_the_first_time(tmp_path: Path, preset: str) -> None:
    """If two daemons start together, one creates the account, and both have a key."""
    writer = BlockedWorker()
    config = config_in_memory(accounts=CHEAP)
    house = EmptyHouse(config, Workers(writer, DirectWorker(), DirectWorker()))
    laptops = [Laptop(tmp_path / name, house) for name in ("one", "other")]
    writer.hold_calls()
    for laptop in laptops:
        laptop.start(preset=preset)
    writer.let_go()
    assert len(run(house.assembly.accounts.keep.accounts())) == 1
    assert all(laptop.is_valid(laptop.key()) for laptop in laptops)
    kept = [laptop.password() for laptop in laptops if laptop.passwords.exists()]
    assert len(kept) == 1
    assert laptops[0].opens_dashboard(kept[0])
