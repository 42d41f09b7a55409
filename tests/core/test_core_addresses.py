"""Mail addresses according to RFC 5321, and tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.addresses import (
    MAX_LOCAL_PART,
    MAX_PATH,
    Mailbox,
    explain_bad_local_part,
    is_domain_name,
    is_dot_atom,
    parse_address_literal,
    parse_local_name,
    parse_mailbox,
)
from tests.table import rows

ATEXT = "abcXYZ019!#$%&'*+-/=?^_`{|}~"


@rows(
    ("Smith@bar.com", "Smith", "bar.com"),
    ("a@b", "a", "b"),
    ("x.y.z@example.com.", "x.y.z", "example.com."),
    ("dev-abc+tag@mailcheck.example", "dev-abc+tag", "mailcheck.example"),
    ("!#$%&'*+-/=?^_`{|}~@example.com", "!#$%&'*+-/=?^_`{|}~", "example.com"),
    ('"Joe\\,Blow"@example.com', "Joe,Blow", "example.com"),
    ('"a b"@example.com', "a b", "example.com"),
    ('"a@b"@example.com', "a@b", "example.com"),
    ('"\\"\\\\"@example.com', '"\\', "example.com"),
    ('""@example.com', "", "example.com"),
    ("user@[192.0.2.1]", "user", "[192.0.2.1]"),
    ("user@[IPv6:2001:db8::1]", "user", "[IPv6:2001:db8::1]"),
    ("user@[ipv6:::ffff:192.0.2.1]", "user", "[ipv6:::ffff:192.0.2.1]"),
    ("用户@例子.中国", "用户", "例子.中国"),
    ('"用 户"@例子.中国', "用 户", "例子.中国"),
    ("user@xn--fsqu00a.xn--fiqs8s", "user", "xn--fsqu00a.xn--fiqs8s"),
    ("@hosta.int:userc@d.bar.org", "userc", "d.bar.org"),
    ("@hosta.int,@jkl.org:userc@d.bar.org", "userc", "d.bar.org"),
    ("a_b@under_score.example", "a_b", "under_score.example"),
)
def test_addresses(text: str, local_part: str, domain: str) -> None:
    """Addresses of RFC 5321 and RFC 6531 are parsed, without source routes (appendix C)."""
    assert parse_mailbox(text) == Mailbox(local_part, domain)


SERVICE_SENDERS = [
    "bounces+2309175-1e1a-dev-inboxinboxinb+signup-1=mailcheck.example@em123.shop.example",
    "somebody.lastname+caf_=dev-inboxinboxinb+signup-1=mailcheck.example@gmail.com",
    "SRS0=abcd=XY=shop.example=bounces+2309175-1e1a-somebody.lastname=example.com@fwd.example",
    "l" * 500 + "@" + "d" * 255,
    ".try..this..0511.@docomo.ne.jp",
    ".@docomo.ne.jp",
    "a@_spf.mail_.example",
    "a@_",
]


@rows(*SERVICE_SENDERS)
def test_addresses_outside_of_rfc_5321_exist(text: str) -> None:
    """Long local parts, dots anywhere and underscores in domains are accepted."""
    mailbox = parse_mailbox(text)
    assert (mailbox.local_part, mailbox.domain) == tuple(text.split("@"))
    assert str(mailbox) == text


@rows("root", "www-data", "a..b", "Почта")
def test_names_without_a_domain(text: str) -> None:
    """A local part without a domain is a mailbox of this host."""
    mailbox = parse_local_name(text)
    assert mailbox == Mailbox(text, "")
    assert str(mailbox) == text


@rows("", "a b", "a@b", '"a"', "a<b", "a\r\nb", "a\0", "a" * 65)
def test_invalid_names(text: str) -> None:
    """Empty and overlong texts, separators and control characters are not local names."""
    assert parse_local_name(text) is None


@rows(
    ("dev-abc+tag", None),
    ("a b", None),
    ("l" * MAX_LOCAL_PART, None),
    ("l" * 65, "65 octets"),
    ("ü" * 33, "66 octets"),
    (".a", "dot"),
    ("a.", "dot"),
    ("a..b", "dot"),
)
def test_local_parts_of_this_server(local_part: str, problem: str | None) -> None:
    """Addresses of this server must meet the limits of RFC 5321 for length and dots."""
    found = explain_bad_local_part(local_part)
    assert found is None if problem is None else problem in str(found)


@rows(
    ("", "no @"),
    ("a", "no @"),
    ("@example.com", "local part"),
    ("a@", "domain"),
    ("a b@example.com", "local part"),
    ("a@b@example.com", "domain"),
    ('"a"b@example.com', "no @ after the quoted"),
    ('"a@example.com', "local part"),
    ('"a\nb"@example.com', "local part"),
    ("a\r\n@example.com", "local part"),
    ("a\x00@example.com", "local part"),
    ("a@-example.com", "domain"),
    ("a@example-.com", "domain"),
    ("a@exa mple.com", "domain"),
    ("a@example..com", "domain"),
    ("a@.example.com", "domain"),
    ("a@[192.0.2.256]", "."),
    ("a@[192.0.2.1", "brackets"),
    ("a@[2001:db8::1]", "."),
    ("a@[IPv6:192.0.2.1]", "."),
    ("a@[IPv6:fe80::1%eth0]", "zone"),
    ("a@[]", "."),
    ("@hosta.int:", "no @"),
    ("@hosta.int,userc@d.bar.org", "local part"),
    ("\udcff@example.com", "."),
    ("a@\udcff.example", "."),
    ("a" * MAX_PATH + "@b", str(MAX_PATH)),
    ("ü" * (MAX_PATH // 2) + "@b", str(MAX_PATH)),
    ("a@" + "b" * 256, "domain"),
)
def test_invalid_addresses(text: str, problem: str) -> None:
    """An invalid address is rejected with the reason."""
    with pytest.raises(ValueError, match=problem):
        parse_mailbox(text)


def test_the_largest_address() -> None:
    """An address of `MAX_PATH` bytes is accepted."""
    domain = "d" * 255
    assert parse_mailbox("l" * (MAX_PATH - 256) + "@" + domain).domain == domain


LOCAL_PARTS = st.text(
    st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]), max_size=30
).filter(lambda text: len(text.encode()) <= MAX_LOCAL_PART)


@given(LOCAL_PARTS)
def test_a_written_address_reads_as_itself(local_part: str) -> None:
    """A local part is quoted if necessary, and survives a round trip."""
    mailbox = Mailbox(local_part, "example.com")
    assert parse_mailbox(str(mailbox)) == mailbox


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    """Any text gives an address that survives a round trip, or raises `ValueError`."""
    try:
        mailbox = parse_mailbox(text)
    except ValueError:
        return
    assert parse_mailbox(str(mailbox)) == mailbox


@given(st.lists(st.text(ATEXT, min_size=1), min_size=1))
def test_dot_atoms(atoms: list[str]) -> None:
    """Only atoms joined by single dots need no quotes."""
    text = ".".join(atoms)
    assert is_dot_atom(text)
    for wrong in (f".{text}", f"{text}.", f"{text}..a", f"{text} ", f'{text}"', ""):
        assert not is_dot_atom(wrong)


@rows(
    ("[192.0.2.1]", "192.0.2.1"),
    ("[IPv6:2001:DB8:0:0::1]", "2001:db8::1"),
    ("[ipv6:::]", "::"),
)
def test_address_literals(text: str, address: str) -> None:
    """An address literal is returned in its shortest form (RFC 5321 4.1.3)."""
    assert parse_address_literal(text) == address


@rows("192.0.2.1", "[192.0.2.1", "[ 192.0.2.1]", "[1]", "[IPv6:1]")
def test_invalid_address_literals(text: str) -> None:
    """Invalid address literals are rejected."""
    with pytest.raises(ValueError):  # noqa: PT011 - the words are those of the standard library
        parse_address_literal(text)


@rows(
    ("localhost", True),
    ("mx.example.com", True),
    ("mx.example.com.", True),
    ("a--b.example", True),
    ("", False),
    (".", False),
    ("-a.example", False),
    ("a" * 256, False),
    ("[192.0.2.1]", False),
)
def test_domain_names(text: str, is_name: bool) -> None:
    """The form of a host name is recognised, without a lookup."""
    assert is_domain_name(text) is is_name


@rows(
    "@" + "a." * 200_000,
    "@" + "a" * 400_000,
    "@a" + "-" * 400_000,
    "@" + "a,@" * 130_000,
    '"' + "a" * 400_000,
    '"' + "\\" * 400_001,
    "a." * 200_000 + "@",
    "a@" + "-" * 400_000,
)
def test_hostile_lengths(text: str) -> None:
    """Long invalid text is rejected in linear time."""
    with pytest.raises(ValueError, match=r"address|local part|domain"):
        parse_mailbox(text)
