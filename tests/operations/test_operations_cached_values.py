"""Cached values: a decoded value equals the stored one, or is missing."""

import re
from base64 import b64encode
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import msgspec
import pytest
from msgspec.structs import asdict, replace
from twisted.internet.task import Clock

from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.cluster.local import LocalMemory
from mailcheck.core.memory.keys import key_of
from mailcheck.operations.cached_values import CachedValues, reader_of
from mailcheck.operations.domains.compute_reputation import Reputation, ReputationQuery
from tests.fakes.memory_zone import MemoryZone
from tests.house import run
from tests.table import rows
from tests.web.checking import GOOD, checking_house, zone_with

LONG = 60_000  # milliseconds


def written(plain: Any) -> str:
    """Encode a value as cached values are encoded."""
    return b64encode(msgspec.msgpack.encode(plain)).decode()


def kept(memory: LocalMemory, kind: Any = StarttlsProbe) -> CachedValues[Any]:
    """Return the cached values as another daemon sees them."""
    return CachedValues(memory, "kind", kind)


def shown(value: object) -> str:
    """Show a value with the types of its parts. Members of sets are sorted."""
    return re.sub(
        r"(?<=set\(\{).*?(?=\}\))", lambda found: str(sorted(found[0].split(", "))), repr(value)
    )


def test_reputations() -> None:
    """A reputation is decoded with all its evidence, including networks and addresses."""
    zones = [zone_with({}), MemoryZone({}), MemoryZone(GOOD)]
    zones[2].publish("good.example", "TXT", "v=spf1 ip4:8.8.4.0/24 ip6:2606::/32 a:x.example ~all")
    addresses = (IPv4Address("8.8.4.1"), IPv6Address("2606:4700::1"))
    for zone in zones:
        house = checking_house(zone)
        for query in (
            ReputationQuery("good.example"),
            ReputationQuery("good.example", ("a", "b"), addresses),
        ):
            found = run(house.assembly.checks.reputation.compute(query))
            memory = LocalMemory(house.clock)
            run(kept(memory, Reputation).put("a", found, LONG))
            other = kept(memory, Reputation)
            assert [run(other.get("a")) for _ in range(2)] == [found, found]
            assert shown(run(other.get("a"))) == shown(found)
        house.close()


@rows("", "{", "Ã", "AA", "gA==", *map(written, ([], None, "a", {"exchange": "a"}, {1: 2})))
def test_invalid_text_counts_as_missing(text: str) -> None:
    """Text from another version, or invalid text, counts as missing."""
    memory = LocalMemory(Clock())
    memory.keep(key_of("kind", "", "a"), text, LONG)
    assert run(kept(memory).get("a")) is None


def test_values_of_another_shape() -> None:
    """A value with an unknown field, or a field of another type, comes from another version."""
    memory = LocalMemory(Clock())
    probe = StarttlsProbe("mx.example", ProbeOutcome.ENCRYPTED, "TLSv1.3", True, False)
    run(kept(memory).put("a", probe, LONG))
    assert run(kept(memory).get("a")) == probe
    plain = {**asdict(probe), "outcome": probe.outcome.value}
    memory.keep(key_of("kind", "", "a"), written(plain), LONG)
    assert run(kept(memory).get("a")) == probe
    odd = ({"more": 1}, {"tls_version": 13}, {"outcome": "new word"}, {"is_name_matching": None})
    for change in odd:
        memory.keep(key_of("kind", "", "a"), written({**plain, **change}), LONG)
        assert run(kept(memory).get("a")) is None
    run(kept(memory).put("a", replace(probe, exchange="other"), LONG))
    assert run(kept(memory).get("a")).exchange == "other"


class Odd(msgspec.Struct, frozen=True):
    """Has a field that cannot be cached."""

    pairs: Mapping[str, "set[int]"]


def test_types_that_cannot_be_cached_are_rejected_at_once() -> None:
    """A type that could not be decoded raises `TypeError` when it is first used."""
    with pytest.raises(TypeError, match="cannot be cached"):
        reader_of(int | str)
    with pytest.raises(TypeError, match="cannot be cached"):
        reader_of(Odd)({"pairs": {}})
