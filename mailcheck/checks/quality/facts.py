"""What a report needs to know of a mail's bytes: plain values that can be pickled."""

from msgspec import Struct

from mailcheck.core.instants import Instant


class DateFacts(Struct, frozen=True):
    """A Date field; ``problem`` says what is wrong with it, ``instant`` is there if it is readable.

    ``problem`` completes "the Date field ...".
    """

    text: str
    instant: Instant | None = None
    problem: str = ""


class MessageIdFacts(Struct, frozen=True):
    """A Message-ID field as written; ``domain`` is what stands behind its @, in lower case."""

    text: str
    is_well_formed: bool = True
    domain: str = ""


class Author(Struct, frozen=True):
    """A mailbox of a From field; ``domain`` in A-labels, empty where it is no domain name."""

    address: str
    display_name: str
    domain: str


class PartFacts(Struct, frozen=True):
    """A part that holds no other parts: ``size`` in octets as sent, ``depth`` 0 for the mail."""

    content_type: str
    charset: str
    encoding: str
    disposition: str
    filename: str
    size: int
    depth: int


class HtmlFacts(Struct, frozen=True):
    """The HTML of a mail, its first 512 KiB where counts are concerned.

    ``size`` is in octets of UTF-8, ``visible_length`` in characters.
    ``active_elements`` are names of what mail programs remove or block
    (scripts, frames, ...), ``unclosed`` names of elements left open.
    ``preheader`` is what lists of mails show behind the subject.
    """

    size: int = 0
    is_base64: bool = False
    visible_length: int = 0
    hidden_length: int = 0
    hidden_sample: str = ""
    preheader: str = ""
    has_hidden_preheader: bool = False
    image_count: int = 0
    images_without_alt: int = 0
    insecure_images: int = 0
    inline_data_images: int = 0
    tracking_pixels: int = 0
    form_count: int = 0
    active_elements: tuple[str, ...] = ()
    event_handlers: int = 0
    external_styles: int = 0
    style_blocks: int = 0
    styled_elements: int = 0
    unclosed: tuple[str, ...] = ()
    has_unclosed_comment: bool = False


class LinkFacts(Struct, frozen=True):
    """Where the links of a mail lead; each tuple is distinct and in order of appearance.

    ``disguised`` are pairs: the host that the words on a link show, and the
    one it leads to. ``relative`` counts links that lead nowhere in a mail.
    """

    count: int = 0
    insecure: tuple[str, ...] = ()
    shortened: tuple[str, ...] = ()
    address_hosts: tuple[str, ...] = ()
    punycode_hosts: tuple[str, ...] = ()
    mixed_script_hosts: tuple[str, ...] = ()
    disguised: tuple[tuple[str, str], ...] = ()
    with_user: tuple[str, ...] = ()
    with_port: tuple[str, ...] = ()
    script_links: int = 0
    relative: int = 0


class UnsubscribeFacts(Struct, frozen=True):
    """List-Unsubscribe (RFC 2369) and List-Unsubscribe-Post (RFC 8058) as they were sent.

    ``uris`` are those in angle brackets, in order; ``post`` the other field's
    body, nothing without it. ``body_links`` counts links whose words offer to
    unsubscribe.
    """

    is_present: bool = False
    uris: tuple[str, ...] = ()
    post: str | None = None
    body_links: int = 0


class BulkFacts(Struct, frozen=True):
    """What makes a mail look like one of many: ``list_fields`` are names in lower case."""

    list_fields: tuple[str, ...] = ()
    precedence: str = ""
    auto_submitted: str = ""
    feedback_id: str = ""


class MailFacts(Struct, frozen=True):
    """One mail, as far as its header, its parts, its HTML and its links go.

    ``author_address`` is the first mailbox of the first From field,
    ``author_domains`` the distinct domains of all mailboxes of all From fields
    (RFC 5322 3.6.2), in lower-case A-labels; ``author_fields`` counts the
    fields. ``field_names`` are the names of all header fields in order, in
    lower case, ``repeated_fields`` those that occur more than once though they
    may not (RFC 5322 3.6), ``raw_8bit_fields`` those with octets over 127.
    ``links`` are absolute http(s) URLs, ``link_hosts`` their host names in
    A-labels; both distinct and in order of appearance, never looked up.
    ``problems`` are sentences about what could not be read. ``overlap`` is how
    much of the HTML's words the text part has, in percent, nothing without both.
    """

    size: int = 0
    header_size: int = 0
    field_names: tuple[str, ...] = ()
    repeated_fields: tuple[str, ...] = ()
    raw_8bit_fields: tuple[str, ...] = ()
    author_fields: int = 0
    author_address: str = ""
    author_domains: tuple[str, ...] = ()
    authors: tuple[Author, ...] = ()
    subject: str = ""
    has_subject: bool = False
    date: DateFacts | None = None
    message_id: MessageIdFacts | None = None
    sender_address: str = ""
    reply_to_address: str = ""
    received_fields: int = 0
    long_lines: int = 0
    longest_line: int = 0
    content_type: str = "text/plain"
    parts: tuple[PartFacts, ...] = ()
    has_text: bool = False
    text_size: int = 0
    is_html_first: bool = False
    overlap: int | None = None
    placeholders: tuple[str, ...] = ()
    risky_attachments: tuple[str, ...] = ()
    html: HtmlFacts | None = None
    links: tuple[str, ...] = ()
    link_hosts: tuple[str, ...] = ()
    link_facts: LinkFacts = LinkFacts()
    unsubscribe: UnsubscribeFacts = UnsubscribeFacts()
    bulk: BulkFacts = BulkFacts()
    problems: tuple[str, ...] = ()

    def has_field(self, name: str) -> bool:
        """Tell whether the header has a field of this (lower case) name."""
        return name in self.field_names
