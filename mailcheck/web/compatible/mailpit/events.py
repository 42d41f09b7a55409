"""Mailpit's events over a WebSocket: new, changed and deleted messages, and their numbers.

New messages come from the inbox, whoever has sent them. Changes and deletions are told by the
requests to this listener. For others, of which only the fact is known, the event is ``prune``.
"""

from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure
from twisted.web.server import Request

from mailcheck.api.shapes import dump_json
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure, MessageNotFound
from mailcheck.core.filters import ANY
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.operations.inbox.follow_inbox import FollowInbox, MailRefused, MessageArrived
from mailcheck.operations.inbox.mails import Mails
from mailcheck.web.compatible.mailpit.responses import own_version, render_summary
from mailcheck.web.site.event_streams import Stream, wait_until_read
from mailcheck.web.site.websockets import WebSocket

NOTHING = b"ping"
"""Stands for a moment without an event, in which the connection is kept alive."""

MAX_TOLD = 1_000
"""Maximum number of messages that one request changes or deletes whose events are sent. For more of
them, ``prune`` is sent, at which clients read the list again."""

MAX_QUEUED = 256 * 1024
"""Maximum number of bytes of events that wait for a client. Further events become one ``prune``."""

STATISTICS = b"stats"
"""Stands in a queue for the numbers of messages when the event is sent."""


class EventQueue:
    """The events that a client was not sent yet."""

    def __init__(self) -> None:
        self._events: deque[bytes] = deque()
        self._size = 0
        self._filled: Deferred[None] | None = None
        self._emptied: Deferred[None] | None = None

    def put(self, *events: bytes) -> None:
        """Add events, and wake the sender."""
        self._events.extend(events)
        self._size += sum(map(len, events))
        if self._size > MAX_QUEUED:
            self._events = deque((PRUNE, STATISTICS))
            self._size = len(PRUNE) + len(STATISTICS)
        filled, self._filled = self._filled, None
        _wake(filled)

    async def take(self) -> bytes:
        """Return the next event when there is one."""
        while not self._events:
            emptied, self._emptied = self._emptied, None
            _wake(emptied)  # which may put the next event
            if not self._events:
                self._filled = Deferred()
                await self._filled
        event = self._events.popleft()
        self._size -= len(event)
        return event

    async def when_sent(self) -> None:
        """Wait until all events have been sent."""
        if self._events:
            self._emptied = Deferred()
            await self._emptied


def _wake(waiting: Deferred[None] | None) -> None:
    """Wake a coroutine that waits, if there is one."""
    if waiting is not None and not waiting.called:
        waiting.callback(None)


class EventSockets:
    """Sends the events of an inbox.

    ``deleted`` is the number of messages that requests have deleted.
    """

    def __init__(self, follow: FollowInbox, mails: Mails, clock: IReactorTime) -> None:
        self._follow = follow
        self._mails = mails
        self._clock = clock
        self._open: defaultdict[AccountId, set[EventQueue]] = defaultdict(set)
        self._deleting: set[AccountId] = set()
        self.deleted = 0

    def stream(self, caller: Caller, socket: WebSocket) -> Stream:
        """Return the stream that sends all events until the client disconnects."""

        async def run(request: Request) -> None:
            channel: Any = request.channel
            socket.open(channel.transport.write, channel.transport.loseConnection)
            channel.switch_protocol(socket.receive)
            queue = EventQueue()
            queue.put(STATISTICS)
            self._open[caller.account_id].add(queue)
            sending = Deferred.fromCoroutine(self._send(caller, request, socket, queue))
            sending.addErrback(_end_of_sending, channel)
            try:
                async with aclosing(self._events(caller)) as events:
                    async for event in events:
                        queue.put(event)
                        await queue.when_sent()
            except ExpectedFailure:
                socket.close()
            finally:
                self._leave(caller.account_id, queue)
                sending.cancel()
            # The response has no end of its own: this is cancelled when the client disconnects.
            await Deferred()

        return Stream("", run)

    @contextmanager
    def deleting(self, account_id: AccountId) -> Iterator[None]:
        """Send no ``prune`` for deletions that are told afterwards."""
        self._deleting.add(account_id)
        try:
            yield
        finally:
            self._deleting.discard(account_id)

    def tell_changed(self, account_id: AccountId, mail_id: str, **changed: object) -> None:
        """Tell that a message was read or tagged."""
        names = {name.capitalize(): value for name, value in changed.items()}
        self._put(account_id, _event("update", {"ID": mail_id, **names}))

    def tell_marked(
        self, account_id: AccountId, mails: Sequence[DeliveryId], *, is_read: bool
    ) -> None:
        """Tell that messages were read or are unread again."""
        self._tell_each(account_id, "update", mails, Read=is_read)

    def tell_deleted(
        self, account_id: AccountId, mails: Sequence[DeliveryId], *, is_all: bool
    ) -> None:
        """Tell that messages, or all, were deleted."""
        self.deleted += len(mails)
        if is_all:
            self._put(account_id, TRUNCATE, STATISTICS)
        else:
            self._tell_each(account_id, "delete", mails)

    def tell_pruned(self, account_id: AccountId) -> None:
        """Tell that clients should read the list again."""
        self._put(account_id, PRUNE)

    def _tell_each(
        self, account_id: AccountId, kind: str, mails: Sequence[DeliveryId], **more: object
    ) -> None:
        if len(mails) > MAX_TOLD:
            self._put(account_id, PRUNE, STATISTICS)
        else:
            events = [_event(kind, {"ID": mail, **more}) for mail in mails]
            self._put(account_id, *events, STATISTICS)

    def _put(self, account_id: AccountId, *events: bytes) -> None:
        for queue in self._open.get(account_id, ()):
            queue.put(*events)

    def _leave(self, account_id: AccountId, queue: EventQueue) -> None:
        self._open[account_id].discard(queue)
        if not self._open[account_id]:
            del self._open[account_id]

    async def _send(
        self, caller: Caller, request: Request, socket: WebSocket, queue: EventQueue
    ) -> None:
        """Send the events of a queue, each when the client has read those before."""
        while True:
            event = await queue.take()
            await wait_until_read(request, self._clock)
            if event is NOTHING:
                socket.ping()
            else:
                socket.send(await self._statistics(caller) if event is STATISTICS else event)

    async def _events(self, caller: Caller) -> AsyncGenerator[bytes, None]:
        newest = ""
        wanted = replace(ANY, after=caller.position)
        async with aclosing(self._follow.follow(caller, wanted)) as found:
            async for event in found:
                if isinstance(event, MailRefused):
                    continue
                if isinstance(event, MessageArrived):
                    # A mail to several recipients is one message of Mailpit.
                    mail_id = event.message.summary.delivery_id
                    if mail_id == newest:
                        continue
                    newest = mail_id
                    try:
                        mail = await self._mails.mail(caller, mail_id)
                    except MessageNotFound:
                        continue  # deleted meanwhile
                    yield _event("new", render_summary(mail))
                elif event.has_removals and caller.account_id not in self._deleting:
                    yield PRUNE
                else:
                    yield NOTHING
                    continue
                yield STATISTICS

    async def _statistics(self, caller: Caller) -> bytes:
        count = (await self._mails.page(caller, ANY, 0, 0)).inbox
        numbers = {"Total": count.total, "Unread": count.unread, "Version": own_version()}
        return _event("stats", numbers)


def _event(kind: str, data: object) -> bytes:
    return dump_json({"Type": kind, "Data": data})


PRUNE, TRUNCATE = _event("prune", None), _event("truncate", None)


def _end_of_sending(failure: Failure, channel: Any) -> None:
    """End the connection of a client that does not read. The stream itself ends in other ways."""
    if failure.check(DeferredTimeout):
        channel.hang_up()
    else:
        failure.trap(CancelledError, ExpectedFailure)
