"""Evaluation of the SPF records of a domain, with findings and the record to publish."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

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

_NO_RECORD = (
    "No record is proposed here: it is not certain what was intended, and a sender could be left"
    " out."
)

_BROKEN = "so receivers return permerror and no mail of {domain} passes SPF"


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
    which = "also has a TXT record" if is_beside else "has a TXT record"
    fix = "Replace that TXT record with one that begins with v=spf1 and one space."
    if is_beside:
        fix = "Publish one SPF record that names the senders of both, and delete the other one."
    return make_finding(
        "spf.unreadable",
        fix=fix if proposed is not None else f"{fix} {_NO_RECORD}",
        proposed=proposed,
        severity=Severity.WARNING if is_beside else Severity.ERROR,
        domain=domain,
        which=which,
        text=text[:40],
    )


def _check_limits(verdict: SpfVerdict, proposed: RecordToPublish | None) -> Iterator[Finding]:
    broken = _BROKEN.format(domain=verdict.domain)
    if verdict.lookup_count > MAX_LOOKUPS:
        count = f"{'at least ' if verdict.is_truncated else ''}{verdict.lookup_count}"
        yield make_finding(
            "spf.too-many-lookups",
            proposed=proposed,
            count=count,
            max_lookups=MAX_LOOKUPS,
            broken=broken,
        )
    if verdict.void_count > MAX_VOIDS:
        terms = min((verdict.void_terms_for(version) for version in IP_VERSIONS), key=len)
        yield make_finding(
            "spf.too-many-voids",
            proposed=proposed,
            count=len(terms),
            quoted_terms=_quoted(terms),
            max_voids=MAX_VOIDS,
            broken=broken,
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
    if behind:
        yield make_finding(
            "spf.voids-before-senders",
            proposed=reordered,
            client=client,
            max_voids=MAX_VOIDS,
            voids=_quoted(voids),
            behind=_quoted(behind),
        )
    else:
        yield make_finding(
            "spf.voids-for-some", client=client, max_voids=MAX_VOIDS, voids=_quoted(voids)
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
    place = "the SPF record" if is_own else f"the SPF record of {node.domain} ({node.term})"
    if top is not None:
        faults = {
            NodeProblem.ABSENT: ("spf.include-absent", "which has no SPF record"),
            NodeProblem.LOOP: ("spf.include-loop", "which leads back to itself"),
            NodeProblem.SEVERAL: ("spf.include-several", "which has more than one SPF record"),
        }
        if node.problem in faults:
            finding_id, fault = faults[node.problem]
            yield make_finding(
                finding_id,
                f'"{node.term}" leads to {node.domain}, {fault}, {_BROKEN.format(domain=domain)}.',
                _advise_include(node)
                if node is top
                else f'Ask the owner of the record with "{node.term}" to fix it{_until_then(top)}.',
                proposed,
            )
    if node.unanswered_names:
        yield undetermined("spf.undetermined", node.unanswered_names)
    for problem in node.record.problems if node.record else ():
        if is_own or problem.is_error:
            yield _describe_problem(problem, place, domain, proposed, useless, top=top)
    absent_terms = {c.term for c in node.children if c.problem is NodeProblem.ABSENT}
    for term in (void for void in node.voids if void not in absent_terms):
        if term in unborn:
            yield make_finding(
                "spf.void",
                f'"{term}" in {place} leads to no mail host with an address. It permits no host'
                " and counts against a limit of two.",
                f"Mend the MX records of {domain} and the addresses of its mail hosts first. Keep"
                f' "{term}", which permits them then. Remove it only if {domain} receives no mail.',
            )
            continue
        yield make_finding(
            "spf.void",
            f'"{term}" in {place} leads to a name that does not exist. It permits no host and'
            " counts against a limit of two.",
            _ask_owner(node, top, domain)
            if top is not None
            else f'Remove "{term}" from the SPF record.'
            if is_plain(term)
            else _advise_correction(term),
            proposed if is_own else None,
        )
    for term in node.oversized_mx:
        yield make_finding(
            "spf.too-many-mx",
            fix=None if top is None else _ask_owner(node, top, domain),
            proposed=None if top is None else proposed,
            term=term,
            place=place,
            consequence=_BROKEN.format(domain=domain),
        )


def _ask_owner(node: SpfNode, top: SpfNode, domain: str) -> str:
    """Return the advice for a record that the record of the domain leads to."""
    if is_within(node.domain, domain):
        return f"Fix the record at {node.domain}."
    return f"Ask the owner of {node.domain} to fix the record there{_until_then(top)}."


def _until_then(top: SpfNode) -> str:
    """Return the advice about a term that leads to a faulty record.

    It is empty for a redirect, without which fewer hosts would pass.
    """
    if top.term.startswith(REDIRECT):
        return ""
    return f'; until then remove "{top.term}" from your own record if you do not need it'


def _advise_include(node: SpfNode) -> str:
    """Return the advice for a term of the domain's own record that leads to no record."""
    meant = find_meaning((node.term,), frozenset((node.term,)))
    if meant.words and not meant.unclear and meant.words != (node.term,):
        return f'Write "{" ".join(meant.words)}".'
    if not is_plain(node.term):
        return _advise_correction(node.term)
    return f'Remove "{node.term}", or have an SPF record published at {node.domain}.'


def _advise_correction(term: str) -> str:
    """Return the advice for a term with an invalid host name; it may stand for a sender."""
    return f'Correct "{term}": only one domain name may follow the colon.'


def _describe_problem(
    problem: TermProblem,
    place: str,
    domain: str,
    proposed: RecordToPublish | None,
    useless: frozenset[str],
    top: SpfNode | None,
) -> Finding:
    meant = find_meaning((problem.term,), useless)
    fix = "Remove or correct it."
    if meant.words not in ((), (problem.term,)):
        fix = f'Write "{" ".join(meant.words)}".'
    elif problem.term.lower().startswith(REDIRECT) and problem.reason.startswith(NEVER_READ):
        fix = _advise_ignored_redirect(problem, proposed)
    elif problem.reason.startswith(NEVER_READ):
        fix = "Put it before that term, or remove it."
    if meant.unclear and proposed is not None:
        fix = "Remove the spaces inside terms: a term contains no space."
    elif meant.unclear:
        fix = (
            "Correct it: write a: before a mail server, ip4: or ip6: before an address, and"
            f" include: before a service. {_NO_RECORD}"
        )
    if top is not None:
        fix = f"Ask the owner of that record to fix it{_until_then(top)}."
    if problem.is_error:
        consequence = _BROKEN.format(domain=domain)
        return make_finding(
            "spf.syntax",
            fix=fix,
            proposed=proposed,
            term=problem.term,
            place=place,
            reason=problem.reason,
            consequence=consequence,
        )
    return make_finding(
        "spf.ignored-term",
        fix=fix,
        proposed=proposed,
        term=problem.term,
        place=place,
        reason=problem.reason,
    )


def _advise_ignored_redirect(problem: TermProblem, proposed: RecordToPublish | None) -> str:
    """Return the advice for a redirect beside an ``all``, in the words of the proposed record."""
    included = INCLUDE + problem.term[len(REDIRECT) :]
    if proposed is None or included not in proposed.value.split(" "):
        return f'Remove "{problem.term}".'
    return f'Write "{included}" before the all, or remove "{problem.term}".'


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
    fix = None if is_own else _advise_target(verdict.domain, last.domain)
    record = proposed if is_own else None
    if verdict.all_qualifier is None and verdict.is_complete and not verdict.is_truncated:
        yield make_finding("spf.no-end", fix=fix, proposed=record, where=where)
    elif verdict.all_qualifier is Qualifier.NEUTRAL:
        yield make_finding("spf.neutral", fix=fix, proposed=record, where=where)


def _find_last_record(tree: SpfNode | None) -> SpfNode | None:
    """Return the record that ends the evaluation, through redirects (RFC 7208 6.1).

    Return `None` if a redirect leads to a record that is not known here, or has a macro.
    """
    while tree is not None and tree.redirected is not None:
        tree = tree.redirected
        if "%" in tree.term:
            return None
    return None if tree is None or (tree.record is None and tree.term) else tree


def _advise_target(domain: str, target: str) -> str:
    """Return the advice for the end of a record that another one redirects to."""
    whose = "End" if is_within(target, domain) else f"Ask the owner of {target} to end"
    return (
        f"{whose} the SPF record at {target} with ~all. Do not add it to the record of {domain}:"
        " receivers ignore a redirect beside an all (RFC 7208 6.1)."
    )


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
            fix="Replace all SPF records with a single one that has the terms of all."
            + ("" if proposed is not None else f" {_NO_RECORD}"),
            proposed=proposed,
            domain=domain,
            count=len(verdict.records),
            consequence=_BROKEN.format(domain=domain),
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
    fix = "Publish an SPF record that names every server and service that sends for the domain"
    finding = make_finding(
        "spf.absent",
        fix=f"{fix}." if sender else f'{fix}, or "v=spf1 -all" if none does.',
        proposed=RecordToPublish(domain, "TXT", propose_new_record(sender)) if sender else None,
        domain=domain,
    )
    return SpfVerdict(domain, Presence.ABSENT, findings=(finding,))
