"""Tests for the verification of a mail's signatures."""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import dkim  # type: ignore[import-untyped]

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureFault, evaluate_keys
from mailcheck.checks.dkim.signature_headers import MAX_SIGNATURES, read_signatures
from mailcheck.checks.dkim.verify import verify_signatures
from mailcheck.checks.dns_answers import Answers, DnsStatus
from mailcheck.core.instants import Instant, instant_of
from tests.fakes import signing_keys
from tests.fakes.mail_signer import (
    ED25519,
    MAIL,
    RSA,
    RSA_768,
    RSA_1024,
    SIGNED_AT,
    SIGNED_FIELDS,
    MailSigner,
)
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.fakes.signature_verifier import (
    KEY_RECORDS,
    RECEIVED_AT,
    verify_all_signatures,
    verify_only_signature,
    zone_of,
)
from tests.table import rows

FORMS = ["simple/simple", "simple/relaxed", "relaxed/simple", "relaxed/relaxed"]


@rows(*product([RSA, RSA_1024, ED25519], FORMS))
def test_good_signatures_pass(signer: MailSigner, form: str) -> None:
    """All canonical forms and algorithms in use verify; short keys are marked as weak."""
    signature = verify_only_signature(signer.sign(MAIL, form))
    assert (signature.result, signature.fault) == (AuthResult.PASS, None)
    assert signature.is_weak is (signer is RSA_1024)
    assert signature.header.canonicalization == form
    assert signature.header.key_name == signer.key_name


@rows(*FORMS)
def test_what_dkimpy_signs_passes(form: str) -> None:
    """The folding and the tags of dkimpy's signer are understood."""
    pem = b"-----BEGIN RSA PRIVATE KEY-----\n" + signing_keys.RSA_2048_PRIVATE.encode()
    pem += b"\n-----END RSA PRIVATE KEY-----"
    header, _, body = form.partition("/")
    signed = dkim.sign(
        MAIL,
        b"s1",
        b"sender.example",
        pem,
        canonicalize=(header.encode(), body.encode()),
        length=True,
    )
    now = next(h.signed_at for h in read_signatures(signed)[0])
    assert now is not None
    signature = verify_only_signature(signed + MAIL, received_at=instant_of(now))
    assert signature.result is AuthResult.PASS
    assert signature.unsigned_octets == 0


def test_each_signature_is_judged_on_its_own() -> None:
    """A failing signature does not affect a passing one; the topmost comes first."""
    mail = RSA.sign(MAIL).replace(b"Hello  Bob", b"Hello Rob")
    good = ED25519.sign(mail)
    verdict = verify_all_signatures(good)
    assert [one.result for one in verdict.signatures] == [AuthResult.PASS, AuthResult.FAIL]
    assert [one.header.selector for one in verdict.passing] == ["ed"]
    assert verdict.is_determined


ON_TOP = b"From: Eve <eve@other.example>\r\n"
FAULTS = [
    *[
        (RSA.sign(MAIL, form), b"paragraph", "fail", "body-changed", "was changed")
        for form in FORMS
    ],
    *[
        (RSA.sign(MAIL, form), b"Hello   t", "fail", "header-changed", RSA.key_name)
        for form in FORMS
    ],
    # rsa-sha1 is used neither to sign nor to verify, and RSA keys have 1024 bits (RFC 8301 3).
    (replace(RSA, algorithm="rsa-sha1").sign(MAIL), b"", "policy", "sha1", "SHA-1"),
    (RSA_768.sign(MAIL), b"", "policy", "key-too-short", "768 bits"),
    (RSA.sign(MAIL, tags={"l": "100000"}), b"", "fail", "body-cut", "100000 octets"),
    # A signature with Ed25519 is not verified with an RSA key.
    (replace(ED25519, selector="s1").sign(MAIL), b"", "permerror", "key-of-other-type", "type rsa"),
    # No From is reported as added if the signature is not valid for the last one either.
    (ON_TOP + RSA.sign(MAIL), b"Subject: H", "fail", "header-changed", "header field was changed"),
]


@rows(*FAULTS)
def test_each_fault_is_explained(
    signed: bytes, altered: bytes, result: str, fault: str, words: str
) -> None:
    """A signature that does not pass has one fault, and a sentence with the reason."""
    signature = verify_only_signature(signed.replace(altered, altered[:-1] + b"?", bool(altered)))
    assert (signature.result.value, signature.fault) == (result, SignatureFault(f"dkim.{fault}"))
    assert words in signature.explanation
    assert "added after signing" not in signature.explanation
    assert not signature.is_weak


@rows(
    ("relaxed/relaxed", ["pass", "pass"]),
    ("relaxed/simple", ["pass", "fail"]),
    ("simple/relaxed", ["fail", "pass"]),
    ("simple/simple", ["fail", "fail"]),
)
def test_relaxed_forms_allow_changed_blanks(form: str, results: list[str]) -> None:
    """Folding and blanks may change in a relaxed part, but not in a simple one (RFC 6376 3.4)."""
    signed = RSA.sign(MAIL, form)
    header = signed.replace(b"Hello   there\r\n and a", b"Hello there and\r\n\ta")
    body = signed.replace(b"a second\tparagraph.  ", b"a second  paragraph.")
    assert [verify_only_signature(mail).result.value for mail in (header, body)] == results


def test_a_key_that_was_not_the_signers_fails() -> None:
    """The explanation for a changed header also mentions another key at the same name."""
    zone = zone_of({RSA.key_name: replace(RSA, public=RSA_1024.public).key_record})
    signature = verify_only_signature(RSA.sign(MAIL), zone)
    assert signature.fault is SignatureFault.HEADER_CHANGED
    assert "does not match" in signature.explanation
    zone = zone_of({ED25519.key_name: f"v=DKIM1; k=ed25519; p={'A' * 43}="})
    assert verify_only_signature(ED25519.sign(MAIL), zone).result is not AuthResult.PASS


@rows(
    # ``x=`` is compared with the arrival of the mail, with five minutes of clock skew.
    ({"x": str(SIGNED_AT + 1000)}, 1000, None, 0),
    ({"x": str(SIGNED_AT + 1000)}, 1299, None, 0),
    ({"x": str(SIGNED_AT + 1000)}, 1301, SignatureFault.EXPIRED, 0),
    # A clock of the signer that is a little ahead is noted; more than ten hours fail.
    ({}, -300, None, 0),
    ({}, -1200, None, 1200),
    ({}, -36_000, None, 36_000),
    ({}, -36_001, SignatureFault.FROM_THE_FUTURE, 0),
)
def test_signatures_are_valid_for_a_time(
    expiry: dict[str, str | None], at: int, fault: SignatureFault | None, ahead: int
) -> None:
    """The moment of receipt decides, in milliseconds."""
    signed = RSA.sign(MAIL, tags=expiry)
    signature = verify_only_signature(signed, received_at=Instant((SIGNED_AT + at) * 1000))
    assert (signature.fault, signature.seconds_ahead) == (fault, ahead)
    assert signature.result is (AuthResult.FAIL if fault else AuthResult.PASS)
    if fault is SignatureFault.EXPIRED:
        assert "expired 5 minutes before" in signature.explanation


@rows(
    ({"v": "2"}, "of an unknown version (v=2)"),
    ({"v": None}, "lacks v="),
    ({"a": "rsa-md5"}, "unknown algorithm (a=rsa-md5)"),
    ({"a": None, "bh": None}, "lacks a=, bh="),
    ({"c": "nofws"}, "unknown canonicalization"),
    ({"c": "relaxed/simple/simple"}, "unknown canonicalization"),
    ({"d": "sender..example"}, "invalid name in d="),
    ({"d": ""}, "invalid name in d=: it is empty"),
    ({"s": "a b"}, "invalid name in s="),
    ({"s": "x" * 64}, "invalid name in s="),
    ({"d": "a." * 120 + "example"}, "over 253 characters"),
    ({"h": "to:subject"}, "does not cover the From field"),
    ({"h": ""}, "does not cover the From field"),
    ({"i": "ann@other.example"}, "is for other.example (i=)"),
    ({"i": "ann@badsender.example"}, "is for badsender.example"),
    ({"i": "ann"}, "no @ in i="),
    ({"i": "ann@"}, "invalid domain in i="),
    ({"l": "-1"}, "invalid number in l="),
    ({"l": "9" * 77}, "invalid number in l="),
    ({"t": "now"}, "invalid number in t="),
    ({"x": str(SIGNED_AT)}, "expires (x=) before it was made"),
    ({"q": "dns/other"}, "unknown method of key lookup (q=dns/other)"),
    ({"bh": "AAAA"}, "not SHA-256"),
    ({"bh": "A!"}, "invalid Base64 in bh="),
    ({"bh": ""}, "has an empty value in bh="),
    ({"n": "a; n=b"}, "is repeated"),
    ({"n": "a; oops"}, "does not have the form name=value"),
    # Neither a tag nor the name of a field may be empty (RFC 6376 3.2, 3.5).
    ({"n": "a;"}, "no tag between two semicolons"),
    ({"n": "a; "}, "no tag between two semicolons"),
    ({"h": "from::subject"}, "empty name among the fields"),
    ({"h": "from: :subject"}, "empty name among the fields"),
    ({"h": "from:to:"}, "empty name among the fields"),
    ({"h": ":from:to"}, "empty name among the fields"),
)
def test_malformed_signatures_say_what_is_wrong(tags: dict[str, str | None], sentence: str) -> None:
    """A broken tag is named, even if it is correctly signed, and no key is queried (6.1.1)."""
    zone = zone_of(KEY_RECORDS)
    signed = RSA.sign(MAIL, tags={key: value for key, value in tags.items() if key != "l"})
    if "l" in tags:
        signed = signed.replace(b"v=1;", b"v=1; l=%s;" % (tags["l"] or "").encode())
    signature = verify_only_signature(signed, zone)
    assert (signature.result, signature.fault) == (AuthResult.PERMERROR, SignatureFault.MALFORMED)
    assert sentence in signature.explanation
    assert zone.asked == []


@rows(
    {"i": "ann@mail.sender.example"},
    {"i": "@SENDER.example"},
    {"i": '"a@b"@sender.example'},
    {"q": "dns/txt:other"},
    {"c": "Relaxed/RELAXED"},
    {"d": "Sender.EXAMPLE"},
    {"s": "S1"},
    {"n": "a note", "z": "From:ann|To:bob=20b= =3B", "unknown": "1"},
    {"h": "From : TO:subject:\r\n Date:Message-ID"},
    {"t": None},
)
def test_unusual_tags_verify(tags: dict[str, str | None]) -> None:
    """Names in any case, unknown tags and copied fields verify (RFC 6376 3.5)."""
    assert verify_only_signature(RSA.sign(MAIL, tags=tags)).result is AuthResult.PASS


def test_a_body_length_leaves_the_rest_unsigned() -> None:
    """``l=`` passes with text after it, and the unsigned octets are counted."""
    signed = RSA.sign(MAIL, "simple/simple", tags={"l": "10"})
    signature = verify_only_signature(signed + b"more\r\n")
    assert signature.result is AuthResult.PASS
    assert signature.header.body_length == 10
    assert signature.unsigned_octets == len(MAIL.partition(b"\r\n\r\n")[2] + b"more\r\n") - 10
    assert (
        verify_only_signature(signed.replace(b"Hello  Bob", b"Hella  Bob")).result
        is AuthResult.FAIL
    )


def test_fields_may_be_added_but_no_author() -> None:
    """New fields on top keep a signature valid, but a second From does not (RFC 6376 8.15)."""
    signed = RSA.sign(MAIL)
    added = b"Received: from a by b\r\nSubject: another\r\nX-Spam: no\r\n" + signed
    assert verify_only_signature(added).result is AuthResult.PASS
    assert verify_only_signature(b"From: eve@evil.example\r\n" + signed).result is AuthResult.FAIL


def test_a_field_signed_once_too_often_may_not_be_added() -> None:
    """A name that is repeated in ``h=`` prevents adding another field with it."""
    signed = RSA.sign(MAIL, fields=(*SIGNED_FIELDS, "subject", "reply-to"))
    assert verify_only_signature(signed).result is AuthResult.PASS
    for extra in (b"Subject: another\r\n", b"Reply-To: eve@evil.example\r\n"):
        assert verify_only_signature(extra + signed).result is AuthResult.FAIL


def test_at_most_ten_signatures_are_verified() -> None:
    """Signatures beyond the tenth are counted, but not verified."""
    mail = MAIL
    for _ in range(12):
        mail = ED25519.sign(mail)
    verdict = verify_all_signatures(mail)
    assert len(verdict.passing) == MAX_SIGNATURES
    assert verdict.unchecked == 2


def test_all_keys_are_asked_for_at_once() -> None:
    """All names are queried in one round, each once; a mail without signatures has none."""
    mail = RSA.sign(RSA.sign(ED25519.sign(MAIL)))
    headers, _ = read_signatures(mail)
    answers = Answers()
    evaluate_keys(headers, answers)
    assert [question.name for question in answers.missing] == [RSA.key_name, ED25519.key_name]
    assert verify_all_signatures(MAIL) == DkimOfMail(())


def test_verifying_can_be_done_in_another_process() -> None:
    """The arguments and the result can be pickled."""
    mail = RSA.sign(ED25519.sign(MAIL))
    headers, _ = read_signatures(mail)
    keys = settle(zone_of(KEY_RECORDS), partial(evaluate_keys, headers))
    call = partial(verify_signatures, mail, headers, keys, RECEIVED_AT)
    there = pickle.loads(pickle.dumps(call))
    assert pickle.loads(pickle.dumps(there())) == call() == verify_all_signatures(mail)


@rows(DnsStatus.SERVFAIL, DnsStatus.TIMEOUT, DnsStatus.REFUSED)
def test_a_key_that_could_not_be_looked_up_is_no_fault(status: DnsStatus) -> None:
    """A temporary failure differs from a missing key and leaves the result undetermined."""
    zone = MemoryZone({}, failing={RSA.key_name: status})
    verdict = verify_all_signatures(RSA.sign(MAIL), zone)
    (signature,) = verdict.signatures
    assert signature.result is AuthResult.TEMPERROR
    assert signature.fault is SignatureFault.KEY_UNDETERMINED
    assert not verdict.is_determined


def test_a_passing_signature_outweighs_one_that_could_not_be_looked_up() -> None:
    """One passing signature determines the verdict."""
    zone = MemoryZone(
        {ED25519.key_name: {"TXT": [ED25519.key_record]}},
        failing={RSA.key_name: DnsStatus.TIMEOUT},
    )
    verdict = verify_all_signatures(RSA.sign(ED25519.sign(MAIL)), zone)
    assert [one.result.value for one in verdict.signatures] == ["temperror", "pass"]
    assert verdict.is_determined


@rows(*product([("from", "to"), ("from", "from", "to")], [1, 2]))
def test_a_from_added_on_top_is_named(fields: Sequence[str], count: int) -> None:
    """If a signature is valid for the last From only, the others were added after signing."""
    forged = b"From: Eve <eve@other.example>\r\n" * count + RSA.sign(MAIL, fields=fields)
    signature = verify_only_signature(forged, zone_of(KEY_RECORDS))
    assert (signature.result, signature.fault) == (AuthResult.FAIL, SignatureFault.HEADER_CHANGED)
    assert f"it has {count + 1}: the fields above the last one were added" in signature.explanation
