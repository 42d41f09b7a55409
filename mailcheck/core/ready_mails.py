"""The ready-made mails that an application which receives mail must survive: their names and texts.

`mailcheck.operations.inbound.ready_mails` writes them. Their names are the values of the API, of
the tools for agents, of the command line and of the pages.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class MailProgram(StrEnum):
    """A mail program whose way to quote is known."""

    OUTLOOK = "outlook"
    GMAIL = "gmail"
    APPLE_MAIL = "apple"

    @property
    def title(self) -> str:
        """The name of the program."""
        return _PROGRAMS[self]


_PROGRAMS: Mapping[MailProgram, str] = {
    MailProgram.OUTLOOK: "Outlook",
    MailProgram.GMAIL: "Gmail",
    MailProgram.APPLE_MAIL: "Apple Mail",
}


class Place(StrEnum):
    """Where the text of a reply is, relative to the quoted mail."""

    ABOVE = "above"
    BELOW = "below"
    BETWEEN = "between"


class ReadyMail(StrEnum):
    """The name of a ready-made mail."""

    HARD_BOUNCE = "bounce-hard"
    SOFT_BOUNCE = "bounce-soft"
    DELAYED = "delayed"
    OUT_OF_OFFICE = "out-of-office"
    COMPLAINT = "complaint"
    REPLY_OUTLOOK_ABOVE = "reply-outlook-above"
    REPLY_OUTLOOK_BELOW = "reply-outlook-below"
    REPLY_OUTLOOK_BETWEEN = "reply-outlook-between"
    REPLY_GMAIL_ABOVE = "reply-gmail-above"
    REPLY_GMAIL_BELOW = "reply-gmail-below"
    REPLY_GMAIL_BETWEEN = "reply-gmail-between"
    REPLY_APPLE_ABOVE = "reply-apple-above"
    REPLY_APPLE_BELOW = "reply-apple-below"
    REPLY_APPLE_BETWEEN = "reply-apple-between"
    EMPTY = "empty"
    LARGE = "25-mb"
    MANY_FILES = "100-files"
    FORWARDED = "forwarded"
    ISO_2022_JP = "iso-2022-jp"
    LONG_SUBJECT = "long-subject"
    INJECTION = "injection"


class ReadyMailFacts(Struct, frozen=True):
    """What a ready-made mail is, and what an application should do with it.

    A mail that ``refers`` is about a mail of the application. Without a stored message to refer
    to, it is about an invented one.
    """

    title: str
    explanation: str
    refers: bool = False


_PLACES: Mapping[Place, str] = {
    Place.ABOVE: "above the quoted mail",
    Place.BELOW: "below the quoted mail",
    Place.BETWEEN: "between the quoted lines",
}

_QUOTES: Mapping[MailProgram, str] = {
    MailProgram.OUTLOOK: (
        "Outlook does not mark quoted lines: a line of underscores and the header of the "
        "mail precede them."
    ),
    MailProgram.GMAIL: (
        "Gmail writes “On ... wrote:”, which may be two lines, with a narrow no-break space in "
        "the time, and quotes with “>” and in `div.gmail_quote`."
    ),
    MailProgram.APPLE_MAIL: (
        "Apple Mail quotes the line “On ... wrote:” as well, with “>” and in "
        "`blockquote[type=cite]`."
    ),
}

READY_MAILS: Mapping[ReadyMail, ReadyMailFacts] = {
    ReadyMail.HARD_BOUNCE: ReadyMailFacts(
        "Hard bounce",
        "Google's notification that an address does not exist (RFC 3464, 5.1.1), with an empty "
        "envelope sender. Stop sending to the address.",
        refers=True,
    ),
    ReadyMail.SOFT_BOUNCE: ReadyMailFacts(
        "Soft bounce",
        "Postfix's notification that a mailbox was full for five days (RFC 3464, 4.2.2), with an "
        "empty envelope sender and without In-Reply-To. The address may work later.",
        refers=True,
    ),
    ReadyMail.DELAYED: ReadyMailFacts(
        "Delay notice",
        "Postfix's warning that a mail has not been delivered for four hours and is still tried "
        "(RFC 3464, action “delayed”). The mail has not failed.",
        refers=True,
    ),
    ReadyMail.OUT_OF_OFFICE: ReadyMailFacts(
        "Out of office",
        "An automatic reply (RFC 3834) with Auto-Submitted and an empty envelope sender. Do not "
        "answer it, and open no ticket.",
        refers=True,
    ),
    ReadyMail.COMPLAINT: ReadyMailFacts(
        "Complaint",
        "A provider's report that a recipient marked a mail as spam (RFC 5965). Stop sending to "
        "the recipient.",
        refers=True,
    ),
    **{
        ReadyMail(f"reply-{program}-{place}"): ReadyMailFacts(
            f"Reply from {program.title}, {place}",
            f"A reply whose text is {_PLACES[place]}. {_QUOTES[program]}",
            refers=True,
        )
        for program in MailProgram
        for place in Place
    },
    ReadyMail.EMPTY: ReadyMailFacts(
        "Empty mail", "A mail without subject, text and Content-Type. Phones send such mails."
    ),
    ReadyMail.LARGE: ReadyMailFacts(
        "25 MB",
        "A mail of 25 MB with one file, as large as Gmail sends. Some providers do not pass on "
        "mails of this size.",
    ),
    ReadyMail.MANY_FILES: ReadyMailFacts(
        "100 files",
        "A mail with 100 small files. Ten have the same name, one has an empty name, and one has "
        "the name “../../etc/passwd”.",
    ),
    ReadyMail.FORWARDED: ReadyMailFacts(
        "Forwarded mail",
        "A mail with another mail inside (message/rfc822). The text and the files of the mail "
        "inside are not those of the mail.",
        refers=True,
    ),
    ReadyMail.ISO_2022_JP: ReadyMailFacts(
        "ISO-2022-JP",
        "A Japanese mail in the charset ISO-2022-JP: a name, a subject and a text that are not "
        "UTF-8.",
    ),
    ReadyMail.LONG_SUBJECT: ReadyMailFacts(
        "Subject of 2,000 characters",
        "A mail whose subject has 2,000 characters in many lines. Columns of databases often have "
        "255.",
    ),
    ReadyMail.INJECTION: ReadyMailFacts(
        "Injection attempt",
        "A mail that tries to add header fields, scripts, SQL, templates and paths by its names, "
        "subject, texts and file. None of them may have an effect.",
    ),
}
"""All ready-made mails, in the order in which they are listed."""
