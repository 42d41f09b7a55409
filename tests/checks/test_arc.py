"""Tests for the verification of ARC chains."""

import pickle
from dataclasses import replace
from functools import partial

import dkim  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.arc import (
    MAX_SETS,
    ArcSeal,
    describe_arc,
    evaluate_arc_keys,
    read_chain,
    verify_chain,
)
from mailcheck.checks.dns_answers import Answers, DnsStatus
from mailcheck.checks.findings import Severity
from tests.fakes.mail_signer import ED25519, MAIL, RSA, RSA_768, RSA_1024
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.fakes.signature_verifier import KEY_RECORDS, RECEIVED_AT, verify_arc_chain, zone_of
from tests.table import rows

LIST = replace(RSA, domain="list.example")
THREE = RSA.seal(LIST.seal(RSA_1024.seal(MAIL), 2), 3)
KEYS = KEY_RECORDS | {LIST.key_name: LIST.key_record}


def test_a_mail_without_arc_has_none() -> None:
    """A mail without ARC causes no query and no finding."""
    arc = verify_arc_chain(MAIL)
    assert (arc.result, arc.count, arc.seals) == (AuthResult.NONE, 0, ())
    assert describe_arc(arc) == ()


def test_a_chain_passes_and_names_its_sealers() -> None:
    """Each seal covers all sets before it; the oldest set comes first."""
    arc = verify_arc_chain(THREE, zone_of(KEYS))
    assert arc.result is AuthResult.PASS
    assert arc.seals == (
        ArcSeal(1, "sender.example", "s1024", "none"),
        ArcSeal(2, "list.example", "s1", "pass"),
        ArcSeal(3, "sender.example", "s1", "pass"),
    )
    assert "sealed by sender.example, list.example" in arc.explanation
    (finding,) = describe_arc(arc)
    assert finding.severity is Severity.NOTE


def test_dkimpy_agrees() -> None:
    """Dkimpy's own validator agrees about a valid and a broken chain."""

    def find_key(name: bytes, timeout: float = 0) -> bytes:
        return KEYS[name.decode().rstrip(".")].encode()

    assert dkim.arc_verify(THREE, dnsfunc=find_key)[0] == b"pass"
    broken = THREE.replace(b"spf=pass", b"spf=fail")
    assert dkim.arc_verify(broken, dnsfunc=find_key)[0] == b"fail"
    assert verify_arc_chain(broken, zone_of(KEYS)).result is AuthResult.FAIL


def test_ed25519_seals_verify() -> None:
    """Ed25519 seals verify as in DKIM (RFC 8463)."""
    assert verify_arc_chain(ED25519.seal(MAIL)).result is AuthResult.PASS


@rows(
    (b"Hello  Bob", b"Hello Rob", "newest ARC set: The body was changed"),
    (b"Subject: Hello", b"Subject: Hallo", "newest ARC set: The body is unchanged"),
    (b"i=3; mx.example; spf=pass", b"i=3; mx.example; spf=none", "Seal 3 of the ARC chain"),
    (b"i=1; mx.example; spf=pass", b"i=1; mx.example; spf=none", "Seal 3 of the ARC chain"),
)
def test_what_was_altered_is_named(old: bytes, new: bytes, words: str) -> None:
    """The newest message signature and every seal must verify (RFC 8617 5.2)."""
    altered = THREE.replace(old, new)
    assert altered != THREE
    arc = verify_arc_chain(altered, zone_of(KEYS))
    assert arc.result is AuthResult.FAIL
    assert words in arc.explanation
    (finding,) = describe_arc(arc)
    assert (finding.id, finding.severity) == ("arc.broken", Severity.NOTE)


def test_changes_before_the_newest_set_are_what_arc_is_for() -> None:
    """A list may change a mail that it then seals: older message signatures may fail."""
    forwarded = LIST.seal(RSA.seal(MAIL).replace(b"Subject: ", b"Subject: [list] "), 2)
    assert verify_arc_chain(forwarded, zone_of(KEYS)).result is AuthResult.PASS


def test_a_chain_that_was_sealed_as_broken_stays_broken() -> None:
    """``cv=fail`` ends a chain."""
    arc = verify_arc_chain(LIST.seal(RSA.seal(MAIL), 2, "fail"), zone_of(KEYS))
    assert arc.result is AuthResult.FAIL
    assert "list.example sealed the ARC chain as broken" in arc.explanation


@rows(
    (RSA.seal(MAIL, 1, "pass"), "Seal 1 of the ARC chain says cv=pass"),
    (RSA.seal(RSA.seal(MAIL), 2, "none"), "Seal 2 of the ARC chain says cv=none"),
    (RSA.seal(MAIL, 1, "maybe"), "without a valid state of the chain"),
    (RSA.seal(MAIL, 2), "lacks a field of set 1 of 2"),
    (RSA.seal(RSA.seal(MAIL)), "two arc-authentication-results fields in set 1"),
    (RSA.seal(MAIL, 51), "a set with the number 51"),
    (RSA.seal(MAIL).replace(b"ARC-Seal:", b"X:"), "lacks a field of set 1"),
    (RSA.seal(MAIL).replace(b"ARC-Auth", b"X"), "lacks a field of set 1"),
    (RSA.seal(MAIL).replace(b"Results: i=1", b"Results: i"), "has results without a set"),
    (RSA.seal(MAIL).replace(b"cv=none", b"cv=none; h=from"), "names the fields it covers"),
    (RSA.seal(MAIL).replace(b"cv=none", b"oops"), "a seal that is not a list of tags"),
    (RSA.seal(MAIL).replace(b"s=s1", b"s=", 1), "a seal that has an invalid name in s="),
    (RSA.seal(MAIL).replace(b"a=rsa-sha256", b"a=rsa-sha1"), "made with SHA-1"),
    (RSA.seal(MAIL, fields=("from", "arc-seal")), "covers seals"),
    (RSA.seal(MAIL, fields=("to",)), "does not cover the From field"),
    (RSA.seal(MAIL).replace(b"i=1;", b"i=x;"), "has results without a set"),
    (b"ARC-Seal: x" * (MAX_SETS + 1) + MAIL, "a seal that is not a list of tags"),
    (b"ARC-Seal: x\r\n" * (MAX_SETS + 1) + MAIL, "has more than 50 sets"),
    (b"ARC-Seal: " + b"x" * 300_000 + b"\r\n" + MAIL, "is longer than 256 KiB"),
)
def test_invalid_chains(mail: bytes, words: str) -> None:
    """Sets are complete, numbered from one, and have a valid state (RFC 8617 4.2)."""
    arc = verify_arc_chain(mail)
    assert arc.result is AuthResult.FAIL
    assert words in arc.explanation


def test_fifty_sets_are_a_chain() -> None:
    """A chain may have 50 sets, the maximum of RFC 8617."""
    mail = MAIL
    for instance in range(1, MAX_SETS + 1):
        mail = ED25519.seal(mail, instance)
    arc = verify_arc_chain(mail)
    assert (arc.result, arc.count, len(arc.seals)) == (AuthResult.PASS, MAX_SETS, MAX_SETS)


@rows(DnsStatus.SERVFAIL, DnsStatus.TIMEOUT, DnsStatus.REFUSED)
def test_a_key_that_could_not_be_looked_up_breaks_no_chain(status: DnsStatus) -> None:
    """A failed lookup makes the state undetermined, unless the chain is known to be broken."""
    zone = zone_of(KEYS)
    zone.failing[LIST.key_name] = status
    arc = verify_arc_chain(THREE, zone)
    assert arc.result is AuthResult.TEMPERROR
    (finding,) = describe_arc(arc)
    assert finding.severity is Severity.UNDETERMINED
    assert verify_arc_chain(THREE.replace(b"Bob", b"Rob"), zone).result is AuthResult.FAIL


def test_keys_are_checked_as_in_dkim() -> None:
    """Neither a missing nor a short key verifies a seal."""
    assert (
        "no key for the signature" in verify_arc_chain(RSA.seal(MAIL), MemoryZone({})).explanation
    )
    arc = verify_arc_chain(RSA_768.seal(MAIL))
    assert arc.result is AuthResult.FAIL
    assert "768 bits" in arc.explanation


def test_all_keys_are_asked_for_at_once() -> None:
    """All names are queried in one round, each once."""
    answers = Answers()
    evaluate_arc_keys(read_chain(THREE), answers)
    assert [question.name for question in answers.missing] == [
        RSA_1024.key_name,
        LIST.key_name,
        RSA.key_name,
    ]


def test_validating_can_be_done_in_another_process() -> None:
    """The arguments and the result can be pickled."""
    chain = read_chain(THREE)
    keys = settle(zone_of(KEYS), partial(evaluate_arc_keys, chain))
    call = partial(verify_chain, THREE, chain, keys, RECEIVED_AT)
    assert pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(call))())) == call()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Seal", "Message-Signature", "Authentication-Results"]),
            st.one_of(st.text(max_size=30), st.from_regex(r"i=[0-9]{1,2}; ?a=b", fullmatch=True)),
        ),
        max_size=6,
    )
)
def test_any_fields_can_be_read(fields: list[tuple[str, str]]) -> None:
    """Any ARC fields give a state, and never a pass."""
    text = "".join(f"ARC-{name}: {value}\r\n" for name, value in fields)
    assert verify_arc_chain(text.encode("utf-8", "replace") + MAIL).result is not AuthResult.PASS
