"""Registrable domains."""

from mailcheck.checks.mail_domains import registrable_domain
from tests.table import rows


@rows(
    ("example.com", "example.com"),
    ("a.b.example.com", "example.com"),
    ("mail.example.co.uk", "example.co.uk"),
    ("b.example.uk.com", "example.uk.com"),
    ("uk.com", "uk.com"),
    ("com", "com"),
    ("host", "host"),
)
def test_the_registrable_domain_of_a_host(host: str, owner: str) -> None:
    """Names below uk.com belong to different owners; a suffix is its own domain."""
    assert registrable_domain(host) == owner
