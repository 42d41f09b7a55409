"""Scoring of copies of mail: the counts, and the limits."""

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import LogEvent

from mailcheck.checks.deliverability.content_filter import (
    FilterProblem,
    FilterRule,
    FilterVerdict,
    unavailable,
)
from mailcheck.config.options import MilterOptions
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.operations.traffic.score_traffic import TrafficLimits
from tests.fakes.mail_signer import RSA
from tests.house import House, config_in_memory, run
from tests.operations.scored_mails import ADDRESS, MAIL, received, zone_with

SPAM = FilterVerdict(7.5, 5.0, True, (FilterRule("RULE", 7.5, "A rule"),))


@pytest.fixture
def house() -> House:
    """A house with the zone of a perfect sender, and a milter endpoint."""
    return House(config_in_memory(milter=MilterOptions(listen=("127.0.0.1:1",))), zone=zone_with())


def copy(house: House, mail: ReceivedMail | None = None, *, is_authenticated: bool = False) -> bool:
    """Pass a copy of a mail to the scoring; return whether it wants the mail."""
    mail = mail or received()
    found = house.assembly.traffic.score.begin(
        mail.session, mail.envelope_sender, is_authenticated=is_authenticated
    )
    if found is None:
        return False
    if found.add(mail.raw_message):
        found.finish()
    house.pass_time(0)
    return True


def senders(house: House) -> Any:
    """Return the senders, after the counts were written."""
    run(house.assembly.traffic.score.flush())
    return house.get("/traffic").json["senders"]


def outcomes(house: House) -> dict[str, int]:
    """Return the outcomes."""
    return {name: count for (name,), count in house.assembly.traffic.score.outcomes.counts.items()}


def test_mails_are_counted_by_sender(house: House) -> None:
    """The counts have the domains, the client and the verdicts of the mails."""
    house.content_filter.outcome = FilterVerdict(-0.5, 5.0, False, ())
    copy(house)
    house.content_filter.outcome = SPAM
    copy(house, received(MAIL, client_ip="192.0.2.99"))
    assert senders(house) == [
        {
            "domain": "sender.example",
            "mails": 2,
            "spfPass": 1,
            "dkimPass": 1,
            "dmarcPass": 1,
            "dmarcFail": 1,
            "undetermined": 0,
            "filtered": 2,
            "spam": 1,
            "meanPoints": 3.5,
            "sources": 2,
            "lastDay": "2026-11-21T00:00:00.000Z",
        }
    ]
    sources = house.get("/traffic/sources?domain=Sender.example").json["sources"]
    found = {
        one["source"]: (one["spf"], one["dkim"], one["dmarc"], one["dkimDomain"]) for one in sources
    }
    assert found == {
        ADDRESS: ("pass", "pass", "pass", "sender.example"),
        "192.0.2.99": ("fail", "none", "fail", ""),
    }
    assert outcomes(house) == {"scored": 2}


def test_a_silent_filter(house: House) -> None:
    """A mail that the content filter has not judged is not counted as clean."""
    house.content_filter.outcome = unavailable(FilterProblem.TIMEOUT)
    copy(house)
    (found,) = senders(house)
    assert (found["mails"], found["filtered"], found["meanPoints"]) == (1, 0, None)


def test_a_client_without_a_public_address(house: House) -> None:
    """SPF of a client in the private network is not determined, so DMARC is not failed."""
    copy(house, received(MAIL, client_ip="10.0.0.5"))
    (found,) = senders(house)
    assert (found["undetermined"], found["dmarcFail"], found["spfPass"]) == (1, 0, 0)


@pytest.mark.parametrize("raw", [b"", b"\0" * 50, b"From: <a@\xff.b\0>\r\n\r\n", b"\r\n\r\n"])
def test_any_mail(house: House, raw: bytes) -> None:
    """Any octets are counted, with or without a domain."""
    copy(house, received(raw, envelope_sender="x@\0\ud800"))
    (found,) = senders(house)
    assert (found["domain"], found["mails"]) == ("", 1)


def test_nothing_about_recipients_and_contents_is_stored(house: House) -> None:
    """No table has a word of the mail."""
    copy(house, received(RSA.sign(MAIL.replace(b"minutes", b"unlikelyword"))))
    senders(house)
    house.pass_time(60)
    dump = "\n".join(house.sqlite.connection.iterdump())
    assert "sender.example" in dump
    assert "unlikelyword" not in dump


def test_the_queue_is_bounded(house: House) -> None:
    """Mails beyond the queue pass without being scored, and are counted as such."""
    house.content_filter.holds = True
    score = house.assembly.traffic.score
    most = TrafficLimits(0).waiting + TrafficLimits(0).at_a_time
    assert [copy(house, received(MAIL)) for _ in range(most)] == [True] * most
    assert not copy(house, received(MAIL))
    assert (score.waiting, outcomes(house)) == (200, {"full": 1})
    house.content_filter.holds = False
    house.content_filter.answer()
    for _ in range(100):
        house.pass_time(0)
    assert copy(house, received(MAIL))
    assert outcomes(house)["scored"] == most + 1
    assert score.waiting == 0


def test_memory_is_bounded(house: House) -> None:
    """Copies beyond the memory are dropped, and the memory is free again after the mails."""
    house.content_filter.holds = True
    large = MAIL + b"x" * (9 * 1024 * 1024)
    for _ in range(10):
        copy(house, received(large))
    assert outcomes(house) == {"full": 3}
    house.content_filter.holds = False
    house.content_filter.answer()
    for _ in range(20):
        house.pass_time(0)
    assert outcomes(house)["scored"] == 7
    assert copy(house, received(large))
    house.pass_time(0)
    assert outcomes(house)["scored"] == 8


def test_a_large_mail(house: House) -> None:
    """A mail beyond the maximum size is counted as such."""
    copy(house, received(MAIL + b"x" * (11 * 1024 * 1024)))
    assert outcomes(house) == {"too-large": 1}


def test_own_users(house: House) -> None:
    """Mail of authenticated clients is not scored."""
    assert not copy(house, is_authenticated=True)
    assert outcomes(house) == {"authenticated": 1}


def test_a_sample() -> None:
    """About the configured share of the mails is scored."""
    config = config_in_memory(milter=MilterOptions(listen=("127.0.0.1:1",), sample=0.5))
    house = House(config, zone=zone_with())
    wanted = [copy(house, received(MAIL)) for _ in range(60)].count(True)
    assert 15 < wanted < 45
    assert outcomes(house) == {"scored": wanted, "not-sampled": 60 - wanted}


def test_a_daemon_that_stops(house: House) -> None:
    """Mails under way are given up, and the finished counts are kept."""
    copy(house)
    house.content_filter.holds = True
    for _ in range(6):
        copy(house)
    score = house.assembly.traffic.score
    score.close()
    assert outcomes(house) == {"scored": 1, "stopped": 6}
    assert not copy(house)
    assert senders(house)[0]["mails"] == 1


def test_a_failure(house: House, logged_failures: list[LogEvent]) -> None:
    """A bug in the evaluation of a mail is logged, and the next mail is scored."""
    good, house.content_filter.outcome = house.content_filter.outcome, None  # type: ignore[assignment]
    house.content_filter.judge = _crash  # type: ignore[method-assign]
    copy(house)
    del house.content_filter.judge
    house.content_filter.outcome = good
    copy(house)
    assert outcomes(house) == {"failed": 1, "scored": 1}
    assert len(logged_failures) == 1


def _crash(raw_message: bytes) -> Deferred[Any]:
    raise RuntimeError


def test_another_project() -> None:
    """The statistics belong to the configured account, and to no other."""
    config = config_in_memory(milter=MilterOptions(listen=("127.0.0.1:1",), project="ops"))
    house = House(config, zone=zone_with())
    copy(house)
    assert senders(house) == []
    ops = house.add_account("ops")
    assert senders(house) == []
    found = house.get("/traffic", key=house.issue_key(ops)).json
    assert (found["enabled"], found["mails"]) == (True, 1)
