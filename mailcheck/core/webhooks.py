"""Webhooks: where mail of an account is announced, and how failed deliveries are retried.

Messages are delivered in the order of the inbox. A failed message delays all later ones. The time
between retries grows. The webhook is paused after `PAUSED_AFTER` of failures, and retries end
after `GIVEN_UP_AFTER`.
"""

from collections.abc import Mapping, Sequence
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
"""Maximum number of webhooks of one account."""

DELIVERIES_KEPT = 20
"""Number of recent deliveries stored for each webhook."""

MESSAGE_EVENT = "msg_"
"""What the id of an event about a message begins with. The id of the message follows."""

RESPONSE_KEPT = 500
"""Maximum number of characters of a receiver's response that are stored with a delivery."""

LONGEST_URL = 2_048
"""Maximum number of characters of a URL."""

PAUSED_AFTER = HOUR
GIVEN_UP_AFTER = DAY

FIRST_RETRY, LONGEST_RETRY, PAUSED_RETRY = 5 * SECOND, 10 * MINUTE, 30 * MINUTE
"""The retry interval triples with each failure up to the maximum. The interval of a
paused webhook is constant."""

JITTER = 0.1
"""Random extra delay, as a fraction of the retry interval, so that webhooks that failed together
are not retried together."""

EARLIER_SECRET_KEPT = DAY
"""How long a replaced secret continues to sign, so that the receiver can switch to the new one."""

GONE = 410
"""Status with which a receiver ends its webhook (RFC 9110 15.5.11)."""


ALERT_TO = "alertTo"
"""Name of the parameter in requests for watches."""


class EventKind(Enum):
    """The kinds of events."""

    DELIVERED = "delivered"
    BOUNCED = "bounced"
    COMPLAINED = "complained"
    OPENED = "opened"


EVENT_TAGS: Mapping[str, EventKind] = {
    "event.bounce": EventKind.BOUNCED,
    "event.complaint": EventKind.COMPLAINED,
    "event.open": EventKind.OPENED,
    "event.delivery": EventKind.DELIVERED,
}
"""The tags of recipients that choose the event. Any other mail is delivered, unless its recipient
is one that the provider documents for tests."""


def tag_of_event(kind: EventKind) -> str:
    """Return the tag that chooses an event."""
    return next(tag for tag, event in EVENT_TAGS.items() if event is kind)


EVENT_PROVIDERS = ("resend", "postmark", "sendgrid", "mailgun", "ses", "brevo", "mailtrap")
"""The providers in whose formats events are sent."""

MAILTO = "mailto:"
"""Scheme of the URL of a receiver of mail (RFC 6068). It is used for alerts only."""

ALERT_TO_TEXT = (
    "recipients of alerts beside your own inbox: webhook URLs, email addresses, and chats as "
    "slack:URL, teams:URL, discord:URL or ntfy:URL; error= or warning= before a recipient limits "
    "it to these alerts"
)
"""Description of the parameter."""

CHAT_FORMATS = ("slack", "teams", "discord", "ntfy")
"""Formats of alerts for chats and phones. Each is the scheme of a receiver of alerts."""

_KNOWN_HOSTS = {"hooks.slack.com": "slack", "discord.com": "discord", "ntfy.sh": "ntfy"}
"""Hosts that take one format only, so that it need not be named."""

ALERT_KINDS = ("error", "warning")
"""Severities of alerts that a receiver can be limited to, such as ``error=ops@example.com``."""

LONGEST_ADDRESS = 254
"""Maximum octets of a mail address (RFC 5321 4.5.3.1.3, without the angle brackets)."""


class WebhookState(Enum):
    """State of a webhook's deliveries."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class Webhook(Struct, frozen=True):
    """A webhook. Messages after ``position`` that match ``wanted`` are its queue.

    ``revision`` counts changes of the queue by the owner. There were ``failures`` in a row since
    ``failing_since``, the last one with ``problem``. The next retry is due at ``retry_at``.
    ``account_name`` is the name of the account. ``provider`` names the format of its events; it
    is empty for our own format. ``is_of_watches``: a watch created it for alerts
    to its URL.
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
    provider: str = ""

    @property
    def address(self) -> str:
        """The mail address, or the URL of any other webhook."""
        return address_of(self.url)

    @property
    def described(self) -> str:
        """The id and the host, for the audit log: the path and the query may be secret."""
        return f"{self.id}, host {urlsplit(web_url_of(self.url)).hostname}"

    @property
    def is_mail(self) -> bool:
        """Whether events are sent by mail."""
        return self.url.startswith(MAILTO)

    @property
    def is_signed(self) -> bool:
        """Whether the receiver needs the secret."""
        return not self.is_mail and self.format not in CHAT_FORMATS

    @property
    def format(self) -> str:
        """The format of its events, or an empty string for our own."""
        return self.provider or format_of(self.url)

    @property
    def is_given_up(self) -> bool:
        """Whether it is not retried until its owner resumes it."""
        return self.state is WebhookState.ENDED or (
            self.state is WebhookState.PAUSED and self.retry_at is None
        )

    def secrets(self, now: Instant) -> tuple[str, ...]:
        """Return the secrets that sign now, the newest first."""
        if self.earlier_secret is None or (self.earlier_until or 0) <= now:
            return (self.secret,)
        return (self.secret, self.earlier_secret)


class Attempt(Struct, frozen=True):
    """The result of a delivery attempt: the HTTP status, if any, and a description of the problem.

    ``wait`` is set if the event was not sent because of the target's rate limit: the milliseconds
    until the next attempt is allowed. ``retry_after`` are the milliseconds that the receiver asks
    to wait. ``is_permanent``: a retry cannot succeed. ``response`` is the beginning of the
    response's body in one line.
    """

    status: int | None = None
    problem: str = ""
    wait: int = 0
    is_permanent: bool = False
    response: str = ""
    retry_after: int = 0

    @property
    def is_taken(self) -> bool:
        """Whether the receiver has accepted the event."""
        return not self.problem


class WebhookDelivery(Struct, frozen=True):
    """A stored delivery attempt. ``event_id`` is the same for all attempts for one message."""

    event_id: str
    at: Instant
    attempt: Attempt
    milliseconds: int


def told(webhook: Webhook, position: Position) -> Webhook:
    """Return the webhook after the message at a position was delivered."""
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
    """Return the webhook after a failed attempt; ``chance``, from 0 to 1, spreads the retries."""
    since = now if webhook.failing_since is None else webhook.failing_since
    # A clock that was set back must not cause endless failure.
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
    pause = max(pause, min(attempt.retry_after, PAUSED_RETRY))
    retry_at = Instant(now + int(pause * (1 + JITTER * chance)))
    state = WebhookState.PAUSED if is_paused else WebhookState.ACTIVE
    return replace(failing, state=state, retry_at=retry_at)


def parse_webhook_url(url: str) -> SplitResult:
    """Parse the URL of a webhook.

    :raises InvalidParameter: it is not a web address, or has a user or fragment.
    """
    problem = None
    if len(url) > LONGEST_URL:
        problem = f"must have at most {LONGEST_URL} characters; got {len(url)}"
    elif not (url.isascii() and url.isprintable()) or " " in url:
        problem = "must be printable ASCII; percent-encode other characters"
    else:
        try:
            parts = urlsplit(url)
            is_web = parts.scheme in ("http", "https") and parts.port != 0
            if not is_web or not _is_host(parts.hostname or ""):
                problem = "must be an http or https address like https://ci.example.com/mail"
            elif parts.username is not None or parts.password is not None or "#" in url:
                problem = "must not have a user, password or fragment; put a secret into the path"
        except ValueError:
            problem = "is not a web address"
    if problem is not None:
        raise InvalidParameter("url", f"url {problem}")
    return parts


def address_of(url: str) -> str:
    """Return a receiver as its owner wrote it: a mail address without ``mailto:``."""
    kind, url = split_kind(url)
    return (f"{kind}=" if kind else "") + url.removeprefix(MAILTO)


def format_of(url: str) -> str:
    """Return the format in the URL of a receiver of alerts, or an empty string."""
    scheme = url.partition(":")[0]
    return scheme if scheme in CHAT_FORMATS else ""


def web_url_of(url: str) -> str:
    """Return the URL of a receiver of alerts without its format."""
    return url.removeprefix(f"{format_of(url)}:")


def post_url(url: str) -> str:
    """Return the URL to which events for a receiver are posted.

    ntfy takes JSON at the root of its server, not at the topic, which is the end of the path.
    """
    if format_of(url) != "ntfy":
        return web_url_of(url)
    parts = urlsplit(web_url_of(url))
    root = parts.path.rstrip("/").rpartition("/")[0]
    return parts._replace(path=f"{root}/").geturl()


def topic_of(url: str) -> str:
    """Return the topic in the URL of ntfy."""
    return urlsplit(web_url_of(url)).path.rstrip("/").rpartition("/")[2]


def split_kind(receiver: str) -> tuple[str, str]:
    """Return the kind of alerts that a receiver is limited to, or "", and the receiver's URL."""
    kind, equals, url = receiver.partition("=")
    return (kind, url) if equals and kind in ALERT_KINDS else ("", receiver)


def receivers_for(receivers: Sequence[str], severity: str) -> tuple[str, ...]:
    """Return the URLs of the receivers that get alerts of a severity."""
    chosen = (url for kind, url in map(split_kind, receivers) if kind in ("", severity))
    return tuple(dict.fromkeys(chosen))


def parse_alert_receivers(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse the receivers of a watch's alerts, each once.

    :raises InvalidParameter: one is invalid.
    """
    return tuple(dict.fromkeys(map(parse_alert_receiver, texts)))


def parse_alert_receiver(text: str) -> str:
    """Parse a receiver of alerts: the URL of a webhook, a format and its URL, or a mail address.

    Each may begin with a kind of alerts, such as ``error=``.

    :return: its URL after the kind; ``mailto:`` and the address for a mail address.
    :raises InvalidParameter: it is neither.
    """
    kind, text = split_kind(text)
    return (f"{kind}=" if kind else "") + _parse_receiver(text)


def _parse_receiver(text: str) -> str:
    form = format_of(text)
    if form:
        return f"{form}:{_parse_chat(form, web_url_of(text))}"
    if "@" not in text or "://" in text:
        try:
            parse_webhook_url(text)
        except InvalidParameter as failure:
            problem = str(failure).removeprefix("url ")
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {text[:100]!r} {problem}") from None
        known = _KNOWN_HOSTS.get(urlsplit(text).hostname or "", "")
        return f"{known}:{_parse_chat(known, text)}" if known else text
    local_part, _, domain = text.removeprefix(MAILTO).rpartition("@")
    is_address = is_dot_atom(local_part) and is_domain_name(domain) and "." in domain
    if not is_address or not text.isascii() or len(text) > LONGEST_ADDRESS:
        problem = "is not a mail address like ops@example.com"
        raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {text[:100]!r} {problem}")
    return f"{MAILTO}{local_part}@{domain.lower()}"


def _parse_chat(form: str, url: str) -> str:
    """Parse the URL of a chat or a phone. The message of a failure names no part of it."""
    try:
        parts = parse_webhook_url(url)
    except InvalidParameter as failure:
        problem = str(failure).removeprefix("url ")
        raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: the URL after {form}: {problem}") from None
    if form == "ntfy" and not parts.path.strip("/"):
        problem = "must end with the topic, like ntfy:https://ntfy.sh/topic"
        raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: the URL after ntfy: {problem}")
    return url


def _is_host(name: str) -> bool:
    return is_domain_name(name.removesuffix(".")) or (
        "%" not in name and parse_ip_address(name) is not None
    )
