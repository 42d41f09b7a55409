"""A completed test with exactly the fields of the contract."""

from typing import Any

from tests.spec.report_shapes import JUDGED

NOW = "2026-11-21T12:00:00.000Z"

DKIM_DEDUCTION: dict[str, Any] = {
    "check": "dkim",
    "id": "dkim.unsigned",
    "points": 0.5,
    "meaning": "There is no signature.",
    "fix": "Sign.",
}

_OWN_FIELDS: dict[str, dict[str, Any]] = {
    "spf": {"domain": "a.example", "identity": "mailfrom", "record": None, "ip": "192.0.2.1"},
    "dkim": {"signatures": []},
    "dmarc": {
        "policy": None,
        "organizationalDomain": None,
        "spfAligned": True,
        "dkimAligned": None,
    },
    "blacklist": {"checked": 1, "listed": 0, "unknown": 0, "listings": []},
    "spamassassin": {"score": -0.1, "threshold": 5.0, "rules": []},
}

GOOD_CHECKS: dict[str, Any] = {
    name: {
        "status": "pass",
        "result": "pass",
        "detail": "fine",
        "deduction": 0.5 if name == "dkim" else 0.0,
        "reason": None,
        "fix": None,
        **_OWN_FIELDS[name],
    }
    for name in JUDGED
}

GOOD_REPORT: dict[str, Any] = {
    "reverseDns": {"ip": "192.0.2.1", "names": [], "validatedNames": []},
    "helo": {"name": None, "resolves": None, "addresses": []},
    "transport": {"tls": None, "transcript": [], "findings": []},
    "headers": {"findings": []},
    "mime": {"findings": []},
    "html": None,
    "links": {"urls": [], "hosts": [], "findings": []},
    "unsubscribe": {"listUnsubscribe": None, "listUnsubscribePost": None, "findings": []},
    "arc": {"result": "none", "findings": []},
    "dkim2": {"signatures": [], "instances": 0, "findings": []},
    "checklists": [{"receiver": name, "rules": []} for name in ("google", "yahoo", "microsoft")],
}

GOOD_TEST: dict[str, Any] = {
    "testId": "a234567bcdefg",
    "status": "completed",
    "score": 9.5,
    "createdAt": NOW,
    "receivedAt": NOW,
    "expiresAt": NOW,
    "email": {"from": "a@example.com", "subject": "x", "bounceAddress": None},
    "checks": GOOD_CHECKS,
    "report": GOOD_REPORT,
    "deductions": [DKIM_DEDUCTION],
    "scoringVersion": "1",
    "undetermined": [],
    "contentOnly": False,
    "notes": [],
    "findings": [],
}
