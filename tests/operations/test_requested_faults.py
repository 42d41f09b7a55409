"""Simulated failures: which mail they affect, how they are recorded, and their cost."""

from typing import Any

import pytest
from twisted.internet.defer import maybeDeferred

from mailcheck.config.options import InboxOptions
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.errors import FaultMet, InvalidParameter, KeyNotFound
from mailcheck.core.faults import Fault
from mailcheck.core.messages import Recipient, Session
from mailcheck.operations.inbox import receive_mail
from tests.house import House, config_in_memory, result_of, run
from tests.table import rows

STRANGER = Session("192.0.2.7", "mx.example.com", True)


def accept(house: House, tag: str, sender: str = "shop@example.com") -> Recipient:
    """Send RCPT for an address, and raise the error that the SMTP server would see."""
    mailbox = parse_mailbox(house.address(tag))
    accepted: Recipient = result_of(
        maybeDeferred(house.assembly.receiver.accept_recipient, STRANGER, sender, mailbox)
    )
    return accepted


def refused(house: House, tag: str, sender: str = "shop@example.com") -> tuple[int, str]:
    """Send RCPT for an address that is rejected, and return the code and the reason."""
    with pytest.raises(FaultMet) as caught:
        accept(house, tag, sender)
    return caught.value.reply[0], str(caught.value)


def fault_of(house: House, key: str) -> Fault | None:
    """Return the fault of the next mail of a key."""
    receiver = house.assembly.receiver
    caller = result_of(receiver.authenticate("", key, "192.0.2.7"))
    found = receiver.find_fault(caller, (accept(house, "plain"),))
    return None if found is None else result_of(found)


@rows(("fault.rcpt-451", 451), ("fault.rcpt-550", 550), ("fault.quota", 452))
def test_a_refused_recipient(house: House, tag: str, code: int) -> None:
    """The recipient is rejected with the code of its tag, and waiting clients are notified."""
    pending = house.ask("GET", f"/inbox/wait?tag={tag}&after=c0&timeout=1")
    assert refused(house, tag)[0] == code
    house.pass_time(1)
    (rejected,) = pending.answer().json["rejected"]
    assert rejected["reason"].startswith(f"{tag}: ")


def test_an_ordinary_tag_has_no_fault(house: House) -> None:
    """A tag that only begins like a fault is accepted."""
    house.receive(house.address("fault.rcpt-452"))
    assert house.get("/inbox").json["total"] == 1


def test_greylisting(house: House) -> None:
    """Each pair of sender and recipient is rejected until its delay is over, then accepted."""
    code, reason = refused(house, "fault.greylist-30")
    assert (code, reason) == (451, "fault.greylist-30: greylisted; try again in 30 s")
    house.pass_time(29.5)
    assert refused(house, "fault.greylist-30")[1].endswith("in 1 s")
    house.pass_time(0.5)
    accept(house, "fault.greylist-30")
    assert refused(house, "fault.greylist-30", "other@example.com")[0] == 451
    house.pass_time(600)
    accept(house, "FAULT.GREYLIST-30", "Shop@example.com")
    assert refused(house, "fault.greylist-31")[0] == 451


def test_greylisting_survives_a_restart(house: House) -> None:
    """Greylisting state is stored, so it survives a restart and a change of the daemon."""
    refused(house, "fault.greylist-30")
    house.pass_time(31)
    fresh = receive_mail.RequestedFaults(
        house.assembly.runtime.persistent_state.memory,
        house.assembly.runtime.cluster.counters,
        house.assembly.runtime.now,
        is_on=True,
    )
    fault = fresh.at_recipient("fault.greylist-30")
    assert fault is not None
    recipient = Recipient(house.address("fault.greylist-30"), house.account.id, "x")
    assert result_of(fresh.meet(recipient, fault, "shop@example.com")) == recipient


def test_the_number_of_stored_pairs_is_limited(house: House) -> None:
    """An inbox greylists at most a thousand pairs per day; further ones are rejected unstored."""
    for number in range(receive_mail.GREYLISTED_PAIRS):
        refused(house, "fault.greylist-1", f"s{number}@example.com")
    code, reason = refused(house, "fault.greylist-1", "late@example.com")
    assert code == 451
    assert "more than 1000" in reason
    rows = house.sqlite.connection.execute("SELECT count(*) FROM remembered").fetchone()
    assert rows == (receive_mail.GREYLISTED_PAIRS,)
    house.pass_time(2)
    accept(house, "fault.greylist-1", "s7@example.com")


def test_the_first_fault_of_a_mail_decides(house: House) -> None:
    """A mail gets the fault of its first recipient that has one. Tests have none."""
    receiver = house.assembly.receiver
    recipients = tuple(accept(house, tag) for tag in ("a", "fault.drop-data", "fault.data-554"))
    found = receiver.find_fault(None, recipients)
    assert found is not None
    assert result_of(found).tag == "fault.drop-data"
    assert receiver.find_fault(None, recipients[:1]) is None


def test_every_third_mail_of_a_key(house: House) -> None:
    """Every third mail of the key is rejected. Other keys are unaffected. A tag has priority."""
    other = house.issue_key(house.account)
    assert house.ask("PUT", "/inbox/faults", data=b'{"every": 3}').answer().json["every"] == 3
    met = [fault_of(house, house.key) for _ in range(6)]
    assert [one is not None for one in met] == [False, False, True] * 2
    assert met[2] is not None
    assert met[2].reply == (451, "4.3.0")
    assert [fault_of(house, other) for _ in range(6)] == [None] * 6
    assert house.ask("PUT", "/inbox/faults", data=b'{"every": null}').answer().status == 200
    assert [fault_of(house, house.key) for _ in range(3)] == [None] * 3


def test_the_list_and_the_setting(house: House) -> None:
    """GET returns the nine faults and the setting of the key of the request."""
    shown = house.get("/inbox/faults").json
    assert len(shown["faults"]) == 9
    assert (shown["every"], shown["enabled"]) == (None, True)
    house.ask("PUT", "/inbox/faults", data=b'{"every": 1}').answer()
    assert house.get("/inbox/faults").json["every"] == 1
    assert house.get("/inbox/faults", key=house.issue_key(house.account)).json["every"] is None


@rows(
    b"",
    b"[]",
    b"{}",
    b'{"every": 0}',
    b'{"every": 1001}',
    b'{"every": "3"}',
    b'{"every": true}',
    b'{"every": 3, "key": "x"}',
    b'{"every": 1.5}',
    b"\xff",
)
def test_an_invalid_setting(house: House, body: bytes) -> None:
    """Anything but null or a number in range is answered with 400, and the setting is kept."""
    answer = house.ask("PUT", "/inbox/faults", data=body).answer()
    assert answer.status == 400
    assert answer.json["error"]
    assert house.get("/inbox/faults").json["every"] is None


def test_invalid_keys_and_numbers(house: House) -> None:
    """Only a valid key has a setting, and only a number in its range."""
    (key,) = run(house.assembly.accounts.keep.list_keys(house.account))
    with pytest.raises(InvalidParameter):
        run(house.assembly.accounts.keep.set_fault(key.id, 0))
    run(house.assembly.accounts.keep.revoke_key(key.id))
    with pytest.raises(KeyNotFound):
        run(house.assembly.accounts.keep.set_fault(key.id, 3))


def test_switched_off() -> None:
    """With ``[inbox] faults = false``, every tag is ordinary and the setting of keys is ignored."""
    house = House(config_in_memory(inbox=InboxOptions(faults=False)))
    accept(house, "fault.rcpt-550")
    accept(house, "fault.greylist-30")
    house.ask("PUT", "/inbox/faults", data=b'{"every": 1}').answer()
    assert fault_of(house, house.key) is None
    receiver: Any = house.assembly.receiver
    assert receiver.find_fault(None, (accept(house, "fault.drop-data"),)) is None
    assert house.get("/inbox/faults").json["enabled"] is False
