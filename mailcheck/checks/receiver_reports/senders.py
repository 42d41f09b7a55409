"""Who sends as a domain, by what receivers report: why it fails, and what to do about it.

A sender is called by what vouches for its mail, else by its reverse DNS, else by its address.
Nothing here asks anybody: names of addresses are given. A year of reports may be 20,000 different
rows, for which this takes some tenths of a second: a process beside the daemon does it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.checks.receiver_reports.aggregate import (
    PASS,
    AggregateReport,
    Row,
    Signature,
    SpfCheck,
)
from mailcheck.checks.receiver_reports.limits import MAX_KEPT
from mailcheck.core.instants import BEGINNING, DAY, Instant
from mailcheck.core.receiver_reports import day_of

MAX_NAMED = 3
"""Selectors, or domains, that a sentence names."""


MAX_REPORTERS = 200
"""Maximum number of reporters that are named with their messages, those with most first."""

MAX_SENDERS, MAX_SOURCES = 500, 50
"""Senders, and addresses of each, that are kept: nobody reads more, and forgers have thousands."""


class Cause(Enum):
    """Why mail of a sender fails DMARC; the values are those of the API."""

    PASSES = "passes"
    OWN_SIGNATURE = "own-signature"
    """It is signed for the domain itself, and the signature does not verify."""
    OWN_KEY = "own-key"
    """It is signed for the domain itself, with a key that cannot be used (permerror)."""
    OWN_SPF = "own-spf"
    """Its envelope sender is the domain's, and the SPF record does not let it send."""
    OWN_SPF_BROKEN = "own-spf-broken"
    """Its envelope sender is the domain's, and the SPF record cannot be used (permerror)."""
    OWN_SPF_ABSENT = "own-spf-absent"
    """Its envelope sender is the domain's, which has no SPF record (none)."""
    NO_ANSWER = "no-answer"
    """The receiver got no answer from DNS about the domain's key or SPF record (temperror)."""
    OTHER_DOMAIN = "other-domain"
    """SPF or DKIM vouches for it, but for another domain."""
    FORWARDED = "forwarded"
    """Somebody has passed it on, which breaks SPF, and often the signature."""
    UNSIGNED = "unsigned"
    """Neither SPF nor DKIM passes, and a receiver says that it is not signed (none)."""
    NOTHING = "nothing"
    """Nothing vouches for it."""


class ReportedRow(Struct, frozen=True):
    """Messages of a row, as one reporter saw them from one day to another (when they begin)."""

    row: Row
    messages: int
    reporter: str
    first_day: Instant
    last_day: Instant


PackedRow = tuple[str, int, str, Instant, Instant]
"""What `ReportedRow` holds, the row as it is kept (JSON): it goes to another process as it is."""


def pack_row(one: ReportedRow) -> PackedRow:
    """Write down what was seen."""
    row = msgspec.json.encode(one.row).decode()
    return row, one.messages, one.reporter, one.first_day, one.last_day


def pack_rows(told: Sequence[PackedRow]) -> bytes:
    """Write down all of it as one piece: twenty thousand are handed on in a moment."""
    return msgspec.msgpack.encode(told)


def unpack_rows(packed: bytes) -> list[ReportedRow]:
    """Read what was written down."""
    decode = msgspec.json.Decoder(Row).decode
    told = msgspec.msgpack.decode(packed, type=list[tuple[str, int, str, int, int]])
    return [
        ReportedRow(decode(row), messages, reporter, Instant(first_day), Instant(last_day))
        for row, messages, reporter, first_day, last_day in told
    ]


class Source(Struct, frozen=True):
    """An address that sends; ``host`` is its forward-confirmed name, empty where none is known."""

    address: str
    host: str
    messages: int
    failing: int


class Sender(Struct, frozen=True):
    """Who sends: the messages of all its addresses; kept are the `MAX_SOURCES` most active.

    ``domain`` is the From domain of most of what fails, else of most. ``vouched_for`` are other
    domains that SPF or DKIM passes for; ``selectors`` are of signatures for the domain itself
    that do not verify, ``envelope_domains`` those of the domain that SPF does not pass for.
    """

    name: str
    domain: str
    cause: Cause
    messages: int
    failing: int
    sources: tuple[Source, ...]
    vouched_for: tuple[str, ...]
    selectors: tuple[tuple[str, str], ...]
    envelope_domains: tuple[str, ...]
    reporters: tuple[str, ...]
    first_day: Instant
    last_day: Instant
    reasons: tuple[str, ...]
    source_count: int

    @property
    def passing(self) -> int:
        """Count the messages that pass."""
        return self.messages - self.failing

    @property
    def is_known(self) -> bool:
        """Tell whether any of its mail passes: then the domain has let it send."""
        return self.passing > 0


class Overview(Struct, frozen=True):
    """What the reports about a domain say together: those who may not send first.

    Of the senders the first `MAX_SENDERS` are kept; all are counted.
    ``policy`` is the one that receivers found last; ``failing`` is also what ``p=reject`` would
    stop, and ``forwarded`` is the part of it that somebody has passed on.
    """

    domain: str
    messages: int
    failing: int
    forwarded: int
    policy: str
    begins_at: Instant
    ends_at: Instant
    reporters: Mapping[str, int]
    senders: tuple[Sender, ...]

    @property
    def passing(self) -> int:
        """Count the messages that pass."""
        return self.messages - self.failing


def rows_of_report(report: AggregateReport, reporter: str) -> Iterable[ReportedRow]:
    """Give the rows of a report."""
    day = day_of(report.begins_at)
    return (ReportedRow(row, count, reporter, day, day) for row, count in report.rows.items())


def find_cause(row: Row) -> Cause:
    """Say why the messages of a row fail."""
    if row.passes:
        return Cause.PASSES
    if _is_forwarded(row):
        return Cause.FORWARDED
    signed = {one.result for one in _own_signatures(row)}
    checked = {one.result for one in _own_checks(row)}
    if cause := _cause_in(signed, _OF_SIGNATURES) or _cause_in(checked, _OF_SPF):
        return cause
    if _TEMPERROR in signed | checked:
        return Cause.NO_ANSWER
    if _vouched_for(row):
        return Cause.OTHER_DOMAIN
    return Cause.UNSIGNED if _NONE in signed else Cause.NOTHING


_TEMPERROR, _NONE = AuthResult.TEMPERROR.value, AuthResult.NONE.value

# Results that name a cause, the clearest first; temperror is not a statement about the domain.
_OF_SIGNATURES = {
    "fail": Cause.OWN_SIGNATURE,
    "policy": Cause.OWN_SIGNATURE,
    "neutral": Cause.OWN_SIGNATURE,
    "permerror": Cause.OWN_KEY,
}
_OF_SPF = {
    "fail": Cause.OWN_SPF,
    "softfail": Cause.OWN_SPF,
    "policy": Cause.OWN_SPF,
    "neutral": Cause.OWN_SPF,
    "permerror": Cause.OWN_SPF_BROKEN,
    _NONE: Cause.OWN_SPF_ABSENT,
}


def _cause_in(results: set[str], causes: Mapping[str, Cause]) -> Cause | None:
    return next((cause for result, cause in causes.items() if result in results), None)


_FORWARDING = ("forwarded", "mailing_list", "trusted_forwarder")


def _is_forwarded(row: Row) -> bool:
    """Tell whether a receiver says so, or a signature broke on the way through another's host."""
    if any(one.startswith(_FORWARDING) or "arc=pass" in one.lower() for one in row.reasons):
        return True
    broken = any(one.result == "fail" for one in _own_signatures(row))
    return broken and any(not _is_own(name, row) for name in _spf_domains(row))


@lru_cache(maxsize=4_096)
def _registrable_domain(domain: str) -> str:
    """Look it up once: the same names stand in most rows."""
    return registrable_domain(domain)


def _is_own(domain: str, row: Row) -> bool:
    return _registrable_domain(domain) == _registrable_domain(row.header_from)


def _own_signatures(row: Row) -> list[Signature]:
    return [one for one in row.signatures if one.domain and _is_own(one.domain, row)]


def _spf_domains(row: Row) -> list[str]:
    return [one.domain for one in row.spf_checks if one.result == PASS and one.domain]


def _own_checks(row: Row) -> list[SpfCheck]:
    """Return the SPF results of the domain itself; that of HELO counts for a null sender."""
    return [one for one in row.spf_checks if one.domain and _is_own(one.domain, row)]


def _vouched_for(row: Row) -> list[str]:
    signed = [one.domain for one in row.signatures if one.result == PASS and one.domain]
    return [
        _registrable_domain(name)
        for name in (*signed, *_spf_domains(row))
        if not _is_own(name, row)
    ]


MAX_RESOLVED = 50
"""Addresses whose names are asked for, those first that fail most."""


def find_addresses_to_resolve(packed: bytes) -> list[str]:
    """Give the addresses whose names matter most, of what was told."""
    counts: Counter[str] = Counter()
    for one in unpack_rows(packed):
        counts[one.row.source] += one.messages * (1 if one.row.passes else 10**6)
    return [address for address, _ in counts.most_common(MAX_RESOLVED)]


def summarize_page(
    domain: str, packed: bytes, policy: str, hosts: Mapping[str, str], span: tuple[int, int]
) -> tuple[Overview, int]:
    """Return an overview as `overview_of` does, with one page of its senders, and their number.

    :param span: the index of the first sender of the page, and of the first one after it.
    """
    whole = overview_of(domain, unpack_rows(packed), policy, hosts)
    reporters = dict(list(whole.reporters.items())[:MAX_REPORTERS])
    page = replace(whole, senders=whole.senders[slice(*span)], reporters=reporters)
    return page, len(whole.senders)


class _Judged(Struct, frozen=True):
    """What follows from a row, whatever its address."""

    cause: Cause
    vouched_for: tuple[str, ...]
    selectors: tuple[tuple[str, str], ...]
    envelope_domains: tuple[str, ...]


def _judge(row: Row) -> _Judged:
    broken = [one for one in _own_signatures(row) if one.result not in (PASS, "", _NONE)]
    failed = [one.domain for one in _own_checks(row) if one.result not in (PASS, "")]
    return _Judged(
        find_cause(row),
        tuple(dict.fromkeys(_vouched_for(row))),
        tuple(dict.fromkeys((one.selector, one.domain) for one in broken)),
        tuple(dict.fromkeys(failed)),
    )


def overview_of(
    domain: str, seen: Sequence[ReportedRow], policy: str, hosts: Mapping[str, str]
) -> Overview:
    """Put together what was seen; ``hosts`` names addresses, as far as they have names."""
    reporters: Counter[str] = Counter()
    failing = forwarded = 0
    known: dict[tuple[object, ...], _Judged] = {}
    by_source: dict[str, list[_Seen]] = {}
    for one in seen:
        row = one.row
        # Rows that differ in nothing but their address are judged once.
        key = (row.header_from, row.dkim, row.spf, row.reasons, row.signatures, row.spf_checks)
        if key not in known:
            known[key] = _judge(row)
        found = known[key]
        by_source.setdefault(row.source, []).append((one, found))
        reporters[one.reporter] += one.messages
        if found.cause is not Cause.PASSES:
            failing += one.messages
            if found.cause is Cause.FORWARDED:
                forwarded += one.messages
    by_name: dict[str, list[_Seen]] = {}
    for source, some in by_source.items():
        by_name.setdefault(_name_of(source, some, hosts), []).extend(some)
    ordered = sorted((_weight(name, some), name) for name, some in by_name.items())
    return Overview(
        domain=domain,
        messages=reporters.total(),
        failing=failing,
        forwarded=forwarded,
        policy=policy,
        begins_at=min((one.first_day for one in seen), default=BEGINNING),
        ends_at=Instant(max((one.last_day for one in seen), default=Instant(-DAY)) + DAY),
        reporters=dict(reporters.most_common()),
        senders=tuple(_sender(name, by_name[name], hosts) for _, name in ordered[:MAX_SENDERS]),
    )


_Seen = tuple[ReportedRow, _Judged]


def _weight(name: str, judged: Sequence[_Seen]) -> tuple[bool, bool, int, int, str]:
    """Order senders: those who fail and are not known first, then by what fails, and by all."""
    messages = sum(one.messages for one, _ in judged)
    failing = sum(one.messages for one, found in judged if found.cause is not Cause.PASSES)
    return (not failing, failing < messages, -failing, -messages, name)


def _name_of(source: str, judged: Sequence[_Seen], hosts: Mapping[str, str]) -> str:
    vouched: Counter[str] = Counter()
    for one, found in judged:
        for name in found.vouched_for:
            vouched[name] += one.messages
    best = min(vouched, key=lambda name: (-vouched[name], name), default=None)
    # One mail that a host has passed on does not make it another's.
    if best is not None and 2 * vouched[best] >= sum(one.messages for one, _ in judged):
        return best
    host = hosts.get(source)
    return registrable_domain(host) if host else source


Thing = TypeVar("Thing")


def _count(found: Iterable[tuple[Iterable[Thing], int]]) -> Counter[Thing]:
    """Count each thing by the messages of the rows that have it."""
    counter: Counter[Thing] = Counter()
    for things, messages in found:
        for thing in things:
            counter[thing] += messages
    return counter


def _sender(name: str, judged: Sequence[_Seen], hosts: Mapping[str, str]) -> Sender:
    failed = [one for one in judged if one[1].cause is not Cause.PASSES]
    messages = _count(((one.row.source,), one.messages) for one, _ in judged)
    failing = _count(((one.row.source,), one.messages) for one, _ in failed)
    causes = _count(((found.cause,), one.messages) for one, found in failed)
    # What fails says more than all that passes.
    domains = _count(((one.row.header_from,), one.messages) for one, _ in failed or judged)

    def common(of: Callable[[ReportedRow, _Judged], Iterable[Thing]]) -> tuple[Thing, ...]:
        return _most_common(_count((of(one, found), one.messages) for one, found in failed))

    return Sender(
        name=name,
        domain=domains.most_common(1)[0][0],
        cause=causes.most_common(1)[0][0] if causes else Cause.PASSES,
        messages=messages.total(),
        failing=failing.total(),
        sources=tuple(
            Source(address, hosts.get(address, ""), count, failing[address])
            for address, count in messages.most_common(MAX_SOURCES)
        ),
        vouched_for=common(lambda _, found: found.vouched_for),
        selectors=common(lambda _, found: found.selectors),
        envelope_domains=common(lambda _, found: found.envelope_domains),
        reporters=_most_common(_count(((one.reporter,), one.messages) for one, _ in judged)),
        first_day=min(one.first_day for one, _ in judged),
        last_day=max(one.last_day for one, _ in judged),
        reasons=common(lambda one, _: dict.fromkeys(one.row.reasons)),
        source_count=len(messages),
    )


def _most_common(counter: Counter[Thing]) -> tuple[Thing, ...]:
    return tuple(thing for thing, _ in counter.most_common(MAX_KEPT))


_STOPPED = "If it does not, p=reject stops them."

_SENTENCES: Mapping[Cause, tuple[str, str]] = {
    Cause.PASSES: ("All of its {all} pass.", "Nothing is to be done."),
    Cause.FORWARDED: (
        "{failing} were forwarded on the way, which breaks SPF and DKIM.",
        (
            "Nothing is to be done at your side; mail that is signed for your domain survives most"
            " forwarding."
        ),
    ),
    Cause.OWN_SIGNATURE: (
        "{failing} came signed for {domain}, but receivers can't verify that with {keys}.",
        (
            "If {name} sends for you, publish its DKIM key at {key} again: it shows the record"
            f" where you set it up. {_STOPPED}"
        ),
    ),
    Cause.OWN_KEY: (
        "{failing} came signed for {domain}, but receivers cannot use the key at {keys}.",
        (
            "If {name} sends for you, publish its DKIM key at {key} again, whole: the domain check"
            f" shows the mistake in the present one. {_STOPPED}"
        ),
    ),
    Cause.OWN_SPF: (
        "{failing} came from addresses that the SPF record of {envelopes} does not let send.",
        (
            "If {name} sends for you, let its addresses send in the SPF record of {envelope}."
            f" {_STOPPED}"
        ),
    ),
    Cause.OWN_SPF_BROKEN: (
        "{failing} failed because receivers cannot use the SPF record of {envelopes}.",
        (
            "Repair the SPF record of {envelope}; the domain check shows the mistake. Until then no"
            " mail of {envelope} passes SPF."
        ),
    ),
    Cause.OWN_SPF_ABSENT: (
        "{failing} failed because there is no SPF record at {envelopes}.",
        (
            "If {name} sends for you, publish an SPF record at {envelope} that lets its addresses"
            f" send. {_STOPPED}"
        ),
    ),
    Cause.NO_ANSWER: (
        "{failing} could not be verified: receivers got no answer from DNS about {asked}.",
        (
            "No record needs a change. If this lasts for days, check that all name servers of"
            " {domain} answer."
        ),
    ),
    Cause.OTHER_DOMAIN: (
        "{failing} passed in the name of {vouched_for}, which is not {domain}.",
        (
            "If {name} sends for you, have it sign with {domain}: switch on DKIM for your own"
            f" domain there, and publish the record that it shows. {_STOPPED}"
        ),
    ),
    Cause.UNSIGNED: (
        "{failing} came without a DKIM signature, and no SPF passes.",
        "If {name} sends for you, switch on DKIM signing for {domain} there. " + _STOPPED,
    ),
    Cause.NOTHING: (
        "Nothing vouches for {failing}: no SPF and no DKIM passes.",
        (
            "If {name} is yours, set up DKIM for {domain} there. If you don't know it, your mail"
            " is forged: p=reject stops that."
        ),
    ),
}
"""Why mail fails, and what to do about it."""


def explain(sender: Sender) -> str:
    """Return a sentence about why its mail fails, or that it passes."""
    return _SENTENCES[sender.cause][0].format_map(_words_of(sender))


def advise(sender: Sender) -> str:
    """Return a sentence about what to do."""
    return _SENTENCES[sender.cause][1].format_map(_words_of(sender))


def _words_of(sender: Sender) -> dict[str, str]:
    keys = [f"{selector}._domainkey.{own}" for selector, own in sender.selectors]
    envelopes = sender.envelope_domains
    return {
        "all": _messages(sender.messages),
        "failing": _messages(sender.failing),
        "domain": sender.domain,
        "name": sender.name,
        "keys": _list(keys),
        "key": next(iter(keys), sender.domain),
        "envelopes": _list(envelopes),
        "envelope": next(iter(envelopes), sender.domain),
        "asked": _list((*envelopes, *keys)) or sender.domain,
        "vouched_for": _list(sender.vouched_for),
    }


def _messages(count: int) -> str:
    return f"{count} message" if count == 1 else f"{count} messages"


def _list(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    rest = len(distinct) - MAX_NAMED
    return ", ".join(distinct[:MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")
