"""Routes of an account: create, list, change, confirm and delete."""

import base64
import binascii
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

from msgspec import Struct, structs

from mailcheck.core.audit import Action, Actor
from mailcheck.core.errors import InboundRouteNotFound, InvalidParameter
from mailcheck.core.identifiers import (
    AccountId,
    new_short_id,
    new_time_ordered_id,
    new_webhook_secret,
)
from mailcheck.core.inbound import (
    LONGEST_PATTERN,
    LONGEST_SECRET,
    MOST_SPEED,
    InboundDelivery,
    InboundDeliveryId,
    InboundFault,
    InboundFormat,
    InboundProvider,
    InboundProviders,
    InboundRoute,
    InboundRouteId,
    InboundState,
)
from mailcheck.core.webhooks import LONGEST_URL, parse_webhook_url
from mailcheck.operations.accounts.audit import Audit
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Notifications
from mailcheck.ports.engine import Value
from mailcheck.ports.probes import InboundSender
from mailcheck.store.inbound_store import InboundStore

STANDARD_SECRET = "whsec_"  # noqa: S105
"""What secrets of Standard Webhooks begin with. Base64 follows."""

DEFAULT_SPEED = 60
"""Factor by which the schedule of retries is shortened: a minute of the provider is a second."""

_WITH_STANDARD_SECRET = (InboundFormat.RESEND, InboundFormat.MAILCHECK)


class RouteSettings(Struct, frozen=True):
    """The settings of a route that its owner chooses. `None` means "not given".

    :param fault: an empty text removes the fault.
    """

    to: str | None = None
    url: str | None = None
    secret: str | None = None
    user: str | None = None
    password: str | None = None
    speed: int | None = None
    fault: str | None = None


class ManageRoutes(Struct, frozen=True, eq=False):
    """The operations of an owner on routes. ``changes`` announces them to all daemons.

    :param providers: all formats.
    """

    store: InboundStore
    sender: InboundSender
    providers: Callable[[], InboundProviders]
    changes: Notifications[AccountId]
    audit: Audit
    clocks: ClockAndRandomness

    async def create(
        self, account_id: AccountId, kind: InboundFormat, settings: RouteSettings, by: Actor
    ) -> InboundRoute:
        """Create a route. Without a secret, it gets a random one.

        :raises InvalidParameter: a setting is invalid, or the account may not send to the URL.
        :raises TooManyRoutes: the account has the maximum number of routes.
        """
        for name in ("to", "url"):
            if not getattr(settings, name):
                raise InvalidParameter(name, f"`{name}` is missing")
        columns = await self._columns(account_id, kind, settings)
        now, provider = self.clocks.now(), self.providers()[kind]
        route = InboundRoute(
            id=InboundRouteId(new_short_id(self.clocks.random_bytes)),
            account_id=account_id,
            account_name="",
            to=str(columns["pattern"]),
            format=kind,
            url=str(columns["url"]),
            secret=str(columns.get("secret") or new_webhook_secret(self.clocks.random_bytes)),
            created_at=now,
            user=str(columns.get("user_name", "")),
            password=str(columns.get("password", "")),
            speed=settings.speed or DEFAULT_SPEED,
            fault=InboundFault(settings.fault) if settings.fault else None,
            is_confirmed=provider.open is None,
        )
        with self.audit.noting(Action.ROUTE_CREATED, account_id, by, _describe(route)) as entry:
            added = await self.store.add_route(
                route,
                entry,
                is_per_recipient=provider.is_per_recipient,
                opening=self._opening(route) if provider.open is not None else None,
            )
        self.changes.publish(account_id)
        return _found(added)

    async def of_account(self, account_id: AccountId) -> list[InboundRoute]:
        """List the routes of an account, oldest first."""
        return await self.store.routes(account_id)

    async def show(self, account_id: AccountId, route_id: str) -> InboundRoute:
        """Return a route.

        :raises InboundRouteNotFound: the account has no route with this id.
        """
        return _found(await self.store.find_route(account_id, InboundRouteId(route_id)))

    async def change(
        self, account_id: AccountId, route_id: str, settings: RouteSettings, by: Actor
    ) -> InboundRoute:
        """Change the given settings of a route. Mails that wait are sent with the new ones.

        User and password go to the application that they were given for: a new host or port removes
        them, unless they are given as well.

        :raises InboundRouteNotFound: the account has no route with this id.
        :raises InvalidParameter: a setting is invalid, or the account may not send to the URL.
        """
        route = await self.show(account_id, route_id)
        columns = await self._columns(account_id, route.format, settings)
        if _place_of(str(columns.get("url", route.url))) != _place_of(route.url):
            columns = {"user_name": "", "password": "", **columns}
        described = _describe(structs.replace(route, url=str(columns.get("url", route.url))))
        with self.audit.noting(Action.ROUTE_CHANGED, account_id, by, described) as entry:
            changed = await self.store.change_route(account_id, route.id, columns, entry)
        self.changes.publish(account_id)
        return _found(changed)

    async def delete(self, account_id: AccountId, route_id: str, by: Actor) -> None:
        """Delete a route with its mails and attempts.

        :raises InboundRouteNotFound: the account has no route with this id.
        """
        with self.audit.noting(Action.ROUTE_DELETED, account_id, by, route_id) as entry:
            if not await self.store.delete_route(account_id, InboundRouteId(route_id), entry):
                raise _missing()
        self.changes.publish(account_id)

    async def confirm(self, route_id: InboundRouteId) -> bool:
        """Let mails be sent to a route, whoever asks: the caller has proved a secret of the route.

        :return: false if there is no such route.
        """
        route = await self.store.find_any_route(route_id)
        if route is None or not await self.store.confirm_route(route_id):
            return False
        self.changes.publish(route.account_id)
        return True

    def _opening(self, route: InboundRoute) -> InboundDelivery:
        return InboundDelivery(
            id=InboundDeliveryId(new_time_ordered_id(route.created_at, self.clocks.random_bytes)),
            account_id=route.account_id,
            route_id=route.id,
            mail_id=None,
            recipients=(),
            fault=None,
            state=InboundState.WAITING,
            created_at=route.created_at,
            due_at=route.created_at,
        )

    async def _columns(
        self, account_id: AccountId, kind: InboundFormat, settings: RouteSettings
    ) -> Mapping[str, Value]:
        """Return the given settings as they are stored."""
        settings = _without_credentials_in_url(settings)
        columns: dict[str, Value] = {}
        if settings.to is not None:
            columns["pattern"] = parse_pattern(settings.to)
        if settings.url is not None:
            require_url(kind, settings.url)
            name = await self.store.account_name(account_id)
            self.sender.require_allowed(settings.url, name)
            columns["url"] = settings.url
        if settings.secret:
            columns["secret"] = _parse_secret(kind, settings.secret)
        if settings.user is not None:
            columns["user_name"] = _parse_text("user", settings.user)
            if ":" in settings.user:
                raise InvalidParameter("user", "`user` must not have a colon (RFC 7617)")
        if settings.password is not None:
            columns["password"] = _parse_text("password", settings.password)
        if settings.speed is not None:
            if not 1 <= settings.speed <= MOST_SPEED:
                problem = f"`speed` must be an integer from 1 to {MOST_SPEED}"
                raise InvalidParameter("speed", f"{problem}; got {settings.speed}")
            columns["speed"] = settings.speed
        if settings.fault is not None:
            fault = parse_fault(self.providers()[kind], kind, settings.fault)
            columns["fault"] = None if fault is None else fault.value
        return columns


def parse_pattern(text: str) -> str:
    """Parse a pattern of recipients.

    :raises InvalidParameter: it is empty or too long, or has blanks or control characters.
    """
    problem = ""
    if not 0 < len(text) <= LONGEST_PATTERN:
        problem = f"must have 1 to {LONGEST_PATTERN} characters; got {len(text)}"
    elif not text.isprintable() or " " in text or ("@" not in text and "*" not in text):
        problem = f"must be an address with * for any characters, like support@*; got {text!r}"
    if problem:
        raise InvalidParameter("to", f"`to` {problem}")
    return text


def require_url(kind: InboundFormat, url: str) -> None:
    """Check the URL of a route.

    :raises InvalidParameter: it does not fit to the format.
    """
    if kind is not InboundFormat.SMTP:
        if url.startswith("smtp:"):
            problem = "url must be an http or https address; send the format smtp for a mail server"
            raise InvalidParameter("url", problem)
        parse_webhook_url(url)
        return
    problem = "url must be a mail server like smtp://127.0.0.1:2525"
    if len(url) > LONGEST_URL or not url.startswith("smtp://"):
        raise InvalidParameter("url", problem)
    parts = parse_webhook_url(f"http://{url.removeprefix('smtp://')}")
    if parts.path.strip("/") or parts.query:
        raise InvalidParameter("url", f"{problem}, without a path")


def parse_fault(provider: InboundProvider, kind: InboundFormat, text: str) -> InboundFault | None:
    """Parse a fault for a format. An empty text is no fault.

    :raises InvalidParameter: the fault is unknown, or the format cannot have it.
    """
    if not text:
        return None
    try:
        fault = InboundFault(text)
    except ValueError:
        offered = ", ".join(InboundFault)
        raise InvalidParameter("fault", f"`fault` must be one of {offered}; got {text!r}") from None
    if fault not in provider.faults:
        possible = ", ".join(sorted(provider.faults))
        problem = f"the format {kind} has no such fault; possible are {possible}"
        raise InvalidParameter("fault", f"`fault` is {text}, but {problem}")
    return fault


def _without_credentials_in_url(settings: RouteSettings) -> RouteSettings:
    """Move user and password from the URL, where providers want them, into their fields."""
    url = settings.url
    if url is None or "@" not in url:
        return settings
    try:
        parts = urlsplit(url)
        user, password = parts.username, parts.password
    except ValueError:
        return settings
    if user is None:
        return settings
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return structs.replace(
        settings,
        url=bare,
        user=unquote(user) if settings.user is None else settings.user,
        password=unquote(password or "") if settings.password is None else settings.password,
    )


def _parse_secret(kind: InboundFormat, text: str) -> str:
    if kind in _WITH_STANDARD_SECRET:
        try:
            encoded = text.removeprefix(STANDARD_SECRET)
            is_good = text != encoded and bool(base64.b64decode(encoded, validate=True))
        except binascii.Error:
            is_good = False
        if not is_good:
            problem = f"must be {STANDARD_SECRET} and Base64, as the format {kind} requires"
            raise InvalidParameter("secret", f"`secret` {problem}")
    return _parse_text("secret", text)


def _parse_text(name: str, text: str) -> str:
    if len(text) > LONGEST_SECRET or not text.isprintable():
        problem = f"must have at most {LONGEST_SECRET} printable characters"
        raise InvalidParameter(name, f"`{name}` {problem}")
    return text


def _found(route: InboundRoute | None) -> InboundRoute:
    if route is None:
        raise _missing()
    return route


def _missing() -> InboundRouteNotFound:
    return InboundRouteNotFound("there is no such route: the id is wrong or it was deleted")


def _place_of(url: str) -> tuple[str, str]:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.casefold()


def _describe(route: InboundRoute) -> str:
    """Return the id, the format and the host of a route: the path and the query may be secret."""
    return f"{route.id}, {route.format}, host {urlsplit(route.url).hostname}"
