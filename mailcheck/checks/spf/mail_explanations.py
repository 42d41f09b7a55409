"""The words for how SPF came to its result for a mail."""

from collections.abc import Callable

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.spf.pyspf_query import MailQuery

MAX_SHOWN = 80  # characters of a term that are repeated


def explain_result(query: MailQuery, result: AuthResult) -> str:
    """Say in a sentence how the result came about; which term matched or what is wrong."""
    explain: Callable[[MailQuery], str] = {
        AuthResult.NONE: _explain_none,
        AuthResult.TEMPERROR: _explain_silence,
        AuthResult.PERMERROR: _explain_error,
    }.get(result, _explain_match)
    return explain(query)


def shown(text: str) -> str:
    """Give what can be repeated of a text that somebody else wrote."""
    cut = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
    return "".join(letter if letter.isprintable() else "?" for letter in cut)


def _explain_none(query: MailQuery) -> str:
    return f"No SPF record stands at {shown(query.o)}."


def _explain_silence(query: MailQuery) -> str:
    if query.silent is None:
        return "DNS gave no answer in time."
    name, rdtype = query.silent
    return f"The name servers gave no answer about {shown(name)} ({rdtype})."


def _explain_match(query: MailQuery) -> str:
    if query.mechanism:
        return (
            f'"{shown(query.mechanism)}" in the SPF record of {shown(query.o)} matches {query.c}.'
        )
    return f"No term in the SPF record of {shown(query.o)} matches {query.c}."


def _explain_error(query: MailQuery) -> str:
    assert query.fault is not None, "every permerror is raised with what it is"
    where = f"SPF record of {shown(query.fault.domain)}"
    if query.fault.domain != query.o:
        where = f"{where}, which the record of {shown(query.o)} leads to,"
    problem = query.fault.problem
    if problem is not None:
        return f'"{shown(problem.term)}" in the {where} {problem.reason}.'
    return f"The {where} {query.fault.fault.value}."
