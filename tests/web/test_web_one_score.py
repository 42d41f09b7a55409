"""A domain has one score: the same advice gains the same in each check that shows it."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from tests.house import config_in_memory
from tests.table import rows
from tests.web.checking import checking_house, zone_with

DOMAIN = "d.example"
MX, ADDRESS = {"MX": ["10 mx.d.example."]}, {"A": ["8.8.4.9"]}
HOST = {"mx.d.example": {"A": ["8.8.4.1"]}}
PATHS = ("/tools/mx-check", "/tools/domain", "/tools/reputation")
POLICY = "_dmarc.d.example"
NO_MAIL = {"TXT": ["v=spf1 -all"]}


def gains_in(value: Any) -> Iterator[tuple[str, str, int]]:
    """Yield the id, the record and the gain of all findings in a response."""
    if isinstance(value, list):
        for one in value:
            yield from gains_in(one)
    elif isinstance(value, dict):
        if "id" in value and "gain" in value:
            yield value["id"], str(value.get("record")), value["gain"]
        for one in value.values():
            yield from gains_in(one)


@rows(
    {DOMAIN: MX, **HOST},
    {DOMAIN: {**MX, "TXT": ["v=spf1 mx"]}, **HOST},
    {DOMAIN: {**MX, "TXT": ["v=spf1 mx -all", "v=spf1 a -all"], **ADDRESS}, **HOST},
    {DOMAIN: {**MX, "TXT": ["v=spf1;mx;-all"]}, POLICY: {"TXT": ["v=DMARC1"]}, **HOST},
    {DOMAIN: {**MX, "TXT": ["v=spf1 +all"]}, POLICY: {"TXT": ["v=DMARC1; p=none"]}, **HOST},
    {DOMAIN: {**ADDRESS, "TXT": ["v=spf1 a -all"]}},
    {DOMAIN: {**ADDRESS, **NO_MAIL}, POLICY: {"TXT": ["v=DMARC1; p=reject"]}},
    {DOMAIN: {**ADDRESS, **NO_MAIL, "MX": ["0 ."]}},
    {DOMAIN: NO_MAIL, POLICY: {"TXT": ["v=DMARC1; p=quarantine"]}},
    {DOMAIN: {"MX": ["0 ."]}, POLICY: {"TXT": ["v=DMARC1; p=reject"]}},
)
def test_one_gain(zone: Any) -> None:
    """Each record that several checks propose for a finding gains the same in all of them."""
    with closing(checking_house(zone_with(zone), config_in_memory())) as house:
        shown: dict[tuple[str, str], dict[str, int]] = {}
        for path in PATHS:
            found = house.get(f"{path}?domain={DOMAIN}")
            assert found.status == 200, found.body
            for name, record, gain in gains_in(found.json):
                shown.setdefault((name, record), {})[path] = gain
        assert [one for one in shown.items() if len(set(one[1].values())) > 1] == []
        names = {path: {name for (name, _), one in shown.items() if path in one} for path in PATHS}
        assert names["/tools/mx-check"] <= names["/tools/domain"]
