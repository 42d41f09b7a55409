"""Tests with mails from standards and in the forms of real senders."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.signature_headers import (
    MAX_FIELDS,
    MAX_SIGNATURES,
    read_signatures,
    split_mail,
)
from mailcheck.core.instants import instant_of
from tests.fakes.mail_signer import MAIL, RSA
from tests.fakes.signature_verifier import verify_all_signatures, verify_only_signature, zone_of
from tests.table import rows

# RFC 8463 appendix A.3, with the keys of A.2.
RFC_8463 = b"""\
DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.

"""
RFC_8463_KEYS = {
    "brisbane._domainkey.football.example.com": (
        "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    ),
    "test._domainkey.football.example.com": (
        "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qh"
        "dR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hst"
        "T5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB"
    ),
}

# RFC 6376 appendix A.2 with the key of A.3, and with the blanks of errata 3192 and 4926.
RFC_6376 = b"""\
DKIM-Signature: v=1; a=rsa-sha256; s=brisbane; d=example.com;
      c=simple/simple; q=dns/txt; i=joe@football.example.com;
      h=Received : From : To : Subject : Date : Message-ID;
      bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
      b=AuUoFEfDxTDkHlLXSZEpZj79LICEps6eda7W3deTVFOk4yAUoqOB
      4nujc7YopdG5dWLSdNg6xNAZpOPr+kHxt1IrE+NahM6L/LbvaHut
      KVdkLLkpVaVVQPzeRDI009SO2Il5Lu7rDNH6mZckBdrIx0orEtZV
      4bmp/YzhwvcubU4=;
Received: from client1.football.example.com  [192.0.2.1]
      by submitserver.example.com with SUBMISSION;
      Fri, 11 Jul 2003 21:01:54 -0700 (PDT)
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game. Are you hungry yet?

Joe.
"""
RFC_6376_KEYS = {
    "brisbane._domainkey.example.com": (
        "v=DKIM1; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/z"
        "YtIxN2SnFCjxOCKG9v3b4jYfcTNh5ijSsq631uBItLa7od+v/RtdC2UzJ1lWT947qR+Rcac2gbto/NMqJ0fzfVjH4OuK"
        "hitdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB"
    ),
}


def crlf(mail: bytes) -> bytes:
    """End the lines with CRLF, as in SMTP."""
    return mail.replace(b"\n", b"\r\n")


def test_the_example_of_rfc_8463_verifies() -> None:
    """Both published signatures pass, Ed25519 and RSA; the RSA key is short."""
    at = instant_of(1528637909)
    verdict = verify_all_signatures(crlf(RFC_8463), zone_of(RFC_8463_KEYS), at)
    assert [one.result for one in verdict.signatures] == [AuthResult.PASS] * 2
    assert [one.is_weak for one in verdict.signatures] == [False, True]


def test_the_example_of_rfc_6376_verifies() -> None:
    """The published signature uses SHA-256 with 1024 bits, which RFC 8301 still accepts."""
    signature = verify_only_signature(crlf(RFC_6376), zone_of(RFC_6376_KEYS))
    assert signature.result is AuthResult.PASS
    assert signature.header.agent_id == "joe@football.example.com"


def test_a_file_with_unix_line_ends_verifies() -> None:
    """A mail saved with LF line ends verifies."""
    verdict = verify_all_signatures(RFC_8463, zone_of(RFC_8463_KEYS), instant_of(1528637909))
    assert len(verdict.passing) == 2
    mbox = b"From joe@example.com Fri Jul 11 2003\n" + RFC_6376
    assert verify_only_signature(mbox, zone_of(RFC_6376_KEYS)).result is AuthResult.PASS


@rows(
    (b"b=AuUo", b"b=\r\n      AuUo"),
    (b"b=AuUo", b"b=A u\tUo"),
    (b"ubU4=;", b"ubU4=\r\n ;"),
    (b"b=AuUo", b"b = \r\n AuUo"),
)
def test_the_value_of_the_signature_may_be_folded_anew(old: bytes, new: bytes) -> None:
    """Blanks in ``b=`` and around its value are not signed, even in the simple form.

    Blanks before the equals sign are signed.
    """
    mail = crlf(RFC_6376).replace(old, new)
    assert mail != crlf(RFC_6376)
    expected = AuthResult.FAIL if b"b = " in new else AuthResult.PASS
    assert verify_only_signature(mail, zone_of(RFC_6376_KEYS)).result is expected


def test_blanks_in_a_body_hash_are_no_fault() -> None:
    """A folded ``bh=`` verifies."""
    signed = RSA.sign(MAIL)
    (header,), _ = read_signatures(signed)
    start = signed.index(b"bh=") + 10
    folded = signed[:start] + b"\r\n\t" + signed[start:]
    assert read_signatures(folded)[0][0].body_hash == header.body_hash


@rows("simple/simple", "relaxed/relaxed")
def test_tags_in_any_order(form: str) -> None:
    """The value of the signature may come before the other tags."""
    mail = RSA.sign(MAIL, form, tags={"s": "S1", "x": None, "n": "last"})
    assert verify_only_signature(mail).result is AuthResult.PASS
    first = replace(RSA, domain="Sender.Example").sign(MAIL, form, first=("b", "h", "bh", "v"))
    assert first.startswith(b"DKIM-Signature: b=")
    assert verify_only_signature(first).result is AuthResult.PASS


def test_names_of_fields_and_forms_in_any_case() -> None:
    """Field names are case-insensitive, and an omitted form is the simple one."""
    (header,), _ = read_signatures(RSA.sign(MAIL).replace(b"DKIM-Signature:", b"dkim-SIGNATURE :"))
    assert (header.problem, header.key_name) == ("", RSA.key_name)
    (header,), _ = read_signatures(RSA.sign(MAIL, tags={"c": None}))
    assert header.canonicalization == "simple/simple"
    (header,), _ = read_signatures(RSA.sign(MAIL, tags={"c": "relaxed"}))
    assert header.canonicalization == "relaxed/simple"


def test_names_in_other_scripts_become_a_labels() -> None:
    """Selector and domain may be in UTF-8; DNS is queried in ASCII (RFC 8616)."""
    mail = RSA.sign(MAIL, tags={"d": "Bücher.example", "s": "schlüssel", "i": "ä@BÜCHER.example"})
    name = "xn--schlssel-95a._domainkey.xn--bcher-kva.example"
    signature = verify_only_signature(mail, zone_of({name: RSA.key_record}))
    assert signature.result is AuthResult.PASS
    assert signature.header.key_name == name
    assert signature.header.agent_id == "ä@xn--bcher-kva.example"


def test_names_of_other_fields_may_have_blanks_behind_them() -> None:
    """Old mails may have a blank before the colon (RFC 5322 4.5)."""
    mail = MAIL.replace(b"Subject:", b"Subject :")
    signed = RSA.sign(mail.replace(b"Subject :", b"Subject:")).replace(b"Subject:", b"Subject :")
    assert verify_only_signature(signed).result is AuthResult.PASS


def test_a_line_that_is_no_field_begins_the_body() -> None:
    """A line that is not a field begins the body, as on the page of the mail."""
    source = split_mail(b"From: a\r\nno field\r\nTo: b\r\n\r\nx")
    assert source.fields == ((b"From", b" a\r\n"),)
    assert source.body == b"no field\r\nTo: b\r\n\r\nx"


def test_too_many_header_fields_make_signatures_malformed() -> None:
    """With more than 10,000 header fields, a signature is malformed."""
    mail = RSA.sign(b"X: y\r\n" * MAX_FIELDS + MAIL)
    signature = verify_only_signature(mail)
    assert signature.result is AuthResult.PERMERROR
    assert "more than 10,000 header fields" in signature.explanation
    assert verify_only_signature(RSA.sign(b"X: y\r\n" * 1000 + MAIL)).result is AuthResult.PASS


@given(st.binary(max_size=400))
def test_any_bytes_can_be_read(octets: bytes) -> None:
    """The parser accepts any bytes as a mail, header or signature."""
    read_signatures(octets)
    headers, unchecked = read_signatures(b"DKIM-Signature:" + octets + b"\r\n\r\n")
    assert len(headers) <= MAX_SIGNATURES
    assert unchecked == 0 or len(headers) == MAX_SIGNATURES


TAG = st.tuples(
    st.sampled_from(["v", "a", "b", "bh", "c", "d", "h", "i", "l", "q", "s", "t", "x", "z", "?"]),
    st.one_of(
        st.sampled_from(
            ["1", "rsa-sha256", "ed25519-sha256", "from", "d.example", "AAAA", "", "@"]
        ),
        st.text(max_size=20),
    ),
)


@given(st.lists(TAG, max_size=14))
def test_any_tags_can_be_judged(tags: list[tuple[str, str]]) -> None:
    """A signature with random tags has a result and never passes."""
    text = ";".join(f"{name}={value}" for name, value in tags)
    mail = b"DKIM-Signature: " + text.encode("utf-8", "surrogatepass") + b"\r\n" + MAIL
    for signature in verify_all_signatures(mail).signatures:
        assert signature.result is not AuthResult.PASS
        assert signature.fault is not None
        assert signature.explanation.endswith(".")
