"""Evaluation of the SPF records of a domain, with findings and the record to publish."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dns.rdtypes.ANY.TXT import TXT
from msgspec.structs import replace

from mailcheck.checks.dns_answers import (
    Answers,
    DnsAnswer,
    Presence,
    look_up,
    look_up_addresses,
    mx_records,
    txt_values,
)
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.spf.record import (
    NEVER_READ,
    Mechanism,
    MechanismName,
    Qualifier,
    TermProblem,
    parse_term,
)
from mailcheck.checks.spf.repair import (
    INCLUDE,
    Meaning,
    compose_record,
    find_glued,
    find_meaning,
    find_named_senders,
    find_useless_terms,
    has_senders,
    is_plain,
    propose_new_record,
)
from mailcheck.checks.spf.tree import (
    IP_VERSIONS,
    MAX_LOOKUPS,
    MAX_VOIDS,
    REDIRECT,
    NodeProblem,
    SpfNode,
    SpfVerdict,
    TreeReader,
    count_addresses,
)
from mailcheck.checks.spf_texts import is_sender_id, is_spf_record, looks_like_spf
from mailcheck.checks.tags.misplaced import find_elsewhere
from mailcheck.core.domains.domain_names import is_within

LONG_RECORD = 450  # octets; a longer answer may not fit into a datagram, RFC 7208 3.4

_MOST_QUOTED = 6

_OF_HOSTS = (MechanismName.A, MechanismName.MX)


def _choose_own_term(domain: str, answers: Answers) -> str:
    """Return the term for the hosts that receive mail for a domain, or an empty string."""
    answer = look_up(answers, domain, "MX")
    if not answer.status.is_determined or any(host for _, host in mx_records(answer)):
        return "mx"
    if answer.records:
        return ""  # a null MX
    return "a" if look_up_addresses(answers, domain).addresses else ""


def _describe_unreadable(
    domain: str, text: str, proposed: RecordToPublish | None, *, is_beside: bool = False
) -> Finding:
    """Return a finding for a TXT record that was intended as SPF but is not valid.

    :param is_beside: whether the domain also has a valid record.
    """
    case = "beside" if is_beside else ""
    if proposed is None:
        case = "beside-unclear" if is_beside else "unclear"
    return make_finding(
        "spf.unreadable",
        case=case,
        proposed=proposed,
        severity=Severity.WARNING if is_beside else Severity.ERROR,
        domain=domain,
        text=text[:40],
    )


def _check_limits(verdict: SpfVerdict, proposed: RecordToPublish | None) -> Iterator[Finding]:
    if verdict.lookup_count > MAX_LOOKUPS:
        count = f"{'at least ' if verdict.is_truncated else ''}{verdict.lookup_count}"
        yield make_finding(
            "spf.too-many-lookups",
            proposed=proposed,
            count=count,
            max_lookups=MAX_LOOKUPS,
            domain=verdict.domain,
        )
    if verdict.void_count > MAX_VOIDS:
        terms = min((verdict.void_terms_for(version) for version in IP_VERSIONS), key=len)
        yield make_finding(
            "spf.too-many-voids",
            proposed=proposed,
            count=len(terms),
            quoted_terms=_quoted(terms),
            max_voids=MAX_VOIDS,
            domain=verdict.domain,
        )


def _quoted(terms: Sequence[str]) -> str:
    more = len(terms) - _MOST_QUOTED
    listed = ", ".join(f'"{term}"' for term in terms[:_MOST_QUOTED])
    return f"{listed} and {more} more" if more > 0 else listed


def _check_voids_by_version(
    verdict: SpfVerdict, reordered: RecordToPublish | None
) -> Iterator[Finding]:
    """Yield a finding if some clients have more void lookups than allowed (RFC 7208 4.6.4)."""
    assert verdict.tree is not None
    met = {version: _find_voids_before_senders(verdict.tree, version) for version in IP_VERSIONS}
    affected = [version for version in IP_VERSIONS if len(met[version][0]) > MAX_VOIDS]
    if not affected or verdict.is_broken:
        return
    client = "a mail server"
    if len(affected) < len(IP_VERSIONS):
        client = f"a mail server with an IPv{affected[0]} address"
    voids, _ = met[affected[0]]
    behind = next((met[version][1] for version in affected if met[version][1]), [])
    yield make_finding(
        "spf.voids-before-senders" if behind else "spf.voids-for-some",
        proposed=reordered if behind else None,
        client=client,
        max_voids=MAX_VOIDS,
        voids=_quoted(voids),
        behind=_quoted(behind),
    )


def _find_voids_before_senders(tree: SpfNode, version: int) -> tuple[list[str], list[str]]:
    """Return the void terms for a client, and the senders after too many of them."""
    voids: list[str] = []
    behind: dict[str, None] = {}

    def walk(node: SpfNode, top: str) -> None:
        for step in node.steps:
            own = top or step.term
            if step.child is not None:
                walk(step.child, own)
            elif (
                len(voids) > MAX_VOIDS
                and step.term.lstrip("+-~?").lower() != "all"
                and any(network.version == version for network in step.permitted)
            ):
                behind[own] = None
            if version in step.void_for or step.depends_on_mail:
                voids.append(step.term)

    walk(tree, "")
    return voids, list(behind)


_PROBLEMS = {
    NodeProblem.ABSENT: "spf.include-absent",
    NodeProblem.LOOP: "spf.include-loop",
    NodeProblem.SEVERAL: "spf.include-several",
}


def _describe_node(
    node: SpfNode,
    domain: str,
    proposed: RecordToPublish | None,
    useless: frozenset[str],
    top: SpfNode | None = None,
    unborn: Collection[str] = (),
) -> Iterator[Finding]:
    """Yield findings about one record; ``top`` is the term of the domain's record above it.

    :param unborn: terms that permit the domain's mail hosts as soon as these have addresses.
    """
    is_own = top is None
    places: dict[str, Any] = {
        "place": "the SPF record" if is_own else f"the SPF record of {node.domain} ({node.term})",
        "domain": domain,
        "target": node.domain,
        "top": "" if top is None else top.term,
    }
    if top is not None and node.problem in _PROBLEMS:
        case, words = _advise_include(node) if node is top else (_ask_owner(top), "")
        yield make_finding(
            _PROBLEMS[node.problem],
            case=case,
            proposed=proposed,
            term=node.term,
            words=words,
            **places,
        )
    if node.unanswered_names:
        yield undetermined("spf.undetermined", node.unanswered_names)
    for problem in node.record.problems if node.record else ():
        if is_own or problem.is_error:
            yield _describe_problem(problem, places, proposed, useless, top)
    ask = "" if top is None else "own" if is_within(node.domain, domain) else _ask_owner(top)
    absent_terms = {c.term for c in node.children if c.problem is NodeProblem.ABSENT}
    for term in (void for void in node.voids if void not in absent_terms):
        case = "unborn" if term in unborn else ask or ("" if is_plain(term) else "unclear")
        record = proposed if is_own and case != "unborn" else None
        yield make_finding("spf.void", case=case, proposed=record, term=term, **places)
    for term in node.oversized_mx:
        record = None if is_own else proposed
        yield make_finding("spf.too-many-mx", case=ask, proposed=record, term=term, **places)


def _ask_owner(top: SpfNode) -> str:
    """Return the case of a faulty record that ``top`` leads to and that another owner has.

    Without a redirect, fewer hosts would pass, so only an include can be removed until then.
    """
    return "owner" if top.term.startswith(REDIRECT) else "owner-or-remove"


def _advise_include(node: SpfNode) -> tuple[str, str]:
    """Return the case of a term of the own record that leads to no record, and words for it."""
    meant = find_meaning((node.term,), frozenset((node.term,)))
    if meant.words and not meant.unclear and meant.words != (node.term,):
        return "write", " ".join(meant.words)
    return "" if is_plain(node.term) else "unclear", ""


def _describe_problem(
    problem: TermProblem,
    places: Mapping[str, Any],
    proposed: RecordToPublish | None,
    useless: frozenset[str],
    top: SpfNode | None,
) -> Finding:
    meant = find_meaning((problem.term,), useless)
    is_redirect = problem.term.lower().startswith(REDIRECT)
    included = INCLUDE + problem.term[len(REDIRECT) :] if is_redirect else ""
    case = ""
    if top is not None:
        case = _ask_owner(top)
    elif meant.unclear:
        case = "unclear" if proposed is None else "spaces"
    elif meant.words not in ((), (problem.term,)):
        case = "write"
    elif problem.reason.startswith(NEVER_READ):
        case = "redirect" if is_redirect else "never-read"
        if included and proposed is not None and included in proposed.value.split(" "):
            case = "redirect-or-include"
    return make_finding(
        "spf.syntax" if problem.is_error else "spf.ignored-term",
        case=case,
        proposed=proposed,
        term=problem.term,
        reason=problem.reason,
        words=" ".join(meant.words),
        included=included,
        **places,
    )


def _check_all_mechanism(
    verdict: SpfVerdict, proposed: RecordToPublish | None
) -> Iterator[Finding]:
    terms = _quoted(verdict.wide_terms)
    if verdict.reach.is_open:
        yield make_finding(
            "spf.open", proposed=proposed, reach=verdict.reach, domain=verdict.domain, terms=terms
        )
        return
    if verdict.reach.is_wide:
        yield make_finding("spf.wide", reach=verdict.reach, domain=verdict.domain, terms=terms)
    last = _find_last_record(verdict.tree)
    if last is None:
        return
    is_own = last is verdict.tree
    where = "The SPF record" if is_own else f"The SPF record of {last.domain} ({last.term})"
    case = "" if is_own else "own" if is_within(last.domain, verdict.domain) else "owner"
    finding_id = ""
    if verdict.all_qualifier is None and verdict.is_complete and not verdict.is_truncated:
        finding_id = "spf.no-end"
    elif verdict.all_qualifier is Qualifier.NEUTRAL:
        finding_id = "spf.neutral"
    if finding_id:
        yield make_finding(
            finding_id,
            case=case,
            proposed=proposed if is_own else None,
            where=where,
            target=last.domain,
            domain=verdict.domain,
        )


def _find_last_record(tree: SpfNode | None) -> SpfNode | None:
    """Return the record that ends the evaluation, through redirects (RFC 7208 6.1).

    Return `None` if a redirect leads to a record that is not known here, or has a macro.
    """
    while tree is not None and tree.redirected is not None:
        tree = tree.redirected
        if "%" in tree.term:
            return None
    return None if tree is None or (tree.record is None and tree.term) else tree


def _check_conventions(verdict: SpfVerdict) -> Iterator[Finding]:
    assert verdict.tree is not None
    record = verdict.tree.record
    if record is not None and any(m.name is MechanismName.PTR for m in record.mechanisms):
        yield make_finding("spf.ptr")
    if record is not None and len(record.text) > LONG_RECORD:
        yield make_finding("spf.long", count=len(record.text), long_record=LONG_RECORD)
    if any(node.problem is NodeProblem.MACRO for node in verdict.tree.walk()):
        yield make_finding("spf.macro")


def evaluate_spf(domain: str, answers: Answers) -> SpfVerdict:
    """Evaluate the SPF records of ``domain`` (RFC 7208), with lookup and void counts."""
    answer = look_up(answers, domain, "TXT")
    if not answer.status.is_determined:
        silence = undetermined("spf.undetermined", [domain])
        return SpfVerdict(domain, Presence.UNDETERMINED, findings=(silence,))
    texts = txt_values(answer)
    # Sorted, so that the order of the DNS answer does not decide which of several is first.
    records = tuple(sorted(text for text in texts if is_spf_record(text)))
    near_misses = sorted(text for text in texts if looks_like_spf(text))
    if not records:
        return _explain_absence(domain, near_misses, answer, answers)
    near_misses = [text for text in near_misses if not is_sender_id(text)]
    walk = TreeReader(answers)
    tree, *others = [walk.read_record(domain, text, is_one_of=len(records)) for text in records]
    trees = (tree, *others)
    unborn = _find_terms_of_dead_hosts(trees, domain, answers)
    left_out = {
        term: reason for term, reason in find_useless_terms(trees).items() if term not in unborn
    }
    useless = frozenset(left_out)
    meanings = _find_meanings(answer, (*records, *near_misses), useless)
    permitted = () if others else tuple(tree.permitted)
    verdict = SpfVerdict(
        domain=domain,
        presence=Presence.FOUND,
        records=records,
        tree=tree,
        lookup_count=sum(node.lookups for node in tree.walk()),
        is_truncated=walk.is_truncated,
        named=find_named_senders(records, meanings, left_out),
        repaired=compose_record(meanings, trees, left_out),
        reach=count_addresses(permitted),
    )
    verdict = replace(verdict, wide_terms=_find_wide_terms(verdict))
    counts = [len(verdict.void_terms_for(version, may=True)) for version in IP_VERSIONS]
    has_too_many_voids = max(counts) > MAX_VOIDS
    reordered = (
        compose_record(meanings, trees, left_out, addresses_first=True)
        if has_too_many_voids
        else ""
    )
    findings = _collect_findings(
        verdict, meanings, left_out, unborn, near_misses, reordered=reordered
    )
    return replace(verdict, findings=tuple(findings))


def _collect_findings(
    verdict: SpfVerdict,
    meanings: Sequence[Meaning],
    left_out: Mapping[str, str],
    unborn: Collection[str],
    near_misses: Sequence[str],
    reordered: str,
) -> Iterator[Finding]:
    """Yield all findings about the records and about the texts beside them."""
    domain, tree, useless = verdict.domain, verdict.tree, frozenset(left_out)
    proposed = _propose_record(verdict, verdict.repaired)
    if len(verdict.records) > 1:
        yield make_finding(
            "spf.several",
            case="unclear" if proposed is None else "",
            proposed=proposed,
            domain=domain,
            count=len(verdict.records),
        )
    elif tree is not None and tree.record is not None:
        # Findings in order of severity.
        yield from _check_limits(verdict, proposed)
        yield from _check_voids_by_version(verdict, _propose_record(verdict, reordered))
        yield from _describe_node(tree, domain, proposed, useless, unborn=unborn)
        for top in tree.children:
            for node in top.walk():
                yield from _describe_node(node, domain, proposed, useless, top)
        yield from _check_all_mechanism(verdict, proposed)
        yield from _check_conventions(verdict)
        read = [
            mechanism.text for mechanism in tree.record.mechanisms if mechanism.text not in useless
        ]
        for term, words in find_glued(read, meanings, useless).items():
            yield make_finding("spf.glued-terms", proposed=proposed, term=term, words=words)
    for text in near_misses[:1]:
        yield _describe_unreadable(domain, text, proposed, is_beside=True)


def _find_terms_of_dead_hosts(
    trees: Iterable[SpfNode], domain: str, answers: Answers
) -> frozenset[str]:
    """Return the void terms for the domain's own mail hosts, which have no address now.

    The domain's MX records are at fault or missing, and not these terms.
    """
    voids = [(term, parse_term(term)) for tree in trees for term in tree.voids]
    if not any(
        isinstance(mechanism, Mechanism) and mechanism.name in _OF_HOSTS for _, mechanism in voids
    ):
        return frozenset()
    answer = look_up(answers, domain, "MX")
    hosts = {host for _, host in mx_records(answer) if host}
    has_null_mx = bool(answer.records) and not hosts
    names = {MechanismName.MX: set() if has_null_mx else {domain}, MechanismName.A: hosts}
    return frozenset(
        term
        for term, mechanism in voids
        if isinstance(mechanism, Mechanism)
        and (mechanism.target or domain) in names.get(mechanism.name, ())
    )


def _find_meanings(
    answer: DnsAnswer, texts: Sequence[str], useless: frozenset[str] = frozenset()
) -> list[Meaning]:
    """Return the intended meaning of each text."""
    records = [record for record in answer.records if isinstance(record, TXT)]
    strings = {
        text: record.strings for text, record in zip(txt_values(answer), records, strict=True)
    }
    return [find_meaning(tuple(map(_decode, strings[text])), useless) for text in texts]


def _decode(octets: bytes) -> str:
    """Decode a string; octets that are not UTF-8 are read as Windows-1252."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets.decode("cp1252", "replace")


def _propose_record(verdict: SpfVerdict, value: str) -> RecordToPublish | None:
    """Return the record to propose, or `None` if it would permit no host or every host."""
    if not value or [value] == list(verdict.records):
        return None
    says_nobody = verdict.all_qualifier is Qualifier.FAIL or value.endswith("-all")
    is_for_nobody = not has_senders(value) and (verdict.named or not says_nobody)
    is_for_everybody = verdict.reach.is_open and any(
        term.lstrip("+").lower() != "all" for term in verdict.wide_terms
    )
    if is_for_nobody or is_for_everybody:
        return None
    return RecordToPublish(verdict.domain, "TXT", value)


def _find_wide_terms(verdict: SpfVerdict) -> tuple[str, ...]:
    """Return the terms that permit too many addresses, or the widest term."""
    if verdict.tree is None or not (verdict.reach.is_open or verdict.reach.is_wide):
        return ()
    reached = [(step.term, count_addresses(step.permitted)) for step in verdict.tree.steps]
    open_ones = [term for term, reach in reached if reach.is_open]
    wide_ones = [term for term, reach in reached if reach.is_wide]
    most = max(max(reach.ipv4, reach.ipv6 / 2**96) for _, reach in reached)
    widest = [term for term, reach in reached if max(reach.ipv4, reach.ipv6 / 2**96) == most]
    return tuple((open_ones if verdict.reach.is_open else []) or wide_ones or widest)


def _explain_absence(
    domain: str, near_misses: Sequence[str], answer: DnsAnswer, answers: Answers
) -> SpfVerdict:
    """Return the verdict without a record, with a finding if one was published elsewhere."""
    if near_misses:
        meanings = _find_meanings(answer, near_misses)
        repaired = compose_record(meanings)
        named = find_named_senders((), meanings, {})
        is_useful = repaired and (has_senders(repaired) or repaired.endswith("-all"))
        proposed = RecordToPublish(domain, "TXT", repaired) if is_useful else None
        return SpfVerdict(
            domain,
            Presence.ABSENT,
            findings=(_describe_unreadable(domain, near_misses[0], proposed),),
            broken_texts=tuple(near_misses),
            named=named,
            repaired=repaired,
        )
    www = f"www.{domain}"
    # A record without senders protects the name of the website, and is right there.
    elsewhere = find_elsewhere(
        (f"{domain}.{domain}", f"spf.{domain}"), is_spf_record, answers
    ) or find_elsewhere((www,), lambda text: is_spf_record(text) and has_senders(text), answers)
    if elsewhere is not None:
        place, text = elsewhere
        finding = make_finding(
            "spf.misplaced",
            proposed=RecordToPublish(domain, "TXT", text),
            place=place,
            domain=domain,
        )
        return SpfVerdict(domain, Presence.ABSENT, findings=(finding,))
    sender = _choose_own_term(domain, answers)
    finding = make_finding(
        "spf.absent",
        case="sender" if sender else "",
        proposed=RecordToPublish(domain, "TXT", propose_new_record(sender)) if sender else None,
        domain=domain,
    )
    return SpfVerdict(domain, Presence.ABSENT, findings=(finding,))
