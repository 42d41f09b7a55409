"""Tests for the repair of DMARC records that receivers cannot read."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dmarc.evaluate import evaluate_dmarc
from mailcheck.checks.dmarc.record import (
    is_policy_record,
    looks_like_dmarc,
    parse_policy_record,
    repair_policy_record,
)
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

MEANT = "v=DMARC1; p=reject; rua=mailto:d@x.example"

SPOILT = [
    " v=DMARC1; p=reject; rua=mailto:d@x.example",
    "\tv=DMARC1; p=reject; rua=mailto:d@x.example",
    "v=DMARC1 p=reject rua=mailto:d@x.example",
    "v=DMARC1\\; p=reject\\; rua=mailto:d@x.example",
    "v=DMARC1, p=reject, rua=mailto:d@x.example",
    "v=DMARC1: p=reject: rua=mailto:d@x.example",
    "v=DMARC1|p=reject|rua=mailto:d@x.example",
    "v=DMARC1; P=REJECT; RUA=mailto:d@x.example",
    "V=DMARC1; P=Reject; RUA=mailto:d@x.example",
    "v=DMARC1\u00a0p=reject\u00a0rua=mailto:d@x.example",
    "v=DMARC1;p=rejectrua=mailto:d@x.example",
    "v=DMARC1p=rejectrua=mailto:d@x.example",
    "\u201cv=DMARC1; p=reject; rua=mailto:d@x.example\u201d",
    "v:DMARC1; p:reject; rua:mailto:d@x.example",
    "v=DMARC1; p=reject; rua=d@x.example",
    "v=DMARC1; p=reject; rua=mailto: d@x.example",
    "v=DMARC1; p=reject; rua=<mailto:d@x.example>",
    "v=DMARC1; p=reject; rua=mailto:<d@x.example>",
    "v=DMARC1; p=reject; rua=mailto://d@x.example",
    "v=DMARC1; p=rejct; rua=mailto:d@x.example",
    "p=reject; rua=mailto:d@x.example; v=DMARC1",
    "p=reject; rua=mailto:d@x.example",
    "DMARC1; p=reject; rua=mailto:d@x.example",
    '_dmarc.x.example. IN TXT "v=DMARC1; p=reject; rua=mailto:d@x.example"',
]


@rows(*SPOILT)
def test_the_intended_record_is_kept(text: str) -> None:
    """The proposed record keeps the policy and the addresses of an unreadable one."""
    zone = MemoryZone({})
    zone.publish("_dmarc.x.example", "TXT", text)
    verdict = settle(zone, lambda answers: evaluate_dmarc("x.example", answers))
    offered = {one.proposed.value for one in verdict.findings if one.proposed is not None}
    assert offered == {MEANT}
    zone.publish("_dmarc.x.example", "TXT", MEANT)
    after = settle(zone, lambda answers: evaluate_dmarc("x.example", answers))
    assert after.findings == ()


def test_addresses_of_a_repeated_tag_are_kept() -> None:
    """The repaired record has the addresses of both tags."""
    text = "v=DMARC1 p=reject rua=mailto:a@x.example rua=mailto:b@x.example"
    repaired = "v=DMARC1; p=reject; rua=mailto:a@x.example,mailto:b@x.example"
    assert repair_policy_record(text) == repaired


@rows(
    "v=DMARC1 p=none reject",
    "v=DMARC1, p=none, p=reject",
    "v=DMARC1 strictly reject",
    "v=DMARC1 p=block rua=mailto:d@x.example",
    "v=dmarc1; p=reject; rua=mailto:d@x.example.comp=none",
    "v=DMARC1 " + "p=reject " * 1_000,
)
def test_ambiguous_records_get_no_proposal(text: str) -> None:
    """No record is proposed if the policy or an address would be a guess."""
    assert repair_policy_record(text) is None
    zone = MemoryZone({})
    zone.publish("_dmarc.x.example", "TXT", text)
    verdict = settle(zone, lambda answers: evaluate_dmarc("x.example", answers))
    assert {one.id for one in verdict.findings} <= {"dmarc.unreadable", "dmarc.absent"}
    assert all(one.proposed is None for one in verdict.findings if one.id == "dmarc.unreadable")


@rows(
    (" v=DMARC1; p=none", "begins with a space"),
    ("v=DMARC1\\; p=none", "backslashes"),
    ("'v=DMARC1; p=none'", "quotation marks"),
    ("v=DMARC1, p=none", "commas"),
    ("v=DMARC1 p=none", "separated by spaces"),
    ("\ufeffv=DMARC1; p=none", "invisible"),
    ("V=DMARC1; p=none", "capital letters"),
)
def test_the_mistake_is_named(text: str, mistake: str) -> None:
    """The finding says what is wrong with the text."""
    zone = MemoryZone({})
    zone.publish("_dmarc.x.example", "TXT", text)
    (finding,) = settle(zone, lambda answers: evaluate_dmarc("x.example", answers)).findings
    assert finding.id == "dmarc.unreadable"
    assert mistake in finding.meaning


@rows(
    ("adkim=strict; aspf=Relaxed", "adkim=s; aspf=r"),
    ("rua=mailto:d@ex\u00e4mple.example", "rua=mailto:d@xn--exmple-cua.example"),
    ("rua=mailto:mailto@x.example", "rua=mailto:mailto@x.example"),
)
def test_values_are_written_as_receivers_read_them(written: str, meant: str) -> None:
    """Words for modes become letters, and domains of other scripts become A-labels."""
    assert repair_policy_record(f"v=DMARC1; p=reject; {written}") == f"v=DMARC1; p=reject; {meant}"


@rows("mailto://d@x.example", "d@x.example", "mailto:<d@x.example>")
def test_an_offered_address_takes_no_place_of_a_misspelt_one(rua: str) -> None:
    """The proposed record keeps a misspelt address, corrected, instead of the suggested one."""
    zone = MemoryZone({"_dmarc.x.example": {"TXT": [f'"v=DMARC1; p=reject; rua={rua}"']}})
    verdict = settle(zone, lambda answers: evaluate_dmarc("x.example", answers, "r@here.example"))
    offered = {one.id: one.proposed and one.proposed.value for one in verdict.findings}
    assert offered == {"dmarc.no-reports": MEANT, "dmarc.syntax": MEANT}


TAGS = st.permutations(
    ["sp=quarantine", "np=reject", "adkim=s", "aspf=r", "ruf=mailto:f@y.example", "fo=1:d:s"]
).map(lambda tags: tags[:3])


@given(
    st.sampled_from(["none", "quarantine", "reject", "Reject", "NONE"]),
    # The parser reads at most 20 URIs of a tag.
    st.lists(
        st.sampled_from(["a@x.example", "b@y.example!10m", "c+d@z.example"]),
        min_size=1,
        max_size=20,
    ),
    TAGS,
    st.sampled_from([" ", ", ", "\\; ", ": ", " | ", "\t", "\u00a0", "\uff1b"]),
)
def test_no_separator_costs_a_policy_or_an_address(
    policy: str, addresses: list[str], tags: list[str], separator: str
) -> None:
    """The repaired record is the same for any separator of the tags."""
    rua = ",".join(f"mailto:{one}" for one in addresses)
    pieces = ["v=DMARC1", f"p={policy}", f"rua={rua}", *tags]
    text = separator.join(pieces)
    repaired = repair_policy_record(text)
    assert repaired is not None
    assert looks_like_dmarc(text)
    assert is_policy_record(repaired)
    meant = parse_policy_record("; ".join(pieces))
    record = parse_policy_record(repaired)
    said = ("policy", "subdomain_policy", "nonexistent_policy", "has_strict_dkim", "ruf")
    assert [getattr(record, name) for name in said] == [getattr(meant, name) for name in said]
    assert set(record.rua) == set(meant.rua)
    assert not record.problems


@given(st.text(alphabet='vpsadkimfruDMARC1=;:, @.!noe\\"', max_size=150))
def test_a_repaired_record_needs_no_repair(text: str) -> None:
    """Any text has no repair, or a repair that receivers can read."""
    repaired = repair_policy_record(text)
    if repaired is not None:
        assert is_policy_record(repaired)
        assert repair_policy_record(repaired) == repaired
        found = set(re.findall(r"[a-z0-9]+@[a-z0-9]+(?:\.[a-z0-9]+)*", text))
        assert all(one.split("@")[1] in repaired for one in found)
