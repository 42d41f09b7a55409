"""Evaluation of the DKIM keys of a domain: selectors, key records and findings."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec import Struct

from mailcheck.checks.aliases import alias_target, is_dangling, publish_at_target
from mailcheck.checks.dkim.key_record import (
    GOOD_RSA_BITS,
    RSA,
    VERSION,
    KeyRecord,
    read_key_records,
)
from mailcheck.checks.dns_answers import (
    Answers,
    DnsAnswer,
    DnsStatus,
    Presence,
    look_up,
    txt_values,
)
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.tags.tag_lists import parse_tag_list

WILDCARD_SELECTOR = "*"
"""Selector of a key from a wildcard record, which answers for every name."""


class DkimKey(Struct, frozen=True):
    """One key with its location; ``alias_of`` is the target of a CNAME, or empty."""

    selector: str
    record_name: str
    record: KeyRecord
    alias_of: str
    is_one_of_several: bool
    """There is more than one record at the name, so it is undefined which one counts."""

    @property
    def is_usable(self) -> bool:
        """Whether receivers can verify signatures with it."""
        return self.record.is_usable and not self.is_one_of_several


class DkimVerdict(Struct, frozen=True):
    """The keys of a domain that were found.

    ``presence`` is ``ABSENT`` only if no name can exist below ``_domainkey``. Without a key it is
    otherwise ``UNDETERMINED``, and ``is_hidden`` is true if there are keys under unknown names.
    ``dangling`` has the selectors whose CNAME leads to no record, with its target. ``silent`` has
    the names for which DNS gave no usable answer.
    """

    domain: str
    presence: Presence
    is_hidden: bool
    keys: tuple[DkimKey, ...]
    dangling: tuple[tuple[str, str], ...]
    tried: tuple[str, ...]
    findings: tuple[Finding, ...]
    silent: tuple[str, ...] = ()

    @property
    def usable_keys(self) -> tuple[DkimKey, ...]:
        """The keys with which receivers can verify, including keys marked as a test."""
        return tuple(key for key in self.keys if key.is_usable)


MAX_GUESSES = 45
"""Maximum number of selectors tried for one domain, a sixth of the queries that a request may
send."""


class Provider(Struct, frozen=True):
    """A provider that signs mail; its ``hosts`` in MX or SPF show that a domain uses it."""

    name: str
    selectors: tuple[str, ...]
    hosts: tuple[str, ...]
    guess: Literal["always", "hinted"]
    rotates_at: tuple[str, ...] = ()
    """Domains with the keys of a provider that publishes the key of the next selector only when
    it changes to it."""


@cache
def load_providers() -> tuple[Provider, ...]:
    """Load the table of providers from the package."""
    text = files("mailcheck.checks.dkim").joinpath("selectors.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["provider"], tuple[Provider, ...])


def choose_selectors(known: Sequence[str], hosts: Iterable[str]) -> tuple[str, ...]:
    """Return the selectors to try: known ones, those of hinted providers, then common ones.

    :param known: from the caller or from observed signatures; always included.
    :param hosts: exchanges and SPF includes of the domain.
    """
    providers, owners = load_providers(), _providers_by_host()
    used: set[str] = set()  # the providers that own these hosts or a domain above them
    for host in hosts:
        labels = host.split(".")
        above = (".".join(labels[start:]) for start in range(len(labels)))
        used.update(*(owners[name] for name in above if name in owners))
    hinted = [p for p in providers if p.name in used]
    usual = [p for p in providers if p.guess == "always"]
    guesses = [selector for provider in (*hinted, *usual) for selector in provider.selectors]
    room = max(0, MAX_GUESSES - len(known))
    fresh = [guess for guess in dict.fromkeys(guesses) if guess not in known]
    return (*dict.fromkeys(known), *fresh[:room])


@cache
def _providers_by_host() -> Mapping[str, set[str]]:
    """Return the names of the providers of each host."""
    owners: dict[str, set[str]] = {}
    for provider in load_providers():
        for host in provider.hosts:
            owners.setdefault(host, set()).add(provider.name)
    return owners


def describe_key(key: DkimKey, *, has_usable: bool) -> Iterator[Finding]:
    """Yield the findings about one key, which are more severe without another usable one."""
    record, name = key.record, key.record_name
    grave = Severity.WARNING if has_usable else Severity.ERROR
    if key.selector == WILDCARD_SELECTOR:
        yield make_finding("dkim.wildcard", parent=name.partition(".")[2])
    if key.is_one_of_several:
        finding = make_finding(
            "dkim.several-keys",
            case="same" if record.repaired else "",
            proposed=_repaired(key),
            severity=grave,
            name=name,
        )
        yield publish_at_target(finding, name, key.alias_of)
    if record.strays:
        finding = make_finding(
            "dkim.stray-record",
            proposed=None
            if key.selector == WILDCARD_SELECTOR
            else RecordToPublish(name, "TXT", record.text),
            name=name,
            strays=record.strays[0][:40],
        )
        yield publish_at_target(finding, name, key.alias_of)
    if record.problem:
        # No signature can be verified with the key.
        case = "complete" if record.repaired else "publish-again"
        if record.needs_new_key and not record.repaired:
            case = "new-key"
        finding = make_finding(
            "dkim.key-too-short" if record.is_too_short else "dkim.key-broken",
            case=case,
            proposed=_repaired(key),
            severity=grave,
            name=name,
            problem=record.problem,
        )
        yield publish_at_target(finding, name, key.alias_of)
    elif record.is_revoked:
        yield make_finding(
            "dkim.key-revoked",
            case="" if has_usable else "only-key",
            severity=Severity.NOTE if has_usable else Severity.WARNING,
            name=name,
        )
    elif not record.is_strong and record.key_type == RSA:
        yield make_finding(
            "dkim.weak-key", name=name, bits=record.bits, good_rsa_bits=GOOD_RSA_BITS
        )
    if record.is_testing and record.is_usable:
        yield _describe_testing(key)


def _repaired(key: DkimKey) -> RecordToPublish | None:
    """Return the repaired record, or `None` for a wildcard, whose name is unknown."""
    if not key.record.repaired or key.selector == WILDCARD_SELECTOR:
        return None
    return RecordToPublish(key.record_name, "TXT", key.record.repaired)


def _describe_testing(key: DkimKey) -> Finding:
    tags = dict(parse_tag_list(key.record.text).tags)
    flags = [flag.strip() for flag in tags.pop("t", "").split(":")]
    kept = ":".join(flag for flag in flags if flag.lower() != "y")
    tags = {"v": VERSION} | tags | ({"t": kept} if kept else {})
    return make_finding(
        "dkim.testing",
        proposed=RecordToPublish(
            key.alias_of or key.record_name,
            "TXT",
            "; ".join(f"{name}={value}" for name, value in tags.items()),
        ),
        record_name=key.record_name,
    )


_EXISTING = (DnsStatus.FOUND, DnsStatus.NODATA)
"""Answers that show that a name, or a name below it, has records (RFC 8020)."""

WILDCARD_TEST_SELECTOR = "mailcheck-asks-for-a-wildcard"
"""A selector that no domain uses: an answer for it means a wildcard record."""


def evaluate_dkim(domain: str, selectors: Sequence[str], answers: Answers) -> DkimVerdict:
    """Evaluate the keys that are found below ``_domainkey.<domain>``.

    All selectors are queried at once.

    :param selectors: the selectors to try, from `choose_selectors`.
    """
    base = f"_domainkey.{domain}"
    tried = tuple(selectors)
    found = {name: look_up(answers, f"{name}.{base}", "TXT") for name in tried}
    made_up = look_up(answers, f"{WILDCARD_TEST_SELECTOR}.{base}", "TXT")
    wildcard = _read_keys(WILDCARD_SELECTOR, made_up)
    node = look_up(answers, base, "TXT")
    having = [(name, answer) for name, answer in found.items() if answer.records]
    keys = [key for name, answer in having for key in _read_keys(name, answer)]
    if wildcard:
        covered = {key.record.text for key in wildcard}
        keys = [key for key in keys if key.record.text not in covered]
    keys += wildcard
    silent = [a.question.name for a in (*found.values(), node) if not a.status.is_determined]
    # No name exists below a name that does not exist (RFC 8020). Some servers are wrong about it,
    # so the selectors are queried as well.
    presence = Presence.FOUND if keys else Presence.UNDETERMINED
    if not keys and node.status is DnsStatus.NXDOMAIN and not silent:
        presence = Presence.ABSENT
    dangling = tuple(
        (name, answer.canonical_name) for name, answer in found.items() if is_dangling(answer)
    )
    answers_for_all = made_up.status in _EXISTING
    # Asked in a second round, by the few domains without a key.
    is_missing = not keys and not silent and made_up.status is DnsStatus.NXDOMAIN
    misplaced = _find_misplaced(domain, tried, answers) if is_missing else None
    return DkimVerdict(
        domain=domain,
        presence=presence,
        is_hidden=presence is Presence.UNDETERMINED and not silent,
        keys=tuple(keys),
        dangling=dangling,
        tried=tried,
        findings=tuple(
            _find_findings(
                domain,
                presence,
                keys,
                dangling,
                silent,
                misplaced=misplaced,
                answers_for_all=answers_for_all,
            )
        ),
        silent=tuple(silent),
    )


def _read_keys(selector: str, answer: DnsAnswer) -> list[DkimKey]:
    records = read_key_records(txt_values(answer))
    return [
        DkimKey(
            selector=selector,
            record_name=answer.question.name,
            record=record,
            alias_of=alias_target(answer),
            is_one_of_several=len(records) > 1,
        )
        for record in records
    ]


def _find_findings(
    domain: str,
    presence: Presence,
    keys: list[DkimKey],
    dangling: tuple[tuple[str, str], ...],
    silent: list[str],
    misplaced: Finding | None,
    *,
    answers_for_all: bool,
) -> list[Finding]:
    """Return the findings; ``answers_for_all`` is whether DNS answers for a made-up selector."""
    found = [_describe_dangling(domain, *pair, keys) for pair in dangling]
    if presence is Presence.FOUND:
        has_usable = any(key.is_usable for key in keys)
        if any(key.record.is_usable for key in keys):
            # A key for another service, such as signatures of TLS reports (RFC 8460 3).
            keys = [key for key in keys if key.record.is_for_mail]
        return [f for key in keys for f in describe_key(key, has_usable=has_usable)] + found
    if misplaced is not None:
        return [misplaced, *found]
    if presence is Presence.ABSENT:
        absent = make_finding("dkim.absent", domain=domain)
        return [absent, *found]
    if silent:
        return [undetermined("dkim.undetermined", silent[:3]), *found]
    names = (
        f"DNS answers for every name below _domainkey.{domain} (a wildcard), but with no key"
        if answers_for_all
        else f"there are names below _domainkey.{domain}, but none of the usual ones"
    )
    hidden = make_finding("dkim.hidden", names=names)
    return found or [hidden]


def _describe_dangling(domain: str, selector: str, target: str, keys: Sequence[DkimKey]) -> Finding:
    """Return a finding for a CNAME without a key; a note for the next key of a rotation."""
    name = f"{selector}._domainkey.{domain}"
    provider = _find_rotating(target)
    if provider is None:
        return make_finding("dkim.dangling", name=name, target=target)
    if any(key.is_usable and _find_rotating(key.alias_of) is provider for key in keys):
        return make_finding("dkim.next-key", name=name, target=target, provider=provider.name)
    return make_finding(
        "dkim.dangling", case="provider", name=name, target=target, provider=provider.name
    )


def _find_rotating(target: str) -> Provider | None:
    """Return the provider that changes the keys at the target of a CNAME by itself."""
    return next(
        (
            provider
            for provider in load_providers()
            if any(target.endswith(f".{end}") for end in provider.rotates_at)
        ),
        None,
    )


def _find_misplaced(domain: str, selectors: Sequence[str], answers: Answers) -> Finding | None:
    """Return a finding for a key at a name with the zone name appended, or without underscore.

    The selectors are queried only if there are names below the wrong one.
    """
    for base in (f"_domainkey.{domain}.{domain}", f"domainkey.{domain}"):
        if look_up(answers, base, "TXT").status not in _EXISTING:
            continue
        for selector in selectors:
            answer = look_up(answers, f"{selector}.{base}", "TXT")
            keys, target = _read_keys(selector, answer), alias_target(answer)
            if not keys and not target:
                continue
            name = f"{selector}._domainkey.{domain}"
            record = "CNAME" if target else "key"
            return make_finding(
                "dkim.misplaced",
                proposed=None if target else RecordToPublish(name, "TXT", keys[0].record.text),
                record=record,
                place=answer.question.name,
                name=name,
            )
    return None
