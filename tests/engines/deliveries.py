"""Values for tests of the stores: accounts, mails and times."""

from collections.abc import Sequence
from itertools import count

from mailcheck.core.accounts import Account
from mailcheck.core.audit import Action, AuditEntry
from mailcheck.core.content import MessageContent
from mailcheck.core.cursors import START
from mailcheck.core.deliverability_tests import (
    ADDRESS_LIFETIME,
    DeliverabilityTest,
    State,
    local_part_of,
)
from mailcheck.core.domains.receiver_reports import ReportKind
from mailcheck.core.domains.watches import QuietTime, Watch, WatchId, WatchKind, WatchSettings
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import (
    AccountId,
    DeliverabilityTestId,
    DeliveryId,
    MessageId,
    WebhookId,
    new_time_ordered_id,
)
from mailcheck.core.inbound import (
    InboundDelivery,
    InboundFormat,
    InboundMail,
    InboundRoute,
    InboundState,
)
from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.messages import Delivery, Envelope, Recipient, Refusal, Session, TlsFacts
from mailcheck.core.webhooks import Webhook
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import for_each, insert

NOON = Instant(1_795_262_400_000)
"""2026-11-21T12:00:00Z."""

RETENTION = 24 * HOUR

SESSION = Session(
    "192.0.2.7", "mx.example.com", True, TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384")
)

_numbers = count(1)


@for_each
def copy_watch(transaction: Transaction, times: int) -> None:
    """Add copies of the only watch of a store, with other ids and targets."""
    row = transaction.row("SELECT * FROM watch", ())
    assert row is not None
    names = (f"copy{number}" for number in range(times))
    insert(transaction, "watch", [{**row._asdict(), "id": one, "target": one} for one in names])


def at(seconds: float) -> Instant:
    """Return the time some seconds after noon."""
    return Instant(NOON + int(seconds * 1000))


def account(name: str, **facts: object) -> Account:
    """Return an account whose id, name and mailbox name contain the given name."""
    known: dict[str, object] = {
        "is_operator": False,
        "created_at": NOON,
        "max_messages": None,
        "max_bytes": None,
    }
    return Account(AccountId(name), name, f"dev-{name}", **{**known, **facts})  # type: ignore[arg-type]


def recipient(account_id: str, tag: str = "") -> Recipient:
    """Return a recipient in an account's inbox."""
    subaddress = f"+{tag}" if tag else ""
    return Recipient(f"dev-{account_id}{subaddress}@mailcheck.example", AccountId(account_id), tag)


def deliverability_test(
    name: str, account_id: str = "ann", created_at: Instant = NOON, **facts: object
) -> DeliverabilityTest:
    """Return a pending test of an account; its id begins with its name."""
    known: dict[str, object] = {"state": State.PENDING, "share_token": f"secret-{name}"}
    return DeliverabilityTest(
        id=DeliverabilityTestId(name.ljust(13, "a")),
        account_id=AccountId(account_id),
        created_at=created_at,
        expires_at=Instant(created_at + ADDRESS_LIFETIME),
        **{**known, **facts},  # type: ignore[arg-type]
    )


def webhook(name: str) -> Webhook:
    """Return a webhook of Ann's; its id is its name."""
    return Webhook(
        id=WebhookId(name),
        account_id=AccountId("ann"),
        account_name="ann",
        url=f"https://ci.example.com/{name}?a=%20",
        wanted=MessageFilter(),
        created_at=NOON,
        position=START,
        secret=f"whsec_{name}",
    )


def watch(name: str, owner: str = "ann") -> Watch:
    """Return a watch; its id is its name."""
    return Watch(
        id=WatchId(name),
        account_id=AccountId(owner),
        kind=WatchKind.DOMAIN,
        target=f"{name}.example",
        settings=WatchSettings(selectors=("s1",), quiet=QuietTime(1_320, 360)),
        created_at=NOON,
        next_run_at=NOON,
    )


def addressed(test: DeliverabilityTest) -> Recipient:
    """Return the recipient for a test address."""
    address = f"{local_part_of(test.id)}@mailcheck.example"
    return Recipient(address, test.account_id, "", test.id)


def report_recipient(account_id: str, kind: ReportKind = ReportKind.DMARC) -> Recipient:
    """Return the recipient for an account's report address."""
    address = f"{kind.value}-{account_id}@mailcheck.example"
    return Recipient(address, AccountId(account_id), "", report_kind=kind)


def mail(
    subject: str = "Welcome", body: str = "Hello", author: str = "Shop <shop@example.com>"
) -> bytes:
    """Return the bytes of a mail."""
    return f"From: {author}\r\nSubject: {subject}\r\n\r\n{body}\r\n".encode()


def delivery(
    *recipients: Recipient,
    raw: bytes | None = None,
    received_at: Instant = NOON,
    expires_at: Instant | None = None,
    sender: str = "bounce@example.com",
    session: Session = SESSION,
    transcript: tuple[str, ...] = (),
) -> Delivery:
    """Return a delivery for recipients; ids are new and in the order of the calls."""

    def new_id() -> str:
        return new_time_ordered_id(received_at, lambda size: next(_numbers).to_bytes(size, "big"))

    return Delivery(
        id=DeliveryId(new_id()),
        session=session,
        envelope=Envelope(sender, recipients, transcript),
        raw_message=mail() if raw is None else raw,
        received_at=received_at,
        expires_at=Instant(received_at + RETENTION) if expires_at is None else expires_at,
        message_ids=tuple(MessageId(new_id()) for _ in recipients),
        share_tokens=tuple(f"secret{number}" for number in range(len(recipients))),
    )


def refusal(account_id: str, seconds: float = 0, reason: str = "too large") -> Refusal:
    """Return a refusal some seconds after noon."""
    address = recipient(account_id).address
    return Refusal(
        AccountId(account_id), address, "bounce@example.com", "192.0.2.7", reason, at(seconds)
    )


def content(text: str = "Hello", codes: Sequence[str] = (), **facts: object) -> MessageContent:
    """Return derived content."""
    known: dict[str, object] = {
        "header_list": (("Subject", "Welcome"),),
        "html": "",
        "attachments": (),
        "links": (),
        "best_link": None,
        "candidates": (),
        "problems": (),
    }
    known["searched"] = text
    return MessageContent(text=text, codes=tuple(codes), **{**known, **facts})  # type: ignore[arg-type]


def noted(now: Instant = NOON, client: str = "192.0.2.7") -> AuditEntry:
    """Return a new entry of the audit log, for a store that writes it with a change."""
    return AuditEntry(
        id=new_time_ordered_id(now, lambda size: next(_numbers).to_bytes(size, "big")),
        happened_at=now,
        account_id=None,
        account_name="",
        actor="test",
        client=client,
        action=Action.ACCOUNT_CREATED,
        detail="",
    )


def inbound_route(route_id: str, owner: str = "ann", **facts: object) -> InboundRoute:
    """Return a route to an application."""
    known: dict[str, object] = {
        "id": route_id,
        "account_id": owner,
        "account_name": owner,
        "to": "*",
        "format": InboundFormat.POSTMARK,
        "url": "http://127.0.0.1/in",
        "secret": "whsec_AAAA",
        "created_at": NOON,
    }
    return InboundRoute(**{**known, **facts})  # type: ignore[arg-type]


def inbound_mail(mail_id: str, owner: str = "ann", **facts: object) -> InboundMail:
    """Return a mail for an application."""
    known: dict[str, object] = {
        "id": mail_id,
        "account_id": owner,
        "envelope_sender": "ana@customer.example",
        "recipients": ("in@app.example",),
        "raw_message": b"From: ana@customer.example\r\nSubject: Hi\r\n\r\nHi\r\n",
        "received_at": NOON,
    }
    return InboundMail(**{**known, **facts})  # type: ignore[arg-type]


def inbound_delivery(
    delivery_id: str, route: InboundRoute, mail: InboundMail | None, **facts: object
) -> InboundDelivery:
    """Return a delivery of a mail to a route, which is due at once."""
    known: dict[str, object] = {
        "id": delivery_id,
        "account_id": route.account_id,
        "route_id": route.id,
        "mail_id": None if mail is None else mail.id,
        "recipients": () if mail is None else mail.recipients,
        "fault": None,
        "state": InboundState.WAITING,
        "created_at": NOON,
        "due_at": NOON,
    }
    return InboundDelivery(**{**known, **facts})  # type: ignore[arg-type]
