"""Reading the code rules of the catalogue, and applying them to an answer."""

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from mailcheck.checks.dnsbl.catalogue import CodeClass, CodeRule
from mailcheck.checks.dnsbl.tables import BadCatalogue, check_fields, check_range

MAX_WEIGHT = 10

_FIELDS: dict[str, type] = {"code": str, "is": str, "weight": int, "meaning": str}
_BIT = re.compile(r"bit:(?P<bit>1|2|4|8|16|32|64|128)", re.ASCII)
_LOOPBACK = range(127 << 24, 128 << 24)


def read_code_rule(where: str, table: Any, list_weight: int) -> CodeRule:
    """Read one of a list's ``codes``.

    :raises BadCatalogue: names the rule and what is wrong with it.
    """
    table = check_fields(where, table, _FIELDS, ("code", "is"))
    code = table["code"]
    where = f"{where} ({code})"
    try:
        code_class = CodeClass(table["is"])
    except ValueError:
        known = ", ".join(known.value for known in CodeClass)
        raise BadCatalogue(f"{where}: is must be one of {known}") from None
    is_listing = code_class in (CodeClass.LISTED, CodeClass.POLICY)
    if not is_listing and "weight" in table:
        raise BadCatalogue(f"{where}: what is not a listing has no weight")
    weight = check_range(where, "weight", table.get("weight", list_weight), 0, MAX_WEIGHT)
    bit = _BIT.fullmatch(code)
    first, last = (0, 0) if bit is not None else _read_range(where, code)
    return CodeRule(
        code=code,
        code_class=code_class,
        first=first,
        last=last,
        bit=int(bit["bit"]) if bit is not None else 0,
        weight=weight if is_listing else 0,
        meaning=table.get("meaning", ""),
    )


def _read_range(where: str, code: str) -> tuple[int, int]:
    begin, dash, end = code.partition("-")
    try:
        first = int(IPv4Address(begin))
        last = int(IPv4Address(end)) if dash else first
    except AddressValueError:
        raise BadCatalogue(f"{where}: code is no address, range of addresses or bit:N") from None
    if first not in _LOOPBACK or last not in _LOOPBACK or first > last:
        raise BadCatalogue(f"{where}: code must lie in 127.0.0.0/8, from low to high")
    return first, last


def match_rules(rules: Sequence[CodeRule], number: int) -> list[CodeRule]:
    """Give the rules for one answer: a refusal alone, else the first range, or all bits set."""
    fitting = [rule for rule in rules if rule.fits(number)]
    refusals = [rule for rule in fitting if rule.code_class is CodeClass.REFUSED]
    if refusals:
        return refusals[:1]
    exact = [rule for rule in fitting if not rule.bit]
    return exact[:1] or fitting
