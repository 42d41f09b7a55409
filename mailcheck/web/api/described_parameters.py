"""The parameters of the routes, described by the limits that they are read with."""

from mailcheck.api.deliverability.tests import NameOfTest
from mailcheck.api.inbox.overview import MessageName
from mailcheck.api.openapi.operations import Parameter
from mailcheck.api.parameters import FIELD_NAME_PATTERN, MAX_HEADERS, MAX_TEXT
from mailcheck.api.schemas import Schema, array_of, boolean, like, number, text, whole_number
from mailcheck.checks.dnsbl.mail_addresses import MAX_ADDRESSES
from mailcheck.core.addresses import DOT_ATOM_PATTERN, MAX_TAG
from mailcheck.core.identifiers import SHORT_ID_LENGTH
from mailcheck.core.receiver_reports import LARGEST_REPORT_PAGE
from mailcheck.core.search import EXAMPLES
from mailcheck.operations.ranges import (
    DEFAULT_PAGE,
    DEFAULT_REPORT_DAYS,
    DEFAULT_SILENCE,
    DEFAULT_WAIT,
    LARGEST_PAGE,
    LAST_PAGE,
    LONGEST_WAIT,
    MAX_SELECTORS,
    MOST_REPORT_DAYS,
    MOST_WAITED_FOR,
    SHORTEST_WAIT,
)

EXAMPLE_MESSAGE = "01a1fc41-0219-76dd-ac7e-95beebac7c40"
EXAMPLE_TEST = "k5m2c7qxw4h3a"

_TEXT: Schema = {**text(), "maxLength": MAX_TEXT, "pattern": r"^[^\x00]*$"}
"""A NUL is no text, in no parameter."""

_NAME: Schema = {**_TEXT, "minLength": 1}


def _query(name: str, description: str, schema: Schema, example: str | None = None) -> Parameter:
    return Parameter(name, "query", description, schema, example)


TAG = _query(
    "tag",
    f"Only mail to the address with this +tag, compared without case; empty: untagged mail. "
    f"At most {MAX_TAG} octets of UTF-8.",
    {**text(), "maxLength": MAX_TAG, "pattern": f"^(?:{DOT_ATOM_PATTERN})?$"},
    "signup",
)

TAG_PREFIX = _query(
    "tagPrefix",
    "Only mail to addresses whose +tag begins with this, compared without case; empty: any. One "
    "run of a suite gives all its tags one beginning.",
    {**text(), "maxLength": MAX_TAG, "pattern": rf"^(?:{DOT_ATOM_PATTERN}\.?)?$"},
    "run-7-",
)

ADDRESS_TAG = _query("tag", "The +tag of the address; none without it.", TAG.schema, "signup")

UNIQUE = _query(
    "unique",
    "true: the service picks a tag that never collides, or puts such an ending behind `tag`, "
    f"which then has at most {MAX_TAG - SHORT_ID_LENGTH - 1} octets.",
    {**boolean(), "default": False},
)

TO = _query(
    "to",
    "Only mail to this whole address, compared without case; for mail that came in over the "
    "submission port, where any recipient is taken. Empty: any.",
    {"anyOf": [{"type": "string", "format": "email"}, {"const": ""}]},
)

FROM = _query(
    "from", "Only mail whose author's address or name contains this, without case.", _TEXT
)

SUBJECT = _query("subject", "Only mail whose subject contains this, without case.", _TEXT)

HEADER = _query(
    "header",
    "Only mail with this header field: its name, a colon and a part of its value, without case; "
    "repeat it for more, all of which must be there. Known as soon as a mail was taken apart: a "
    "wait sees to that, a list shows what is known.",
    array_of({**_TEXT, "pattern": rf"^{FIELD_NAME_PATTERN}:[^\x00]*$"}, maxItems=MAX_HEADERS),
)

TEXT = _query(
    "text",
    "Only mail whose text contains this, without case; of a mail that has HTML alone, what is "
    "seen of it. Known as `header` is.",
    _TEXT,
)

HAS_ATTACHMENT = _query(
    "hasAttachment",
    "true: only mail with an attachment; false: without. Pictures that the HTML shows in its text "
    "do not count. Known as `header` is.",
    boolean(),
)

SEARCH = _query(
    "q",
    'Only mail that matches all of this: words and "phrases" in subject, text, addresses or '
    "attachments' names, and terms: "
    + "; ".join(f"`{example}` ({meaning})" for example, meaning in EXAMPLES if ":" in example)
    + ". Case and accents don't count. Another prefix is text, like the `https:` of a link.",
    _TEXT,
    "from:shop newer:2h",
)

AFTER = _query(
    "after",
    "Only mail that arrived after this cursor. Take one before the mail is triggered (from "
    "`GET /inbox/address` or any message) and pass it back unchanged: no clock is involved.",
    _NAME,
    "c0",
)

SINCE = _query(
    "since",
    "Only mail received at or after this moment: an ISO 8601 date and time; without an offset "
    "it is UTC.",
    {"type": "string", "format": "date-time"},
    "2026-11-21T10:00:00.000Z",
)

WAIT_SINCE = _query(
    "since",
    "Only mail received at or after this moment: an ISO 8601 date and time; without an offset "
    "it is UTC. Without it, and without `after`: the moment of the request.",
    SINCE.schema,
)

FILTERS = (TAG, TAG_PREFIX, TO, FROM, SUBJECT)
"""What chooses messages by what a list shows of them."""

CONTENT_FILTERS = (HEADER, TEXT, HAS_ATTACHMENT)
"""What chooses messages by what is in them."""

WAIT_FILTERS = (*FILTERS, *CONTENT_FILTERS, AFTER, WAIT_SINCE)
"""What a wait or a stream can ask for."""

TIMEOUT = _query(
    "timeout",
    "Seconds to wait.",
    number(minimum=SHORTEST_WAIT, maximum=LONGEST_WAIT, default=DEFAULT_WAIT),
    "20",
)

COUNT = _query(
    "count",
    "Messages to wait for.",
    whole_number(minimum=1, maximum=MOST_WAITED_FOR, default=1),
    "3",
)

SILENCE = _query(
    "seconds",
    "Seconds from the request on in which none is to come.",
    number(minimum=SHORTEST_WAIT, maximum=LONGEST_WAIT, default=DEFAULT_SILENCE),
    "5",
)

LIMIT = _query(
    "limit",
    "Entries on a page.",
    whole_number(minimum=1, maximum=LARGEST_PAGE, default=DEFAULT_PAGE),
)

PAGE = _query("page", "Which page.", whole_number(minimum=1, maximum=LAST_PAGE, default=1))

MESSAGE = Parameter(
    "id", "path", "The message.", like(MessageName), EXAMPLE_MESSAGE, is_required=True
)

ATTACHMENT = Parameter(
    "attachmentId", "path", "The attachment: its `id` in the message.", text(), "1", True
)

TEST = Parameter("testId", "path", "The test.", like(NameOfTest), EXAMPLE_TEST, is_required=True)

DOMAIN = Parameter(
    "domain",
    "query",
    "A domain of the public DNS, in any script: no URL, no mail address, no IP address, no "
    "single label.",
    _NAME,
    "example.com",
    is_required=True,
)

REPORT_DAYS = _query(
    "days",
    "Days that it is about, up to today.",
    whole_number(minimum=1, maximum=MOST_REPORT_DAYS, default=DEFAULT_REPORT_DAYS),
)

REPORT_LIMIT = _query(
    "limit",
    "Rows on a page: senders, or results.",
    whole_number(minimum=1, maximum=LARGEST_REPORT_PAGE, default=LARGEST_REPORT_PAGE),
)

REPORTER = _query(
    "reporter",
    "All reports of this reporter, as `GET /reports` names it; empty: reports without a reporter.",
    _TEXT,
    "google.com",
)

REPORT_DAY = _query(
    "day",
    "All reports about this day (UTC): the one in which they begin. A report that names no time "
    "belongs to the day on which it came.",
    {"type": "string", "format": "date"},
    "2026-11-19",
)

BLOCKLIST_QUERY = Parameter(
    "query",
    "query",
    "A public IPv4 or IPv6 address, or a domain name.",
    _NAME,
    "192.0.2.1",
    is_required=True,
)

SELECTOR = _query(
    "selector",
    "DKIM selectors to look at beside the known ones; repeat it for more.",
    array_of({**_NAME}, maxItems=MAX_SELECTORS),
)

SENDING_ADDRESS = _query(
    "ip",
    "Public addresses that the domain sends from; repeat it for more.",
    array_of(
        {"anyOf": [{"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"}]},
        maxItems=MAX_ADDRESSES,
    ),
)

REFRESH = _query(
    "refresh", "true: check anew, whatever is in the cache.", {**boolean(), "default": False}
)
