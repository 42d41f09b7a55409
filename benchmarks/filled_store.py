"""Fill the inbox of a daemon quickly, with the methods of the store and without SMTP."""

import os
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock

from mailcheck.assembly.accounts import build_accounts
from mailcheck.assembly.runtime import open_runtime, time_and_chance_of
from mailcheck.assembly.workers import Workers
from mailcheck.checks.content.derive import derive_content
from mailcheck.config.options import Config, StorageOptions
from mailcheck.core.accounts import Account, Quota
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.identifiers import (
    DeliveryId,
    MessageId,
    new_share_token,
    new_time_ordered_id,
)
from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.messages import Delivery, Envelope, Recipient, Session
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.workers.scheduling import DirectWorker

NO_LIMIT = 10**15
GROUP = 2_000
"""Number of messages that the store gets in one group commit."""

RAW = (
    b"From: Shop <shop@example.com>\r\nSubject: Welcome\r\n\r\n"
    b"Your code is 482913: https://example.com/confirm?t=7f3a\r\n" + b"Thank you.\r\n" * 40
)

TEXT = b"".join(
    b"Line %d of an ordinary newsletter, with as many words as people put into one.\r\n" % number
    for number in range(53)
)
"""4 KB of text that no search has read before."""

Result = TypeVar("Result")


class BatchWorker:
    """Collects calls until it is told to run them, so that writes are committed in groups."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Deferred[Any], Callable[[], Any]]] = deque()

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Add the call to the batch."""
        result: Deferred[Result] = Deferred()
        self._calls.append((result, call))
        return result

    def run_all(self) -> None:
        """Run all calls, and the calls that they add."""
        while self._calls:
            result, call = self._calls.popleft()
            maybeDeferred(call).chainDeferred(result)

    def start(self) -> None:
        """Do nothing: there is no thread to start."""

    def stop(self) -> None:
        """Do nothing: there is no thread to stop."""


def fill(
    url: str, count: int, tag_of: Callable[[int], str], began: float, text: bytes = b""
) -> None:
    """Store ``count`` messages with content in the inbox of the first account at a URL.

    The daemon must not run. Message ``n`` has the tag ``tag_of(n)`` and ``n`` in its subject, was
    received ``n`` milliseconds after ``began`` (seconds since the epoch), and ends with ``text``.
    """
    config = Config(storage=StorageOptions(url=url))
    worker, clock = BatchWorker(), Clock()
    workers = Workers(worker, DirectWorker(), DirectWorker())
    clock_and_randomness = time_and_chance_of(config, clock.seconds, clock, os.urandom)
    runtime = open_runtime(config, clock, clock_and_randomness, workers)
    runtime.engine.open()
    mails = MailStore(runtime.engine, Quota(NO_LIMIT, NO_LIMIT))
    contents = ContentStore(runtime.engine)
    raw = RAW + text
    content = derive_content(raw)
    accounts: list[list[Account]] = []
    Deferred.fromCoroutine(build_accounts(runtime).keep.accounts()).addCallback(accounts.append)
    for number in range(count):
        received_at = Instant(int(began * 1000) + number)
        delivery = make_delivery(accounts[0][0], tag_of(number), received_at)
        numbered = raw.replace(b"Welcome", b"Welcome %d" % number, 1)
        mails.deliver(replace(delivery, raw_message=numbered))
        contents.save_content(delivery.id, content)
        if number % GROUP == 0:
            worker.run_all()
    worker.run_all()
    runtime.engine.close()


def make_delivery(account: Account, tag: str, received_at: Instant) -> Delivery:
    """Return a mail to one tag of an account."""
    address = join_subaddress(account.mailbox_name, tag, Config().inbox.domain)
    return Delivery(
        id=DeliveryId(new_time_ordered_id(received_at, os.urandom)),
        session=Session("127.0.0.1", "bench.example", True),
        envelope=Envelope("shop@example.com", (Recipient(address, account.id, tag),)),
        raw_message=RAW,
        received_at=received_at,
        expires_at=Instant(received_at + 24 * HOUR),
        message_ids=(MessageId(new_time_ordered_id(received_at, os.urandom)),),
        share_tokens=(new_share_token(os.urandom),),
    )
