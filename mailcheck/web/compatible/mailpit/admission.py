"""The admission of clients to a listener that needs no API key.

Without a password, only clients on this machine and in its private network may. Their browsers
show pages of strangers, so a request that a page of another site causes is rejected:

* DNS rebinding gives a stranger's name the address of this machine. The name is in ``Host``.
* A page can send requests to other sites. Browsers name it in ``Origin``, or tell that the request
  is ``cross-site``. WebSockets are requests too.
"""

from collections.abc import Collection

from msgspec import Struct
from twisted.web.server import Request

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import InvalidCredentials, NotPermitted
from mailcheck.core.network_addresses import is_local_client, parse_ip_address
from mailcheck.operations.inbox.open_inbox import OpenInbox, Passwords
from mailcheck.web.site.access_control import AccessControl, Denied
from mailcheck.web.site.requests import ClientAddresses, basic_credentials, header_values

PRIVATE_SUFFIXES = (".localhost", ".test", ".internal", ".local")
"""Endings of names that no stranger can have in public DNS (RFC 6761, RFC 6762, ICANN)."""

_OTHER_SITES = ("cross-site", "same-site")


class OpenAdmission(Struct, frozen=True):
    """Admits clients without an API key to the open inbox.

    :param hosts: names of this listener that are in public DNS, in lower case.
    :param probes: paths that need no password, since health checks have none.
    """

    _inbox: OpenInbox
    _passwords: Passwords
    _access: AccessControl
    _addresses: ClientAddresses
    _hosts: Collection[str]
    _probes: Collection[bytes]

    async def admit(self, request: Request) -> Caller:
        """Return the caller of a request.

        :raises NotPermitted: the client or the page that caused the request may not use the inbox.
        :raises InvalidCredentials: the password is missing or wrong.
        :raises LimitExceeded: too many requests with a wrong password.
        :raises OperatorMissing: the account of the inbox does not exist yet.
        """
        client = self._addresses.client_ip(request)
        if not self._passwords:
            self._require_private(client, request)
        _require_own_page(request)
        needs_password = bool(self._passwords) and request.path not in self._probes
        if needs_password and not _has_password(request, self._passwords):
            denied = await self._access.authenticate(request, _wrong_password)
            assert isinstance(denied, Denied)
            raise denied.failure
        names = (basic_credentials(value)[0] for value in header_values(request, b"Authorization"))
        return await self._inbox.caller(client, next(names, ""))

    def base(self, request: Request) -> str:
        """Return the URL of the listener for a client."""
        scheme = self._addresses.client_scheme(request) or "http"
        return f"{scheme}://{_host_of(request)}"

    def _require_private(self, client: str, request: Request) -> None:
        if not is_local_client(client):
            raise NotPermitted(
                f"{client} is not on this machine or in its private network: set a password with "
                "[mailpit] ui_password to use this listener from elsewhere"
            )
        name = _name_of(_host_of(request))
        is_private = (
            "." not in name
            or name.endswith(PRIVATE_SUFFIXES)
            or parse_ip_address(name) is not None
            or name in self._hosts
        )
        if not is_private:
            raise NotPermitted(
                f"{name[:253]} is not a name of this listener: add it to [mailpit] hosts"
            )


def _require_own_page(request: Request) -> None:
    """Check that no page of another site caused the request."""
    origins = header_values(request, b"Origin")
    host = _host_of(request).lower()
    if any(origin.lower().partition("://")[2] != host for origin in origins):
        raise NotPermitted(f"pages of {origins[0][:253]} may not use this listener")
    sites = header_values(request, b"Sec-Fetch-Site")
    modes = header_values(request, b"Sec-Fetch-Mode")
    is_link = request.method in (b"GET", b"HEAD") and modes == ["navigate"]
    if not is_link and any(site.strip().lower() in _OTHER_SITES for site in sites):
        raise NotPermitted("pages of other sites may not use this listener")


def _host_of(request: Request) -> str:
    return "".join(header_values(request, b"Host")[:1]).strip()


def _name_of(host: str) -> str:
    """Return the name or the address in a Host header, in lower case."""
    name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    return name.lower().rstrip(".")


def _has_password(request: Request, passwords: Passwords) -> bool:
    sent = header_values(request, b"Authorization")
    return any(passwords.allows(*basic_credentials(value)) for value in sent)


def _wrong_password() -> str:
    raise InvalidCredentials("send a user and a password of this listener (HTTP Basic)")
