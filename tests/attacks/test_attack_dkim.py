"""Mails and keys that are built to make verifying signatures slow.

Most tests do not measure time: each would run for minutes if a step were quadratic.
"""

import base64
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
)

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.arc import read_chain
from mailcheck.checks.dkim.dkimpy_verify import MAX_EXPONENT_BITS
from mailcheck.checks.dkim.mail import SignatureFault
from mailcheck.checks.dkim.signature_headers import MAX_SIGNATURES, read_signatures
from tests.fakes.mail_signer import ED25519, MAIL, RSA, SIGNED_FIELDS
from tests.fakes.signature_verifier import (
    verify_all_signatures,
    verify_arc_chain,
    verify_only_signature,
    zone_of,
)
from tests.linear import assert_linear, memory_below
from tests.table import rows

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

MIB = 1024 * 1024
BLANKS = 2 * MIB
LARGE = 4 * MIB
HEADER = MAIL.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

RUNS = [b" \t", b" \r\n\t"]


def run_of(blank: bytes, size: int = BLANKS) -> bytes:
    """Return blanks of a total size."""
    return blank * (size // len(blank))


@pytest.mark.parametrize("blank", RUNS)
@pytest.mark.parametrize("form", ["relaxed/relaxed", "simple/simple"])
@rows(
    lambda run: HEADER + run + b"x" + run + b"\r\n" + run + b"\r\n",
    lambda run: MAIL.replace(b"Hello   there", b"Hello" + run + b"x"),
)
def test_megabytes_of_blanks(blank: bytes, form: str, mail_of: Callable[[bytes], bytes]) -> None:
    """Blanks inside a line, before its end, at the end of the mail and in a field that a signature
    covers are read in linear time.
    """

    def read(run: bytes) -> None:
        assert verify_only_signature(RSA.sign(mail_of(run), form)).result is AuthResult.PASS

    assert_linear(read, blank, b"")


@pytest.mark.parametrize("blank", RUNS)
@pytest.mark.parametrize("tag", [b"v=", b"a=", b"c=", b"d=", b"h=", b"t=", b"bh=", b"b="])
def test_megabytes_of_blanks_in_a_signature(tag: bytes, blank: bytes) -> None:
    """Blanks before and after each tag are read in linear time, signed or not (around ``b=``)."""
    signed = RSA.sign(MAIL, "simple/simple")
    place = signed.index(b"\r\n " + tag) + 3 if tag != b"v=" else signed.index(tag)
    behind = place + len(tag)

    def read(run: bytes) -> None:
        before = verify_all_signatures(signed[:place] + run + signed[place:]).signatures
        after = verify_all_signatures(signed[:behind] + run + signed[behind:]).signatures
        assert [one.result is AuthResult.PASS for one in before] == [False]
        assert [one.result is AuthResult.PASS for one in after] == [tag == b"b="]

    assert_linear(read, blank, b"")


@rows(b";", b"a=b; ", b" b", b"x", b"=", b"\r\n x", b"b=", b":", b"\xff", b"h= :", b"\xc3\xa4.")
def test_megabytes_of_tags(piece: bytes) -> None:
    """An endless signature is too long to be read, whatever repeats in it."""
    mail = b"DKIM-Signature: v=1;" + run_of(piece) + b"\r\n" + MAIL
    assert verify_only_signature(mail).fault is SignatureFault.MALFORMED
    whole = RSA.sign(MAIL, tags={"n": "x" * 1000})
    long = whole.replace(b"n=x", b"n=" + run_of(piece, 60_000).replace(b";", b"x"))
    assert verify_only_signature(long).result is not AuthResult.PASS


def test_fifty_signatures_of_a_large_mail() -> None:
    """Ten signatures are verified, each form of the body is made once, and memory stays small."""
    line = b"The quick  brown fox jumps over the lazy dog.  " * 20 + b"\r\n"
    mail = HEADER + line * (LARGE // len(line))
    tops = [RSA.sign(mail, form)[: -len(mail)] for form in ("relaxed/relaxed", "simple/simple")]
    raw = b"".join(tops * 25) + mail
    with memory_below(8 * LARGE):
        verdict = verify_all_signatures(raw)
    assert len(verdict.passing) == MAX_SIGNATURES
    assert verdict.unchecked == 40


@rows(b"\r\n", b"x\r\n", b" \r\n", b"\r\r\n", b"\n", b"a ")
def test_large_bodies_of_tiny_lines(line: bytes) -> None:
    """Line ends or single letters are read in linear time."""
    signed = RSA.sign(MAIL)

    def read(lines: bytes) -> None:
        fault = verify_only_signature(signed + lines).fault
        assert fault in (None, SignatureFault.BODY_CHANGED)

    assert_linear(read, line, b"")


def test_a_million_signatures() -> None:
    """With too many fields no signature is read, and this is noticed at once."""
    headers, unchecked = read_signatures(b"DKIM-Signature: v=1\r\n" * 1_000_000 + MAIL)
    assert len(headers) == MAX_SIGNATURES
    assert unchecked > 0
    assert all(header.problem for header in headers)


def test_thousands_of_field_names() -> None:
    """Each field that a signature covers is found at once, and so is its absence."""
    names = [f"x{number}" for number in range(8000)]
    header = "".join(f"{name}: v\r\n" for name in names).encode()
    there = RSA.sign(header + MAIL, fields=("from", *names))
    missing = RSA.sign(header + MAIL, fields=("from", *(f"y{n}" for n in range(8000))))
    for mail in (there, missing):
        top = mail[: -len(header + MAIL)]
        assert len(verify_all_signatures(top * 10 + header + MAIL).passing) == MAX_SIGNATURES


def test_large_fields_signed_by_all() -> None:
    """Ten signatures over a large header are verified in linear time."""

    def read(field: bytes) -> None:
        mail = field + b"\r\n" + MAIL
        top = ED25519.sign(mail, fields=(*SIGNED_FIELDS, "subject"))[: -len(mail)]
        assert len(verify_all_signatures(top * 10 + mail).passing) == MAX_SIGNATURES

    assert_linear(read, b"y ", b"Subject: ")


def test_a_key_made_to_be_slow() -> None:
    """An RSA key with a huge exponent is rejected without a computation."""
    loaded = load_der_public_key(base64.b64decode(RSA.public))
    assert isinstance(loaded, RSAPublicKey)
    modulus = loaded.public_numbers().n
    slow = RSAPublicNumbers(modulus - 2, modulus).public_key()
    der = slow.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    record = f"v=DKIM1; p={base64.b64encode(der).decode()}"
    signature = verify_only_signature(RSA.sign(MAIL), zone_of({RSA.key_name: record}))
    assert signature.fault is SignatureFault.KEY_BROKEN
    assert "exponent" in signature.explanation


@rows(1, 30_000)
def test_signatures_longer_than_their_key(zeros: int) -> None:
    """The correct number with leading zeros is not a signature (RFC 8017 8.2.2)."""
    signed = RSA.sign(MAIL)
    start = signed.index(b"b=", signed.index(b"h=from"))
    end = signed.index(b"From: Ann")
    right = base64.b64decode(b"".join(signed[start + 2 : end].split()))
    for octets, result in ((right, AuthResult.PASS), (b"\0" * zeros + right, AuthResult.FAIL)):
        value = base64.b64encode(octets)
        mail = signed[:start] + b"b=" + value + b"\r\n" + signed[end:]
        assert verify_only_signature(mail).result is result


@rows(*RUNS)
def test_megabytes_of_blanks_in_arc_fields(blank: bytes) -> None:
    """Blanks in a seal, and in a field that every set covers, are read in linear time."""
    sealed = RSA.seal(MAIL).replace(b"cv=none", b"cv=none;" + run_of(blank) + b"n=1")
    assert verify_arc_chain(sealed).result is AuthResult.FAIL
    mail = MAIL.replace(b"Hello   there", b"Hello" + run_of(blank, MIB) + b"x")
    for instance in range(1, 6):
        mail = ED25519.seal(mail, instance)
    assert verify_arc_chain(mail).result is AuthResult.PASS


def test_a_large_chain_is_not_read() -> None:
    """Every seal covers nearly all sets, so the size of a chain is limited."""
    chain = read_chain(
        b"".join(b"ARC-Seal: i=%d;%s\r\n" % (n, b"x" * MIB) for n in range(20)) + MAIL
    )
    assert "longer than" in chain.problem
    assert (
        "more than 10,000 header fields"
        in read_chain(b"ARC-Seal: i=1\r\n" * 100_000 + MAIL).problem
    )


@pytest.mark.timeout(60)
@rows(b"Hello  Bob", b"Hello   there", b"v=1")
def test_time_grows_with_the_size(place: bytes) -> None:
    """A megabyte of blanks are read in a moment."""
    mail = RSA.sign(MAIL).replace(place, run_of(b" \t", MIB) + place)
    verify_all_signatures(mail)  # a quadratic search takes hours


def key_of(bits: int) -> str:
    """Return a key record of ``bits`` bits, with the slowest exponent that is allowed."""
    numbers = RSAPublicNumbers((1 << MAX_EXPONENT_BITS) - 1, (1 << bits) - 1)
    der = numbers.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"v=DKIM1; p={base64.b64encode(der).decode()}"


def forge(bits: int) -> bytes:
    """Return ten signatures with a correct body hash, whose value has the length of a key."""
    signed = RSA.sign(MAIL)
    start = signed.index(b"b=", signed.index(b"h=from"))
    end = signed.index(b"From: Ann")
    value = base64.b64encode(b"\x01" * (bits // 8))
    return (signed[:start] + b"b=" + value + b"\r\n") * MAX_SIGNATURES + signed[end:]


@pytest.mark.timeout(60)
def test_keys_made_to_be_slow_by_their_length() -> None:
    """A key longer than OpenSSL supports is rejected; ten of the longest take a moment."""
    (refused, *_) = verify_all_signatures(
        forge(24_000), zone_of({RSA.key_name: key_of(24_000)})
    ).signatures
    assert refused.fault is SignatureFault.KEY_BROKEN
    assert "too large" in refused.explanation
    zone = zone_of({RSA.key_name: key_of(16_384)})
    found = verify_all_signatures(forge(16_384), zone)
    assert {one.fault for one in found.signatures} == {SignatureFault.HEADER_CHANGED}
