"""Evaluation of the DMARC record of a domain, with findings and advice (RFC 9989)."""

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
from mailcheck.checks.mail_domains import is_public_suffix, registrable_domain
from mailcheck.checks.quality.hosts import is_freemail
from mailcheck.checks.tags.misplaced import find_elsewhere
from mailcheck.checks.tags.tag_lists import parse_tag_list
from mailcheck.checks.tags.tag_repair import lost_addresses, name_mistake
from mailcheck.core.domains.domain_names import is_within


class ReportAuthorization(Struct, frozen=True):
    """Whether a host outside the domain accepts reports about it (RFC 9990 4).

    ``presence`` is the presence of the authorization record at ``record_name``.
    """

    uri: ReportUri
    record_name: str
    presence: Presence


class DmarcVerdict(Struct, frozen=True):
    """The DMARC policy that applies to mail from ``domain``.

    ``presence`` is about the record that applies, and ``found_at`` is the domain where it is
    published. ``policy`` applies to ``domain`` itself and comes from the tag ``policy_tag``.
    ``broken_texts`` are texts that were intended as the record but that receivers ignore.
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
        """The organizational domain, or `None` if it is undetermined."""
        return self.walk.organizational_domain

    @property
    def report_uris(self) -> tuple[ReportUri, ...]:
        """The usable addresses for aggregate reports whose hosts accept them."""
        return self.usable_uris(self.record.rua if self.record is not None else ())

    def usable_uris(self, uris: Iterable[ReportUri]) -> tuple[ReportUri, ...]:
        """Return the usable addresses whose hosts accept reports."""
        refused = {a.uri for a in self.authorizations if a.presence is Presence.ABSENT}
        return tuple(uri for uri in uris if uri.is_usable and uri not in refused)

    @property
    def is_enforcing(self) -> bool:
        """Whether the policy asks receivers to quarantine or reject forged mail."""
        return self.policy in (Policy.QUARANTINE, Policy.REJECT)


class SuggestedReportAddress(Struct, frozen=True):
    """A mail address for reports that the advice suggests.

    ``authorization`` is the missing record with which ``host`` accepts the reports (RFC 9990 4), or
    `None`. It belongs in the zone of ``host``.
    """

    uri: str
    host: str
    authorization: RecordToPublish | None


def suggest_report_address(
    place: str, address: str, walk: TreeWalk, answers: Answers
) -> SuggestedReportAddress | None:
    """Return the address to suggest for reports of ``place``.

    Return `None` without an address, or if it is undetermined whether its host accepts reports.
    """
    if not address:
        return None
    uri = ReportUri(f"mailto:{address}", "mailto", address.rpartition("@")[2])
    (asked,) = _check_report_hosts([uri], place, walk, answers) or (None,)
    if asked is not None and asked.presence is Presence.UNDETERMINED:
        return None
    is_missing = asked is not None and asked.presence is Presence.ABSENT
    authorization = (
        _authorization_record(asked.record_name) if asked is not None and is_missing else None
    )
    return SuggestedReportAddress(uri.text, uri.host, authorization)


def _authorization_record(record_name: str) -> RecordToPublish:
    return RecordToPublish(record_name, "TXT", f"v={VERSION};")


def _add_authorization(
    finding: Finding, place: str, offer: SuggestedReportAddress | None
) -> Finding:
    """Add the missing authorization record to a finding that proposes the suggested address."""
    record = finding.proposed
    if (
        offer is None
        or offer.authorization is None
        or record is None
        or offer.uri not in record.value
    ):
        return finding
    words = (
        f" Reports arrive only after the operator of {offer.host} has published the second record"
        f" in that zone: it accepts reports about {place}."
    )
    return replace(finding, fix=finding.fix + words, beside=(offer.authorization,))


def describe_absence(domain: str, offer: SuggestedReportAddress | None = None) -> Finding:
    """Return the finding about a domain to which no record applies."""
    where = "" if offer is not None else ", with an address that you read for reports (rua)"
    rua = "" if offer is None else f"; rua={offer.uri}"
    return make_finding(
        "dmarc.absent",
        proposed=_publish(domain, f"v={VERSION}; p=none{rua}"),
        domain=domain,
        where=where,
    )


def _correct_policies(text: str) -> str:
    """Return a record with valid policies; a valid record is returned unchanged."""
    record = parse_policy_record(text)
    if not record.has_bad_policy:
        return text
    return change_tags(text, **_policy_corrections(_repair(record)))


def _repair(record: PolicyRecord) -> PolicyRecord:
    """Return the record, repaired if it has problems."""
    repaired = repair_policy_record(record.text) if record.problems else None
    return record if repaired is None else parse_policy_record(repaired)


def _policy_corrections(record: PolicyRecord) -> dict[str, str | None]:
    """Return the changes that make the policies valid, but neither stricter nor weaker."""
    changes: dict[str, str | None] = {"p": (record.policy or Policy.NONE).value}
    changes |= {"sp": None} if record.subdomain_policy is None else {}
    return changes | ({"np": None} if record.nonexistent_policy is None else {})


_CAPITAL_TAG = re.compile(r"(?:^|;)\s*(?:P|SP|NP|RUA|RUF)\s*=", re.ASCII)


def _safe_changes(
    record: PolicyRecord, offer: SuggestedReportAddress | None, policy: Policy | None = None
) -> dict[str, str | None]:
    """Return the changes that are safe even if some mail of the domain itself fails DMARC.

    :param offer: the address to suggest for reports, if there is one.
    :param policy: the future policy, if it changes.
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
        to_do = f"Remove {verdict.policy_tag} from the DMARC record, so that p applies, as soon as"
        if verdict.policy_tag == "p":
            step = _safe_changes(record, offer, Policy.QUARANTINE) | {"p": "quarantine"}
            to_do = "Set p=quarantine in the DMARC record, and later p=reject, as soon as"
        yield make_finding(
            "dmarc.policy-none",
            proposed=_publish(place, change_tags(record.text, **changes | step)),
            domain=verdict.domain,
            to_do=to_do,
        )
    elif record.is_testing:
        assert verdict.policy is not None
        yield make_finding(
            "dmarc.testing",
            proposed=_publish(place, change_tags(record.text, **changes | {"t": None})),
            one_step_weaker=verdict.policy.one_step_weaker.value,
            policy=verdict.policy.value,
        )
    if verdict.domain == place and verdict.organizational_domain is not None:
        yield from _check_subdomain_policies(place, record, verdict.organizational_domain, changes)


def _check_subdomain_policies(
    place: str, record: PolicyRecord, organization: str, changes: dict[str, str | None]
) -> Iterator[Finding]:
    """Check ``sp`` and ``np``, which count only in the organization's record (RFC 9989 4.7)."""
    given = {"sp": record.subdomain_policy, "np": record.nonexistent_policy}
    if place != organization:
        ignored = " and ".join(tag for tag, policy in given.items() if policy is not None)
        if ignored:
            yield make_finding(
                "dmarc.subdomains-ignored",
                ignored=ignored,
                place=place,
                have="have" if " " in ignored else "has",
                organization=organization,
            )
        return
    weaker = [tag for tag, policy in given.items() if _is_weaker(policy, record.policy)]
    if weaker:
        tags = " and ".join(weaker)
        whose = "Subdomains" if "sp" in weaker else "Made-up subdomains"
        yield make_finding(
            "dmarc.weaker-subdomains",
            proposed=_publish(place, change_tags(record.text, **changes)),
            whose=whose,
            place=place,
            tags=tags,
        )


def _check_public_suffix(
    place: str, record: PolicyRecord, changes: dict[str, str | None]
) -> Iterator[Finding]:
    """Yield a finding if a domain that others do not register names below says that they do."""
    if record.psd == "y" and not is_public_suffix(place):
        yield make_finding(
            "dmarc.public-suffix",
            proposed=_publish(place, change_tags(record.text, **changes | {"psd": None})),
            place=place,
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
            "dmarc.no-reports", proposed=_publish(place, repaired) if asks_then else None
        )
    for authorization in authorizations:
        uri = authorization.uri
        if authorization.presence is Presence.ABSENT:
            missing = _authorization_record(authorization.record_name)
            is_mailbox = is_freemail(uri.host)
            yield make_finding(
                "dmarc.report-refused",
                case="mailbox-provider" if is_mailbox else "",
                proposed=None if is_mailbox else missing,
                uri=uri.text,
                host=uri.host,
                place=place,
            )
    silent = [
        asked.record_name for asked in authorizations if asked.presence is Presence.UNDETERMINED
    ]
    if silent:
        yield undetermined("dmarc.undetermined", silent)
    readers = ", ".join(dict.fromkeys(uri.host for uri in record.ruf if uri.is_usable))
    if readers:
        yield make_finding("dmarc.failure-reports", readers=readers)


def _check_syntax(
    place: str, record: PolicyRecord, changes: dict[str, str | None]
) -> Iterator[Finding]:
    repaired = repair_policy_record(record.text)
    for problem in record.problems:
        yield make_finding(
            "dmarc.syntax",
            proposed=None
            if repaired is None
            else _publish(place, change_tags(repaired, **changes)),
            problem=f"{problem[:1].upper()}{problem[1:]}",
        )
    if record.has_bad_policy:
        yield make_finding(
            "dmarc.bad-policy",
            proposed=_publish(
                place, change_tags(record.text, **changes | _policy_corrections(_repair(record)))
            ),
        )
    if record.obsolete_tags:
        tags = ", ".join(record.obsolete_tags)
        is_trial = parse_tag_list(record.text).get("pct") == "0"
        finding = make_finding(
            "dmarc.obsolete-tags",
            case="trial" if is_trial else "",
            proposed=_publish(place, change_tags(record.text, **changes)),
            tags=tags,
        )
        yield replace(finding, may_cost=is_trial)


def change_tags(text: str, **changes: str | None) -> str:
    """Return a record with tags changed, added or (with `None`) removed.

    Obsolete tags are removed too; ``pct=0`` becomes ``t=y``. The order stays, with the policy
    directly after the version. A record with problems is repaired first.
    """
    meant = _repair(parse_policy_record(text)).text
    tags: dict[str, str | None] = dict(parse_tag_list(meant).tags)
    if parse_tag_list(text).get("pct") == "0" and "t" not in tags:
        tags["t"] = "y"  # RFC 9989 replaces pct=0 with it
    tags |= changes
    first = {"v": VERSION, "p": tags.get("p")}
    kept = first | {name: value for name, value in tags.items() if name not in first}
    return "; ".join(
        f"{name}={value}"
        for name, value in kept.items()
        if value is not None and name not in OBSOLETE_TAGS
    )


def _publish(domain: str, value: str) -> RecordToPublish:
    return RecordToPublish(PREFIX + domain, "TXT", value)


MAX_REPORT_HOSTS = 10  # maximum number of report hosts outside the domain that are checked


def evaluate_dmarc(domain: str, answers: Answers, report_to: str = "") -> DmarcVerdict:
    """Evaluate the DMARC policy for mail from ``domain`` (RFC 9989 4.10).

    :param report_to: the mail address that the advice suggests for reports; empty for none.
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
        findings = [*_check_dangling_alias(walk, answers)]
        if complaint is not None:
            findings.append(complaint)
        else:
            findings.append(_explain_absence(domain, report_to, walk, answers))
            findings += _compare_with_rfc7489(domain, None, answers)
        return replace(verdict, findings=_adapt_records(findings, walk, broken))
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
    findings = [*_check_dangling_alias(walk, answers), *([complaint] if complaint else ())]
    findings += _describe_all(found, step, report_to, answers)
    return replace(found, findings=_adapt_records(findings, walk, (*broken, *step.texts)))


def _check_dangling_alias(walk: TreeWalk, answers: Answers) -> Iterator[Finding]:
    """Yield a finding if the record name is a CNAME that leads to no record."""
    name = PREFIX + walk.start
    answer = look_up(answers, name, "TXT")
    if not is_dangling(answer):
        return
    target = alias_target(answer)
    what = "does not exist" if answer.status is DnsStatus.NXDOMAIN else "has no TXT record"
    yield make_finding("dmarc.dangling", name=name, target=target, what=what)


def _adapt_records(
    findings: Iterable[Finding], walk: TreeWalk, texts: Sequence[str]
) -> tuple[Finding, ...]:
    """Adapt the proposed records of findings to aliases.

    A record that would lose a report address is not proposed.

    :param texts: the published records that are replaced.
    """
    aliases = {PREFIX + step.domain: step.alias_of for step in walk.steps}
    adapted = []
    for finding in findings:
        record = finding.proposed
        if record is not None and record.name in aliases and lost_addresses(texts, record.value):
            adapted.append(replace(finding, proposed=None))
        elif record is not None:
            adapted.append(publish_at_target(finding, record.name, aliases.get(record.name, "")))
        else:
            adapted.append(finding)
    return tuple(adapted)


def _describe_all(
    found: DmarcVerdict, step: WalkStep, report_to: str, answers: Answers
) -> Iterator[Finding]:
    """Yield findings about the record that applies; suggest an address if it names none."""
    assert step.record is not None
    is_silent = not _repair(step.record).requests_reports
    offer = (
        suggest_report_address(step.domain, report_to, found.walk, answers) if is_silent else None
    )
    changes = _safe_changes(step.record, offer)
    # Facts come before advice that depends on reports: a record proposed later includes the changes
    # of earlier ones.
    described = (
        *_check_reports(found.authorizations, step.domain, step.record, changes),
        *_check_syntax(step.domain, step.record, changes),
        *_check_policy(found, step.domain, step.record, changes, offer),
    )
    yield from (_add_authorization(finding, step.domain, offer) for finding in described)
    yield from _check_public_suffix(step.domain, step.record, changes)
    yield from _check_undetermined_policy(found.domain, step, answers)
    yield from _compare_with_rfc7489(found.domain, step, answers)


def _compare_with_rfc7489(
    domain: str, step: WalkStep | None, answers: Answers
) -> Iterator[Finding]:
    """Yield a finding if receivers that still follow RFC 7489 find another record or none.

    They query the domain itself, then the organizational domain of the Public Suffix List
    (RFC 7489 6.6.3).
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
        "dmarc.older-receivers", domain=domain, newer=newer, older=older, prefix=PREFIX
    )


def _find_policy_step(walk: TreeWalk) -> WalkStep | None:
    """Return the step with the record of the domain, its organization or the public suffix.

    A bad record counts as no record. The record of the public suffix applies only if the
    organization has none (RFC 9989 4.10.1).
    """
    home = walk.organizational_domain
    steps = [walk.steps[0]]
    if home is not None:
        steps += filter(None, (walk.step_at(home), walk.steps[-1]))
    step = next((walked for walked in steps if walked.record is not None), None)
    return step if step is not None and step.record is not None and step.record.is_usable else None


def _choose_policy(domain: str, step: WalkStep, answers: Answers) -> tuple[Policy, str]:
    """Return the policy for ``domain`` and the tag that it comes from."""
    record = step.record
    assert record is not None
    if record.has_bad_policy:
        return Policy.NONE, "p"
    if step.domain != domain:
        # A name without records may exist (RFC 9989 3.2.13, RFC 8020).
        status = look_up(answers, domain, "MX").status if record.nonexistent_policy else None
        if record.nonexistent_policy is not None and status is DnsStatus.NXDOMAIN:
            return record.nonexistent_policy, "np"
        if record.subdomain_policy is not None:
            return record.subdomain_policy, "sp"
    return record.policy or Policy.NONE, "p"


def _check_undetermined_policy(domain: str, step: WalkStep, answers: Answers) -> Iterator[Finding]:
    """Yield a finding if the policy depends on a name without a DNS answer."""
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
    """Check whether the report hosts outside the organization accept reports (RFC 9990 4)."""
    home = walk.organizational_domain or place
    foreign = [
        uri
        for uri in uris
        if uri.is_usable and not (is_within(uri.host, home) or is_within(uri.host, place))
    ]
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
    """Return the ignored texts that were intended as the record, with their domain.

    The domain is the one checked or its organizational domain.
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
        fix = f"Replace that TXT record with one that begins with v={VERSION}; and a policy"
        besides = "" if repaired else ", and keep the intended addresses and policy"
        return make_finding(
            "dmarc.unreadable",
            proposed=None if repaired is None else _publish(domain, repaired),
            prefix=PREFIX,
            domain=domain,
            broken=broken[0][:40],
            version=VERSION,
            mistake=f": {mistake}" if mistake else "",
            step=fix,
            besides=besides,
        )
    if len(broken) > 1:
        # Keep the strictest record, with the report addresses of all.
        meant = [_repair(parse_policy_record(text)).text for text in sorted(broken)]
        whole = [_correct_policies(text) for text in meant]
        policies = {text: _repair(parse_policy_record(text)).policy for text in whole}
        kept = max(whole, key=lambda text: -1 if (p := policies[text]) is None else p.strictness)
        return make_finding(
            "dmarc.several",
            proposed=_publish(domain, change_tags(kept, **merge_uris([kept, *whole]))),
            domain=domain,
            count=len(broken),
            prefix=PREFIX,
        )
    if _CAPITAL_TAG.search(broken[0]):
        mistake = "its tags are written in capitals"
    return make_finding(
        "dmarc.no-policy",
        proposed=_publish(domain, _correct_policies(broken[0])),
        domain=domain,
        mistake=f": {mistake}" if mistake else "",
        prefix=PREFIX,
    )


def _explain_absence(domain: str, report_to: str, walk: TreeWalk, answers: Answers) -> Finding:
    """Return a finding for a missing record, or for one that is published at a wrong name."""
    # A wrong name is the domain itself, one to which a zone editor appended the zone name, one
    # without the underscore, or that of the website.
    proper = PREFIX + domain
    elsewhere = find_elsewhere(
        (domain, f"{proper}.{domain}", f"dmarc.{domain}", f"{PREFIX}www.{domain}"),
        is_policy_record,
        answers,
    )
    if elsewhere is not None:
        place, text = elsewhere
        return make_finding(
            "dmarc.misplaced", proposed=_publish(domain, text), place=place, proper=proper
        )
    offer = suggest_report_address(domain, report_to, walk, answers)
    return _add_authorization(describe_absence(domain, offer), domain, offer)
