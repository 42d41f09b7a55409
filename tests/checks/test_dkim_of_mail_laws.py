"""Properties of verification, and equivalence of the linear functions with dkimpy's."""

from hypothesis import assume, example, given
from hypothesis import strategies as st

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim import dkimpy_verify
from tests.checks.test_dkim_changes import untouched
from tests.fakes.mail_signer import ED25519, MAIL, RSA, MailSigner
from tests.fakes.signature_verifier import verify_all_signatures, verify_only_signature

PIECES = st.sampled_from(
    [b" ", b"\t", b"  ", b" " * 70, b"\r\n", b"\r\n ", b"\r", b"\n", b"x", b"y z", b"\xff"]
)
TEXTS = st.lists(PIECES, max_size=24).map(b"".join)


@given(TEXTS)
@example(b"x\n\r\n")
@example(b"\n\r\n\r\n")
@example(b"x\r\n\n\r\n")
@example(b"x\r\r\n\r\n")
@example(b"\r\n\r\n")
def test_bodies_and_blanks_come_out_as_with_dkimpy(text: bytes) -> None:
    """Each replaced text function returns the same as dkimpy's."""
    theirs = untouched("dkim.canonicalization")
    for name in (
        "compress_whitespace",
        "strip_trailing_lines",
        "unfold_header_value",
    ):
        assert getattr(dkimpy_verify, name)(text) == getattr(theirs, name)(text), name
    assert dkimpy_verify.canonicalize_relaxed_body(text) == theirs.Relaxed.canonicalize_body(text)


NAMES = st.sampled_from([b"from", b"to", b"x-a", b"subject"])


@given(
    st.lists(st.tuples(NAMES.map(bytes.title), TEXTS), max_size=8),
    st.lists(NAMES, max_size=8),
)
def test_the_same_fields_are_selected(
    headers: list[tuple[bytes, bytes]], names: list[bytes]
) -> None:
    """The last field with a name is selected first, as often as the name is listed."""
    theirs = untouched("dkim").select_headers(headers, names)
    assert dkimpy_verify.select_headers(headers, names) == theirs


@given(
    st.lists(st.sampled_from([b"v=1", b" h=from", b"\r\n bh=AA=", b"d=b.example"]), max_size=4),
    st.sampled_from([b"b=", b" b=", b"\r\n\tb =", b"\r\n b = "]),
    st.lists(st.sampled_from([b"AbC0", b"+/", b"\r\n ", b" "]), max_size=4).map(b"".join),
    st.lists(st.sampled_from([b"t=1", b" x=2"]), max_size=2),
)
def test_the_value_of_the_signature_is_removed(
    before: list[bytes], name: bytes, value: bytes, after: list[bytes]
) -> None:
    """The result equals dkimpy's, except for blanks after the value (RFC 6376 3.5)."""
    body = b";".join([*before, name + value + b"=", *after])
    assume(body[:1] in (b" ", b"\r") or before)
    expected = untouched("dkim").RE_BTAG.sub(b"\\1", body)
    assert dkimpy_verify.remove_signature(body) == expected
    with_blanks = b";".join([*before, name + value + b"= \t", *after])
    assert dkimpy_verify.remove_signature(with_blanks) == expected


@given(st.sampled_from([RSA, ED25519]), st.data())
def test_no_altered_octet_passes(signer: MailSigner, data: st.DataObject) -> None:
    """In the simple form, every octet of the signed fields, the body and the tags matters."""
    signed = signer.sign(MAIL, "simple/simple")
    start = signed.index(b"b=", signed.index(b"h=from"))
    end = signed.index(b"From: Ann")
    text_end = len(signed.rstrip(b"\r\n"))
    places = [*range(len(b"DKIM-Signature:"), start), *range(end, text_end)]
    place = data.draw(st.sampled_from(places))
    octet = data.draw(st.integers(0, 255))
    # A lone LF counts as a line end.
    assume(octet not in (signed[place], ord("\n")))
    altered = signed[:place] + bytes([octet]) + signed[place + 1 :]
    assert not verify_all_signatures(altered).passing


@given(st.sampled_from([RSA, ED25519]), st.integers(0, 255), st.data())
def test_no_altered_letter_passes_in_the_relaxed_form(
    signer: MailSigner, octet: int, data: st.DataObject
) -> None:
    """In the relaxed form, every changed letter or digit matters."""
    signed = signer.sign(MAIL)
    start = signed.index(b"Ann Example")
    place = data.draw(
        st.sampled_from([p for p in range(start, len(signed)) if signed[p : p + 1].isalnum()])
    )
    # Field names are case-insensitive.
    assume(bytes([octet]).lower() != signed[place : place + 1].lower())
    assert not verify_all_signatures(signed[:place] + bytes([octet]) + signed[place + 1 :]).passing


@given(st.sampled_from([RSA, ED25519]), st.data())
def test_no_altered_signature_passes(signer: MailSigner, data: st.DataObject) -> None:
    """A changed value of ``b=`` never passes."""
    signed = signer.sign(MAIL)
    start = signed.index(b"b=", signed.index(b"h=from")) + 2
    end = signed.index(b"From: Ann")
    # The last digit before the padding has unused bits.
    places = [p for p in range(start, end) if signed[p : p + 1].isalnum()][:-1]
    place = data.draw(st.sampled_from(places))
    letter = data.draw(st.sampled_from(b"ABCabc019+/"))
    assume(letter != signed[place])
    assert not verify_all_signatures(signed[:place] + bytes([letter]) + signed[place + 1 :]).passing


@given(
    st.lists(
        st.sampled_from([b"a", b" ", b"\t", b"\r\n", b".", b"\xc3\xa4", b"=\r\n"]), max_size=40
    ).map(b"".join),
    st.sampled_from(["simple/simple", "relaxed/relaxed", "simple/relaxed", "relaxed/simple"]),
)
def test_whatever_was_signed_passes(body: bytes, form: str) -> None:
    """Bodies of any shape verify with a signature that was computed line by line."""
    mail = MAIL.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + body + b"\r\n"
    assert verify_only_signature(ED25519.sign(mail, form)).result is AuthResult.PASS
