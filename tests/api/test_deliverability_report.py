"""The JSON of deliverability reports, for any mail."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mailcheck.api.deliverability.report import MailReport, render_report, store_report
from mailcheck.api.shapes import schema_of
from mailcheck.checks.deliverability.content_filter import (
    FilterProblem,
    FilterRule,
    FilterVerdict,
    unavailable,
)
from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.findings import RecordToPublish
from tests.fakes.mail_signer import RSA
from tests.fakes.scripted_filter import ScriptedFilter
from tests.operations.scored_mails import MAIL, received, score, zone_with
from tests.table import rows

SCHEMA = Draft202012Validator(schema_of(MailReport))

PARTS = (
    "reverseDns", "helo", "transport", "headers", "mime", "html", "links", "unsubscribe", "arc",
    "dkim2", "checklists", "replies",
)  # fmt: skip

MAX_DOCUMENT = 1_000_000
"""Maximum number of octets of the report of the worst mail."""


def shape(report: DeliverabilityReport) -> Any:
    """Return the report as a client decodes it. It must match its schema."""
    found = json.loads(store_report(report).document)
    SCHEMA.validate(found)
    return found


def test_a_perfect_mail() -> None:
    """Every documented field is present and has its type."""
    found = shape(score())
    assert found["score"] == 10.0
    assert found["email"] == {
        "from": "ann@sender.example",
        "subject": "The minutes of Monday",
        "bounceAddress": "ann@sender.example",
    }
    assert list(found["checks"]) == ["spf", "dkim", "dmarc", "blacklist", "spamassassin"]
    assert {check["status"] for check in found["checks"].values()} == {"pass"}
    assert found["deductions"] == []
    assert found["scoringVersion"]
    assert tuple(found["report"]) == PARTS
    assert "preflight" not in found


def test_the_own_fields_of_the_checks() -> None:
    """Each check contains the facts that it is based on."""
    checks = shape(score())["checks"]
    assert checks["spf"]["domain"] == "sender.example"
    assert checks["spf"]["ip"] == "8.8.4.10"
    assert checks["spf"]["record"] == "v=spf1 mx -all"
    (signature,) = checks["dkim"]["signatures"]
    shown = {key: signature[key] for key in ("domain", "selector", "keyBits", "aligned", "result")}
    assert shown == {
        "domain": "sender.example",
        "selector": "s1",
        "keyBits": 2048,
        "aligned": True,
        "result": "pass",
    }
    assert checks["dmarc"]["policy"] == "reject"
    assert checks["dmarc"]["organizationalDomain"] == "sender.example"
    assert (checks["dmarc"]["spfAligned"], checks["dmarc"]["dkimAligned"]) == (True, True)
    blacklist = checks["blacklist"]
    assert (blacklist["listed"], blacklist["unknown"]) == (0, 0)
    assert len(blacklist["listings"]) == 44
    assert checks["spamassassin"]["threshold"] == 5.0


def test_a_deduction() -> None:
    """A deduction has a check, points and a reason, and the record to publish if there is one."""
    found = shape(score(zone_with(without=["_dmarc.sender.example"])))
    (deduction,) = found["deductions"]
    assert (deduction["check"], deduction["points"]) == ("dmarc", 1.0)
    assert deduction["record"]["name"] == "_dmarc.sender.example"
    dmarc = found["checks"]["dmarc"]
    assert (dmarc["status"], dmarc["result"], dmarc["deduction"]) == ("fail", "none", 1.0)
    assert dmarc["reason"] == deduction["meaning"]
    assert dmarc["publish"] == deduction["record"]


def test_what_to_do_and_what_to_publish_are_of_one_finding() -> None:
    """The record of a check belongs to its fix. A fix without a record has none."""
    found = shape(score(mail=received(client_ip="8.8.4.99")))
    spf = found["checks"]["spf"]
    dearest = max(spf["findings"], key=lambda one: float(one["points"]))
    assert any("record" in one for one in spf["findings"])
    assert (spf["fix"], spf["publish"]) == (dearest["fix"], dearest.get("record"))


def test_the_null_reverse_path() -> None:
    """The bounce address of a mail with an empty envelope sender is null."""
    assert shape(score(mail=received(envelope_sender="")))["email"]["bounceAddress"] is None


def test_what_is_unknown() -> None:
    """An undetermined check is marked as such and deducts no points."""
    content_filter = ScriptedFilter(unavailable(FilterProblem.TIMEOUT))
    found = shape(score(content_filter=content_filter))
    check = found["checks"]["spamassassin"]
    assert (check["status"], check["result"], check["determined"]) == ("warn", "unknown", False)
    assert (check["deduction"], check["score"], check["rules"]) == (0.0, None, [])
    assert found["undetermined"] == ["spamassassin"]
    assert found["score"] == 10.0


def test_rules_of_the_filter() -> None:
    """Rules have their points. Rules that are not counted have the reason."""
    rules = (FilterRule("A", 1.5, "Looks for a"), FilterRule("SPF_FAIL", 1.0, "SPF", "It is ours."))
    verdict = FilterVerdict(2.5, 5.0, False, rules)
    check = shape(score(content_filter=ScriptedFilter(verdict)))["checks"]["spamassassin"]
    assert (check["score"], check["countedScore"], check["deduction"]) == (2.5, 1.5, 1.2)
    assert [rule["counted"] for rule in check["rules"]] == [True, False]
    assert check["rules"][1]["notCounted"] == "It is ours."


def test_a_private_address_opens_the_report() -> None:
    """A report begins with the limitations of a private client address."""
    found = shape(score(mail=received(client_ip="10.0.0.5")))
    assert found["notes"][0] == "came from 10.0.0.5: only content and DKIM could be judged"
    assert found["report"]["reverseDns"]["confirmed"] is None


def test_a_preflight_is_marked() -> None:
    """A preflight report is marked and contains the assumed records."""
    zone = zone_with(without=["_dmarc.sender.example"])
    proposed = [RecordToPublish("_dmarc.sender.example", "TXT", "v=DMARC1; p=reject")]
    found = shape(score(zone, records=proposed))
    assert found["preflight"] is True
    assert found["records"] == [
        {"name": "_dmarc.sender.example", "type": "TXT", "value": "v=DMARC1; p=reject"}
    ]
    assert found["score"] == 10.0


@rows(
    b"From: " + b"a@b.example, " * 50_000 + b"\r\n\r\n",
    MAIL + b"".join(b"http://u:p@h%d.example:81/%s\r\n" % (n, b"x" * 500) for n in range(999)),
    b"".join(b"X-%d%s: x\r\n" % (n, b"y" * 900) for n in range(999)) + MAIL,
    b"List-Unsubscribe: " + b"<https://a.example/%s>, " % (b"z" * 9000) * 25 + b"\r\n" + MAIL,
    b"".join(RSA.sign(MAIL)[:600] for _ in range(50)) + MAIL,
)
def test_reports_are_bounded(raw: bytes) -> None:
    """The size of a report is bounded, no matter how large the parts of a mail are."""
    document = store_report(score(mail=received(raw))).document
    assert len(document) < MAX_DOCUMENT


@settings(max_examples=15)
@given(st.binary(max_size=300), st.text(max_size=20), st.text(max_size=20))
def test_any_mail(body: bytes, sender: str, helo: str) -> None:
    """Any bytes, sender and HELO name result in valid JSON whose deductions explain the score."""
    mail = received(body, envelope_sender=sender, helo_name=helo)
    found = shape(score(mail=mail))
    taken = sum(round(one["points"] * 10) for one in found["deductions"])
    assert round(found["score"] * 10) == max(0, 100 - taken)


def test_half_characters() -> None:
    """Lone surrogates, which UTF-8 cannot encode, become question marks."""
    mail = received(MAIL, envelope_sender="\ud800@sender.example")
    assert "\ud800" not in store_report(score(mail=mail)).document
    assert render_report(score()).score == 10.0
