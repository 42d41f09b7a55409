"""Which part of a name somebody registered."""

import pytest

from mailcheck.checks.mail_domains import registrable_domain


@pytest.mark.parametrize(
    ("host", "owner"),
    [
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("mail.example.co.uk", "example.co.uk"),
        ("b.example.uk.com", "example.uk.com"),
        ("uk.com", "uk.com"),
        ("com", "com"),
        ("host", "host"),
    ],
)
def test_the_list_of_suffixes_tells_what_dns_can_not(host: str, owner: str) -> None:
    """Names below uk.com belong to different people; a suffix stands for itself."""
    assert registrable_domain(host) == owner
