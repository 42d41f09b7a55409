"""Zones with the largest possible answers: each costs only its own request, in counted work."""

import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsQuestion, DnsStatus, look_up
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from mailcheck.dns.wire_format import (
    MAX_ALIASES,
    MAX_OCTETS,
    MAX_RECORDS,
    MAX_WORK,
    Outcome,
    count_work,
    pack_question,
    read_reply,
)
from mailcheck.operations import dns_evaluation
from mailcheck.operations.concurrency import REST
from mailcheck.operations.dns_evaluation import MAX_QUESTIONS, QuestionBudget, evaluate_with_dns
from mailcheck.operations.semaphores import CHECKS_AT_ONCE, CHECKS_OF_ACCOUNT, WAITING_CHECKS
from tests.dns.scripted_network import SERVER, Query, ScriptedNetwork, build_reply, collect
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, config_in_memory, result_of
from tests.linear import count_calls
from tests.table import rows
from tests.web.checking import checking_house

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

QUESTION = DnsQuestion("www.example", "TXT")

Reply = Callable[[Query], bytes]


def texts(count: int, size: int = 8) -> Reply:
    """Return a reply with ``count`` texts of ``size`` octets."""
    records = tuple(f'www.example. 60 IN TXT "{n:0{size}}"' for n in range(count))
    return lambda query: build_reply(query.message, records).to_wire(max_size=65_535)


def aliases(count: int) -> Reply:
    """Return a reply with a chain of ``count`` CNAMEs and a text at its end."""
    names = ["www.example.", *(f"a{n}.example." for n in range(count))]
    records = [f"{one} 60 IN CNAME {two}" for one, two in pairwise(names)]
    end = f"{names[-1]} 60 IN TXT x"
    return lambda query: build_reply(query.message, (*records, end)).to_wire(max_size=65_535)


def empty_strings(count: int) -> Reply:
    """Return a reply with one text of ``count`` empty strings."""
    text = " ".join(['""'] * count)
    return lambda query: build_reply(query.message, (f"www.example. 60 IN TXT {text}",)).to_wire(
        max_size=65_535
    )


def long_names(rdtype: str, data: str, labels: int = 100, count: int = 100) -> Reply:
    """Return a reply with a text, and compressed records with names of ``labels`` labels."""
    records = (
        f"www.example. 60 IN {rdtype} {data.format(n, 'a.' * labels)}" for n in range(count - 1)
    )
    everything = ("www.example. 60 IN TXT x", *records)
    return lambda query: build_reply(query.message, everything).to_wire(max_size=65_535)


def long_owners(labels: int = 100) -> Reply:
    """Return a reply with records whose owner names have ``labels`` labels."""
    owner = "a." * labels
    records = tuple(f"{owner} 60 IN TXT {n}" for n in range(100))
    return lambda query: build_reply(query.message, records).to_wire(max_size=65_535)


HEADER = 12
"""Octets before the question."""

CALLS_OF_STEP = 100
"""Python and C calls that one step of `count_work` may take."""

SOA = "n{0}.{1} h{0}.{1} 1 2 3 4 5"

HARD_TO_READ = (
    empty_strings(15_000),
    long_names("MX", "{0} m{0}.{1}"),
    long_names("SOA", SOA, count=30),
    long_names("SRV", "1 1 1 m{0}.{1}"),
    long_owners(),
    long_names("HTTPS", "1{0} . " + " ".join(f"key{n}" for n in range(100, 130)), labels=0),
    long_names("APL", " ".join(["1:0.0.0.0/0"] * 36), labels=0),
)
"""Small answers that are hard to read."""


class Asking:
    """A lookup over TCP, and its cost."""

    def __init__(self) -> None:
        self.network = ScriptedNetwork()
        self.stub = StubResolver(
            self.network, [SERVER], ResolverSettings(), self.network.random_bytes
        )
        self.answers = collect(self.stub.lookup(QUESTION))
        truncated: Any = self.network.queries[0]
        truncated.reply(flags=0x0200)
        self.stream = self.network.accept()

    def answer(self, message: bytes) -> DnsAnswer:
        """Answer the query, and return the result of the lookup."""
        self.stream.send(message)
        self.network.advance(0)
        (answer,) = self.answers
        assert isinstance(answer, DnsAnswer)
        return answer


@rows(
    *[texts(MAX_RECORDS + 1), texts(500), texts(90, 250), aliases(400), aliases(17)], *HARD_TO_READ
)
def test_an_answer_beyond_the_caps(reply: Reply) -> None:
    """The answer is undetermined with a reason: it is not cut, repeated or blamed on a server.

    Reading it takes a limited number of calls; some of these answers would take millions.
    """
    asking = Asking()
    message = reply(asking.stream)
    answers: list[DnsAnswer] = []
    calls = count_calls(lambda: answers.append(asking.answer(message)))
    assert calls < CALLS_OF_STEP * MAX_WORK
    (answer,) = answers
    assert (answer.status, answer.records) == (DnsStatus.EXCESSIVE, ())
    assert not answer.status.is_determined
    assert len(asking.network.queries) == 1
    assert asking.stub.unresponsive_servers == ()


@rows(*((*kind, labels) for kind in (("MX", "{0} m{0}.{1}"), ("SOA", SOA)) for labels in (3, 110)))
def test_the_hardest_that_is_read(rdtype: str, data: str, labels: int) -> None:
    """The largest answers that are still read stay within the limit."""
    asking, offset = Asking(), HEADER + len(pack_question(QUESTION))

    def work(count: int) -> int:
        return count_work(long_names(rdtype, data, labels, count)(asking.stream), offset)[0]

    two, three = work(2), work(3)
    count = 2 + (MAX_WORK - two) // (three - two)
    message = long_names(rdtype, data, labels, count)(asking.stream)
    answers: list[DnsAnswer] = []
    calls = count_calls(lambda: answers.append(asking.answer(message)))
    assert answers[0].status is not DnsStatus.EXCESSIVE
    assert calls < CALLS_OF_STEP * MAX_WORK
    assert work(count + 1) > MAX_WORK


def test_names_that_point_in_circles() -> None:
    """A name that points forward, to itself or along many pointers is detected at once."""
    question = pack_question(QUESTION)
    start = HEADER + len(question)
    head = b"id\x81\x80\0\1\0\1\0\0\0\0" + question
    loops = [struct.pack("!H", 0xC000 | target) for target in (start, start + 2, 0x3FFF)]
    for name in (*loops, b"\1a" * 130 + b"\0", b"\x80\0", b"\x40", b"\x3fa", b""):
        with pytest.raises((IndexError, struct.error)):
            count_work(head + name, start)
        assert read_reply(head + name, question).outcome is Outcome.GARBAGE


@rows((texts(MAX_RECORDS), MAX_RECORDS), (aliases(MAX_ALIASES - 1), 1))
def test_an_answer_at_the_caps(reply: Reply, count: int) -> None:
    """An answer at the limits is read completely."""
    asking = Asking()
    answer = asking.answer(reply(asking.stream))
    assert (answer.status, len(answer.records)) == (DnsStatus.FOUND, count)


def test_octets_beyond_the_cap_are_not_awaited() -> None:
    """A stream that announces too many octets is closed before any of them is stored."""
    asking = Asking()
    asking.stream.protocol.dataReceived((MAX_OCTETS + 1).to_bytes(2, "big"))
    assert asking.stream.transport.disconnecting
    assert [answer.status for answer in asking.answers] == [DnsStatus.EXCESSIVE]
    assert asking.stub.unresponsive_servers == ()


def test_large_answers_take_turns_with_all_else() -> None:
    """Twenty large answers that arrive at once are read one by one, with pauses between them."""
    network = ScriptedNetwork()
    stub = StubResolver(network, [SERVER], ResolverSettings(), network.random_bytes)
    lookups = [collect(stub.lookup(DnsQuestion(f"n{n}.example", "TXT"))) for n in range(20)]
    for query in list(network.queries):
        owner = query.message.question[0].name.to_text()
        records = tuple(f"{owner} 60 IN TXT {number}" for number in range(50))
        query.send(build_reply(query.message, records).to_wire(max_size=4096))
    read = []
    network.advance(0)
    for _ in lookups:
        read.append(sum(map(len, lookups)))
        network.advance(REST)
    assert read == list(range(1, 21))
    assert all(answer.status is DnsStatus.FOUND for (answer,) in lookups)
    assert not network.getDelayedCalls()


@rows(False, True)
def test_a_request_reads_no_more_than_its_budget(is_slow: bool) -> None:
    """Of endless names with full answers only a few are read, and the rest is undetermined."""
    clock = Clock()
    zone = MemoryZone({"*.wild.example": {"TXT": [f"t{n}" for n in range(MAX_RECORDS)]}})
    read = [0]

    class Counting:
        def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
            def count(answer: DnsAnswer) -> DnsAnswer:
                read[0] += len(answer.records)
                return answer

            found = zone.lookup(question).addCallback(count)
            if not is_slow:
                return found
            later: Deferred[DnsAnswer] = Deferred()
            clock.callLater(0.01 * len(zone.asked), lambda: found.chainDeferred(later))
            return later

    def evaluate(answers: Answers) -> list[DnsStatus]:
        names = [f"n{number}.wild.example" for number in range(2 * MAX_QUESTIONS)]
        return [look_up(answers, name, "TXT").status for name in names]

    budget = QuestionBudget.starting_now(clock)
    asking = evaluate_with_dns(Counting(), evaluate, clock=clock, budget=budget)
    verdict: Deferred[list[DnsStatus]] = Deferred.fromCoroutine(asking)
    if is_slow:
        clock.advance(0.01 * dns_evaluation.MAX_RECORDS / MAX_RECORDS)
        assert clock.getDelayedCalls()  # of answers that are no longer awaited
    statuses = result_of(verdict)
    assert len(zone.asked) <= MAX_QUESTIONS
    assert statuses.count(DnsStatus.FOUND) == dns_evaluation.MAX_RECORDS // MAX_RECORDS
    assert set(statuses) == {DnsStatus.FOUND, DnsStatus.EXCESSIVE}
    assert is_slow or read[0] == dns_evaluation.MAX_RECORDS


class Stalled(MemoryZone):
    """A zone that never answers."""

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Return a Deferred that never fires."""
        self.asked.append(question)
        self.unanswered.append(question)
        return Deferred(lambda _: self.unanswered.remove(question))


def domains_under_way(zone: MemoryZone) -> set[str]:
    """Return the domains with a running lookup."""
    return {question.name for question in zone.unanswered if question.rdtype == "MX"}


@pytest.fixture
def stalled() -> tuple[House, MemoryZone]:
    """An application in which checks last until their timeout."""
    zone = Stalled({})
    return checking_house(zone, config_in_memory()), zone


def test_checks_of_accounts_take_turns(stalled: tuple[House, MemoryZone]) -> None:
    """An account's checks run three at a time, and a check of another account starts at once."""
    house, zone = stalled
    other = house.issue_key(house.add_account("other"))
    hostile = [house.ask("GET", f"/tools/mx-check?domain=h{n}.example.com") for n in range(100)]
    assert len(domains_under_way(zone)) == CHECKS_OF_ACCOUNT
    honest = house.ask("GET", "/tools/mx-check?domain=honest.example.com", other)
    assert "honest.example.com" in domains_under_way(zone)
    assert not honest.is_answered
    for _ in range(4):
        house.pass_time(10)
        assert len(domains_under_way(zone)) <= CHECKS_OF_ACCOUNT
    assert honest.is_answered
    answers = [one.answer() for one in hostile]
    assert {answer.status for answer in answers} == {429, 500}
    refused = next(answer for answer in answers if answer.status == 429)
    assert "of your checks are running" in refused.json["error"]
    assert int(refused.headers["retry-after"]) > 0


def test_checks_beyond_the_queue(stalled: tuple[House, MemoryZone]) -> None:
    """An account that fills the queue gets 429 at once and gives way to other accounts."""
    house, zone = stalled
    keys = [house.issue_key(house.add_account(f"a{n}")) for n in range(CHECKS_AT_ONCE)]
    for key in keys[: CHECKS_AT_ONCE // CHECKS_OF_ACCOUNT]:
        for number in range(CHECKS_OF_ACCOUNT):
            house.ask("GET", f"/tools/mx-check?domain=b{number}.example.com", key)
    hostile = [
        house.ask("GET", f"/tools/mx-check?domain=h{n}.example.com") for n in range(WAITING_CHECKS)
    ]
    assert not any(one.is_answered for one in hostile)
    honest = house.ask("GET", "/tools/mx-check?domain=honest.example.com", keys[-1])
    assert not honest.is_answered
    assert [one.is_answered for one in hostile].count(True) == 1
    assert house.ask("GET", "/tools/mx-check?domain=h.example.com").answer().status == 429
    house.pass_time(10)
    assert "honest.example.com" in domains_under_way(zone)
