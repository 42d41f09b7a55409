"""Telling owners of alerts: as mail to their own inbox, several in one, and not when it is quiet.

There it is as safe as any mail, and a webhook that asks for the tag is told of it: in order, signed
and until it is taken. So are those that a watch names itself: a mail has the alerts of watches with
the same ones. What was told is noted afterwards: who dies in between tells it once more.
"""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from twisted.logger import Logger

from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import new_short_id
from mailcheck.core.instants import SECOND, Instant, describe_duration, format_instant
from mailcheck.core.instruments import Tally
from mailcheck.core.keys import key_of
from mailcheck.core.watches import ALERT_FIELD, ALERT_TAG, Alert, receiver_key
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.cluster import Memory
from mailcheck.store.domains.watch_store import WatchStore

TELL_INTERVAL = 10.0
"""Seconds between looks for what is to be told."""

PAUSE = 300.0
"""Seconds between two mails to the same ones: what comes up meanwhile is one digest, no storm."""

AT_ONCE = 1_000
"""Alerts that are looked at in one round, the oldest ones."""

MOST_IN_MAIL = 100
"""Alerts of one mail; the next one has the rest."""

CLAIM = 30_000
"""Milliseconds for which one of all daemons tells."""

WORK = key_of("watch alerts")

SENDER = "alerts"
"""Local part that the mails come from."""

LONGEST_SUBJECT = 150
"""Characters."""

SendToInbox = Callable[[str, str, str, Callable[[str, str], bytes]], Awaitable[object]]
"""Sends mail to an inbox: its mailbox name, the tag, the local part that it comes from, and what
writes the mail of the addresses of recipient and sender."""


_Told = tuple[str, tuple[str, ...]]
"""The inbox, and the keys of those who are told beside it."""


class SendAlerts:
    """Tells what is untold, one daemon at a time."""

    _log = Logger()

    def __init__(
        self, store: WatchStore, send: SendToInbox, memory: Memory, time_and_chance: TimeAndChance
    ) -> None:
        self._store = store
        self._send_to_inbox = send
        self._memory = memory
        self._clock = time_and_chance.clock
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes
        self._told_at: dict[_Told, float] = {}
        self.outcomes = Tally()

    async def send_pending(self) -> None:
        """Tell all who may be told now: to be done again every `TELL_INTERVAL` seconds."""
        if not await self._store.pending_alerts(1) or not await self._memory.claim(WORK, CLAIM):
            return
        try:
            await self._send_pending()
        finally:
            await self._memory.give_up(WORK)

    async def _send_pending(self) -> None:
        now = self._clock.seconds()
        self._told_at = {to: at for to, at in self._told_at.items() if now - at < PAUSE}
        mails: dict[_Told, list[Alert]] = {}
        for one in await self._store.pending_alerts(AT_ONCE):
            to = one.mailbox_name, tuple(sorted(map(receiver_key, one.alert_to)))
            if to not in self._told_at and not (one.quiet and one.quiet.holds(self._now())):
                mails.setdefault(to, []).append(one.alert)
        for to, alerts in mails.items():
            told = alerts[:MOST_IN_MAIL]
            self._told_at[to] = now
            try:
                await self._send(to, told)
            except ExpectedFailure as failure:
                self.outcomes.add("put off")
                self._log.warn("alerts are put off: {reason}", reason=failure)
                continue
            await self._store.mark_alerts_sent(told)
            self.outcomes.add("told")

    async def _send(self, to: _Told, alerts: Sequence[Alert]) -> None:
        mailbox_name, keys = to

        def write(address: str, sender: str) -> bytes:
            head = MailHead(sender, address, new_short_id(self._random_bytes), self._now())
            return write_alert_mail(alerts, head, keys)

        await self._send_to_inbox(mailbox_name, ALERT_TAG, SENDER, write)


class MailHead(Struct, frozen=True):
    """From whom a mail is, to whom, and when; ``token`` makes its id, with the sender's domain."""

    sender: str
    address: str
    token: str
    now: Instant


def write_alert_mail(alerts: Sequence[Alert], head: MailHead, keys: Sequence[str] = ()) -> bytes:
    """Write the mail that tells of alerts: what is new first, then what is over.

    :param keys: those of the others who are told of it.
    """
    return _write(head, _subject(alerts), _text(alerts), " ".join(keys))


def write_external_mail(head: MailHead, subject: str, text: str, why: str) -> bytes:
    """Write the mail in which one who has no inbox here is told what an inbox was.

    :param why: says for what reason they get it, and how to stop it.
    """
    return _write(head, _line(subject), f"{text.rstrip()}\n\n-- \n{why}\n", "")


def _write(head: MailHead, subject: str, text: str, keys: str) -> bytes:
    # Here: few daemons ever write a mail.
    from email.message import EmailMessage
    from email.policy import SMTP
    from email.utils import formatdate

    mail = EmailMessage(SMTP)
    mail["From"] = f"mailcheck <{head.sender}>"
    mail["To"] = head.address
    mail["Subject"] = subject
    mail["Date"] = formatdate(head.now / SECOND)
    mail["Message-ID"] = f"<{head.token}@{head.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834
    if keys:
        mail[ALERT_FIELD] = keys
    mail.set_content(text)
    return mail.as_bytes()


def _subject(alerts: Sequence[Alert]) -> str:
    if len(alerts) == 1:
        (alert,) = alerts
        sentence = alert.ending or alert.sentence
        subject = _line(f"{alert.target}: {sentence}")
        return subject if len(subject) <= LONGEST_SUBJECT else subject[:LONGEST_SUBJECT] + "..."
    targets = list(dict.fromkeys(alert.target for alert in alerts))
    more = f" and {len(targets) - 3} more" if len(targets) > 3 else ""
    return f"{len(alerts)} alerts: {', '.join(targets[:3])}{more}"


def _text(alerts: Sequence[Alert]) -> str:
    lines = []
    for title, shown in (
        ("What is wrong:", [alert for alert in alerts if alert.ended_at is None]),
        ("What is over:", [alert for alert in alerts if alert.ended_at is not None]),
    ):
        if shown:
            lines += [title, "", *(f"* {_said(alert)}" for alert in shown), ""]
    return "\n".join(lines)


def _said(alert: Alert) -> str:
    since = format_instant(alert.opened_at)
    moment = f"{since[:10]} {since[11:16]} UTC"
    if alert.ended_at is None:
        return _line(f"{alert.target}: {alert.sentence} (since {moment})")
    lasted = describe_duration((alert.ended_at - alert.opened_at) // SECOND)
    return _line(f"{alert.target}: {alert.ending} (since {moment}, for {lasted})")


def _line(text: str) -> str:
    """Keep what others publish from being more than one line."""
    plain = "".join(one if one.isprintable() else " " for one in text)
    return " ".join(plain.encode("utf-8", "replace").decode().split())
