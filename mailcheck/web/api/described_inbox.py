"""The operations of the developer inbox (SPEC.md section 4, DECISIONS.md section 4)."""

from mailcheck.web.api import described_parameters as parameters
from mailcheck.web.api.described_answers import DOWNLOAD, REFUSALS, missing
from mailcheck.wire.errors import Interrupted
from mailcheck.wire.inbox.checks import CheckedLinks, LinksToCheck, MessageChecks
from mailcheck.wire.inbox.messages import Message
from mailcheck.wire.inbox.overview import (
    Deleted,
    DeletedMany,
    Inbox,
    InboxAddress,
    Messages,
    RawMessage,
    Share,
)
from mailcheck.wire.inbox.waits import (
    GatheredMessages,
    ManyTimedOut,
    NoMessage,
    TimedOut,
    UnwantedMessage,
)
from mailcheck.wire.openapi.operations import Answer, Body, Link, Operation, json_body

_TAG = "Inbox"

_FILTERS = (
    parameters.TAG,
    parameters.TAG_PREFIX,
    parameters.TO,
    parameters.FROM,
    parameters.SUBJECT,
)

_CONTENT_FILTERS = (parameters.HEADER, parameters.TEXT, parameters.HAS_ATTACHMENT)

WAIT_FILTERS = (*_FILTERS, *_CONTENT_FILTERS, parameters.AFTER, parameters.WAIT_SINCE)

_CUT_SHORT = Answer(
    "The wait was cut short: ask again with `after` set to `cursor`.",
    [json_body("interrupted", Interrupted)],
    REFUSALS[503].headers,
)

_THIS = {"id": "$response.body#/id"}
_FIRST = {"id": "$response.body#/messages/0/id"}

_MESSAGE_LINKS = {
    "message": Link("getMessage", _THIS, "the message with everything"),
    "raw": Link("getRawMessage", _THIS, "the mail as it was sent"),
    "delete": Link("deleteMessage", _THIS, "delete it"),
    "next": Link("waitForMessage", {"after": "$response.body#/cursor"}, "wait for the next one"),
    "test": Link("scoreMessage", _THIS, "have it judged"),
    "checks": Link("getMessageChecks", _THIS, "check its HTML and links"),
}

INBOX_OVERVIEW = Operation(
    "getInbox",
    _TAG,
    "Look at the inbox",
    "Its address, how many messages it holds, and the tags in use, the newest first.",
    {200: Answer("The inbox.", [json_body("inbox", Inbox)])},
)

ADDRESS = Operation(
    "getInboxAddress",
    _TAG,
    "Take an address",
    "Gives an address to hand to the software under test, and the cursor to wait with. Every "
    "+tag is taken; nothing has to be created.",
    {
        200: Answer(
            "The address.",
            [json_body("address", InboxAddress)],
            links={
                "wait": Link(
                    "waitForMessage",
                    {"after": "$response.body#/cursor", "tag": "$response.body#/tag"},
                    "wait for mail to it",
                )
            },
        )
    },
    (parameters.ADDRESS_TAG, parameters.UNIQUE),
)

WAIT = Operation(
    "waitForMessage",
    _TAG,
    "Wait for a message",
    "Holds the request until a message matches, and gives the oldest that does; one that is "
    "there already is given at once. Every waiter that matches gets the message, nothing is "
    "consumed. Take a cursor first, trigger the mail, then wait with `after`.",
    {
        200: Answer("The message.", [json_body("waited message", Message)], links=_MESSAGE_LINKS),
        408: Answer(
            "No matching message arrived in time; what did arrive, and why it did not match, is "
            "in `seen`.",
            [json_body("timedOut", TimedOut)],
        ),
        503: _CUT_SHORT,
    },
    (*WAIT_FILTERS, parameters.TIMEOUT),
)

WAIT_MANY = Operation(
    "waitForMessages",
    _TAG,
    "Wait for several messages",
    "Holds the request until `count` messages match, and gives the oldest that do, all at once. "
    "Where fewer came in time, ask again with `after` set to `cursor`: those that came count "
    "again.",
    {
        200: Answer(
            "The messages.",
            [json_body("gathered", GatheredMessages)],
            links={
                "first": Link("getMessage", _FIRST, "the oldest message"),
                "next": Link(
                    "waitForMessages", {"after": "$response.body#/cursor"}, "wait for more"
                ),
            },
        ),
        408: Answer(
            "Not all came in time; `matched` did.", [json_body("manyTimedOut", ManyTimedOut)]
        ),
        503: _CUT_SHORT,
    },
    (*WAIT_FILTERS, parameters.COUNT, parameters.TIMEOUT),
)

WAIT_NONE = Operation(
    "expectNoMessage",
    _TAG,
    "Expect that no message comes",
    "Holds the request for so many seconds and then says that no message matches: none since "
    "`after` or `since`, else since the request. Answers as soon as one does, or as a mail to "
    "where none was expected is refused.",
    {
        200: Answer("None came.", [json_body("none", NoMessage)]),
        409: Answer("One came, or was refused.", [json_body("unwanted", UnwantedMessage)]),
        503: _CUT_SHORT,
    },
    (*WAIT_FILTERS, parameters.SILENCE),
)

MESSAGES_LIST = Operation(
    "listMessages",
    _TAG,
    "List messages",
    "Newest first, without text, HTML and headers.",
    {
        200: Answer(
            "A page of messages.",
            [json_body("messages", Messages)],
            links={
                "first": Link("getMessage", _FIRST, "the newest message"),
                "firstRaw": Link("getRawMessage", _FIRST, "the newest mail"),
                "firstHtml": Link("getMessageHtml", _FIRST, "its HTML"),
                "deleteFirst": Link("deleteMessage", _FIRST, "delete it"),
                "shareFirst": Link("renewMessageShare", _FIRST, "give it a new share link"),
            },
        )
    },
    (
        *_FILTERS,
        *_CONTENT_FILTERS,
        parameters.SEARCH,
        parameters.AFTER,
        parameters.SINCE,
        parameters.LIMIT,
        parameters.PAGE,
    ),
)

MESSAGES_DELETE = Operation(
    "deleteMessages",
    _TAG,
    "Delete messages",
    "Deletes all that match, without parameters all there are. Deleted mail is gone.",
    {200: Answer("How many were deleted.", [json_body("deleted many", DeletedMany)])},
    (*_FILTERS, parameters.AFTER, parameters.SINCE),
)

MESSAGE_SHOW = Operation(
    "getMessage",
    _TAG,
    "Read a message",
    "With headers, attachments, every candidate for a link or a code, and whether SPF, DKIM and "
    "DMARC vouch for the sender.",
    {
        200: Answer(
            "The message.",
            [json_body("message", Message)],
            links={
                **_MESSAGE_LINKS,
                "attachment": Link(
                    "getAttachment",
                    {**_THIS, "attachmentId": "$response.body#/attachments/0/id"},
                    "its first attachment",
                ),
            },
        ),
        404: missing("message"),
    },
    (parameters.MESSAGE,),
)

MESSAGE_DELETE = Operation(
    "deleteMessage",
    _TAG,
    "Delete a message",
    "Its share link dies with it.",
    {
        200: Answer("It is gone.", [json_body("deleted", Deleted)]),
        404: missing("message"),
    },
    (parameters.MESSAGE,),
)

MESSAGE_RAW = Operation(
    "getRawMessage",
    _TAG,
    "Read the mail as it was sent",
    "JSON with the mail as text, in Base64 where it is not UTF-8. With `Accept: message/rfc822` "
    "the exact bytes as a download.",
    {
        200: Answer(
            "The mail.",
            [json_body("raw", RawMessage), Body(media_type="message/rfc822")],
        ),
        404: missing("message"),
    },
    (parameters.MESSAGE,),
)

MESSAGE_HTML = Operation(
    "getMessageHtml",
    _TAG,
    "Download the HTML of a message",
    "As it was sent, not made safe: a download that no browser opens.",
    {
        200: Answer("The HTML.", [Body(media_type="text/html")], DOWNLOAD),
        404: missing("message"),
    },
    (parameters.MESSAGE,),
)

ATTACHMENT = Operation(
    "getAttachment",
    _TAG,
    "Download an attachment",
    "Decoded, with the media type that the mail gives it where that is one.",
    {
        200: Answer("The attachment.", [Body(media_type="*/*")], DOWNLOAD),
        404: missing("attachment"),
    },
    (parameters.MESSAGE, parameters.ATTACHMENT),
)

MESSAGE_CHECKS = Operation(
    "getMessageChecks",
    _TAG,
    "Check the HTML of a message",
    "What of its HTML and CSS which mail clients don't support, each with its lines; what keeps "
    "people from reading it; and its links. Nothing is fetched for it, and no score changes by it.",
    {
        200: Answer(
            "The checks.",
            [json_body("checks", MessageChecks)],
            links={"links": Link("checkMessageLinks", _THIS, "ask whether its links work")},
        ),
        404: missing("message"),
    },
    (parameters.MESSAGE,),
)

LINK_CHECKS = Operation(
    "checkMessageLinks",
    _TAG,
    "Ask whether the links of a message work",
    "Sends a request for each link, HEAD unless GET is asked for, and follows its redirects. "
    "Without `urls` all links are asked for but the best one and those that leave a list, which a "
    "request may use up. Hosts on private addresses are not asked. An account may ask for 200 "
    "links in a minute and 5,000 in a day; what is beyond is `not-checked`.",
    {
        200: Answer("What came of it.", [json_body("checked links", CheckedLinks)]),
        404: missing("message"),
    },
    (parameters.MESSAGE,),
    json_body("links to check", LinksToCheck),
)

MESSAGE_SHARE = Operation(
    "renewMessageShare",
    _TAG,
    "Give a message a new share link",
    "The old link is dead from now on.",
    {
        200: Answer("The new link.", [json_body("share", Share)]),
        404: missing("message"),
    },
    (parameters.MESSAGE,),
)
