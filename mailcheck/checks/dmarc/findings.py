"""The words for what is wrong with a DMARC record."""

from collections.abc import Iterator, Sequence

from mailcheck.checks.dmarc.record import OBSOLETE_TAGS, VERSION, Policy
from mailcheck.checks.dmarc.verdicts import DmarcVerdict, ReportAuthorization
from mailcheck.checks.findings import Finding, RecordToPublish, Severity, undetermined
from mailcheck.checks.lookups import Presence
from mailcheck.checks.tag_lists import parse_tag_list

PREFIX = "_dmarc."


def absent(domain: str) -> Finding:
    """Say that no record applies."""
    return Finding(
        "dmarc.absent",
        Severity.ERROR,
        f"{domain} has no DMARC record, so nobody is told what to do with mail forged in its"
        " name; Google, Yahoo and Microsoft ask bulk senders for one.",
        "Publish a DMARC record; begin with p=none, read the reports, then ask for quarantine.",
        _publish(domain, f"v={VERSION}; p=none; rua=mailto:dmarc@{domain}"),
    )


def several(domain: str, texts: Sequence[str]) -> Finding:
    """Say that several records count as none."""
    return Finding(
        "dmarc.several",
        Severity.ERROR,
        f"{domain} has {len(texts)} DMARC records but may have one only, so receivers ignore all"
        " of them.",
        "Keep the one you mean and remove the others.",
        _publish(domain, texts[0]),
    )


def without_policy(domain: str, text: str) -> Finding:
    """Say that the record has neither a policy nor a place for reports."""
    return Finding(
        "dmarc.no-policy",
        Severity.ERROR,
        f"The DMARC record of {domain} has no valid policy (p=none, p=quarantine or p=reject), so"
        " receivers ignore it.",
        "Put a policy into the record.",
        _publish(domain, change_tags(text, p="none")),
    )


def unreadable(domain: str, text: str) -> Finding:
    """Say that a record was meant as DMARC but isn't."""
    tags = "; ".join(
        f"{name}={value}"
        for name, value in parse_tag_list(text.replace('"', "")).tags.items()
        if name.lower() not in ("v", "p")
    )
    return Finding(
        "dmarc.unreadable",
        Severity.ERROR,
        f'The record at {PREFIX}{domain} ("{text[:40]}") does not begin exactly with'
        f' "v={VERSION};", so receivers ignore it.',
        f"Replace it with a record that begins with v={VERSION}; and a policy.",
        _publish(domain, f"v={VERSION}; p=none" + (f"; {tags}" if tags else "")),
    )


def misplaced(domain: str, elsewhere: str, text: str) -> Finding:
    """Say that the record stands at another name."""
    return Finding(
        "dmarc.misplaced",
        Severity.ERROR,
        f"The DMARC record stands at {elsewhere}, where no receiver looks, instead of"
        f" {PREFIX}{domain}.",
        f"Move it to {PREFIX}{domain}.",
        _publish(domain, text),
    )


def describe(verdict: DmarcVerdict) -> Iterator[Finding]:
    """Give everything there is to say about a record that applies."""
    changes = _sure_improvements(verdict)
    yield from _policy(verdict, changes)
    yield from _reports(verdict, changes)
    yield from _syntax(verdict, changes)


def _sure_improvements(verdict: DmarcVerdict) -> dict[str, str | None]:
    """Give the changes that can be made without knowing whether all own mail passes."""
    record = verdict.record
    assert record is not None
    changes: dict[str, str | None] = {}
    if not record.asks_for_reports:
        changes["rua"] = f"mailto:dmarc@{verdict.found_at}"
    if _is_weaker(record.subdomain_policy, record.policy):
        changes["sp"] = None
    return changes


def _policy(verdict: DmarcVerdict, changes: dict[str, str | None]) -> Iterator[Finding]:
    record, place = verdict.record, verdict.found_at
    assert record is not None
    assert place is not None
    if verdict.policy is Policy.NONE:
        step = {"p": "quarantine"} if verdict.policy_tag == "p" else {verdict.policy_tag: None}
        yield Finding(
            "dmarc.policy-none",
            Severity.WARNING,
            f"The policy for {verdict.domain} is none: mail forged in its name is delivered as if"
            " it were genuine.",
            "When the reports show that all your own mail passes, ask for quarantine, then reject.",
            _publish(place, change_tags(record.text, **changes | step)),
        )
    elif record.is_testing:
        yield Finding(
            "dmarc.testing",
            Severity.WARNING,
            "The record is marked as a test (t=y), so receivers do not apply its policy.",
            "Remove t=y when the reports show that all your own mail passes.",
            _publish(place, change_tags(record.text, **changes | {"t": None})),
        )
    if verdict.domain == place and _is_weaker(record.subdomain_policy, record.policy):
        yield Finding(
            "dmarc.weaker-subdomains",
            Severity.WARNING,
            f"Subdomains of {place} have a weaker policy (sp) than {place} itself, so forgers use"
            " a subdomain.",
            "Remove sp, then p holds for subdomains too.",
            _publish(place, change_tags(record.text, **changes)),
        )


def _is_weaker(one: Policy | None, other: Policy | None) -> bool:
    return one is not None and other is not None and one.strictness < other.strictness


def _reports(verdict: DmarcVerdict, changes: dict[str, str | None]) -> Iterator[Finding]:
    record, place = verdict.record, verdict.found_at
    assert record is not None
    assert place is not None
    if not record.asks_for_reports:
        yield Finding(
            "dmarc.no-reports",
            Severity.WARNING,
            "The record names no address for reports, so you never learn which of your mail fails"
            " and who forges your name.",
            "Add an address for reports (rua).",
            _publish(place, change_tags(record.text, **changes)),
        )
    for authorization in verdict.authorizations:
        if authorization.presence is Presence.ABSENT:
            yield _refused(authorization, place)
    silent = [a.record_name for a in verdict.authorizations if a.presence is Presence.UNDETERMINED]
    if silent:
        yield undetermined("dmarc", silent)


def _refused(authorization: ReportAuthorization, place: str) -> Finding:
    host = authorization.uri.host
    return Finding(
        "dmarc.report-refused",
        Severity.WARNING,
        f"Reports to {authorization.uri.text} are not sent: {host} does not say that it accepts"
        f" reports about {place}.",
        f"Ask the owner of {host} to publish this record, or use an address of your own.",
        RecordToPublish(authorization.record_name, "TXT", f"v={VERSION};"),
    )


def _syntax(verdict: DmarcVerdict, changes: dict[str, str | None]) -> Iterator[Finding]:
    record, place = verdict.record, verdict.found_at
    assert record is not None
    assert place is not None
    for problem in record.problems:
        yield Finding(
            "dmarc.syntax",
            Severity.WARNING,
            f"{problem[:1].upper()}{problem[1:]}; receivers ignore that part of the record.",
            "Correct or remove it.",
        )
    if record.has_bad_policy:
        yield Finding(
            "dmarc.bad-policy",
            Severity.ERROR,
            "The record has no valid policy, so receivers treat it as p=none.",
            "Put a valid policy into the record.",
            _publish(place, change_tags(record.text, **changes | {"p": "none"})),
        )
    if record.obsolete_tags:
        tags = ", ".join(record.obsolete_tags)
        yield Finding(
            "dmarc.obsolete-tags",
            Severity.NOTE,
            f"The record uses {tags}, which the current standard (RFC 9989) has removed; old"
            " receivers may still follow it.",
            "Remove what is obsolete.",
            _publish(place, change_tags(record.text, **changes)),
        )


def change_tags(text: str, **changes: str | None) -> str:
    """Write a record anew: tags changed, added or (with nothing) removed, obsolete ones gone.

    The order stays, with the policy right behind the version.
    """
    tags = dict(parse_tag_list(text).tags) | changes
    first = {"v": VERSION, "p": tags.get("p")}
    kept = first | {name: value for name, value in tags.items() if name not in first}
    return "; ".join(
        f"{name}={value}"
        for name, value in kept.items()
        if value is not None and name not in OBSOLETE_TAGS
    )


def _publish(domain: str, value: str) -> RecordToPublish:
    return RecordToPublish(PREFIX + domain, "TXT", value)
