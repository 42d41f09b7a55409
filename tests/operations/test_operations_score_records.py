"""Proposed records: how they are parsed, and how DNS would answer with them."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailcheck.checks.dns_answers import (
    Answers,
    DnsStatus,
    ip_addresses,
    mx_records,
    txt_values,
)
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.overlay import BadRecord, build_zone
from mailcheck.core.errors import InvalidParameter
from mailcheck.operations.deliverability.preflight import (
    MAX_RECORDS,
    check_records,
    parse_record,
)
from mailcheck.operations.dns_evaluation import MAX_QUESTIONS, DnsEvaluator
from tests.fakes.memory_zone import MemoryZone
from tests.house import result_of
from tests.table import rows

ZONE = MemoryZone(
    {
        "example.com": {"TXT": ["v=spf1 -all"], "MX": ["10 mx.example.com."]},
        "mx.example.com": {"A": ["8.8.4.1"]},
        "alias.example.com": {"CNAME": ["target.example.com."]},
        "target.example.com": {"A": ["8.8.4.2"]},
    },
    failing={"dead.example.com": DnsStatus.TIMEOUT},
)


def evaluator_with(zone: MemoryZone, records: Iterable[tuple[str, str, str]]) -> DnsEvaluator:
    """Start a request with a zone and proposed records that override it."""
    evaluator = DnsEvaluator.starting_now(zone, Clock())
    evaluator.zone = build_zone(RecordToPublish(*record) for record in records)
    return evaluator


def found_by(evaluator: DnsEvaluator, evaluate: Callable[[Answers], Any]) -> Any:
    """Evaluate until all answers are known."""
    return result_of(Deferred.fromCoroutine(evaluator.evaluate(evaluate)))


def ask_for(evaluator: DnsEvaluator, name: str, rdtype: str) -> Any:
    """Look up one answer as part of an evaluation."""
    return found_by(evaluator, lambda answers: answers.lookup(name, rdtype))


def ask(name: str, rdtype: str, *records: tuple[str, str, str]) -> Any:
    """Query the zone with proposed records."""
    return ask_for(evaluator_with(ZONE, records), name, rdtype)


def test_a_proposed_record_replaces_the_published() -> None:
    """A proposed record replaces the records of its name and type. Other types are kept."""
    proposed = ("example.com", "TXT", "v=spf1 mx -all")
    assert txt_values(ask("example.com", "TXT", proposed)) == ("v=spf1 mx -all",)
    assert mx_records(ask("example.com", "MX", proposed)) == ((10, "mx.example.com"),)
    assert ask("mx.example.com", "A", proposed).records == ask("mx.example.com", "A").records


def test_several_proposed_records_of_a_name() -> None:
    """Two different records of one name and type are both found. A duplicate counts once."""
    records = [("example.com", "A", "8.8.4.8"), ("example.com", "A", "8.8.4.9")]
    found = ask("example.com", "A", *records, records[0])
    assert [str(address) for address in ip_addresses(found)] == ["8.8.4.8", "8.8.4.9"]


def test_a_name_with_a_proposed_record_exists() -> None:
    """Other types of a new name and names above it are NODATA. Other names stay NXDOMAIN."""
    proposed = ("new.sub.example.com", "TXT", "here")
    assert ask("new.sub.example.com", "A", proposed).status is DnsStatus.NODATA
    assert ask("sub.example.com", "A", proposed).status is DnsStatus.NODATA
    assert ask("other.example.com", "A", proposed).status is DnsStatus.NXDOMAIN


def test_a_proposed_cname_is_followed() -> None:
    """A CNAME replaces all records at its name, and leads to proposed or published records."""
    cname = ("example.com", "CNAME", "mx.example.com.")
    found = ask("example.com", "A", cname)
    assert [str(address) for address in ip_addresses(found)] == ["8.8.4.1"]
    assert found.canonical_name == "mx.example.com"
    assert ask("example.com", "TXT", cname).status is DnsStatus.NODATA
    both = [cname, ("mx.example.com", "A", "8.8.4.7")]
    assert [str(a) for a in ip_addresses(ask("example.com", "A", *both))] == ["8.8.4.7"]


def test_a_published_cname_leads_to_a_proposed_record() -> None:
    """A record proposed for the target of an alias is found at the alias."""
    found = ask("alias.example.com", "A", ("target.example.com", "A", "8.8.4.9"))
    assert [str(address) for address in ip_addresses(found)] == ["8.8.4.9"]


CHAIN = {
    "one.example.com": {"CNAME": ["two.example.com."]},
    "two.example.com": {"CNAME": ["three.other.example."]},
    "three.other.example": {"CNAME": ["four.other.example."]},
    "four.other.example": {"TXT": ["published"]},
    "*.wild.example.com": {"CNAME": ["one.example.com."]},
    "broken.example.com": {"CNAME": ["dead.other.example."]},
    "round.example.com": {"CNAME": ["about.example.com."]},
    "about.example.com": {"CNAME": ["round.example.com."]},
}


class Chained:
    """A zone with a chain of CNAMEs, and proposed records."""

    def __init__(self, *records: tuple[str, str, str], **faults: Any) -> None:
        self.zone = MemoryZone(CHAIN, **faults)
        self.evaluator = evaluator_with(self.zone, records)

    def ask(self, name: str, rdtype: str = "TXT") -> Any:
        """Query a name."""
        return ask_for(self.evaluator, name, rdtype)

    def read(self, name: str) -> tuple[tuple[str, ...], str]:
        """Return the texts at a name, and the name where they were found."""
        found = self.ask(name)
        return txt_values(found), found.canonical_name


@rows(
    *product(
        ["two.example.com", "three.other.example", "four.other.example"],
        ["one.example.com", "any.wild.example.com"],
    )
)
def test_a_proposed_record_is_seen_wherever_it_stands_in_a_chain(name: str, asked: str) -> None:
    """A record at a name within a chain of published CNAMEs ends the chain there."""
    elsewhere = ("elsewhere.example.com", "TXT", "not on the way")
    assert Chained((name, "TXT", "proposed")).read(asked) == (("proposed",), name)
    assert Chained((name, "TXT", "proposed"), elsewhere).read(asked) == (("proposed",), name)
    assert Chained(elsewhere).read(asked) == (("published",), "four.other.example")


def test_the_first_proposed_record_of_a_chain_counts() -> None:
    """Records behind the first proposed one are ignored. A proposed CNAME continues the chain."""
    records = [(name, "TXT", name[:5]) for name in ("four.other.example", "two.example.com")]
    assert Chained(*records).read("one.example.com") == (("two.e",), "two.example.com")
    away = ("two.example.com", "CNAME", "four.other.example.")
    found = Chained(away, records[0]).read("one.example.com")
    assert found == (("four.",), "four.other.example")


def test_other_types_in_the_middle_of_a_chain_change_nothing() -> None:
    """A proposed record of another type does not change the answer."""
    chained = Chained(("two.example.com", "A", "8.8.4.1"))
    assert chained.read("one.example.com") == (("published",), "four.other.example")
    assert chained.zone.asked_pairs == [("one.example.com", "TXT")]


def test_a_proposed_record_fixes_a_broken_chain() -> None:
    """A loop or a silent name has no effect if the chain ends before it."""
    loose = ("elsewhere.example.com", "TXT", "x")
    mended = Chained(("about.example.com", "TXT", "proposed"), loose)
    assert mended.read("round.example.com") == (("proposed",), "about.example.com")
    assert Chained(loose).ask("round.example.com").status is DnsStatus.SERVFAIL


@rows(DnsStatus.TIMEOUT, DnsStatus.REFUSED, DnsStatus.SERVFAIL)
def test_a_chain_that_is_unknown_stays_unknown(status: DnsStatus) -> None:
    """If a chain cannot be followed, its answer is undetermined despite the proposed record."""
    chained = Chained(
        ("three.other.example", "TXT", "proposed"), failing={("two.example.com", "CNAME"): status}
    )
    assert chained.ask("one.example.com").status is status


def test_no_more_is_asked_than_can_matter() -> None:
    """A chain is followed link by link only if a proposed record may be in it."""
    end = Chained(("four.other.example", "TXT", "proposed"))
    end.ask("one.example.com")
    assert end.zone.asked_pairs == [("one.example.com", "TXT")]
    middle = Chained(("two.example.com", "TXT", "proposed"))
    middle.ask("one.example.com")
    middle.ask("four.other.example")
    assert middle.zone.asked_pairs == [
        ("one.example.com", "TXT"),
        ("one.example.com", "CNAME"),
        ("four.other.example", "TXT"),
    ]


def test_lookups_of_chains_are_limited() -> None:
    """Each link of a chain that is followed counts as a question of the mail."""
    chained = Chained(("elsewhere.example.com", "TXT", "x"))
    names = [f"n{number}.wild.example.com" for number in range(MAX_QUESTIONS)]

    def evaluate(answers: Answers) -> list[DnsStatus | None]:
        found = [answers.lookup(name, "TXT") for name in names]
        return [None if answer is None else answer.status for answer in found]

    assert DnsStatus.EXCESSIVE in found_by(chained.evaluator, evaluate)
    assert len(chained.zone.asked) == MAX_QUESTIONS


def test_a_loop_of_proposed_cnames_ends() -> None:
    """A loop gives an invalid answer, as in real DNS."""
    loop = [
        ("a.example.com", "CNAME", "b.example.com"),
        ("b.example.com", "CNAME", "a.example.com"),
    ]
    assert ask("a.example.com", "A", *loop).status is DnsStatus.SERVFAIL


def test_a_timeout_stays_a_timeout() -> None:
    """A timeout stays a timeout, whatever records are proposed."""
    proposed = ("other.example.com", "TXT", "here")
    assert ask("dead.example.com", "A", proposed).status is DnsStatus.TIMEOUT


@rows(
    ("v=spf1 -all", "v=spf1 -all"),
    ('"v=spf1" " -all"', "v=spf1 -all"),
    ('"v=spf1 -all"', "v=spf1 -all"),
    ("p=" + "A" * 600, "p=" + "A" * 600),
    ('say "hello"', 'say "hello"'),
    ("back\\slash; semicolon", "back\\slash; semicolon"),
    ("ümlaut", "ümlaut"),
)
def test_txt_with_and_without_quotes(value: str, text: str) -> None:
    """TXT is parsed in zone file syntax or as plain text, in any length."""
    record = parse_record("example.com", "txt", value, parameter="records[0]")
    assert txt_values(ask("example.com", "TXT", (record.name, record.rdtype, record.value))) == (
        text,
    )


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=700))
def test_any_text_can_be_proposed(text: str) -> None:
    """Text that does not begin with a quote is unchanged, except for surrounding spaces."""
    text = text.strip().lstrip('"') or "x"
    zone = build_zone([RecordToPublish("example.com", "TXT", text)])
    strings = zone["example.com"]["TXT"][0].strings  # type: ignore[attr-defined]
    assert b"".join(strings).decode() == text
    assert all(len(one) <= 255 for one in strings)


@rows(
    ("example.com", "A", "not an address", r"records\[3\].value is not a valid value for A"),
    ("example.com", "MX", "mx.example.com", r"records\[3\].value"),
    ("example.com", "TXT", "  ", "value is missing"),
    ("example.com", "TXT", "x" * 9_000, "longer than"),
    ("example.com", "TXT", '"open', r"records\[3\].value"),
    ("example.com", "SRV", "1 1 1 a.", "must be one of TXT"),
    ("exa mple.com", "A", "8.8.4.1", r"records\[3\].name"),
    ("", "A", "8.8.4.1", r"records\[3\].name"),
)
def test_bad_records_are_named(name: str, rdtype: str, value: str, problem: str) -> None:
    """An error names the record, its field and the problem."""
    with pytest.raises(InvalidParameter, match=problem):
        parse_record(name, rdtype, value, parameter="records[3]")


def test_names_of_mail_are_accepted() -> None:
    """Records may have names with underscores, reverse names, upper case and other scripts."""
    for name, shown in (
        ("_dmarc.Example.COM.", "_dmarc.example.com"),
        ("1.4.8.8.in-addr.arpa", "1.4.8.8.in-addr.arpa"),
        ("s1._domainkey.bücher.example", "s1._domainkey.xn--bcher-kva.example"),
    ):
        assert parse_record(name, "TXT", "x", parameter="r").name == shown


def test_invalid_combinations() -> None:
    """Records beside a CNAME, an empty list and too many records are rejected."""
    cname = RecordToPublish("example.com", "CNAME", "a.example.com.")
    text = RecordToPublish("example.com", "TXT", "x")
    check_records([text], parameter="records")
    with pytest.raises(InvalidParameter, match="beside the CNAME"):
        check_records([cname, text], parameter="records")
    with pytest.raises(InvalidParameter, match="is empty"):
        check_records([], parameter="records")
    with pytest.raises(InvalidParameter, match="51 records; send at most 50"):
        check_records([text] * (MAX_RECORDS + 1), parameter="records")
    with pytest.raises(BadRecord):
        build_zone([cname, RecordToPublish("example.com", "CNAME", "b.example.com.")])
