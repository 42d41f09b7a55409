"""Sessions of requests to pages, and protection of forms against cross-site requests."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from twisted.web.server import Request

from mailcheck.api.requests.parsing import Query, split_query
from mailcheck.core.domains.domain_names import origin_of
from mailcheck.core.errors import FormExpired, InvalidParameter
from mailcheck.core.network_addresses import counting_key
from mailcheck.operations.accounts.sign_in import DashboardSessions
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.web.dashboard.addresses import MINE, split_address
from mailcheck.web.dashboard.cookies import NEAREST, SESSION, VISITOR, read_cookie
from mailcheck.web.dashboard.rendering import FORM_TOKEN, format_number
from mailcheck.web.dashboard.visits import FormSecret, Visit
from mailcheck.web.site.failures import BodyTooLarge
from mailcheck.web.site.forms import MULTIPART, Upload, parse_form
from mailcheck.web.site.requests import MAX_BODY, ClientAddresses, RequestUrls, header_values

OWN_SITES = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site in requests from pages of this site."""


class PageAccess(Struct, frozen=True):
    """Creates the visit of a request from its cookies."""

    _sessions: DashboardSessions
    _urls: RequestUrls
    _addresses: ClientAddresses
    _time_and_chance: ClockAndRandomness

    def begin_visit(
        self, request: Request, path: Mapping[str, str], project_segments: frozenset[str]
    ) -> Visit:
        """Return a visit without a session and without parameters."""
        urls = self._urls.of(request)
        is_secure = urls.public_url.startswith("https://")
        secret = read_cookie(request, VISITOR, is_secure=is_secure)
        return Visit(
            request=request,
            asked_at=self._time_and_chance.now(),
            person=None,
            session="",
            form_secret=FormSecret(secret, self._time_and_chance.random_bytes),
            query=Query({}),
            form=Query({}),
            path=path,
            urls=urls,
            client=counting_key(self._addresses.client_ip(request)),
            project_segments=project_segments,
        )

    async def authenticate(self, visit: Visit) -> Visit:
        """Return the visit with its account, session and project, if the session is valid.

        The project is that of the URL, if the person may see it. Form tokens are bound to both.

        :raises StoreUnavailable: the session could not be looked up.
        """
        secret = read_cookie(visit.request, SESSION, is_secure=visit.is_secure)
        session = await self._sessions.find(secret) if secret else None
        if session is None:
            return visit
        visit = replace(visit, person=session.account, projects=session.projects, session=secret)
        named, _ = split_address(visit.request.path.decode("ascii", "replace"))
        last = read_cookie(visit.request, NEAREST, is_secure=visit.is_secure)
        project = visit.own_project(named)
        return replace(
            visit,
            project=project,
            nearest=visit.own_project(last) or MINE,
            confirmed_at=session.confirmed_at,
            form_secret=FormSecret(secret, self._time_and_chance.random_bytes, project=project),
        )


def read_parameters(visit: Visit, body: bytes) -> Visit:
    """Return the visit with the query and the form of its request.

    :raises InvalidParameter: a parameter is not percent-encoded UTF-8, or the form is malformed.
    :raises BodyTooLarge: only forms with files may be larger than other requests.
    :raises FormExpired: the form token is missing or belongs to another visitor.
    """
    request = visit.request
    visit = replace(visit, query=Query(split_query(request.uri.partition(b"?")[2])))
    if request.method != b"POST":
        return visit
    _require_own_site(visit)
    content_type = "".join(header_values(request, b"Content-Type"))
    files: Sequence[Upload] = ()
    if content_type.lower().startswith(MULTIPART):
        form, files = _read_form_with_files(body, content_type)
    elif len(body) > MAX_BODY:
        raise BodyTooLarge(f"the form has more than {format_number(MAX_BODY)} bytes")
    else:
        form = Query(split_query(body))
    token = form.text(FORM_TOKEN) or "".join(header_values(request, b"X-Form-Token"))
    if not visit.form_secret.accepts(token):
        raise FormExpired(
            "the form has expired, is from the page of another project, or your browser does not "
            "store cookies: reload the page and submit the form again"
        )
    return replace(visit, form=form, files=files)


def _read_form_with_files(body: bytes, content_type: str) -> tuple[Query, Sequence[Upload]]:
    try:
        fields, files = parse_form(body, content_type)
    except ValueError as problem:
        raise InvalidParameter("form", f"the form cannot be read: {problem}") from None
    parameters: dict[str, list[str]] = {}
    for name, value in fields:
        parameters.setdefault(name, []).append(value)
    # A browser sends a file without a name and without content if none was chosen.
    return Query(parameters), [file for file in files if file.filename or file.data]


def _require_own_site(visit: Visit) -> None:
    """Reject a form from another site, if the browser reports its origin (Fetch Metadata)."""
    sites = header_values(visit.request, b"Sec-Fetch-Site")
    # A form of this site never has the origin "null", but the token alone decides.
    origins = [value for value in header_values(visit.request, b"Origin") if value != "null"]
    own = origin_of(visit.urls.public_url).partition("://")[2]
    hosts = {own, *header_values(visit.request, b"Host")}
    is_own = all(site in OWN_SITES for site in sites) and all(
        origin.partition("://")[2] in hosts for origin in origins
    )
    if not is_own:
        raise FormExpired("the form was submitted from another site: open it on this site")
