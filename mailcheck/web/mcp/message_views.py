"""Views of messages, made once for all who are woken by the same mail."""

from functools import partial
from weakref import WeakKeyDictionary

from mailcheck.api.mcp.views import MessageView, trim_content, view_content
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.concurrency import SharedCalls
from mailcheck.ports.workers import Worker


class MessageViews:
    """Makes views of messages; HTML takes its time and is read away from the reactor."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._views: WeakKeyDictionary[StoredMessage, MessageView] = WeakKeyDictionary()
        self._making: SharedCalls[StoredMessage, MessageView] = SharedCalls(self._make)

    async def of(self, message: StoredMessage) -> MessageView:
        """Give the view of a message."""
        view = self._views.get(message)
        if view is None:
            view = await self._making.call(message)
        return view

    async def _make(self, message: StoredMessage) -> MessageView:
        content = message.content
        if content.html:
            viewing = partial(view_content, trim_content(content))
            view = await self._worker.run(viewing, message.summary.account_id)
        else:
            view = view_content(content)
        self._views[message] = view
        return view
