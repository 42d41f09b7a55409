"""Telling owners of alerts: as mail to their own inbox, several in one, and not when it is quiet.

There it is as safe as any mail, and a webhook that asks for the tag is told of it: in order, signed
and until it is taken. What was told is noted afterwards: who dies in between tells it once more.
"""

from collections.abc import Awaitable, Callable, Sequence

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import RandomBytes, new_short_id
from mailcheck.core.instants import SECOND, Instant, describe_duration, format_instant
from mailcheck.core.instruments import Tally
from mailcheck.core.watches import ALERT_TAG, Alert
from mailcheck.operations.domains.watches.ports import UntoldAlert, WatchStore
from mailcheck.operations.ports import Memory, Now

TELL_INTERVAL = 10.0
"""Seconds between looks for what is to be told."""

PAUSE = 300.0
"""Seconds between two mails to one account: what comes up meanwhile is one digest, no storm."""

AT_ONCE = 1_000
"""Alerts that are looked at in one round, the oldest ones."""

MOST_IN_MAIL = 100
"""Alerts of one mail; the next one has the rest."""

CLAIM = 30_000
"""Milliseconds for which one of all daemons tells."""

WORK = "watch alerts"

SENDER = "alerts"
"""Local part that the mails come from."""

LONGEST_SUBJECT = 150
"""Characters."""

SendToInbox = Callable[[str, str, str, Callable[[str, str], bytes]], Awaitable[object]]
"""Sends mail to an inbox: its mailbox name, the tag, the local part that it comes from, and what
writes the mail of the addresses of recipient and sender."""


class TellAlerts:
    """Tells what is untold, one daemon at a time."""

    _log = Logger()

    def __init__(
        self,
        store: WatchStore,
        send: SendToInbox,
        memory: Memory,
        domain: str,
        clock: IReactorTime,
        now: Now,
        random_bytes: RandomBytes,
    ) -> None:
        self._store = store
        self._send_to_inbox = send
        self._memory = memory
        self._domain = domain
        self._clock = clock
        self._now = now
        self._random_bytes = random_bytes
        self._told_at: dict[str, float] = {}
        self.outcomes = Tally()

    async def tell(self) -> None:
        """Tell all who may be told now: to be done again every `TELL_INTERVAL` seconds."""
        if not await self._store.untold(1) or not await self._memory.claim(WORK, CLAIM):
            return
        try:
            await self._tell()
        finally:
            await self._memory.give_up(WORK)

    async def _tell(self) -> None:
        now = self._clock.seconds()
        self._told_at = {name: at for name, at in self._told_at.items() if now - at < PAUSE}
        by_mailbox: dict[str, list[Alert]] = {}
        for one in await self._store.untold(AT_ONCE):
            if self._may_be_told(one):
                by_mailbox.setdefault(one.mailbox_name, []).append(one.alert)
        for mailbox_name, alerts in by_mailbox.items():
            told = alerts[:MOST_IN_MAIL]
            self._told_at[mailbox_name] = now
            try:
                await self._send(mailbox_name, told)
            except ExpectedFailure as failure:
                self.outcomes.add("put off")
                self._log.warn("alerts are put off: {reason}", reason=failure)
                continue
            await self._store.note_told(told)
            self.outcomes.add("told")

    def _may_be_told(self, one: UntoldAlert) -> bool:
        is_quiet = one.quiet is not None and one.quiet.holds(self._now())
        return not is_quiet and one.mailbox_name not in self._told_at

    async def _send(self, mailbox_name: str, alerts: Sequence[Alert]) -> None:
        def write(address: str, sender: str) -> bytes:
            token = new_short_id(self._random_bytes)
            return write_mail(alerts, sender, address, f"<{token}@{self._domain}>", self._now())

        await self._send_to_inbox(mailbox_name, ALERT_TAG, SENDER, write)


def write_mail(
    alerts: Sequence[Alert], sender: str, address: str, message_id: str, now: Instant
) -> bytes:
    """Write the mail that tells of alerts: what is new first, then what is over."""
    # Here: few daemons ever write a mail.
    from email.message import EmailMessage
    from email.policy import SMTP
    from email.utils import formatdate

    mail = EmailMessage(SMTP)
    mail["From"] = f"mailcheck <{sender}>"
    mail["To"] = address
    mail["Subject"] = _subject(alerts)
    mail["Date"] = formatdate(now / SECOND)
    mail["Message-ID"] = message_id
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834
    mail.set_content(_text(alerts))
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
