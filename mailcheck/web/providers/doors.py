"""The doors of all providers: keys, limits, faults, idempotency keys, and storing."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from mailcheck.core.errors import (
    ExpectedFailure,
    InboundMailNotFound,
    RequestRepeated,
    RequestRunning,
)
from mailcheck.core.identifiers import AccountId, DeliveryId, RandomBytes
from mailcheck.core.inbound import InboundRoute
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.messages import Session
from mailcheck.core.rights import Scope
from mailcheck.operations.inbound.fetch_mail import FetchInbound, RoutedMail
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.operations.inbox.submit_mail import SubmitMail
from mailcheck.operations.incidents import public_failure
from mailcheck.ports.cluster import Memory
from mailcheck.web.providers.conversion import (
    Conversion,
    Prepared,
    Stamp,
    answer_question,
    prepare,
)
from mailcheck.web.providers.provider import (
    AskRoute,
    Fetched,
    FetchListRoute,
    FetchRoute,
    ListRoute,
    Outcome,
    Posting,
    Provider,
    Route,
    SendRoute,
    ShowRoute,
    Submission,
)
from mailcheck.web.providers.received_files import VALID_FOR, ReceivedFiles, files_path
from mailcheck.web.providers.subscriptions import Confirm, Subscriptions
from mailcheck.web.site import application, costs
from mailcheck.web.site.access_control import AccessControl
from mailcheck.web.site.application import (
    Call,
    Door,
    OpenDoor,
    admit_anyone,
    admit_with_key,
    read_nothing,
)
from mailcheck.web.site.costs import Cost
from mailcheck.web.site.failures import Problem
from mailcheck.web.site.replies import Reply, error_reply
from mailcheck.web.site.requests import headers_of

REPEAT_LIFETIME = 1 * DAY
"""Milliseconds for which an answer is kept for its idempotency key, as Resend documents it."""

LONGEST_REQUEST = 5 * MINUTE
"""Milliseconds after which a request with an idempotency key counts as failed."""

MAX_IDEMPOTENCY_KEY = 256
"""Maximum number of characters of an idempotency key."""

SEED_BYTES = 16

Handle = Callable[..., Awaitable[Reply]]
"""Answers a call of a route of a provider."""

Shown = TypeVar("Shown")


class StoredAnswer(Struct, frozen=True):
    """The answer to a request, stored for its idempotency key."""

    request: str
    response: Reply


class Repeats:
    """Answers a request with an idempotency key once, in all daemons."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._running: set[Key] = set()

    async def once(
        self,
        name: tuple[AccountId, str, str],
        posting: Posting,
        send: Callable[[], Awaitable[Reply]],
    ) -> Reply:
        """Send, or return the stored answer if the key was used for an equal request.

        :param name: the account, the path, and the idempotency key.
        :raises RequestRepeated: the key was used for another request, or is in use now.
        """
        stored_as, lock = key_of("answer", *name), key_of("answering", *name)
        digest = hashlib.sha256(posting.body).hexdigest()
        busy = RequestRunning(
            "the request with this idempotency key is still being processed: try again later"
        )
        # The memory locks out other daemons only.
        if lock in self._running:
            raise busy
        self._running.add(lock)
        try:
            if not await self._memory.acquire(lock, LONGEST_REQUEST):
                raise busy
            text = await self._memory.recall(stored_as)
            if text is not None:
                stored = msgspec.json.decode(text, type=StoredAnswer)
                if stored.request != digest:
                    raise RequestRepeated(
                        "this idempotency key was used for another request: use a new key"
                    )
                return stored.response
            response = await send()
            if response.status < 300:
                text = msgspec.json.encode(StoredAnswer(digest, response)).decode()
                await self._memory.keep(stored_as, text, REPEAT_LIFETIME)
            return response
        finally:
            self._running.discard(lock)
            await self._memory.release(lock)


class Providers(Struct, frozen=True, eq=False):
    """Answers requests as the providers do, and stores their mails.

    :param base: the path before the names of providers. If it is empty, so are the names.
    :param domain: the mail domain of this server.
    :param confirm: confirms an inbound route.
    :param url: the public URL with that path.
    """

    providers: Sequence[Provider]
    base: str
    access: AccessControl
    submit: SubmitMail
    read: ReadInbox
    conversion: Conversion
    repeats: Repeats
    domain: str
    random_bytes: RandomBytes
    received: FetchInbound
    confirm: Confirm
    url: str

    def doors(self) -> Sequence[OpenDoor]:
        """Return a door for paths of no provider, and one for each provider.

        Without a base, all doors begin at the root, and the first one answers unknown paths.
        """
        return [
            OpenDoor(self._no_provider(), admit_anyone),
            *(
                OpenDoor(self._door(provider), _admission(self.access, provider))
                for provider in self.providers
            ),
            # Their URLs begin with the public one, so they have no other listener.
            *(self._doors_without_keys() if self.base else ()),
        ]

    def _doors_without_keys(self) -> Sequence[OpenDoor]:
        subscriptions = Subscriptions(self.received, self.confirm, self.conversion, self.base)
        files = ReceivedFiles(self.received, self.base)
        return [files.door(), subscriptions.door()]

    def _no_provider(self) -> Door:
        known = ", ".join(dict.fromkeys(provider.name for provider in self.providers))

        def write_error(problem: Problem) -> Reply:
            what = "it is not an API of a provider"
            return error_reply(problem.status, f"{problem.sentence}: {what}; there are {known}")

        return Door("", "", self.base, (), read_nothing, write_error=write_error)

    def _door(self, provider: Provider) -> Door:
        base = f"{self.base}/{provider.name}" if self.base else ""
        routes = [
            self._route(provider, route) for route in provider.routes if self.base or route.path
        ]
        return Door(
            provider.name, provider.title, base, routes, read_nothing, write_error=provider.respond
        )

    def _route(self, provider: Provider, route: Route) -> application.Route[None]:
        handle, cost, scope = self._handlers[type(route)]
        if isinstance(route, ShowRoute) and route.method != "GET":
            scope = Scope.INBOX_WRITE
        return application.Route(
            route.method,
            route.path,
            partial(handle, provider, route),
            type(None),
            cost,
            scopes=(scope,),
        )

    @property
    def _handlers(self) -> Mapping[type[Route], tuple[Handle, Cost, Scope]]:
        """The handler of each kind of routes, with the cost of a call and the scope it needs."""
        return {
            SendRoute: (self._post, costs.POSTED_MAIL, Scope.INBOX_WRITE),
            AskRoute: (self._ask, costs.QUESTION, Scope.INBOX_WRITE),
            ShowRoute: (self._show, costs.MESSAGE, Scope.INBOX_READ),
            ListRoute: (self._list, costs.LISTED_MAILS, Scope.INBOX_READ),
            FetchRoute: (self._fetch_one, costs.CONTENT, Scope.INBOX_READ),
            FetchListRoute: (self._fetch_list, costs.LISTED_MAILS, Scope.INBOX_READ),
        }

    async def _ask(self, provider: Provider, route: AskRoute, call: Call[None]) -> Reply:
        secret, posting = provider.read_key(call.headers), self._posting_of(call)
        answer = partial(answer_question, secret, provider.verify, route.answer, posting)
        return await self.conversion.run(answer, call.caller.account_id)

    async def _post(self, provider: Provider, route: SendRoute, call: Call[None]) -> Reply:
        posting = self._posting_of(call)
        secret = provider.read_key(call.headers)
        send = partial(self._send, call, secret, provider, route, posting)
        key = posting.headers.get(route.idempotency, "")[:MAX_IDEMPOTENCY_KEY]
        if not key:
            return await send()
        name = (call.caller.account_id, f"{provider.name}{route.path}", key)
        return await self.repeats.once(name, posting, send)

    def _posting_of(self, call: Call[None]) -> Posting:
        method = call.http.method.decode("ascii", "replace")
        uri = call.http.uri.decode("utf-8", "replace")
        return Posting(method, uri, call.headers, call.body, call.path, domain=self.domain)

    async def _show(self, _: Provider, route: ShowRoute, call: Call[None]) -> Reply:
        return route.show(await self.read.delivered(call.caller, call.path["id"]))

    async def _list(self, provider: Provider, route: ListRoute, call: Call[None]) -> Reply:
        page = route.page(self._posting_of(call))
        found, has_more = await self.read.mails_via(
            call.caller, provider.name, page.limit, page.after, page.before
        )
        return route.show(found, has_more)

    async def _fetch_one(self, _: Provider, route: FetchRoute, call: Call[None]) -> Reply:
        posting, account_id = self._posting_of(call), call.caller.account_id
        has = partial(_has, route, posting)
        show = partial(_show, route.show, posting, self.url, call.received_at)
        return await self.received.show(account_id, has, route.find(posting), show)

    async def _fetch_list(self, _: Provider, route: FetchListRoute, call: Call[None]) -> Reply:
        posting, account_id = self._posting_of(call), call.caller.account_id
        page, has = route.page(posting), partial(_has, route, posting)
        ids, has_more = await self.received.ids(
            account_id, has, page.limit, after=page.after or "", before=page.before or ""
        )
        shown: list[object] = []
        show = partial(_show, route.show, posting, self.url, call.received_at)
        for identifier in ids:
            # One at a time: each mail may be large.
            try:
                within = (identifier, identifier)
                shown.append(await self.received.show(account_id, has, within, show))
            except InboundMailNotFound:
                continue
        return route.answer(shown, has_more)

    async def _send(
        self, call: Call[None], secret: str, provider: Provider, route: SendRoute, posting: Posting
    ) -> Reply:
        caller, sent_at = call.caller, call.received_at
        stamp = Stamp(sent_at, self.random_bytes(SEED_BYTES), self.domain)
        work = partial(prepare, provider.name, secret, provider.verify, route.read, posting, stamp)
        prepared = await self.conversion.run(work, caller.account_id)
        if isinstance(prepared, Reply):
            return prepared
        session = Session(call.client_ip, "", is_extended=True, account_id=caller.account_id)
        mails = [mail.mail for mail in prepared if isinstance(mail, Prepared)]
        submit = self.submit.submit_each if route.is_partial else self.submit.submit
        results = iter(await submit(caller, session, mails))
        outcomes = [
            Outcome(_public(next(results)), outcome.shown)
            if isinstance(outcome, Prepared)
            else outcome
            for outcome in prepared
        ]
        return route.answer(Submission(outcomes, posting, sent_at))


def _has(route: FetchRoute | FetchListRoute, posting: Posting, inbound: InboundRoute) -> bool:
    return route.has(inbound, posting)


def _show(
    show: Callable[[Fetched], Shown], posting: Posting, url: str, now: Instant, found: RoutedMail
) -> Shown:
    """Show a mail with the URL of its parts, in a worker process."""
    ends_at = Instant(now + VALID_FOR)
    files = f"{url}/received{files_path(found.route, found.mail, ends_at)}"
    return show(Fetched(found.mail, found.route, posting, url, files, ends_at))


def _admission(access: AccessControl, provider: Provider) -> application.Admit:
    return admit_with_key(access, lambda request: provider.read_key(headers_of(request)))


def _public(result: DeliveryId | ExpectedFailure) -> DeliveryId | ExpectedFailure:
    return public_failure(result) if isinstance(result, ExpectedFailure) else result
