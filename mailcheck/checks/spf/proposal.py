"""The record to publish: what is there, with everything mended that can be mended for sure."""

from collections.abc import Sequence

from mailcheck.checks.spf.parse import VERSION, parse_spf_record
from mailcheck.checks.spf.terms import Qualifier, SpfRecord
from mailcheck.checks.spf.verdicts import NodeProblem, SpfNode

ASK_WHO_FAILS = "~all"
"""What is put in for a missing or open ``all``: marks others without losing forgotten senders."""


def propose_new_record() -> str:
    """Give a first record: the hosts that receive mail also send it."""
    return f"{VERSION} mx {ASK_WHO_FAILS}"


def propose_record(texts: Sequence[str], tree: SpfNode | None) -> str:
    """Merge several records and mend what is wrong.

    Terms that find nothing, stand twice, can't be read or use ``ptr`` are
    dropped, misspelt ones written as they were meant, and what becomes of
    everybody else is said at the end.
    """
    dropped = set(_useless_terms(tree))
    terms: list[str] = []
    ends: list[SpfRecord] = []
    for text in texts:
        record = parse_spf_record(text)
        ends.append(record)
        for term in _mended_terms(record):
            if term not in terms and term not in dropped:
                terms.append(term)
    redirect = next((r.redirect for r in ends if r.redirect), "")
    if redirect and f"redirect={redirect}" not in dropped and len(texts) == 1:
        return " ".join([VERSION, *terms, f"redirect={redirect}"])
    return " ".join([VERSION, *terms, _choose_all(ends)])


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


def _choose_all(records: Sequence[SpfRecord]) -> str:
    meant = [record.all_qualifier for record in records]
    meant += [
        Qualifier(problem.replacement[0])
        for record in records
        for problem in record.problems
        if problem.replacement[1:].lower() == "all"
    ]
    closing = [q for q in meant if q in (Qualifier.FAIL, Qualifier.SOFTFAIL)]
    # Of two records the gentler one decides: the stricter may not know all senders.
    if closing and all(qualifier is Qualifier.FAIL for qualifier in closing):
        return "-all"
    return ASK_WHO_FAILS


def _useless_terms(tree: SpfNode | None) -> list[str]:
    if tree is None:
        return []
    pointless = (NodeProblem.ABSENT, NodeProblem.LOOP)
    return [*tree.voids, *(child.term for child in tree.children if child.problem in pointless)]
