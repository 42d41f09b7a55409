"""Rules that one option alone can't tell: contradictions, and values that must parse."""

from collections.abc import Iterable
from ipaddress import ip_network
from urllib.parse import urlsplit

from mailcheck.config_options import Config
from mailcheck.core.addresses import is_domain_name
from mailcheck.core.listen_addresses import parse_listen_address
from mailcheck.dns.servers import parse_server


def check_together(config: Config) -> str | None:
    """Say what is wrong with a configuration as a whole, or nothing."""
    return (
        _check_domains(config)
        or _check_listen(config)
        or _check_networks(config)
        or _check_certificate(config)
        or _check_urls(config)
        or _check_resolvers(config)
        or _check_blocklists(config)
    )


def _check_domains(config: Config) -> str | None:
    for domain in (config.inbox.domain, *config.inbox.aliases):
        if not is_domain_name(domain) or not domain.isascii():
            return f"[inbox] {domain!r} is not a domain name (an IDN is written as xn--...)"
    name = config.smtp.host_name
    if name and (not is_domain_name(name) or not name.isascii()):
        return f"[smtp] host_name {name!r} is not a host name"
    return None


def _check_listen(config: Config) -> str | None:
    named = {
        "[smtp] listen": config.smtp.listen,
        "[smtp] submission_listen": config.smtp.submission_listen,
        "[web] listen": config.web.listen,
    }
    for option, addresses in named.items():
        for address in addresses:
            try:
                parse_listen_address(address)
            except ValueError as error:
                return f"{option}: {address!r}: {error}"
    if not config.web.listen:
        return "[web] listen is empty: nothing could be asked of the daemon"
    return None


def _check_networks(config: Config) -> str | None:
    named = {
        "[smtp] proxy_protocol_from": config.smtp.proxy_protocol_from,
        "[smtp] xclient_from": config.smtp.xclient_from,
        "[web] trusted_proxies": config.web.trusted_proxies,
    }
    for option, networks in named.items():
        for network in networks:
            try:
                ip_network(network)
            except ValueError as error:
                return f"{option}: {error}"
    return None


def _check_certificate(config: Config) -> str | None:
    if bool(config.smtp.certificate) != bool(config.smtp.private_key):
        return "[smtp] certificate and private_key go together"
    return None


def _check_urls(config: Config) -> str | None:
    scheme, _, path = config.storage.url.partition(":")
    if scheme != "sqlite" or not path:
        return f"[storage] url {config.storage.url!r} is not sqlite:<path>"
    url = config.web.public_url
    if url:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or url.endswith("/"):
            return (
                f"[web] public_url {url!r} is not an http or https address "
                f"without a slash at its end"
            )
    return None


def _check_resolvers(config: Config) -> str | None:
    named = {
        "[dns] resolvers": config.dns.resolvers,
        "[blocklists] resolvers": config.blocklists.resolvers,
    }
    for option, resolvers in named.items():
        for resolver in resolvers:
            try:
                parse_server(resolver)
            except ValueError as error:
                return f"{option}: {error}"
    return None


def _check_blocklists(config: Config) -> str | None:
    try:
        parse_pairs(config.blocklists.keys)
    except ValueError:
        return "[blocklists] keys are written as zone=key"  # without the key: it is secret
    try:
        budgets = parse_pairs(config.blocklists.daily_budgets)
    except ValueError as error:
        return f"[blocklists] daily_budgets: {error}"
    for zone, budget in budgets.items():
        if not budget.isascii() or not budget.isdigit():
            return f"[blocklists] daily_budgets: {zone}={budget}: {budget!r} is no whole number"
    return None


def parse_pairs(texts: Iterable[str]) -> dict[str, str]:
    """Read ``zone=value`` of lists and, one to a line, of files.

    :raises ValueError: names the one that is not of this form.
    """
    pairs = {}
    for word in (word for text in texts for word in text.split()):
        zone, equals, value = word.partition("=")
        if not zone or not equals or not value:
            raise ValueError(f"{word!r} is not of the form zone=value")
        pairs[zone.lower()] = value
    return pairs
