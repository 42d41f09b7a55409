"""Mailpit's events over a WebSocket: new messages, deletions, and the numbers of messages."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.web.server import Request

from mailcheck.api.shapes import dump_json
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure, MessageNotFound
from mailcheck.core.filters import ANY
from mailcheck.operations.inbox.follow_inbox import FollowInbox, MailRefused, MessageArrived
from mailcheck.operations.inbox.mails import Mails
from mailcheck.web.compatible.mailpit.responses import own_version, render_summary
from mailcheck.web.site.event_streams import Stream, wait_until_read
from mailcheck.web.site.websockets import WebSocket

NOTHING = b""
"""Stands for a moment without an event, in which the connection is kept alive."""


class EventSockets(Struct, frozen=True):
    """Sends the events of an inbox."""

    _follow: FollowInbox
    _mails: Mails
    _clock: IReactorTime

    def stream(self, caller: Caller, socket: WebSocket) -> Stream:
        """Return the stream that sends all events until the client disconnects."""

        async def run(request: Request) -> None:
            channel: Any = request.channel
            socket.open(channel.transport.write, channel.transport.loseConnection)
            channel.switch_protocol(socket.receive)
            try:
                async with aclosing(self._events(caller)) as events:
                    async for event in events:
                        await wait_until_read(request, self._clock)
                        if event is NOTHING:
                            socket.ping()
                        else:
                            socket.send(event)
            except DeferredTimeout:
                channel.hang_up()
            except ExpectedFailure:
                socket.close()
            # The response has no end of its own: this is cancelled when the client disconnects.
            await Deferred()

        return Stream("", run)

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
                elif event.has_removals:
                    yield _event("prune", None)
                else:
                    yield NOTHING
                    continue
                yield await self._statistics(caller)

    async def _statistics(self, caller: Caller) -> bytes:
        count = (await self._mails.page(caller, ANY, 0, 0)).inbox
        numbers = {"Total": count.total, "Unread": count.unread, "Version": own_version()}
        return _event("stats", numbers)


def _event(kind: str, data: object) -> bytes:
    return dump_json({"Type": kind, "Data": data})
