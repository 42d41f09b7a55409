"""The SPF record to publish: the intended meaning of the published texts.

Each sender that a text names in any reading is in the record, or is left out with a reason
(`NamedSender`). If the meaning of a word is not certain, no record is proposed.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from mailcheck.checks.proofs import NamedSender
from mailcheck.checks.spf.record import (
    Mechanism,
    MechanismName,
    Qualifier,
    parse_spf_record,
    parse_term,
)
from mailcheck.checks.spf.repair import (
    Meaning,
    find_meaning,
)
from mailcheck.checks.spf.tree import (
    REDIRECT,
    NodeProblem,
    SpfNode,
)
from mailcheck.checks.spf_texts import VERSION
from mailcheck.core.network_addresses import IpAddress

ASK_WHO_FAILS = "~all"
"""Replaces a missing or open ``all``. It marks other hosts, and a forgotten sender is not
rejected."""

INCLUDE = "include:"


def propose_new_record(sender: str = "mx") -> str:
    """Return a first record: the hosts that receive mail also send it."""
    return " ".join(filter(None, (VERSION, sender, ASK_WHO_FAILS)))


def mend_text(text: str) -> str:
    """Return the intended record, from its text alone; empty if the intention is not certain."""
    return compose([find_meaning((text,))])


def compose(
    meanings: Sequence[Meaning],
    trees: Iterable[SpfNode] = (),
    left_out: Mapping[str, str] | None = None,
    *,
    addresses_first: bool = False,
) -> str:
    """Return one record with the meaning of all; empty if that is not certain.

    :param trees: what DNS has for the records as receivers read them.
    :param left_out: terms that are not wanted, with the reasons.
    :param addresses_first: put ``ip4`` and ``ip6`` before terms that ask DNS.
    """
    unwanted = left_out or {}
    if any(one.unclear for one in meanings) or (len(meanings) > 1 and _has_exceptions(meanings)):
        return ""
    alone = len(meanings) == 1 and not meanings[0].ends
    redirects = [REDIRECT + one.redirect for one in meanings if one.redirect]
    redirect = next((one for one in redirects if alone and one not in unwanted), "")
    by_key: dict[Hashable, str] = {}
    for term in (term for one in meanings for term in _terms_of(one, is_alone=alone)):
        if term not in unwanted and REDIRECT + term.removeprefix(INCLUDE) not in unwanted:
            by_key.setdefault(_key_with_qualifier(term), term)
    terms = list(by_key.values())
    if addresses_first:
        if _has_exceptions(meanings):
            return ""
        terms.sort(key=lambda term: not _is_network(term))
    modifiers = dict.fromkeys(text for one in meanings for text in one.modifiers)
    exps = [text for text in modifiers if text.lower().startswith("exp=")]
    if len(exps) > 1:
        return ""
    return " ".join([VERSION, *terms, *modifiers, redirect or _choose_all(meanings, trees)])


def _terms_of(meaning: Meaning, *, is_alone: bool) -> Iterator[str]:
    yield from meaning.terms
    if meaning.redirect and not is_alone:
        yield INCLUDE + meaning.redirect


def _has_exceptions(meanings: Iterable[Meaning]) -> bool:
    """Return whether the order of terms has a meaning: some are there to keep hosts out."""
    return any(term[0] in "-~?" for one in meanings for term in one.terms)


def _is_network(term: str) -> bool:
    parsed = parse_term(term)
    return isinstance(parsed, Mechanism) and parsed.network is not None


def _choose_all(meanings: Sequence[Meaning], trees: Iterable[SpfNode]) -> str:
    """Return the end: of several records the strictest, together they know the senders of all."""
    chosen: set[Qualifier | None] = {_end_of(one) for one in meanings}
    chosen |= {tree.all_qualifier for tree in trees if tree.redirected is not None}
    return "-all" if Qualifier.FAIL in chosen else ASK_WHO_FAILS


def _end_of(meaning: Meaning) -> Qualifier:
    first = meaning.ends[0] if meaning.ends else Qualifier.SOFTFAIL
    return first if first is Qualifier.FAIL else Qualifier.SOFTFAIL


def has_senders(text: str) -> bool:
    """Return whether a record lets any host send."""
    record = parse_spf_record(text)
    return bool(record.redirect) or any(
        one.name is not MechanismName.ALL and one.qualifier is Qualifier.PASS
        for one in record.mechanisms
    )


def find_left_out(trees: Iterable[SpfNode]) -> dict[str, str]:
    """Return the terms that let no host pass and only cost lookups, each with the reason."""
    found: dict[str, str] = {}
    for tree in trees:
        found.update(dict.fromkeys(tree.voids, "leads to a name that does not exist"))
        for child in tree.children:
            if child.problem is NodeProblem.LOOP:
                found[child.term] = "leads back to the record itself"
            elif child.problem is NodeProblem.ABSENT and not child.has_near_miss:
                found[child.term] = f"leads to {child.domain}, which has no SPF record"
            elif _is_doomed(child) and child.lets_nobody_send:
                found[child.term] = f"leads to {child.domain}, whose record lets no host send"
            else:
                found.pop(child.term, None)
    return found


def _is_doomed(node: SpfNode) -> bool:
    """Return whether a record that a term leads to, or one behind it, is permerror."""
    return any(
        one.crowded or (one.problem is not None and one.problem.is_error) for one in node.walk()
    )


def find_named(
    texts: Iterable[str], meanings: Sequence[Meaning], left_out: Mapping[str, str]
) -> tuple[NamedSender, ...]:
    """List the senders that the texts name: as receivers read them, and as they were meant."""
    meant = [term for meaning in meanings for term in _terms_of(meaning, is_alone=False)]
    read = [mechanism.text for text in texts for mechanism in parse_spf_record(text).mechanisms]
    read = [term for term in read if read_sender(term) is not None]
    reasons = dict(left_out)
    for term, words in find_glued(read, meanings, left_out).items():
        reasons[term] = f'nobody passes by it; "{words}" is in its place'
    of_senders = {read_sender(term): reason for term, reason in reasons.items()}
    senders = dict.fromkeys(read_sender(term) for term in (*read, *meant))
    return tuple(replace(one, reason=of_senders.get(one, "")) for one in senders if one is not None)


def find_glued(
    read: Iterable[str], meanings: Iterable[Meaning], left_out: Collection[str]
) -> dict[str, str]:
    """Return the terms that receivers read but that were meant otherwise, and what to write."""
    meant = {term for meaning in meanings for term in meaning.terms}
    found = {}
    for term in read:
        if term not in meant and read_sender(term) is not None:
            meaning = find_meaning((term,), frozenset(left_out))
            if meaning.words and not meaning.unclear and meaning.words != (term,):
                found[term] = " ".join(meaning.words)
    return found


@lru_cache(maxsize=512)
def read_sender(term: str) -> NamedSender | None:
    """Return the sender that a term names, or `None` for a text that is not a term."""
    if term.startswith(REDIRECT):
        return read_sender(INCLUDE + term.removeprefix(REDIRECT))
    parsed = parse_term(term)
    if not isinstance(parsed, Mechanism) or parsed.name is MechanismName.ALL:
        return None
    key = f"{parsed.name.value}:{parsed.target}"
    return NamedSender(term, key, parsed.lengths, parsed.network)


def _key_with_qualifier(term: str) -> Hashable:
    qualifier = term[0] if term[0] in "-~?" else "+"
    sender = read_sender(term)
    assert sender is not None, "a meaning has terms only that name senders"
    return qualifier, sender.network or sender.key, sender.lengths


def add_term(text: str, added: str, *, is_kept_out: bool = False) -> str:
    """Add a term to a record that does not have it, before its end.

    :param is_kept_out: another term matches first: it goes to the front.
    """
    terms = text.split(" ")[1:]
    ends = [n for n, term in enumerate(terms) if _is_end(term)]
    place = 0 if is_kept_out else min(ends, default=len(terms))
    if added not in terms:
        terms.insert(place, added)
    return " ".join([VERSION, *terms])


def term_for(address: IpAddress) -> str:
    """Write the term that lets an address send."""
    return f"ip{address.version}:{address}"


def _is_end(term: str) -> bool:
    return term.lstrip("+-~?").lower() == "all" or term.lower().startswith((REDIRECT, "exp="))
