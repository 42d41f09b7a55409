"""Tests for texts and attachments of a mail, and for their names."""

import base64

from mailcheck.checks.content.bodies import find_attachment
from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.quality.reading import read_mail
from mailcheck.core.content import MessageContent
from tests.table import rows


def multipart(subtype: str, *parts: str) -> str:
    """Return a multipart with its parts, each with its header."""
    inner = "".join(f"--={subtype}\r\n{part}\r\n" for part in parts)
    return (
        f'Content-Type: multipart/{subtype}; boundary="={subtype}"\r\n\r\n{inner}--={subtype}--\r\n'
    )


def derive(body: str) -> MessageContent:
    """Derive the content of a mail."""
    return derive_content(raw(body))


def raw(body: str) -> bytes:
    """Return a mail."""
    return f"From: a@example.com\r\nSubject: x\r\n{body}".encode()


TEXT = "Content-Type: text/plain\r\n\r\nthe text"
HTML = "Content-Type: text/html\r\n\r\n<p>the text</p>"
AMP = "Content-Type: text/x-amp-html\r\n\r\n<html amp4email></html>"
NESTED = "Subject: old\r\nContent-Type: text/plain\r\n\r\nold words"

ATTACHED_MULTIPART = multipart("alternative", TEXT.replace("the text", "old words")).replace(
    "\r\n\r\n", "\r\nContent-Disposition: attachment{}\r\n\r\n", 1
)


@rows(("; filename=old.mht", "old.mht"), ("; filename=Minutes", "Minutes.eml"), ("", "message.eml"))
def test_an_attached_multipart_is_one_attachment(named: str, filename: str) -> None:
    """The parts of an attached multipart are not listed; its download is a valid mail."""
    mail = raw(multipart("mixed", TEXT, ATTACHED_MULTIPART.format(named)))
    content = derive_content(mail)
    assert content.text == "the text"
    assert [one.filename for one in content.attachments] == [filename]
    found = find_attachment(mail, "1")
    assert found is not None
    assert found.filename == filename
    assert derive_content(found.data).text == "old words"
    assert content.attachments[0].size == len(found.data)


def test_a_mail_that_says_it_is_attached_is_read() -> None:
    """The mail itself is not an attachment, whatever its header declares."""
    content = derive(
        multipart("mixed", TEXT).replace("\r\n", "\r\nContent-Disposition: attachment\r\n", 1)
    )
    assert (content.text, content.attachments) == ("the text", ())


@rows("x-amp-html", "watch-html", "enriched", "markdown")
def test_another_form_of_the_body_is_no_attachment(media_type: str) -> None:
    """An alternative that few programs show is not an attachment (RFC 2046 5.1.4)."""
    other = AMP.replace("x-amp-html", media_type)
    content = derive(multipart("alternative", TEXT, other, HTML))
    assert (content.text, content.html, content.attachments) == (
        "the text",
        "<p>the text</p>",
        (),
    )
    for beside in (multipart("mixed", TEXT, other), other):
        assert [one.content_type for one in derive(beside).attachments] == [f"text/{media_type}"]


OTHER_TEXT = "Content-Type: text/plain\r\n\r\nfooter"
OTHER_HTML = "Content-Type: text/html\r\n\r\n<b>more</b>"
BLANK = "Content-Type: text/plain\r\n\r\n \r\n"
PDF = "Content-Type: application/pdf; name=a.pdf\r\n\r\n%PDF"
NAMED = "Content-Type: text/plain; name=a.txt\r\n\r\nnamed"
INLINE = "Content-Disposition: inline\r\n" + OTHER_TEXT
UNKNOWN = "Content-Disposition: notification\r\n" + OTHER_TEXT
CSV = "Content-Type: text/csv\r\n\r\na,b"
PAGE, MORE, FOOTER = "<p>the text</p>", "<b>more</b>", "<p>footer</p>"

BOTH = multipart("alternative", TEXT, HTML)
PICTURED = multipart("related", HTML, PDF)
NESTINGS = [
    # Parts of a mixed mail follow each other, whatever their types and depth.
    (multipart("mixed", TEXT, OTHER_TEXT), "the text|footer", ""),
    (multipart("mixed", HTML, OTHER_HTML), "", f"{PAGE}|{MORE}"),
    (multipart("mixed", TEXT, OTHER_HTML), "the text|more", f"{PAGE}|{MORE}"),
    (multipart("mixed", HTML, PDF, OTHER_TEXT), "the text|footer", f"{PAGE}|{FOOTER}"),
    (
        multipart("mixed", HTML, INLINE, OTHER_HTML),
        "the text|footer|more",
        f"{PAGE}|{FOOTER}|{MORE}",
    ),
    (multipart("mixed", BOTH, OTHER_TEXT), "the text|footer", f"{PAGE}|{FOOTER}"),
    (multipart("mixed", BOTH, OTHER_HTML), "the text|more", f"{PAGE}|{MORE}"),
    (multipart("mixed", PICTURED, OTHER_TEXT), "the text|footer", f"{PAGE}|{FOOTER}"),
    (
        multipart("signed", multipart("mixed", HTML, OTHER_TEXT), PDF),
        "the text|footer",
        f"{PAGE}|{FOOTER}",
    ),
    # A mail that has only blank texts beside its HTML has no text.
    (multipart("mixed", BLANK, HTML, BLANK), "", PAGE),
    (multipart("mixed", multipart("alternative"), HTML), "", PAGE),
    # Of alternatives, the last of each kind.
    (
        multipart("alternative", TEXT, multipart("mixed", OTHER_HTML, OTHER_TEXT)),
        "the text",
        f"{MORE}|{FOOTER}",
    ),
    (
        multipart("alternative", multipart("mixed", TEXT, OTHER_TEXT), OTHER_HTML),
        "the text|footer",
        MORE,
    ),
    (multipart("alternative", HTML, TEXT), "the text", PAGE),
    (multipart("alternative", OTHER_TEXT, TEXT), "the text", ""),
    (multipart("alternative", OTHER_HTML, HTML), "", PAGE),
    (multipart("alternative", OTHER_TEXT, PICTURED), "footer", PAGE),
    # Other types, dispositions and names.
    (multipart("mixed", TEXT, CSV), "the text", ""),
    (multipart("mixed", TEXT, UNKNOWN), "the text", ""),
    (multipart("mixed", TEXT, NAMED), "the text", ""),
    (multipart("mixed", HTML, NAMED), "", PAGE),
    (multipart("mixed", PDF, NAMED, NAMED), "named|named", ""),
]


@rows(*NESTINGS)
def test_all_texts_of_a_mail_are_its_body(body: str, text: str, html: str) -> None:
    """Text and HTML have all parts that are shown, in order, and searches find all words."""
    content = derive(body)
    lines = [line for line in content.text.split("\n") if line.strip()]
    assert lines == (text.split("|") if text else [])
    assert content.html.split("\n") == html.split("|")
    for word in ("the text", "footer", "more", "named"):
        assert (word in content.searched) is (word in f"{text} {html}")
    # The report of the mail is about the same parts.
    assert (read_mail(raw(body)).html is not None) is bool(html)


def test_words_of_text_parts_are_no_markup() -> None:
    """A text between HTML parts is shown as it is, in its lines."""
    text = "Content-Type: text/plain; format=flowed\r\n\r\n1 <b> &amp; \r\n2\r\n3"
    html = derive(multipart("mixed", HTML, text)).html
    assert html == f"{PAGE}\n<p>1 &lt;b&gt; &amp;amp; 2<br>\n3</p>"


NAMES = {
    "Content-Type: text/calendar; method=REQUEST": "invite.ics",
    "Content-Type: text/calendar; name=Meeting": "Meeting.ics",
    "Content-Type: text/calendar; name=m.ics": "m.ics",
    "Content-Type: message/rfc822": "message.eml",
    "Content-Type: message/global": "message.eml",
    'Content-Type: message/rfc822; name="Re: 1.2.example"': "Re: 1.2.example.eml",
    "Content-Type: message/rfc822; name=a.EML": "a.EML",
    "Content-Type: message/rfc822; name=a.msg": "a.msg",
    "Content-Type: message/delivery-status": "delivery-status.txt",
    "Content-Type: message/global-delivery-status": "delivery-status.txt",
    "Content-Type: message/global-disposition-notification": "disposition-notification.txt",
    "Content-Type: message/global-headers": "mail-headers.txt",
    "Content-Type: message/global-headers; name=head": "head.txt",
    "Content-Type: message/feedback-report": "feedback-report.txt",
    "Content-Type: text/rfc822-headers": "mail-headers.txt",
    "Content-Type: text/vcard": "contact.vcf",
    "Content-Type: application/octet-stream": "",
    "Content-Type: application/octet-stream; name=README": "README",
}


@rows(*NAMES)
def test_an_attachment_has_a_name_under_which_it_opens(head: str) -> None:
    """A name without an extension gets the one of its type."""
    content = derive(multipart("mixed", TEXT, f"{head}\r\n\r\n{NESTED}"))
    assert [one.filename for one in content.attachments] == [NAMES[head]]


def test_an_invitation_of_exchange_is_attached() -> None:
    """A calendar among the alternatives is an attachment."""
    content = derive(
        multipart("alternative", TEXT, HTML, "Content-Type: text/calendar\r\n\r\nBEGIN:VCALENDAR")
    )
    assert [one.filename for one in content.files] == ["invite.ics"]


@rows("7bit", "base64")
def test_an_attached_mail_can_be_opened(encoding: str) -> None:
    """Fields, text (or the words of the HTML) and attachment names are readable."""
    inner = multipart("related", HTML, "Content-Type: text/calendar\r\n\r\nBEGIN:VCALENDAR")
    nested = f"From: b@example.com\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n{inner}"
    if encoding == "base64":
        nested = base64.encodebytes(nested.encode()).decode().replace("\n", "\r\n")
    head = f"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: {encoding}"
    found = find_attachment(raw(multipart("mixed", TEXT, f"{head}\r\n\r\n{nested}")), "1")
    assert found is not None
    assert found.opened.splitlines() == [
        "From: b@example.com",
        "Subject: Grüße",
        "",
        "the text",
        "[invite.ics]",
    ]
    attached = find_attachment(raw(multipart("mixed", TEXT, ATTACHED_MULTIPART.format(""))), "1")
    assert attached is not None
    assert attached.opened.strip() == "old words"
