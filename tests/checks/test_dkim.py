"""Tests for the DKIM keys of a domain."""

import base64
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dkim.evaluate import (
    MAX_GUESSES,
    DkimVerdict,
    choose_selectors,
    evaluate_dkim,
    load_providers,
)
from mailcheck.checks.dkim.key_record import is_key_record, parse_key_record
from mailcheck.checks.dns_answers import Answers, DnsStatus, Presence
from mailcheck.checks.findings import Severity
from tests.checks.verdicts import ids
from tests.fakes.dkim_keys import (
    EC_P256,
    ED25519,
    ED25519_WRAPPED,
    RSA_512,
    RSA_1024,
    RSA_2048,
    RSA_2048_BARE,
)
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows


@rows(
    (f"v=DKIM1; k=rsa; p={RSA_2048}", "rsa", 2048, True),
    (f"v=DKIM1; p={RSA_1024}", "rsa", 1024, False),
    (f"p={RSA_2048}", "rsa", 2048, True),
    (f"v=DKIM1; p={RSA_2048_BARE}", "rsa", 2048, True),
    (
        f"v=DKIM1; k=RSA; h=sha1:sha256; s=email:x; n=note; p={RSA_2048};",
        "rsa",
        2048,
        True,
    ),
    (f"v=DKIM1;k=rsa;p={RSA_2048[:40]} \t{RSA_2048[40:]}", "rsa", 2048, True),
    (f"v=DKIM1; k=ed25519; p={ED25519}", "ed25519", 256, True),
)
def test_good_keys_are_measured(text: str, key_type: str, bits: int, is_strong: bool) -> None:
    """Type and length are read from the key itself (RFC 6376 3.6.1, RFC 8463)."""
    record = parse_key_record(text)
    assert is_key_record(text)
    assert (record.key_type, record.bits, record.problem) == (key_type, bits, "")
    assert (record.is_usable, record.is_strong) == (True, is_strong)


@rows(
    ("v=DKIM1; k=rsa", "has no key"),
    (f"v=DKIM1; p={RSA_2048[:-9]}", "was truncated"),
    (f"v=DKIM1; p={RSA_2048[:200]}", "was truncated"),
    (f'v=DKIM1; p="{RSA_2048}"', "not Base64"),
    (f"v=DKIM1; p={RSA_512}", "only 512 bits"),
    (f"v=DKIM1; k=ed25519; p={ED25519_WRAPPED}", "44 octets, not 32"),
    (f"v=DKIM1; p={ED25519_WRAPPED}", "it is an Ed25519 key"),
    (f"v=DKIM1; p={EC_P256}", "it is another key"),
    (f"v=DKIM1; k=dsa; p={RSA_2048}", "unknown type 'dsa'"),
    (f"v=DKIM1; h=sha1; p={RSA_2048}", "no longer accept"),
    (f"v=DKIM1; s=other; p={RSA_2048}", "not for mail"),
    ("v=DKIM1; p=" + "A" * 8000, "too large"),
    ("v=DKIM1; p=AAAA", "was truncated"),
)
def test_broken_keys_are_named(text: str, problem: str) -> None:
    """The finding for an unusable key gives the reason."""
    record = parse_key_record(text)
    assert problem in record.problem
    assert not record.is_usable


def test_an_empty_key_is_revoked() -> None:
    """``p=`` revokes the signatures of this selector."""
    record = parse_key_record("v=DKIM1; p=")
    assert (record.is_revoked, record.is_usable, record.problem) == (True, False, "")


def test_flags() -> None:
    """``t=y`` marks a test, and ``t=s`` a key for exactly this domain."""
    record = parse_key_record(f"v=DKIM1; t=y:s; p={RSA_2048}")
    assert (record.is_testing, record.is_strict, record.is_usable) == (True, True, True)


@rows("v=spf1 -all", "hello", "v=DMARC1; p=none", "v=DKIM2; p=", "k=rsa; v=DKIM1", "")
def test_other_records_are_no_keys(text: str) -> None:
    """A wildcard TXT record for another purpose is not a key."""
    assert not is_key_record(text)


@given(st.binary(max_size=300))
def test_any_octets_can_be_read(octets: bytes) -> None:
    """The key parser never fails."""
    for kind in ("rsa", "ed25519"):
        text = f"v=DKIM1; k={kind}; p={base64.b64encode(octets).decode()}"
        record = parse_key_record(text)
        assert record.is_revoked is (octets == b"")


def test_the_table_of_selectors_is_sound() -> None:
    """Every provider has selectors and a source; hosts and selectors are valid DNS names."""
    providers = load_providers()
    assert len({p.name for p in providers}) == len(providers)
    for provider in providers:
        assert provider.selectors
        assert provider.hosts or provider.guess == "always"
        for name in (*provider.selectors, *provider.hosts):
            assert name == name.strip().lower().rstrip(".")


def test_known_selectors_come_first_then_hinted_then_usual() -> None:
    """Known selectors come before hinted ones, and hinted ones before common ones."""
    chosen = choose_selectors(["mine", "google"], ["in1-smtp.messagingengine.com"])
    assert chosen[:5] == ("mine", "google", "fm1", "fm2", "fm3")
    assert "selector1" in chosen
    assert "protonmail" not in chosen
    assert len(set(chosen)) == len(chosen)


def test_guesses_are_bounded() -> None:
    """At most 45 selectors are guessed, however many providers are hinted."""
    every_host = [host for provider in load_providers() for host in provider.hosts]
    assert len(choose_selectors([], every_host)) == MAX_GUESSES
    assert len(choose_selectors(["a", "b"], every_host)) == MAX_GUESSES


GOOD = f"v=DKIM1; p={RSA_2048}"


def judge(
    records: dict[str, str | list[str]],
    *,
    known: tuple[str, ...] = (),
    failing: dict[str | tuple[str, str], DnsStatus] | None = None,
    aliases: dict[str, str] | None = None,
) -> DkimVerdict:
    """Evaluate d.example with these key records by selector."""
    zone = MemoryZone({"d.example": {"A": ["8.8.8.8"]}}, failing=failing)
    for selector, texts in records.items():
        owner = f"{selector}._domainkey.d.example"
        zone.publish(owner, "TXT", *([texts] if isinstance(texts, str) else texts))
    for selector, target in (aliases or {}).items():
        zone.publish(f"{selector}._domainkey.d.example", "CNAME", target)
    selectors = choose_selectors(known, ())
    return settle(zone, lambda answers: evaluate_dkim("d.example", selectors, answers))


def test_a_key_is_found_under_a_usual_selector() -> None:
    """A good key at a common selector is found without a finding."""
    verdict = judge({"selector1": GOOD})
    assert (verdict.presence, verdict.findings) == (Presence.FOUND, ())
    assert [(key.selector, key.record.bits) for key in verdict.usable_keys] == [("selector1", 2048)]


def test_a_key_under_an_unusual_selector_is_not_reported_missing() -> None:
    """If a name exists below ``_domainkey``, a key is not reported as missing."""
    verdict = judge({"q7x9": GOOD})
    assert (verdict.presence, verdict.is_hidden) == (Presence.UNDETERMINED, True)
    assert [(f.id, f.severity) for f in verdict.findings] == [
        ("dkim.hidden", Severity.UNDETERMINED)
    ]


def test_a_known_selector_finds_it() -> None:
    """A selector from the caller or from an observed signature is queried first."""
    verdict = judge({"q7x9": GOOD}, known=("q7x9",))
    assert verdict.presence is Presence.FOUND
    assert verdict.tried[0] == "q7x9"


def test_no_key_at_all_is_absent() -> None:
    """Without ``_domainkey``, no name exists below it (RFC 8020)."""
    verdict = judge({})
    assert (verdict.presence, ids(verdict)) == (Presence.ABSENT, ["dkim.absent"])
    assert verdict.findings[0].severity is Severity.ERROR


@rows(
    *product(
        ["_domainkey.d.example", "s1._domainkey.d.example"],
        [DnsStatus.TIMEOUT, DnsStatus.SERVFAIL, DnsStatus.REFUSED],
    )
)
def test_no_answer_is_never_no_key(silent: str, status: DnsStatus) -> None:
    """While any query has no answer, no key is reported as missing."""
    verdict = judge({}, failing={silent: status})
    assert (verdict.presence, verdict.is_hidden) == (Presence.UNDETERMINED, False)
    assert ids(verdict) == ["dkim.undetermined"]


def test_a_found_key_counts_though_others_gave_no_answer() -> None:
    """A key that was found counts even if other queries fail."""
    verdict = judge({"s2": GOOD}, failing={"s1._domainkey.d.example": DnsStatus.TIMEOUT})
    assert (verdict.presence, verdict.findings) == (Presence.FOUND, ())


@rows(
    ({"s1": f"v=DKIM1; p={RSA_1024}"}, [("dkim.weak-key", Severity.WARNING)]),
    ({"s1": f"v=DKIM1; p={RSA_512}"}, [("dkim.key-too-short", Severity.ERROR)]),
    ({"s1": f"v=DKIM1; p={RSA_512}", "s2": GOOD}, [("dkim.key-too-short", Severity.WARNING)]),
    ({"s1": "v=DKIM1; p="}, [("dkim.key-revoked", Severity.WARNING)]),
    ({"s1": "v=DKIM1; p=", "s2": GOOD}, [("dkim.key-revoked", Severity.NOTE)]),
    ({"s1": "v=DKIM1; p=AAAA"}, [("dkim.key-broken", Severity.ERROR)]),
    ({"s1": f"{GOOD}; t=y"}, [("dkim.testing", Severity.WARNING)]),
    ({"s1": [GOOD, f"{GOOD};"]}, [("dkim.several-keys", Severity.ERROR)] * 2),
    ({"s1": ["some text", GOOD]}, [("dkim.stray-record", Severity.WARNING)]),
    ({"s1": "v=spf1 -all"}, [("dkim.hidden", Severity.UNDETERMINED)]),
    ({"*": "v=spf1 -all"}, [("dkim.hidden", Severity.UNDETERMINED)]),
)
def test_what_is_wrong_is_named(
    records: dict[str, str | list[str]], expected: list[tuple[str, Severity]]
) -> None:
    """Each kind of problem has its own finding, which is more severe without another key."""
    verdict = judge(records)
    assert [(finding.id, finding.severity) for finding in verdict.findings] == expected


def test_a_test_flag_is_removed_in_the_record_to_publish() -> None:
    """The proposed record has the same key without ``t=y``."""
    (finding,) = judge({"s1": f"{GOOD}; t=y:s"}).findings
    assert finding.proposed is not None
    assert finding.proposed.name == "s1._domainkey.d.example"
    assert finding.proposed.value == f"{GOOD}; t=s"


def test_a_wildcard_is_one_key_not_forty() -> None:
    """A parked domain revokes all selectors with one wildcard record."""
    verdict = judge({"*": "v=DKIM1; p=", "s1": GOOD})
    assert [(key.selector, key.is_usable) for key in verdict.keys] == [("s1", True), ("*", False)]
    assert "dkim.wildcard" in ids(verdict)


def test_an_alias_to_nowhere_is_named() -> None:
    """A CNAME whose target has no key is reported. This incomplete setup is common."""
    verdict = judge({}, aliases={"selector1": "selector1-d-example._domainkey.t.example."})
    assert verdict.dangling == (("selector1", "selector1-d-example._domainkey.t.example"),)
    assert ids(verdict) == ["dkim.dangling"]


def test_all_guesses_leave_at_once() -> None:
    """All selectors, ``_domainkey`` itself and the wildcard are queried in one round.

    Without a key, two names where one could have been misplaced follow.
    """
    zone = MemoryZone({"d.example": {"A": ["8.8.8.8"]}})
    runs: list[int] = []

    def evaluate(answers: Answers) -> DkimVerdict:
        runs.append(len(zone.asked))
        return evaluate_dkim("d.example", choose_selectors((), ()), answers)

    verdict = settle(zone, evaluate)
    assert runs == [0, len(verdict.tried) + 2, len(verdict.tried) + 4]
