"""Webhooks: where an account is told of its mail, and what becomes of one whose receiver fails.

Mail is told in the order of the inbox: who fails at one message gets no other before it. It is
tried again ever more rarely; the webhook is paused after `PAUSED_AFTER` of failures, and left
alone after `GIVEN_UP_AFTER`.
"""

from enum import Enum
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.addresses import is_domain_name, is_dot_atom
from mailcheck.core.cursors import Position
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, WebhookId
from mailcheck.core.instants import DAY, HOUR, MINUTE, SECOND, Instant
from mailcheck.core.network_addresses import parse_ip_address

MOST_WEBHOOKS = 10
"""Of one account."""

DELIVERIES_KEPT = 20
"""Of each webhook, the last ones."""

LONGEST_URL = 2_048
"""Characters."""

PAUSED_AFTER = HOUR
GIVEN_UP_AFTER = DAY

FIRST_RETRY, LONGEST_RETRY, PAUSED_RETRY = 5 * SECOND, 10 * MINUTE, 30 * MINUTE
"""Each failure triples the time until the next try; a paused webhook is tried in an even pace."""

JITTER = 0.1
"""Part of the time until a retry by which it may be longer: those that failed together."""

EARLIER_SECRET_KEPT = DAY
"""How long a secret goes on to sign after it was replaced, so that a receiver can change over."""

GONE = 410
"""The status by which a receiver ends its webhook (RFC 9110 15.5.11)."""


MAILTO = "mailto:"
"""How the URL of one begins that is told by mail (RFC 6068): of alerts alone."""

LONGEST_ADDRESS = 254
"""Octets of an address of mail (RFC 5321 4.5.3.1.3, without the angle brackets)."""


class WebhookState(Enum):
    """Whether mail is told."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class Webhook(Struct, frozen=True):
    """``position`` is how far its receiver was told: all that is wanted behind it is its queue.

    ``revision`` counts what the owner did with the queue. Since ``failing_since`` there were
    ``failures`` in a row, the last one with ``problem``; ``retry_at`` is when the next try is due.
    ``account_name`` is what the operator knows the account by. ``is_of_watches``: it was made for
    alerts, by a watch that names its URL.
    """

    id: WebhookId
    account_id: AccountId
    account_name: str
    url: str
    wanted: MessageFilter
    created_at: Instant
    position: Position
    secret: str
    earlier_secret: str | None = None
    earlier_until: Instant | None = None
    revision: int = 0
    state: WebhookState = WebhookState.ACTIVE
    failing_since: Instant | None = None
    failures: int = 0
    retry_at: Instant | None = None
    problem: str = ""
    is_of_watches: bool = False

    @property
    def address(self) -> str:
        """Give its address as its owner named it: of mail, or else the URL."""
        return address_of(self.url)

    @property
    def is_mail(self) -> bool:
        """Tell whether it is told by mail."""
        return self.url.startswith(MAILTO)

    @property
    def is_given_up(self) -> bool:
        """Tell whether it is tried no more until its owner says so."""
        return self.state is WebhookState.ENDED or (
            self.state is WebhookState.PAUSED and self.retry_at is None
        )

    def secrets(self, now: Instant) -> tuple[str, ...]:
        """Give the secrets that sign now, the newest first."""
        if self.earlier_secret is None or (self.earlier_until or 0) <= now:
            return (self.secret,)
        return (self.secret, self.earlier_secret)


class Attempt(Struct, frozen=True):
    """What came of one try: the status, if there was one, and in words what was wrong with it.

    ``wait``: nothing was sent, its target has had too much; milliseconds until it may get more.
    ``is_permanent``: trying it again is of no use.
    """

    status: int | None = None
    problem: str = ""
    wait: int = 0
    is_permanent: bool = False

    @property
    def is_taken(self) -> bool:
        """Tell whether the receiver has it."""
        return not self.problem


class WebhookDelivery(Struct, frozen=True):
    """A try as its owner sees it afterwards; ``event_id`` is the same for each of one message."""

    event_id: str
    at: Instant
    attempt: Attempt
    milliseconds: int


def told(webhook: Webhook, position: Position) -> Webhook:
    """Give the webhook whose receiver has got the message at a position."""
    return replace(
        webhook,
        position=position,
        state=WebhookState.ACTIVE,
        failing_since=None,
        failures=0,
        retry_at=None,
        problem="",
    )


def failed(webhook: Webhook, attempt: Attempt, now: Instant, chance: float) -> Webhook:
    """Give the webhook after a try in vain; ``chance``, from 0 to 1, spreads the retries."""
    since = now if webhook.failing_since is None else webhook.failing_since
    # A clock that was set back must not make it fail for ever.
    since = min(since, now)
    failures = webhook.failures + 1
    failing = replace(webhook, failing_since=since, failures=failures, problem=attempt.problem)
    if attempt.status == GONE:
        return replace(failing, state=WebhookState.ENDED, retry_at=None)
    if attempt.is_permanent or now - since >= GIVEN_UP_AFTER:
        return replace(failing, state=WebhookState.PAUSED, retry_at=None)
    is_paused = now - since >= PAUSED_AFTER
    backoff = min(FIRST_RETRY * 3 ** min(failures - 1, 10), LONGEST_RETRY)
    pause = PAUSED_RETRY if is_paused else backoff
    retry_at = Instant(now + int(pause * (1 + JITTER * chance)))
    state = WebhookState.PAUSED if is_paused else WebhookState.ACTIVE
    return replace(failing, state=state, retry_at=retry_at)


def parse_webhook_url(url: str) -> SplitResult:
    """Read where a webhook is to be told.

    :raises InvalidParameter: it is no address of a web server, or has a user or fragment in it.
    """
    problem = None
    if len(url) > LONGEST_URL:
        problem = f"has at most {LONGEST_URL} characters"
    elif not (url.isascii() and url.isprintable()) or " " in url:
        problem = "has printable ASCII characters alone: write others percent-encoded"
    else:
        try:
            parts = urlsplit(url)
            is_web = parts.scheme in ("http", "https") and parts.port != 0
            if not is_web or not _is_host(parts.hostname or ""):
                problem = "is an http or https address like https://ci.example.com/mail"
            elif parts.username is not None or parts.password is not None or "#" in url:
                problem = "has no user, password or fragment: what must be secret is its path"
        except ValueError:
            problem = "is no address of a web server"
    if problem is not None:
        raise InvalidParameter("url", f"url {problem}")
    return parts


def address_of(url: str) -> str:
    """Give the URL of a webhook as its owner named it: an address of mail without ``mailto:``."""
    return url.removeprefix(MAILTO)


def parse_alert_receiver(text: str) -> str:
    """Read who is to be told of alerts: the URL of a webhook, or an address of mail.

    :return: its URL: of an address of mail ``mailto:`` and the address.
    :raises InvalidParameter: it is neither.
    """
    if "@" not in text or "://" in text:
        try:
            parse_webhook_url(text)
        except InvalidParameter as failure:
            problem = str(failure).removeprefix("url ")
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {text[:100]!r} {problem}") from None
        return text
    local_part, _, domain = text.removeprefix(MAILTO).rpartition("@")
    is_address = is_dot_atom(local_part) and is_domain_name(domain) and "." in domain
    if not is_address or not text.isascii() or len(text) > LONGEST_ADDRESS:
        problem = "is no address of mail like ops@example.com"
        raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {text[:100]!r} {problem}")
    return f"{MAILTO}{local_part}@{domain.lower()}"


ALERT_TO = "alertTo"
"""What it is called where a watch is made."""


def _is_host(name: str) -> bool:
    return is_domain_name(name.removesuffix(".")) or (
        "%" not in name and parse_ip_address(name) is not None
    )
