"""Passwords: how they are hashed, which are valid, and how many are hashed at a time."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from mailcheck.core.errors import InvalidParameter, Overloaded
from mailcheck.operations.accounts.passwords import (
    MAX_UNDER_WAY,
    OF_CLIENT,
    PATIENCE,
    WAITING,
    PasswordHasher,
    ScryptCost,
    is_password,
    require_strong,
    write_hash,
)
from mailcheck.workers.scheduling import DirectWorker
from tests.fakes.clock_and_randomness import repeatable_bytes
from tests.house import result_of, run
from tests.table import rows
from tests.web.workers import FaultyWorker

CHEAP = ScryptCost(4, 1, 1)


def hasher(worker: Any = None, cost: ScryptCost = CHEAP) -> PasswordHasher:
    """Return a password hasher."""
    return PasswordHasher(worker or DirectWorker(), cost, repeatable_bytes(), Clock())


def test_a_known_hash() -> None:
    """The hash is scrypt as defined in RFC 7914, section 12."""
    derived = ScryptCost(14, 8, 1).derive("pleaseletmein", b"SodiumChloride")
    assert derived.hex() == "7023bdcb3afd7348461c06cd81fd38eb"


# `require_strong` rejects control characters. HMAC (RFC 2104) pads keys with NUL, so a password
# with NUL at its end would match without it.
VALID = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=50)


@given(VALID, VALID)
def test_only_the_password_matches(password: str, other: str) -> None:
    """A hash matches its own password and no other."""
    written = write_hash(password, b"salt", CHEAP)
    assert is_password(password, written)
    assert is_password(other, written) == (password == other)


def test_the_same_password_is_hashed_differently() -> None:
    """Each hash has its own salt, and contains its cost."""
    one = hasher()
    first, second = run(one.write("correct horse")), run(one.write("correct horse"))
    assert first != second
    assert first.startswith("$scrypt$ln=4,r=1,p=1$")
    assert "correct" not in first
    assert run(one.matches("correct horse", first))
    assert run(one.matches("correct horse", second))


def test_spellings_of_a_password() -> None:
    """A password in another Unicode normalization form is the same password."""
    one = hasher()
    written = run(one.write("caf\u00e9 au lait"))
    assert run(one.matches("cafe\u0301 au lait", written))
    assert not run(one.matches("cafe au lait", written))


@rows("", "correct horse", "\0", "x" * 100_000, "\udc80")
def test_a_missing_hash_matches_nothing(password: str) -> None:
    """Without a stored hash no password matches."""
    assert not run(hasher().matches(password, None))


def test_a_missing_hash_costs_as_much() -> None:
    """Checking a password without a stored hash takes as much work as with one."""
    worker = RecordingWorker()
    one = hasher(worker)
    run(one.matches("wrong horse", run(one.write("correct horse"))))
    run(one.matches("wrong horse", None))
    real, standing_in = (call.args[1].split("$")[2] for call in worker.calls[1:])
    assert real == standing_in == "ln=4,r=1,p=1"


class RecordingWorker(DirectWorker):
    """Records the calls that it runs."""

    def __init__(self) -> None:
        self.calls: list[partial[Any]] = []

    def run(self, call: Any, owner: str = "") -> Any:
        """Run the call."""
        self.calls.append(call)
        return super().run(call)


def test_hashes_of_another_cost() -> None:
    """A hash of another cost still matches, and is reported as outdated."""
    old = write_hash("correct horse", b"salt", ScryptCost(5, 2, 1))
    one = hasher()
    assert run(one.matches("correct horse", old))
    assert one.is_outdated(old)
    assert not one.is_outdated(run(one.write("correct horse")))


def test_random_passwords() -> None:
    """A random password is hashed cheaply. A wrong password costs as much as usual."""
    worker = RecordingWorker()
    one = hasher(worker)
    written = run(one.write_random("abcd-efgh-ijkl-mnop"))
    assert written.split("$")[2] == "ln=10,r=8,p=1"
    assert not one.is_outdated(written)
    assert run(one.matches("abcd-efgh-ijkl-mnop", written))
    assert len(worker.calls) == 2
    assert not run(one.matches("wrong horse", written))
    assert worker.calls[-1].args[1].split("$")[2] == "ln=4,r=1,p=1"


@rows("", "secret", "$scrypt$ln=4,r=1,p=1$AA==", "$argon2$x$y$z")
def test_invalid_hashes(written: str) -> None:
    """Text that is not a hash is rejected."""
    with pytest.raises(ValueError, match="not a password hash"):
        is_password("secret", written)


def test_clients_take_turns() -> None:
    """Clients take turns: each has few concurrent hashes, and no client is rejected."""
    worker = FaultyWorker()
    one = hasher(worker)
    worker.is_slow = True
    crowd = [Deferred.fromCoroutine(one.write("correct horse", "many")) for _ in range(120)]
    assert worker.calls == OF_CLIENT
    others = [Deferred.fromCoroutine(one.write("correct horse", f"{n}")) for n in range(12)]
    assert worker.calls == MAX_UNDER_WAY
    late = Deferred.fromCoroutine(one.write("correct horse", "late"))
    worker.catch_up()
    assert all(result_of(done) for done in (*others, late, *crowd))


def test_a_client_with_too_many_hashes() -> None:
    """A client whose hashes get no turn in time is told so. Other clients still get theirs."""
    worker, clock = FaultyWorker(), Clock()
    one = PasswordHasher(worker, CHEAP, repeatable_bytes(), clock)
    worker.is_slow = True
    crowd = [Deferred.fromCoroutine(one.write("correct horse", "many")) for _ in range(2 * WAITING)]
    other = Deferred.fromCoroutine(one.write("correct horse", "other"))
    refused = [done for done in crowd if done.called]
    assert len(refused) == WAITING - OF_CLIENT
    clock.advance(PATIENCE)
    for done in crowd[OF_CLIENT:]:
        with pytest.raises(Overloaded, match="from your address"):
            result_of(done)
    worker.catch_up()
    assert result_of(other)


def test_a_disconnected_client_still_counts() -> None:
    """The hash of a disconnected client counts until it is finished."""
    worker = FaultyWorker()
    one = hasher(worker)
    worker.is_slow = True
    for _ in range(3 * OF_CLIENT):
        given_up = Deferred.fromCoroutine(one.write("correct horse"))
        given_up.addErrback(lambda failure: failure.trap(CancelledError))
        given_up.cancel()
    assert worker.calls == OF_CLIENT
    worker.catch_up()
    assert run(one.write("correct horse"))


@rows(
    "",
    "x" * 9,
    "x" * 201,
    "aaaaaaaaaa",
    "abcabcabcabc",
    "Developer 1",
    "secret\0\0\0\0",
    "correct\thorse",
    "correct horse\x85",
)
def test_invalid_passwords(password: str) -> None:
    """Short, endless and repetitive passwords, control characters, and the name are rejected."""
    with pytest.raises(InvalidParameter):
        require_strong(password, "developer 1")


@rows("correct horse", "x1y2z3w4v5", "пароль пароль", "🎉🎂🎈🎁" * 3)
def test_valid_passwords(password: str) -> None:
    """Only length counts, not the kinds of characters. All scripts are accepted."""
    require_strong(password, "developer")
