"""A store process that stores mails for one inbox as fast as possible, beside other processes.

    python -m tests.engines.store_process URL SECONDS

It prints the number of stored mails, and fails with the first error.
"""

import sys
import time
from os import urandom
from typing import Any

from twisted.internet import task
from twisted.internet.defer import Deferred, gatherResults

from mailcheck.core.accounts import Quota
from mailcheck.core.identifiers import DeliveryId, MessageId, new_time_ordered_id
from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.messages import Delivery
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import ExpiryStore
from mailcheck.workers.scheduling import DirectWorker
from mailcheck.workers.threads import ThreadWorker
from tests.engines.deliveries import delivery, recipient

IN_FLIGHT = 16
SHORT_LIVED = 4
"""One of this many mails has already expired on arrival, and is deleted soon after."""

SWEEP = 64
"""Mails between two expiry runs."""


def fresh(number: int) -> Delivery:
    """Return a mail with ids that no other process creates."""
    now = Instant(int(time.time() * 1000))
    expires_at = now if number % SHORT_LIVED == 0 else Instant(now + HOUR)
    sent = delivery(recipient("ann", f"t{number % 9}"), received_at=now, expires_at=expires_at)
    return Delivery(
        id=DeliveryId(new_time_ordered_id(now, urandom)),
        session=sent.session,
        envelope=sent.envelope,
        raw_message=sent.raw_message,
        received_at=now,
        expires_at=expires_at,
        message_ids=(MessageId(new_time_ordered_id(now, urandom)),),
        share_tokens=sent.share_tokens,
    )


async def take_mail(reactor: Any, url: str, seconds: float) -> int:
    """Store mails until the time is over; return their number."""

    def soon(call: Any) -> object:
        return reactor.callLater(0, call)

    engine = PostgresqlEngine(url, ThreadWorker(reactor, "writer", 1), DirectWorker(), soon)
    engine.open()
    store = MailStore(engine, Quota(10**9, 10**15))
    expiry = ExpiryStore(engine)
    end = time.monotonic() + seconds
    stored = 0

    async def send(number: int) -> None:
        nonlocal stored
        while time.monotonic() < end:
            await store.deliver(fresh(number))
            stored += 1
            number += IN_FLIGHT
            if number % SWEEP == 0:
                await expiry.expire(Instant(int(time.time() * 1000)), 200)

    await gatherResults([Deferred.fromCoroutine(send(number)) for number in range(IN_FLIGHT)])
    await engine.close()
    return stored


def main(reactor: Any) -> Deferred[None]:
    """Store mails as the command line says."""
    _, url, seconds = sys.argv
    taken = Deferred.fromCoroutine(take_mail(reactor, url, float(seconds)))
    return taken.addCallback(lambda stored: print(stored, flush=True))


if __name__ == "__main__":
    task.react(main)
