"""Senders of a domain according to DMARC reports: why their mail fails, and what to do about it.

A sender is a service of the catalogue, or it has the name of the domain that authenticates its
mail, or its reverse DNS name, or its address. This module sends no queries; the reverse DNS names
are passed in. A year of reports may have 20,000 different rows, which take some tenths of a second,
so a child process handles them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.checks.receiver_reports.aggregate import (
    PASS,
    ReportedRow,
    Row,
    Signature,
    SpfCheck,
    unpack_rows,
)
from mailcheck.checks.receiver_reports.limits import MAX_KEPT
from mailcheck.checks.receiver_reports.services import (
    SendingService,
    find_service_by_id,
    find_service_of_address,
    find_service_of_domain,
    find_service_of_host,
)
from mailcheck.core.instants import Instant

MAX_REPORTERS = 200
"""Maximum number of reporters listed with their message counts, the largest first."""

MAX_SENDERS, MAX_SOURCES = 500, 50
"""Maximum number of senders, and of addresses of each sender. Forgers use thousands."""


_TEMPERROR, _NONE = AuthResult.TEMPERROR.value, AuthResult.NONE.value


class Cause(Enum):
    """Reason why mail of a sender fails DMARC; the values are those of the API."""

    PASSES = "passes"
    OWN_SIGNATURE = "own-signature"
    """The mail is signed by the domain itself, and the signature does not verify."""
    OWN_KEY = "own-key"
    """The mail is signed by the domain itself, with a key that cannot be used (permerror)."""
    OWN_SPF = "own-spf"
    """The envelope sender is in the domain, and the SPF record does not authorize the address."""
    OWN_SPF_BROKEN = "own-spf-broken"
    """The envelope sender is in the domain, and the SPF record cannot be used (permerror)."""
    OWN_SPF_ABSENT = "own-spf-absent"
    """The envelope sender is in the domain, which has no SPF record (none)."""
    NO_ANSWER = "no-answer"
    """The receiver got no DNS answer about the domain's key or SPF record (temperror)."""
    STRICT_ALIGNMENT = "strict-alignment"
    """SPF or DKIM passes for another name of the domain, and the DMARC record requires its own."""
    NO_RESULT = "no-result"
    """The receiver reports neither a result for DMARC nor results of SPF and DKIM."""
    OTHER_DOMAIN = "other-domain"
    """SPF or DKIM passes, but for another domain."""
    FORWARDED = "forwarded"
    """The mail was forwarded, which breaks SPF, and often the signature."""
    MAYBE_FORWARDED = "maybe-forwarded"
    """A signature of the domain broke at a host of others, which forwards or forges the mail."""
    UNSIGNED = "unsigned"
    """Neither SPF nor DKIM passes, and a receiver says that the mail is not signed (none)."""
    NOTHING = "nothing"
    """Neither SPF nor DKIM passes."""


class Source(Struct, frozen=True):
    """An address that sends; ``host`` is its forward-confirmed name, or empty if unknown."""

    address: str
    host: str
    messages: int
    failing: int


class Sender(Struct, frozen=True):
    """A sender with the messages of all its addresses; ``sources`` are the most active ones.

    ``key`` identifies the sender in all reports: the id of its service, or its name. ``forwarded``
    counts failing messages that were forwarded, and ``survived`` the forwarded messages that pass,
    because a signature of the domain is intact.

    ``domain`` is the From domain of most failing messages, or of most messages if none fail.
    ``strict`` are the tags of strict alignment that make its mail fail, each with the name of the
    domain that passes.
    ``vouched_for`` are other domains for which SPF or DKIM passes. ``selectors`` are those of the
    domain's own signatures that do not verify. ``envelope_domains`` are those in the domain for
    which SPF does not pass.
    """

    key: str
    name: str
    domain: str
    cause: Cause
    messages: int
    failing: int
    forwarded: int
    survived: int
    sources: tuple[Source, ...]
    vouched_for: tuple[str, ...]
    selectors: tuple[tuple[str, str], ...]
    envelope_domains: tuple[str, ...]
    reporters: tuple[str, ...]
    first_day: Instant
    last_day: Instant
    reasons: tuple[str, ...]
    source_count: int
    strict: tuple[tuple[str, str], ...] = ()

    @property
    def passing(self) -> int:
        """The number of messages that pass."""
        return self.messages - self.failing

    @property
    def is_known(self) -> bool:
        """Whether any of its own mail passes, so that the domain has authorized it."""
        return self.passing > self.survived

    @property
    def is_forwarder(self) -> bool:
        """Whether it forwarded mail, and sent no mail of its own that passes."""
        return self.forwarded + self.survived > 0 and not self.is_known

    @property
    def service(self) -> SendingService | None:
        """The service of the catalogue, or `None`."""
        return find_service_by_id(self.key)


def find_cause(row: Row) -> Cause:
    """Return why the messages of a row fail."""
    if row.passes:
        return Cause.PASSES
    if _is_reported_as_forwarded(row):
        return Cause.FORWARDED
    if _strict_tags(row):
        return Cause.STRICT_ALIGNMENT
    if _is_broken_elsewhere(row):
        return Cause.MAYBE_FORWARDED
    signed = {signature.result for signature in _own_signatures(row)}
    checked = {check.result for check in _own_checks(row)}
    if cause := _cause_in(signed, _OF_SIGNATURES) or _cause_in(checked, _OF_SPF):
        return cause
    if _TEMPERROR in signed | checked:
        return Cause.NO_ANSWER
    if _vouched_for(row):
        return Cause.OTHER_DOMAIN
    if not (row.dkim or row.spf or row.signatures or row.spf_checks):
        return Cause.NO_RESULT
    return Cause.UNSIGNED if _NONE in signed else Cause.NOTHING


# Results that name a cause, the clearest first; temperror says nothing about the domain.
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


def _is_reported_as_forwarded(row: Row) -> bool:
    """Return whether a receiver says that the mail was forwarded."""
    return any(
        reason.startswith(_FORWARDING) or "arc=pass" in reason.lower() for reason in row.reasons
    )


def _is_broken_elsewhere(row: Row) -> bool:
    """Return whether a signature of the domain broke, and SPF passes for another domain.

    Forwarding does this, and so does a forger who adds an invalid signature.
    """
    broken = any(signature.result == "fail" for signature in _own_signatures(row))
    return broken and any(not _is_own(name, row) for name in _spf_domains(row))


@lru_cache(maxsize=4_096)
def _cached_domain(domain: str) -> str:
    """Return the registrable domain; cached, because most rows have the same names."""
    return registrable_domain(domain)


def _is_own(domain: str, row: Row) -> bool:
    return _cached_domain(domain) == _cached_domain(row.header_from)


def _own_signatures(row: Row) -> list[Signature]:
    return [
        signature
        for signature in row.signatures
        if signature.domain and _is_own(signature.domain, row)
    ]


def _spf_domains(row: Row) -> list[str]:
    return [check.domain for check in row.spf_checks if check.result == PASS and check.domain]


def _own_checks(row: Row) -> list[SpfCheck]:
    """Return the SPF results of the domain itself; HELO counts for a null sender."""
    return [check for check in row.spf_checks if check.domain and _is_own(check.domain, row)]


def _strict_tags(row: Row) -> tuple[tuple[str, str], ...]:
    """Return the tags of strict alignment that make a row fail, each with the passing name.

    A name of the domain itself passes, which relaxed alignment would accept.
    """
    if row.passes:
        return ()
    signed = [signature.domain for signature in _own_signatures(row) if signature.result == PASS]
    checked = [domain for domain in _spf_domains(row) if _is_own(domain, row)]
    found = [*(("adkim", domain) for domain in signed), *(("aspf", domain) for domain in checked)]
    return tuple(pair for pair in found if pair[1] != row.header_from)


def _vouched_for(row: Row) -> list[str]:
    signed = [
        signature.domain
        for signature in row.signatures
        if signature.result == PASS and signature.domain
    ]
    return [
        _cached_domain(name) for name in (*signed, *_spf_domains(row)) if not _is_own(name, row)
    ]


MAX_RESOLVED = 50
"""Maximum number of addresses whose names are looked up, those with most failures first."""


def find_addresses_to_resolve(packed: bytes) -> list[str]:
    """Return the addresses whose names matter most."""
    counts: Counter[str] = Counter()
    for row in unpack_rows(packed):
        counts[row.row.source] += row.messages * (1 if row.row.passes else 10**6)
    return [address for address, _ in counts.most_common(MAX_RESOLVED)]


class JudgedResults(Struct, frozen=True):
    """Conclusions from a row that do not depend on its address.

    ``intact`` are the domain's own signatures that verify, if SPF does not pass for the domain.
    """

    cause: Cause
    intact: tuple[tuple[str, str], ...]
    vouched_for: tuple[str, ...]
    selectors: tuple[tuple[str, str], ...]
    envelope_domains: tuple[str, ...]
    strict: tuple[tuple[str, str], ...] = ()
    is_unsigned: bool = False


def _judge(row: Row) -> JudgedResults:
    broken = [
        signature for signature in _own_signatures(row) if signature.result not in (PASS, "", _NONE)
    ]
    failed = [check.domain for check in _own_checks(row) if check.result not in (PASS, "")]
    valid = [
        (signature.selector, signature.domain)
        for signature in _own_signatures(row)
        if signature.result == PASS
    ]
    return JudgedResults(
        find_cause(row),
        tuple(dict.fromkeys(valid)) if row.spf != PASS else (),
        tuple(dict.fromkeys(_vouched_for(row))),
        tuple(dict.fromkeys((signature.selector, signature.domain) for signature in broken)),
        tuple(dict.fromkeys(failed)),
        strict=tuple(dict.fromkeys(_strict_tags(row))),
        is_unsigned=not any(signature.result not in ("", _NONE) for signature in row.signatures),
    )


JudgedRow = tuple[ReportedRow, JudgedResults]

Identity = tuple[str, str]
"""Key and name of a sender."""


def group_by_sender(
    seen: Sequence[ReportedRow], hosts: Mapping[str, str]
) -> dict[Identity, list[JudgedRow]]:
    """Return the rows of each sender, with the conclusions from each row."""
    known: dict[tuple[object, ...], JudgedResults] = {}
    by_source: dict[str, list[JudgedRow]] = {}
    for seen_row in seen:
        row = seen_row.row
        # Rows that differ only in their address are judged once.
        key = (row.header_from, row.dkim, row.spf, row.reasons, row.signatures, row.spf_checks)
        if key not in known:
            known[key] = _judge(row)
        by_source.setdefault(row.source, []).append((seen_row, known[key]))
    by_sender: dict[Identity, list[JudgedRow]] = {}
    for source, some in by_source.items():
        by_sender.setdefault(_identify(source, some, hosts), []).extend(some)
    return _with_forwarding(by_sender)


def _sum(judged: Iterable[JudgedRow], condition: Callable[[JudgedResults], bool]) -> int:
    return sum(row.messages for row, found in judged if condition(found))


def _with_forwarding(
    by_name: Mapping[Identity, list[JudgedRow]],
) -> dict[Identity, list[JudgedRow]]:
    """Find the senders that forward, and return the rows with their mail marked as forwarded.

    A sender forwards if intact signatures of the domain arrive from it that another sender makes.
    Then a broken signature is forwarding too, as at a service that only forwards.
    """
    homes = _homes_of_selectors(by_name)
    marked = {}
    for who, some in by_name.items():
        found = [(row, _without_own(judged, who, homes)) for row, judged in some]
        service = find_service_by_id(who[0])
        if any(judged.intact for _, judged in found) or (service and service.forwards):
            found = [(row, _as_forwarded(judged)) for row, judged in found]
        if service is not None and service.forwards_unsigned:
            found = [(row, _as_relayed(judged)) for row, judged in found]
        marked[who] = found
    return marked


def _homes_of_selectors(
    by_name: Mapping[Identity, list[JudgedRow]],
) -> Mapping[tuple[str, str], Identity]:
    """Return the sender of most mail that each selector of the domain signs."""
    counts: dict[tuple[str, str], Counter[Identity]] = {}
    for who, some in by_name.items():
        for row, _ in some:
            for signature in _own_signatures(row.row):
                if signature.result == PASS:
                    pair = signature.selector, signature.domain
                    counts.setdefault(pair, Counter())[who] += row.messages
    return {pair: max(found, key=lambda who: (found[who], who)) for pair, found in counts.items()}


def _without_own(
    judged: JudgedResults, who: Identity, homes: Mapping[tuple[str, str], Identity]
) -> JudgedResults:
    """Return the conclusions with the intact signatures that another sender makes."""
    foreign = tuple(signer for signer in judged.intact if homes[signer] != who)
    # One signature of its own is enough: the sender signs for the domain itself.
    return replace(judged, intact=foreign if len(foreign) == len(judged.intact) else ())


def _as_forwarded(judged: JudgedResults) -> JudgedResults:
    if judged.cause is not Cause.MAYBE_FORWARDED:
        return judged
    return replace(judged, cause=Cause.FORWARDED)


_OF_UNSIGNED = (Cause.OTHER_DOMAIN, Cause.OWN_SPF, Cause.UNSIGNED, Cause.NOTHING)


def _as_relayed(judged: JudgedResults) -> JudgedResults:
    """Return the conclusions for a service that signs all mail of its own customers.

    Mail that it sends without a signature is forwarded.
    """
    if judged.cause not in _OF_UNSIGNED or not judged.is_unsigned:
        return judged
    return replace(judged, cause=Cause.FORWARDED)


def _identify(source: str, judged: Sequence[JudgedRow], hosts: Mapping[str, str]) -> Identity:
    """Return key and name of the sender to which an address belongs."""
    vouched: Counter[str] = Counter()
    for row, found in judged:
        for name in found.vouched_for:
            vouched[name] += row.messages
    best = min(vouched, key=lambda name: (-vouched[name], name), default=None)
    # A single mail that a host forwarded does not make it a host of the other domain.
    if best is not None and 2 * vouched[best] < sum(
        judged_row.messages for judged_row, _ in judged
    ):
        best = None
    host = hosts.get(source, "")
    service = (
        (find_service_of_domain(best) if best is not None else None)
        or (find_service_of_host(host) if host else None)
        or find_service_of_address(source)
    )
    if service is not None:
        return service.id, service.name
    name = best or (registrable_domain(host) if host else source)
    return name, name


Item = TypeVar("Item")


def _count(found: Iterable[tuple[Iterable[Item], int]]) -> Counter[Item]:
    """Count each item by the messages of the rows that contain it."""
    counter: Counter[Item] = Counter()
    for items, messages in found:
        for item in items:
            counter[item] += messages
    return counter


def summarize_sender(
    who: Identity, judged: Sequence[JudgedRow], hosts: Mapping[str, str]
) -> Sender:
    """Return a sender with the facts that its rows have in common."""
    failed = [pair for pair in judged if pair[1].cause is not Cause.PASSES]
    messages = _count(((row.row.source,), row.messages) for row, _ in judged)
    failing = _count(((row.row.source,), row.messages) for row, _ in failed)
    causes = _count(((found.cause,), row.messages) for row, found in failed)
    # Failing mail is more relevant than passing mail.
    domains = _count(((row.row.header_from,), row.messages) for row, _ in failed or judged)

    def common(of: Callable[[ReportedRow, JudgedResults], Iterable[Item]]) -> tuple[Item, ...]:
        return _most_common(_count((of(row, found), row.messages) for row, found in failed))

    return Sender(
        key=who[0],
        name=who[1],
        domain=domains.most_common(1)[0][0],
        cause=causes.most_common(1)[0][0] if causes else Cause.PASSES,
        messages=messages.total(),
        failing=failing.total(),
        forwarded=_sum(judged, lambda found: found.cause is Cause.FORWARDED),
        survived=_sum(judged, lambda found: bool(found.intact)),
        sources=tuple(
            Source(address, hosts.get(address, ""), count, failing[address])
            for address, count in messages.most_common(MAX_SOURCES)
        ),
        vouched_for=common(lambda _, found: found.vouched_for),
        selectors=common(lambda _, found: found.selectors),
        envelope_domains=common(lambda _, found: found.envelope_domains),
        reporters=_most_common(_count(((row.reporter,), row.messages) for row, _ in judged)),
        first_day=min(row.first_day for row, _ in judged),
        last_day=max(row.last_day for row, _ in judged),
        reasons=common(lambda one, _: dict.fromkeys(one.row.reasons)),
        source_count=len(messages),
        strict=common(lambda _, found: found.strict),
    )


def _most_common(counter: Counter[Item]) -> tuple[Item, ...]:
    return tuple(item for item, _ in counter.most_common(MAX_KEPT))
