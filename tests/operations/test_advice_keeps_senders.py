"""SPF advice never excludes a sender: all intended hosts pass after following it."""

import random
from collections.abc import Callable
from ipaddress import ip_address
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.overlay import Change
from mailcheck.checks.proofs import NotProven, Outcome, ProvenFix
from mailcheck.checks.spf.mail import evaluate_spf_of_mail
from mailcheck.checks.spf.record import NamedSender
from mailcheck.operations.domains.check_mx import CheckMx, MxCheck
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.house import run
from tests.table import rows

DOMAIN = "d.example"

SENDERS = {
    "mx": "8.8.4.1",
    "a": "8.8.4.5",
    "a:h.d.example": "8.8.4.2",
    "mx:m.d.example/28": "8.8.5.14",
    "ip4:8.8.6.7": "8.8.6.7",
    "ip4:8.8.7.0/24": "8.8.7.99",
    "ip6:2600:5::/48": "2600:5::1",
    "include:_spf.p.example": "8.8.8.5",
    "exists:%{i}.q.example": "8.8.9.1",
}
"""Terms of SPF records, each with a host that only passes by this term."""

HOSTS = {
    DOMAIN: {"A": ["8.8.4.5"], "MX": ["10 mx.d.example."]},
    "mx.d.example": {"A": ["8.8.4.1"]},
    "h.d.example": {"A": ["8.8.4.2"]},
    "m.d.example": {"MX": ["10 h.m.d.example."]},
    "h.m.d.example": {"A": ["8.8.5.1"]},
    "_spf.p.example": {"TXT": ["v=spf1 ip4:8.8.8.0/24 -all"]},
    "8.8.9.1.q.example": {"A": ["127.0.0.2"]},
    "_dmarc.d.example": {"TXT": ["v=DMARC1; p=reject; rua=mailto:d@d.example"]},
}

Strings = tuple[str, ...]
Defect = Callable[[list[str], str, random.Random], Strings]


def _record(terms: list[str], end: str) -> str:
    return " ".join(["v=spf1", *terms, end])


def _glued_by(mark: str) -> Defect:
    def glue(terms: list[str], end: str, chance: random.Random) -> Strings:
        words = [*terms, end]
        place = chance.randrange(1, len(words))
        if (
            mark == "\u200b"
            and words[place - 1].endswith("example")
            and words[place] in ("a", "mx")
        ):
            place = len(words) - 1  # it is unclear what "a:h.d.examplemx" was meant to be
        glued = [*words[: place - 1], words[place - 1] + mark + words[place], *words[place + 1 :]]
        return (" ".join(["v=spf1", *glued]),)

    return glue


def _changed(what: str, to: str) -> Defect:
    def change(terms: list[str], end: str, _: random.Random) -> Strings:
        return (_record(terms, end).replace(what, to),)

    return change


def _written(before: str, after: str) -> Defect:
    """Change one kind of term, and insert one if the record has none."""

    def change(terms: list[str], end: str, _: random.Random) -> Strings:
        full = terms if any(before in one for one in terms) else [*terms, _term_with(before)]
        return (_record(full, end).replace(before, after),)

    return change


def _term_with(part: str) -> str:
    return next(one for one in SENDERS if part in one)


def _strings(terms: list[str], end: str, chance: random.Random) -> Strings:
    words = ["v=spf1", *terms, end]
    place = chance.randrange(2, len(words))
    if "%" in words[place - 1] and words[place] in ("a", "mx"):
        place = 1  # it is unclear what "exists:%{i}.q.examplemx" was meant to be
    return " ".join(words[:place]), " ".join(words[place:])


def _behind_all(terms: list[str], end: str, chance: random.Random) -> Strings:
    words = [*terms]
    words.insert(chance.randrange(len(terms)), end)
    return (" ".join(["v=spf1", *words]),)


DEFECTS: dict[str, Defect] = {
    "comma": _glued_by(","),
    "semicolon": _glued_by("; "),
    "tab": _glued_by("\t"),
    "no-break space": _glued_by("\u00a0"),
    "zero-width space": _glued_by("\u200b"),
    "HTML space": _glued_by("&nbsp;"),
    "line end": _glued_by("\r\n"),
    "no space before all": lambda terms, end, _: (" ".join(["v=spf1", *terms]) + end,),
    "strings without a space": _strings,
    "terms behind all": _behind_all,
    "comma at the end": lambda terms, end, _: (_record([f"{one}," for one in terms], end),),
    "full stop": lambda terms, end, _: (f"{_record(terms, end)}.",),
    "bare address": _written("ip4:8.8.6.7", "8.8.6.7"),
    "bare IPv6 network": _written("ip6:2600:5::", "2600:5::"),
    "space before length": _written("8.8.7.0/24", "8.8.7.0 /24"),
    "zeros": _written("8.8.7.0/24", "008.008.007.000/24"),
    "netmask": _written("8.8.7.0/24", "8.8.7.0/255.255.255.0"),
    "range": _written("ip4:8.8.7.0/24", "ip4:8.8.7.96-8.8.7.111"),
    "equals sign": _written("ip4:8.8.6.7", "ip4=8.8.6.7"),
    "ipv4": _written("ip4:8.8.6.7", "ipv4:8.8.6.7"),
    "wrong family": _written("ip6:2600:5::", "ip4:2600:5::"),
    "a of an address": _written("ip4:8.8.6.7", "a:8.8.6.7"),
    "inlude": _written("include:", "inlude:"),
    "include with equals": _written("include:", "include="),
    "inlude with equals": _written("include:", "inlude="),
    "space in include": _written("include:", "include: "),
    "include without colon": _written("include:", "include "),
    "URL": _written("include:_spf.p.example", "include:https://_spf.p.example/"),
    "port": _written("h.d.example", "h.d.example:25"),
    "Markdown": lambda terms, end, _: (
        _record(terms, end).replace("_", "\\_").replace("~", "\\~").replace("-all", "\\-all"),
    ),
    "en dash": lambda terms, end, _: (_record(terms, end.replace("-", "\u2013")) + " ",),
    "quotes": lambda terms, end, _: (f"\u201c{_record(terms, end)}\u201d",),
    "quoted terms": lambda terms, end, _: (_record([f'"{one}"' for one in terms], end),),
    "full-width signs": _changed(":", "\uff1a"),
    "full-width version": _changed("v=spf1", "\uff56\uff1d\uff53\uff50\uff46\uff11"),
    "byte order mark": lambda terms, end, _: (f"\ufeff{_record(terms, end)}",),
    "no v": _changed("v=spf1", "spf1"),
    "no number": _changed("v=spf1 ", "v=spf "),
    "no space behind the version": _changed("v=spf1 ", "v=spf1"),
    "semicolon behind the version": _changed("v=spf1 ", "v=spf1; "),
    "no version": _changed("v=spf1 ", ""),
    "leading space": lambda terms, end, _: (f" {_record(terms, end)}",),
}


def zone_with(*records: Strings) -> MemoryZone:
    """Publish TXT records, each given as its strings."""
    zone = MemoryZone(HOSTS)
    zone.publish(DOMAIN, "TXT", *(_as_typed(strings) for strings in records))
    return zone


def _as_typed(strings: Strings) -> str:
    return " ".join(
        '"' + "".join(f"\\{octet:03d}" for octet in one.encode()) + '"' for one in strings
    )


def no_selectors(_: str) -> Deferred[tuple[str, ...]]:
    """Return no selectors."""
    return succeed(())


def check(zone: MemoryZone) -> MxCheck:
    """Check the domain."""
    found: MxCheck = run(CheckMx(zone, no_selectors, Clock(), allow_private=False).check(DOMAIN))
    return found


def follow(zone: MemoryZone) -> list[ProvenFix]:
    """Publish proposed records until there are none, and return the published ones."""
    published: list[ProvenFix] = []
    for _ in range(5):
        fixes = [one for one in check(zone).proofs.values() if one.record.name == DOMAIN]
        if not fixes:
            return published
        fix = fixes[0]
        others = set(zone.published(DOMAIN, "TXT")) - set(fix.removed) - {fix.record.value}
        zone.publish(DOMAIN, "TXT", *others, fix.record.value)
        published.append(fix)
    raise AssertionError("advice has no end")


def result_for(zone: MemoryZone, client: str) -> AuthResult:
    """Return the result of SPF for a mail from a host."""
    verdict = settle(
        zone,
        lambda answers: evaluate_spf_of_mail(
            ip_address(client), "h", f"j@{DOMAIN}", "receiver", answers
        ),
    )
    return verdict.mail_from.result


TERMS = st.lists(st.sampled_from(sorted(SENDERS)), min_size=1, max_size=4, unique=True)
ENDS = st.sampled_from(["-all", "~all"])
STRANGER = "8.9.9.9"


@rows(*DEFECTS)
def test_one_mistake_in_a_record_costs_no_sender(name: str) -> None:
    """A record with one mistake is fixed: exactly the intended hosts pass."""
    chance = random.Random(name)
    for end in ("-all", "~all"):
        terms = chance.sample(sorted(SENDERS), chance.randrange(1, 5))
        strings = DEFECTS[name](terms, end, chance)
        zone = zone_with(strings)
        follow(zone)
        for term in terms:
            assert result_for(zone, SENDERS[term]) is AuthResult.PASS, (strings, term)
        assert result_for(zone, STRANGER) in (AuthResult.FAIL, AuthResult.SOFTFAIL), strings


@settings(max_examples=settings().max_examples // 2)
@given(TERMS, TERMS, ENDS, st.sampled_from(sorted(DEFECTS)), st.integers(0, 9))
def test_several_records_of_which_one_is_broken_cost_no_sender(
    terms: list[str], more: list[str], end: str, name: str, seed: int
) -> None:
    """Two records, one of them broken, are merged into one that keeps the senders of both."""
    strings = DEFECTS[name](terms, end, random.Random(seed))
    zone = zone_with(strings, (_record(more, "-all"),), ("google-site-verification=1",))
    follow(zone)
    for term in (*terms, *more):
        assert result_for(zone, SENDERS[term]) is AuthResult.PASS, (strings, more, term)
    assert "google-site-verification=1" in zone.published(DOMAIN, "TXT")


@rows(*product(["a", "mx"], ["include:_spf.p.example", "exists:%{i}.q.example"]))
def test_strings_joined_to_a_similar_name_cost_no_sender(first: str, second: str) -> None:
    """Two strings whose joined text looks like a misspelt name are read as two terms."""
    zone = zone_with((f"v=spf1 {first}", f"{second} -all"), ("v=spf1 ip4:8.8.6.7 -all",))
    follow(zone)
    for term in (first, second, "ip4:8.8.6.7"):
        assert result_for(zone, SENDERS[term]) is AuthResult.PASS, term


UNCLEAR = ["hello", "mx01", "h.d.example", "ip4:8.8.6.7/33", "ip4:8.8.6", "server:h.d.example"]
UNCLEAR += ["- ip4:8.8.6.7", "include:p.example,q.example", "ip4:010.8.8.8", "include:j@p.example"]


@rows(*UNCLEAR)
def test_an_ambiguous_term_gives_no_record(word: str) -> None:
    """If a fixed record could lack a sender, no record is offered. The advice names the term."""
    found = check(zone_with((f"v=spf1 mx {word} -all",)))
    assert not [one for one in found.proofs.values() if one.record.name == DOMAIN]
    wrong = [one for one in found.findings if one.severity is Severity.ERROR]
    assert any(word.split(" ")[-1].split(",")[0] in one.meaning or one.fix for one in wrong)


@rows(
    ("v=spf1 mx a:gone.example -all", "a:gone.example", "does not exist"),
    ("v=spf1 mx include:gone.example -all", "include:gone.example", "has no SPF record"),
    ("v=spf1 mx include:d.example -all", "include:d.example", "leads back"),
)
def test_a_term_that_is_left_out_is_named_with_the_reason(
    text: str, term: str, reason: str
) -> None:
    """Only terms that authorise no host are left out, and the reason is named."""
    fixes = [one for one in check(zone_with((text,))).proofs.values() if one.left_out]
    assert fixes
    for fix in fixes:
        assert [one.term for one in fix.left_out] == [term]
        assert reason in fix.left_out[0].reason
        assert fix.record.value == "v=spf1 mx -all"


@rows(
    "v=spf1 mx include:broken.example -all",
    "v=spf1 mx include:near.example -all",
    "v=spf1 ptr -all",
    "v=spf1 a:gone.example -all",
    "v=spf1 +all",
    "v=spf1 mx/0 ipv4:8.8.6.7 -all",
)
def test_no_record_takes_away_who_may_pass(text: str) -> None:
    """No term is deleted if it may authorise a sender, or if it is the last term."""
    zone = zone_with((text,))
    zone.publish("broken.example", "TXT", "v=spf1 ip4:8.8.8.0/24 hello -all")
    zone.publish("near.example", "TXT", "v=spf1;ip4:8.8.8.0/24;-all")
    assert not [one for one in check(zone).proofs.values() if one.record.name == DOMAIN]


def test_a_proof_fails_where_a_sender_is_lost() -> None:
    """A fix is rejected if it loses a sender without a reason. A network covers its addresses."""
    finding = Finding("x.fault", Severity.ERROR, "It is so.", "Mend it.")
    sender = NamedSender("include:p.example", "include:p.example")
    change = Change(RecordToPublish(DOMAIN, "TXT", "v=spf1 -all"))
    before = Outcome((finding,), 5, named=(sender,))
    with pytest.raises(NotProven, match=r"include:p\.example would be lost"):
        ProvenFix(finding, change, (), before, Outcome((), 9))
    assert ProvenFix(finding, change, (), before, Outcome((), 9, named=(sender,))).left_out == ()
    dropped = replace(sender, reason="leads nowhere")
    fix = ProvenFix(finding, change, (), replace(before, named=(dropped,)), Outcome((), 9))
    assert fix.left_out == (dropped,)
