"""The responses of Mailpit's API."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime

from msgspec import Struct, field

from mailcheck.api.inbox.checks import FEATURE_PAGE
from mailcheck.checks import mail_checks as checks
from mailcheck.checks.content.bodies import Digests
from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterUnavailable
from mailcheck.checks.link_checks import LinkCheck, LinkProblem
from mailcheck.core.content import AttachmentFacts, Person
from mailcheck.core.instants import Instant, format_instant, instant_of
from mailcheck.core.version import installed_version
from mailcheck.operations.inbox.mails import Mail, MailList
from mailcheck.operations.inbox.open_inbox import Chaos, ChaosTrigger


class Address(Struct, rename="pascal"):
    """An address with its display name."""

    name: str
    address: str


class Head(Struct, rename="pascal"):
    """The first fields of a message in a list and of a whole message."""

    id: str = field(name="ID")
    message_id: str = field(name="MessageID")
    read: bool
    from_: Address | None = field(name="From")
    to: list[Address]
    cc: list[Address]
    bcc: list[Address]
    reply_to: list[Address]


class Summary(Head, rename="pascal"):
    """A message in a list, and in events."""

    subject: str
    created: str
    username: str
    tags: list[str]
    size: int
    attachments: int
    snippet: str


class Messages(Struct):
    """A page of messages, newest first."""

    total: int
    unread: int
    count: int
    messages_count: int
    messages_unread: int
    start: int
    tags: list[str]
    messages: list[Summary]


class Attachment(Struct, rename="pascal"):
    """An attachment or an inline picture."""

    part_id: str = field(name="PartID")
    file_name: str
    content_type: str
    content_id: str = field(name="ContentID")
    size: int
    checksums: Mapping[str, str]


class ListUnsubscribe(Struct, rename="pascal"):
    """The fields to unsubscribe (RFC 2369, RFC 8058)."""

    header: str
    links: list[str]
    errors: str
    header_post: str


class Message(Head, rename="pascal"):
    """A whole message."""

    return_path: str
    subject: str
    list_unsubscribe: ListUnsubscribe
    date: str
    tags: list[str]
    username: str
    text: str
    html: str = field(name="HTML")
    size: int
    inline: list[Attachment]
    attachments: list[Attachment]


class HtmlScore(Struct, rename="pascal"):
    """Percentages of mail clients, weighted by the occurrences of features."""

    supported: float
    partial: float
    unsupported: float


class FeatureScore(HtmlScore, rename="pascal"):
    """The score of one feature, and the number of its occurrences."""

    found: int


class TotalScore(HtmlScore, rename="pascal"):
    """The score of a message: the numbers of tested features and of HTML elements."""

    tests: int
    nodes: int


class ClientResult(Struct, rename="pascal"):
    """The support of a feature by one mail client."""

    name: str
    family: str
    platform: str
    version: str
    support: str
    note_number: str


class HtmlWarning(Struct, rename="pascal"):
    """A feature that some mail clients do not support."""

    slug: str
    title: str
    description: str
    url: str = field(name="URL")
    category: str
    tags: list[str]
    keywords: str
    results: list[ClientResult]
    notes_by_number: Mapping[str, str]
    score: FeatureScore


class HtmlCheck(Struct, rename="pascal"):
    """How well mail clients support the HTML of a message."""

    total: TotalScore
    warnings: list[HtmlWarning]
    platforms: Mapping[str, list[str]]


class LinkStatus(Struct, rename="pascal"):
    """A link with the status of its answer; 0 without one."""

    url: str = field(name="URL")
    status_code: int
    status: str


class LinkChecks(Struct, rename="pascal"):
    """The links of a message."""

    errors: int
    links: list[LinkStatus]


class SpamRule(Struct, rename="pascal"):
    """A rule of SpamAssassin that matched."""

    score: float
    name: str
    description: str


class SpamCheck(Struct, rename="pascal"):
    """The verdict of SpamAssassin, or the reason why there is none."""

    is_spam: bool
    error: str
    score: float
    rules: list[SpamRule] | None


class Triggers(Struct, rename="pascal"):
    """The triggers of simulated failures."""

    sender: ChaosTrigger
    recipient: ChaosTrigger
    authentication: ChaosTrigger


class SentMessage(Struct):
    """The id of a mail that was sent over the API."""

    id: str = field(name="ID")


def own_version() -> str:
    """Return the version that clients are told."""
    return f"mailcheck {installed_version()}"


def render_summary(mail: Mail) -> Summary:
    """Render a message of a list."""
    summary, content = mail.message.summary, mail.message.content
    return Summary(
        id=mail.id,
        message_id=content.message_id.strip("<>"),
        read=mail.is_read,
        from_=_author(mail),
        **_people(mail),
        subject=summary.header.subject,
        created=format_instant(summary.received_at),
        username="",
        tags=mail.tags,
        size=summary.size,
        attachments=len(content.files),
        snippet=content.snippet[:250],
    )


def render_list(found: MailList, start: int, tags: Sequence[str]) -> Messages:
    """Render a page of messages."""
    return Messages(
        total=found.inbox.total,
        unread=found.inbox.unread,
        count=len(found.mails),
        messages_count=found.matches.total,
        messages_unread=found.matches.unread,
        start=start,
        tags=list(tags),
        messages=[render_summary(one) for one in found.mails],
    )


def render_message(mail: Mail, digests: Mapping[str, Digests]) -> Message:
    """Render a whole message."""
    summary, content = mail.message.summary, mail.message.content
    files = content.files
    inline = [one for one in content.attachments if one not in files]
    return Message(
        id=mail.id,
        message_id=content.message_id.strip("<>"),
        read=True,
        from_=_author(mail),
        **_people(mail),
        return_path=mail.message.envelope_sender,
        subject=summary.header.subject,
        list_unsubscribe=_unsubscribe(content.header_list),
        date=format_instant(_date(content.header_list, summary.received_at)),
        tags=mail.tags,
        username="",
        text=content.text,
        html=content.html,
        size=summary.size,
        inline=[_attachment(one, digests) for one in inline],
        attachments=[_attachment(one, digests) for one in files],
    )


def render_headers(header_list: Sequence[tuple[str, str]]) -> Mapping[str, list[str]]:
    """Render all header fields, by names as Go writes them."""
    found: dict[str, list[str]] = {}
    for name, value in header_list:
        found.setdefault("-".join(one.capitalize() for one in name.split("-")), []).append(value)
    return found


_TAG = re.compile(r"<[A-Za-z]")


def render_html_check(compatibility: checks.Compatibility, html: str) -> HtmlCheck:
    """Render the support of mail clients."""
    warnings = [_warning(one) for one in compatibility.findings]
    found = sum(one.score.found for one in warnings)
    nodes = max(len(_TAG.findall(html)), found, 1)

    def total(name: str) -> float:
        weighted: float = sum(getattr(one.score, name) * one.score.found for one in warnings)
        return round(weighted / nodes, 2)

    partial, unsupported = total("partial"), total("unsupported")
    return HtmlCheck(
        TotalScore(
            round(100 - partial - unsupported, 2), partial, unsupported, len(warnings), nodes
        ),
        warnings,
        {one.family: [one.family] for one in compatibility.clients},
    )


def render_links(found: Sequence[LinkCheck], follow: bool) -> LinkChecks:
    """Render the statuses of links: of the first answer, or of the last redirect."""
    links = [_link(one, follow) for one in found]
    broken = [one for one in links if not 0 < one.status_code < 400]
    return LinkChecks(len(broken), links)


def render_spam_check(outcome: FilterOutcome) -> SpamCheck:
    """Render the verdict of the content filter."""
    if isinstance(outcome, FilterUnavailable):
        return SpamCheck(False, outcome.reason, 0.0, None)
    rules = [SpamRule(one.points, one.name, one.description) for one in outcome.rules]
    return SpamCheck(outcome.is_spam, "", outcome.points, rules)


def render_chaos(chaos: Chaos) -> Triggers:
    """Render the triggers of simulated failures."""
    return Triggers(**chaos.triggers)


def _author(mail: Mail) -> Address | None:
    header = mail.message.summary.header
    if not header.author_address:
        return None
    return Address(header.author_name, header.author_address)


def _people(mail: Mail) -> dict[str, list[Address]]:
    content = mail.message.content

    def named(people: Sequence[Person]) -> list[Address]:
        return [Address(one.name, one.address) for one in people]

    hidden = [Address("", one) for one in mail.hidden_recipients]
    return {
        "to": named(content.people_in("to")),
        "cc": named(content.people_in("cc")),
        "bcc": named(content.people_in("bcc")) + hidden,
        "reply_to": named(content.people_in("reply-to")),
    }


def _attachment(facts: AttachmentFacts, digests: Mapping[str, Digests]) -> Attachment:
    digest = digests.get(facts.id)
    sums = {} if digest is None else digest._asdict()
    return Attachment(
        facts.id,
        facts.filename,
        facts.content_type,
        facts.content_id or "",
        facts.size,
        {name.upper(): value for name, value in sums.items()},
    )


_LINK = re.compile(r"<\s*([^<>\s]+)\s*>")


def _unsubscribe(header_list: Sequence[tuple[str, str]]) -> ListUnsubscribe:
    fields = {name.lower(): value for name, value in reversed(header_list)}
    header = fields.get("list-unsubscribe", "")
    links = _LINK.findall(header)
    errors = "" if links or not header else "a link in angle brackets is missing"
    return ListUnsubscribe(header, links, errors, fields.get("list-unsubscribe-post", ""))


def _date(header_list: Sequence[tuple[str, str]], received_at: Instant) -> Instant:
    for name, value in header_list:
        if name.lower() == "date":
            with suppress(ValueError, TypeError, OverflowError):
                return instant_of(parsedate_to_datetime(value).timestamp())
    return received_at


def _warning(one: checks.FeatureFinding) -> HtmlWarning:
    counts = {
        name: sum(getattr(each, name) for each in one.support)
        for name in ("supported", "partial", "unsupported")
    }
    known = max(sum(counts.values()), 1)
    score = FeatureScore(
        **{name: round(100 * count / known, 2) for name, count in counts.items()}, found=one.count
    )
    notes = {str(number): note.text for number, note in enumerate(one.notes, 1)}
    numbers = {
        client: str(number) for number, note in enumerate(one.notes, 1) for client in note.clients
    }
    results = [
        ClientResult(
            client,
            client.partition(" (")[0],
            client.partition(" (")[2].rstrip(")"),
            "",
            support,
            numbers.get(client, ""),
        )
        for support, clients in (("no", one.unsupported), ("partial", one.partial))
        for client in clients
    ]
    category = "html" if one.slug.startswith("html") else "css"
    url = FEATURE_PAGE.format(slug=one.slug)
    return HtmlWarning(one.slug, one.title, "", url, category, [], "", results, notes, score)


PRIVATE = "Blocked private/reserved address"


def _link(one: LinkCheck, follow: bool) -> LinkStatus:
    answer = one.answer
    if answer.problem is LinkProblem.NOT_PUBLIC:
        return LinkStatus(answer.url, 451, PRIVATE)
    if not answer.hops:
        return LinkStatus(answer.url, 0, one.explanation)
    hop = answer.hops[-1 if follow else 0]
    return LinkStatus(answer.url, hop.status, one.explanation if hop.status >= 400 else "OK")
