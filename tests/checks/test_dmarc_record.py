"""Tests for the parser of DMARC records."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dmarc.evaluate import change_tags
from mailcheck.checks.dmarc.record import (
    Policy,
    is_policy_record,
    looks_like_dmarc,
    parse_policy_record,
)
from tests.linear import assert_linear
from tests.table import rows

RUF = "ruf=mailto:f@x.example"


def test_a_full_record_is_read() -> None:
    """Every tag of RFC 9989 is parsed."""
    record = parse_policy_record(
        "v=DMARC1; p=reject; sp=Quarantine; np=none; psd=n; t=y; adkim=s; aspf=S; fo=1:d:s;"
        " rua=mailto:a@x.example, mailto:b@Y.example.!10m; ruf=mailto:c@z.example"
    )
    assert record.policy is Policy.REJECT
    assert record.subdomain_policy is Policy.QUARANTINE
    assert record.nonexistent_policy is Policy.NONE
    assert (record.psd, record.is_testing) == ("n", True)
    assert (record.has_strict_dkim, record.has_strict_spf) == (True, True)
    assert [uri.host for uri in (*record.rua, *record.ruf)] == [
        "x.example",
        "y.example",
        "z.example",
    ]
    assert record.problems == ()
    assert record.is_usable


def test_defaults() -> None:
    """Omitted tags have their defaults: relaxed alignment, no test, psd unknown."""
    record = parse_policy_record("v=DMARC1;p=none")
    assert (record.psd, record.is_testing, record.has_strict_dkim) == ("u", False, False)
    assert (record.rua, record.requests_reports) == ((), False)


@rows(
    ("v=DMARC1; p=none", True, False),
    ("v=DMARC1", False, True),
    ("v=DMARC1; p=block", False, True),
    ("v=DMARC1; p=reject; sp=block", False, True),
    ("v=DMARC1; rua=mailto:a@x.example", True, True),
    ("v=DMARC1; p=block; rua=mailto:a@x.example", True, True),
    ("v=DMARC1; p=block; rua=a@x.example", False, True),
    ("v=DMARC1; rua=mailto:a@x.example; p=reject", True, False),
)
def test_a_bad_policy_counts_as_none_only_with_a_report_address(
    text: str, is_usable: bool, has_bad_policy: bool
) -> None:
    """A record without a valid policy may still apply (RFC 9989 4.10.1)."""
    record = parse_policy_record(text)
    assert (record.is_usable, record.has_bad_policy) == (is_usable, has_bad_policy)


@rows(
    ("adkim=x", "adkim=x"),
    ("t=1", "t=1"),
    ("psd=maybe", "psd=maybe"),
    ("np=drop", "np=drop"),
    ("rua=me@x.example", "me@x.example"),
    ("rua=mailto:", "mailto:"),
    ("rua=https://x.example/in", "https://x.example/in"),
    ("color=red", "color"),
    ("oops", "oops"),
    ("p=none", "is repeated"),
)
def test_what_receivers_ignore_is_a_problem(tags: str, problem: str) -> None:
    """An invalid value is reported, and its default applies."""
    record = parse_policy_record(f"v=DMARC1; p=reject; {tags}")
    assert len(record.problems) == 1
    assert problem in record.problems[0]
    assert record.policy is Policy.REJECT


@rows("0", "1", "d:s", "1:d:s", "s:0", "D : S")
def test_options_for_failure_reports(options: str) -> None:
    """Any of 0 or 1, d and s is valid in any order (RFC 9989 4.7)."""
    assert parse_policy_record(f"v=DMARC1; p=none; {RUF}; fo={options}").problems == ()


@rows("2", "0:1", "d:d", "1:", "all", "")
def test_invalid_options_for_failure_reports(options: str) -> None:
    """Invalid options are a problem only if failure reports are requested."""
    (problem,) = parse_policy_record(f"v=DMARC1; p=none; {RUF}; fo={options}").problems
    assert f"fo={options}" in problem
    assert parse_policy_record(f"v=DMARC1; p=none; fo={options}").problems == ()


def test_obsolete_tags_are_no_problems() -> None:
    """``pct``, ``rf`` and ``ri`` are only noted as obsolete (RFC 9989)."""
    record = parse_policy_record("v=DMARC1; p=reject; pct=20; rf=afrf; ri=3600")
    assert (record.obsolete_tags, record.problems) == (("pct", "rf", "ri"), ())


@rows(
    ("v=DMARC1; p=none", True, False),
    ("v=DMARC1", True, False),
    ("v=dmarc1; p=none", False, True),
    ("v=DMARC 1; p=none", False, True),
    ("p=none; v=DMARC1", False, True),
    ('"v=DMARC1; p=none"', False, True),
    ("v=spf1 -all", False, False),
    ("hello", False, False),
)
def test_the_version_decides(text: str, is_record: bool, is_near_miss: bool) -> None:
    """A record begins with exactly ``v=DMARC1``; similar texts are recognized."""
    assert (is_policy_record(text), looks_like_dmarc(text)) == (is_record, is_near_miss)


@rows(
    ("v=DMARC1;p=none", {"p": "quarantine"}, "v=DMARC1; p=quarantine"),
    ("v=DMARC1; sp=none; p=none", {"p": "reject"}, "v=DMARC1; p=reject; sp=none"),
    ("v=DMARC1; p=none; sp=none", {"sp": None}, "v=DMARC1; p=none"),
    ("v=DMARC1; p=none; pct=5", {}, "v=DMARC1; p=none"),
    (
        "v=DMARC1; p=none",
        {"rua": "mailto:a@x.example"},
        "v=DMARC1; p=none; rua=mailto:a@x.example",
    ),
)
def test_a_record_is_written_anew(text: str, changes: dict[str, str | None], expected: str) -> None:
    """The proposed record differs only in the changed tags."""
    assert change_tags(text, **changes) == expected


@given(st.text(alphabet="vpsadkimfruDMARC1=;:, @.!noe", max_size=150))
def test_any_text_can_be_read(text: str) -> None:
    """The parser never fails, and a changed text is a record."""
    record = parse_policy_record("v=DMARC1;" + text)
    assert is_policy_record(change_tags(record.text, p="none"))


def test_hostile_records_are_read_in_linear_time() -> None:
    """Any text is read in linear time."""
    for piece in ("rua=mailto:a@b,", "a", ";", "a=", "mailto:", "!1", "@", ",", "rua=" + "x:" * 50):
        assert_linear(parse_policy_record, piece, "v=DMARC1; p=none; ")
        assert_linear(parse_policy_record, piece, "v=DMARC1; p=none; rua=")
