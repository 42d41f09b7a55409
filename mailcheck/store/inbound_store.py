"""The store of mail into applications: mails, the queue of deliveries, and their attempts.

The times at which attempts are due use the clock that all daemons share, as those of leases do.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.core.content import HeaderSummary
from mailcheck.core.errors import InboundQueueFull
from mailcheck.core.identifiers import AccountId, DeliveryId, MessageId
from mailcheck.core.inbound import (
    MOST_ANSWERS,
    MOST_ATTEMPTS,
    MOST_MAILS,
    MOST_OCTETS,
    InboundAttempt,
    InboundDelivery,
    InboundDeliveryId,
    InboundFault,
    InboundMail,
    InboundMailId,
    InboundRoute,
    InboundRouteId,
    InboundState,
    NextStep,
    Verdicts,
)
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Delivery, Envelope, Session
from mailcheck.ports.engine import Row, Transaction, Value
from mailcheck.ports.workers import Lease
from mailcheck.store.inbound_routes import ROUTES, InboundRoutes, delete_mails
from mailcheck.store.leases import LeasedRows
from mailcheck.store.mail_delivery import delivery_row
from mailcheck.store.messages import lock_inboxes
from mailcheck.store.routed_mails import add_deliveries, attempt_row, mail_row
from mailcheck.store.transactions import (
    columns_of,
    frees_space,
    inbox_write,
    insert,
    json_of,
    read,
    read_number,
    read_value,
    read_values,
    value_of,
    write,
)

MOST_WAITING = 500
"""Maximum number of deliveries of an account that wait for their first attempt."""

OF_ACCOUNT = 8
"""Maximum number of deliveries of an account at the same time, so that an application that does not
answer delays the mail of its own account only."""


class InboundJob(Struct, frozen=True):
    """A claimed delivery and its route. ``size`` is that of its mail, in octets."""

    delivery: InboundDelivery
    route: InboundRoute
    size: int = 0

    @property
    def id(self) -> InboundDeliveryId:
        """The id of the delivery."""
        return self.delivery.id


class ClaimedJobs(Struct, frozen=True):
    """The result of a claim. ``wait``: milliseconds until the next delivery is due, or `None`."""

    jobs: tuple[InboundJob, ...]
    wait: int | None


class StoredInboundMail(Struct, frozen=True):
    """A mail, and whether its verdicts have to be determined first."""

    mail: InboundMail
    has_verdicts: bool
    delivery_id: DeliveryId


class InboundMailFacts(Struct, frozen=True):
    """A mail without its bytes, of which there are ``size``."""

    id: InboundMailId
    envelope_sender: str
    recipients: tuple[str, ...]
    received_at: Instant
    verdicts: Verdicts
    size: int


class RoutedMailFacts(Struct, frozen=True):
    """A mail without its bytes, and one of the routes that carry it."""

    mail_id: InboundMailId
    route_id: InboundRouteId
    account_id: AccountId
    delivery_id: DeliveryId
    size: int


class InboundFilter(Struct, frozen=True):
    """Conditions for deliveries and attempts; `None` is no condition."""

    route_id: InboundRouteId | None = None
    mail_id: InboundMailId | None = None


class ListedDelivery(Struct, frozen=True):
    """A delivery with the header of its mail, and its last attempt."""

    delivery: InboundDelivery
    header: HeaderSummary | None
    last_attempt: InboundAttempt | None = None


_DELIVERY = columns_of(InboundDelivery, "inbound_delivery")

_LEASES = LeasedRows("inbound_delivery", waiting="due_at IS NOT NULL", due="due_at")

_DUE = """
    inbound_delivery JOIN inbound_route ON inbound_route.id = route_id
    JOIN account ON account.id = inbound_delivery.account_id
    WHERE due_at <= ? AND (mail_id IS NULL OR is_confirmed = 1) AND disabled_at IS NULL
"""

_NEXT = _LEASES.in_turns(_DUE, limit=f" AND turn <= {OF_ACCOUNT}")

_JOB = f"""
    SELECT {_DELIVERY}, inbound_mail.size FROM inbound_delivery
    LEFT JOIN inbound_mail ON inbound_mail.id = mail_id WHERE inbound_delivery.id = ?
"""

_NEXT_DUE = """
    SELECT MIN(due_at) AS due_at FROM inbound_delivery
    JOIN inbound_route ON inbound_route.id = route_id
    WHERE due_at > ? AND (mail_id IS NULL OR is_confirmed = 1)
"""

_RECORD = """
    UPDATE inbound_delivery SET state = ?, due_at = ?, attempts = attempts + 1,
        taken_at = COALESCE(taken_at, ?), lease_holder = NULL, lease_until = NULL
    WHERE id = ? AND lease_holder = ?
"""

_RELEASE_HELD = """
    UPDATE inbound_delivery SET due_at = ?
    WHERE route_id = ? AND fault = ? AND state = ? AND id <> ? AND due_at > ?
"""

_MAIL = """
    SELECT inbound_mail.id, inbound_mail.account_id, delivery_id, delivery.envelope_sender,
        recipients, delivery.raw_message, inbound_mail.received_at,
        COALESCE(verdicts, '{}') AS verdicts, inbound_mail.client_ip, inbound_mail.helo_name,
        CASE WHEN verdicts IS NULL THEN 0 ELSE 1 END AS has_verdicts
    FROM inbound_mail JOIN delivery ON delivery.id = delivery_id
"""

_MAIL_FACTS = """
    SELECT inbound_mail.id, envelope_sender, recipients, inbound_mail.received_at,
        COALESCE(verdicts, '{}') AS verdicts, inbound_mail.size
    FROM inbound_mail JOIN delivery ON delivery.id = delivery_id
    WHERE inbound_mail.account_id = ? AND inbound_mail.id = ?
"""

_ATTEMPTS = """
    SELECT inbound_attempt.delivery_id, route_id, mail_id, number, attempted_at AS at, status,
        milliseconds, problem, request_headers, answer_headers, answer
    FROM inbound_attempt JOIN inbound_delivery ON inbound_delivery.id = inbound_attempt.delivery_id
    WHERE inbound_attempt.account_id = ? AND mail_id IS NOT NULL {conditions}
"""

_OF_DELIVERY = "AND inbound_attempt.delivery_id = ?"

_LAST_ATTEMPT = f"{_ATTEMPTS.format(conditions=_OF_DELIVERY)} ORDER BY number DESC LIMIT 1"

_DELIVERIES = f"""
    SELECT {_DELIVERY}, {columns_of(HeaderSummary, "delivery")}
    FROM inbound_delivery
    LEFT JOIN inbound_mail ON inbound_mail.id = mail_id
    LEFT JOIN delivery ON delivery.id = inbound_mail.delivery_id
    WHERE inbound_delivery.account_id = ? {{conditions}}
"""

_EXCESS = """
    SELECT id, delivery_id FROM (
        SELECT id, delivery_id, received_at,
            ROW_NUMBER() OVER (PARTITION BY account_id ORDER BY id DESC) AS place,
            SUM(size) OVER (PARTITION BY account_id ORDER BY id DESC) AS octets
        FROM inbound_mail
    ) AS ranked WHERE place > ? OR (octets > ? AND place > 1) OR received_at < ?
    ORDER BY id LIMIT ?
"""

_RANKED_ATTEMPTS = """
    SELECT delivery_id, number FROM (
        SELECT delivery_id, number, {octets} AS octets, ROW_NUMBER() OVER (
            PARTITION BY account_id ORDER BY attempted_at DESC, delivery_id DESC, number DESC
        ) AS place FROM inbound_attempt
    ) AS ranked WHERE place > ? AND octets > 0 LIMIT ?
"""


class InboundStore(InboundRoutes):
    """Routes, mails for applications, and the attempts to deliver them."""

    @inbox_write(lambda _, mail, *others: (mail.account_id,))
    def add_mail(
        self,
        transaction: Transaction,
        mail: InboundMail,
        deliveries: Sequence[InboundDelivery],
        lease: Lease | None = None,
    ) -> InboundQueueFull | bool:
        """Add a mail that was written for a route.

        :param lease: claims the deliveries.
        :return: false if the route was deleted meanwhile.
        :raises InboundQueueFull: too many mails of the account wait.
        """
        may_add = _may_add(transaction, mail.account_id, deliveries)
        if may_add is not True:
            return may_add
        session = Session(mail.client_ip, mail.helo_name, is_extended=True)
        stored = Delivery(
            id=DeliveryId(mail.id),
            session=session,
            envelope=Envelope(mail.envelope_sender, ()),
            raw_message=mail.raw_message,
            received_at=mail.received_at,
            expires_at=mail.received_at,
            message_ids=(),
            share_tokens=(),
        )
        header = summarize_header(mail.raw_message)
        insert(transaction, "delivery", [delivery_row(stored, header)])
        row = mail_row(
            mail.id,
            mail.account_id,
            stored,
            mail.recipients,
            mail.verdicts,
            mail.client_ip,
            mail.helo_name,
        )
        insert(transaction, "inbound_mail", [row])
        add_deliveries(transaction, [(delivery, "") for delivery in deliveries], lease)
        return True

    @inbox_write(lambda _, mail, *others: (mail.account_id,))
    def add_stored(
        self,
        transaction: Transaction,
        mail: InboundMail,
        message_id: MessageId,
        now: Instant,
        deliveries: Sequence[InboundDelivery],
    ) -> InboundQueueFull | bool:
        """Add the mail of a stored message, whose bytes are shared.

        :param mail: as for `add_mail`, without its raw message.
        :return: false if the message or the route does not exist.
        :raises InboundQueueFull: too many mails of the account wait.
        """
        may_add = _may_add(transaction, mail.account_id, deliveries)
        if may_add is not True:
            return may_add
        added = transaction.execute(
            "INSERT INTO inbound_mail (id, account_id, delivery_id, recipients, received_at, "
            "size, verdicts, client_ip, helo_name) "
            "SELECT ?, account_id, delivery_id, ?, ?, size, ?, ?, ? "
            "FROM message WHERE id = ? AND account_id = ? AND expires_at > ?",
            (
                mail.id,
                json_of(mail.recipients),
                mail.received_at,
                json_of(mail.verdicts),
                mail.client_ip,
                mail.helo_name,
                message_id,
                mail.account_id,
                now,
            ),
        )
        if not added:
            return False
        add_deliveries(transaction, [(delivery, "") for delivery in deliveries])
        return True

    @read
    def find_mail(
        self, transaction: Transaction, account_id: AccountId, mail_id: InboundMailId
    ) -> StoredInboundMail | None:
        """Return a mail of an account, or `None`."""
        row = transaction.row(
            f"{_MAIL} WHERE inbound_mail.account_id = ? AND inbound_mail.id = ?",
            (account_id, mail_id),
        )
        if row is None:
            return None
        mail = value_of(InboundMail, row)
        return StoredInboundMail(mail, bool(row.has_verdicts), DeliveryId(row.delivery_id))

    @read
    def describe_mail(
        self, transaction: Transaction, account_id: AccountId, mail_id: InboundMailId
    ) -> InboundMailFacts | None:
        """Return a mail of an account without its bytes, or `None`."""
        return read_value(transaction, InboundMailFacts, _MAIL_FACTS, (account_id, mail_id))

    @read
    def find_routed(
        self,
        transaction: Transaction,
        account_id: AccountId,
        route_ids: Sequence[InboundRouteId],
        ids: tuple[str, str],
    ) -> RoutedMailFacts | None:
        """Return the first mail of some routes with an id between two, and one of its routes."""
        if not route_ids:
            return None
        marks = ", ".join("?" * len(route_ids))
        return read_value(
            transaction,
            RoutedMailFacts,
            "SELECT mail_id, route_id, inbound_mail.account_id, delivery_id, size "
            "FROM inbound_delivery JOIN inbound_mail ON inbound_mail.id = mail_id "
            "WHERE inbound_delivery.account_id = ? AND mail_id BETWEEN ? AND ? "
            f"AND route_id IN ({marks}) ORDER BY mail_id LIMIT 1",
            (account_id, *ids, *route_ids),
        )

    @read
    def routed_ids(
        self,
        transaction: Transaction,
        account_id: AccountId,
        route_ids: Sequence[InboundRouteId],
        limit: int,
        after: str,
        before: str,
    ) -> list[str]:
        """Return ids of mails of some routes, newest first.

        :param after: only older mails than this one; empty for all.
        :param before: only newer mails than this one; empty for all. Without ``after``, those next
            to it.
        """
        if not route_ids:
            return []
        marks = ", ".join("?" * len(route_ids))
        bounds = {"mail_id < ?": after, "mail_id > ?": before}
        conditions = "".join(f" AND {text}" for text, value in bounds.items() if value)
        is_upward = bool(before and not after)
        rows = transaction.rows(
            "SELECT DISTINCT mail_id FROM inbound_delivery WHERE account_id = ? "
            f"AND mail_id IS NOT NULL AND route_id IN ({marks}){conditions} "
            f"ORDER BY mail_id {'ASC' if is_upward else 'DESC'} LIMIT ?",
            (account_id, *route_ids, *filter(None, bounds.values()), limit),
        )
        ids = [str(row.mail_id) for row in rows]
        return ids[::-1] if is_upward else ids

    @write
    def set_verdicts(
        self, transaction: Transaction, mail_id: InboundMailId, verdicts: Verdicts
    ) -> None:
        """Store the verdicts that were determined."""
        transaction.execute(
            "UPDATE inbound_mail SET verdicts = ? WHERE id = ?", (json_of(verdicts), mail_id)
        )

    @read
    def has_pending(self, transaction: Transaction) -> bool:
        """Return whether a delivery has a next attempt."""
        row = transaction.row("SELECT 1 FROM inbound_delivery WHERE due_at IS NOT NULL LIMIT 1")
        return row is not None

    @write
    def claim(
        self, transaction: Transaction, lease: Lease, now: Instant, limit: int
    ) -> ClaimedJobs:
        """Claim at most ``limit`` deliveries that are due. Accounts take turns."""
        offset = transaction.clock_offset()
        shared_now = Instant(now + offset)
        found = transaction.rows(_NEXT, (shared_now, shared_now, shared_now, limit))
        until = lease.until + offset
        claimed = [
            row.id
            for row in found
            if _LEASES.claim(transaction, row.id, lease.holder, until, shared_now)
        ]
        jobs = []
        for delivery_id in claimed:
            (row,) = transaction.rows(_JOB, (delivery_id,))
            (route,) = transaction.rows(f"{ROUTES} WHERE inbound_route.id = ?", (row.route_id,))
            delivery = _delivery_of(row, offset)
            jobs.append(InboundJob(delivery, value_of(InboundRoute, route), row.size or 0))
        (next_due,) = transaction.rows(_NEXT_DUE, (shared_now,))
        wait = None if next_due.due_at is None else max(0, next_due.due_at - shared_now)
        return ClaimedJobs(tuple(jobs), wait)

    @write
    def renew(
        self,
        transaction: Transaction,
        lease: Lease,
        delivery_ids: Sequence[InboundDeliveryId],
    ) -> frozenset[InboundDeliveryId]:
        """Extend the leases of deliveries; return those that the holder still has."""
        return _LEASES.renew(transaction, lease, delivery_ids)

    @write
    def release(self, transaction: Transaction, holder: str) -> None:
        """Release all deliveries of a holder."""
        _LEASES.release(transaction, holder)

    @write
    def postpone(
        self,
        transaction: Transaction,
        delivery_id: InboundDeliveryId,
        holder: str,
        due_at: Instant,
    ) -> None:
        """Release a delivery that could not be attempted now."""
        shared_due = due_at + transaction.clock_offset()
        _LEASES.give_back(transaction, delivery_id, holder, due_at=shared_due)

    @write
    def record(
        self,
        transaction: Transaction,
        job: InboundJob,
        holder: str,
        attempt: InboundAttempt | None,
        step: NextStep,
        now: Instant,
        *,
        is_taken: bool,
    ) -> bool:
        """Record an attempt and what follows. Mails that were held until this one become due.

        :param attempt: `None` for the request that opens a route.
        :return: false if the holder lost the delivery, or it was deleted.
        """
        offset = transaction.clock_offset()
        delivery = job.delivery
        due_at = None if step.wait is None else now + step.wait + offset
        taken_at = now if is_taken else None
        values = (step.state.value, due_at, taken_at, delivery.id, holder)
        if not transaction.execute(_RECORD, values):
            return False
        if attempt is not None:
            insert(transaction, "inbound_attempt", [attempt_row(delivery.account_id, attempt)])
        transaction.execute(
            _RELEASE_HELD,
            (
                now + offset,
                delivery.route_id,
                InboundFault.OUT_OF_ORDER.value,
                InboundState.WAITING.value,
                delivery.id,
                now + offset,
            ),
        )
        return True

    @read
    def attempts(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: InboundFilter,
        limit: int,
        offset: int = 0,
    ) -> list[InboundAttempt]:
        """Return attempts, newest first."""
        conditions, values = _conditions(wanted)
        return read_values(
            transaction,
            InboundAttempt,
            f"{_ATTEMPTS.format(conditions=conditions)} "
            "ORDER BY attempted_at DESC, inbound_attempt.delivery_id DESC, number DESC "
            "LIMIT ? OFFSET ?",
            (account_id, *values, limit, offset),
        )

    @read
    def count_attempts(
        self, transaction: Transaction, account_id: AccountId, wanted: InboundFilter
    ) -> int:
        """Return the number of attempts."""
        conditions, values = _conditions(wanted)
        attempts = _ATTEMPTS.format(conditions=conditions)
        sql = f"SELECT COUNT(*) FROM ({attempts}) AS found"
        return read_number(transaction, sql, (account_id, *values))

    @read
    def deliveries(
        self,
        transaction: Transaction,
        account_id: AccountId,
        wanted: InboundFilter,
        limit: int,
        offset: int = 0,
        *,
        has_attempts: bool = True,
    ) -> list[ListedDelivery]:
        """Return deliveries, newest first, with their last attempts if ``has_attempts``."""
        conditions, values = _conditions(wanted)
        rows = transaction.rows(
            f"{_DELIVERIES.format(conditions=conditions)} "
            "ORDER BY inbound_delivery.id DESC LIMIT ? OFFSET ?",
            (account_id, *values, limit, offset),
        )
        clock_offset = transaction.clock_offset()
        found = []
        for row in rows:
            header = None if row.subject is None else value_of(HeaderSummary, row)
            last = None
            if has_attempts:
                last = read_value(transaction, InboundAttempt, _LAST_ATTEMPT, (account_id, row.id))
            found.append(ListedDelivery(_delivery_of(row, clock_offset), header, last))
        return found

    @frees_space
    @write
    def forget_mails(self, transaction: Transaction, before: Instant, limit: int) -> int:
        """Delete at most ``limit`` mails that are too old or too many; return their number."""
        found = transaction.rows(_EXCESS, (MOST_MAILS, MOST_OCTETS, before, limit))
        return delete_mails(transaction, found)

    @frees_space
    @write
    def forget_attempts(self, transaction: Transaction, limit: int) -> int:
        """Delete at most ``limit`` attempts and answers that are too many; return their number."""
        attempts = transaction.rows(_RANKED_ATTEMPTS.format(octets="1"), (MOST_ATTEMPTS, limit))
        for row in attempts:
            transaction.execute(
                "DELETE FROM inbound_attempt WHERE delivery_id = ? AND number = ?",
                (row.delivery_id, row.number),
            )
        answers = transaction.rows(
            _RANKED_ATTEMPTS.format(octets="LENGTH(answer)"), (MOST_ANSWERS, limit)
        )
        for row in answers:
            transaction.execute(
                "UPDATE inbound_attempt SET answer = ? WHERE delivery_id = ? AND number = ?",
                (b"", row.delivery_id, row.number),
            )
        return len(attempts) + len(answers)


def _delivery_of(row: Row, offset: int) -> InboundDelivery:
    due_at = None if row.due_at is None else row.due_at - offset
    return value_of(InboundDelivery, row, due_at=due_at)


def _conditions(wanted: InboundFilter) -> tuple[str, tuple[Value, ...]]:
    given = (("route_id", wanted.route_id), ("mail_id", wanted.mail_id))
    chosen = [(column, value) for column, value in given if value is not None]
    return "".join(f" AND {column} = ?" for column, _ in chosen), tuple(v for _, v in chosen)


def _may_add(
    transaction: Transaction, account_id: AccountId, deliveries: Sequence[InboundDelivery]
) -> InboundQueueFull | bool:
    """Lock the inbox, and return whether the deliveries have room and their routes exist."""
    lock_inboxes(transaction, (account_id,))
    waiting = "SELECT COUNT(*) FROM inbound_delivery WHERE account_id = ? AND state = ?"
    count = read_number(transaction, waiting, (account_id, InboundState.WAITING.value))
    if count + len(deliveries) > MOST_WAITING:
        return InboundQueueFull(
            f"{count} mails of this account wait for their delivery to applications; "
            f"the maximum is {MOST_WAITING}",
            1,
        )
    return all(
        transaction.row("SELECT 1 FROM inbound_route WHERE id = ?", (route_id,)) is not None
        for route_id in {delivery.route_id for delivery in deliveries}
    )
