"""Parsing of domain names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.domains.domain_names import (
    is_within,
    origin_of,
    parse_blocklist_query,
    parse_domain,
    parse_host_address,
    parse_selector,
)
from mailcheck.core.errors import InvalidParameter
from tests.table import rows


@rows(
    ("example.com", "example.com"),
    ("EXAMPLE.Com.", "example.com"),
    (" example.com\n", "example.com"),
    ("Bücher.example", "xn--bcher-kva.example"),
    ("straße.de", "xn--strae-oqa.de"),
    ("例え。jp", "xn--r8jz45g.jp"),
    ("xn--i-7iq.ws", "xn--i-7iq.ws"),
    ("_spf.example.com", "_spf.example.com"),
    ("a.b.c.d.e.f.g.h.i.example", "a.b.c.d.e.f.g.h.i.example"),
    ("3com.com", "3com.com"),
    (".".join(["a" * 63] * 3 + ["b" * 61]), ".".join(["a" * 63] * 3 + ["b" * 61])),
)
def test_domain_becomes_lower_case_a_labels(text: str, domain: str) -> None:
    """A domain in any script and case, with or without a trailing dot, has one form."""
    assert parse_domain(text) == domain


@rows(
    ("", "is missing"),
    ("  ", "is missing"),
    ("https://www.example.com/page?x=1", "is a URL; send only the domain: www.example.com"),
    ("http://user:pw@example.com:80/", "is a URL; send only the domain: example.com"),
    ("info@example.com", "is a mail address; send only the part after the @: example.com"),
    ("192.0.2.1", "is an IP address"),
    ("2001:db8::1", "is an IP address"),
    ("[192.0.2.1]", "is an IP address"),
    ("example.com/path", "more than a domain"),
    ("example.com:25", "more than a domain"),
    ("localhost", "private networks"),
    ("com", "is a single label"),
    ("printer.local", "ends in .local"),
    ("vault.internal", "ends in .internal"),
    ("mail.test.", "ends in .test"),
    ("1.0.0.127.in-addr.arpa", "ends in .arpa"),
    ("abc.ONION", "ends in .onion"),
    ("1.2.3", "ends in a number"),
    ("exa mple.com", "letters, digits"),
    ("example..com", "it has an empty label"),
    ("example.com..", "it has an empty label"),
    (".example.com", "it has an empty label"),
    ("-example.com", "letters, digits"),
    ("exam\0ple.com", "letters, digits"),
    ("a" * 64 + ".com", "longer than 63"),
    (".".join(["a" * 63] * 4) + ".com", "longer than 253"),
    ("ü" * 5000 + ".com", "longer than 253"),
    ("☕.example", "is not a domain name"),
)
def test_anything_else_is_refused_with_advice(text: str, advice: str) -> None:
    """Anything else is rejected with the name of the parameter and what to send."""
    with pytest.raises(InvalidParameter) as caught:
        parse_domain(text)
    assert advice in str(caught.value)
    assert str(caught.value).startswith("domain ")
    assert caught.value.name == "domain"


def test_special_use_names_are_allowed_on_request() -> None:
    """Special-use domains such as .test are accepted if the operator allows them."""
    assert parse_domain("good.test", allow_special_use=True) == "good.test"
    with pytest.raises(InvalidParameter, match="single label"):
        parse_domain("localhost", allow_special_use=True)


@given(st.text(max_size=300))
def test_every_text_is_a_clean_name_or_refused(text: str) -> None:
    """Any input gives a valid DNS name or `InvalidParameter`."""
    try:
        domain = parse_domain(text)
    except InvalidParameter:
        return
    assert domain == domain.lower()
    assert len(domain) <= 253
    assert all(0 < len(label.encode("ascii")) <= 63 for label in domain.split("."))
    assert parse_domain(domain) == domain


@rows(
    ("8.8.8.8", "8.8.8.8"),
    ("::ffff:8.8.8.8", "8.8.8.8"),
    ("2A00:1450::1", "2a00:1450::1"),
    ("127.0.0.2", "127.0.0.2"),
    ("192.0.2.99", "192.0.2.99"),
    ("2001:db8::99", "2001:db8::99"),
    ("Example.com", "example.com"),
)
def test_blocklist_query_is_an_address_or_a_domain(text: str, shown: str) -> None:
    """Public, documentation and RFC 5782 test addresses and domains are accepted."""
    assert str(parse_blocklist_query(text)) == shown


@rows(
    ("10.0.0.1", "is private"),
    ("192.168.1.1", "is private"),
    ("127.0.0.3", "is loopback"),
    ("100.64.0.1", "NAT"),
    ("169.254.169.254", "link-local"),
    ("224.0.0.1", "multicast"),
    ("255.255.255.255", "reserved"),
    ("fe80::1", "link-local"),
    ("fd00::1", "private"),
    ("::1", "loopback"),
    ("::ffff:10.0.0.1", "private"),
    ("64:ff9b::a00:1", "private"),
    ("2002:a00:1::1", "private"),
    ("8.8.8.0/24", "is a network"),
    ("1.2.3.4.5", "ends in a number"),
    ("", "query is missing"),
)
def test_blocklist_query_refuses_what_no_list_knows(text: str, advice: str) -> None:
    """Private and special addresses are rejected with the reason."""
    with pytest.raises(InvalidParameter, match=advice) as caught:
        parse_blocklist_query(text)
    assert caught.value.name == "query"


def test_private_addresses_are_allowed_on_request() -> None:
    """The option ``allow_private`` allows private addresses."""
    assert str(parse_blocklist_query("10.0.0.1", allow_private=True)) == "10.0.0.1"
    assert str(parse_host_address("10.0.0.1", allow_private=True)) == "10.0.0.1"


def test_host_address_is_a_public_address() -> None:
    """The ``ip`` parameter accepts public addresses only."""
    assert str(parse_host_address("8.8.8.8")) == "8.8.8.8"
    with pytest.raises(InvalidParameter, match="is not an IP address"):
        parse_host_address("example.com")
    with pytest.raises(InvalidParameter, match="is private"):
        parse_host_address("10.1.1.1")


@rows("s1", "Selector1", "20230601", "a.b-c", "_x", " s1 ")
def test_selectors_are_labels(text: str) -> None:
    """A DKIM selector is one or more labels, in lower case."""
    assert parse_selector(text) == text.strip().lower()


@rows(
    ("s1._domainkey.example.com", "send only the selector: s1"),
    ("", "is not a selector"),
    ("a..b", "is not a selector"),
    ("-a", "is not a selector"),
    ("sélecteur", "is not a selector"),
    ("a b", "is not a selector"),
    ("x" * 64, "is not a selector"),
)
def test_invalid_selectors_are_rejected(text: str, advice: str) -> None:
    """The error says what to send."""
    with pytest.raises(InvalidParameter, match=advice):
        parse_selector(text)


@rows(
    ("example.com", "example.com", True),
    ("mx.example.com", "example.com", True),
    ("badexample.com", "example.com", False),
    ("com", "example.com", False),
)
def test_is_within_compares_whole_labels(domain: str, parent: str, expected: bool) -> None:
    """Subdomains are compared by labels, not by characters."""
    assert is_within(domain, parent) is expected


@rows(
    ("https://mail.example", "https://mail.example"),
    ("https://mail.example/mailcheck", "https://mail.example"),
    ("HTTPS://Mail.Example", "https://mail.example"),
    ("https://mail.example:443", "https://mail.example"),
    ("http://mail.example:443", "http://mail.example:443"),
    ("http://mail.example:80/", "http://mail.example"),
    ("https://mail.example:8443", "https://mail.example:8443"),
    ("https://mail.example:", "https://mail.example"),
    ("https://m\u00fcnchen.example", "https://xn--mnchen-3ya.example"),
    ("https://M\u00dcNCHEN.example:443", "https://xn--mnchen-3ya.example"),
    ("https://xn--mnchen-3ya.example", "https://xn--mnchen-3ya.example"),
    ("http://[::1]:8080", "http://[::1]:8080"),
    ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
)
def test_origins(url: str, origin: str) -> None:
    """Case, default port and the form of an IDN are those of browsers."""
    assert origin_of(url) == origin


@rows("", "mail.example", "https://", "https://a:99999", "https://a:x", "https://\u2603.example")
def test_no_origin(url: str) -> None:
    """A URL without a valid host or port has none."""
    with pytest.raises(ValueError, match=r"."):
        origin_of(url)
