"""The declaration of MailSlurp's API."""

from collections.abc import Sequence
from typing import Any

from twisted.web.server import Request

from mailcheck.core.errors import InvalidCredentials
from mailcheck.core.rights import Scope
from mailcheck.web.compatible.facade import (
    SENDS_NOTHING,
    NoParameters,
    declare,
    make_facade,
    not_offered,
    with_notes,
)
from mailcheck.web.compatible.mailslurp.handlers import (
    ByAddress,
    CodeOptions,
    FindEmails,
    MailSlurp,
    MarkRead,
    NewInbox,
    OfInbox,
    Pattern,
    WebhookToCreate,
)
from mailcheck.web.compatible.mailslurp.names import InboxNames
from mailcheck.web.site import costs
from mailcheck.web.site.application import Route
from mailcheck.web.site.failures import NOT_IMPLEMENTED, PathUnknown, Problem, RefusedAsProduct
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.web.site.requests import header_values


def write_error(problem: Problem) -> Reply:
    """Return an error as MailSlurp's clients show it."""
    failure, status = problem.failure, problem.status
    if isinstance(failure, PathUnknown):
        # The clients have about 850 calls, and their errors show the sentence.
        failure, status = RefusedAsProduct(problem.sentence, NOT_IMPLEMENTED), NOT_IMPLEMENTED
    kind = "NotOffered" if isinstance(failure, RefusedAsProduct) else type(failure).__name__
    return json_reply({"message": problem.sentence, "errorClass": kind, "status": status}, status)


def read_key(request: Request) -> str:
    """Return the API key of a request.

    :raises InvalidCredentials: there is none.
    """
    found = [value.strip() for value in header_values(request, b"X-API-Key") if value.strip()]
    if not found:
        raise InvalidCredentials("an API key is missing: send it as x-api-key")
    return found[0]


_READ, _WRITE, _HOOKS = (Scope.INBOX_READ,), (Scope.INBOX_WRITE,), (Scope.WEBHOOKS,)
_BOTH = (*_READ, *_WRITE)
_EMAIL, _FILE, _INBOX = "/emails/<id>", "/attachments/<file>", "/inboxes/<id>"
_HOOK, _HOOKS_OF_INBOX = "/webhooks/<hook>", f"{_INBOX}/webhooks"
_SENDING = (
    ("POST", _INBOX),
    ("POST", f"{_INBOX}/confirm"),
    ("POST", f"{_INBOX}/with-queue"),
    ("POST", f"{_INBOX}/smtp-envelope"),
    ("POST", f"{_EMAIL}/forward"),
    ("PUT", _EMAIL),
    ("POST", "/emails"),
    ("POST", "/sendEmail"),
    ("POST", "/sendEmailQuery"),
    ("POST", "/attachments"),
)
_NO_SMS = "mailcheck receives no text messages"
_NO_AI = "mailcheck has no language model: use codes, links and patterns"

_NO_LOGIN_DATA = (
    "mail programs log in with the name of the inbox and the API key: the ports are those of "
    "[imap] listen and [smtp] submission_listen"
)
_NOT_LISTED = "names and tags of inboxes are kept with each inbox, and not searched"
_NO_TEAM = "mailcheck has no organizations: the members of a project use its inbox with their keys"
_NO_PLUS = "an inbox is a +tag already: create one for each address"
_NO_JOBS = "mailcheck sends no captured mail to the outside, also not later"
_NO_RULES = "mailcheck has no rules of inboxes"
_NO_EXPIRY = "mailcheck has no expired inboxes: mail expires with the retention of the inbox"
_NO_THREADS = "mailcheck has no threads: search for Message-ID and In-Reply-To"
_NO_PREVIEWS = "mailcheck takes no pictures of mail in other mail programs"
_NO_DRAFTS = "mailcheck has no drafts"
_NO_LOOKUP = "mailcheck asks no other service about an address"
_NO_RESULTS = "the deliveries of webhooks are on the page of webhooks on the dashboard"
_FIXED_HOOKS = "a webhook is not changed: delete it, and create another"
_NO_FILES = "files are listed and deleted with their message"
_SIGNED = "events have the form and the signature of mailcheck's webhooks"
_ELSEWHERE = (
    ("GET", "/inboxes/imap-access", _NO_LOGIN_DATA),
    ("PATCH", "/inboxes/imap-access", _NO_LOGIN_DATA),
    ("GET", "/inboxes/smtp-access", _NO_LOGIN_DATA),
    ("PATCH", "/inboxes/smtp-access", _NO_LOGIN_DATA),
    ("GET", "/inboxes/imap-smtp-access", _NO_LOGIN_DATA),
    ("GET", "/inboxes/imap-smtp-access/env", _NO_LOGIN_DATA),
    ("GET", "/inboxes/imap-smtp-access/servers", _NO_LOGIN_DATA),
    ("GET", "/inboxes/tags", _NOT_LISTED),
    ("GET", "/inboxes/tags/paginated", _NOT_LISTED),
    ("GET", "/inboxes/tags/inboxes", _NOT_LISTED),
    ("GET", "/inboxes/byName", _NOT_LISTED),
    ("POST", "/inboxes/search", _NOT_LISTED),
    ("DELETE", "/inboxes/by-tag", _NOT_LISTED),
    ("DELETE", "/inboxes/by-name", _NOT_LISTED),
    ("DELETE", "/inboxes/by-description", _NOT_LISTED),
    ("DELETE", "/inboxes/expired", _NO_EXPIRY),
    ("POST", "/inboxes/available", "each address of the inbox can be used: create an inbox"),
    ("GET", "/inboxes/automations", _NO_RULES),
    ("GET", "/inboxes/organization", _NO_TEAM),
    ("GET", "/inboxes/outboxes", SENDS_NOTHING),
    ("GET", "/inboxes/plus-addresses", _NO_PLUS),
    ("POST", "/inboxes/get-or-create-plus-address", _NO_PLUS),
    ("GET", "/inboxes/scheduled-jobs", _NO_JOBS),
    ("GET", "/emails/device-previews", _NO_PREVIEWS),
    ("GET", "/emails/drafts", _NO_DRAFTS),
    ("GET", "/emails/gravatarFor", _NO_LOOKUP),
    ("GET", "/emails/organization", _NO_TEAM),
    ("GET", "/emails/threads", _NO_THREADS),
    ("GET", "/webhooks/endpoints", _NO_RESULTS),
    ("GET", "/webhooks/results", _NO_RESULTS),
    ("GET", "/webhooks/test", _NO_RESULTS),
    ("DELETE", "/webhooks", "delete each webhook by its id"),
    ("PATCH", "/webhooks/<hook>", _FIXED_HOOKS),
    ("POST", "/webhooks/schema", _SIGNED),
    ("POST", "/webhooks/verify", _SIGNED),
    ("GET", "/attachments", _NO_FILES),
    ("DELETE", "/attachments", _NO_FILES),
    ("POST", "/emails/can-send", SENDS_NOTHING),
    ("POST", "/emails/check-email-client-support", _NO_PREVIEWS),
    ("POST", "/emails/drafts", _NO_DRAFTS),
    ("POST", "/emails/search", "search with GET /emails and searchFilter"),
)
"""Paths of MailSlurp in which a word stands where other paths have an id, or which have another
method here. No inbox, message or webhook is invented for them."""

_CREATE = ("", "/withOptions", "/withDefaults")
_NEW = "any id that can be a tag is an inbox; names, descriptions and tags are stored for 30 days"
_LISTED = "the tags with mail, newest first; a search or a tag is ignored"
_SORTED = "newest first"
_EMPTIED = "deletes the messages; the address still receives mail"
_NEWEST = "looks at the newest 100 messages of the inbox"
_PATTERNS = "a regular expression is one of Python, and may take a quarter of a second"
_NOTES = {
    **{f"POST /inboxes{ending}": _NEW for ending in _CREATE},
    "POST /createInbox": _NEW,
    "POST /newEmailAddress": _NEW,
    f"GET {_INBOX}": _NEW,
    f"PATCH {_INBOX}": "name, description and tags, for 30 days",
    "GET /inboxes": _LISTED,
    "GET /inboxes/paginated": _LISTED,
    "GET /inboxes/offset-paginated": _LISTED,
    f"DELETE {_INBOX}": _EMPTIED,
    "DELETE /deleteEmailAddress": _EMPTIED,
    f"GET {_INBOX}/emails": _NEWEST,
    f"GET {_INBOX}/emails/paginated": _SORTED,
    "GET /emails": f"{_SORTED}; of one inbox, or of all",
    "GET /emails/offset-paginated": f"{_SORTED}; of one inbox, or of all",
    "GET /waitForEmailCount": _NEWEST,
    "POST /waitFor": f"{_NEWEST}; {_PATTERNS}",
    "POST /waitForMatchingEmails": f"{_NEWEST}; {_PATTERNS}",
    "POST /waitForMatchingFirstEmail": f"`CONTAIN` and `EQUAL` ignore case; {_PATTERNS}",
    f"POST {_EMAIL}/codes": "found as in mailcheck, in about sixty languages; the confidence is 1",
    f"POST {_EMAIL}/contentMatch": _PATTERNS,
    "POST /webhooks": _SIGNED,
    f"POST {_HOOKS_OF_INBOX}": _SIGNED,
}
_ROUTES: Sequence[Route[Any]] = (
    *declare(
        _READ,
        costs.SMALL,
        *(("POST", f"/inboxes{ending}", MailSlurp.create_inbox, NewInbox) for ending in _CREATE),
        ("POST", "/createInbox", MailSlurp.create_inbox, NewInbox),
        ("POST", "/newEmailAddress", MailSlurp.create_inbox, NewInbox),
    ),
    *declare(
        _READ,
        costs.FREE,
        ("GET", "/inboxes", MailSlurp.inboxes, FindEmails),
        ("GET", "/inboxes/paginated", MailSlurp.inbox_page, FindEmails),
        ("GET", "/inboxes/offset-paginated", MailSlurp.inbox_page, FindEmails),
        ("GET", "/inboxes/ids", MailSlurp.inbox_ids, NoParameters),
        ("GET", "/inboxes/count", MailSlurp.count_inboxes, NoParameters),
        ("GET", "/inboxes/exists", MailSlurp.find_inbox, ByAddress),
        ("GET", "/inboxes/byEmailAddress", MailSlurp.find_inbox, ByAddress),
        ("GET", _INBOX, MailSlurp.inbox, NoParameters),
        ("GET", f"{_INBOX}/emails/count", MailSlurp.count, OfInbox),
        ("GET", "/emails/emails/count", MailSlurp.count, OfInbox),
        ("GET", "/emails/unreadCount", MailSlurp.count_unread, OfInbox),
        ("GET", f"{_EMAIL}/raw", MailSlurp.raw, NoParameters),
        ("GET", f"{_EMAIL}/raw/json", MailSlurp.raw_json, NoParameters),
    ),
    *declare(
        _READ,
        costs.PARTS,
        ("GET", "/inboxes/getLatestEmail", MailSlurp.latest, FindEmails),
        ("GET", f"{_INBOX}/emails", MailSlurp.list_of_inbox, FindEmails),
        ("GET", f"{_INBOX}/emails/paginated", MailSlurp.page, FindEmails),
        ("GET", "/waitForLatestEmail", MailSlurp.wait_for_latest, FindEmails),
        ("GET", "/waitForNthEmail", MailSlurp.wait_for_nth, FindEmails),
        ("GET", "/waitForEmailCount", MailSlurp.wait_for_count, FindEmails),
        ("POST", "/waitFor", MailSlurp.wait_for_count, FindEmails),
        ("POST", "/waitForMatchingEmails", MailSlurp.wait_for_count, FindEmails),
        ("POST", "/waitForMatchingFirstEmail", MailSlurp.wait_for_matching, FindEmails),
        ("GET", "/emails", MailSlurp.page, FindEmails),
        ("GET", "/emails/offset-paginated", MailSlurp.page, FindEmails),
        ("GET", "/emails/latest", MailSlurp.latest, FindEmails),
        ("GET", "/emails/latestIn", MailSlurp.latest, FindEmails),
        ("GET", _EMAIL, MailSlurp.email, NoParameters),
        ("GET", f"{_EMAIL}/summary", MailSlurp.summary, NoParameters),
        ("GET", f"{_EMAIL}/body", MailSlurp.body, NoParameters),
        ("GET", f"{_EMAIL}/html", MailSlurp.body, NoParameters),
        ("GET", f"{_EMAIL}/links", MailSlurp.links, NoParameters),
        ("GET", f"{_EMAIL}/textLines", MailSlurp.lines, NoParameters),
        ("POST", f"{_EMAIL}/codes", MailSlurp.codes, CodeOptions),
        ("POST", f"{_EMAIL}/contentMatch", MailSlurp.content_match, Pattern),
        ("GET", f"{_EMAIL}/attachments", MailSlurp.files, NoParameters),
        ("GET", f"{_EMAIL}{_FILE}", MailSlurp.file, NoParameters),
        ("GET", f"{_EMAIL}{_FILE}/base64", MailSlurp.file_base64, NoParameters),
        ("GET", f"{_EMAIL}{_FILE}/metadata", MailSlurp.file_facts, NoParameters),
        ("GET", f"{_FILE}/bytes", MailSlurp.file, NoParameters),
        ("GET", f"{_FILE}/base64", MailSlurp.file_base64, NoParameters),
        ("GET", f"{_FILE}/metadata", MailSlurp.file_facts, NoParameters),
    ),
    *declare(
        _WRITE,
        costs.FREE,
        ("DELETE", _INBOX, MailSlurp.empty_inbox, OfInbox),
        ("DELETE", f"{_INBOX}/deleteAllInboxEmails", MailSlurp.empty_inbox, OfInbox),
        ("DELETE", "/emptyInbox", MailSlurp.empty_inbox, OfInbox),
        ("DELETE", "/deleteEmailAddress", MailSlurp.empty_inbox, OfInbox),
        ("DELETE", "/inboxes", MailSlurp.delete_all, NoParameters),
        ("DELETE", "/emails", MailSlurp.delete_all, NoParameters),
        ("PATCH", "/emails/read", MailSlurp.mark_all_read, MarkRead),
    ),
    *declare(
        _HOOKS,
        costs.SMALL,
        ("POST", "/webhooks", MailSlurp.create_webhook, WebhookToCreate),
        ("POST", _HOOKS_OF_INBOX, MailSlurp.create_webhook, WebhookToCreate),
        ("DELETE", _HOOK, MailSlurp.delete_webhook, NoParameters),
        ("DELETE", f"{_INBOX}{_HOOK}", MailSlurp.delete_webhook, NoParameters),
    ),
    *declare(
        _HOOKS,
        costs.FREE,
        ("GET", _HOOKS_OF_INBOX, MailSlurp.webhooks, NoParameters),
        ("GET", "/webhooks/paginated", MailSlurp.webhook_page, FindEmails),
        ("GET", f"{_HOOKS_OF_INBOX}/paginated", MailSlurp.webhook_page, FindEmails),
        ("GET", _HOOK, MailSlurp.webhook, NoParameters),
    ),
    Route("DELETE", _EMAIL, MailSlurp.delete_email, NoParameters, costs.FREE, scopes=_BOTH),
    Route("PATCH", f"{_EMAIL}/read", MailSlurp.mark_read, MarkRead, costs.PARTS, scopes=_BOTH),
    Route("PATCH", _INBOX, MailSlurp.update_inbox, InboxNames, costs.SMALL, scopes=_WRITE),
    *(not_offered(method, path, SENDS_NOTHING) for method, path in _SENDING),
    *(not_offered(*row) for row in _ELSEWHERE),
    not_offered("POST", "/waitForLatestSms", _NO_SMS),
    not_offered("POST", "/waitForSms", _NO_SMS),
    not_offered("POST", "/waitForAIMessage", _NO_AI),
    not_offered("POST", "/waitForAIMessages", _NO_AI),
)

MAILSLURP = make_facade(
    name="mailslurp",
    title="MailSlurp",
    base="/mailslurp",
    read_key=read_key,
    write_error=write_error,
    routes=with_notes(_ROUTES, _NOTES),
)
