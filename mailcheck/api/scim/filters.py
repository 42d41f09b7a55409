"""Filters (RFC 7644 3.4.2.2): their grammar, and whether a resource matches."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mailcheck.api.scim.schemas import Attribute, Document, ResourceType, find, find_path
from mailcheck.core.signing_in.provisioning import Kind, ProvisioningRefused

MAX_FILTER = 2_000
"""Maximum number of characters of a filter."""

MAX_DEPTH = 10
"""Maximum number of parentheses around each other."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*")|(?P<mark>[()\[\]])|(?P<word>[^\s()\[\]"]+))"""
)


class Comparison(Struct, frozen=True):
    """An attribute path, an operator in lower case, and a value, which ``pr`` does not have."""

    path: str
    operator: str
    value: Any = None


class Both(Struct, frozen=True):
    """Conditions of which all hold."""

    conditions: Sequence["Filter"]


class Either(Struct, frozen=True):
    """Conditions of which at least one holds."""

    conditions: Sequence["Filter"]


class Not(Struct, frozen=True):
    """A condition that does not hold."""

    condition: "Filter"


class Within(Struct, frozen=True):
    """A condition that one value of an attribute meets."""

    path: str
    condition: "Filter"


Filter = Comparison | Both | Either | Not | Within


def _contains(found: str, wanted: str) -> bool:
    return wanted in found


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda found, wanted: bool(found == wanted),
    "ne": lambda found, wanted: bool(found != wanted),
    "co": _contains,
    "sw": str.startswith,
    "ew": str.endswith,
    "gt": lambda found, wanted: bool(found > wanted),
    "ge": lambda found, wanted: bool(found >= wanted),
    "lt": lambda found, wanted: bool(found < wanted),
    "le": lambda found, wanted: bool(found <= wanted),
}
"""The operators that compare a value."""


def parse_filter(text: str) -> Filter:
    """Parse a filter.

    :raises ProvisioningRefused: it is not valid, or is too long.
    """
    if len(text) > MAX_FILTER:
        raise _refuse(f"the filter has more than {MAX_FILTER} characters")
    parser = _Parser(_split(text))
    found = parser.any_of(0)
    if parser.has_more:
        raise _refuse(f"the filter does not end after {parser.seen!r}")
    return found


def _refuse(problem: str) -> ProvisioningRefused:
    return ProvisioningRefused(Kind.INVALID_FILTER, problem)


def _split(text: str) -> list[str]:
    tokens, position, end = [], 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _refuse(f"the filter is not valid at {text[position : position + 20]!r}")
        tokens.append(match.group().strip())
        position = match.end()
    return tokens


class _Parser:
    """A recursive descent over the tokens of a filter."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def has_more(self) -> bool:
        return self._at < len(self._tokens)

    @property
    def seen(self) -> str:
        return " ".join(self._tokens[: self._at])[-40:]

    def _peek(self) -> str:
        return self._tokens[self._at] if self.has_more else ""

    def _next(self, wanted: str) -> str:
        if not self.has_more:
            raise _refuse(f"the filter ends where {wanted} is expected")
        self._at += 1
        return self._tokens[self._at - 1]

    def _skip(self, token: str) -> bool:
        is_next = self._peek().lower() == token
        self._at += is_next
        return is_next

    def any_of(self, depth: int) -> Filter:
        found = [self._all_of(depth)]
        while self._skip("or"):
            found.append(self._all_of(depth))
        return found[0] if len(found) == 1 else Either(found)

    def _all_of(self, depth: int) -> Filter:
        found = [self._one(depth)]
        while self._skip("and"):
            found.append(self._one(depth))
        return found[0] if len(found) == 1 else Both(found)

    def _one(self, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise _refuse(f"the filter has more than {MAX_DEPTH} parentheses around each other")
        if self._skip("not"):
            return Not(self._in("(", ")", depth))
        if self._peek() == "(":
            return self._in("(", ")", depth)
        path = self._next("an attribute")
        if self._peek() == "[":
            condition = self._in("[", "]", depth)
            if self._peek().startswith("."):
                part = self._next("a sub-attribute").removeprefix(".")
                condition = Both([condition, self._compare(part)])
            return Within(path, condition)
        return self._compare(path)

    def _compare(self, path: str) -> Comparison:
        operator = self._next("an operator").lower()
        if operator == "pr":
            return Comparison(path, operator)
        if operator not in _COMPARE:
            known = ", ".join((*_COMPARE, "pr"))
            raise _refuse(f"{operator[:20]!r} is not an operator; send one of {known}")
        return Comparison(path, operator, self._value())

    def _in(self, opening: str, closing: str, depth: int) -> Filter:
        if self._next(opening) != opening:
            raise _refuse(f"{opening} is expected after {self.seen!r}")
        found = self.any_of(depth + 1)
        if self._next(closing) != closing:
            raise _refuse(f"{closing} is expected after {self.seen!r}")
        return found

    def _value(self) -> Any:
        token = self._next("a value")
        # Entra ID has sent True without quotation marks.
        try:
            found = msgspec.json.decode(token if token[:1] == '"' else token.lower())
        except msgspec.DecodeError:
            raise _refuse(f"{token[:40]!r} is not a value: put texts into quotes") from None
        if isinstance(found, dict | list):
            raise _refuse(f"{token[:40]!r} is not a simple value")
        return found


def matches(document: Document, condition: Filter, kind: ResourceType) -> bool:
    """Return whether a resource meets a filter.

    :raises ProvisioningRefused: the filter names an unknown attribute, or compares other types.
    """
    return _holds(condition, lambda text: _values_at(document, kind, text), document, kind)


def matches_value(value: Document, condition: Filter, attribute: Attribute) -> bool:
    """Return whether one value of a complex attribute meets a filter in brackets.

    :raises ProvisioningRefused: the filter names an unknown sub-attribute.
    """

    def look(text: str) -> tuple[Attribute, list[Any]]:
        part = find(attribute.parts, text)
        if part is None:
            raise _refuse(f"{text[:60]!r} is not a sub-attribute of {attribute.name}")
        found = value.get(part.name)
        return part, [] if found is None else [found]

    return _holds(condition, look, value, None)


_Look = Callable[[str], tuple[Attribute, list[Any]]]


def _holds(condition: Filter, look: _Look, document: Document, kind: ResourceType | None) -> bool:
    if isinstance(condition, Comparison):
        return _compare(condition, *look(condition.path))
    if isinstance(condition, Not):
        return not _holds(condition.condition, look, document, kind)
    if isinstance(condition, Within):
        path = None if kind is None else find_path(kind, condition.path)
        if path is None or path.part is not None or path.attribute.type != "complex":
            raise _refuse(f"{condition.path[:60]!r} is not a complex attribute")
        found = document.get(path.attribute.name) or []
        listed = found if isinstance(found, list) else [found]
        return any(matches_value(value, condition.condition, path.attribute) for value in listed)
    # Each part is evaluated, so that an unknown attribute is never overlooked.
    held = [_holds(value, look, document, kind) for value in condition.conditions]
    return all(held) if isinstance(condition, Both) else any(held)


def _values_at(document: Document, kind: ResourceType, text: str) -> tuple[Attribute, list[Any]]:
    path = find_path(kind, text)
    if path is None:
        raise _refuse(f"{text[:60]!r} is not an attribute that can be searched")
    found = document.get(path.attribute.name)
    values = found if isinstance(found, list) else [] if found is None else [found]
    part = path.part
    if part is None and path.attribute.type == "complex":
        # RFC 7644 3.4.2.2: a complex attribute without a sub-attribute means its value.
        part = find(path.attribute.parts, "value")
        if part is None:
            return path.attribute, values
    if part is None:
        return path.attribute, values
    return part, [value[part.name] for value in values if part.name in value]


def _compare(condition: Comparison, attribute: Attribute, values: list[Any]) -> bool:
    if condition.operator == "pr":
        return any(value not in ("", None) for value in values)
    wanted = condition.value
    if wanted is None:
        return (condition.operator == "ne") == bool(values)
    if attribute.type == "boolean":
        return _compare_booleans(condition, values)
    if not isinstance(wanted, str):
        raise _refuse(f"{condition.path[:60]} is compared with a text in quotes")
    compare = _COMPARE[condition.operator]
    if not values:
        return condition.operator == "ne"
    if attribute.is_exact:
        return any(compare(value, wanted) for value in values)
    folded = wanted.casefold()
    return any(compare(value.casefold(), folded) for value in values)


def _compare_booleans(condition: Comparison, values: list[Any]) -> bool:
    wanted = condition.value
    if isinstance(wanted, str) and wanted.lower() in ("true", "false"):
        wanted = wanted.lower() == "true"
    if not isinstance(wanted, bool) or condition.operator not in ("eq", "ne"):
        raise _refuse(f"{condition.path[:60]} is compared by eq or ne with true or false")
    is_equal = any(value is wanted for value in values)
    return is_equal == (condition.operator == "eq")
