"""The state machine of a lookup: pure decisions, without sockets or a clock."""

import dns.flags
import dns.message
import dns.rcode
import pytest

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.dns.resolution import MAX_LINKS, Attempt, Resolution, Step
from mailcheck.dns.wire_format import pack_query, pack_question
from tests.dns.scripted_network import SECOND_SERVER, SERVER, build_reply
from tests.table import rows

QUESTION = DnsQuestion("www.example", "A")
PACKED = pack_question(QUESTION)
SOA = "example. 900 IN SOA ns.example. host.example. 1 2 3 4 120"
ADDRESS = "www.example. 60 IN A 192.0.2.1"


def resolution(*servers: object, timeouts: tuple[float, ...] = (1.0, 2.0)) -> Resolution:
    """Return a resolution of `QUESTION`."""
    return Resolution(QUESTION, PACKED, servers or (SERVER,), timeouts)  # type: ignore[arg-type]


def reply_to(
    step: Step, *records: str, rcode: int = 0, flags: int = 0, authority: tuple[str, ...] = ()
) -> bytes:
    """Return the reply of a server to an attempt."""
    assert isinstance(step, Attempt)
    query = dns.message.from_wire(pack_query(b"id", step.question, has_edns=True))
    return build_reply(query, records, rcode=rcode, flags=flags, authority=authority).to_wire()


def ended(step: Step) -> DnsAnswer:
    """Return the final answer of a resolution."""
    assert isinstance(step, DnsAnswer)
    return step


@pytest.fixture
def asking() -> Resolution:
    """Return a question that is being asked."""
    return resolution()


def test_resolution_rounds() -> None:
    """Each server is asked in order, in each round with the timeout of the round."""
    asking = resolution(SERVER, SECOND_SERVER)
    steps = [
        asking.start(),
        asking.attempt_failed(),
        asking.attempt_failed(),
        asking.attempt_failed(),
    ]
    assert steps == [
        Attempt(SERVER, PACKED, 1.0),
        Attempt(SECOND_SERVER, PACKED, 1.0),
        Attempt(SERVER, PACKED, 2.0),
        Attempt(SECOND_SERVER, PACKED, 2.0),
    ]
    assert ended(asking.attempt_failed()).status is DnsStatus.TIMEOUT


def test_resolution_found(asking: Resolution) -> None:
    """Records end the lookup, with their TTL and the AD bit of the reply."""
    answer = ended(asking.reply_received(reply_to(asking.start(), ADDRESS, flags=dns.flags.AD)))
    assert answer.status is DnsStatus.FOUND
    assert [record.to_text() for record in answer.records] == ["192.0.2.1"]
    assert (answer.ttl, answer.is_authenticated) == (60, True)
    assert (answer.question, answer.canonical_name) == (QUESTION, "www.example")


@rows((dns.rcode.NXDOMAIN, DnsStatus.NXDOMAIN), (dns.rcode.NOERROR, DnsStatus.NODATA))
def test_resolution_negative(rcode: int, status: DnsStatus) -> None:
    """A negative reply ends it, too, with the TTL of RFC 2308."""
    asking = resolution()
    answer = ended(asking.reply_received(reply_to(asking.start(), rcode=rcode, authority=(SOA,))))
    assert (answer.status, answer.ttl, answer.is_authenticated) == (status, 120, False)


def test_resolution_truncated(asking: Resolution) -> None:
    """After a truncated datagram the same server is asked over TCP, once."""
    first = asking.start()
    second = asking.reply_received(reply_to(first, flags=dns.flags.TC))
    assert second == Attempt(SERVER, PACKED, 1.0, is_tcp=True)
    third = asking.reply_received(reply_to(second, flags=dns.flags.TC))
    assert third == Attempt(SERVER, PACKED, 2.0)
    assert ended(asking.attempt_failed()).status is DnsStatus.SERVFAIL


def test_resolution_without_edns(asking: Resolution) -> None:
    """A server that does not understand EDNS is asked again without it; a second error counts."""
    second = asking.reply_received(reply_to(asking.start(), rcode=dns.rcode.FORMERR))
    assert second == Attempt(SERVER, PACKED, 1.0, has_edns=False)
    answer = ended(asking.reply_received(reply_to(second, rcode=dns.rcode.FORMERR)))
    assert answer.status is DnsStatus.SERVFAIL


def test_resolution_refused() -> None:
    """A server that refuses is not asked again for this name."""
    asking = resolution(SERVER, SECOND_SERVER)
    second = asking.reply_received(reply_to(asking.start(), rcode=dns.rcode.REFUSED))
    assert second == Attempt(SECOND_SERVER, PACKED, 1.0)
    assert asking.attempt_failed() == Attempt(SECOND_SERVER, PACKED, 2.0)
    assert ended(asking.attempt_failed()).status is DnsStatus.REFUSED


def test_resolution_server_failure() -> None:
    """A server failure may be temporary: the other servers are asked, and then it again."""
    asking = resolution(SERVER, SECOND_SERVER)
    second = asking.reply_received(reply_to(asking.start(), rcode=dns.rcode.SERVFAIL))
    assert second == Attempt(SECOND_SERVER, PACKED, 1.0)
    third = asking.reply_received(reply_to(second, rcode=dns.rcode.SERVFAIL))
    assert third == Attempt(SERVER, PACKED, 2.0)
    assert ended(asking.reply_received(reply_to(third, ADDRESS))).status is DnsStatus.FOUND


@rows(
    ((dns.rcode.SERVFAIL, dns.rcode.REFUSED), DnsStatus.SERVFAIL),
    ((dns.rcode.REFUSED, dns.rcode.SERVFAIL), DnsStatus.SERVFAIL),
    ((dns.rcode.REFUSED, None), DnsStatus.REFUSED),
    ((None, dns.rcode.SERVFAIL), DnsStatus.SERVFAIL),
    ((None, None), DnsStatus.TIMEOUT),
)
def test_resolution_significance(rcodes: tuple[int | None, ...], status: DnsStatus) -> None:
    """Without an answer the most significant failure of any server is the result."""
    asking = resolution(SERVER, SECOND_SERVER, timeouts=(1.0,))
    step = asking.start()
    for rcode in rcodes:
        step = (
            asking.attempt_failed()
            if rcode is None
            else asking.reply_received(reply_to(step, rcode=rcode))
        )
    assert ended(step).status is status


def test_resolution_follows(asking: Resolution) -> None:
    """If a chain of CNAMEs leaves the server's zones, its end is asked for."""
    step = asking.reply_received(reply_to(asking.start(), "www.example. 30 IN CNAME a.test."))
    assert step == Attempt(SERVER, pack_question(DnsQuestion("a.test", "A")), 1.0)
    answer = ended(asking.reply_received(reply_to(step, "a.test. 60 IN A 192.0.2.1")))
    assert (answer.status, answer.canonical_name) == (DnsStatus.FOUND, "a.test")
    assert (answer.ttl, answer.question) == (30, QUESTION)


@rows(
    (dns.flags.AD, dns.flags.AD, True),
    (dns.flags.AD, 0, False),
    (0, dns.flags.AD, False),
)
def test_resolution_follows_authenticated(first: int, second: int, is_authenticated: bool) -> None:
    """A chain over several replies is authenticated if each reply is."""
    asking = resolution()
    link = "www.example. 30 IN CNAME a.test."
    step = asking.reply_received(reply_to(asking.start(), link, flags=first))
    answer = ended(asking.reply_received(reply_to(step, "a.test. 60 IN A 192.0.2.1", flags=second)))
    assert answer.is_authenticated is is_authenticated


def test_resolution_loop(asking: Resolution) -> None:
    """A loop of CNAMEs over several replies is a failure."""
    step = asking.reply_received(reply_to(asking.start(), "www.example. 30 IN CNAME a.test."))
    step = asking.reply_received(reply_to(step, "a.test. 30 IN CNAME www.example."))
    assert ended(step).status is DnsStatus.SERVFAIL
    assert ended(step).ttl == 0


def test_resolution_endless_chain(asking: Resolution) -> None:
    """A chain of ever new names is a failure after a limited number of questions."""
    step = asking.reply_received(reply_to(asking.start(), "www.example. 30 IN CNAME n0.test."))
    questions = 1
    while isinstance(step, Attempt):
        link = f"n{questions - 1}.test. 30 IN CNAME n{questions}.test."
        step = asking.reply_received(reply_to(step, link))
        questions += 1
    assert step.status is DnsStatus.SERVFAIL
    assert questions == MAX_LINKS + 1


def test_resolution_garbage() -> None:
    """A malformed reply is a failed attempt, never an answer."""
    asking = resolution(timeouts=(1.0,))
    reply = reply_to(asking.start(), ADDRESS)
    assert ended(asking.reply_received(reply[:-13])).status is DnsStatus.SERVFAIL


def test_resolution_referral() -> None:
    """A referral does not mean that the name does not exist."""
    asking = resolution(timeouts=(1.0,))
    reply = reply_to(asking.start(), authority=("example. 60 IN NS ns.example.",))
    assert ended(asking.reply_received(reply)).status is DnsStatus.SERVFAIL
