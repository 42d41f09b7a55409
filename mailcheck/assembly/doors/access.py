"""Builds what the doors of the HTTP server share."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import trusted_proxies
from mailcheck.web.api.calls import Route
from mailcheck.web.api.description import ApiDescription
from mailcheck.web.site.access_control import AccessControl, Identifier
from mailcheck.web.site.requests import ClientAddresses, RequestUrls


class WebParts(Struct, frozen=True):
    """What the doors of the HTTP server share. ``routes`` are those of the REST API."""

    daemon: Daemon
    urls: RequestUrls
    addresses: ClientAddresses
    access: AccessControl
    routes: Sequence[Route[Any]]
    description: ApiDescription


def client_addresses(daemon: Daemon) -> ClientAddresses:
    """Return the rules that find the addresses of clients behind proxies."""
    return ClientAddresses(trusted_proxies(daemon.runtime.config))


def build_access(
    daemon: Daemon, addresses: ClientAddresses, identifier: Identifier | None = None
) -> AccessControl:
    """Build the access control of requests with an API key, or with what else is identified."""
    runtime, accounts = daemon.runtime, daemon.accounts
    return AccessControl(
        identifier or accounts.authenticator,
        accounts.meter,
        addresses,
        lambda: runtime.config.limits.requests_per_day,
        runtime.clients,
    )


def posted_size(mail_size: int) -> int:
    """Return the maximum size of a request with a mail: its files are in Base64 (RFC 4648)."""
    return mail_size * 3 // 2
