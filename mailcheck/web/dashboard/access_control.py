"""Who visits a page, and whether a form is one of ours."""

from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace
from twisted.web.server import Request

from mailcheck.api.requests.parsing import Query, split_query
from mailcheck.core.errors import FormExpired
from mailcheck.core.network_addresses import counting_key
from mailcheck.operations.accounts.sign_in import DashboardSessions
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.web.dashboard.cookies import SESSION, VISITOR, read_cookie
from mailcheck.web.dashboard.rendering import FORM_TOKEN
from mailcheck.web.dashboard.visits import FormSecret, Visit
from mailcheck.web.site.requests import ClientAddresses, RequestUrls, header_values

OWN_SITES = frozenset({"same-origin", "none"})
"""What Sec-Fetch-Site says of a form of ours."""


class PageAccess(Struct, frozen=True):
    """Finds the session behind a request, and checks what it posts."""

    _sessions: DashboardSessions
    _urls: RequestUrls
    _addresses: ClientAddresses
    _time_and_chance: TimeAndChance

    def begin_visit(self, request: Request, path: dict[str, str]) -> Visit:
        """Make a visit of a request, of nobody yet and without parameters."""
        urls = self._urls.of(request)
        is_secure = urls.public_url.startswith("https://")
        secret = read_cookie(request, VISITOR, is_secure=is_secure)
        return Visit(
            request=request,
            asked_at=self._time_and_chance.now(),
            owner=None,
            session="",
            form_secret=FormSecret(secret, self._time_and_chance.random_bytes),
            query=Query({}),
            form=Query({}),
            path=path,
            urls=urls,
            client=counting_key(self._addresses.client_ip(request)),
        )

    async def authenticate(self, visit: Visit) -> Visit:
        """Find whose session it is; form tokens are bound to it then.

        :raises StoreUnavailable: can't tell now.
        """
        secret = read_cookie(visit.request, SESSION, is_secure=visit.is_secure)
        owner = await self._sessions.find(secret) if secret else None
        if owner is None:
            return visit
        form_secret = FormSecret(secret, self._time_and_chance.random_bytes)
        return replace(visit, owner=owner, session=secret, form_secret=form_secret)


def read_parameters(visit: Visit) -> Visit:
    """Read the query of a request, and the form that it posts.

    :raises InvalidParameter: something is not percent-encoded UTF-8.
    :raises FormExpired: a form is not one that this visitor was given.
    """
    request = visit.request
    visit = replace(visit, query=Query(split_query(request.uri.partition(b"?")[2])))
    if request.method != b"POST":
        return visit
    _require_own_site(visit)
    form = Query(split_query(b"" if request.content is None else request.content.read()))
    token = form.text(FORM_TOKEN) or "".join(header_values(request, b"X-Form-Token"))
    if not visit.form_secret.accepts(token):
        raise FormExpired(
            "this form was open for too long, or your browser keeps no cookies: "
            "load the page again and send it once more"
        )
    return replace(visit, form=form)


def _require_own_site(visit: Visit) -> None:
    """Refuse what another site's page sends, where the browser says so (Fetch Metadata)."""
    sites = header_values(visit.request, b"Sec-Fetch-Site")
    # No referrer policy of ours lets "null" be: it proves nothing, the token does.
    origins = [one for one in header_values(visit.request, b"Origin") if one != "null"]
    hosts = {urlsplit(visit.urls.public_url).netloc, *header_values(visit.request, b"Host")}
    is_own = all(site in OWN_SITES for site in sites) and all(
        origin.partition("://")[2] in hosts for origin in origins
    )
    if not is_own:
        raise FormExpired("this form was sent from another site")
