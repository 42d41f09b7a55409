"""Hostile SPF records cause no crash, flood of queries, long computation or wrong pass."""

import time
from ipaddress import ip_address

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dmarc.mail import evaluate_dmarc_of_mail
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.hosts.helo import evaluate_helo
from mailcheck.checks.spf.mail import SpfOfMail, describe_spf_of_mail, evaluate_spf_of_mail
from mailcheck.checks.spf.record import MAX_RECORD, MAX_TERMS
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

CLIENT = ip_address("192.0.2.1")
LONGEST_STALL = 0.25  # seconds of CPU for one run; measured maximum: 0.05
MOST_QUESTIONS = 130  # 10 terms with 10 mail hosts each, the records, and what ptr needs


def judge(zone: MemoryZone, sender: str = "joe@d.example", helo_name: str = "") -> SpfOfMail:
    """Evaluate a mail, and measure each run."""
    slowest = 0.0

    def evaluate(answers: Answers) -> SpfOfMail:
        nonlocal slowest
        start = time.thread_time()
        verdict = evaluate_spf_of_mail(CLIENT, helo_name, sender, "r", answers)
        slowest = max(slowest, time.thread_time() - start)
        return verdict

    verdict = settle(zone, evaluate)
    assert slowest < LONGEST_STALL
    assert len(zone.asked) <= MOST_QUESTIONS
    return verdict


def nested(text: str) -> MemoryZone:
    """Publish a record that includes ten others, each followed by the same text."""
    zone = MemoryZone({})
    zone.publish("d.example", "TXT", f"v=spf1 include:i0.example {text}")
    for number in range(11):
        zone.publish(f"i{number}.example", "TXT", f"v=spf1 include:i{number + 1}.example {text}")
    return zone


FULL = MAX_RECORD - 40  # characters that fit beside an include

HOSTILE = {
    "dots": "a:" + "." * FULL,
    "dots and percent": "a:" + "%%." * (FULL // 3) + "x",
    "one label": "a:x." + "a" * FULL + "!",
    "letters and hyphens": "a:x." + "a-" * (FULL // 2),
    "macros": "a:" + "%{s}" * (FULL // 4),
    "reversed macros": "a:" + "%{sr-}" * (FULL // 6),
    "escaped macros": "a:" + "%{S}" * (FULL // 4) + ".x.example",
    "digits in a macro": "a:%{d" + "9" * FULL + "}.example",
    "digits in a length": "a/" + "1" * FULL,
    "digits in a dual length": "a//" + "1" * FULL,
    "slashes": "a" + "/1" * (FULL // 2),
    "modifiers": " ".join(f"x{number}=y" for number in range(MAX_TERMS - 10)),
    "modifier values": "x=" + "%{d}" * (FULL // 4),
    "open braces": "a:" + "%{d" * (FULL // 3),
    "addresses": "ip4:1.2.3.4 " * (MAX_TERMS - 10),
    "many terms": "a " * (FULL // 2),
    "blanks": " " * FULL,
    "colons": "ip6:" + ":" * FULL,
    "ip6 groups": "ip6:" + "1:" * (FULL // 2),
    "ptr macros": "exists:" + "%{p}." * (FULL // 5) + "x.example",
    "beyond the limit": "ip4:192.0.2.1 " * (MAX_RECORD // 13),
}


@rows(*HOSTILE)
def test_attack_spf_costs_little_time(name: str) -> None:
    """A tree of records that is built to be slow is evaluated in limited time without a pass."""
    verdict = judge(nested(HOSTILE[name]), "joe-" + "x-" * 28 + "@d.example")
    assert verdict.mail_from.result in (AuthResult.PERMERROR, AuthResult.NEUTRAL)
    assert len(verdict.mail_from.explanation) < 500


def test_attack_spf_amplification() -> None:
    """Ten records of ten terms with ten mail hosts each cause no more queries than allowed."""
    zone = MemoryZone({})
    terms = " ".join(f"mx:m{number}.example" for number in range(10))
    for number in range(10):
        hosts = [f"10 h{host}.m{number}.example." for host in range(10)]
        zone.publish(f"m{number}.example", "MX", *hosts)
        zone.publish(f"i{number}.example", "TXT", f"v=spf1 {terms} -all")
        for host in range(10):
            zone.publish(f"h{host}.m{number}.example", "A", "192.0.2.200")
    includes = " ".join(f"include:i{number}.example" for number in range(10))
    zone.publish("d.example", "TXT", f"v=spf1 {includes} -all")
    assert judge(zone).mail_from.result is AuthResult.PERMERROR


def test_attack_spf_thousands_of_addresses() -> None:
    """A host with thousands of addresses makes SPF undetermined, in little time."""
    zone = MemoryZone({})
    addresses = [f"10.{number // 250}.{number % 250}.1" for number in range(4000)]
    for number in range(10):
        zone.publish(f"h{number}.example", "A", *addresses)
    zone.publish("m.example", "MX", *(f"10 h{number}.example." for number in range(10)))
    zone.publish("d.example", "TXT", "v=spf1 mx:m.example a:h1.example a:h2.example -all")
    assert judge(zone).mail_from.result is AuthResult.TEMPERROR


def test_attack_spf_loops() -> None:
    """Records that refer to each other end at the limit of lookups."""
    zone = MemoryZone({})
    zone.publish("d.example", "TXT", "v=spf1 include:e.example redirect=e.example")
    zone.publish("e.example", "TXT", "v=spf1 include:d.example redirect=d.example")
    assert judge(zone).mail_from.result is AuthResult.PERMERROR


def test_attack_spf_many_texts() -> None:
    """Thousands of TXT records beside the right one have no effect."""
    zone = MemoryZone({})
    zone.publish("d.example", "TXT", *(f"x{n}" for n in range(3000)), "v=spf1 ip4:192.0.2.1 -all")
    assert judge(zone).mail_from.result is AuthResult.PASS


def test_attack_spf_names_from_the_mail() -> None:
    """A sender's local part reaches DNS as one harmless name, or not at all."""
    zone = MemoryZone({})
    zone.publish("d.example", "TXT", "v=spf1 exists:%{l}.x.example -all")
    for local_part in ("a.b.c", '"a b"', '"a\\\\032b"', "'*'", '"a@b.example"', "x" * 64):
        judge(zone, f"{local_part}@d.example")
    below = [q.name for q in zone.asked if q.rdtype == "A"]
    assert all(name.endswith(".x.example") for name in below)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)
TERMS = st.one_of(
    TEXTS,
    st.from_regex(r"\A[+?~-]?(a|mx|ptr|exists|include|all)(:[%{}a-z0-9._/-]{0,20})?\Z"),
    st.from_regex(r"\Aip[46]:[0-9a-f:./]{0,20}\Z"),
    st.from_regex(r"\A(redirect|exp|x)=[%{}slodiphcrtv0-9._+-]{0,20}\Z"),
    st.from_regex(r"\A(a|exists):(%\{[a-zA-Z][0-9]{0,6}r?[.+,/_=-]{0,3}\}){1,4}\.example\Z"),
)


@given(st.lists(TERMS, max_size=8), TEXTS, TEXTS)
def test_attack_spf_random_records(terms: list[str], sender: str, helo_name: str) -> None:
    """Any record, sender and HELO name has a verdict and a text for it."""
    zone = MemoryZone({})
    zone.publish("d.example", "TXT", " ".join(["v=spf1", *terms]))
    for envelope_sender in (f"{sender}@d.example", sender):
        verdict = judge(zone, envelope_sender, helo_name)
        zone.asked.clear()
        assert verdict.mail_from.explanation
        describe_spf_of_mail(verdict)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_attack_spf_random_octets(octets: bytes) -> None:
    """A record with any octets after the version is evaluated without a crash."""
    zone = MemoryZone({})
    text = "".join(f"\\{octet:03d}" for octet in b"v=spf1 " + octets)
    cut = [text[start : start + 800] for start in range(0, len(text), 800)]
    zone.publish("d.example", "TXT", " ".join(f'"{piece}"' for piece in cut))
    assert judge(zone).mail_from.result.value


@settings(deadline=None)
@example("\\", ["\\", "a\\.example", "\\300.example"])
@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_attack_greetings_and_authors(helo_name: str, authors: list[str]) -> None:
    """Any text as a HELO name or an author domain has a verdict."""
    zone = MemoryZone({})
    assert settle(zone, lambda a: evaluate_helo(helo_name, CLIENT, a)).form
    assert settle(zone, lambda a: evaluate_dmarc_of_mail(authors, None, None, a)).explanation
