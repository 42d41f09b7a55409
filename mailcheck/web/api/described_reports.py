"""The operations on receivers' reports."""

from mailcheck.web.api import described_parameters as parameters
from mailcheck.wire.domains.receiver_reports import DmarcOverview, KeptReports, TlsOverview
from mailcheck.wire.openapi.operations import Answer, Operation, json_body

_TAG = "Reports of receivers"

REPORTS_LIST = Operation(
    "listReports",
    _TAG,
    "List the reports that have come",
    "DMARC aggregate reports and TLS reports about the account's domains, newest first: those "
    "that are counted, and those that are not, with the reason. And the addresses to which they "
    "are sent, for the records that ask for them.",
    {200: Answer("A page of reports.", [json_body("reports", KeptReports)])},
    (parameters.LIMIT, parameters.PAGE),
)

REPORTS_DMARC = Operation(
    "getDmarcReports",
    _TAG,
    "Say who sends as a domain",
    "What the counted DMARC reports say together: who sends as the domain, from where, what fails "
    "and why, what p=reject would stop, and what to do for each. Who is not known comes first.",
    {200: Answer("The overview.", [json_body("dmarc reports", DmarcOverview)])},
    (parameters.DOMAIN, parameters.REPORT_DAYS),
)

REPORTS_TLS = Operation(
    "getTlsReports",
    _TAG,
    "Say whether mail comes in encrypted",
    "What the counted TLS reports say together: sessions that could not be encrypted on their way "
    "to the domain, why, and what to do.",
    {200: Answer("The overview.", [json_body("tls reports", TlsOverview)])},
    (parameters.DOMAIN, parameters.REPORT_DAYS),
)
