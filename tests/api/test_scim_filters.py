"""Filters of SCIM (RFC 7644 3.4.2.2): what they find, and what is refused."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.api.scim.filters import MAX_FILTER, matches, parse_filter
from mailcheck.api.scim.schemas import USER, select
from mailcheck.core.signing_in.provisioning import Kind, ProvisioningRefused
from tests.table import rows

ANN: dict[str, Any] = {
    "schemas": [USER.schema],
    "id": "a1",
    "externalId": "X-1",
    "userName": "Ann@Example.com",
    "name": {"givenName": "Ann"},
    "active": True,
    "emails": [
        {"value": "ann@example.com", "type": "work", "primary": True},
        {"value": "ann@home.example", "type": "home"},
    ],
    "meta": {"resourceType": "User", "created": "2026-11-29T12:00:00.000Z"},
}


@rows(
    ('userName eq "ann@example.com"', True),
    ('USERNAME EQ "ANN@EXAMPLE.COM"', True),
    ('urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ann@example.com"', True),
    ('userName eq "bob@example.com"', False),
    ('externalId eq "X-1"', True),
    ('externalId eq "x-1"', False),
    ('id eq "a1"', True),
    ('emails[type eq "work"].value eq "ann@example.com"', True),
    ('emails[type eq "work" and value co "home"]', False),
    ('emails[type eq "home" and value co "home"]', True),
    ('emails.type eq "home"', True),
    ('emails eq "ann@home.example"', True),
    ('emails ew "home.example"', True),
    ('name.givenName sw "a"', True),
    ('name.familyName eq "x"', False),
    ('name.familyName ne "x"', True),
    ("name.familyName pr", False),
    ("name.givenName pr", True),
    ("displayName eq null", True),
    ("userName eq null", False),
    ("active eq true", True),
    ("active eq True", True),
    ('active eq "false"', False),
    ("active ne false", True),
    ('meta.created gt "2026-01-01T00:00:00Z"', True),
    ('meta.created lt "2026-01-01T00:00:00Z"', False),
    ('not (userName eq "ann@example.com")', False),
    ('userName eq "bob" or externalId eq "X-1"', True),
    ('userName eq "bob" or externalId eq "X-1" and active eq false', False),
    ('(userName eq "bob" or externalId eq "X-1") and active eq true', True),
    (r'userName eq "a\"nn"', False),
)
def test_what_a_filter_finds(text: str, is_found: bool) -> None:
    """A filter finds a person by each stored attribute, with case where it counts."""
    assert matches(ANN, parse_filter(text), USER) is is_found


@rows(
    "",
    "userName",
    "userName eq",
    "userName is 1",
    "userName eq ann",
    'userName eq "ann',
    'userName eq "ann" and',
    'userName eq "ann" userName',
    'userName eq "a" or nickname eq "b"',
    "(userName pr",
    "not userName pr",
    'name[givenName eq "x"',
    'userName[value eq "x"]',
    'emails[colour eq "x"]',
    "userName eq 7",
    "userName eq [1]",
    'active gt "x"',
    'active eq "x"',
    "active gt true",
    "active eq 1",
    "(" * 12 + "userName pr" + ")" * 12,
    'userName eq "' + "a" * MAX_FILTER + '"',
)
def test_what_is_refused(text: str) -> None:
    """A filter that is not understood is refused. It never finds everybody."""
    with pytest.raises(ProvisioningRefused) as refused:
        matches(ANN, parse_filter(text), USER)
    assert refused.value.kind is Kind.INVALID_FILTER


@given(st.text('()[]"\\ aeqornt.:', max_size=40))
def test_any_text(text: str) -> None:
    """Every text is a filter, or is refused."""
    with suppress(ProvisioningRefused):
        matches(ANN, parse_filter(text), USER)


@rows(
    (("userName",), (), {"userName"}),
    (("NAME.givenName", "emails.value"), (), {"name", "emails"}),
    ((), ("emails", "name", "meta", "active", "externalId"), {"userName"}),
    ((), ("id", "schemas", "nothing"), set(ANN) - {"id", "schemas"}),
    (("nothing",), (), set()),
)
def test_which_attributes_are_returned(
    only: tuple[str, ...], without: tuple[str, ...], names: set[str]
) -> None:
    """The requested attributes are returned, and always the id and the schemas."""
    assert set(select(ANN, USER, only, without)) == names | {"id", "schemas"}


def test_which_parts_are_returned() -> None:
    """Sub-attributes are selected in each value."""
    assert select(ANN, USER, ["emails.value"], [])["emails"] == [
        {"value": "ann@example.com"},
        {"value": "ann@home.example"},
    ]
    assert select(ANN, USER, [], ["emails.value", "emails.primary"])["emails"] == [
        {"type": "work"},
        {"type": "home"},
    ]
