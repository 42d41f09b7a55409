"""The operations of the domain tools (SPEC.md section 4, DECISIONS.md section 2)."""

from mailcheck.web.api import described_parameters as parameters
from mailcheck.wire.domains.blocklists import BlacklistCheck, Blacklists, BlacklistsUnanswered
from mailcheck.wire.domains.mx import MxCheck, MxUndetermined
from mailcheck.wire.domains.report import DomainReport
from mailcheck.wire.domains.reputation import Reputation, ReputationUndetermined
from mailcheck.wire.errors import Crash
from mailcheck.wire.openapi.operations import Answer, Operation, json_body
from mailcheck.wire.shapes import Shape

_TAG = "Domain tools"


def _undetermined(shape: type[Shape], example: str, description: str) -> Answer:
    """Give a 500 that is none of our faults, beside the one that is."""
    return Answer(
        f"{description} Or the service failed: then `reference` is there.",
        [json_body(example, shape, Crash)],
    )


MX_CHECK_OPERATION = Operation(
    "checkMx",
    _TAG,
    "Check MX, SPF and DMARC",
    "Where mail for a domain goes, and what it says about mail that claims to be from it.",
    {
        200: Answer("All of it is known.", [json_body("mx check", MxCheck)]),
        500: _undetermined(
            MxUndetermined,
            "mx undetermined",
            "MX, SPF or DMARC could not be determined after retries; `partial` has the rest.",
        ),
    },
    (parameters.DOMAIN,),
)

BLACKLIST_CHECK_OPERATION = Operation(
    "checkBlacklists",
    _TAG,
    "Check 32 blocklists",
    "All lists are asked at once. Of a domain, 12 lists are asked about its name and 20 about "
    "its mail addresses.",
    {
        200: Answer("One row for each list.", [json_body("blacklist check", BlacklistCheck)]),
        500: _undetermined(BlacklistsUnanswered, "blacklists unanswered", "No list answered."),
    },
    (parameters.BLOCKLIST_QUERY,),
)

BLACKLISTS_OPERATION = Operation(
    "listBlacklists",
    _TAG,
    "List the blocklists",
    "The catalogue, with the health of each list: they are tested on start and every 30 minutes.",
    {200: Answer("The lists.", [json_body("blacklists", Blacklists)])},
)

REPUTATION_OPERATION = Operation(
    "getReputation",
    _TAG,
    "Score a domain",
    "From 0 to 100 with a letter grade, made of eight factors, each with what it contributes, "
    "what fixing it would add, and the record to publish. Kept for an hour.",
    {
        200: Answer("The score.", [json_body("reputation", Reputation)]),
        500: _undetermined(
            ReputationUndetermined,
            "reputation undetermined",
            "Too much could not be determined to give a grade.",
        ),
    },
    (
        parameters.DOMAIN,
        parameters.SELECTOR,
        parameters.SENDING_ADDRESS,
        parameters.REFRESH,
    ),
)

DOMAIN_OPERATION = Operation(
    "describeDomain",
    _TAG,
    "Describe a domain",
    "Everything that is known about its mail set-up: the SPF tree with its lookup counts, DKIM "
    "keys, DMARC, MTA-STS, TLS-RPT, DANE and DNSSEC, each with what is wrong and what to publish.",
    {200: Answer("The domain.", [json_body("domain", DomainReport)])},
    (parameters.DOMAIN, parameters.SELECTOR),
)
