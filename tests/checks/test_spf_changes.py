"""The workarounds for pyspf in `pyspf_query` are still needed.

Each test shows pyspf itself beside `MailQuery`. If a test fails with a new version, pyspf has
fixed the problem: then remove the workaround from `pyspf_query`.
"""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import pytest
import spf  # type: ignore[import-untyped]

from mailcheck.checks.dns_answers import Answers, DnsQuestion, DnsStatus, look_up
from mailcheck.checks.spf.pyspf_query import Fault, MailQuery
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

CLIENT = "192.0.2.1"
REVERSE = "1.2.0.192.in-addr.arpa"
Zone = Mapping[tuple[str, str], list[Any]]


class Upstream(spf.query):  # type: ignore[misc]
    """A query of pyspf with a table instead of a resolver."""

    def __init__(self, zone: Zone, sender: str = "ann@a.example") -> None:
        super().__init__(CLIENT, sender, "mail.example")
        self.zone = zone
        self.asked: list[str] = []

    def dns(self, name: str, qtype: str, *arguments: Any, **options: Any) -> Any:
        """Put the answer into the cache of pyspf; without an answer, DNS times out."""
        self.asked.append(f"{name} {qtype}")
        if (name, qtype) not in self.zone:
            raise spf.TempError("no answer")
        self.cache[name, qtype] = self.zone[name, qtype]
        self.cache[name, "CNAME"] = [name]  # ends the search before a resolver is used
        return super().dns(name, qtype, *arguments, **options)


def upstream(record: str, zone: Zone | None = None, sender: str = "ann@a.example") -> Upstream:
    """Let pyspf evaluate a record of a.example."""
    query = Upstream({("a.example", "TXT"): [(record.encode(),)], **(zone or {})}, sender)
    query.result = query.check()[0]
    return query


def query_of(answers: Answers) -> MailQuery:
    """Return the query of the same mail from answers."""
    return MailQuery(
        ip_address(CLIENT), "ann", "a.example", "mail.example", "mx.here.example", answers
    )


def ours(
    record: str,
    hosts: Mapping[str, Mapping[str, list[str]]] | None = None,
    failing: Mapping[str | tuple[str, str], DnsStatus] | None = None,
) -> MailQuery:
    """Let `MailQuery` evaluate the record."""
    zone = MemoryZone(
        {"a.example": {"TXT": [record]}, **(hosts or {})}, failing=dict(failing or {})
    )

    def evaluate(answers: Answers) -> MailQuery:
        query = query_of(answers)
        query.result = query.check()[0]
        return query

    return settle(zone, evaluate)


def faults_of(
    record: str, hosts: Mapping[str, Mapping[str, list[str]]] | None = None
) -> tuple[Fault, str]:
    """Return the fault that `MailQuery` finds, and the domain of its record."""
    found = ours(record, hosts).fault
    assert found is not None
    return found.fault, found.domain


def test_pyspf_cuts_a_quoted_local_part() -> None:
    """The local part ends at the last @ (RFC 5321 4.1.2); pyspf splits at the first."""
    assert spf.split_email('"a@b"@c.example', "h.example") == ('"a', 'b"@c.example')


def test_pyspf_stops_at_a_question_without_an_answer() -> None:
    """Pyspf waits for each answer; `MailQuery` goes on and finds all missing queries at once."""
    record = "v=spf1 a:one.example mx:two.example -all"
    assert upstream(record).asked == ["a.example TXT", "one.example A"]
    zone = MemoryZone({"a.example": {"TXT": [record]}})
    own = DnsQuestion("a.example", "TXT")
    answers = Answers({own: settle(zone, lambda known: look_up(known, "a.example", "TXT"))})
    query_of(answers).check()
    assert [*answers.missing] == [DnsQuestion("one.example", "A"), DnsQuestion("two.example", "MX")]


def test_pyspf_counts_a_redirect_that_is_not_followed() -> None:
    """A redirect counts once no term matched (RFC 7208 4.6.4); pyspf counts it earlier."""
    record = "v=spf1 ip4:192.0.2.1 redirect=other.example"
    assert (upstream(record).result, upstream(record).lookups) == ("pass", 1)
    assert (ours(record).result, ours(record).lookups) == ("pass", 0)


def test_pyspf_counts_a_void_lookup_for_each_mail_host() -> None:
    """An mx term is void at most once (RFC 7208 4.6.4); pyspf counts each of its hosts."""
    record, names = "v=spf1 mx -all", ["m1.example", "m2.example", "m3.example"]
    theirs = upstream(
        record,
        {("a.example", "MX"): [(10, name) for name in names]} | {(name, "A"): [] for name in names},
    )
    assert (theirs.result, theirs.void_lookups) == ("permerror", 3)
    hosts = {"a.example": {"TXT": [record], "MX": [f"10 {name}." for name in names]}}
    query = ours(record, hosts)
    assert (query.result, query.void_lookups) == ("fail", 1)


@rows((REVERSE, "PTR"), ("x.a.example", "A"))
def test_pyspf_fails_if_a_reverse_name_has_no_answer(silent: tuple[str, str]) -> None:
    """A DNS error of ptr is no match (RFC 7208 5.5); pyspf returns temperror."""
    record = "v=spf1 ptr -all"
    zone = {(REVERSE, "PTR"): ["x.a.example"]}
    zone.pop(silent, None)
    assert upstream(record, zone).result == "temperror"
    hosts = {REVERSE: {"PTR": ["x.a.example."]}, "x.a.example": {"A": [CLIENT]}}
    assert ours(record, hosts, {silent: DnsStatus.SERVFAIL}).result == "fail"


@rows("a:exa..mple.example", "a:%{d0}.example")
def test_pyspf_accepts_terms_that_are_errors(term: str) -> None:
    """Empty labels and macros of zero labels are errors (RFC 7208 7.1); pyspf accepts them."""
    theirs = spf.query(CLIENT, "ann@a.example", "mail.example")
    assert theirs.validate_mechanism(term)[1] == "a"
    assert faults_of(f"v=spf1 {term} -all") == (Fault.SYNTAX, "a.example")


def test_pyspf_follows_a_loop_of_two_records() -> None:
    """Pyspf evaluates a loop until the lookups are used up; `MailQuery` ends at once."""
    record, back = "v=spf1 include:b.example -all", "v=spf1 include:a.example -all"
    theirs = upstream(record, {("b.example", "TXT"): [(back.encode(),)]})
    assert (theirs.result, theirs.lookups) == ("permerror", 11)
    assert faults_of(record, {"b.example": {"TXT": [back]}}) == (Fault.LOOP, "a.example")


def test_pyspf_describes_an_error_in_words_alone() -> None:
    """A permerror of pyspf has no value with the fault and the domain of the record."""
    with pytest.raises(spf.PermError) as raised:
        Upstream({}).check1("v=spf1 include:a.example -all", "a.example", 0)
    assert all(isinstance(argument, str) for argument in raised.value.args)
    assert faults_of("v=spf1 include:a.example -all") == (Fault.LOOP, "a.example")
