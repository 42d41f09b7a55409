"""The application of all providers: keys, limits, faults, idempotency keys, and storing."""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import cast

import msgspec
from msgspec import Struct
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request
from werkzeug.exceptions import MethodNotAllowed

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import (
    ConnectionDropped,
    ExpectedFailure,
    RequestRepeated,
)
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.instants import DAY, MINUTE
from mailcheck.core.keys import Key, key_of
from mailcheck.core.messages import Session
from mailcheck.core.rights import Scope
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.operations.inbox.submit_mail import SubmitMail
from mailcheck.operations.incidents import public_failure
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Memory
from mailcheck.web.providers.conversion import Prepared, Stamp, prepare
from mailcheck.web.providers.provider import (
    Outcome,
    Posting,
    Problem,
    Provider,
    Response,
    SendRoute,
    Sent,
    ShowRoute,
)
from mailcheck.web.site.access_control import AccessControl, Denied
from mailcheck.web.site.failures import NOT_FOUND
from mailcheck.web.site.replies import Reply, error_reply, reply_to_crash, respond
from mailcheck.web.site.requests import ClientAddresses, headers_of, read_mail
from mailcheck.web.site.routing import Path, route_to

REPEAT_LIFETIME = 1 * DAY
"""Milliseconds for which an answer is kept for its idempotency key, as Resend documents it."""

LONGEST_REQUEST = 5 * MINUTE
"""Milliseconds after which a request with an idempotency key counts as failed."""

MAX_IDEMPOTENCY_KEY = 256
"""Maximum number of characters of an idempotency key."""

SEED_BYTES = 16


class StoredAnswer(Struct, frozen=True):
    """The answer to a request, stored for its idempotency key."""

    request: str
    response: Response


class Repeats:
    """Answers a request with an idempotency key once, in all daemons."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._running: set[Key] = set()

    async def once(
        self,
        name: tuple[AccountId, str, str],
        posting: Posting,
        send: Callable[[], Awaitable[Response]],
    ) -> Response:
        """Send, or return the stored answer if the key was used for an equal request.

        :param name: the account, the path, and the idempotency key.
        :raises RequestRepeated: the key was used for another request, or is in use now.
        """
        stored_as, lock = key_of("answer", *name), key_of("answering", *name)
        digest = hashlib.sha256(posting.body).hexdigest()
        busy = RequestRepeated(
            "the request with this idempotency key is still being processed: try again later",
            is_running=True,
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
                        "this idempotency key was used for another request: use a new key",
                        is_running=False,
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


class Providers:
    """Answers requests as the providers do, and stores their mails."""

    def __init__(
        self,
        providers: Sequence[Provider],
        base: str,
        access: AccessControl,
        submit: SubmitMail,
        read: ReadInbox,
        mail_bytes: MailBytes,
        memory: Memory,
        addresses: ClientAddresses,
        domain: str,
        clock_and_randomness: ClockAndRandomness,
    ) -> None:
        """``base`` is the path before the names of providers. If it is empty, so are the names."""
        self._access = access
        self._submit = submit
        self._read = read
        self._mail_bytes = mail_bytes
        self._repeats = Repeats(memory)
        self._addresses = addresses
        self._domain = domain
        self._now = clock_and_randomness.now
        self._random_bytes = clock_and_randomness.random_bytes
        self._base = base
        self._by_name = {one.name: one for one in reversed(providers)}
        self._routes = {
            Path(route.method, f"{base}/{provider.name}{route.path}" if base else route.path): (
                provider,
                route,
            )
            for provider in providers
            for route in provider.routes
            if base or route.path
        }

    def resource(self) -> IResource:
        """Return the resource to mount at the root."""
        return route_to(self, self._routes)

    def serve(self, request: Request, path: Path, values: dict[str, str]) -> Deferred[bytes]:
        """Answer a request for one of the routes."""
        provider, route = self._routes[path]

        async def handle(caller: Caller, secret: str, posting: Posting) -> Response:
            if isinstance(route, ShowRoute):
                caller.rights.require((Scope.INBOX_READ,))
                return await self._show(caller, route, values["id"])
            caller.rights.require((Scope.INBOX_WRITE,))
            send = partial(self._send, request, caller, secret, provider, route, posting)
            key = posting.headers.get(route.idempotency, "")[:MAX_IDEMPOTENCY_KEY]
            if not key:
                return await send()
            return await self._repeats.once(
                (caller.account_id, f"{provider.name}{route.path}", key), posting, send
            )

        return self._answer(request, provider, values, handle)

    def reject_path(self, request: IRequest, failure: Failure) -> Deferred[bytes]:
        """Answer a request for an unknown path or method in the format of the provider."""
        http_request = cast(Request, request)
        shown = http_request.path.decode("ascii", "replace")[:200]
        name = shown.removeprefix(self._base).strip("/").partition("/")[0]
        provider = self._by_name.get(name)
        if provider is None:
            known = ", ".join(self._by_name)

            async def refuse(_: object) -> Reply:
                error = f"{shown} is not an API of a provider; there are {known}"
                return error_reply(NOT_FOUND, error)

            return Deferred.fromCoroutine(respond(http_request, refuse))
        response = provider.refuse(
            Problem.NOT_FOUND, f"{shown} is not a path of this API in mailcheck"
        )
        if isinstance(failure.value, MethodNotAllowed):
            allowed = ", ".join(sorted(failure.value.valid_methods or ()))
            response = provider.refuse(Problem.WRONG_METHOD, f"{shown} supports {allowed} only")
            response = msgspec.structs.replace(
                response, headers={**response.headers, "Allow": allowed}
            )

        async def handle(*_: object) -> Response:
            return response

        return self._answer(http_request, provider, {}, handle)

    def _answer(
        self,
        request: Request,
        provider: Provider,
        values: dict[str, str],
        handle: Callable[[Caller, str, Posting], Awaitable[Response]],
    ) -> Deferred[bytes]:
        async def answer(_: object) -> Reply:
            try:
                response = await self._admit(request, provider, values, handle)
            except CancelledError:
                raise
            except ConnectionDropped:
                await _drop_connection(request)
                raise CancelledError from None
            except ExpectedFailure as failure:
                response = provider.respond(public_failure(failure))
            except Exception:
                crash = reply_to_crash(request)
                response = provider.refuse(Problem.INTERNAL, crash.problem)
            return Reply(response.status, response.body, response.content_type, response.headers)

        return Deferred.fromCoroutine(respond(request, answer))

    async def _admit(
        self,
        request: Request,
        provider: Provider,
        values: dict[str, str],
        handle: Callable[[Caller, str, Posting], Awaitable[Response]],
    ) -> Response:
        posting = _posting_of(request, values)
        secret = partial(provider.read_key, posting.headers)
        access = await self._access.check(request, secret)
        if isinstance(access, Denied):
            raise access.failure
        posting = msgspec.structs.replace(posting, body=read_mail(request))
        return await handle(access.caller, secret(), posting)

    async def _show(self, caller: Caller, route: ShowRoute, delivery_id: str) -> Response:
        return route.show(await self._read.delivered(caller, delivery_id))

    async def _send(
        self,
        request: Request,
        caller: Caller,
        secret: str,
        provider: Provider,
        route: SendRoute,
        posting: Posting,
    ) -> Response:
        sent_at = self._now()
        stamp = Stamp(sent_at, self._random_bytes(SEED_BYTES), self._domain)
        call = partial(prepare, provider.name, secret, provider.verify, route.read, posting, stamp)
        prepared = await self._mail_bytes.work(call, len(posting.body), caller.account_id)
        session = Session(
            self._addresses.client_ip(request), "", is_extended=True, account_id=caller.account_id
        )
        mails = [one.mail for one in prepared if isinstance(one, Prepared)]
        submit = self._submit.submit_each if route.is_partial else self._submit.submit
        results = iter(await submit(caller, session, mails))
        outcomes = [
            Outcome(_public(next(results)), one.shown) if isinstance(one, Prepared) else one
            for one in prepared
        ]
        return route.answer(Sent(outcomes, posting, sent_at, self._domain))


def _public(result: DeliveryId | ExpectedFailure) -> DeliveryId | ExpectedFailure:
    return public_failure(result) if isinstance(result, ExpectedFailure) else result


def _posting_of(request: Request, values: dict[str, str]) -> Posting:
    method = request.method.decode("ascii", "replace")
    uri = request.uri.decode("utf-8", "replace")
    return Posting(method, uri, headers_of(request), b"", values)


async def _drop_connection(request: Request) -> None:
    """Close the connection without an answer. The request ends when it is closed."""
    ended: Deferred[None] = Deferred()
    request.notifyFinish().addBoth(lambda _: None if ended.called else ended.callback(None))
    request.channel.forceAbortClient()
    await ended
