"""The ``report`` field of a deliverability test: facts about the mail in addition to the checks."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import field

from mailcheck.api.deliverability.filters import FilterResult, filter_fields
from mailcheck.api.deliverability.findings import MailFinding, MailFindings, render_area
from mailcheck.api.inbox.messages import Tls
from mailcheck.api.shapes import ABSENT, Absent, Count, Shape, Texts, Timestamp, doc, shape_from
from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.score import DeliverabilityReport, describe_content_filter
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.findings import Area
from mailcheck.checks.quality import facts as found
from mailcheck.checks.quality import receiver_replies, receivers

MAX_SHOWN = 200
"""Maximum number of entries of a list in the report."""

MAX_TEXT = 1000
"""Maximum number of characters of a text of the mail in the report."""


class ReverseDns(Shape):
    """The reverse DNS of the SMTP client's IP address."""

    ip: str
    names: Texts
    validated_names: Annotated[Texts, doc("names that resolve back to the address")]
    confirmed: Annotated[bool | None, doc("null: undetermined")]
    generic: Annotated[bool | None, doc("the name looks like that of a dial-up line")]


class Helo(Shape):
    """The HELO name of the SMTP client."""

    name: str | None
    resolves: Annotated[bool | None, doc("null: undetermined")]
    addresses: Texts
    leads_to_client: bool | None = field(name="leadsToClient")


class Transport(Shape):
    """How the mail was transmitted."""

    tls: Tls | None
    extended: Annotated[bool, doc("the client sent EHLO")]
    transcript: Annotated[Texts, doc("the SMTP dialogue")]
    findings: MailFindings


class ReportedAuthor(Shape):
    """An author of the mail."""

    address: str
    name: str
    domain: str


class Headers(Shape):
    """The header section."""

    size: Annotated[int, doc("octets", ge=0)]
    fields: Annotated[Texts, doc("names of all fields in order, lower case")]
    repeated: Annotated[Texts, doc("fields that occur more than once but must not")]
    from_: tuple[ReportedAuthor, ...]
    sender: str | None
    reply_to: str | None
    date: Annotated[str | None, doc("the text of the field")]
    date_utc: Annotated[Timestamp | None, doc("null: the date cannot be parsed")]
    message_id: str | None
    received: Annotated[int, doc("number of Received fields", ge=0)]
    list_fields: Texts
    precedence: str | None
    auto_submitted: str | None
    findings: MailFindings


class Part(Shape):
    """A MIME part of the mail."""

    content_type: str
    charset: str
    encoding: str
    disposition: str
    filename: str
    size: Annotated[int, doc("octets, encoded", ge=0)]
    depth: Annotated[int, doc("level of nesting; 0: the mail itself", ge=0)]


class Mime(Shape):
    """The MIME structure of the mail."""

    size: Annotated[int, doc("octets", ge=0)]
    content_type: str
    has_text: bool
    has_html: bool
    text_size: Count
    overlap: Annotated[Count | None, doc("percentage of the HTML's words that the text contains")]
    long_lines: Annotated[int, doc("number of lines longer than allowed", ge=0)]
    longest_line: Annotated[int, doc("octets", ge=0)]
    placeholders: Annotated[Texts, doc("template variables that were not replaced")]
    risky_attachments: Texts
    problems: Annotated[Texts, doc("syntax errors")]
    parts: tuple[Part, ...]
    findings: MailFindings


class Html(Shape):
    """The HTML of the mail."""

    size: Annotated[int, doc("octets of UTF-8", ge=0)]
    is_base64: bool
    visible_length: Annotated[int, doc("characters", ge=0)]
    hidden_length: Annotated[int, doc("characters", ge=0)]
    hidden_sample: str
    preheader: Annotated[str, doc("preview text that mail clients show after the subject")]
    has_hidden_preheader: bool
    image_count: Count
    images_without_alt: Count
    insecure_images: Annotated[int, doc("images loaded over http", ge=0)]
    inline_data_images: Count
    tracking_pixels: Count
    form_count: Count
    active_elements: Annotated[Texts, doc("scripts, frames and similar elements")]
    event_handlers: Count
    external_styles: Count
    style_blocks: Count
    styled_elements: Count
    unclosed: Annotated[Texts, doc("elements without an end tag")]
    has_unclosed_comment: bool


class Disguise(Shape):
    """A link whose text shows another host than its target."""

    shown: str
    leads_to: str


class Links(Shape):
    """The links of the mail."""

    urls: Annotated[Texts, doc("not requested")]
    hosts: Texts
    count: Count
    insecure: Annotated[Texts, doc("links over http")]
    shortened: Texts
    address_hosts: Annotated[Texts, doc("links whose host is an IP address")]
    punycode_hosts: Texts
    mixed_script_hosts: Texts
    disguised: tuple[Disguise, ...]
    with_user: Texts
    with_port: Texts
    script_links: Count
    relative: Annotated[int, doc("relative links, which do not work in a mail", ge=0)]
    findings: MailFindings


class Unsubscribe(Shape):
    """The ways to unsubscribe."""

    list_unsubscribe: Texts | None
    list_unsubscribe_post: str | None
    body_links: Annotated[int, doc("number of links labelled unsubscribe", ge=0)]
    findings: MailFindings


class Seal(Shape):
    """The seal of one intermediary."""

    instance: Count
    domain: str
    selector: str
    chain: Annotated[str, doc("cv=: result of the validation of earlier seals")]


class Arc(Shape):
    """The ARC chain (RFC 8617)."""

    result: AuthResult
    detail: str | None
    count: Annotated[int, doc("number of seals", ge=0)]
    seals: tuple[Seal, ...]
    findings: MailFindings


class Dkim2Signature(Shape):
    """A signature of one hop, as written by its sender."""

    sequence: Annotated[int | None, doc("i=: number of the hop; null: not a number")]
    instance: Annotated[int | None, doc("m=: version of the mail; null: not a number")]
    domain: str
    mail_from: Annotated[str, doc("mf=: envelope sender that the hop has signed")]
    recipients: Annotated[Texts, doc("rt=: envelope recipients that the hop has signed")]
    algorithms: Texts
    flags: Texts


class Dkim2(Shape):
    """The DKIM2 fields (draft-ietf-dkim-dkim2-spec), which are not verified."""

    signatures: Annotated[tuple[Dkim2Signature, ...], doc("in the order of hops")]
    instances: Annotated[int, doc("number of Message-Instance fields", ge=0)]
    findings: MailFindings


class Rule(Shape):
    """A requirement of a mailbox provider."""

    id: Annotated[str, doc("stable identifier")]
    text: str
    result: receivers.RuleResult


class Checklist(Shape):
    """The published requirements of a mailbox provider."""

    receiver: Annotated[str, doc("google, yahoo, microsoft")]
    name: str
    source: Annotated[str, doc("URL of the requirements")]
    met: bool
    rules: tuple[Rule, ...]


class ReplyLine(Shape):
    """An SMTP reply."""

    code: Annotated[int, doc("250, 4xx or 5xx")]
    enhanced: Annotated[str | None, doc("enhanced status code (RFC 3463)")]
    text: str


class ReplyRule(Shape):
    """A rule of a receiver that the mail does not meet, or that could not be judged."""

    id: Annotated[str, doc("stable identifier")]
    requirement: Annotated[str | None, doc("id of the same rule in `checklists`")]
    result: receivers.RuleResult
    action: receiver_replies.Action
    open: Annotated[bool, doc("this mail cannot show the result, so the rule does not count")]
    reply: ReplyLine | None
    also: Annotated[Texts, doc("other replies that the receiver publishes for this rule")]
    explanation: str
    source: Annotated[str, doc("URL of the rule")]
    date: Annotated[str, doc("date of the version of the source")]


class ReceiverReply(Shape):
    """The reply that a receiver gives to the mail by its published rules."""

    receiver: Annotated[str, doc("gmail, gmail-bulk, yahoo, ...; -bulk: for bulk mail")]
    name: str
    audience: Annotated[str, doc("senders for which the rules are")]
    action: receiver_replies.Action
    determined: Annotated[bool, doc("false if a missing answer decides")]
    reply: Annotated[ReplyLine | None, doc("null: not known")]
    stage: Annotated[receiver_replies.Stage | None, doc("when the reply comes")]
    explanation: str
    rules: tuple[ReplyRule, ...]


class Report(Shape):
    """The transmission, structure and content of the mail."""

    reverse_dns: ReverseDns
    helo: Helo
    transport: Transport
    headers: Headers
    mime: Mime
    html: Html | None
    links: Links
    unsubscribe: Unsubscribe
    arc: Arc
    dkim2: Dkim2
    checklists: tuple[Checklist, ...]
    replies: Annotated[
        tuple[ReceiverReply, ...] | Absent,
        doc("what receivers would reply; absent in reports of earlier versions"),
    ] = ABSENT
    rspamd: Annotated[FilterResult | Absent, doc("only if this server has an rspamd")] = ABSENT


def render_details(report: DeliverabilityReport) -> Report:
    """Render the facts about a mail, each group with its findings."""
    facts = report.facts
    return Report(
        reverse_dns=_reverse_dns(report),
        helo=_helo(report),
        transport=_transport(report),
        headers=_headers(facts, _findings(report, Area.HEADERS)),
        mime=_mime(facts, _findings(report, Area.CONTENT)),
        html=None if facts.html is None else _html(facts.html),
        links=_links(facts, _findings(report, Area.LINKS)),
        unsubscribe=_unsubscribe(facts.unsubscribe, _findings(report, Area.UNSUBSCRIBE)),
        arc=_arc(report),
        dkim2=_dkim2(report),
        checklists=tuple(map(_checklist, report.checklists)),
        replies=tuple(map(_receiver_reply, report.replies)),
        rspamd=_rspamd(report),
    )


def _findings(report: DeliverabilityReport, area: Area) -> tuple[MailFinding, ...]:
    return render_area(report.score.charged, area, report.proofs)


def _reverse_dns(report: DeliverabilityReport) -> ReverseDns:
    verdict = report.evidence.reverse_dns
    ip = report.evidence.authentication.origin.client_ip
    if verdict is None:
        return ReverseDns(ip, (), (), None, None)
    is_known = verdict.presence is not Presence.UNDETERMINED
    return ReverseDns(
        ip=ip,
        names=tuple(verdict.ptr_names),
        validated_names=tuple(verdict.validated_names),
        confirmed=verdict.is_confirmed if is_known else None,
        generic=verdict.is_generic if is_known else None,
    )


def _helo(report: DeliverabilityReport) -> Helo:
    verdict = report.evidence.helo
    name = report.evidence.authentication.origin.helo_name or None
    if verdict is None:
        return Helo(name, None, (), None)
    addresses = tuple(map(str, verdict.addresses))
    return Helo(name, verdict.is_resolvable, addresses, verdict.resolves_to_client)


def _transport(report: DeliverabilityReport) -> Transport:
    session = report.mail.session
    return Transport(
        tls=None if session.tls is None else shape_from(Tls, session.tls),
        extended=session.is_extended,
        transcript=tuple(report.mail.transcript),
        findings=_findings(report, Area.TRANSPORT),
    )


def _headers(facts: found.MailFacts, findings: tuple[MailFinding, ...]) -> Headers:
    date, message_id = facts.date, facts.message_id
    return shape_from(
        Headers,
        facts,
        size=facts.header_size,
        fields=_cut(facts.field_names),
        repeated=_cut(facts.repeated_fields),
        from_=tuple(
            ReportedAuthor(*_cut((author.address, author.display_name, author.domain)))
            for author in facts.authors
        ),
        sender=facts.sender_address,
        reply_to=facts.reply_to_address,
        date=None if date is None else date.text,
        date_utc=None if date is None else date.instant,
        message_id=None if message_id is None else message_id.text,
        received=facts.received_fields,
        list_fields=_cut(facts.bulk.list_fields),
        precedence=facts.bulk.precedence,
        auto_submitted=facts.bulk.auto_submitted,
        findings=findings,
    )


def _mime(facts: found.MailFacts, findings: tuple[MailFinding, ...]) -> Mime:
    return shape_from(
        Mime,
        facts,
        has_html=facts.html is not None,
        parts=tuple(map(_part, facts.parts[:MAX_SHOWN])),
        findings=findings,
    )


def _part(part: found.PartFacts) -> Part:
    return shape_from(
        Part,
        part,
        content_type=part.content_type[:MAX_TEXT],
        charset=part.charset[:MAX_TEXT],
        encoding=part.encoding[:MAX_TEXT],
        disposition=part.disposition[:MAX_TEXT],
        filename=part.filename[:MAX_TEXT],
    )


def _html(html: found.HtmlFacts) -> Html:
    return shape_from(
        Html,
        html,
        hidden_sample=html.hidden_sample[:MAX_TEXT],
        preheader=html.preheader[:MAX_TEXT],
        active_elements=_cut(html.active_elements),
        unclosed=_cut(html.unclosed),
    )


def _links(facts: found.MailFacts, findings: tuple[MailFinding, ...]) -> Links:
    links = facts.link_facts
    return shape_from(
        Links,
        links,
        urls=_cut(facts.links),
        hosts=_cut(facts.link_hosts),
        disguised=tuple(Disguise(*_cut(pair)) for pair in links.disguised[:MAX_SHOWN]),
        insecure=_cut(links.insecure),
        shortened=_cut(links.shortened),
        address_hosts=_cut(links.address_hosts),
        punycode_hosts=_cut(links.punycode_hosts),
        mixed_script_hosts=_cut(links.mixed_script_hosts),
        with_user=_cut(links.with_user),
        with_port=_cut(links.with_port),
        findings=findings,
    )


def _unsubscribe(facts: found.UnsubscribeFacts, findings: tuple[MailFinding, ...]) -> Unsubscribe:
    uris = _cut(facts.uris) if facts.is_present else None
    return Unsubscribe(uris, facts.post, facts.body_links, findings)


def _arc(report: DeliverabilityReport) -> Arc:
    arc = report.evidence.arc
    seals = tuple(
        Seal(seal.instance, *_cut((seal.domain, seal.selector, seal.chain))) for seal in arc.seals
    )
    return shape_from(
        Arc, arc, detail=arc.explanation, seals=seals, findings=_findings(report, Area.ARC)
    )


def _rspamd(report: DeliverabilityReport) -> FilterResult | Absent:
    outcome = report.evidence.rspamd
    if outcome is None:
        return ABSENT
    return FilterResult(
        **filter_fields(outcome),
        detail=describe_content_filter(outcome),
        in_score=report.evidence.is_rspamd_counted,
        findings=_findings(report, Area.RSPAMD),
    )


def _dkim2(report: DeliverabilityReport) -> Dkim2:
    dkim2 = report.evidence.dkim2
    return shape_from(Dkim2, dkim2, findings=_findings(report, Area.DKIM2))


def _checklist(checklist: receivers.Checklist) -> Checklist:
    return shape_from(Checklist, checklist, receiver=checklist.id)


def _receiver_reply(found: receiver_replies.SimulatedReply) -> ReceiverReply:
    return shape_from(
        ReceiverReply,
        found,
        receiver=found.profile.id,
        name=found.profile.name,
        audience=found.profile.audience,
        reply=_reply_line(found.reply),
        rules=tuple(map(_reply_rule, found.rules)),
    )


def _reply_rule(judged: receiver_replies.JudgedRule) -> ReplyRule:
    rule = judged.rule
    return shape_from(
        ReplyRule,
        judged,
        id=rule.id,
        reply=_reply_line(judged.reply),
        source=rule.source.url,
        date=rule.source.date.isoformat(),
    )


def _reply_line(reply: receiver_replies.Reply | None) -> ReplyLine | None:
    return None if reply is None else shape_from(ReplyLine, reply)


def _cut(texts: Sequence[str]) -> Texts:
    return tuple(text[:MAX_TEXT] for text in texts[:MAX_SHOWN])
