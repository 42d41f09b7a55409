"""The rules of SpamAssassin that are shown and not counted, each with the reason.

Nothing is charged twice (DECISIONS.md section 3): what a check of ours judges
costs its own published deduction. The names are those of SpamAssassin 4.0's
rule files; a rule that is new there counts until it is named here.
"""

import re

_SPF = "The SPF check judges this."
_DKIM = "The DKIM check judges this."
_BOTH = "The SPF and DKIM checks judge this."
_DMARC = "The DMARC check judges this."
_LISTS = "The blocklist check judges this."
_HOST = "The checks of reverse DNS and HELO judge this."
_HEADERS = "The checks of the header judge this."
_CONTENT = "The checks of MIME and HTML judge this."
_UNSUBSCRIBE = "The check of List-Unsubscribe judges this."
_ARC = "ARC is shown as information."
_REFUSED = "A list refused to answer the filter, which says nothing about the mail."
_WAY = "The way to this server says nothing about the content."
_HISTORY = "It depends on earlier mail, and the same mail is to get the same score."

_TABLE: tuple[tuple[str, str], ...] = (
    (r"(T_)?SPF_.*", _SPF),
    # To equals From, or a well-known HELO, and SPF fails: only the failure is a fault. That
    # From is misspaced has a rule of its own.
    (r"TO_EQ_FM_(DOM_)?SPF_FAIL|PDS_HELO_SPF_FAIL|FROM_MISSP_SPF_FAIL|FORGED_SPF_HELO", _SPF),
    (r"(T_)?DKIM_.*|NML_ADSP_.*", _DKIM),
    (r"(T_)?DMARC_.*|KAM_DMARC_.*", _DMARC),
    # A From that is missing; an envelope sender of another domain, as every provider uses one.
    (r"MISSING_FROM|HEADER_FROM_DIFFERENT_DOMAINS|FREEMAIL_FORGED_FROMDOMAIN", _DMARC),
    # "Neither SPF nor DKIM passes", which is also true where both are not looked up.
    (r"FROM_BANK_NOAUTH|FROM_GOV_SPOOF|FROM_PAYPAL_SPOOF|SPOOFED_FREEMAIL(_NO_RDNS)?", _BOTH),
    # Before the lists: those that charge nobody for what they would not say.
    (r"\w+_(ND)?BLOCKED", _REFUSED),
    (r"RCVD_IN_.*|URIBL_.*|SURBL_.*|DKIMWL_.*|DKIMDOMAIN_IN_.*", _LISTS),
    (r"RDNS_.*|NO_RDNS_.*|PDS_HP_HELO_NORDNS|KHOP_HELO_FCRDNS", _HOST),
    (r"(T_)?HELO_.*|CK_HELO_.*|FSL_HELO_.*|RCVD_NUMERIC_HELO|RCVD_HELO_IP_MISMATCH", _HOST),
    (r"RCVD_FAKE_HELO_DOTCOM|NSL_RCVD_HELO_USER|FSL_NEW_HELO_USER", _HOST),
    # The host's names again, with something beside them that is no fault or has its own rule.
    (r"DYN_RDNS_(AND|SHORT)_\w+|SHORT_HELO_AND_INLINE_IMAGE|FROM_MISSP_DYNIP", _HOST),
    (r"MISSING_DATE|MISSING_MID", _HEADERS),
    # Of the other two, that To equals From or lacks brackets is no fault.
    (r"MIME_HTML_ONLY(_MULTI)?|TO_EQ_FM_HTML_ONLY|TO_NO_BRKTS_(HTML_ONLY|NORDNS_HTML)", _CONTENT),
    (r"KHOP_UNSUB_EMAIL|FSL_BULK_SIG", _UNSUBSCRIBE),
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
