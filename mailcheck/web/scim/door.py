"""The routes of SCIM 2.0 (RFC 7644), as Entra ID and Okta use them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from twisted.web.server import Request

from mailcheck.api.requests.parsing import Query, split_query
from mailcheck.api.scim.filters import MAX_FILTER, Filter, matches, parse_filter
from mailcheck.api.scim.patches import apply, read_operations
from mailcheck.api.scim.resources import (
    DEFAULT_RESULTS,
    MAX_RESULTS,
    describe_schemas,
    describe_service,
    describe_types,
    draft_group,
    draft_user,
    page,
    read_group,
    read_user,
    render_error,
    render_group,
    render_user,
)
from mailcheck.api.scim.schemas import GROUP, TYPES, USER, Document, ResourceType, select
from mailcheck.core.accounts import Caller
from mailcheck.core.audit import Actor
from mailcheck.core.errors import AccountNameTaken, InvalidParameter, NotPermitted
from mailcheck.core.network_addresses import counting_key
from mailcheck.core.rights import Scope
from mailcheck.core.signing_in.provisioning import (
    AlreadyProvisioned,
    GroupDraft,
    Kind,
    ProvisionedGroup,
    ProvisionedNotFound,
    ProvisionedUser,
    ProvisioningRefused,
    UserDraft,
)
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.provisioning import Provisioning
from mailcheck.web.site import costs
from mailcheck.web.site.application import Admit, Call, Door, Route, Sent
from mailcheck.web.site.bodies import JSON, decode_json, require_known
from mailcheck.web.site.costs import Cost
from mailcheck.web.site.failures import Problem
from mailcheck.web.site.replies import MoreHeaders, Reply, json_reply

BASE = "/scim/v2"

SCIM_JSON = "application/scim+json"

GUIDE_PATH = "/docs/how-to/provision-accounts.html"

MAX_DIGITS = 9
"""Maximum number of characters of a number in a query."""

CREATED = 201


def write_error(problem: Problem) -> Reply:
    """Return an error as directories parse it (RFC 7644 3.12)."""
    failure, kind = problem.failure, None
    if isinstance(failure, ProvisioningRefused):
        kind = failure.kind
    elif isinstance(failure, AlreadyProvisioned | AccountNameTaken):
        kind = Kind.UNIQUENESS
    elif isinstance(failure, InvalidParameter):
        kind = Kind.INVALID_VALUE
    return _reply(render_error(problem.status, problem.sentence, kind), problem.status)


def _reply(document: Document, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    plain = json_reply(document, status, headers)
    return Reply(plain.status, plain.body, SCIM_JSON, plain.headers)


_NOTHING = Reply(204, b"", SCIM_JSON)


_PARAMETERS = ("filter", "startIndex", "count", "attributes", "excludedAttributes")


class Search(Struct, frozen=True):
    """What a request asks for. ``start`` begins with 1; empty ``only`` is all attributes."""

    condition: Filter | None = None
    start: int = 1
    count: int = DEFAULT_RESULTS
    only: Sequence[str] = ()
    without: Sequence[str] = ()


def read_search(route: Route[Any], sent: Sent) -> Search:
    """Return what the parameters of a request ask for.

    Unknown parameters are ignored: Entra ID adds one without a value. A request that deletes must
    not have one with a value.

    :raises InvalidParameter: a parameter is not valid.
    :raises ProvisioningRefused: the filter is not valid.
    """
    query = Query(split_query(sent.query))
    if route.is_destructive:
        require_known({name: value for name, value in query.pairs() if value}, ())
    # Parameters have one spelling, but the attributes in them have any.
    return _search_for({name: query.texts(name, 1, MAX_FILTER) for name in _PARAMETERS})


def _search_of(body: object) -> Search:
    """Return what the body of a search asks for (RFC 7644 3.4.3)."""
    if not isinstance(body, dict):
        raise ProvisioningRefused(Kind.INVALID_SYNTAX, "the body must be a JSON object")
    values: dict[str, Sequence[str]] = {}
    for name in _PARAMETERS:
        sent = body.get(name)
        listed = sent if isinstance(sent, list) else [] if sent is None else [sent]
        values[name] = [str(text) for text in listed]
    return _search_for(values)


def _search_for(values: Mapping[str, Sequence[str]]) -> Search:
    text = "".join(values["filter"])
    return Search(
        parse_filter(text) if values["filter"] else None,
        max(_read_number(values, "startIndex", 1), 1),
        min(max(_read_number(values, "count", DEFAULT_RESULTS), 0), MAX_RESULTS),
        _read_names(values, "attributes"),
        _read_names(values, "excludedAttributes"),
    )


def _read_number(values: Mapping[str, Sequence[str]], name: str, default: int) -> int:
    text = "".join(values[name])
    if not text:
        return default
    if len(text) > MAX_DIGITS or not text.removeprefix("-").isdecimal():
        raise InvalidParameter(name, f"{name} must be an integer; got {text[:40]!r}")
    return int(text)


def _read_names(values: Mapping[str, Sequence[str]], name: str) -> list[str]:
    listed = (item.strip() for text in values[name] for item in text.split(","))
    return [item for item in listed if item]


class Scim(Struct, frozen=True):
    """Handles the requests of directories."""

    provisioning: Provisioning
    guide: str

    async def users(self, call: Call[Search]) -> Reply:
        """GET /Users: the people, of whom all have an account."""
        found = await self.provisioning.users()
        return _list(call, [render_user(item, call.base) for item in found], USER)

    async def user(self, call: Call[Search]) -> Reply:
        """GET /Users/{id}: a person, also one who has left."""
        return _show(call, await self.provisioning.user(call.path["id"]))

    async def create_user(self, call: Call[Search]) -> Reply:
        """POST /Users: create an account."""
        made = await self.provisioning.create_user(read_user(_body(call)), _by(call))
        return _show(call, made, CREATED)

    async def replace_user(self, call: Call[Search]) -> Reply:
        """PUT /Users/{id}: replace a person. Without ``active``, that is not changed."""
        draft = read_user(_body(call))
        changed = await self.provisioning.change_user(call.path["id"], lambda _: draft, _by(call))
        return _show(call, changed)

    async def change_user(self, call: Call[Search]) -> Reply:
        """PATCH /Users/{id}: change a person."""
        operations = read_operations(_body(call))

        def change(user: ProvisionedUser) -> UserDraft:
            return draft_user(apply(render_user(user, ""), operations, USER))

        return _show(call, await self.provisioning.change_user(call.path["id"], change, _by(call)))

    async def delete_user(self, call: Call[Search]) -> Reply:
        """DELETE /Users/{id}: delete an account with its mail."""
        await self.provisioning.delete_user(call.path["id"], _by(call))
        return _NOTHING

    async def groups(self, call: Call[Search]) -> Reply:
        """GET /Groups: the groups."""
        found = await self.provisioning.groups()
        return _list(call, [render_group(item, call.base) for item in found], GROUP)

    async def group(self, call: Call[Search]) -> Reply:
        """GET /Groups/{id}: a group."""
        return _show(call, await self.provisioning.group(call.path["id"]))

    async def create_group(self, call: Call[Search]) -> Reply:
        """POST /Groups: create a group."""
        made = await self.provisioning.create_group(read_group(_body(call)), _by(call))
        return _show(call, made, CREATED)

    async def replace_group(self, call: Call[Search]) -> Reply:
        """PUT /Groups/{id}: replace a group."""
        draft = read_group(_body(call))
        changed = await self.provisioning.change_group(call.path["id"], lambda _: draft, _by(call))
        return _show(call, changed)

    async def change_group(self, call: Call[Search]) -> Reply:
        """PATCH /Groups/{id}: change a group."""
        operations = read_operations(_body(call))

        def change(group: ProvisionedGroup) -> GroupDraft:
            return draft_group(apply(render_group(group, ""), operations, GROUP))

        return _show(call, await self.provisioning.change_group(call.path["id"], change, _by(call)))

    async def delete_group(self, call: Call[Search]) -> Reply:
        """DELETE /Groups/{id}: delete a group. Its members keep their accounts."""
        await self.provisioning.delete_group(call.path["id"], _by(call))
        return _NOTHING

    async def search(self, call: Call[Search]) -> Reply:
        """POST .search: people, groups, or both, by a body in place of parameters."""
        search = _search_of(_body(call))
        wanted = [
            kind for kind in TYPES if call.path.get("type", kind.endpoint[1:]) == kind.endpoint[1:]
        ]
        if not wanted:
            raise ProvisionedNotFound(f"there is no {call.path['type'][:80]!r} here")
        found: list[Document] = []
        if USER in wanted:
            users = await self.provisioning.users()
            found += _found([render_user(item, call.base) for item in users], USER, search)
        if GROUP in wanted:
            groups = await self.provisioning.groups()
            found += _found([render_group(item, call.base) for item in groups], GROUP, search)
        return _page(found, search)

    async def service(self, call: Call[Search]) -> Reply:
        """GET /ServiceProviderConfig: what is supported."""
        return _describe(call, {"": describe_service(call.base, self.guide)}, "")

    async def types(self, call: Call[Search]) -> Reply:
        """GET /ResourceTypes: the types of resources, or one of them."""
        return _describe(call, describe_types(call.base), call.path.get("name"))

    async def schemas(self, call: Call[Search]) -> Reply:
        """GET /Schemas: the attributes that are stored, or those of one type."""
        return _describe(call, describe_schemas(call.base), call.path.get("name"))


def _body(call: Call[Any]) -> Any:
    try:
        return decode_json(call.body)
    except ValueError as problem:
        detail = f"the body is not JSON: {problem}"
        raise ProvisioningRefused(Kind.INVALID_SYNTAX, detail) from None


def _by(call: Call[Any]) -> Actor:
    return Actor("directory", counting_key(call.client_ip))


def _list(call: Call[Search], documents: Sequence[Document], kind: ResourceType) -> Reply:
    return _page(_found(documents, kind, call.request), call.request)


def _found(documents: Sequence[Document], kind: ResourceType, search: Search) -> Sequence[Document]:
    condition = search.condition
    if condition is None:
        return documents
    return [item for item in documents if matches(item, condition, kind)]


def _page(documents: Sequence[Document], search: Search) -> Reply:
    shown = page(documents, search.start, search.count)
    kinds = {kind.schema: kind for kind in TYPES}
    selected = [
        select(item, kinds[item["schemas"][0]], search.only, search.without)
        for item in shown["Resources"]
    ]
    return _reply({**shown, "Resources": selected})


def _show(
    call: Call[Search], found: ProvisionedUser | ProvisionedGroup, status: int = 200
) -> Reply:
    if isinstance(found, ProvisionedUser):
        kind, document = USER, render_user(found, call.base)
    else:
        kind, document = GROUP, render_group(found, call.base)
    headers = {"Location": document["meta"]["location"]}
    selected = select(document, kind, call.request.only, call.request.without)
    return _reply(selected, status, headers)


def _describe(call: Call[Search], documents: Mapping[str, Document], name: str | None) -> Reply:
    if call.request.condition is not None:
        raise NotPermitted("descriptions of the service cannot be filtered")
    if name is None:
        listed = list(documents.values())
        return _reply(page(listed, 1, len(listed)))
    if name not in documents:
        raise ProvisionedNotFound(f"there is no {name[:80]!r} here")
    return _reply(documents[name])


_USER, _GROUP = f"{USER.endpoint}/<id>", f"{GROUP.endpoint}/<id>"
_BODIES = (SCIM_JSON, JSON)


def _route(
    method: str, path: str, handle: Callable[..., Awaitable[Reply]], cost: Cost
) -> Route[Search]:
    reads = _BODIES if method in ("POST", "PUT", "PATCH") else ()
    return Route(method, path, handle, Search, cost, scopes=(Scope.OPERATOR,), reads=reads)


ROUTES: Sequence[Route[Any]] = (
    _route("GET", USER.endpoint, Scim.users, costs.FREE),
    _route("POST", USER.endpoint, Scim.create_user, costs.PROVISIONED),
    _route("GET", _USER, Scim.user, costs.FREE),
    _route("PUT", _USER, Scim.replace_user, costs.PROVISIONED),
    _route("PATCH", _USER, Scim.change_user, costs.PROVISIONED),
    _route("DELETE", _USER, Scim.delete_user, costs.AUDITED),
    _route("GET", GROUP.endpoint, Scim.groups, costs.FREE),
    _route("POST", GROUP.endpoint, Scim.create_group, costs.PROVISIONED),
    _route("GET", _GROUP, Scim.group, costs.FREE),
    _route("PUT", _GROUP, Scim.replace_group, costs.PROVISIONED),
    _route("PATCH", _GROUP, Scim.change_group, costs.PROVISIONED),
    _route("DELETE", _GROUP, Scim.delete_group, costs.PROVISIONED),
    _route("POST", "/.search", Scim.search, costs.FREE),
    _route("POST", "/<type>/.search", Scim.search, costs.FREE),
    _route("GET", "/ServiceProviderConfig", Scim.service, costs.FREE),
    _route("GET", "/ResourceTypes", Scim.types, costs.FREE),
    _route("GET", "/ResourceTypes/<name>", Scim.types, costs.FREE),
    _route("GET", "/Schemas", Scim.schemas, costs.FREE),
    _route("GET", "/Schemas/<name>", Scim.schemas, costs.FREE),
)

SCIM = Door("scim", "SCIM 2.0", BASE, ROUTES, read_search, write_error=write_error)
"""The door of directories."""


def admit_operator(
    admit: Admit, accounts: ManageAccounts, begin: Callable[[], Awaitable[None]]
) -> Admit:
    """Return the admission of keys of the operator.

    :param begin: is awaited before the first request.
    """
    has_begun = False

    async def admit_one(request: Request, route: Route[Any], headers: MoreHeaders) -> Caller:
        nonlocal has_begun
        caller = await admit(request, route, headers)
        account = await accounts.get(caller.account_id)
        account.require_operator("provision accounts")
        if not has_begun:
            await begin()
            has_begun = True
        return caller

    return admit_one
