"""The schemas that have a name in the document, and schemas written with references to them."""

from collections.abc import Mapping, Sequence

from mailcheck.wire.deliverability import check_schemas as checks
from mailcheck.wire.deliverability import report_schemas as report
from mailcheck.wire.deliverability import schemas as tests
from mailcheck.wire.domains import report_schemas as domain_report
from mailcheck.wire.domains import schemas as domain
from mailcheck.wire.inbox import message_schemas as messages
from mailcheck.wire.inbox import schemas as inbox
from mailcheck.wire.json_values import JsonValue
from mailcheck.wire.schemas import Schema

NAMED: Mapping[str, Schema] = {
    "Error": inbox.ERROR,
    "Crash": inbox.CRASH,
    "Interrupted": inbox.INTERRUPTED,
    "Inbox": inbox.INBOX,
    "InboxAddress": inbox.INBOX_ADDRESS,
    "Message": inbox.MESSAGE,
    "ListedMessage": messages.LISTED_MESSAGE,
    "Messages": inbox.MESSAGES,
    "TimedOut": inbox.TIMED_OUT,
    "RawMessage": inbox.RAW_MESSAGE,
    "Deleted": inbox.DELETED,
    "DeletedMany": inbox.DELETED_MANY,
    "Share": inbox.SHARE,
    "Author": messages.AUTHOR,
    "Attachment": messages.ATTACHMENT,
    "Envelope": messages.ENVELOPE,
    "Candidate": messages.CANDIDATE,
    "SeenMessage": messages.SEEN_MESSAGE,
    "RefusedMail": messages.REFUSED_MAIL,
    "Authentication": checks.AUTHENTICATION,
    "Signature": checks.SIGNATURE,
    "MxCheck": domain.MX_CHECK,
    "MxUndetermined": domain.MX_UNDETERMINED,
    "MailHost": domain.MAIL_HOST,
    "BlacklistCheck": domain.BLACKLIST_CHECK,
    "BlacklistsUnanswered": domain.BLACKLISTS_UNANSWERED,
    "Listing": domain.LISTING,
    "Blacklists": domain.BLACKLISTS,
    "Reputation": domain.REPUTATION,
    "ReputationUndetermined": domain.REPUTATION_UNDETERMINED,
    "Factor": domain.FACTOR,
    "ReputationDetails": domain.DETAILS,
    "DnsRecord": domain.DNS_RECORD,
    "DomainFinding": domain.DOMAIN_FINDING,
    "DomainReport": domain_report.DOMAIN_REPORT,
    domain_report.SPF_NODE_NAME: domain_report.SPF_NODE,
    "DkimKey": domain_report.DKIM_KEY,
    "NewTest": tests.NEW_ADDRESS,
    "Test": tests.DELIVERABILITY_TEST,
    "ListedTest": tests.LISTED_TEST,
    "Tests": tests.TESTS,
    "TestWaitOver": tests.TEST_WAIT_OVER,
    "Recheck": tests.RECHECK,
    "TestShare": tests.TEST_SHARE,
    "RawTestMail": tests.RAW_TEST_MAIL,
    "PreflightRecords": tests.PREFLIGHT_BODY,
    "Preflight": tests.PREFLIGHT,
    "TestedMail": tests.EMAIL,
    "Deduction": tests.DEDUCTION,
    "Checks": checks.CHECKS,
    "SpfCheck": checks.SPF_CHECK,
    "DkimCheck": checks.DKIM_CHECK,
    "DmarcCheck": checks.DMARC_CHECK,
    "BlacklistMailCheck": checks.BLACKLIST_MAIL_CHECK,
    "ContentCheck": checks.CONTENT_CHECK,
    "MailFinding": report.FINDING,
    "Report": report.REPORT,
    "Checklist": report.CHECKLIST,
}
"""By the names that generators give to the types of their clients."""

_PREFIX = "#/components/schemas/"
_NAMES = {id(schema): name for name, schema in NAMED.items()}


def with_references(schema: Schema) -> JsonValue:
    """Write a schema with a reference wherever one of the named stands, itself included."""
    name = _NAMES.get(id(schema))
    return _inside(schema) if name is None else {"$ref": _PREFIX + name}


def component_schemas() -> Mapping[str, JsonValue]:
    """Write the named schemas, each with references to the others."""
    return {name: _inside(schema) for name, schema in NAMED.items()}


def _inside(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {name: _referring(one) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_referring(one) for one in value]
    return value


def _referring(value: JsonValue) -> JsonValue:
    return with_references(value) if isinstance(value, Mapping) else _inside(value)
