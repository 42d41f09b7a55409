"""SPF, DKIM and DMARC of an inbox message as JSON: like the checks of a report, without points."""

from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.wire.deliverability.checks import render_dmarc, render_signature, render_spf
from mailcheck.wire.json_values import JsonObject


def render_authentication(found: Authentication) -> JsonObject:
    """Give the results (RFC 8601 2.7); ``dkim`` has one entry for each signature."""
    identity, dmarc = found.spf.mail_from, found.dmarc
    return {
        "spf": {
            "result": identity.result.value,
            "detail": identity.explanation,
            "determined": identity.result.is_determined,
            **render_spf(found.spf, found.origin.client_ip),
        },
        "dkim": [render_signature(one, dmarc) for one in found.dkim.signatures],
        "dmarc": {
            "result": dmarc.result.value,
            "detail": dmarc.explanation,
            "determined": dmarc.result.is_determined,
            **render_dmarc(dmarc),
        },
    }
