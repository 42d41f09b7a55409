"""Tests for DKIM2 header fields, which are recognised and explained, and never scored."""

import base64

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dkim.dkim2 import Dkim2OfMail, describe_dkim2, read_dkim2
from mailcheck.checks.findings import Severity
from mailcheck.checks.findings_of_authentication import DKIM2
from tests.operations.scored_mails import MAIL, received, score
from tests.table import rows


def packed(text: str) -> str:
    """Return an address as DKIM2 writes it."""
    return base64.b64encode(text.encode()).decode()


def signature(sequence: str, instance: str, domain: str, recipient: str) -> bytes:
    """Return a signature of a hop."""
    text = (
        f"DKIM2-Signature: i={sequence}; m={instance}; t=1791448595; d={domain};\r\n"
        f"\tmf={packed(f'<a@{domain}>')}; rt={packed(recipient)},{packed('b@c.example')};\r\n"
        "\tf=donotmodify; s=fm2:rsa-sha256:NZGDXDc1j1YR\r\n\tyc7ij,ed:ed25519-sha256:AAAA;\r\n"
    )
    return text.encode()


def instance(number: str) -> bytes:
    """Return the field that describes a version of the mail."""
    return f"Message-Instance: m={number}; h=sha256:AAAA:BBBB;\r\n".encode()


FIRST = signature("1", "1", "sender.example", "list@forwarder.example")
SECOND = signature("2", "2", "forwarder.example", "reader@here.example")
CHAIN = SECOND + instance("2") + FIRST + instance("1") + MAIL
"""A mail with two hops; the second one has changed the mail."""


def ids_of(raw: bytes) -> list[str]:
    """Return the ids of the findings about DKIM2."""
    return [one.id for one in describe_dkim2(read_dkim2(raw))]


def test_each_hop_is_described() -> None:
    """The signatures are in the order of hops, with the envelope that each has signed."""
    dkim2 = read_dkim2(CHAIN)
    assert [one.domain for one in dkim2.signatures] == ["sender.example", "forwarder.example"]
    first = dkim2.signatures[0]
    assert (first.mail_from, first.recipients) == (
        "a@sender.example",
        ("list@forwarder.example", "b@c.example"),
    )
    assert first.algorithms == ("rsa-sha256", "ed25519-sha256")
    assert first.flags == ("donotmodify",)
    assert (dkim2.instances, dkim2.problem) == (2, "")


VECTORS = {
    "dkim2.present": CHAIN,
    "dkim2.malformed": b"DKIM2-Signature: i=1; nonsense\r\n" + MAIL,
}


@rows(*VECTORS)
def test_the_fields_cause_a_note(name: str) -> None:
    """Each finding has a mail that causes it."""
    assert ids_of(VECTORS[name]) == [name]


def test_every_finding_has_a_vector() -> None:
    """No finding about DKIM2 is without a test, and each is a note."""
    assert {one.id for one in DKIM2} == {*VECTORS}
    assert {one.severity for one in DKIM2} == {Severity.NOTE}


@rows(
    (instance("1") + MAIL, "no signature"),
    (SECOND + instance("2") + MAIL, "without a gap"),
    (FIRST + FIRST + instance("1") + MAIL, "without a gap"),
    (signature("x", "1", "d.example", "a@b.example") + instance("1") + MAIL, "without a gap"),
    (FIRST + MAIL, "without its Message-Instance"),
    (b"DKIM2-Signature: " + b"x" * 90_000 + b"\r\n" + MAIL, "longer than"),
)
def test_a_broken_chain_says_why(raw: bytes, problem: str) -> None:
    """The first fault of the fields is named."""
    (finding,) = describe_dkim2(read_dkim2(raw))
    assert problem in finding.meaning


def test_an_ordinary_mail_has_no_finding() -> None:
    """A mail without the fields is not told about DKIM2."""
    assert read_dkim2(MAIL) == Dkim2OfMail()
    assert ids_of(MAIL) == []


@rows(*VECTORS)
def test_dkim2_never_changes_a_score(name: str) -> None:
    """The report explains the fields, and the score stays the same."""
    plain, signed = score(mail=received(MAIL)), score(mail=received(VECTORS[name]))
    assert name in [one.finding.id for one in signed.score.charged]
    assert signed.score.tenths == plain.score.tenths


def test_the_worst_fields_are_described_briefly() -> None:
    """Many long fields take a small part of a report."""
    flags, recipients = (",".join([one] * 1000) for one in ("f" * 99, packed("r" * 400)))
    fields = b"".join(
        f"DKIM2-Signature: i={n}; m=1; d={'d' * 300}{n}; mf={packed('m' * 900)};\r\n".encode()
        + f" rt={recipients[:20_000]}; f={flags[:20_000]}; s={'s:a:b,' * 3000}s:a:b\r\n".encode()
        for n in range(1, 200)
    )
    dkim2 = read_dkim2(fields + instance("1") + MAIL)
    assert len(msgspec.json.encode(dkim2)) < 300_000
    (finding,) = describe_dkim2(dkim2)
    assert len(finding.meaning) < 2_000


@given(st.binary(max_size=300))
def test_any_field_can_be_read(body: bytes) -> None:
    """The parser accepts any octets."""
    describe_dkim2(read_dkim2(b"DKIM2-Signature: i=1; m=1; " + body + b"\r\n" + instance("1")))
