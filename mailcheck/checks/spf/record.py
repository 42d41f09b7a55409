"""Parser for SPF records and their macros (RFC 7208 4.5 to 7, 12)."""

import re
from collections.abc import Callable
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from operator import le
from urllib.parse import quote

from msgspec import Struct

from mailcheck.checks.spf_texts import VERSION
from mailcheck.core.domains.domain_names import MAX_LABEL, MAX_NAME

# macro-expand and macro-string of RFC 7208 7.1. The alternatives begin differently, so matching
# takes linear time.
_MACRO = r"%[%_-]|%\{[slodiphcrtvSLODIPHCRTV][0-9]*[rR]?[.+,/_=-]*\}"
_MACRO_STRING = re.compile(rf"(?:[!-$&-~]|{_MACRO})*", re.ASCII)
_ENDS_IN_MACRO = re.compile(rf"(?:[!-$&-~]|{_MACRO})*(?:{_MACRO})", re.ASCII)
_EXP_ONLY_LETTER = re.compile(r"%\{[crtCRT]")
_ZERO_TRANSFORMER = re.compile(r"%\{[A-Za-z]0+[^0-9]")
# domain-end = "." toplabel [ "." ]; a toplabel is not a number
_TOP_LABEL = re.compile(r"(?=[A-Za-z0-9-]*[A-Za-z-])[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")


_MAX_TERM_NAME = 16  # maximum length of a misspelt name


def is_macro_string(text: str) -> bool:
    """Return whether the text is a valid value of a modifier (RFC 7208 6, 7.1)."""
    return _MACRO_STRING.fullmatch(text) is not None


def explain_bad_domain_spec(text: str) -> str | None:
    """Return in a few words why the text is not a domain-spec, or `None` if it is one."""
    if not text:
        return "has no domain"
    if not is_macro_string(text):
        return "has a character or a macro that is not allowed"
    if _EXP_ONLY_LETTER.search(text) is not None:
        return "uses a macro that is allowed in explanations only"
    if _ZERO_TRANSFORMER.search(text) is not None:
        return "has a macro that keeps zero labels"
    if _ENDS_IN_MACRO.fullmatch(text) is not None:
        return None
    host, dot, top_label = text.removesuffix(".").rpartition(".")
    if not dot or not host or _TOP_LABEL.fullmatch(top_label) is None:
        return "has no full domain name"
    if "%" not in text and not all(host.split(".")):
        return "has an empty label between two dots"
    return None


WHOLE_ADDRESSES = (32, 128)
"""Prefix lengths of a single IPv4 and a single IPv6 address."""


class Qualifier(Enum):
    """The result of a match (RFC 7208 4.6.2)."""

    PASS = "+"  # noqa: S105 - no password
    FAIL = "-"
    SOFTFAIL = "~"
    NEUTRAL = "?"


class MechanismName(Enum):
    """The mechanisms (RFC 7208 5)."""

    ALL = "all"
    INCLUDE = "include"
    A = "a"
    MX = "mx"
    PTR = "ptr"
    IP4 = "ip4"
    IP6 = "ip6"
    EXISTS = "exists"

    @property
    def asks_dns(self) -> bool:
        """Whether it counts against the limit of ten DNS lookups (RFC 7208 4.6.4)."""
        return self not in (MechanismName.ALL, MechanismName.IP4, MechanismName.IP6)


class Mechanism(Struct, frozen=True):
    """One mechanism.

    ``text`` is the mechanism as written. ``target`` is the domain-spec, or empty for the domain
    itself. ``lengths`` are the IPv4 and IPv6 prefix lengths of ``a`` and ``mx``.
    """

    text: str
    qualifier: Qualifier
    name: MechanismName
    target: str = ""
    network: IPv4Network | IPv6Network | None = None
    lengths: tuple[int, int] = WHOLE_ADDRESSES


class Modifier(Struct, frozen=True):
    """One modifier (RFC 7208 6); unknown modifiers have no meaning."""

    name: str
    value: str


class TermProblem(Struct, frozen=True):
    """A term that causes ``permerror`` (``is_error``) or that receivers ignore."""

    term: str
    reason: str
    is_error: bool = True


class NamedSender(Struct, frozen=True):
    """A sender that a text names in some reading of it.

    ``key`` is the same for all spellings of a mechanism and a name, without prefix lengths.
    ``reason`` says why a proposed record may omit the sender; empty if it must not.
    """

    term: str
    key: str
    lengths: tuple[int, int] = (32, 128)
    network: IPv4Network | IPv6Network | None = None
    reason: str = ""

    def covers(self, other: "NamedSender") -> bool:
        """Return whether this sender includes each host of the other one."""
        if self.network is not None and other.network is not None:
            return _contains(self.network, other.network)
        is_same = self.key == other.key and self.network is other.network
        return is_same and all(map(le, self.lengths, other.lengths))


def _contains(network: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    shift = network.max_prefixlen - network.prefixlen
    return (
        network.version == other.version
        and network.prefixlen <= other.prefixlen
        and int(network.network_address) >> shift == int(other.network_address) >> shift
    )


class SpfRecord(Struct, frozen=True):
    """A parsed record; ``redirect`` is empty if there is none or if ``all`` overrides it."""

    text: str
    mechanisms: tuple[Mechanism, ...]
    redirect: str
    problems: tuple[TermProblem, ...]

    @property
    def all_qualifier(self) -> Qualifier | None:
        """The result for all other hosts, or `None` if the record has no ``all``."""
        return next((m.qualifier for m in self.mechanisms if m.name is MechanismName.ALL), None)

    @property
    def is_broken(self) -> bool:
        """Whether a receiver must return ``permerror`` (RFC 7208 4.6)."""
        return any(problem.is_error for problem in self.problems)


MAX_SHOWN = 80  # maximum number of characters of a term in a problem

_MECHANISM = re.compile(r"(?P<qualifier>[+?~-]?)(?P<name>[A-Za-z][A-Za-z0-9_.-]*)(?P<rest>.*)")
_MODIFIER = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)=(?P<value>.*)")
# dual-cidr-length = [ ip4-cidr-length ] [ "/" ip6-cidr-length ], without leading zeros
_LENGTH = r"0|[1-9][0-9]{0,2}"
_DUAL_CIDR = re.compile(rf"(?:/(?P<v4>{_LENGTH}))?(?://(?P<v6>{_LENGTH}))?", re.ASCII)

_NAMES = {name.value: name for name in MechanismName}

_MISSPELT = {
    **dict.fromkeys(("ip", "ipv4", "ip4v", "v4"), "ip4"),
    **dict.fromkeys(("ipv6", "ip6v", "v6"), "ip6"),
    **dict.fromkeys(("a-record", "arecord"), "a"),
    "mx-record": "mx",
}
"""Wrong names of mechanisms that are not similar to the right ones."""

_LONG_NAMES = ("include", "exists", "redirect")
_CLOSE = 0.75
_GLUED_NAMES = re.compile(r"(?:a|mx|ptr|all)(?P<second>include|exists|redirect|exp|ip[46])")
"""Two terms without a space between them, such as ``aexists``, which is not a misspelt name."""


@lru_cache(maxsize=256)
def guess_name(name: str) -> str | None:
    """Return the mechanism or modifier that a lower-case name stands for, even if misspelt.

    Return `None` if that is not certain.
    """
    if name in _NAMES or name in ("redirect", "exp"):
        return name
    if name in _MISSPELT:
        return _MISSPELT[name]
    if len(name) > _MAX_TERM_NAME or _GLUED_NAMES.fullmatch(name) is not None:
        return None
    if name.startswith(("ip", "pi")) and len(name) <= len("ipv4"):
        return "ip6" if "6" in name else "ip4"  # the address decides
    close = get_close_matches(name, _LONG_NAMES, n=1, cutoff=_CLOSE)
    return close[0] if close else None


@lru_cache(maxsize=512)
def parse_term(term: str) -> Mechanism | Modifier | TermProblem:
    """Parse one term; an invalid term becomes a `TermProblem`."""
    modifier = _MODIFIER.fullmatch(term)
    if modifier is not None:
        name, value = modifier["name"].lower(), modifier["value"]
        problem = None
        if name in ("redirect", "exp"):
            problem = explain_bad_domain_spec(value)
        elif not is_macro_string(value):
            problem = "has a character or a macro that is not allowed"
        if problem is not None:
            return TermProblem(term[:MAX_SHOWN], problem)
        if name not in ("redirect", "exp") and guess_name(name) is not None:
            reason = 'is ignored by receivers: write ":" instead of "="'
            if guess_name(name) == "redirect":
                reason = 'is ignored by receivers: "redirect" is misspelt'
            return TermProblem(term[:MAX_SHOWN], reason, is_error=False)
        glued = _GLUED_NAMES.fullmatch(name)
        if glued is not None:
            reason = f'is ignored by receivers: a space is missing before "{glued["second"]}"'
            return TermProblem(term[:MAX_SHOWN], reason, is_error=False)
        if name == "v":
            return TermProblem(
                term[:MAX_SHOWN],
                "is in the middle of the record and is ignored",
                is_error=False,
            )
        return Modifier(name, _normalize_name(value) if name == "redirect" else value)
    try:
        return _read_mechanism(term)
    except ValueError as error:
        return TermProblem(term[:MAX_SHOWN], str(error))


def _read_mechanism(term: str) -> Mechanism:
    match = _MECHANISM.fullmatch(term)
    if match is None:
        raise ValueError("is not an SPF term")
    name = _NAMES.get(match["name"].lower())
    if name is None:
        raise ValueError("is not an SPF mechanism")
    qualifier = Qualifier(match["qualifier"] or "+")
    rest = match["rest"]
    if name is MechanismName.ALL:
        if rest:
            raise ValueError("has text after its name")
        return Mechanism(term, qualifier, name)
    if name in (MechanismName.IP4, MechanismName.IP6):
        return Mechanism(term, qualifier, name, network=_read_network(name, rest))
    takes_lengths = name in (MechanismName.A, MechanismName.MX)
    spec, lengths = _split_lengths(rest) if takes_lengths else (rest, WHOLE_ADDRESSES)
    return Mechanism(term, qualifier, name, _read_target(name, spec), lengths=lengths)


def _read_network(name: MechanismName, rest: str) -> IPv4Network | IPv6Network:
    network, slash, length = rest[1:].partition("/")
    if not rest.startswith(":") or not network:
        raise ValueError("has no address")
    if "%" in network:
        raise ValueError("has the name of a network interface after its address")
    if slash and re.fullmatch(_LENGTH, length, re.ASCII) is None:
        raise ValueError("has no valid prefix length after the slash")
    family = IPv4Network if name is MechanismName.IP4 else IPv6Network
    try:
        return family(rest[1:], strict=False)
    except ValueError:
        raise ValueError(
            f"has no valid {'IPv4' if family is IPv4Network else 'IPv6'} address"
        ) from None


def _read_target(name: MechanismName, spec: str) -> str:
    """Return the domain-spec of a, mx, ptr, include or exists; empty for the domain itself."""
    if not spec and name not in (MechanismName.INCLUDE, MechanismName.EXISTS):
        return ""
    if spec and not spec.startswith(":"):
        raise ValueError("is not an SPF mechanism")
    problem = explain_bad_domain_spec(spec[1:])
    if problem is not None:
        raise ValueError(problem)
    return _normalize_name(spec[1:])


def _normalize_name(domain_spec: str) -> str:
    """Write a name as it is queried; the case of macros has a meaning (RFC 7208 7.3)."""
    return domain_spec if "%" in domain_spec else domain_spec.lower().removesuffix(".")


def _split_lengths(rest: str) -> tuple[str, tuple[int, int]]:
    """Split ``/24//64`` off the end and return it as numbers.

    :raises ValueError: a prefix length is invalid.
    """
    start = len(rest.rstrip("/0123456789"))
    slash = rest.find("/", start)
    if slash < 0:
        return rest, WHOLE_ADDRESSES
    match = _DUAL_CIDR.fullmatch(rest[slash:])
    if match is not None:
        lengths = int(match["v4"] or 32), int(match["v6"] or 128)
        if lengths[0] <= 32 and lengths[1] <= 128:
            return rest[:slash], lengths
    raise ValueError("has no valid prefix length after the slash")


MAX_PROBLEMS = 20  # maximum number of reported problems

MAX_RECORD = 8192
"""Maximum length of a record that is read, in characters. RFC 7208 3.4 advises a sixteenth."""

MAX_TERMS = 500
"""Maximum number of terms of a record that are read; the longest record holds about as
many addresses."""


@lru_cache(maxsize=64)
def parse_spf_record(text: str) -> SpfRecord:
    """Parse a record for which `is_spf_record` holds.

    The checks of domains and of mails share this parser. Results are cached, since the records
    of a mail are parsed once per round of DNS queries.

    Terms after ``all`` are reported as problems, since receivers never evaluate them.
    """
    mechanisms: list[Mechanism] = []
    modifiers: dict[str, str] = {}
    problems: list[TermProblem] = []
    words = [word for word in text[len(VERSION) :].split(" ") if word]
    if len(text.rstrip(" ")) > MAX_RECORD or len(words) > MAX_TERMS:
        reason = (
            f"is the end of a record that has more than {MAX_RECORD} characters or {MAX_TERMS}"
            " terms, which is too long to be checked"
        )
        return SpfRecord(text, (), "", (TermProblem(words[-1][-MAX_SHOWN:], reason),))
    for word in words:
        term = parse_term(word)
        if isinstance(term, Modifier) and term.name not in modifiers:
            modifiers[term.name] = term.value
        elif isinstance(term, Modifier) and term.name in ("redirect", "exp"):
            problems.append(TermProblem(word[:MAX_SHOWN], "occurs twice"))
        elif isinstance(term, TermProblem):
            problems.append(term)
        elif isinstance(term, Mechanism):
            if mechanisms and mechanisms[-1].name is MechanismName.ALL:
                problems.append(_unreachable_term(word, mechanisms[-1]))
            else:
                mechanisms.append(term)
    redirect = modifiers.get("redirect", "")
    if redirect and mechanisms and mechanisms[-1].name is MechanismName.ALL:
        problems.append(_unreachable_term(f"redirect={redirect}", mechanisms[-1]))
        redirect = ""
    problems.sort(key=lambda problem: not problem.is_error)
    return SpfRecord(text, tuple(mechanisms), redirect, tuple(problems[:MAX_PROBLEMS]))


NEVER_READ = "is never evaluated"


def _unreachable_term(word: str, all_mechanism: Mechanism) -> TermProblem:
    reason = f"{NEVER_READ}, because {all_mechanism.text!r} matches every host"
    return TermProblem(word[:MAX_SHOWN], reason, is_error=False)


_MACRO_OF_NAME = re.compile(
    r"%(?:(?P<plain>[%_-])|\{(?P<letter>[A-Za-z])(?P<count>[0-9]*)(?P<reverse>[rR]?)"
    r"(?P<delimiters>[.+,/_=-]*)\})",
    re.ASCII,
)
_PLAIN_MACROS = {"%": "%", "_": " ", "-": "%20"}
_MAX_DIGITS = 4  # of a number of labels; names have fewer than 1,000
_DOMAIN_LETTERS = frozenset("dDoO")
"""Macro letters whose value is the domain itself in every mail."""


def depends_on_mail(text: str) -> bool:
    """Return whether the value of a domain-spec depends on the mail."""
    found = _MACRO_OF_NAME.finditer(text)
    return any(macro["letter"] and macro["letter"] not in _DOMAIN_LETTERS for macro in found)


def expand_macros(text: str, value_of: Callable[[str], str]) -> str:
    """Expand the macros of a text for which `explain_bad_domain_spec` returns `None`.

    :param value_of: returns the value of a lower-case macro letter.
    """
    known: dict[str, str] = {}  # a hostile record may repeat a macro thousands of times

    def expand(match: re.Match[str]) -> str:
        macro = match.group()
        if macro not in known:
            known[macro] = _expand_one(match, value_of)
        return known[macro]

    return _MACRO_OF_NAME.sub(expand, text)


def truncate_name(text: str) -> str:
    """Remove the last dot, and labels on the left until the name is short enough."""
    name = text.removesuffix(".")
    if len(name) <= MAX_NAME:
        return name
    # The dot before the longest suffix that fits; without one, only the last label is left.
    dot = name.find(".", len(name) - MAX_NAME - 1)
    return name[dot + 1 :] if dot >= 0 else name.rpartition(".")[2]


def to_query_name(text: str) -> str | None:
    """Return the name to query, or `None` if it is not a valid DNS name.

    A backslash is an ordinary character in a record, but an escape in a query.
    """
    name = text.removesuffix(".").lower()
    if len(name) > MAX_NAME or not all(0 < len(part) <= MAX_LABEL for part in name.split(".")):
        return None
    return name.replace("\\", "\\\\")


def _expand_one(match: re.Match[str], value_of: Callable[[str], str]) -> str:
    if match["plain"]:
        return _PLAIN_MACROS[match["plain"]]
    letter = match["letter"]
    delimiters = match["delimiters"] or "."
    to_cuts = dict.fromkeys(map(ord, delimiters), "\0")
    parts = value_of(letter.lower()).translate(to_cuts).split("\0")
    if match["reverse"]:
        parts.reverse()
    count = match["count"].lstrip("0")[:_MAX_DIGITS]
    expansion = ".".join(parts[-int(count) :] if count else parts)
    return quote(expansion, safe="~") if letter.isupper() else expansion
