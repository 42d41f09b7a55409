"""The checks of a mail that is there: HTML compatibility, accessibility, and its links.

Computed in a child process when somebody asks, kept for a moment in memory, never stored.
"""

from collections.abc import Callable
from functools import partial

from mailcheck.checks.mail_checks import MailChecks, list_unsubscribe
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.identifiers import AccountId
from mailcheck.core.keys import Key, key_of
from mailcheck.core.messages import StoredMessage
from mailcheck.core.recent import RecentlyUsed
from mailcheck.operations.concurrency import SharedCalls
from mailcheck.operations.in_children import check_html, check_raw_mail
from mailcheck.operations.inbox.mail_bytes import MailBytes

RECENT_CHECKS = 32
"""Checks kept: a page, its reload and the request for its links come right after one another."""

_Work = tuple[Callable[[], MailChecks], int, AccountId]


class CheckMail:
    """Checks mails, away from the reactor; those who ask for the same one share the work."""

    def __init__(self, mail_bytes: MailBytes) -> None:
        self._mail_bytes = mail_bytes
        self._recent: RecentlyUsed[Key, MailChecks] = RecentlyUsed(RECENT_CHECKS)
        self._wanted: dict[Key, _Work] = {}
        self._checking: SharedCalls[Key, MailChecks] = SharedCalls(self._check)

    async def of_message(self, message: StoredMessage) -> MailChecks:
        """Check a message of an inbox."""
        content = message.content
        leaving = list_unsubscribe(content.header_list)
        texts = content.html, content.text
        call = partial(check_html, *texts, content.best_link, leaving, content.media_types)
        size = len(content.html) + len(content.text)
        work = call, size, message.summary.account_id
        return await self._of(key_of("message", message.summary.delivery_id), work)

    async def of_test(self, test_id: str, mail: ReceivedMail) -> MailChecks:
        """Check the mail of a deliverability test."""
        raw = mail.raw_message
        work = partial(check_raw_mail, raw), len(raw), mail.account_id
        return await self._of(key_of("test", test_id), work)

    async def _of(self, key: Key, work: _Work) -> MailChecks:
        found = self._recent.get(key)
        if found is None:
            self._wanted[key] = work
            checking = self._checking.call(key)
            self._wanted.pop(key, None)  # still there where somebody else had begun
            found = await checking
        return found

    async def _check(self, key: Key) -> MailChecks:
        found = await self._mail_bytes.work(*self._wanted.pop(key))
        self._recent.put(key, found)
        return found
