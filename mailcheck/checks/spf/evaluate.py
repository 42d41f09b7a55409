"""Judging the SPF of a domain: its records, what is said about them, and what to publish."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from mailcheck.checks.dns_answers import Answers, Presence, look_up, txt_values
from mailcheck.checks.findings import Finding, RecordToPublish, Severity, undetermined
from mailcheck.checks.spf.record import (
    VERSION,
    MechanismName,
    Qualifier,
    SpfRecord,
    TermProblem,
    is_spf_record,
    looks_like_spf,
    parse_spf_record,
)
from mailcheck.checks.spf.tree import (
    MAX_LOOKUPS,
    MAX_VOIDS,
    REDIRECT,
    NodeProblem,
    SpfNode,
    SpfVerdict,
    TreeWalk,
    permits_everyone,
)

LONG_RECORD = 450  # octets; beyond, the answer may not fit a datagram, RFC 7208 3.4

_BROKEN = "so receivers give up (permerror) and no mail of {domain} passes SPF"


def _say_absent(domain: str, proposed: str) -> Finding:
    """Say that there is no record."""
    return Finding(
        "spf.absent",
        Severity.ERROR,
        f"{domain} does not say which servers may send its mail (no SPF record): Google, Yahoo"
        " and Microsoft refuse or distrust such mail.",
        "Publish an SPF record that names every server and service that sends for the domain.",
        RecordToPublish(domain, "TXT", proposed),
    )


def _say_unreadable(domain: str, text: str) -> Finding:
    """Say that a record was meant as SPF but isn't."""
    words = text.replace('"', " ").replace(";", " ").split()
    rest = [word for word in words if not word.lower().startswith(("v", "spf1", "="))]
    return Finding(
        "spf.unreadable",
        Severity.ERROR,
        f'{domain} has a TXT record that looks like SPF but does not begin exactly with "v=spf1 "'
        f' ("{text[:40]}"), so receivers ignore it.',
        "Replace that TXT record by one that begins with v=spf1 and one space.",
        RecordToPublish(domain, "TXT", " ".join([VERSION, *rest])),
    )


def _say_misplaced(domain: str, elsewhere: str, text: str) -> Finding:
    """Say that the record stands at another name."""
    return Finding(
        "spf.misplaced",
        Severity.ERROR,
        f"The SPF record stands at {elsewhere}, where no receiver looks, instead of {domain}.",
        f"Move the SPF record to {domain}.",
        RecordToPublish(domain, "TXT", text),
    )


def _describe(verdict: SpfVerdict, proposed: RecordToPublish) -> Iterator[Finding]:
    """Give everything there is to say about the one record, worst things first."""
    assert verdict.tree is not None
    yield from _limits(verdict, proposed)
    yield from _node(verdict.tree, verdict.domain, proposed)
    for top in verdict.tree.children:
        for node in top.walk():
            yield from _node(node, verdict.domain, proposed, top)
    yield from _ending(verdict, proposed)
    yield from _habits(verdict, proposed)


def _say_several(domain: str, records: Sequence[str], proposed: RecordToPublish) -> Finding:
    """Say that there is more than one record, so that nobody reads any of them."""
    return Finding(
        "spf.several",
        Severity.ERROR,
        f"{domain} has {len(records)} SPF records but may have one only,"
        f" {_BROKEN.format(domain=domain)}.",
        "Replace all SPF records by one that holds what each of them says.",
        proposed,
    )


def _limits(verdict: SpfVerdict, proposed: RecordToPublish) -> Iterator[Finding]:
    broken = _BROKEN.format(domain=verdict.domain)
    if verdict.lookup_count > MAX_LOOKUPS:
        count = f"{'at least ' if verdict.is_truncated else ''}{verdict.lookup_count}"
        yield Finding(
            "spf.too-many-lookups",
            Severity.ERROR,
            f"The SPF record needs {count} DNS lookups and {MAX_LOOKUPS} are allowed, {broken}.",
            "Remove the services that no longer send for the domain, move some to a subdomain of"
            " their own, or replace a, mx and include by the ip4 and ip6 networks behind them.",
        )
    if verdict.void_count > MAX_VOIDS:
        yield Finding(
            "spf.too-many-voids",
            Severity.ERROR,
            f"{verdict.void_count} names in the SPF record do not exist and {MAX_VOIDS} are"
            f" allowed, {broken}.",
            "Remove the terms of the SPF record whose names do not exist.",
            proposed,
        )


def _node(
    node: SpfNode, domain: str, proposed: RecordToPublish, top: SpfNode | None = None
) -> Iterator[Finding]:
    """Describe one record of the tree; ``top`` is the term of the own record that leads to it."""
    is_own = top is None
    place = "the SPF record" if is_own else f"the SPF record of {node.domain} ({node.term})"
    if top is not None:
        yield from _branch(node, domain, proposed, top)
    if node.silent_names:
        yield undetermined("spf.undetermined", node.silent_names)
    for problem in node.record.problems if node.record else ():
        if is_own or problem.is_error:
            yield _term(problem, place, domain, proposed, top)
    absent_terms = {c.term for c in node.children if c.problem is NodeProblem.ABSENT}
    for term in (void for void in node.voids if void not in absent_terms):
        yield Finding(
            "spf.void",
            Severity.WARNING,
            f'"{term}" in {place} leads to a name that does not exist; it lets nobody send and'
            " counts against a limit of two.",
            f'Remove "{term}" from the SPF record.' if top is None else _ask_owner(node, top),
            proposed if is_own else None,
        )
    for term in node.crowded:
        yield Finding(
            "spf.too-many-mx",
            Severity.ERROR,
            f'"{term}" in {place} leads to more than ten mail hosts,'
            f" {_BROKEN.format(domain=domain)}.",
            "Replace it by the ip4 and ip6 networks of these hosts."
            if top is None
            else _ask_owner(node, top),
            None if top is None else proposed,
        )


def _ask_owner(node: SpfNode, top: SpfNode) -> str:
    """Say who can mend a record of somebody else, and how to do without it."""
    return (
        f"Ask the owner of {node.domain} to mend the record there; until then remove"
        f' "{top.term}" from your own if nothing of yours needs it.'
    )


def _branch(
    node: SpfNode, domain: str, proposed: RecordToPublish, top: SpfNode
) -> Iterator[Finding]:
    broken = _BROKEN.format(domain=domain)
    meanings = {
        NodeProblem.ABSENT: (
            "spf.include-absent",
            f"{node.domain}, which has no SPF record, {broken}.",
        ),
        NodeProblem.LOOP: (
            "spf.include-loop",
            f"{node.domain}, which leads back to itself, {broken}.",
        ),
        NodeProblem.SEVERAL: (
            "spf.include-several",
            f"{node.domain}, which has more than one SPF record, {broken}.",
        ),
    }
    if node.problem in meanings:
        finding_id, meaning = meanings[node.problem]
        yield Finding(
            finding_id,
            Severity.ERROR,
            f'"{node.term}" leads to {meaning}',
            f'Remove "{node.term}", or have a record published at {node.domain}.'
            if node is top
            else f'Ask the owner of the record with "{node.term}" to mend it; until then remove'
            f' "{top.term}" from your own if nothing of yours needs it.',
            proposed,
        )


def _term(
    problem: TermProblem, place: str, domain: str, proposed: RecordToPublish, top: SpfNode | None
) -> Finding:
    fix = f'Write "{problem.replacement}".' if problem.replacement else "Remove or correct it."
    if top is not None:
        fix = (
            "Ask the owner of that record to mend it; until then remove"
            f' "{top.term}" from your own if nothing of yours needs it.'
        )
    if problem.is_error:
        consequence = _BROKEN.format(domain=domain)
        meaning = f'"{problem.term}" in {place} {problem.reason}, {consequence}.'
        return Finding("spf.syntax", Severity.ERROR, meaning, fix, proposed)
    meaning = (
        f'"{problem.term}" in {place} {problem.reason}; the record may not mean what was intended.'
    )
    return Finding("spf.ignored-term", Severity.WARNING, meaning, fix, proposed)


def _ending(verdict: SpfVerdict, proposed: RecordToPublish) -> Iterator[Finding]:
    if verdict.open_term:
        yield Finding(
            "spf.open",
            Severity.ERROR,
            f'"{verdict.open_term}" in the SPF record lets everybody in the world send mail as'
            f" {verdict.domain}.",
            f'Remove "{verdict.open_term}"; end the record with ~all or -all, behind the servers'
            " that really send.",
            proposed,
        )
    elif verdict.all_qualifier is None and verdict.is_complete and not verdict.is_truncated:
        yield Finding(
            "spf.no-end",
            Severity.WARNING,
            "The SPF record does not say what to do with mail from other servers, so forged mail"
            " is not marked.",
            "End the SPF record with ~all, or -all once you are sure that it names every sender.",
            proposed,
        )
    elif verdict.all_qualifier is Qualifier.NEUTRAL:
        yield Finding(
            "spf.neutral",
            Severity.WARNING,
            'The SPF record ends in "?all", which says nothing about mail from other servers.',
            "End the SPF record with ~all, or -all once you are sure that it names every sender.",
            proposed,
        )


def _habits(verdict: SpfVerdict, proposed: RecordToPublish) -> Iterator[Finding]:
    assert verdict.tree is not None
    record = verdict.tree.record
    if record is not None and any(m.name is MechanismName.PTR for m in record.mechanisms):
        yield Finding(
            "spf.ptr",
            Severity.WARNING,
            'The SPF record uses "ptr", which is slow and which many receivers no longer follow'
            " (RFC 7208 5.5).",
            "Name the sending servers with a, mx, ip4 or ip6 instead.",
            proposed,
        )
    if record is not None and len(record.text) > LONG_RECORD:
        yield Finding(
            "spf.long",
            Severity.NOTE,
            f"The SPF record has {len(record.text)} characters; above {LONG_RECORD} some"
            " receivers do not get the whole answer.",
            "Move a part of it to another name and include that.",
        )
    if any(node.problem is NodeProblem.MACRO for node in verdict.tree.walk()):
        yield Finding(
            "spf.macro",
            Severity.NOTE,
            "A part of the SPF record depends on each single mail (macros), so it could not be"
            " looked at here.",
            "Nothing to do; a test mail shows what receivers make of it.",
        )


ASK_WHO_FAILS = "~all"
"""What is put in for a missing or open ``all``: marks others without losing forgotten senders."""


def propose_new_record() -> str:
    """Give a first record: the hosts that receive mail also send it."""
    return f"{VERSION} mx {ASK_WHO_FAILS}"


def propose_record(
    texts: Sequence[str], trees: Sequence[SpfNode], *, without_broken: bool = False
) -> str:
    """Merge several records and mend what is wrong.

    Terms that find nothing, stand twice, can't be read or use ``ptr`` are
    dropped, misspelt ones written as they were meant, and what becomes of
    everybody else is said at the end.

    :param without_broken: drop those too that lead to a record of somebody else that is broken.
    """
    dropped = {term for tree in trees for term in _useless_terms(tree)}
    if without_broken:
        dropped |= {child.term for tree in trees for child in tree.children if _is_doomed(child)}
    terms: list[str] = []
    ends: list[SpfRecord] = []
    for text in texts:
        record = parse_spf_record(text)
        ends.append(record)
        own = _mended_terms(record)
        if record.redirect and len(texts) > 1 and REDIRECT + record.redirect not in dropped:
            own.append(f"include:{record.redirect}")
        terms += [term for term in dict.fromkeys(own) if term not in (*terms, *dropped)]
    redirect = next((r.redirect for r in ends if r.redirect), "")
    if redirect and REDIRECT + redirect not in dropped and len(texts) == 1:
        return " ".join([VERSION, *terms, REDIRECT + redirect])
    return " ".join([VERSION, *terms, _choose_all(ends, trees)])


def _mended_terms(record: SpfRecord) -> list[str]:
    replacements = {problem.term: problem.replacement for problem in record.problems}
    kept = {mechanism.text for mechanism in record.mechanisms}
    terms = []
    for word in record.text[len(VERSION) :].split(" "):
        is_explanation = word.lower().startswith("exp=") and word not in replacements
        is_wanted = word in kept or is_explanation
        term = word if is_wanted else replacements.get(word, "")
        if term and _name_of(term) not in ("all", "ptr"):
            terms.append(term)
    return terms


def _name_of(term: str) -> str:
    return term.lstrip("+-~?").lower().partition(":")[0]


def _choose_all(records: Sequence[SpfRecord], trees: Sequence[SpfNode]) -> str:
    meant = [record.all_qualifier for record in records]
    meant += [tree.all_qualifier for tree in trees]
    meant += [
        Qualifier(problem.replacement[0])
        for record in records
        for problem in record.problems
        if problem.replacement[1:].lower() == "all"
    ]
    # Of two records the stricter one decides: together they know the senders of both.
    return "-all" if Qualifier.FAIL in meant else ASK_WHO_FAILS


def _is_doomed(node: SpfNode) -> bool:
    """Tell whether a record that a term leads to, or one behind it, is permerror."""
    return any(
        one.crowded or (one.problem is not None and one.problem.is_error) for one in node.walk()
    )


def _useless_terms(tree: SpfNode) -> list[str]:
    pointless = (NodeProblem.ABSENT, NodeProblem.LOOP)
    return [*tree.voids, *(child.term for child in tree.children if child.problem in pointless)]


def evaluate_spf(domain: str, answers: Answers) -> SpfVerdict:
    """Judge who may send for ``domain`` (RFC 7208), with lookup and void counts."""
    answer = look_up(answers, domain, "TXT")
    if not answer.status.is_determined:
        return _without_record(
            domain, Presence.UNDETERMINED, undetermined("spf.undetermined", [domain])
        )
    texts = txt_values(answer)
    # In one order, whichever DNS has given: of several the first must not decide.
    records = tuple(sorted(text for text in texts if is_spf_record(text)))
    if not records:
        absence = _without_record(domain, Presence.ABSENT, _explain_absence(domain, texts, answers))
        return replace(absence, broken_texts=tuple(filter(looks_like_spf, texts)))
    walk = TreeWalk(answers)
    tree, *others = [walk.read_record(domain, text, is_one_of=len(records)) for text in records]
    verdict = SpfVerdict(
        domain=domain,
        presence=Presence.FOUND,
        records=records,
        tree=tree,
        lookup_count=sum(node.lookups for node in tree.walk()),
        void_count=sum(len(node.voids) for node in tree.walk()),
        is_truncated=walk.is_truncated,
        findings=(),
        open_term="" if others else permits_everyone(tree),
    )
    trees = (tree, *others)
    proposed = RecordToPublish(domain, "TXT", propose_record(records, trees))
    value = propose_record(records, trees, without_broken=True)
    spare = () if value == proposed.value else (RecordToPublish(domain, "TXT", value),)
    several = (_say_several(domain, records, proposed),) if others else ()
    findings = several or tuple(_describe(verdict, proposed))
    return replace(verdict, findings=tuple(_with_spare(findings, proposed, spare)))


def _with_spare(
    findings: Iterable[Finding], proposed: RecordToPublish, spare: tuple[RecordToPublish, ...]
) -> Iterator[Finding]:
    """Let a finding whose record may not be enough have the one without broken includes too."""
    for finding in findings:
        has_record = finding.proposed is proposed
        yield replace(finding, alternatives=spare) if has_record and spare else finding


def _without_record(domain: str, presence: Presence, finding: Finding) -> SpfVerdict:
    return SpfVerdict(domain, presence, (), None, 0, 0, False, (finding,))


def _explain_absence(domain: str, texts: tuple[str, ...], answers: Answers) -> Finding:
    """Say that there is no record, and where one was seen that was meant to be it."""
    near_misses = [text for text in texts if looks_like_spf(text)]
    if near_misses:
        return _say_unreadable(domain, near_misses[0])
    # A zone editor that appends the zone's name turns "example.com" into this.
    for elsewhere in (f"{domain}.{domain}", f"spf.{domain}"):
        found = [t for t in txt_values(look_up(answers, elsewhere, "TXT")) if is_spf_record(t)]
        if found:
            return _say_misplaced(domain, elsewhere, found[0])
    return _say_absent(domain, propose_new_record())
