"""A deliverability report as pages show it, read from the very JSON that was kept."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mailcheck.core.deliverability_tests import StoredReport
from mailcheck.web.dashboard.domains.view import score_level
from mailcheck.wire.deliverability.findings import points
from mailcheck.wire.json_values import JsonObject

BEST = 10
"""Points of a mail nobody finds fault with."""

AREAS: Mapping[str, str] = MappingProxyType(
    {
        "spf": "SPF and the sending host",
        "dkim": "DKIM",
        "dmarc": "DMARC",
        "blacklist": "Blocklists",
        "spamassassin": "Content filter",
        "authentication": "Authentication",
        "transport": "Transport",
        "headers": "Headers",
        "content": "Content",
        "links": "Links",
        "unsubscribe": "Unsubscribing",
        "arc": "ARC",
    }
)

RULES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "met": ("good", "met"),
        "not-met": ("bad", "not met"),
        "not-applicable": ("", "not for this mail"),
        "undetermined": ("unknown", "can't be told"),
    }
)
"""Result of a receiver's rule -> level and words."""


def view_stored_report(report: StoredReport) -> dict[str, Any]:
    """Give what the templates of a report need."""
    return view_report({**json.loads(report.document), "score": points(report.tenths)})


def view_report(document: JsonObject) -> dict[str, Any]:
    """Give what the templates of a report need.

    ``lost`` is what all deductions come to, in points; it may be more than there were.
    """
    shown: Any = document
    lost = sum(round(one["points"] * 10) for one in shown["deductions"])
    return {
        "doc": shown,
        "level": score_level(shown["score"], BEST),
        "best": BEST,
        "lost": points(lost),
        "areas": AREAS,
        "rules": RULES,
    }


def suggested_records(document: JsonObject) -> list[dict[str, str]]:
    """List the records that a report says to publish: one for a name and type, the gravest's."""
    shown: Any = document
    found: dict[tuple[str, str], dict[str, str]] = {}
    for one in shown["findings"]:
        record = one.get("record")
        if record is not None:
            found.setdefault((record["name"], record["type"]), record)
    return list(found.values())
