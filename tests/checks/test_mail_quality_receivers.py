"""Rules of the large receivers."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from mailcheck.checks.quality.reading import read_mail
from mailcheck.checks.quality.receivers import (
    QUESTIONS,
    Evidence,
    RuleResult,
    evidence_from_mail,
    judge_by_receivers,
    load_receivers,
)
from mailcheck.checks.quality.unsubscribe import MUST_BE_SIGNED
from tests.fakes.sample_mails import make_mail
from tests.table import rows

GOOD = Evidence(
    spf_passes=True,
    dkim_passes=True,
    any_aligned=True,
    has_dmarc_record=True,
    is_ptr_confirmed=True,
    tls_used=True,
    key_bits=2048,
    is_format_valid=True,
    can_receive_replies=True,
    is_bulk_looking=True,
    has_one_click=True,
    has_unsubscribe_link=True,
    has_list_unsubscribe=True,
)
MET, NOT_MET = RuleResult.MET, RuleResult.NOT_MET
NOT_APPLICABLE, UNDETERMINED = RuleResult.NOT_APPLICABLE, RuleResult.UNDETERMINED


def results(evidence: Evidence) -> dict[str, RuleResult]:
    """Return the result of every rule."""
    return {rule.id: rule.result for one in judge_by_receivers(evidence) for rule in one.rules}


def test_the_questions_of_the_table_are_known() -> None:
    """Rules have distinct ids below the id of their receiver, known questions, and a source."""
    receivers = load_receivers()
    assert [one.id for one in receivers] == ["google", "google-bulk", "yahoo", "microsoft"]
    rules = [(one, rule) for one in receivers for rule in one.rules]
    assert len({rule.id for _, rule in rules}) == len(rules)
    assert all(rule.id.startswith(f"{one.id}.") for one, rule in rules)
    assert {rule.question for _, rule in rules} <= QUESTIONS.keys()
    assert all(one.source.startswith("https://") for one in receivers)
    assert all(rule.text.endswith(".") for _, rule in rules)


def test_a_good_mail_breaks_no_rule() -> None:
    """Only rules that need more than one mail are undetermined, and other rules do not apply."""
    found = results(GOOD)
    assert NOT_MET not in found.values()
    assert {name for name, result in found.items() if result is UNDETERMINED} == {
        "google.spam-rate",
        "google-bulk.spam-rate",
        "yahoo.spam-rate",
    }
    assert all(checklist.is_met for checklist in judge_by_receivers(GOOD))


@rows(
        ({"spf_passes": False}, {"google-bulk.spf", "yahoo.spf", "microsoft.spf"}),
        ({"dkim_passes": False, "key_bits": None},
         {"google-bulk.dkim", "yahoo.dkim", "microsoft.dkim"}),
        ({"spf_passes": False, "dkim_passes": False},
         {"google.spf-or-dkim", "google-bulk.spf", "google-bulk.dkim", "yahoo.spf", "yahoo.dkim",
          "microsoft.spf", "microsoft.dkim"}),
        ({"any_aligned": False}, {"google-bulk.aligned", "yahoo.aligned", "microsoft.aligned"}),
        ({"has_dmarc_record": False}, {"google-bulk.dmarc", "yahoo.dmarc", "microsoft.dmarc"}),
        ({"is_ptr_confirmed": False},
         {"google.reverse-dns", "google-bulk.reverse-dns", "yahoo.reverse-dns",
          "microsoft.reverse-dns"}),
        ({"tls_used": False}, {"google.tls", "google-bulk.tls"}),
        ({"key_bits": 768}, {"google.key-size"}),
        ({"is_format_valid": False}, {"google.format", "google-bulk.format", "yahoo.format"}),
        ({"claims_gmail": True, "any_aligned": False},
         {"google.no-gmail-from", "google-bulk.no-gmail-from", "google-bulk.aligned",
          "yahoo.aligned", "microsoft.aligned"}),
        ({"claims_freemail": True, "any_aligned": False},
         {"microsoft.own-from", "google-bulk.aligned", "yahoo.aligned", "microsoft.aligned"}),
        ({"can_receive_replies": False}, {"microsoft.replies"}),
        ({"has_one_click": False}, {"google-bulk.one-click", "yahoo.one-click"}),
        ({"has_unsubscribe_link": False}, {"google-bulk.link", "yahoo.link"}),
        ({"has_unsubscribe_link": False, "has_list_unsubscribe": False},
         {"google-bulk.link", "yahoo.link", "microsoft.unsubscribe"}),
        ({"has_one_click": False, "has_unsubscribe_link": False, "has_list_unsubscribe": False,
          "is_bulk_looking": False}, set()),
    )  # fmt: skip
def test_each_fault_breaks_its_rules(change: dict[str, bool], broken: set[str]) -> None:
    """Exactly these rules are broken."""
    found = results(replace(GOOD, **change))
    assert {name for name, result in found.items() if result is NOT_MET} == broken


@given(st.frozensets(st.sampled_from([field.name for field in fields(Evidence)])))
def test_unknown_evidence_never_breaks_a_rule(unknown: frozenset[str]) -> None:
    """Undetermined evidence leaves rules undetermined and never breaks one."""
    change = {field.name: field.default for field in fields(Evidence)}
    nothing = {name: None for name in unknown if change[name] is None}
    found = results(replace(GOOD, **nothing))
    assert NOT_MET not in found.values()


def test_the_key_of_an_unsigned_mail_does_not_matter() -> None:
    """An Ed25519 key does not matter either; an undetermined signature leaves the rule open."""
    assert results(replace(GOOD, key_bits=None))["google.key-size"] is NOT_APPLICABLE
    unsigned = replace(GOOD, key_bits=None, dkim_passes=False)
    assert results(unsigned)["google.key-size"] is NOT_APPLICABLE
    unknown = replace(GOOD, key_bits=None, dkim_passes=None)
    assert results(unknown)["google.key-size"] is UNDETERMINED


def test_one_that_passes_is_enough_for_every_sender() -> None:
    """SPF or DKIM is enough: an undetermined one may pass, a failed one does not."""
    rule = "google.spf-or-dkim"
    assert results(replace(GOOD, spf_passes=None, dkim_passes=True))[rule] is MET
    assert results(replace(GOOD, spf_passes=None, dkim_passes=False))[rule] is UNDETERMINED


@rows(
    (make_mail(), True),
    (make_mail(without=("Message-ID",)), True),
    (make_mail(without=("Date",)), False),
    (make_mail(Date="soon"), False),
    (make_mail("From: b@example.com"), False),
    (make_mail(without=("From",)), False),
    (make_mail("To: b@example.com"), False),
    (make_mail(body="a" * 999), False),
)
def test_the_format_is_that_of_rfc_5322(raw: bytes, is_valid: bool) -> None:
    """One From with a mailbox, a readable Date, no repeated fields, no overlong line."""
    assert evidence_from_mail(read_mail(raw), None).is_format_valid is is_valid


def test_a_mail_gives_its_part_of_the_evidence() -> None:
    """Evidence from DNS and the session is left open."""
    facts = read_mail(make_mail(From="a@gmail.com"))
    evidence = evidence_from_mail(facts, MUST_BE_SIGNED)
    assert evidence == Evidence(
        is_format_valid=True,
        claims_gmail=True,
        claims_freemail=True,
        is_bulk_looking=True,
        has_one_click=True,
        has_unsubscribe_link=True,
        has_list_unsubscribe=True,
    )
    assert evidence_from_mail(facts, None).has_one_click is None
    assert evidence_from_mail(facts, frozenset()).has_one_click is False
