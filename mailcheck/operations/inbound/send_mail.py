"""Mails that are written for a route: from fields, as they are, ready-made, or sent again."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.addresses import Mailbox, parse_mailbox
from mailcheck.core.errors import (
    InboundMailNotFound,
    InboundRouteNotFound,
    InvalidParameter,
    MailTooLarge,
    MessageNotFound,
    WorkerDied,
    WorkTooSlow,
)
from mailcheck.core.identifiers import AccountId, DeliveryId, MessageId, new_time_ordered_id
from mailcheck.core.inbound import (
    InboundDelivery,
    InboundDeliveryId,
    InboundMail,
    InboundMailId,
    InboundProviders,
    InboundRoute,
    InboundRouteId,
    InboundState,
    MailProgram,
    Place,
    ReadyMail,
    Verdicts,
)
from mailcheck.core.instants import Instant
from mailcheck.operations.inbound.deliver_mail import DeliverInbound
from mailcheck.operations.inbound.manage_routes import parse_fault
from mailcheck.operations.inbound.quoting import (
    read_quoted,
    reply_subject,
    thread_headers,
    write_reply,
)
from mailcheck.operations.inbound.ready_mails import (
    WrittenMail,
    find_people,
    write_ready_mail,
)
from mailcheck.operations.inbound.scenes import Occasion, Original
from mailcheck.operations.inbox.contents import MailBytes, MessageLoader
from mailcheck.operations.write_mail import File, OutgoingMail, Person, read_people, write_mail
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Notifications
from mailcheck.store.inbound_store import InboundJob, InboundStore, StoredInboundMail

AUTHOR = "Ana Example <ana@customer.example>"
"""The author of a mail for which none was given."""

ANY_DOMAIN, ANY_TEXT = "app.example", "test"
"""What the stars of a pattern stand for if no recipient was given."""

SMALL, SHORT = 8_192, 1_000
"""Maximum size of a mail, and of what its header fields consist of, that is written without a
worker. The standard library encodes 60,000 characters of header fields a second at worst."""

MOST_RECIPIENTS = 50
"""Maximum number of recipients of a mail. Each may be a delivery of its own."""


class Letter(Struct, frozen=True, kw_only=True):
    """A mail to be written and sent, or a stored one to be sent.

    With ``raw_message`` the mail is that one. With ``ready`` it is a ready-made mail, about the
    stored message if there is a ``message_id``. With a ``message_id`` and text it is a reply to
    that message, and with a ``message_id`` alone it is that message itself. ``mail_id`` is an
    earlier mail of the account, which is sent again. Otherwise it is written from the fields.

    :param envelope_sender: `None` for the author; empty for the null reverse-path.
    :param fault: `None` for the fault of the route; empty for none.
    :param verdicts: `None` for those of the mail that is sent again, or a pass.
    """

    author: str = ""
    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    files: tuple[File, ...] = ()
    raw_message: bytes | None = None
    ready: ReadyMail | None = None
    message_id: MessageId | None = None
    mail_id: InboundMailId | None = None
    program: MailProgram = MailProgram.GMAIL
    place: Place = Place.ABOVE
    envelope_sender: str | None = None
    verdicts: Verdicts | None = None
    fault: str | None = None

    @property
    def has_content(self) -> bool:
        """Whether it has fields of a mail that is to be written."""
        return bool(self.files) or not (self.subject is self.text is self.html is None)

    @property
    def header_size(self) -> int:
        """The number of characters of its header fields, those of parts included."""
        texts = [self.author, self.subject or "", *self.to, *self.cc, *self.bcc]
        for file in self.files:
            texts += (file.filename, file.content_type, file.content_id)
        return sum(map(len, texts))


class SentMail(Struct, frozen=True):
    """A mail that waits for its deliveries."""

    mail_id: InboundMailId
    deliveries: tuple[InboundDelivery, ...]


class SendInbound(Struct, frozen=True, eq=False):
    """Writes mails for routes. ``waiting`` announces them to the daemons that deliver.

    :param deliver: makes the first attempt at once if it is not busy.
    :param max_size: maximum number of octets of a mail.
    """

    store: InboundStore
    loader: MessageLoader
    mail_bytes: MailBytes
    providers: Callable[[], InboundProviders]
    waiting: Notifications[AccountId]
    deliver: DeliverInbound
    max_size: int
    clocks: ClockAndRandomness

    async def send(self, account_id: AccountId, route_id: str, letter: Letter) -> SentMail:
        """Queue a mail for the application of a route, whether the recipients match or not.

        :raises InboundRouteNotFound: the account has no route with this id.
        :raises MessageNotFound: the account has no message with this id.
        :raises InboundMailNotFound: the account has no earlier mail with this id.
        :raises InvalidParameter: a field is invalid, or two sources of a mail are given.
        :raises MailTooLarge: the mail is too large.
        :raises InboundQueueFull: too many mails of the account wait.
        """
        route = await self.store.find_route(account_id, InboundRouteId(route_id))
        if route is None:
            raise InboundRouteNotFound("there is no such route: the id is wrong or it was deleted")
        _require_one_source(letter)
        is_repetition = letter.message_id is not None and not letter.ready
        if is_repetition and not letter.has_content:
            return await self._send_stored(route, letter)
        written, recipients, verdicts = await self._write(route, letter)
        if len(written.raw_message) > self.max_size:
            raise MailTooLarge(
                f"the mail has {len(written.raw_message):,} bytes; the maximum is {self.max_size:,}"
            )
        mail = self._mail(route, letter, written.envelope_sender, recipients)
        mail = replace(mail, raw_message=written.raw_message, verdicts=verdicts)
        deliveries = self._deliveries(route, letter, mail)
        lease = self.deliver.reserve(route, deliveries)
        if not await self.store.add_mail(mail, deliveries, lease):
            raise InboundRouteNotFound("the route was deleted meanwhile")
        if lease is None:
            self.waiting.publish(account_id)
        else:
            stored = StoredInboundMail(mail, has_verdicts=True, delivery_id=DeliveryId(mail.id))
            size = len(mail.raw_message)
            for delivery in deliveries:
                self.deliver.take(InboundJob(delivery, route, size), stored)
        return SentMail(mail.id, deliveries)

    async def _send_stored(self, route: InboundRoute, letter: Letter) -> SentMail:
        """Send a stored message itself, to its recipient if no other one is given."""
        assert letter.message_id is not None
        message = await self.loader.load(route.account_id, letter.message_id)
        recipients = _addresses(letter) or (message.summary.recipient,)
        mail = self._mail(route, letter, message.envelope_sender, recipients)
        mail = replace(mail, verdicts=letter.verdicts or Verdicts())
        deliveries = self._deliveries(route, letter, mail)
        if not await self.store.add_stored(mail, letter.message_id, self.clocks.now(), deliveries):
            raise MessageNotFound
        self.waiting.publish(route.account_id)
        return SentMail(mail.id, deliveries)

    async def _write(
        self, route: InboundRoute, letter: Letter
    ) -> tuple[WrittenMail, tuple[str, ...], Verdicts]:
        """Return a mail, its recipients and its verdicts."""
        verdicts = letter.verdicts or Verdicts()
        if letter.mail_id is not None:
            stored = await self.store.find_mail(route.account_id, letter.mail_id)
            if stored is None:
                raise InboundMailNotFound("there is no such mail: the id is wrong or it is gone")
            earlier = stored.mail
            return (
                WrittenMail(earlier.envelope_sender, Mailbox("", ""), earlier.raw_message),
                _addresses(letter) or earlier.recipients,
                letter.verdicts or earlier.verdicts,
            )
        original = None
        if letter.message_id is not None:
            original = await self._original(route.account_id, letter.message_id)
        size = len(letter.raw_message or b"") or (len(original.raw_message) if original else 0)
        size += sum(len(file.data) for file in letter.files)
        size += len(letter.text or "") + len(letter.html or "") + len(letter.subject or "")
        if size > self.max_size:
            raise MailTooLarge(f"the mail has more than {self.max_size:,} bytes, the maximum")
        write = partial(
            write_letter,
            letter,
            default_recipient(route.to),
            original,
            self.clocks.now(),
            self.clocks.random_bytes(16),
        )
        if size <= SMALL and letter.header_size <= SHORT and letter.ready is None:
            return *write(), verdicts
        try:
            written, recipients = await self.mail_bytes.work(write, size, route.account_id)
        except (WorkTooSlow, WorkerDied, MemoryError):
            raise MailTooLarge("the mail takes too long to write: send a smaller one") from None
        return written, recipients, verdicts

    async def _original(self, account_id: AccountId, message_id: MessageId) -> Original:
        message = await self.loader.load(account_id, message_id)
        summary = message.summary
        raw_message = await self.mail_bytes.whole(summary)
        return Original(raw_message, message.envelope_sender, summary.recipient)

    def _mail(
        self,
        route: InboundRoute,
        letter: Letter,
        envelope_sender: str,
        recipients: tuple[str, ...],
    ) -> InboundMail:
        now, given = self.clocks.now(), letter.envelope_sender
        if len(recipients) > MOST_RECIPIENTS:
            problem = f"a mail may have {MOST_RECIPIENTS} recipients; got {len(recipients)}"
            raise InvalidParameter("to", problem)
        return InboundMail(
            id=InboundMailId(new_time_ordered_id(now, self.clocks.random_bytes)),
            account_id=route.account_id,
            envelope_sender=envelope_sender if given is None else _parse_sender(given),
            recipients=recipients,
            raw_message=b"",
            received_at=now,
        )

    def _deliveries(
        self, route: InboundRoute, letter: Letter, mail: InboundMail
    ) -> tuple[InboundDelivery, ...]:
        provider, fault = self.providers()[route.format], route.fault
        if letter.fault is not None:
            fault = parse_fault(provider, route.format, letter.fault)
        parts = [mail.recipients]
        if provider.is_per_recipient:
            parts = [(recipient,) for recipient in mail.recipients]
        return tuple(
            InboundDelivery(
                id=InboundDeliveryId(
                    new_time_ordered_id(mail.received_at, self.clocks.random_bytes)
                ),
                account_id=route.account_id,
                route_id=route.id,
                mail_id=mail.id,
                recipients=recipients,
                fault=fault,
                state=InboundState.WAITING,
                created_at=mail.received_at,
                due_at=mail.received_at,
            )
            for recipients in parts
        )


def default_recipient(pattern: str) -> str:
    """Return an address that matches a pattern."""
    local_part, at, domain = pattern.rpartition("@")
    if not at:
        local_part, domain = pattern, "*"
    domain = domain.replace("*", ANY_DOMAIN if domain == "*" else ANY_TEXT)
    return f"{local_part.replace('*', ANY_TEXT)}@{domain}"


def write_letter(
    letter: Letter, recipient: str, original: Original | None, now: Instant, seed: bytes
) -> tuple[WrittenMail, tuple[str, ...]]:
    """Return a mail and the recipients of its envelope. Runs in a worker.

    :param recipient: used if the letter has none.
    :raises InvalidParameter: a field is invalid.
    """
    people = {name: read_people(name, getattr(letter, name)) for name in ("to", "cc", "bcc")}
    given = tuple(
        dict.fromkeys(str(person.mailbox) for group in people.values() for person in group)
    )
    if letter.raw_message is not None:
        return _as_it_is(letter.raw_message, given, recipient, now)
    author = _read_author(letter.author)
    to = people["to"]
    if original is not None:
        answering, answered = find_people(letter.ready, original)
        author = author if letter.author else answering
        to = to or (Person("", answered),)
    to = to or read_people("to", recipient)
    if letter.ready is not None:
        occasion = Occasion(
            author=author, recipient=to[0].mailbox, now=now, seed=seed, original=original
        )
        written = write_ready_mail(letter.ready, occasion)
        return written, given or (str(written.recipient),)
    mail = OutgoingMail(
        author=author,
        to=to,
        cc=people["cc"],
        bcc=people["bcc"],
        subject=letter.subject or "",
        text=letter.text,
        html=letter.html,
        files=letter.files,
    )
    if original is not None:
        mail = _as_reply(mail, letter, original, now)
    elif letter.text is None and letter.html is None:
        mail = replace(mail, text="")
    message_id = f"{seed.hex()}@{author.mailbox.domain or 'customer.example'}"
    raw_message = write_mail(mail, message_id, now)
    sender = WrittenMail(mail.envelope_sender, to[0].mailbox, raw_message)
    return sender, tuple(map(str, mail.recipients))


def _as_reply(mail: OutgoingMail, letter: Letter, original: Original, now: Instant) -> OutgoingMail:
    quoted = read_quoted(original.raw_message, now)
    text, html = letter.text, letter.html
    if html is None:
        reply = write_reply(quoted, text or "", letter.program, letter.place)
        text, html = reply.text, reply.html
    subject = letter.subject
    if subject is None:
        subject = reply_subject(quoted.subject, letter.program)
    return replace(mail, subject=subject, text=text, html=html, headers=thread_headers(quoted))


def _as_it_is(
    raw_message: bytes, given: tuple[str, ...], recipient: str, now: Instant
) -> tuple[WrittenMail, tuple[str, ...]]:
    """Return a mail that was given as a whole: to its own recipients if there are no others."""
    raw_message = raw_message.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    quoted = read_quoted(raw_message, now)
    own = tuple(dict.fromkeys(address for address, _ in quoted.recipients))
    recipients = given or own[:MOST_RECIPIENTS] or (recipient,)
    return WrittenMail(quoted.address, Mailbox("", ""), raw_message), recipients


def _read_author(text: str) -> Person:
    people = read_people("from", text or AUTHOR)
    if len(people) != 1:
        raise InvalidParameter("from", f"`from` must be one address; got {len(people)}")
    return people[0]


def _addresses(letter: Letter) -> tuple[str, ...]:
    groups: Sequence[tuple[str, tuple[str, ...]]] = (
        ("to", letter.to),
        ("cc", letter.cc),
        ("bcc", letter.bcc),
    )
    people = (person for name, texts in groups for person in read_people(name, texts))
    return tuple(dict.fromkeys(str(person.mailbox) for person in people))


def _parse_sender(text: str) -> str:
    if not text:
        return text
    try:
        return str(parse_mailbox(text))
    except ValueError as problem:
        raise InvalidParameter(
            "envelopeFrom", f"`envelopeFrom` must be an address or empty: {problem}"
        ) from None


def _require_one_source(letter: Letter) -> None:
    given = [
        name
        for name, is_given in (
            ("raw", letter.raw_message is not None),
            ("ready", letter.ready is not None),
            ("mailId", letter.mail_id is not None),
            ("text", letter.has_content),
        )
        if is_given
    ]
    if letter.message_id is not None and {"raw", "mailId"} & set(given):
        given.append("messageId")
    if len(given) > 1:
        problem = f"send either {' or '.join(given)}, since each of them is a whole mail"
        raise InvalidParameter(given[0], problem)
