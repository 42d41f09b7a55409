"""The words for how SPF came to its result for a mail."""

from collections.abc import Callable

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.spf.pyspf_query import MAX_RECORD, MAX_TERMS, MailQuery
from mailcheck.checks.spf.verdicts import MAX_LOOKUPS, MAX_MX_HOSTS, MAX_VOIDS

MAX_SHOWN = 80  # characters of a term that are repeated

# What pyspf says -> what it means; the first that the message begins with.
_PROBLEMS: tuple[tuple[str, str], ...] = (
    ("Too many DNS lookups", f"needs more than the {MAX_LOOKUPS} DNS lookups that are allowed"),
    (
        "Void lookup limit",
        f"leads to more than {MAX_VOIDS} names that do not exist or have no address",
    ),
    ("Too many MX hosts", f"leads to more than {MAX_MX_HOSTS} mail hosts in one mx term"),
    (
        "Record too long",
        f"has more than {MAX_RECORD} characters or {MAX_TERMS} terms, more than can be read",
    ),
    ("Two or more type TXT", "stands beside another SPF record; there may be one only"),
    ("Non-ascii", "has letters that are not ASCII"),
    ("No valid SPF record for included", "includes a name that has no SPF record"),
    ("redirect domain has no SPF", "is redirected to a name that has no SPF record"),
    ("include has trivial recursion", "includes itself"),
    ("include mechanism missing", "includes no domain"),
    ("Unknown mechanism", "has a term that SPF does not know"),
    ("Unknown qualifier", "has a term that begins with a sign that SPF does not know"),
    ("redirect= MUST", "has more than one redirect"),
    ("exp= MUST", "has more than one exp"),
    ("Use the ip4 mechanism", "has an address where a name belongs (ip4 takes addresses)"),
    ("Missing IP4", "has an address without ip4: in front"),
    ("Invalid IP", "has an address or a network length that is none"),
    ("Dual CIDR", "has a network length where none may stand"),
    ("CIDR not allowed", "has a network length where none may stand"),
    ("Do not separate", "has commas between its terms"),
    ("invalid-macro-char", "has a macro that SPF does not know"),
    ("domain-spec", ""),
)
_TELLING_TERM = ("Unknown", "Invalid", "Use", "Missing", "Dual", "CIDR", "Do not", "domain-spec")


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
    domain = shown(query.troubled_domain or query.o)
    message = str(getattr(query, "prob", ""))
    term = next(iter(query.mech), "") if query.mech else ""
    known = next((words for start, words in _PROBLEMS if message.startswith(start)), None)
    if not known:
        known = message.removeprefix("domain-spec ") if known == "" else "can't be read"
    told = f' ("{shown(str(term))}")' if term and message.startswith(_TELLING_TERM) else ""
    via = "" if domain == query.o else f", which the record of {shown(query.o)} leads to,"
    return f"The SPF record of {domain}{via} {known}{told}."
