"""The rules of SpamAssassin that are shown and not counted, each with the reason.

Nothing is charged twice (DECISIONS.md section 3): what a check of ours judges
costs its own published deduction. The names are those of SpamAssassin 4.0's
rule files; a rule that is new there counts until it is named here.
"""

import re

_SPF = "The SPF check judges this."
_DKIM = "The DKIM check judges this."
_DMARC = "The DMARC check judges this."
_LISTS = "The blocklist check judges this."
_HOST = "The checks of reverse DNS and HELO judge this."
_HEADERS = "The checks of the header judge this."
_CONTENT = "The checks of MIME and HTML judge this."
_UNSUBSCRIBE = "The check of List-Unsubscribe judges this."
_ARC = "ARC is shown as information."
_WAY = "The way to this server says nothing about the content."
_HISTORY = "It depends on earlier mail, and the same mail is to get the same score."

_TABLE: tuple[tuple[str, str], ...] = (
    (r"(T_)?SPF_.*", _SPF),
    # To equals From, or a well-known HELO, and SPF fails: only the failure is a fault.
    (r"TO_EQ_FM_(DOM_)?SPF_FAIL|PDS_HELO_SPF_FAIL", _SPF),
    (r"(T_)?DKIM_.*|NML_ADSP_.*", _DKIM),
    (r"(T_)?DMARC_.*|KAM_DMARC_.*", _DMARC),
    # "Neither SPF nor DKIM passes", which is also true where both are not looked up.
    (r"FROM_BANK_NOAUTH|FROM_GOV_SPOOF|FROM_PAYPAL_SPOOF", "The SPF and DKIM checks judge this."),
    (r"RCVD_IN_.*|URIBL_.*|SURBL_.*|DKIMWL_.*|DKIMDOMAIN_IN_.*", _LISTS),
    (r"RDNS_.*|NO_RDNS_.*|PDS_HP_HELO_NORDNS|KHOP_HELO_FCRDNS", _HOST),
    (r"(T_)?HELO_.*|CK_HELO_.*|FSL_HELO_.*|RCVD_NUMERIC_HELO|RCVD_HELO_IP_MISMATCH", _HOST),
    (r"MISSING_DATE|MISSING_MID", _HEADERS),
    (r"MIME_HTML_ONLY(_MULTI)?", _CONTENT),
    (r"KHOP_UNSUB_EMAIL", _UNSUBSCRIBE),
    (r"ARC_.*", _ARC),
    (r"ALL_TRUSTED|NO_RELAYS|NO_RECEIVED|UNPARSEABLE_RELAY", _WAY),
    # A mail from a test network or by way of IPv6 is no better or worse for it.
    (r"RCVD_ILLEGAL_IP|TVD_RCVD_IP4?", _WAY),
    (r"AWL|TXREP", _HISTORY),
)
"""Whole names, as regular expressions; the first that fits counts."""

_RULES = tuple((re.compile(names, re.ASCII), reason) for names, reason in _TABLE)


def why_not_counted(name: str) -> str:
    """Say why a rule's points are not charged; empty: they are."""
    return next((reason for names, reason in _RULES if names.fullmatch(name)), "")
