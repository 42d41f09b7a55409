"""Inbox addresses and their tags."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.addresses import (
    MAX_LOCAL_PART,
    MAX_TAG,
    UNTAGGED,
    explain_bad_tag,
    fold_tag,
    join_subaddress,
    new_mailbox_name,
    parse_mailbox,
    split_subaddress,
)

TAGS = st.text(max_size=MAX_TAG + 5)


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


@pytest.mark.parametrize(
    ("tag", "problem"),
    [
        ("a b", "dot-atom"),
        (".a", "dot-atom"),
        ("a.", "dot-atom"),
        ("a..b", "dot-atom"),
        ("a@b", "dot-atom"),
        ('"a"', "dot-atom"),
        ("a\n", "dot-atom"),
        ("t" * 47, "you sent 47"),
        ("ü" * 24, "you sent 48"),
    ],
)
def test_bad_tags(tag: str, problem: str) -> None:
    """An invalid tag is rejected with the reason."""
    assert problem in (explain_bad_tag(tag) or "")


@pytest.mark.parametrize("tag", ["", "signup", "a.b", "a+b", "ÜBER", "x" * 46, "--", "1", "%41"])
def test_good_tags(tag: str) -> None:
    """Dot-atoms in any script are tags, also with plus signs. Empty means untagged."""
    assert explain_bad_tag(tag) is None


@pytest.mark.parametrize(
    ("local_part", "name", "tag"),
    [
        ("dev-abc", "dev-abc", UNTAGGED),
        ("DEV-ABC+SignUp", "dev-abc", "SignUp"),
        ("dev-abc+a+b", "dev-abc", "a+b"),
        ("dev-abc+", "dev-abc", UNTAGGED),
        ("+a", "", "a"),
        ("postmaster", "postmaster", UNTAGGED),
    ],
)
def test_splitting(local_part: str, name: str, tag: str) -> None:
    """The mailbox name is folded and the tag is kept as written."""
    assert split_subaddress(local_part) == (name, tag)


def test_folding() -> None:
    """Tags are compared case-insensitively in every script."""
    assert fold_tag("SignUp") == fold_tag("SIGNUP")
    assert fold_tag("STRASSE") == fold_tag("straße")
    assert fold_tag("a") != fold_tag("b")
