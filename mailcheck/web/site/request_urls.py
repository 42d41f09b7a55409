"""The address under which a client reaches us: what the links in its answer begin with."""

import re

from twisted.web.server import Request

from mailcheck.web.site.client_addresses import ClientAddresses
from mailcheck.web.site.request_headers import header_values
from mailcheck.wire.urls import PublicUrls

_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


class RequestUrls:
    """The configured address; without one, what a trusted proxy says that the client asked for.

    A scheme alone would make no link that works: it comes with the name in
    ``Host``, which proxies pass on. Without X-Forwarded-Proto from a trusted
    proxy the name that we are called by counts for nothing.
    """

    def __init__(
        self, urls: PublicUrls, addresses: ClientAddresses, *, is_configured: bool
    ) -> None:
        self.default = urls
        self._addresses = addresses
        self._is_configured = is_configured

    def of(self, request: Request) -> PublicUrls:
        """Give the addresses for the answer to a request."""
        scheme = None if self._is_configured else self._addresses.client_scheme(request)
        hosts = header_values(request, b"Host")
        if scheme is None or len(hosts) != 1 or _HOST.fullmatch(hosts[0]) is None:
            return self.default
        return PublicUrls(f"{scheme}://{hosts[0]}")


def shown_path(path: bytes) -> str:
    """Give a request's path for the log: who has a share link can read what it shares."""
    text = path.decode("ascii", "replace")
    return "/share/..." if text.startswith("/share/") else text
