"""Tests for the catalogue of blocklists and its errors."""

import json
import tomllib
from typing import Any

import pytest

from mailcheck.checks.dnsbl.catalogue import (
    Blocklist,
    CodeClass,
    InvalidCatalogue,
    TargetKind,
    packaged_catalogue_text,
    parse_catalogue,
)
from tests.table import rows

NAME_ZONES = 12


def find(zone: str, **options: Any) -> Blocklist:
    """Return one list of the packaged catalogue."""
    catalogue = parse_catalogue(packaged_catalogue_text(), **options)
    return next(blocklist for blocklist in catalogue.blocklists if blocklist.zone == zone)


def test_the_packaged_catalogue_has_two_profiles_of_exactly_32() -> None:
    """Addresses have 32 zones; domains have 12 name zones and 20 address zones."""
    catalogue = parse_catalogue(packaged_catalogue_text())
    assert len(catalogue.blocklists) == 44
    assert len(catalogue.address_profile) == len(catalogue.domain_profile) == 32
    assert all(b.supports(TargetKind.IPV4) for b in catalogue.address_profile)
    by_name = [b for b in catalogue.domain_profile if b.supports(TargetKind.DOMAIN)]
    assert by_name == list(catalogue.domain_profile[:NAME_ZONES])
    assert catalogue.domain_profile[NAME_ZONES:] == catalogue.address_profile[:20]


def test_every_list_has_rules_a_weight_and_a_way_out() -> None:
    """Each list has a listing rule, a weight and a page for removal."""
    for blocklist in parse_catalogue(packaged_catalogue_text()).blocklists:
        classes = {rule.code_class for rule in blocklist.rules}
        assert classes & {CodeClass.LISTED, CodeClass.POLICY}, blocklist.zone
        assert 0 <= blocklist.weight <= 10
        assert blocklist.delist_url.startswith("http")
        assert blocklist.is_enabled


def test_facts_of_single_lists() -> None:
    """The catalogue has the special rules of single lists."""
    zen = find("zen.spamhaus.org")
    assert (zen.daily_budget, zen.weight) == (300_000, 10)
    assert {rule.code: rule.weight for rule in zen.rules}["127.0.0.10"] == 6
    assert find("hostkarma.junkemailfilter.com").test_unlisted == ""
    sem = find("bl.spameatingmonkey.net").query_zones
    assert sem[TargetKind.IPV6] == "bl.ipv6.spameatingmonkey.net"
    assert find("uribl.swinog.ch").test_listed == ""
    assert find("bl.nordspam.com").daily_budget == 10_000
    assert (
        sum(
            b.supports(TargetKind.IPV6)
            for b in parse_catalogue(packaged_catalogue_text()).blocklists
        )
        == 9
    )


def test_a_key_changes_what_is_asked_and_is_never_shown() -> None:
    """The keyed zone is queried, but the public zone is shown."""
    zen = find("zen.spamhaus.org", keys={"zen.spamhaus.org": "s3cret"})
    assert zen.query_zones[TargetKind.IPV4] == "s3cret.zen.dq.spamhaus.net"
    assert zen.zone == "zen.spamhaus.org"
    assert "s3cret" not in repr(zen)


def test_a_list_can_be_switched_off() -> None:
    """A disabled list stays in its profile."""
    catalogue = parse_catalogue(packaged_catalogue_text(), disabled=["psbl.surriel.com"])
    disabled = [b.zone for b in catalogue.address_profile if not b.is_enabled]
    assert disabled == ["psbl.surriel.com"]


def write_value(value: Any) -> str:
    """Write a value as TOML, which equals JSON except for tables."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {write_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write_value, value)) + "]"
    return json.dumps(value)


def write_toml(data: dict[str, Any]) -> str:
    """Write a catalogue."""
    return "".join(f"{name} = {write_value(value)}\n" for name, value in data.items())


def test_the_writer_of_these_tests_is_faithful() -> None:
    """A written catalogue equals the parsed one."""
    data = tomllib.loads(packaged_catalogue_text())
    assert parse_catalogue(write_toml(data)) == parse_catalogue(packaged_catalogue_text())


ZEN = "blocklist zen.spamhaus.org"


def code(code: str, kind: str = "listed", **more: int) -> dict[str, Any]:
    """Return the codes of a list with one code."""
    return {"codes": [{"code": code, "is": kind, **more}]}


@rows(
    ({"color": "red"}, f"{ZEN}: unknown field 'color'"),
    ({"weight": "high"}, f"{ZEN}: weight must be an integer"),
    ({"weight": True}, f"{ZEN}: weight must be an integer"),
    ({"weight": 11}, f"{ZEN}: weight must be 0 to 10; got 11"),
    ({"name": None}, f"{ZEN}: name is missing"),
    ({"zone": None}, "blocklist number 1: zone is missing"),
    ({"zone": "zen spamhaus"}, "blocklist zen spamhaus: zone 'zen spamhaus' is not a domain"),
    ({"kinds": []}, f"{ZEN}: kinds is empty"),
    ({"kinds": ["ipv5"]}, f"{ZEN}: kinds must be some of ipv4, ipv6, domain"),
    ({"kinds": ["ipv4"], "zone_ipv6": "z.example"}, f"{ZEN}: zone_ipv6 without ipv6"),
    ({"daily_budget": 0}, f"{ZEN}: daily_budget must be at least 1; got 0"),
    ({"enabled": "no"}, f"{ZEN}: enabled must be true or false"),
    ({"key": "k", "keyed_zone": "z.example"}, f"{ZEN}: a key needs a keyed_zone"),
    ({"key": "a b"}, f"{ZEN}: zone 'a b.zen"),
    ({"test_listed": "test"}, f"{ZEN}: test_listed must be an IPv4 address"),
    ({"codes": ["127.0.0.2"]}, f"{ZEN}: code 1: is not a table"),
    ({"codes": [{"code": "127.0.0.2"}]}, f"{ZEN}: code 1: is is missing"),
    (
        code("127.0.0.2", "bad"),
        f"{ZEN}: code 1 (127.0.0.2): is must be one of refused, listed, policy, ignored",
    ),
    (code("127.0.0.300"), f"{ZEN}: code 1 (127.0.0.300): code must be an address"),
    (code("bit:3"), f"{ZEN}: code 1 (bit:3): code must be an address"),
    (code("127.0.0.9-127.0.0.2"), f"{ZEN}: code 1 (127.0.0.9-127.0.0.2): code must be in 127.0.0"),
    (code("10.0.0.1"), f"{ZEN}: code 1 (10.0.0.1): code must be in 127.0.0.0/8"),
    (
        code("127.0.0.1", "ignored", weight=1),
        f"{ZEN}: code 1 (127.0.0.1): weight is allowed only for listed",
    ),
)
def test_an_error_names_the_entry(changes: dict[str, Any], error: str) -> None:
    """An error names the wrong entry and the reason."""
    data = tomllib.loads(packaged_catalogue_text())
    entry = next(e for e in data["blocklist"] if e["zone"] == "zen.spamhaus.org") | changes
    changed = {name: value for name, value in entry.items() if value is not None}
    data["blocklist"][0] = changed
    with pytest.raises(InvalidCatalogue) as caught:
        parse_catalogue(write_toml(data))
    assert str(caught.value).startswith(error)


@rows(
    ("address", lambda zones: zones[:-1], "profiles.address: must be a list of 32 zones"),
    ("address", lambda zones: zones[:-1] + zones[:1], "occurs twice"),
    ("address", lambda zones: [*zones[:-1], "no.example"], "there is no blocklist for 'no.ex"),
    ("address", lambda zones: [*zones[:-1], "dbl.spamhaus.org"], "does not support targets"),
    ("domain", lambda zones: [], "profiles.domain: must be a list of 32 zones"),
)
def test_profiles_are_checked(profile: str, change: Any, error: str) -> None:
    """A profile has exactly 32 known zones, each once, that support its targets."""
    data = tomllib.loads(packaged_catalogue_text())
    data["profiles"][profile] = change(data["profiles"][profile])
    with pytest.raises(InvalidCatalogue, match=error.replace(".", r"\.")):
        parse_catalogue(write_toml(data))


@rows(
    ("x = ?", {}, "not valid TOML: .*line 1"),
    ("colour = 1", {}, "unknown field 'colour'"),
    ("", {}, "profiles.address"),
    (None, {"keys": {"no.example": "k"}}, "'no.example' is not a zone of the catalogue"),
    (None, {"disabled": ["no.example"]}, "'no.example' is not a zone of the catalogue"),
)
def test_other_errors(text: str | None, options: dict[str, Any], error: str) -> None:
    """Broken TOML, unknown sections and unknown zones are errors."""
    with pytest.raises(InvalidCatalogue, match=error):
        parse_catalogue(packaged_catalogue_text() if text is None else text, **options)


def test_zones_for_tests_are_allowed_on_request() -> None:
    """A test zone may replace a list."""
    text = packaged_catalogue_text().replace("psbl.surriel.com", "psbl.test")
    with pytest.raises(InvalidCatalogue, match=r"ends in \.test"):
        parse_catalogue(text)
    assert len(parse_catalogue(text, allow_special_use=True).address_profile) == 32
