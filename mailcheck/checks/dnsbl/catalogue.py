"""The catalogue of blocklists: parser for ``blocklists.toml`` and rules for answers.

The file is validated as a whole when the daemon starts.
"""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from importlib.resources import files
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from msgspec import Struct

from mailcheck.core.domains.domain_names import parse_domain
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.network_addresses import parse_ip_address

PROFILE_SIZE = 32  # blocklists of one check ("Blocklist check" in docs/reference/contract.md)


class TargetKind(Enum):
    """The kind of target that a list supports."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"
    DOMAIN = "domain"


class CodeClass(Enum):
    """The meaning of a return code; several codes are evaluated in this order."""

    REFUSED = "refused"
    LISTED = "listed"
    POLICY = "policy"
    IGNORED = "ignored"


class CodeRule(Struct, frozen=True):
    """The meaning of a range of return codes, or of a bit of the last octet.

    ``first`` and ``last`` are addresses as numbers. ``bit`` is 0 for a range. ``weight`` is 0 if
    the code is not a listing.
    """

    code: str
    code_class: CodeClass
    first: int
    last: int
    bit: int
    weight: int
    meaning: str

    def matches(self, number: int) -> bool:
        """Return whether the rule applies to this return code."""
        if self.bit:
            return bool(number & self.bit)
        return self.first <= number <= self.last


@dataclass(frozen=True, slots=True)
class Blocklist:
    """One blocklist.

    ``zone`` is shown. ``query_zones`` are queried and may contain a secret key. ``test_listed``
    and ``test_unlisted`` are empty if the list has no such test point. ``daily_budget`` is `None`
    if there is no limit.
    """

    name: str
    operator: str
    zone: str
    query_zones: Mapping[TargetKind, str] = field(repr=False)
    rules: tuple[CodeRule, ...]
    weight: int
    test_listed: str
    test_unlisted: str
    daily_budget: int | None
    delist_url: str
    access: str
    is_enabled: bool

    def supports(self, kind: TargetKind) -> bool:
        """Return whether the list may be queried for this kind of target."""
        return kind in self.query_zones


class Catalogue(Struct):
    """All lists, and the two profiles of exactly 32 lists in their displayed order.

    A reload of the configuration changes the catalogue of a daemon.
    """

    blocklists: tuple[Blocklist, ...]
    address_profile: tuple[Blocklist, ...]
    domain_profile: tuple[Blocklist, ...]

    def become(self, other: "Catalogue") -> None:
        """Take over the lists of another catalogue."""
        self.blocklists = other.blocklists
        self.address_profile = other.address_profile
        self.domain_profile = other.domain_profile


class InvalidCatalogue(ValueError):
    """The catalogue is invalid; the message names the entry and the problem."""


_TYPE_NAMES = {str: "a string", int: "an integer", bool: "true or false", list: "a list"}


def validate_fields(
    where: str, table: Any, fields: Mapping[str, type], required: Collection[str]
) -> Mapping[str, Any]:
    """Return the table if it has all required fields and only known fields of the right type.

    :raises InvalidCatalogue: a field is missing, unknown or has a wrong type.
    """
    if not isinstance(table, dict):
        raise InvalidCatalogue(f"{where}: is not a table")
    for name in table:
        if name not in fields:
            raise InvalidCatalogue(f"{where}: unknown field {name!r}")
        if type(table[name]) is not fields[name]:
            raise InvalidCatalogue(f"{where}: {name} must be {_TYPE_NAMES[fields[name]]}")
    for name in required:
        if name not in table:
            raise InvalidCatalogue(f"{where}: {name} is missing")
    return table


def validate_range(where: str, name: str, number: int, first: int, last: int | None) -> int:
    """Return the number if it is between first and last.

    :raises InvalidCatalogue: it is not.
    """
    if number < first or (last is not None and number > last):
        allowed = f"at least {first}" if last is None else f"{first} to {last}"
        raise InvalidCatalogue(f"{where}: {name} must be {allowed}; got {number}")
    return number


MAX_WEIGHT = 10

_CODE_FIELDS: dict[str, type] = {"code": str, "is": str, "weight": int, "meaning": str}
_BIT = re.compile(r"bit:(?P<bit>1|2|4|8|16|32|64|128)", re.ASCII)
_LOOPBACK = range(127 << 24, 128 << 24)


def read_code_rule(where: str, table: Any, list_weight: int) -> CodeRule:
    """Parse one entry of the ``codes`` of a list.

    :raises InvalidCatalogue: the entry is invalid.
    """
    table = validate_fields(where, table, _CODE_FIELDS, ("code", "is"))
    code = table["code"]
    where = f"{where} ({code})"
    try:
        code_class = CodeClass(table["is"])
    except ValueError:
        known = ", ".join(known.value for known in CodeClass)
        raise InvalidCatalogue(f"{where}: is must be one of {known}") from None
    is_listing = code_class in (CodeClass.LISTED, CodeClass.POLICY)
    if not is_listing and "weight" in table:
        raise InvalidCatalogue(f"{where}: weight is allowed only for listed and policy")
    weight = validate_range(where, "weight", table.get("weight", list_weight), 0, MAX_WEIGHT)
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
        raise InvalidCatalogue(f"{where}: code must be an address, a range or bit:N") from None
    if first not in _LOOPBACK or last not in _LOOPBACK or first > last:
        raise InvalidCatalogue(f"{where}: code must be in 127.0.0.0/8, from low to high")
    return first, last


def match_rules(rules: Sequence[CodeRule], number: int) -> list[CodeRule]:
    """Return the rules for one return code: a refusal, else the first range or all set bits."""
    matching = [rule for rule in rules if rule.matches(number)]
    refusals = [rule for rule in matching if rule.code_class is CodeClass.REFUSED]
    if refusals:
        return refusals[:1]
    exact = [rule for rule in matching if not rule.bit]
    return exact[:1] or matching


_FIELDS: dict[str, type] = {
    "name": str,
    "operator": str,
    "zone": str,
    "zone_ipv6": str,
    "keyed_zone": str,
    "key": str,
    "kinds": list,
    "weight": int,
    "codes": list,
    "test_listed": str,
    "test_unlisted": str,
    "daily_budget": int,
    "enabled": bool,
    "delist_url": str,
    "access": str,
}
_REQUIRED = ("name", "zone", "kinds", "weight", "codes")

ADDRESS_KINDS = frozenset({TargetKind.IPV4, TargetKind.IPV6})


@cache
def packaged_catalogue_text() -> str:
    """Return the text of the catalogue in the package."""
    return files("mailcheck.checks.dnsbl").joinpath("blocklists.toml").read_text("utf-8")


def parse_catalogue(
    text: str,
    *,
    keys: Mapping[str, str] | None = None,
    disabled: Collection[str] = (),
    allow_special_use: bool = False,
) -> Catalogue:
    """Parse a catalogue file.

    :param keys: keys by zone, which the operator keeps outside the file.
    :param disabled: zones that are not queried.
    :param allow_special_use: accept zones below special-use names such as ``.test``.
    :raises InvalidCatalogue: the file is invalid.
    """
    try:
        file = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidCatalogue(f"the catalogue is not valid TOML: {error}") from None
    data = validate_fields("catalogue", file, {"profiles": dict, "blocklist": list}, ())
    blocklists: dict[str, Blocklist] = {}
    for number, table in enumerate(data.get("blocklist", ()), 1):
        blocklist = _read_blocklist(number, table, keys or {}, allow_special_use)
        if blocklist.zone in blocklists:
            raise InvalidCatalogue(f"blocklist {blocklist.zone}: occurs twice")
        blocklists[blocklist.zone] = blocklist
    for zone in (*(keys or ()), *disabled):
        if zone not in blocklists:
            raise InvalidCatalogue(f"keys and disabled: {zone!r} is not a zone of the catalogue")
    for zone in disabled:
        blocklists[zone] = replace(blocklists[zone], is_enabled=False)
    profiles = data.get("profiles", {})
    return Catalogue(
        blocklists=tuple(blocklists.values()),
        address_profile=_read_profile("address", profiles, blocklists, ADDRESS_KINDS),
        domain_profile=_read_profile("domain", profiles, blocklists, frozenset(TargetKind)),
    )


def _read_profile(
    name: str,
    profiles: Mapping[str, Any],
    blocklists: Mapping[str, Blocklist],
    kinds: Collection[TargetKind],
) -> tuple[Blocklist, ...]:
    where = f"profiles.{name}"
    zones = profiles.get(name, ())
    if not isinstance(zones, Sequence) or len(zones) != PROFILE_SIZE:
        raise InvalidCatalogue(f"{where}: must be a list of {PROFILE_SIZE} zones")
    for zone in zones:
        if zone not in blocklists:
            raise InvalidCatalogue(f"{where}: there is no blocklist for {zone!r}")
        if zones.count(zone) > 1:
            raise InvalidCatalogue(f"{where}: {zone!r} occurs twice")
        if not any(blocklists[zone].supports(kind) for kind in kinds):
            raise InvalidCatalogue(f"{where}: {zone!r} does not support targets of this profile")
    return tuple(blocklists[zone] for zone in zones)


def _read_blocklist(
    number: int, table: Any, keys: Mapping[str, str], allow_special_use: bool
) -> Blocklist:
    where = f"blocklist number {number}"
    if isinstance(table, dict) and isinstance(table.get("zone"), str):
        where = f"blocklist {table['zone']}"
    table = validate_fields(where, table, _FIELDS, _REQUIRED)
    weight = validate_range(where, "weight", table["weight"], 0, MAX_WEIGHT)
    budget = table.get("daily_budget")
    if budget is not None:
        validate_range(where, "daily_budget", budget, 1, None)
    key = keys.get(table["zone"], table.get("key", ""))
    zones = _read_query_zones(where, table, key, allow_special_use)
    codes = enumerate(table["codes"], 1)
    return Blocklist(
        name=table["name"],
        operator=table.get("operator", ""),
        zone=_read_zone(where, table["zone"], allow_special_use),
        query_zones=zones,
        rules=tuple(read_code_rule(f"{where}: code {n}", code, weight) for n, code in codes),
        weight=weight,
        test_listed=_read_test_point(where, table, "test_listed", zones),
        test_unlisted=_read_test_point(where, table, "test_unlisted", zones),
        daily_budget=budget,
        delist_url=table.get("delist_url", ""),
        access=table.get("access", ""),
        is_enabled=table.get("enabled", True),
    )


def _read_zone(where: str, text: str, allow_special_use: bool) -> str:
    try:
        return parse_domain(text, name="zone", allow_special_use=allow_special_use)
    except InvalidParameter as error:
        raise InvalidCatalogue(f"{where}: {error}") from None


def _read_query_zones(
    where: str, table: Mapping[str, Any], key: str, allow_special_use: bool
) -> Mapping[TargetKind, str]:
    zone = table["zone"]
    if key:
        template = table.get("keyed_zone", "")
        if "{key}" not in template:
            raise InvalidCatalogue(f"{where}: a key needs a keyed_zone with {{key}} in it")
        zone = template.replace("{key}", key)
    try:
        kinds = [TargetKind(kind) for kind in table["kinds"]]
    except ValueError:
        known = ", ".join(kind.value for kind in TargetKind)
        raise InvalidCatalogue(f"{where}: kinds must be some of {known}") from None
    if not kinds:
        raise InvalidCatalogue(f"{where}: kinds is empty")
    zones = dict.fromkeys(kinds, _read_zone(where, zone, allow_special_use))
    if "zone_ipv6" in table:
        if TargetKind.IPV6 not in zones:
            raise InvalidCatalogue(f"{where}: zone_ipv6 without ipv6 among its kinds")
        zones[TargetKind.IPV6] = _read_zone(where, table["zone_ipv6"], allow_special_use)
    return zones


def _read_test_point(
    where: str, table: Mapping[str, Any], name: str, zones: Mapping[TargetKind, str]
) -> str:
    text: str = table.get(name, "")
    is_address = parse_ip_address(text) is not None
    if text and is_address is not bool(ADDRESS_KINDS & set(zones)):
        kind = "an IPv4 address" if ADDRESS_KINDS & set(zones) else "a name"
        raise InvalidCatalogue(f"{where}: {name} must be {kind}")
    return text
