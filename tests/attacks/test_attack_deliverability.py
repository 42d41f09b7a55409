"""Mails and preflights that are built to use many DNS queries, slots or memory."""

from collections.abc import Callable, Iterator
from typing import Any

import dns.name
import dns.rdata
import pytest
from twisted.internet.defer import Deferred, succeed

from mailcheck.api.deliverability.report import store_report
from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.findings import RecordToPublish
from mailcheck.operations.deliverability.preflight import MAX_AT_ONCE, MAX_OF_ACCOUNT, MAX_RECORDS
from mailcheck.operations.deliverability.score_mail import MAX_NAMES
from mailcheck.operations.dns_evaluation import MAX_QUESTIONS
from tests.fakes.mail_signer import MAIL, RSA
from tests.house import Pending, run
from tests.operations.scored_mails import received, score, scorer
from tests.table import rows
from tests.web.scored_house import ScoredHouse

pytestmark = pytest.mark.attack

LIST_QUESTIONS = 2 * (20 + 12 * MAX_NAMES)
"""DNS queries for one mail: whether it is listed, and the reason for each listing."""


class Amplifier:
    """A resolver whose answers always lead to another query, as an attacker's zone could.

    ``asked`` are the queries, in order.
    """

    def __init__(self) -> None:
        self.asked: list[DnsQuestion] = []

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises."""
        self.asked.append(question)
        texts = self._texts(question)
        records = tuple(
            dns.rdata.from_text("IN", question.rdtype, text, origin=dns.name.root, relativize=False)
            for text in texts
        )
        status = DnsStatus.FOUND if records else DnsStatus.NODATA
        return succeed(DnsAnswer(question, status, records, question.name, 300))

    def _texts(self, question: DnsQuestion) -> list[str]:
        name = question.name.removesuffix(".")
        if question.rdtype == "A":
            # Names of lists are listed; others have many addresses but not that of the client.
            is_list = not name.endswith("attack.example")
            return ["127.0.0.2"] if is_list else [f"8.8.1.{number}" for number in range(1, 100)]
        if question.rdtype in ("MX", "PTR"):
            preference = "10 " if question.rdtype == "MX" else ""
            return [f"{preference}h{number}.{name[-180:]}." for number in range(10)]
        if question.rdtype == "TXT" and "_domainkey" in name:
            return _quote(RSA.key_record)
        if question.rdtype == "TXT":
            terms = [f"include:i{number}.attack.example" for number in range(4)]
            terms += [f"mx:m{number}.%{{l}}.attack.example" for number in range(4)]
            terms += [f"exists:%{{ir}}.e{number}.attack.example" for number in range(4)]
            return _quote(f"v=spf1 ptr {' '.join(terms)} -all")
        return []


def _quote(text: str) -> list[str]:
    return [" ".join(f'"{text[cut : cut + 255]}"' for cut in range(0, len(text), 255))]


def hostile_mail() -> bytes:
    """Return a mail with many authors, signers, sealers and linked domains."""
    authors = ", ".join(f"<a@author{number}.attack.example>" for number in range(100))
    links = "\r\n".join(f"https://www.link{n}.example/" for n in range(1_000))
    text = MAIL.partition(b"\r\n\r\n")[0].split(b"\r\n", 1)[1]
    signatures = b"".join(
        b"DKIM-Signature: v=1; a=rsa-sha256; d=%s; s=s%d; h=from; bh=%s=; b=AAAA\r\n"
        % (b".".join([b"a"] * 20) + b".s%d.attack.example" % number, number, b"A" * 43)
        for number in range(50)
    )
    seals = b"".join(
        b"ARC-Seal: i=%d; a=rsa-sha256; cv=%s; d=a%d.attack.example; s=s; b=AAAA\r\n"
        b"ARC-Message-Signature: i=%d; a=rsa-sha256; d=b%d.attack.example; s=s; h=from;"
        b" bh=%s=; b=AAAA\r\n"
        b"ARC-Authentication-Results: i=%d; x; none\r\n"
        % (number, b"pass" if number > 1 else b"none", number, number, number, b"A" * 43, number)
        for number in range(50, 0, -1)
    )
    head = b"From: " + authors.encode() + b"\r\n" + text
    return seals + signatures + head + b"\r\n\r\n" + links.encode()


def ask_all(raw_message: bytes, sender: str) -> Amplifier:
    """Score a mail with the amplifying resolver."""
    zone = Amplifier()
    mail = received(raw_message, envelope_sender=sender, helo_name="helo.attack.example")
    run(scorer(zone).score(mail))
    return zone


@pytest.mark.parametrize("sign", [bytes, RSA.sign], ids=["hostile mail", "signed as well"])
@pytest.mark.parametrize("author", [b"", b"<a@b.c.d.e.f.g.attack.example>\r\nX-From: "])
def test_questions_of_one_mail(author: bytes, sign: Callable[[bytes], bytes]) -> None:
    """A mail never causes more queries than the fullest honest one, whatever it names."""
    mail = sign(hostile_mail().replace(b"\r\nFrom: ", b"\r\nFrom: " + author))
    asked = ask_all(mail, "a.b.c.d@x.y.attack.example").asked
    assert MAX_QUESTIONS / 2 < len(asked) <= MAX_QUESTIONS + LIST_QUESTIONS
    own = [question for question in asked if question.name.endswith("attack.example")]
    assert len(own) <= MAX_QUESTIONS


PARTS = b'--b\r\nContent-Type: application/x; name="%s"\r\n\r\nx\r\n' % (b"n" * 200)

LONG: dict[str, bytes] = {
    "everything": hostile_mail(),
    "links": MAIL + b"".join(b"http://h%d.example/%s\r\n" % (n, b"x" * 900) for n in range(2_000)),
    "parts": b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + PARTS * 5_000,
    "fields": b"X-%s: y\r\n" % (b"n" * 500) * 3_000 + MAIL,
    "one field": b"Subject: " + b"=?utf-8?q?=00?= " * 100_000 + b"\r\n" + MAIL,
    "octets": bytes(range(256)) * 8_000,
}


@rows(*LONG.values())
def test_the_size_of_a_report(raw_message: bytes) -> None:
    """The stored result of a mail's test has a maximum size, whatever the mail contains."""
    transcript = tuple(f"C: RCPT TO:<{number}@x.example>" for number in range(500))
    mail = received(raw_message, helo_name="h" * 500, transcript=transcript)
    report = run(scorer(Amplifier()).score(mail))
    assert len(store_report(report).document) < 320_000


@pytest.fixture
def scored() -> Iterator[ScoredHouse]:
    """An application with the zone of a perfect sender."""
    scored = ScoredHouse()
    yield scored
    scored.close()


DMARC = {"name": "_dmarc.sender.example", "type": "TXT", "value": "v=DMARC1; p=reject"}


def begin(scored: ScoredHouse, test_id: str, key: str = "") -> Pending:
    """Begin a preflight that ends when the content filter answers."""
    pending = scored.house.ask(
        "POST", f"/test/{test_id}/preflight", key=key, json={"records": [DMARC]}
    )
    scored.house.pass_time(0)
    return pending


def test_preflights_of_one_account(scored: ScoredHouse) -> None:
    """The number of running preflights is limited; an ended or abandoned one frees its slot."""
    test_id, _ = scored.scored()
    scored.content_filter.holds = True
    pending = [begin(scored, test_id) for _ in range(MAX_OF_ACCOUNT)]
    refused = begin(scored, test_id).answer()
    assert (refused.status, "are running" in refused.json["error"]) == (429, True)
    assert not any(one.is_answered for one in pending)
    scored.content_filter.answer()
    assert {one.answer().status for one in pending} == {200}
    scored.content_filter.holds = False
    assert begin(scored, test_id).answer().status == 200


def test_preflights_of_all(scored: ScoredHouse) -> None:
    """All accounts together have a limit as well, and a failed preflight frees its slot."""
    callers = []
    for number in range(MAX_AT_ONCE // MAX_OF_ACCOUNT + 1):
        key = scored.house.issue_key(scored.house.add_account(f"account {number}"))
        callers.append((scored.generate(key), key))
        scored.send(callers[-1][0])
    *many, last = callers
    assert begin(scored, many[0][0], last[1]).answer().status == 404
    scored.content_filter.holds = True
    pending = [begin(scored, *caller) for caller in many * MAX_OF_ACCOUNT]
    assert not any(one.is_answered for one in pending)
    assert begin(scored, *last).answer().status == 503
    scored.content_filter.answer()
    scored.content_filter.holds = False
    assert {one.answer().status for one in (*pending, begin(scored, *last))} == {200}


class Circle:
    """A resolver in which every name is a CNAME to the next of the proposed names."""

    def __init__(self) -> None:
        self.asked: list[DnsQuestion] = []

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Answer as `mailcheck.operations.dns_ports.Resolver` promises."""
        self.asked.append(question)
        target = f"p{len(self.asked) % MAX_RECORDS}.attack.example"
        return succeed(DnsAnswer(question, DnsStatus.NODATA, (), target, 300))


def test_names_that_lead_on_for_ever() -> None:
    """Alternating proposed and published CNAMEs do not cause a flood of queries."""
    zone: Any = Circle()
    names = [f"{number}.attack.example" for number in range(MAX_RECORDS)]
    records = [RecordToPublish(f"p{name}", "CNAME", f"q{name}.") for name in names]
    score(zone, received(hostile_mail()), records)
    assert len(zone.asked) <= 2 * (MAX_QUESTIONS + LIST_QUESTIONS)
