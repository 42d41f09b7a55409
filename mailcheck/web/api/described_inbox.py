"""The operations of the developer inbox (SPEC.md section 4, DECISIONS.md section 4)."""

from mailcheck.web.api import described_parameters as parameters
from mailcheck.web.api.described_answers import DOWNLOAD, REFUSALS, missing
from mailcheck.wire.errors import Interrupted
from mailcheck.wire.inbox.messages import Message
from mailcheck.wire.inbox.overview import (
    Deleted,
    DeletedMany,
    Inbox,
    InboxAddress,
    Messages,
    RawMessage,
    Share,
    TimedOut,
)
from mailcheck.wire.openapi.operations import Answer, Body, Link, Operation, json_body

_TAG = "Inbox"

_FILTERS = (
    parameters.TAG,
    parameters.TO,
    parameters.FROM,
    parameters.SUBJECT,
)

_MESSAGE_LINKS = {
    "message": Link("getMessage", {"id": "$response.body#/id"}, "the message with everything"),
    "raw": Link("getRawMessage", {"id": "$response.body#/id"}, "the mail as it was sent"),
    "delete": Link("deleteMessage", {"id": "$response.body#/id"}, "delete it"),
    "next": Link("waitForMessage", {"after": "$response.body#/cursor"}, "wait for the next one"),
    "test": Link("scoreMessage", {"id": "$response.body#/id"}, "have it judged"),
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
        503: Answer(
            "The wait was cut short: ask again with `after` set to `cursor`.",
            [json_body("interrupted", Interrupted)],
            REFUSALS[503].headers,
        ),
    },
    (*_FILTERS, parameters.AFTER, parameters.WAIT_SINCE, parameters.TIMEOUT),
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
                "first": Link(
                    "getMessage", {"id": "$response.body#/messages/0/id"}, "the newest message"
                ),
                "firstRaw": Link(
                    "getRawMessage", {"id": "$response.body#/messages/0/id"}, "the newest mail"
                ),
                "firstHtml": Link(
                    "getMessageHtml", {"id": "$response.body#/messages/0/id"}, "its HTML"
                ),
                "deleteFirst": Link(
                    "deleteMessage", {"id": "$response.body#/messages/0/id"}, "delete it"
                ),
                "shareFirst": Link(
                    "renewMessageShare",
                    {"id": "$response.body#/messages/0/id"},
                    "give it a new share link",
                ),
            },
        )
    },
    (
        *_FILTERS,
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
                    {
                        "id": "$response.body#/id",
                        "attachmentId": "$response.body#/attachments/0/id",
                    },
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
