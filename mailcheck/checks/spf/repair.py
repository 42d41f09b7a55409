"""Repair of SPF records: the intended meaning of a text, and the record to publish instead.

Terms that receivers can read stay unchanged. Other words are split and corrected: characters that
look like ASCII, terms without a space between them, misspelt names, addresses without ``ip4:``. A
word gets a meaning only if exactly one is possible. Any other word is `unclear
<Meaning.unclear>`; no record is proposed then, since it could leave out a sender.

The repaired record contains each sender that a text names in any reading, or there is a reason
for leaving it out (`NamedSender`).
"""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    ip_network,
    summarize_address_range,
)

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.checks.spf.record import (
    MAX_RECORD,
    MAX_SHOWN,
    MAX_TERMS,
    Mechanism,
    MechanismName,
    Modifier,
    NamedSender,
    Qualifier,
    TermProblem,
    guess_name,
    parse_spf_record,
    parse_term,
)
from mailcheck.checks.spf.tree import REDIRECT, NodeProblem, SpfNode
from mailcheck.checks.spf_texts import JOINT, VERSION, VERSION_AT_START, normalize
from mailcheck.core.network_addresses import IpAddress

_SEPARATORS = re.compile(r"[,;|](?![^{]*\})")
_STRAY = ";,.'\"`()[]<>:"


class Meaning(Struct, frozen=True):
    """The intended meaning of a text.

    ``terms`` are the mechanisms in their order, without ``all``; ``ends`` are the qualifiers of
    each ``all``; ``modifiers`` are those besides ``redirect``. ``unclear`` are the words that
    could have several meanings or none.
    """

    terms: tuple[str, ...] = ()
    ends: tuple[Qualifier, ...] = ()
    redirect: str = ""
    modifiers: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words to write instead of the text."""
        ends = tuple(f"{end.value}all" for end in self.ends)
        redirect = (f"redirect={self.redirect}",) if self.redirect else ()
        return (*self.terms, *self.modifiers, *redirect, *ends)


@lru_cache(maxsize=512)
def find_meaning(strings: tuple[str, ...], useless: frozenset[str] = frozenset()) -> Meaning:
    """Return the intended meaning of a record.

    :param strings: the strings of the TXT record; a space may be missing between two of them.
    :param useless: valid terms for which DNS has no answer: they may be two terms glued together.
    """
    text = "".join(strings)
    if len(text) > MAX_RECORD or text.count(" ") > MAX_TERMS:
        return Meaning(unclear=(text[-MAX_SHOWN:],))
    reading = _MeaningBuilder(useless, is_one_string=len(strings) == 1)
    for word in _split_words(normalize(JOINT.join(strings))):
        reading.take(word)
    return reading.finish()


_NAME_ALONE = re.compile(r"[+~?-]?(?:include|exists|redirect|ip[46])", re.IGNORECASE)


def _split_words(text: str) -> Iterator[str]:
    """Yield the words of a text without its version; rejoin terms split by stray spaces."""
    version = VERSION_AT_START.match(text)
    text = text[version.end() :] if version is not None else text
    text = re.sub(rf"(?<=[a-z0-9])[\s{JOINT}]*([:=])[ \t{JOINT}]*(?=\S)", r"\1", text, flags=re.I)
    text = re.sub(rf"\s*/[\s{JOINT}]*(?=[0-9])", "/", text)
    text = re.sub(r"([+~?-])\s+(?=all\b)", r"\1", text, flags=re.IGNORECASE)
    words = [word for word in text.split() if word.strip(JOINT)]
    while words:
        word = words.pop(0)
        if words and _NAME_ALONE.fullmatch(word) and _read_one(f"{word}:{words[0]}") is not None:
            word = f"{word}:{words.pop(0)}"
        yield word


class _MeaningBuilder:
    """Collects the meaning of the words of one text.

    ``is_one_string``: a joint is an invisible character, and not the end of a string.
    """

    def __init__(self, useless: Collection[str], *, is_one_string: bool) -> None:
        self._useless = useless
        self._is_one_string = is_one_string
        self._terms: list[str] = []
        self._ends: list[Qualifier] = []
        self._redirects: list[str] = []
        self._modifiers: list[str] = []
        self._unclear: list[str] = []

    def take(self, word: str) -> None:
        """Add the meaning of a word."""
        plain = word.replace(JOINT, "")
        if plain not in self._useless and is_plain(plain):
            if self._is_one_string and _could_be_several(word):
                # Receivers reject the character, so no receiver shows which of both was intended.
                self._unclear.append(plain[:MAX_SHOWN])
            else:
                self._keep(plain)
            return
        pieces = [part for part in _SEPARATORS.split(word) if part.strip(JOINT)]
        found = [self._read(piece) for piece in pieces]
        is_valid = not isinstance(parse_term(plain), TermProblem)
        if None in found and plain not in self._useless and is_valid:
            found = [(plain,)]  # unusual, but a valid term
        for piece, terms in zip(pieces, found, strict=False):
            if terms is None:
                self._unclear.append(piece.replace(JOINT, "")[:MAX_SHOWN])
            for term in terms or ():
                self._keep(term)

    def finish(self) -> Meaning:
        """Return the meaning of all words."""
        if len({redirect.lower() for redirect in self._redirects}) > 1:
            self._unclear += self._redirects
        return Meaning(
            tuple(self._terms),
            tuple(self._ends),
            self._redirects[0] if self._redirects else "",
            tuple(self._modifiers),
            tuple(self._unclear),
        )

    def _keep(self, text: str) -> None:
        term = parse_term(text)
        if isinstance(term, Modifier) and term.name == "redirect":
            self._redirects.append(term.value)
        elif isinstance(term, Mechanism) and term.name is MechanismName.ALL:
            self._ends.append(term.qualifier)
        elif isinstance(term, Mechanism):
            self._terms.append(text)
        elif (
            isinstance(term, Modifier)
            and term.name != "v"
            and VERSION_AT_START.fullmatch(term.value) is None
        ):
            self._modifiers.append(text)

    def _read(self, piece: str) -> tuple[str, ...] | None:
        """Return the intended terms of a piece, or `None` if they are not certain."""
        if not any(map(str.isalnum, piece)):
            # A lone qualifier could belong to the next word; other marks have no meaning.
            return None if set(piece) & set("-~?") else ()
        if re.fullmatch(r"v[=:]?spf[12.0]*", piece.strip(_STRAY), re.IGNORECASE):
            return ()
        found = _cut(piece, frozenset(self._useless))
        if not found and self._useless:
            found = _cut(piece, frozenset())
        return found[0] if len(found) == 1 else None


_CUT = re.compile(
    rf"{JOINT}|(?<=[^+~?-])(?:\+?(?:include|exists|redirect|exp|ipv?[46])[:=])"
    r"|(?<![a-z_.:-])(?:mx|a)[:/]|\+(?![^{]*\})|[~?+-]all$",
    re.IGNORECASE,
)
_MAX_CUTS = 32


def _cut(piece: str, useless: frozenset[str]) -> list[tuple[str, ...]]:
    """Return at most two ways to split a piece into terms."""
    places = {found.start() for found in _CUT.finditer(piece)} - {0}
    places |= {found.end() for found in re.finditer(JOINT, piece)} - {len(piece)}
    ends = [*sorted(places), len(piece)]
    if len(ends) > _MAX_CUTS:
        return []
    known: dict[int, list[tuple[str, ...]]] = {len(piece): [()]}

    def read_from(start: int) -> list[tuple[str, ...]]:
        if start not in known:
            ways: dict[tuple[str, ...], None] = {}
            for end in (position for position in ends if position > start):
                first = _read_one(piece[start:end].replace(JOINT, ""), useless)
                if first is not None:
                    ways.update(dict.fromkeys((*first, *rest) for rest in read_from(end)))
            known[start] = list(ways)[:2]
        return known[start]

    return read_from(0)


def _could_be_several(word: str) -> bool:
    """Return whether the parts of a word between joints are terms on their own."""
    parts = [part for part in word.split(JOINT) if part]
    return len(parts) > 1 and all(_read_one(part) is not None for part in parts)


_HOST = re.compile(r"[a-z0-9_.-]*", re.IGNORECASE)
_TOP = re.compile(r"(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})\.?", re.IGNORECASE)
_MACRO = re.compile(r"%(?:\{[^}]*\}|[%_-])")


def is_plain(text: str) -> bool:
    """Return whether a text is a term that has only characters of names and addresses."""
    term = parse_term(text)
    if isinstance(term, TermProblem):
        return False
    if isinstance(term, Modifier):
        return term.name not in ("redirect", "exp") or _is_host(term.value)
    return term.network is not None or not term.target or _is_host(term.target)


def _is_host(text: str) -> bool:
    without = _MACRO.sub("", text)
    if _HOST.fullmatch(without) is None:
        return False
    return text.endswith("}") or _TOP.fullmatch(text.rpartition(".")[2]) is not None


_ALL = re.compile(r"([+~?-]*)(?:a+ll+|(?<=[~?-])a+l)([+~?-]*)", re.IGNORECASE)
_NAMED = re.compile(r"(?P<name>[a-z][a-z0-9-]*)(?P<sign>[:=])(?P<value>.*)", re.IGNORECASE)


@lru_cache(maxsize=512)
def _read_one(text: str, useless: frozenset[str] = frozenset()) -> tuple[str, ...] | None:
    """Return the intended terms of a text without separators, or `None` if that is not certain."""
    text = (text if text.startswith("::") else text.lstrip(_STRAY)).rstrip(_STRAY + "/")
    every = _ALL.fullmatch(text)
    if every is not None:
        return (f"{_read_qualifier(every[1], every[2])}all",)
    if text in useless:
        return None
    if is_plain(text) and not _is_misspelt(text):
        return (text,)
    qualifier = text[:1] if text[:1] in set("+~?-") else ""
    terms = _read_value(text[len(qualifier) :])
    found = tuple(f"{qualifier}{term}" for term in terms or ())
    return found if found and not set(found) & useless and all(map(is_plain, found)) else None


def _read_qualifier(before: str, behind: str) -> str:
    """Return the qualifier of an ``all``, or ``~`` if it is not certain."""
    if not before and not behind:
        return Qualifier.PASS.value
    marks = set(before)
    return before[0] if len(marks) == 1 and not behind else Qualifier.SOFTFAIL.value


def _is_misspelt(text: str) -> bool:
    """Return whether an unknown modifier has an address as its value."""
    term = parse_term(text)
    return isinstance(term, Modifier) and (
        term.name not in ("redirect", "exp") and _read_networks(term.value) is not None
    )


def _read_value(text: str) -> tuple[str, ...] | None:
    """Return the intended terms for the text after the qualifier."""
    networks = _read_networks(text)
    if networks is not None:
        return networks
    named = _NAMED.fullmatch(text)
    if named is None:
        return None
    name, value = guess_name(named["name"].lower()), _without_address(named["value"])
    networks = _read_networks(value)
    if networks is not None and name is not None:
        return None if name in ("exp", "redirect") else networks
    if name in ("include", "exists", "ip4", "ip6", "redirect"):
        inner = _NAMED.fullmatch(value.lstrip("+"))
        if inner is not None:
            return _read_value(value.lstrip("+")) if guess_name(inner["name"].lower()) else None
    if name in ("include", "exists", "a", "mx", "ptr"):
        return (f"{name}:{value}",)
    return (f"{name}={value}",) if name in ("redirect", "exp") else None


_URL = re.compile(r"(?:https?|dns|smtp)://(?P<host>[^/?#@\s]+)(?:[/?#].*)?", re.IGNORECASE)
_PORT = re.compile(r"(?P<host>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.[a-z]{2,63}\.?):[0-9]{1,5}", re.I)


def _without_address(value: str) -> str:
    """Return the host of a URL or of a host with a port; return other text unchanged."""
    value = re.sub("^[@:](?!:)", "", value.strip("\"'`<>()"))
    url = _URL.fullmatch(value)
    value = url["host"] if url is not None else value
    port = _PORT.fullmatch(value)
    value = port["host"] if port is not None else value
    return value if value.isascii() else read_mail_domain(value) or value


_QUAD = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_RANGE = re.compile(rf"({_QUAD})-({_QUAD}|[0-9]{{1,3}})")
_STARS = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){0,2})((?:\.\*){1,3})")
_MAX_NETWORKS = 16
"""Maximum number of networks for a range of addresses; more are not a plausible meaning."""


def _read_networks(text: str) -> tuple[str, ...] | None:
    """Return the terms for an address, network or range of addresses, or `None`."""
    text = text.strip("[]<>()\"'`").removesuffix(".")
    try:
        span = _RANGE.fullmatch(text)
        if span is not None:
            first, last = span.groups()
            low = IPv4Address(first)
            high = IPv4Address(last if "." in last else f"{first.rpartition('.')[0]}.{last}")
            networks = list(summarize_address_range(low, high))
            if len(networks) > _MAX_NETWORKS:
                raise AddressValueError(first)
            return tuple(f"ip4:{single}".removesuffix("/32") for single in networks)
        stars = _STARS.fullmatch(text)
        if stars is not None:
            missing = stars[2].count("*")
            whole = stars[1] + ".0" * missing
            return (f"ip4:{IPv4Network(f'{whole}/{32 - 8 * missing}')}",)
        address, slash, length = text.partition("/")
        if re.fullmatch(rf"{_QUAD}(?::[0-9]{{1,5}})?", address):
            return (_read_quad(address.partition(":")[0], slash, length),)
        network = ip_network(f"{address.strip('[]')}{slash}{length}", strict=False)
    except ValueError:
        return None
    return (f"ip{network.version}:{address.strip('[]')}{slash}{length}",)


def _read_quad(address: str, slash: str, length: str) -> str:
    """Return the term for an IPv4 address, unless its leading zeros could mean octal numbers."""
    parts = address.split(".")
    if any(map(_may_be_octal, parts)):
        raise AddressValueError(address)
    plain = ".".join(str(int(part)) for part in parts)
    if not length.isdecimal() and slash:
        return f"ip4:{IPv4Network(f'{plain}/{length}', strict=False)}"
    IPv4Network(f"{plain}{slash}{length}", strict=False)
    return f"ip4:{plain}{slash}{length}"


def _may_be_octal(part: str) -> bool:
    is_octal = part.startswith("0") and not set(part) & set("89")
    return is_octal and int(part, 8) != int(part)


SOFTFAIL_ALL = "~all"
"""Replaces a missing or open ``all``. It marks mail of other hosts, but does not reject mail of a
forgotten sender."""

INCLUDE = "include:"


def propose_new_record(sender: str = "mx") -> str:
    """Return a first record, which permits the hosts that receive mail."""
    return " ".join(filter(None, (VERSION, sender, SOFTFAIL_ALL)))


def repair_text(text: str) -> str:
    """Return the intended record from its text alone, or an empty string if it is not certain."""
    return compose_record([find_meaning((text,))])


def compose_record(
    meanings: Sequence[Meaning],
    trees: Iterable[SpfNode] = (),
    left_out: Mapping[str, str] | None = None,
    *,
    addresses_first: bool = False,
) -> str:
    """Return one record with the meaning of all texts, or an empty string if it is not certain.

    :param trees: the evaluated trees of the records.
    :param left_out: terms to leave out, with the reasons.
    :param addresses_first: put ``ip4`` and ``ip6`` before terms with DNS queries.
    """
    unwanted = left_out or {}
    if any(meaning.unclear for meaning in meanings) or (
        len(meanings) > 1 and _has_exceptions(meanings)
    ):
        return ""
    alone = len(meanings) == 1 and not meanings[0].ends
    redirects = [REDIRECT + meaning.redirect for meaning in meanings if meaning.redirect]
    redirect = next((target for target in redirects if alone and target not in unwanted), "")
    by_key: dict[Hashable, str] = {}
    for term in (term for meaning in meanings for term in _terms_of(meaning, is_alone=alone)):
        if term not in unwanted and REDIRECT + term.removeprefix(INCLUDE) not in unwanted:
            qualifier = term[0] if term[0] in "-~?" else "+"
            sender = read_sender(term)
            assert sender is not None, "a meaning has terms only that name senders"
            by_key.setdefault((qualifier, sender.network or sender.key, sender.lengths), term)
    terms = list(by_key.values())
    if addresses_first:
        if _has_exceptions(meanings):
            return ""
        terms.sort(key=lambda term: not _is_network(term))
    modifiers = dict.fromkeys(text for meaning in meanings for text in meaning.modifiers)
    exps = [text for text in modifiers if text.lower().startswith("exp=")]
    if len(exps) > 1:
        return ""
    return " ".join([VERSION, *terms, *modifiers, redirect or _choose_all(meanings, trees)])


def _terms_of(meaning: Meaning, *, is_alone: bool) -> Iterator[str]:
    yield from meaning.terms
    if meaning.redirect and not is_alone:
        yield INCLUDE + meaning.redirect


def _has_exceptions(meanings: Iterable[Meaning]) -> bool:
    """Return whether the order of terms matters, because some terms exclude hosts."""
    return any(term[0] in "-~?" for meaning in meanings for term in meaning.terms)


def _is_network(term: str) -> bool:
    parsed = parse_term(term)
    return isinstance(parsed, Mechanism) and parsed.network is not None


def _choose_all(meanings: Sequence[Meaning], trees: Iterable[SpfNode]) -> str:
    """Return the last term: the strictest one, since the merged record has all senders."""
    chosen: set[Qualifier | None] = {meaning.ends[0] for meaning in meanings if meaning.ends}
    chosen |= {tree.all_qualifier for tree in trees if tree.redirected is not None}
    return "-all" if Qualifier.FAIL in chosen else SOFTFAIL_ALL


def has_senders(text: str) -> bool:
    """Return whether a record lets any host send."""
    record = parse_spf_record(text)
    return bool(record.redirect) or any(
        mechanism.name is not MechanismName.ALL and mechanism.qualifier is Qualifier.PASS
        for mechanism in record.mechanisms
    )


def find_useless_terms(trees: Iterable[SpfNode]) -> dict[str, str]:
    """Return the terms that permit no host and only cost lookups, with the reason."""
    found: dict[str, str] = {}
    for tree in trees:
        found.update(dict.fromkeys(tree.voids, "leads to a name that does not exist"))
        for child in tree.children:
            if child.problem is NodeProblem.LOOP:
                found[child.term] = "leads back to the record itself"
            elif child.problem is NodeProblem.ABSENT and not child.has_near_miss:
                found[child.term] = f"leads to {child.domain}, which has no SPF record"
            elif _is_doomed(child) and child.permits_no_host:
                found[child.term] = f"leads to {child.domain}, whose record lets no host send"
            else:
                found.pop(child.term, None)
    return found


def _is_doomed(node: SpfNode) -> bool:
    """Return whether a record or an included record causes ``permerror``."""
    return any(
        inner.oversized_mx or (inner.problem is not None and inner.problem.is_error)
        for inner in node.walk()
    )


def find_named_senders(
    texts: Iterable[str], meanings: Sequence[Meaning], left_out: Mapping[str, str]
) -> tuple[NamedSender, ...]:
    """List the senders that the texts name, as receivers read them and as intended."""
    meant = [term for meaning in meanings for term in _terms_of(meaning, is_alone=False)]
    read = [mechanism.text for text in texts for mechanism in parse_spf_record(text).mechanisms]
    read = [term for term in read if read_sender(term) is not None]
    reasons = dict(left_out)
    for term, words in find_glued(read, meanings, left_out).items():
        reasons[term] = f'permits no host; "{words}" replaces it'
    of_senders = {read_sender(term): reason for term, reason in reasons.items()}
    senders = dict.fromkeys(read_sender(term) for term in (*read, *meant))
    return tuple(
        replace(sender, reason=of_senders.get(sender, ""))
        for sender in senders
        if sender is not None
    )


def find_glued(
    read: Iterable[str], meanings: Iterable[Meaning], left_out: Collection[str]
) -> dict[str, str]:
    """Return the terms that receivers read differently from what was intended, with the fix."""
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


def add_term(text: str, added: str, *, put_first: bool = False) -> str:
    """Add a term to a record before its end, unless the record contains it.

    :param put_first: put it first, because another term matches earlier.
    """
    terms = text.split(" ")[1:]
    ends = [n for n, term in enumerate(terms) if _is_end(term)]
    place = 0 if put_first else min(ends, default=len(terms))
    if added not in terms:
        terms.insert(place, added)
    return " ".join([VERSION, *terms])


def make_ip_term(address: IpAddress) -> str:
    """Return the term that permits an address to send."""
    return f"ip{address.version}:{address}"


def _is_end(term: str) -> bool:
    return term.lstrip("+-~?").lower() == "all" or term.lower().startswith((REDIRECT, "exp="))
