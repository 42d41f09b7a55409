"""Facts about a mail's bytes for a report, as plain values that can be pickled."""

from msgspec import Struct

from mailcheck.core.instants import Instant


class DateFacts(Struct, frozen=True):
    """A Date field. ``instant`` is `None` if the field cannot be read.

    ``problem`` completes the sentence "the Date field ..." and is empty for a valid field.
    """

    text: str
    instant: Instant | None = None
    problem: str = ""


class MessageIdFacts(Struct, frozen=True):
    """A Message-ID field; ``domain`` is the part after the @, in lower case."""

    text: str
    is_well_formed: bool = True
    domain: str = ""


class Author(Struct, frozen=True):
    """A mailbox of a From field; ``domain`` is in A-labels, or empty if it is not a domain name."""

    address: str
    display_name: str
    domain: str


class PartFacts(Struct, frozen=True):
    """A part without subparts: ``size`` in octets as sent, ``depth`` 0 for the mail itself."""

    content_type: str
    charset: str
    encoding: str
    disposition: str
    filename: str
    size: int
    depth: int


class HtmlFacts(Struct, frozen=True):
    """The HTML of a mail; counts are of its first 512 KiB.

    ``size`` is in octets of UTF-8, ``visible_length`` in characters. ``active_elements`` are the
    names of elements that mail programs remove or block (scripts, frames, ...). ``unclosed`` are
    the names of elements without an end tag. ``preheader`` is the text that message lists show
    after the subject.
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
    """Targets of the links of a mail; each tuple is distinct and in order of appearance.

    ``disguised`` are pairs of the host in the link text and the host of the target. ``relative``
    is the number of links that do not work in a mail.
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
    """List-Unsubscribe (RFC 2369) and List-Unsubscribe-Post (RFC 8058) as sent.

    ``uris`` are those in angle brackets, in order. ``post`` is the body of the other field, or
    `None` without it. ``body_links`` is the number of links whose text offers to unsubscribe.
    ``is_encoded`` is true if a field has its value in encoded words (RFC 2047).
    """

    is_present: bool = False
    uris: tuple[str, ...] = ()
    post: str | None = None
    body_links: int = 0
    is_encoded: bool = False


class BulkFacts(Struct, frozen=True):
    """Signs of bulk mail: ``list_fields`` are field names in lower case."""

    list_fields: tuple[str, ...] = ()
    precedence: str = ""
    auto_submitted: str = ""
    feedback_id: str = ""


class MailFacts(Struct, frozen=True):
    """Facts about one mail from its header, parts, HTML and links.

    ``author_address`` is the first mailbox of the first From field. ``author_domains`` are the
    distinct domains of all mailboxes of all From fields (RFC 5322 3.6.2), in lower-case A-labels.
    ``author_fields`` is the number of From fields. ``field_names`` are the names of all header
    fields in order, in lower case. ``repeated_fields`` are fields that occur more than once but
    must not (RFC 5322 3.6). ``raw_8bit_fields`` are fields with octets over 127. ``links`` are
    absolute http(s) URLs and ``link_hosts`` their host names in A-labels; both are distinct and
    in order of appearance, and are never looked up. ``problems`` are sentences about parts that
    cannot be read. ``overlap`` is the percentage of the HTML's words that the text part has, or
    `None` without both parts.
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
        """Return whether the header has a field with this lower-case name."""
        return name in self.field_names
