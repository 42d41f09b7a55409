"""The mails of a group that match routes: queued for applications with the mail itself."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from mailcheck.core.content import HeaderSummary
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import (
    LOOP_WINDOW,
    MOST_A_LOOP,
    SENDER_HELO,
    SENDER_IP,
    InboundAttempt,
    InboundDelivery,
    InboundDeliveryId,
    InboundFault,
    InboundFormat,
    InboundMailId,
    InboundRouteId,
    InboundState,
    Verdicts,
    first_delay,
    matches_recipient,
)
from mailcheck.core.messages import Delivery, Recipient
from mailcheck.core.network_addresses import is_local_client
from mailcheck.ports.engine import Transaction, Value
from mailcheck.ports.workers import Lease
from mailcheck.store.transactions import insert, json_of, read_number, row_of, value_of

LOOP = (
    f"a loop: more than {MOST_A_LOOP} mails with this route and these two addresses in a minute. "
    "The application seems to answer its own mails."
)
"""Why a mail is not sent."""

LONGEST_KEY = 1_000
"""Maximum number of characters of the addresses by which loops are recognised."""


class _Pattern(Struct, frozen=True):
    """What decides whether a mail belongs to a route, and how."""

    id: InboundRouteId
    account_id: AccountId
    pattern: str
    format: InboundFormat
    fault: InboundFault | None
    is_per_recipient: bool


class RoutedMails:
    """The mails of a group for the routes of these accounts.

    A mail with many recipients that match is one mail for each route, unless the format of the
    route has a request for each recipient.
    """

    def __init__(self, transaction: Transaction, accounts: Sequence[AccountId]) -> None:
        self._transaction = transaction
        self._routes: defaultdict[AccountId, list[_Pattern]] = defaultdict(list)
        rows = transaction.rows_over(
            "SELECT id, account_id, pattern, format, fault, is_per_recipient FROM inbound_route "
            "WHERE account_id IN ({rows}) ORDER BY created_at, id",
            [(account,) for account in accounts],
        )
        for row in rows:
            self._routes[row.account_id].append(value_of(_Pattern, row))
        self._mails: list[dict[str, Value]] = []
        self._deliveries: list[tuple[InboundDelivery, str]] = []

    def take(
        self,
        delivery: Delivery,
        header: HeaderSummary,
        messages: Iterable[tuple[int, Recipient]],
    ) -> None:
        """Queue a mail for the routes that its recipients match."""
        found: defaultdict[AccountId, list[tuple[int, str]]] = defaultdict(list)
        for number, recipient in messages:
            if recipient.account_id in self._routes:
                found[recipient.account_id].append((number, recipient.address))
        for account_id, numbered in found.items():
            self._take(delivery, header, account_id, numbered)

    def write(self) -> None:
        """Insert the mails and deliveries; the mails themselves are already stored."""
        insert(self._transaction, "inbound_mail", self._mails)
        add_deliveries(self._transaction, self._deliveries)

    def _take(
        self,
        delivery: Delivery,
        header: HeaderSummary,
        account_id: AccountId,
        numbered: Sequence[tuple[int, str]],
    ) -> None:
        # As unique as the id of a message, and no other mail has it.
        mail_id = InboundMailId(delivery.message_ids[numbered[0][0]])
        author = header.author_address or delivery.envelope.envelope_sender
        reached: dict[str, None] = {}
        for route in self._routes[account_id]:
            matching = tuple(
                address for _, address in numbered if matches_recipient(route.pattern, address)
            )
            reached |= dict.fromkeys(matching)
            parts = (
                [(recipient,) for recipient in matching] if route.is_per_recipient else [matching]
            )
            for recipients in filter(None, parts):
                one = InboundDelivery(
                    id=_derived_id(mail_id, route.id, recipients),
                    account_id=account_id,
                    route_id=route.id,
                    mail_id=mail_id,
                    recipients=recipients,
                    fault=route.fault,
                    state=InboundState.WAITING,
                    created_at=delivery.received_at,
                    due_at=delivery.received_at,
                )
                self._deliveries.append((one, loop_key(author, recipients)))
        if reached:
            self._mails.append(_mail_row(delivery, mail_id, account_id, tuple(reached)))


def _mail_row(
    delivery: Delivery,
    mail_id: InboundMailId,
    account_id: AccountId,
    recipients: tuple[str, ...],
) -> dict[str, Value]:
    session = delivery.session
    # SPF of a client in the own network would say something about the network only.
    is_simulated = (
        session.account_id is not None
        or delivery.envelope.posted is not None
        or is_local_client(session.client_ip)
    )
    return mail_row(
        mail_id,
        account_id,
        delivery,
        recipients,
        Verdicts() if is_simulated else None,
        SENDER_IP if is_simulated else session.client_ip,
        SENDER_HELO if is_simulated else session.helo_name,
    )


def mail_row(
    mail_id: InboundMailId,
    account_id: AccountId,
    delivery: Delivery,
    recipients: tuple[str, ...],
    verdicts: Verdicts | None,
    client_ip: str,
    helo_name: str,
) -> dict[str, Value]:
    """Return a row of ``inbound_mail``; without verdicts, they are determined before it is sent."""
    return {
        "id": mail_id,
        "account_id": account_id,
        "delivery_id": delivery.id,
        "recipients": json_of(recipients),
        "received_at": delivery.received_at,
        "size": len(delivery.raw_message),
        "verdicts": None if verdicts is None else json_of(verdicts),
        "client_ip": client_ip,
        "helo_name": helo_name,
    }


def loop_key(author: str, recipients: Sequence[str]) -> str:
    """Return the addresses by which loops are recognised."""
    return " ".join((author, *recipients)).casefold()[:LONGEST_KEY]


def add_deliveries(
    transaction: Transaction,
    deliveries: Sequence[tuple[InboundDelivery, str]],
    lease: Lease | None = None,
) -> None:
    """Insert deliveries, each with the addresses of a possible loop or an empty text.

    With a ``lease`` they are claimed by its holder.

    A mail with the fault `InboundFault.OUT_OF_ORDER` is delivered at once if another one of its
    route waits for it.
    """
    offset = transaction.clock_offset()
    for delivery, key in deliveries:
        is_loop = bool(key) and _is_loop(transaction, delivery, key)
        due_at = None if is_loop else delivery.created_at + _delay(transaction, delivery) + offset
        state = InboundState.STOPPED if is_loop else delivery.state
        row = row_of(
            delivery,
            state=state.value,
            due_at=due_at,
            loop_key=key,
            lease_holder=None if lease is None else lease.holder,
            lease_until=None if lease is None else lease.until + offset,
        )
        insert(transaction, "inbound_delivery", [row])
        if is_loop and delivery.mail_id is not None:
            stopped = InboundAttempt(
                delivery.id,
                delivery.route_id,
                delivery.mail_id,
                number=1,
                at=delivery.created_at,
                status=None,
                milliseconds=0,
                problem=LOOP,
            )
            insert(transaction, "inbound_attempt", [attempt_row(delivery.account_id, stopped)])


def attempt_row(account_id: AccountId, attempt: InboundAttempt) -> dict[str, Value]:
    """Return a row of ``inbound_attempt``."""
    columns: dict[str, Value] = {"account_id": account_id, "attempted_at": attempt.at}
    return row_of(attempt, "route_id", "mail_id", "at", **columns)


def _is_loop(transaction: Transaction, delivery: InboundDelivery, key: str) -> bool:
    since = delivery.created_at - LOOP_WINDOW
    sql = (
        "SELECT COUNT(*) FROM inbound_delivery "
        "WHERE route_id = ? AND loop_key = ? AND created_at > ?"
    )
    return read_number(transaction, sql, (delivery.route_id, key, since)) >= MOST_A_LOOP


def _delay(transaction: Transaction, delivery: InboundDelivery) -> int:
    if delivery.fault is InboundFault.OUT_OF_ORDER and _has_held(transaction, delivery.route_id):
        return 0
    return first_delay(delivery.fault)


def _has_held(transaction: Transaction, route_id: InboundRouteId) -> bool:
    held = transaction.row(
        "SELECT 1 FROM inbound_delivery WHERE route_id = ? AND fault = ? AND state = ?",
        (route_id, InboundFault.OUT_OF_ORDER.value, InboundState.WAITING.value),
    )
    return held is not None


def _derived_id(
    mail_id: InboundMailId, route_id: InboundRouteId, recipients: tuple[str, ...]
) -> InboundDeliveryId:
    """Return an id that follows from the mail, since a write has no randomness of its own."""
    digest = hashlib.sha256(json.dumps((mail_id, route_id, recipients)).encode()).hexdigest()
    return InboundDeliveryId(f"{mail_id[:24]}{digest[:12]}")
