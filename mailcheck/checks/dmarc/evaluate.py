"""Judging the DMARC record of a domain, and what is said about it (RFC 9989)."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.aliases import alias_target, is_dangling, publish_at_target
from mailcheck.checks.dmarc.record import (
    OBSOLETE_TAGS,
    PREFIX,
    VERSION,
    Policy,
    PolicyRecord,
    ReportUri,
    TreeWalk,
    WalkStep,
    is_policy_record,
    looks_like_dmarc,
    merge_uris,
    parse_policy_record,
    repair_policy_record,
    walk_tree,
)
from mailcheck.checks.dns_answers import (
    Answers,
    DnsStatus,
    Presence,
    look_up,
    presence_of,
    txt_values,
)
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.checks.tag_lists import parse_tag_list
from mailcheck.checks.tag_repair import lost_addresses, name_mistake
from mailcheck.core.domain_names import is_within


class ReportAuthorization(Struct, frozen=True):
    """Whether an address outside the domain agrees to get its reports (RFC 9990 4).

    ``presence`` is that of the record at ``record_name`` with which it agrees.
    """

    uri: ReportUri
    record_name: str
    presence: Presence


class DmarcVerdict(Struct, frozen=True):
    """What receivers are asked to do with mail that claims to be from ``domain`` and is not.

    ``presence`` is about a record that applies, wherever it was found.
    ``found_at`` names that place; ``policy`` is the one that holds for
    ``domain`` itself, read from the tag ``policy_tag``. ``broken_texts`` are
    records that were meant to be it and that receivers ignore.
    """

    domain: str
    presence: Presence
    walk: TreeWalk
    found_at: str | None = None
    record: PolicyRecord | None = None
    policy: Policy | None = None
    policy_tag: str = ""
    broken_texts: tuple[str, ...] = ()
    authorizations: tuple[ReportAuthorization, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def organizational_domain(self) -> str | None:
        """Give the organizational domain; nothing when it is undetermined."""
        return self.walk.organizational_domain

    @property
    def report_uris(self) -> tuple[ReportUri, ...]:
        """Give the places that get aggregate reports: usable ones that don't refuse them."""
        refused = {a.uri for a in self.authorizations if a.presence is Presence.ABSENT}
        rua = self.record.rua if self.record is not None else ()
        return tuple(uri for uri in rua if uri.is_usable and uri not in refused)

    @property
    def is_enforcing(self) -> bool:
        """Tell whether receivers are asked to act on forged mail."""
        return self.policy in (Policy.QUARANTINE, Policy.REJECT)


class SuggestedReportAddress(Struct, frozen=True):
    """A mail address that takes reports, as advice offers it.

    ``agreement`` is the record that makes it count, where it is elsewhere and not there yet
    (RFC 9990 4); it belongs into the zone of ``host``.
    """

    uri: str
    host: str
    agreement: RecordToPublish | None


def suggest_report_address(
    place: str, address: str, walk: TreeWalk, answers: Answers
) -> SuggestedReportAddress | None:
    """Say how an address can take reports by the record of ``place``.

    Nothing where there is no address, or where nobody knows whether its host agrees.
    """
    if not address:
        return None
    uri = ReportUri(f"mailto:{address}", "mailto", address.rpartition("@")[2])
    (asked,) = _check_report_hosts([uri], place, walk, answers) or (None,)
    if asked is not None and asked.presence is Presence.UNDETERMINED:
        return None
    is_missing = asked is not None and asked.presence is Presence.ABSENT
    agreement = (
        _authorization_record(asked.record_name) if asked is not None and is_missing else None
    )
    return SuggestedReportAddress(uri.text, uri.host, agreement)


def _authorization_record(record_name: str) -> RecordToPublish:
    return RecordToPublish(record_name, "TXT", f"v={VERSION};")


def _add_authorization(
    finding: Finding, place: str, offer: SuggestedReportAddress | None
) -> Finding:
    """Say of a record that names an offered address what else is needed, and of whom."""
    record = finding.proposed
    if offer is None or offer.agreement is None or record is None or offer.uri not in record.value:
        return finding
    words = (
        f" Reports come once whoever runs {offer.host} has published the record beside it in that"
        f" zone, which says that it takes reports about {place}."
    )
    return replace(finding, fix=finding.fix + words, beside=(offer.agreement,))


def describe_absence(domain: str, offer: SuggestedReportAddress | None = None) -> Finding:
    """Say that no record applies."""
    where = "" if offer is not None else ", with an address that you read for reports (rua)"
    rua = "" if offer is None else f"; rua={offer.uri}"
    return make_finding(
        "dmarc.absent",
        f"{domain} has no DMARC record, so nobody is told what to do with mail forged in its"
        " name; Google, Yahoo and Microsoft ask bulk senders for one.",
        f"Publish a DMARC record{where}; begin with p=none, read the reports, then ask for"
        " quarantine.",
        _publish(domain, f"v={VERSION}; p=none{rua}"),
    )


def _correct_policies(text: str) -> str:
    """Return a record whose policies are valid: as it is where they are."""
    record = parse_policy_record(text)
    if not record.has_bad_policy:
        return text
    return change_tags(text, **_policy_corrections(_repair(record)))


def _repair(record: PolicyRecord) -> PolicyRecord:
    """Return what a record means: where it has faults, the repaired one."""
    repaired = repair_policy_record(record.text) if record.problems else None
    return record if repaired is None else parse_policy_record(repaired)


def _policy_corrections(record: PolicyRecord) -> dict[str, str | None]:
    """Give the changes that make the policies valid, none of them stricter or weaker."""
    changes: dict[str, str | None] = {"p": (record.policy or Policy.NONE).value}
    changes |= {"sp": None} if record.subdomain_policy is None else {}
    return changes | ({"np": None} if record.nonexistent_policy is None else {})


_CAPITAL_TAG = re.compile(r"(?:^|;)\s*(?:P|SP|NP|RUA|RUF)\s*=", re.ASCII)


def _safe_changes(
    record: PolicyRecord, offer: SuggestedReportAddress | None, policy: Policy | None = None
) -> dict[str, str | None]:
    """Give the changes that can be made without knowing whether all own mail passes.

    :param offer: what takes reports, where somebody does.
    :param policy: the one that is to come, if it is another one.
    """
    policy = policy or record.policy
    changes: dict[str, str | None] = {}
    if not record.requests_reports and offer is not None:
        changes["rua"] = offer.uri
    for tag, other in (("sp", record.subdomain_policy), ("np", record.nonexistent_policy)):
        if _is_weaker(other, policy):
            changes[tag] = None
    return changes


def _check_policy(
    verdict: DmarcVerdict,
    place: str,
    record: PolicyRecord,
    changes: dict[str, str | None],
    offer: SuggestedReportAddress | None,
) -> Iterator[Finding]:
    is_misspelt = record.has_bad_policy and _repair(record).policy not in (None, Policy.NONE)
    if verdict.policy is Policy.NONE and not is_misspelt:
        step: dict[str, str | None] = {verdict.policy_tag: None}
        to_do = f"Remove {verdict.policy_tag} from the DMARC record, so that p holds, as soon as"
        if verdict.policy_tag == "p":
            step = _safe_changes(record, offer, Policy.QUARANTINE) | {"p": "quarantine"}
            to_do = "Set p=quarantine in the DMARC record, and later p=reject, as soon as"
        yield make_finding(
            "dmarc.policy-none",
            f"The policy for {verdict.domain} is none: mail forged in its name is delivered as if"
            " it were genuine.",
            f"{to_do} the reports show that all your own mail passes.",
            _publish(place, change_tags(record.text, **changes | step)),
        )
    elif record.is_testing:
        assert verdict.policy is not None
        yield make_finding(
            "dmarc.testing",
            "The DMARC record is marked as a test (t=y), so receivers apply"
            f" {verdict.policy.one_step_weaker.value} instead of {verdict.policy.value}.",
            proposed=_publish(place, change_tags(record.text, **changes | {"t": None})),
        )
    if verdict.domain == place and verdict.organizational_domain is not None:
        yield from _check_subdomain_policies(place, record, verdict.organizational_domain, changes)


def _check_subdomain_policies(
    place: str, record: PolicyRecord, organization: str, changes: dict[str, str | None]
) -> Iterator[Finding]:
    """Judge ``sp`` and ``np``: only in the organization's record they count (RFC 9989 4.7)."""
    given = {"sp": record.subdomain_policy, "np": record.nonexistent_policy}
    if place != organization:
        ignored = " and ".join(tag for tag, policy in given.items() if policy is not None)
        if ignored:
            yield make_finding(
                "dmarc.subdomains-ignored",
                f"{ignored} in the DMARC record of {place} {'do' if ' ' in ignored else 'does'}"
                f" nothing: for its subdomains the record of {organization} holds.",
                f"Say what holds for subdomains in the DMARC record of {organization}.",
            )
        return
    weaker = [tag for tag, policy in given.items() if _is_weaker(policy, record.policy)]
    if weaker:
        tags = " and ".join(weaker)
        whose = "Subdomains" if "sp" in weaker else "Made-up subdomains"
        yield make_finding(
            "dmarc.weaker-subdomains",
            f"{whose} of {place} have a weaker policy ({tags}) than {place} itself, so forgers use"
            " a subdomain.",
            f"Remove {tags} from the DMARC record: then p holds for subdomains too.",
            _publish(place, change_tags(record.text, **changes)),
        )


def _is_weaker(one: Policy | None, other: Policy | None) -> bool:
    return one is not None and other is not None and one.strictness < other.strictness


def _check_reports(
    authorizations: Sequence[ReportAuthorization],
    place: str,
    record: PolicyRecord,
    changes: dict[str, str | None],
) -> Iterator[Finding]:
    if not record.requests_reports:
        repaired = change_tags(record.text, **changes)
        asks_then = parse_policy_record(repaired).requests_reports
        yield make_finding(
            "dmarc.no-reports",
            "The DMARC record names no address for reports, so you never learn which of your mail"
            " fails and who forges your name.",
            proposed=_publish(place, repaired) if asks_then else None,
        )
    for one in authorizations:
        if one.presence is Presence.ABSENT:
            yield make_finding(
                "dmarc.report-refused",
                f"Reports to {one.uri.text} are not sent: {one.uri.host} does not say that it"
                f" accepts reports about {place}.",
                f"Ask the owner of {one.uri.host} to publish this record, or use an address of"
                " your own.",
                _authorization_record(one.record_name),
            )
    silent = [one.record_name for one in authorizations if one.presence is Presence.UNDETERMINED]
    if silent:
        yield undetermined("dmarc.undetermined", silent)


def _check_syntax(
    place: str, record: PolicyRecord, changes: dict[str, str | None]
) -> Iterator[Finding]:
    repaired = repair_policy_record(record.text)
    for problem in record.problems:
        yield make_finding(
            "dmarc.syntax",
            f"{problem[:1].upper()}{problem[1:]}; receivers ignore that part of the record.",
            proposed=None
            if repaired is None
            else _publish(place, change_tags(repaired, **changes)),
        )
    if record.has_bad_policy:
        yield make_finding(
            "dmarc.bad-policy",
            "The DMARC record has no valid policy, so receivers treat it as p=none.",
            proposed=_publish(
                place, change_tags(record.text, **changes | _policy_corrections(_repair(record)))
            ),
        )
    if record.obsolete_tags:
        tags = ", ".join(record.obsolete_tags)
        yield make_finding(
            "dmarc.obsolete-tags",
            f"The DMARC record uses {tags}, which the current standard (RFC 9989) has removed; old"
            " receivers may still follow it.",
            f"Remove {tags} from the DMARC record.",
            _publish(place, change_tags(record.text, **changes)),
        )


def change_tags(text: str, **changes: str | None) -> str:
    """Write a record anew: tags changed, added or (with None) removed, obsolete ones gone.

    The order stays, with the policy right behind the version. A record with faults is repaired.
    """
    meant = _repair(parse_policy_record(text)).text
    tags = dict(parse_tag_list(meant).tags) | changes
    first = {"v": VERSION, "p": tags.get("p")}
    kept = first | {name: value for name, value in tags.items() if name not in first}
    return "; ".join(
        f"{name}={value}"
        for name, value in kept.items()
        if value is not None and name not in OBSOLETE_TAGS
    )


def _publish(domain: str, value: str) -> RecordToPublish:
    return RecordToPublish(PREFIX + domain, "TXT", value)


MAX_REPORT_HOSTS = 10  # foreign hosts that are asked whether they agree


def evaluate_dmarc(domain: str, answers: Answers, report_to: str = "") -> DmarcVerdict:
    """Judge which DMARC policy holds for mail from ``domain`` (RFC 9989 4.10).

    :param report_to: the mail address that advice offers for reports; it makes none up.
    """
    walk = walk_tree(domain, answers)
    step = _find_policy_step(walk)
    place, broken = _find_broken_texts(domain, walk, answers)
    verdict = DmarcVerdict(domain, Presence.ABSENT, walk, broken_texts=broken)
    complaint = _explain_broken_texts(place, broken)
    if step is None and walk.unanswered_names and walk.steps[0].record is None:
        silence = undetermined("dmarc.undetermined", walk.unanswered_names)
        return replace(verdict, presence=Presence.UNDETERMINED, findings=(silence,))
    if step is None:
        said = [*_check_dangling_alias(walk, answers)]
        if complaint is not None:
            said.append(complaint)
        else:
            said.append(_explain_absence(domain, report_to, walk, answers))
            said += _compare_with_rfc7489(domain, None, answers)
        return replace(verdict, findings=_adapt_records(said, walk, broken))
    assert step.record is not None
    policy, tag = _choose_policy(domain, step, answers)
    uris = (*step.record.rua, *step.record.ruf)
    found = replace(
        verdict,
        presence=Presence.FOUND,
        found_at=step.domain,
        record=step.record,
        policy=policy,
        policy_tag=tag,
        authorizations=_check_report_hosts(uris, step.domain, walk, answers),
    )
    said = [*_check_dangling_alias(walk, answers), *([complaint] if complaint else ())]
    said += _describe_all(found, step, report_to, answers)
    return replace(found, findings=_adapt_records(said, walk, (*broken, *step.texts)))


def _check_dangling_alias(walk: TreeWalk, answers: Answers) -> Iterator[Finding]:
    """Report a CNAME at the name of the record that leads to no record."""
    name = PREFIX + walk.start
    answer = look_up(answers, name, "TXT")
    if not is_dangling(answer):
        return
    target = alias_target(answer)
    what = "does not exist" if answer.status is DnsStatus.NXDOMAIN else "has no TXT record"
    yield make_finding(
        "dmarc.dangling",
        f"{name} is an alias (CNAME) of {target}, which {what}, so receivers find no DMARC record"
        " there.",
        f"Publish the DMARC record at {target}, or replace the CNAME by a TXT record at {name}.",
    )


def _adapt_records(
    findings: Iterable[Finding], walk: TreeWalk, texts: Sequence[str]
) -> tuple[Finding, ...]:
    """Return findings whose records can be published and keep every report address.

    :param texts: the published records that are replaced.
    """
    aliases = {PREFIX + step.domain: step.alias_of for step in walk.steps}
    said = []
    for one in findings:
        record = one.proposed
        if record is not None and record.name in aliases and lost_addresses(texts, record.value):
            said.append(replace(one, proposed=None))
        elif record is not None:
            said.append(publish_at_target(one, record.name, aliases.get(record.name, "")))
        else:
            said.append(one)
    return tuple(said)


def _describe_all(
    found: DmarcVerdict, step: WalkStep, report_to: str, answers: Answers
) -> Iterator[Finding]:
    """Describe the record that applies, with an address for reports where it asks nobody."""
    assert step.record is not None
    is_silent = not _repair(step.record).requests_reports
    offer = (
        suggest_report_address(step.domain, report_to, found.walk, answers) if is_silent else None
    )
    changes = _safe_changes(step.record, offer)
    # What holds already comes before what hangs on the reports: a later record keeps the earlier.
    described = (
        *_check_reports(found.authorizations, step.domain, step.record, changes),
        *_check_syntax(step.domain, step.record, changes),
        *_check_policy(found, step.domain, step.record, changes, offer),
    )
    yield from (_add_authorization(one, step.domain, offer) for one in described)
    yield from _check_undetermined_policy(found.domain, step, answers)
    yield from _compare_with_rfc7489(found.domain, step, answers)


def _compare_with_rfc7489(
    domain: str, step: WalkStep | None, answers: Answers
) -> Iterator[Finding]:
    """Say where receivers that still follow RFC 7489 find another record, or none.

    They look at the domain itself, then where the Public Suffix List says that the
    organization's domain is (RFC 7489 6.6.3).
    """
    home, found_at = registrable_domain(domain), step.domain if step is not None else None
    if domain in (home, found_at):
        return
    answer = look_up(answers, PREFIX + home, "TXT")
    texts = [text for text in txt_values(answer) if is_policy_record(text)]
    seen_at = home if len(texts) == 1 else None
    if not answer.status.is_determined or seen_at == found_at:
        return
    newer = f"at {PREFIX}{found_at}" if found_at is not None else "none"
    older = f"at {PREFIX}{seen_at}" if seen_at is not None else "none"
    yield make_finding(
        "dmarc.older-receivers",
        f"Receivers that follow RFC 9989 find the DMARC record of {domain} thus: {newer}; those"
        f" that still follow RFC 7489: {older}.",
        f"Publish a DMARC record at {PREFIX}{domain} itself: all of them look there first.",
    )


def _find_policy_step(walk: TreeWalk) -> WalkStep | None:
    """Return the step whose record applies: own, else organization's, else public suffix's.

    A bad record counts as none. The public suffix's is for organizations without a record
    (RFC 9989 4.10.1).
    """
    home = walk.organizational_domain
    steps = [walk.steps[0]]
    if home is not None:
        steps += filter(None, (walk.step_at(home), walk.steps[-1]))
    step = next((one for one in steps if one.record is not None), None)
    return step if step is not None and step.record is not None and step.record.is_usable else None


def _choose_policy(domain: str, step: WalkStep, answers: Answers) -> tuple[Policy, str]:
    """Give the policy for ``domain`` and the tag it comes from."""
    record = step.record
    assert record is not None
    if record.has_bad_policy:
        return Policy.NONE, "p"
    if step.domain != domain:
        # RFC 9989 3.2.13, RFC 8020: a name without records may exist.
        status = look_up(answers, domain, "MX").status if record.nonexistent_policy else None
        if record.nonexistent_policy is not None and status is DnsStatus.NXDOMAIN:
            return record.nonexistent_policy, "np"
        if record.subdomain_policy is not None:
            return record.subdomain_policy, "sp"
    return record.policy or Policy.NONE, "p"


def _check_undetermined_policy(domain: str, step: WalkStep, answers: Answers) -> Iterator[Finding]:
    """Say where it depends on a name that did not answer which of two policies holds."""
    record = step.record
    if record is None or record.has_bad_policy or step.domain == domain:
        return
    of_existing = record.subdomain_policy or record.policy
    is_needed = record.nonexistent_policy not in (None, of_existing)
    if is_needed and not look_up(answers, domain, "MX").status.is_determined:
        yield undetermined("dmarc.undetermined", [domain])


def _check_report_hosts(
    uris: Sequence[ReportUri], place: str, walk: TreeWalk, answers: Answers
) -> tuple[ReportAuthorization, ...]:
    """Ask the report hosts outside the organization whether they agree (RFC 9990 4)."""
    home = walk.organizational_domain or place
    foreign = [uri for uri in uris if uri.is_usable and not is_within(uri.host, home)]
    authorizations = []
    for uri in list(dict.fromkeys(foreign))[:MAX_REPORT_HOSTS]:
        name = f"{place}._report._dmarc.{uri.host}"
        answer = look_up(answers, name, "TXT")
        presence = presence_of(answer)
        if presence is Presence.FOUND and not any(map(is_policy_record, txt_values(answer))):
            presence = Presence.ABSENT
        authorizations.append(ReportAuthorization(uri, name, presence))
    return tuple(authorizations)


def _find_broken_texts(
    domain: str, walk: TreeWalk, answers: Answers
) -> tuple[str, tuple[str, ...]]:
    """Give the texts that were meant as the record and are ignored, and whose they are.

    They stand at the domain's own name, or at that of its organization.
    """
    own = walk.steps[0]
    if own.record is not None and own.record.is_usable:
        return domain, ()
    if own.texts:
        return domain, own.texts
    published = txt_values(look_up(answers, PREFIX + domain, "TXT"))
    near_misses = tuple(text for text in published if looks_like_dmarc(text))
    step = walk.step_at(walk.organizational_domain or domain)
    if near_misses or step is None or step.record is None or step.record.is_usable:
        return domain, near_misses
    return step.domain, step.texts


def _explain_broken_texts(domain: str, broken: tuple[str, ...]) -> Finding | None:
    if not broken:
        return None
    mistake = name_mistake(broken[0])
    if not is_policy_record(broken[0]):
        repaired = repair_policy_record(" ; ".join(broken))
        fix = f"Replace that TXT record with one beginning with v={VERSION}; and a policy"
        besides = "" if repaired else ", and keep the addresses and the policy that you mean"
        return make_finding(
            "dmarc.unreadable",
            f'The record at {PREFIX}{domain} ("{broken[0][:40]}") does not begin exactly with'
            f' "v={VERSION};"{f": {mistake}" if mistake else ""}, so receivers ignore it.',
            f"{fix}{besides}.",
            None if repaired is None else _publish(domain, repaired),
        )
    if len(broken) > 1:
        # The strictest of them, with the report addresses of all.
        meant = [_repair(parse_policy_record(text)).text for text in sorted(broken)]
        whole = [_correct_policies(text) for text in meant]
        policies = {text: _repair(parse_policy_record(text)).policy for text in whole}
        kept = max(whole, key=lambda text: -1 if (p := policies[text]) is None else p.strictness)
        return make_finding(
            "dmarc.several",
            f"{domain} has {len(broken)} DMARC records but may have one only, so receivers ignore"
            " all of them.",
            f"Keep the DMARC record at {PREFIX}{domain} that you mean, and remove the others.",
            _publish(domain, change_tags(kept, **merge_uris([kept, *whole]))),
        )
    if _CAPITAL_TAG.search(broken[0]):
        mistake = "its tags are written in capitals"
    return make_finding(
        "dmarc.no-policy",
        f"The DMARC record of {domain} has no valid policy (p=none, p=quarantine or p=reject)"
        f"{f': {mistake}' if mistake else ''}, so receivers ignore it.",
        f"Put a policy into the DMARC record at {PREFIX}{domain}.",
        _publish(domain, _correct_policies(broken[0])),
    )


def _explain_absence(domain: str, report_to: str, walk: TreeWalk, answers: Answers) -> Finding:
    """Say that there is no record, and where one was seen that was meant to be it."""
    # At the domain itself, or where a zone editor appended the zone's name.
    for elsewhere in (domain, f"{PREFIX}{domain}.{domain}"):
        texts = txt_values(look_up(answers, elsewhere, "TXT"))
        found = [text for text in texts if is_policy_record(text)]
        if found:
            return make_finding(
                "dmarc.misplaced",
                f"The DMARC record stands at {elsewhere}, where no receiver looks, instead of"
                f" {PREFIX}{domain}.",
                f"Move the DMARC record to {PREFIX}{domain}.",
                _publish(domain, found[0]),
            )
    offer = suggest_report_address(domain, report_to, walk, answers)
    return _add_authorization(describe_absence(domain, offer), domain, offer)
