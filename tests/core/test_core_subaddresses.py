"""Inbox addresses and their tags."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.addresses import (
    MAX_LOCAL_PART,
    MAX_TAG,
    UNTAGGED,
    Mailbox,
    explain_bad_tag,
    fold_tag,
    join_subaddress,
    new_mailbox_name,
    parse_mailbox,
    split_subaddress,
    without_subdomain,
)
from tests.table import rows

TAGS = st.text(max_size=MAX_TAG + 5)
DOMAINS = {"mail.example", "dev-mail.mail.example"}


def test_mailbox_names() -> None:
    """The name of a new inbox is dev- and 13 characters."""
    assert re.fullmatch("dev-[a-z2-7]{13}", new_mailbox_name(lambda length: b"\x5a" * length))


def test_the_longest_tag() -> None:
    """With the longest tag, the local part has at most 64 octets."""
    name = new_mailbox_name(lambda length: bytes(length))
    assert MAX_TAG == 46
    assert len(f"{name}+{'t' * MAX_TAG}") == MAX_LOCAL_PART
    assert explain_bad_tag("t" * MAX_TAG) is None


@given(TAGS)
def test_a_good_tag_makes_an_address(tag: str) -> None:
    """A tag is valid exactly if its address survives a round trip."""
    name = new_mailbox_name(lambda length: bytes(length))
    problem = explain_bad_tag(tag)
    if problem is None:
        address = join_subaddress(name, tag, "mailcheck.example")
        assert '"' not in address
        assert split_subaddress(parse_mailbox(address).local_part) == (name, tag)
    else:
        assert "tag" in problem


@rows(
    ("a b", "dot-atom"),
    (".a", "dot-atom"),
    ("a.", "dot-atom"),
    ("a..b", "dot-atom"),
    ("a@b", "dot-atom"),
    ('"a"', "dot-atom"),
    ("a\n", "dot-atom"),
    ("t" * 47, "you sent 47"),
    ("ü" * 24, "you sent 48"),
)
def test_bad_tags(tag: str, problem: str) -> None:
    """An invalid tag is rejected with the reason."""
    assert problem in (explain_bad_tag(tag) or "")


@rows("", "signup", "a.b", "a+b", "ÜBER", "x" * 46, "--", "1", "%41")
def test_good_tags(tag: str) -> None:
    """Dot-atoms in any script are tags, also with plus signs. Empty means untagged."""
    assert explain_bad_tag(tag) is None


@rows(
    ("dev-abc", "dev-abc", UNTAGGED),
    ("DEV-ABC+SignUp", "dev-abc", "SignUp"),
    ("dev-abc+a+b", "dev-abc", "a+b"),
    ("dev-abc+", "dev-abc", UNTAGGED),
    ("+a", "", "a"),
    ("postmaster", "postmaster", UNTAGGED),
)
def test_splitting(local_part: str, name: str, tag: str) -> None:
    """The mailbox name is folded and the tag is kept as written."""
    assert split_subaddress(local_part) == (name, tag)


def test_folding() -> None:
    """Tags are compared case-insensitively in every script."""
    assert fold_tag("SignUp") == fold_tag("SIGNUP")
    assert fold_tag("STRASSE") == fold_tag("straße")
    assert fold_tag("a") != fold_tag("b")


@rows(
    ("Ann@dev-abc.mail.example", "dev-abc+Ann", "mail.example"),
    ("Ann@Shop.DEV-ABC.MAIL.example.", "DEV-ABC+Shop-Ann", "MAIL.example"),
    ("a+b@shop.dev-abc.mail.example", "dev-abc+shop-a+b", "mail.example"),
    ("a@dev-shop.dev-abc.mail.example", "dev-abc+dev-shop-a", "mail.example"),
    ("a@dev-abc.dev-mail.mail.example", "dev-abc+a", "dev-mail.mail.example"),
)
def test_a_tag_in_front_of_the_domain(address: str, local_part: str, domain: str) -> None:
    """A tag in front of the domain is the same as a tag in the local part."""
    found = without_subdomain(parse_mailbox(address), DOMAINS)
    assert found == Mailbox(local_part, domain)


@rows(
    "dev-abc+a@mail.example",
    "a@shop.mail.example",
    "a@b.shop.dev-abc.mail.example",
    "a@dev-abc.other.example",
    "a@dev-abc.mail.example.other.example",
    "a@dev-mail.mail.example",
    "a@[192.0.2.1]",
    "postmaster",
)
def test_other_subdomains(address: str) -> None:
    """Any other address is left as it is, also at a domain of this server that begins like one."""
    mailbox = Mailbox(*address.partition("@")[::2])
    assert without_subdomain(mailbox, DOMAINS) == mailbox
