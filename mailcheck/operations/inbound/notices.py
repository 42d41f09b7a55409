"""The ready-made notifications: bounces, automatic replies and complaints.

They are written as Postfix, Google, Exchange and providers of mailboxes write them (RFC 3464,
RFC 3834, RFC 5965).
"""

from collections.abc import Sequence
from html import escape

from msgspec import structs

from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.core.inbound import SENDER_IP
from mailcheck.core.instants import DAY, HOUR, SECOND
from mailcheck.operations.inbound.quoting import thread_headers
from mailcheck.operations.inbound.scenes import (
    Part,
    Scene,
    domain_of,
    join_lines,
    multipart,
    octets_part,
    text_part,
    write_whole,
)
from mailcheck.operations.write_mail import Person, write_header

RETURNED_WHOLE = 50_000
"""Maximum size of a mail that Postfix returns as a whole, in octets (``bounce_size_limit``). It
returns only the header of a larger mail."""


_ICON = (
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6\r\n"
    b"kgAAAABJRU5ErkJggg==\r\n"
)
"""A PNG file of one pixel, in base64."""


_POSTFIX_TEXT = """\
This is the mail system at host {host}.

{what}

For further assistance, please send mail to postmaster.

If you do so, please include this problem report. You can
delete your own text from the attached returned message.

                   The mail system

<{lost}>: {reason}
"""

_NOT_DELIVERED = """\
I'm sorry to have to inform you that your message could not
be delivered to one or more recipients. It's attached below."""

_STILL_TRIED = """\
####################################################################
# THIS IS A WARNING ONLY.  YOU DO NOT NEED TO RESEND YOUR MESSAGE. #
####################################################################

Your message could not be delivered for more than 4 hour(s).
It will be retried until it is 5 day(s) old."""


def write_hard_bounce(scene: Scene) -> bytes:
    """Return the notification of Google for an address that does not exist."""
    lost, thread = scene.lost, scene.quoted.message_id
    reply = f"550 5.1.1 <{lost}>: Recipient address rejected: User unknown"
    text = (
        f"\n** Address not found **\n\nYour message wasn't delivered to {lost} because the address "
        "couldn't be found, or is unable to receive mail.\n\nThe response from the remote server "
        f"was:\n{reply}\n"
    )
    html = f"<html><body>{_paragraphs(text)}</body></html>\n"
    icon = Part(
        (
            'Content-Type: image/png; name="icon.png"',
            'Content-Disposition: attachment; filename="icon.png"',
            "Content-Transfer-Encoding: base64",
            "Content-ID: <icon.png>",
        ),
        _ICON,
    )
    alternative = multipart(
        "alternative", scene.digest("alternative"), [text_part(text), text_part(html, "html")]
    )
    shown = multipart("related", scene.digest("related"), [alternative, icon])
    status = _status(
        (
            "Reporting-MTA: dns; googlemail.com",
            f"Received-From-MTA: dns; {scene.recipient}",
            f"Arrival-Date: {scene.date(2 * SECOND)}",
            *((f"X-Original-Message-ID: {thread}",) if thread else ()),
        ),
        (
            f"Final-Recipient: {_typed(lost)}",
            "Action: failed",
            "Status: 5.1.1",
            f"Remote-MTA: dns; {scene.server}. (203.0.113.25, the server for the domain",
            f" {domain_of(scene.author.mailbox)}.)",
            f"Diagnostic-Code: smtp; {reply}",
            f"Last-Attempt-Date: {scene.date()}",
        ),
    )
    header = (
        "From: Mail Delivery Subsystem <mailer-daemon@googlemail.com>",
        f"To: {scene.recipient}",
        "Auto-Submitted: auto-replied",
        "Subject: Delivery Status Notification (Failure)",
        *((f"References: {thread}", f"In-Reply-To: {thread}") if thread else ()),
        f"X-Failed-Recipients: {lost}",
        f"Message-ID: <{scene.digest('mail')}.GMR@mx.google.com>",
        f"Date: {scene.date()}",
    )
    return write_whole(header, _report(scene, [shown, status, _returned(scene, is_whole=True)]))


def _paragraphs(text: str) -> str:
    paragraphs = escape(text.strip(), quote=False).split("\n\n")
    return "\n".join(f"<p>{paragraph.replace(chr(10), '<br>')}</p>" for paragraph in paragraphs)


def write_soft_bounce(scene: Scene) -> bytes:
    """Return the notification of Postfix for a mailbox that is full."""
    reply = f"452 4.2.2 <{scene.lost}>: Mailbox full"
    return _write_postfix_notice(
        scene,
        "Undelivered Mail Returned to Sender",
        _NOT_DELIVERED,
        f"host {scene.server}[203.0.113.25] said:\n    {reply} (in reply to RCPT TO command)",
        (
            "Action: failed",
            "Status: 4.2.2",
            f"Remote-MTA: dns; {scene.server}",
            f"Diagnostic-Code: smtp; {reply}",
        ),
        is_whole=True,
    )


def write_delay_notice(scene: Scene) -> bytes:
    """Return the warning of Postfix for a mail that it still tries to deliver."""
    reply = f"connect to {scene.server}[203.0.113.25]:25: Connection timed out"
    return _write_postfix_notice(
        scene,
        "Delayed Mail (still being retried)",
        _STILL_TRIED,
        reply,
        (
            "Action: delayed",
            "Status: 4.4.1",
            f"Diagnostic-Code: X-Postfix; {reply}",
            f"Will-Retry-Until: {scene.date(4 * HOUR - 5 * DAY)}",
        ),
        is_whole=False,
    )


def _write_postfix_notice(
    scene: Scene, subject: str, what: str, reason: str, fields: Sequence[str], *, is_whole: bool
) -> bytes:
    """Return a notification of Postfix. ``fields`` are the last ones of the recipient."""
    lost = scene.lost
    text = _POSTFIX_TEXT.format(host=scene.host, what=what, lost=lost, reason=reason)
    status = _status(
        (
            f"Reporting-MTA: dns; {scene.host}",
            f"X-Postfix-Queue-ID: {scene.digest('queue')[:11].upper()}",
            f"X-Postfix-Sender: {_typed(str(scene.recipient))}",
            f"Arrival-Date: {scene.date(4 * HOUR)}",
        ),
        (
            f"Final-Recipient: {_typed(lost)}",
            f"Original-Recipient: {_typed(lost).replace('; ', ';')}",
            *fields,
        ),
        "Delivery report",
    )
    note = text_part(text, "plain", "Content-Description: Notification")
    header = (
        f"Date: {scene.date()}",
        f"From: MAILER-DAEMON@{scene.host} (Mail Delivery System)",
        f"Subject: {subject}",
        f"To: {scene.recipient}",
        "Auto-Submitted: auto-replied",
        f"Message-Id: <{scene.digest('mail')[:11].upper()}@{scene.host}>",
    )
    returned = _returned(scene, is_whole=is_whole, describes=True)
    return write_whole(header, _report(scene, [note, status, returned]))


def write_out_of_office(scene: Scene) -> bytes:
    """Return an automatic reply as Exchange writes it, with the field of RFC 3834."""
    return scene.written(
        scene.mail(
            f"Automatic reply: {scene.quoted.subject}",
            "I am out of the office until Monday and read no mail.\n\n"
            f"{scene.author.name or 'Best regards'}\n",
            headers=(
                *thread_headers(scene.quoted),
                ("Auto-Submitted", "auto-replied"),
                ("X-Auto-Response-Suppress", "All"),
                ("Precedence", "auto_reply"),
            ),
        )
    )


def write_complaint(scene: Scene) -> bytes:
    """Return a report of a provider about a mail that its user calls spam."""
    lost, quoted = scene.lost, scene.quoted
    domain = read_mail_domain(quoted.address.rpartition("@")[2]) or domain_of(scene.recipient)
    fields = (
        "Feedback-Type: abuse",
        "User-Agent: mailcheck-FBL/1.0",
        "Version: 1",
        f"Original-Mail-From: <{scene.original.envelope_sender}>",
        f"Original-Rcpt-To: <{lost}>",
        f"Arrival-Date: {scene.date(HOUR)}",
        f"Source-IP: {SENDER_IP}",
        f"Reported-Domain: {domain}",
        f"Reporting-MTA: dns; {scene.server}",
    )
    provider = Person("Feedback loop", scene.feedback)
    mail = structs.replace(scene.mail(f"FW: {quoted.subject}", None), author=provider)
    text = (
        f"This is an email abuse report for a message received from {SENDER_IP}.\n"
        f"{lost} marked it as spam.\n"
    )
    parts = [
        text_part(text),
        octets_part(join_lines(fields), "Content-Type: message/feedback-report"),
        octets_part(end_lines(scene.original.raw_message), "Content-Type: message/rfc822"),
    ]
    return write_whole(
        write_header(mail, scene.message_id(), scene.now),
        multipart("report; report-type=feedback-report", scene.digest("report"), parts),
    )


def _returned(scene: Scene, *, is_whole: bool, describes: bool = False) -> Part:
    """Return the part with the original, or with its header if it is large."""
    raw = end_lines(scene.original.raw_message)
    is_whole = is_whole and len(raw) <= RETURNED_WHOLE
    if not is_whole:
        raw = raw.partition(b"\r\n\r\n")[0] + b"\r\n"
    kind = "message/rfc822" if is_whole else "text/rfc822-headers"
    what = f"Content-Description: Undelivered Message{'' if is_whole else ' Headers'}"
    return octets_part(raw, *((what,) if describes else ()), f"Content-Type: {kind}")


def _typed(address: str) -> str:
    """Return an address of a status field with its type (RFC 6533 3)."""
    return f"{'rfc822' if address.isascii() else 'utf-8'}; {address}"


def _status(message_fields: Sequence[str], recipient_fields: Sequence[str], what: str = "") -> Part:
    body = join_lines((*message_fields, "", *recipient_fields))
    kind = "delivery-status" if body.isascii() else "global-delivery-status"
    described = (f"Content-Description: {what}",) if what else ()
    return octets_part(body, *described, f"Content-Type: message/{kind}")


def _report(scene: Scene, parts: Sequence[Part]) -> Part:
    boundary = scene.digest("report")
    return multipart("report; report-type=delivery-status", boundary, parts)
