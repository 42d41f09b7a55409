"""Replying to a mail as a receiver would, while the mail is stored with its report."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct
from twisted.internet.defer import TimeoutError as DeferredTimeout

from mailcheck.checks.quality.receiver_replies import find_profile
from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.core.errors import ExpectedFailure, MessageNotFound
from mailcheck.core.faults import Fault, Meeting, named_receiver
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId, MessageId
from mailcheck.core.messages import Recipient
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.deliverability.wait_for_test import DeliverabilityFeeds
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.mail_receiver import ReceiverReply

PATIENCE = 150.0
"""Seconds to wait for the report. An analysis ends after 120 s, and a sender waits ten minutes for
the reply (RFC 5321 4.5.3.2.6)."""

FindMessage = Callable[[AccountId, DeliveryId], Awaitable[MessageId | None]]
"""Finds the first message of a delivery in an account."""


def find_requested_reply(tag: str) -> Fault | None:
    """Return the fault of a tag that names a receiver, or `None` for any other tag."""
    name = named_receiver(tag)
    return None if find_profile(name) is None else Fault(tag, Meeting.ANSWERED_AS)


class ReplyAsReceiver(Struct, frozen=True):
    """Has a stored mail scored as a deliverability test, and returns a receiver's reply."""

    find_message: FindMessage
    tests: ManageTests
    feeds: DeliverabilityFeeds
    clocks: ClockAndRandomness

    async def reply(self, recipient: Recipient, delivery_id: DeliveryId) -> ReceiverReply:
        """Return the reply of the receiver that the recipient's tag names.

        It is a temporary failure if the report could not be computed now.
        """
        try:
            test_id = recipient.test_id or await self._score(recipient.account_id, delivery_id)
            found = await self._wait(recipient.account_id, test_id)
        except ExpectedFailure as failure:
            return _try_later(str(failure))
        if found.report is None:
            return _try_later(found.failure or "the analysis is not finished")
        name = named_receiver(recipient.tag)
        replies = json.loads(found.report.document)["report"].get("replies", ())
        shown = next((reply for reply in replies if reply["receiver"] == name), None)
        if shown is None:
            return _try_later("the report was written by an earlier version")
        return _read_reply(shown)

    async def _score(self, account_id: AccountId, delivery_id: DeliveryId) -> DeliverabilityTestId:
        message_id = await self.find_message(account_id, delivery_id)
        if message_id is None:
            raise MessageNotFound
        return (await self.tests.score_message(account_id, message_id)).id

    async def _wait(
        self, account_id: AccountId, test_id: DeliverabilityTestId
    ) -> DeliverabilityResult:
        """Return the test when it is final, or after the patience has ended."""
        clock = self.clocks.clock
        deadline = clock.seconds() + PATIENCE
        with self.feeds.joined(test_id) as waiter:
            while True:
                waiter.arm()
                found = await self.tests.one(account_id, test_id)
                left = deadline - clock.seconds()
                if found.test.state.is_final or left <= 0:
                    return found
                self.feeds.require_open()
                try:
                    await waiter.when_moved.addTimeout(left, clock)
                except DeferredTimeout:
                    continue


def _try_later(reason: str) -> ReceiverReply:
    """Return the reply to a stored mail whose report could not be computed."""
    return ReceiverReply(451, "4.3.0", "The receiver's reply could not be determined", reason)


def _read_reply(shown: Mapping[str, Any]) -> ReceiverReply:
    """Return the reply from the JSON of a report."""
    reply, words = shown["reply"], f"{shown['name']}: {shown['action']}. {shown['explanation']}"
    if reply is None:
        return ReceiverReply(250, "2.0.0", "OK", words)
    return ReceiverReply(reply["code"], reply["enhanced"] or "", reply["text"], words)
