"""Reading an SPF record (RFC 7208 4.5, 4.6)."""

from collections.abc import Sequence
from functools import lru_cache

from mailcheck.checks.spf.mechanisms import MAX_SHOWN, parse_term
from mailcheck.checks.spf.terms import (
    Mechanism,
    MechanismName,
    Modifier,
    SpfRecord,
    TermProblem,
)

VERSION = "v=spf1"

MAX_PROBLEMS = 20  # the first ones say it all

MAX_RECORD = 8192
"""Characters of a record that are read: sixteen times what RFC 7208 3.4 advises."""

MAX_TERMS = 500
"""Terms of a record that are read: as many addresses as fit into the longest."""


def is_spf_record(text: str) -> bool:
    """Tell whether a TXT record is an SPF record: ``v=spf1``, then a space or the end."""
    return text[: len(VERSION)].lower() == VERSION and text[len(VERSION) :][:1] in ("", " ")


def looks_like_spf(text: str) -> bool:
    """Tell whether a TXT record was meant as an SPF record, though it isn't one."""
    start = "".join(text[:MAX_SHOWN].lower().split()).lstrip("\"'")
    return start.startswith(("v=spf", "v:spf", "spf1", "v-spf")) and not is_spf_record(text)


@lru_cache(maxsize=64)
def parse_spf_record(text: str) -> SpfRecord:
    """Read a record for which `is_spf_record` holds: the one grammar, of domains and of mails.

    Remembered, since a mail's records are read once for each round of questions.

    What stands behind ``all`` is no mechanism of the record but a problem,
    since receivers never come to it.
    """
    mechanisms: list[Mechanism] = []
    modifiers: dict[str, str] = {}
    problems: list[TermProblem] = []
    words = [word for word in text[len(VERSION) :].split(" ") if word]
    if len(text.rstrip(" ")) > MAX_RECORD or len(words) > MAX_TERMS:
        return SpfRecord(text, (), "", (_too_long(words),))
    for word in words:
        term = parse_term(word)
        if isinstance(term, Modifier) and term.name not in modifiers:
            modifiers[term.name] = term.value
        elif isinstance(term, Modifier) and term.name in ("redirect", "exp"):
            problems.append(TermProblem(word[:MAX_SHOWN], "stands twice"))
        elif isinstance(term, TermProblem):
            problems.append(term)
        elif isinstance(term, Mechanism):
            if mechanisms and mechanisms[-1].name is MechanismName.ALL:
                problems.append(_unread(word, mechanisms[-1]))
            else:
                mechanisms.append(term)
    redirect = modifiers.get("redirect", "")
    if redirect and mechanisms and mechanisms[-1].name is MechanismName.ALL:
        problems.append(_unread(f"redirect={redirect}", mechanisms[-1]))
        redirect = ""
    problems.sort(key=lambda problem: not problem.is_error)
    return SpfRecord(text, tuple(mechanisms), redirect, tuple(problems[:MAX_PROBLEMS]))


def _too_long(words: Sequence[str]) -> TermProblem:
    reason = (
        f"is the end of a record with more than {MAX_RECORD} characters or {MAX_TERMS} terms,"
        " more than can be read"
    )
    return TermProblem(words[-1][-MAX_SHOWN:], reason)


def _unread(word: str, all_mechanism: Mechanism) -> TermProblem:
    reason = f"is never read, because {all_mechanism.text!r} is for everybody"
    return TermProblem(word[:MAX_SHOWN], reason, is_error=False)
