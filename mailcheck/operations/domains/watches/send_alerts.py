"""Sending alerts as mail to the owner's inbox, several in one mail, and not in quiet hours.

There an alert is as safe as any mail. A webhook for its tag receives it in order, signed, and
with retries. The same holds for the receivers that a watch names. One mail has the alerts of all
watches with the same receivers. Alerts are marked as sent afterwards, so a crash in between
repeats them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from twisted.logger import Logger

from mailcheck.core.domains.watches import ALERT_FIELD, ALERT_TAG, Alert, WatchKind, receiver_key
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import new_short_id
from mailcheck.core.instants import SECOND, Instant, describe_duration, format_instant
from mailcheck.core.memory.instruments import Tally
from mailcheck.core.memory.keys import key_of
from mailcheck.core.webhooks import receivers_for
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Memory
from mailcheck.store.domains.watch_store import WatchStore

if TYPE_CHECKING:
    from email.message import EmailMessage

TELL_INTERVAL = 10.0
"""Seconds between two looks for alerts to send."""

PAUSE = 300.0
"""Minimum seconds between two mails to the same receivers. Alerts of that time form one digest."""

PAUSE_OF_HEARTBEATS = 30.0
"""The same for alerts of heartbeats, which are sent within a minute."""

AT_ONCE = 1_000
"""Maximum number of alerts handled in one round, oldest first."""

MOST_IN_MAIL = 100
"""Maximum number of alerts in one mail. The next mail has the rest."""

CLAIM = 30_000
"""Milliseconds for which one of all daemons has the lock for sending."""

WORK = key_of("watch alerts")

SENDER = "alerts"
"""Local part of the sender address."""

LONGEST_SUBJECT = 150
"""Maximum length of a subject, in characters."""

SendToInbox = Callable[[str, str, str, Callable[[str, str], bytes]], Awaitable[object]]
"""Sends mail to an inbox. Its arguments are the mailbox name, the tag, the sender's local part,
and a function that renders the mail for the addresses of recipient and sender."""


_Receivers = tuple[str, tuple[str, ...]]
"""The inbox, and the keys of the other receivers."""


class SendAlerts(Struct, eq=False):
    """Sends pending alerts; only one daemon at a time does so."""

    _log = Logger()

    store: WatchStore
    send_to_inbox: SendToInbox
    memory: Memory
    clocks: ClockAndRandomness
    outcomes: Tally = field(default_factory=Tally)
    _sent_at: dict[_Receivers, float] = field(default_factory=dict)

    async def send_pending(self) -> None:
        """Send all alerts that may be sent now. Called every `TELL_INTERVAL` seconds."""
        if not await self.store.pending_alerts(1) or not await self.memory.acquire(WORK, CLAIM):
            return
        try:
            await self._send_pending()
        finally:
            await self.memory.release(WORK)

    async def _send_pending(self) -> None:
        now = self.clocks.clock.seconds()
        self._sent_at = {to: at for to, at in self._sent_at.items() if now - at < PAUSE}
        mails: dict[_Receivers, list[Alert]] = {}
        for alert in await self.store.pending_alerts(AT_ONCE):
            urls = receivers_for(alert.settings.alert_to, alert.alert.severity)
            to = alert.mailbox_name, tuple(sorted(map(receiver_key, urls)))
            is_of_heartbeat = alert.alert.kind is WatchKind.HEARTBEAT
            pause = PAUSE_OF_HEARTBEATS if is_of_heartbeat else PAUSE
            is_paused = now - self._sent_at.get(to, -PAUSE) < pause
            quiet = alert.settings.quiet
            if not is_paused and not (quiet and quiet.holds(self.clocks.now())):
                mails.setdefault(to, []).append(alert.alert)
        for to, alerts in mails.items():
            sent = alerts[:MOST_IN_MAIL]
            self._sent_at[to] = now
            try:
                await self._send(to, sent)
            except ExpectedFailure as failure:
                self.outcomes.add("put off")
                self._log.warn("alerts are delayed: {reason}", reason=failure)
                continue
            await self.store.mark_alerts_sent(sent)
            self.outcomes.add("told")

    async def _send(self, to: _Receivers, alerts: Sequence[Alert]) -> None:
        mailbox_name, keys = to

        def write(address: str, sender: str) -> bytes:
            head = MailHead(
                sender, address, new_short_id(self.clocks.random_bytes), self.clocks.now()
            )
            return write_alert_mail(alerts, head, keys)

        await self.send_to_inbox(mailbox_name, ALERT_TAG, SENDER, write)


class MailHead(Struct, frozen=True):
    """The header of a mail. ``token`` and the sender's domain form its Message-ID."""

    sender: str
    address: str
    token: str
    now: Instant


def write_alert_mail(alerts: Sequence[Alert], head: MailHead, keys: Sequence[str] = ()) -> bytes:
    """Render a mail about alerts, open ones first.

    :param keys: the keys of the other receivers.
    """
    return _write(head, _subject(alerts), _text(alerts), " ".join(keys))


def write_external_mail(head: MailHead, subject: str, text: str, why: str) -> bytes:
    """Render a copy of an alert mail for a receiver outside this server.

    :param why: explains why they receive it, and how to stop it.
    """
    return _write(head, one_line(subject), f"{text.rstrip()}\n\n-- \n{why}\n", "")


def begin_mail(head: MailHead, subject: str) -> "EmailMessage":
    """Return a mail with its header, and without a body."""
    # Imported here because few daemons ever send a mail.
    from email.message import EmailMessage
    from email.policy import SMTP
    from email.utils import formatdate

    mail = EmailMessage(SMTP)
    mail["From"] = f"mailcheck <{head.sender}>"
    mail["To"] = head.address
    # The library would decode encoded words, and a line break in one would begin another field.
    mail["Subject"] = subject.replace("=?", "= ?")
    mail["Date"] = formatdate(head.now / SECOND)
    mail["Message-ID"] = f"<{head.token}@{head.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834
    return mail


def _write(head: MailHead, subject: str, text: str, keys: str) -> bytes:
    mail = begin_mail(head, subject)
    if keys:
        mail[ALERT_FIELD] = keys
    mail.set_content(text)
    return mail.as_bytes()


def _subject(alerts: Sequence[Alert]) -> str:
    if len(alerts) == 1:
        (alert,) = alerts
        sentence = alert.ending or alert.sentence
        subject = one_line(f"{alert.target}: {sentence}")
        return subject if len(subject) <= LONGEST_SUBJECT else subject[:LONGEST_SUBJECT] + "..."
    targets = list(dict.fromkeys(alert.target for alert in alerts))
    more = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
    return f"{len(alerts)} alerts: {', '.join(targets[:3])}{more}"


def _text(alerts: Sequence[Alert]) -> str:
    lines = []
    for title, shown in (
        ("Open problems:", [alert for alert in alerts if alert.ended_at is None]),
        ("Resolved problems:", [alert for alert in alerts if alert.ended_at is not None]),
    ):
        if shown:
            lines += [title, "", *(f"* {_said(alert)}" for alert in shown), ""]
    return "\n".join(lines)


def _said(alert: Alert) -> str:
    since = format_instant(alert.opened_at)
    moment = f"{since[:10]} {since[11:16]} UTC"
    if alert.ended_at is None:
        return one_line(f"{alert.target}: {alert.sentence} (since {moment})")
    lasted = describe_duration((alert.ended_at - alert.opened_at) // SECOND)
    return one_line(f"{alert.target}: {alert.ending} (since {moment}, for {lasted})")


def one_line(text: str) -> str:
    """Replace control characters and line breaks, since others control parts of the text."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(plain.encode("utf-8", "replace").decode().split())
