"""Tests for DMARC of one mail: aligned identifiers and undetermined results."""

from collections.abc import Sequence
from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureOfMail
from mailcheck.checks.dkim.signature_headers import SignatureHeader
from mailcheck.checks.dmarc.mail import DmarcOfMail, evaluate_dmarc_of_mail
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dns_answers import Answers, DnsStatus
from mailcheck.checks.spf.mail import SpfIdentity, SpfOfIdentity, SpfOfMail
from tests.fakes.memory_zone import MemoryZone, Records
from tests.fakes.settling import settle
from tests.table import rows

CLIENT = ip_address("192.0.2.1")
PASS, FAIL, NONE = AuthResult.PASS, AuthResult.FAIL, AuthResult.NONE
TEMPERROR, PERMERROR = AuthResult.TEMPERROR, AuthResult.PERMERROR
REJECT = "v=DMARC1; p=reject; rua=mailto:r@d.example"
Failing = dict[str | tuple[str, str], DnsStatus]


def spf_of(domain: str, result: AuthResult = PASS) -> SpfOfMail:
    """Return an SPF result whose HELO identity passes for the author, which must not count."""
    mail_from = SpfOfIdentity(SpfIdentity.MAIL_FROM, domain, result, None, "", "")
    helo = SpfOfIdentity(SpfIdentity.HELO, "d.example", PASS, None, "", "")
    return SpfOfMail(CLIENT, mail_from, helo)


def signed(*signatures: tuple[str, AuthResult]) -> DkimOfMail:
    """Return a DKIM result from ``d=`` and the result of each signature."""
    return DkimOfMail(
        tuple(
            SignatureOfMail(
                SignatureHeader(
                    number, domain, "s", "", "rsa-sha256", (), "relaxed/relaxed", None, None, None
                ),
                result,
                None,
                "",
            )
            for number, (domain, result) in enumerate(signatures)
        )
    )


def policies(**records: str) -> Records:
    """Publish DMARC records: ``d_example="..."`` is published at _dmarc.d.example."""
    return {f"_dmarc.{name.replace('_', '.')}": {"TXT": [text]} for name, text in records.items()}


def judge(
    records: Records,
    spf: SpfOfMail | None,
    dkim: DkimOfMail | None,
    author: str | Sequence[str] = "d.example",
    failing: Failing | None = None,
) -> DmarcOfMail:
    """Evaluate a mail."""
    authors = [author] if isinstance(author, str) else author
    zone = MemoryZone(records, failing=failing)
    return settle(zone, lambda answers: evaluate_dmarc_of_mail(authors, spf, dkim, answers))


NOTHING = spf_of("other.example", FAIL)
UNSIGNED = signed()


@rows(
    (spf_of("d.example"), UNSIGNED, PASS, (True, False)),
    (spf_of("D.Example"), UNSIGNED, PASS, (True, False)),
    (spf_of("bounce.d.example"), UNSIGNED, PASS, (True, False)),
    (NOTHING, signed(("d.example", PASS)), PASS, (False, True)),
    (NOTHING, signed(("esp.example", PASS), ("mail.d.example", PASS)), PASS, (False, True)),
    (spf_of("esp.example"), signed(("esp.example", PASS)), FAIL, (False, False)),
    (spf_of("d.example", FAIL), signed(("d.example", FAIL)), FAIL, (False, False)),
    (spf_of("d.example", AuthResult.SOFTFAIL), UNSIGNED, FAIL, (False, False)),
    (spf_of("d.example", AuthResult.NEUTRAL), UNSIGNED, FAIL, (False, False)),
    (NOTHING, signed(("d.example", AuthResult.POLICY)), FAIL, (False, False)),
    (NOTHING, UNSIGNED, FAIL, (False, False)),
    (spf_of("notd.example"), UNSIGNED, FAIL, (False, False)),
    (spf_of("[192.0.2.1]"), UNSIGNED, FAIL, (False, False)),
    # A missing answer matters only if it could change the result.
    (spf_of("d.example"), signed(("d.example", TEMPERROR)), PASS, (True, None)),
    (spf_of("d.example", TEMPERROR), UNSIGNED, TEMPERROR, (None, False)),
    (spf_of("esp.example", TEMPERROR), UNSIGNED, FAIL, (False, False)),
    (NOTHING, signed(("sub.d.example", TEMPERROR)), TEMPERROR, (False, None)),
    (NOTHING, signed(("esp.example", TEMPERROR)), FAIL, (False, False)),
    (None, UNSIGNED, TEMPERROR, (None, False)),
    (None, signed(("d.example", PASS)), PASS, (None, True)),
    (NOTHING, None, TEMPERROR, (False, None)),
    (spf_of("d.example"), None, PASS, (True, None)),
)
def test_a_passing_identifier_of_the_author_is_enough(
    spf: SpfOfMail | None,
    dkim: DkimOfMail | None,
    result: AuthResult,
    aligned: tuple[bool | None, bool | None],
) -> None:
    """DMARC passes if SPF or a signature passes for the organization; unknown is not a fail."""
    verdict = judge(policies(d_example=REJECT), spf, dkim)
    assert verdict.result is result, verdict.explanation
    assert (verdict.is_spf_aligned, verdict.is_dkim_aligned) == aligned
    assert verdict.policy is Policy.REJECT
    assert verdict.organizational_domain == "d.example"


@rows(
    ("v=DMARC1; p=none; aspf=s", spf_of("bounce.d.example"), UNSIGNED, FAIL),
    ("v=DMARC1; p=none; aspf=s", spf_of("d.example"), UNSIGNED, PASS),
    ("v=DMARC1; p=none; aspf=s", NOTHING, signed(("mail.d.example", PASS)), PASS),
    ("v=DMARC1; p=none; adkim=s", NOTHING, signed(("mail.d.example", PASS)), FAIL),
    ("v=DMARC1; p=none; adkim=s", NOTHING, signed(("d.example", PASS)), PASS),
    ("v=DMARC1; p=none; adkim=s", spf_of("bounce.d.example"), UNSIGNED, PASS),
    # A strict mismatch is certain for any result of the signature.
    ("v=DMARC1; p=none; adkim=s", NOTHING, signed(("mail.d.example", TEMPERROR)), FAIL),
)
def test_strict_alignment_wants_the_very_domain(
    record: str, spf: SpfOfMail, dkim: DkimOfMail, result: AuthResult
) -> None:
    """Aspf and adkim each apply to their own mechanism only."""
    assert judge(policies(d_example=record), spf, dkim).result is result


NOTE, SUFFIX = "v=DMARC1; p=none", "v=DMARC1; p=none; psd=y"
APART = {"d_example": REJECT, "dep_d_example": "v=DMARC1; p=none; psd=n"}


@rows(
    # Two customers below a declared public suffix are different organizations.
    ({"co_example": SUFFIX}, "a.co.example", "b.co.example", FAIL, None),
    ({"co_example": SUFFIX}, "x.a.co.example", "y.a.co.example", PASS, "a.co.example"),
    # A department that declares itself an organization is separate.
    (APART, "dep.d.example", "d.example", FAIL, "dep.d.example"),
    (APART, "d.example", "mail.dep.d.example", FAIL, "d.example"),
    ({**APART, "dep_d_example": NOTE}, "dep.d.example", "mail.d.example", PASS, "d.example"),
    # The identifier has no record of its own and more than eight labels.
    ({"d_example": REJECT}, "d.example", "1.2.3.4.5.6.7.8.d.example", PASS, "d.example"),
)
def test_organizations_are_found_by_walks(
    records: dict[str, str],
    author: str,
    identifier: str,
    result: AuthResult,
    organization: str | None,
) -> None:
    """Relaxed alignment compares organizational domains, each found by its own walk."""
    verdict = judge(policies(**records), spf_of(identifier), UNSIGNED, author)
    assert verdict.result is result
    assert verdict.organizational_domain == (organization or author)


@rows(
    ("v=DMARC1; p=reject", "d.example", Policy.REJECT),
    ("v=DMARC1; p=reject; t=y", "d.example", Policy.QUARANTINE),
    ("v=DMARC1; p=quarantine; t=y", "d.example", Policy.NONE),
    ("v=DMARC1; p=none; t=y", "d.example", Policy.NONE),
    ("v=DMARC1; p=reject; sp=quarantine", "sub.d.example", Policy.QUARANTINE),
    ("v=DMARC1; p=reject; sp=quarantine; np=none", "sub.d.example", Policy.QUARANTINE),
    ("v=DMARC1; p=none; sp=none; np=reject", "gone.d.example", Policy.REJECT),
    ("v=DMARC1; p=none; sp=none; np=reject; t=y", "gone.d.example", Policy.QUARANTINE),
    ("v=DMARC1; p=reject; pct=0", "d.example", Policy.REJECT),
)
def test_the_policy_is_that_for_this_mail(record: str, author: str, policy: Policy) -> None:
    """Sp and np apply to subdomains, t=y lowers the policy by one step, and pct has no effect."""
    hosts: Records = {"sub.d.example": {"A": ["192.0.2.5"]}, **policies(d_example=record)}
    verdict = judge(hosts, NOTHING, UNSIGNED, author)
    assert verdict.result is FAIL
    assert verdict.policy is policy


@rows(
    ([], "no From address"),
    (["d.example", "other.example"], "2 domains (d.example, other.example)"),
    (["[192.0.2.1]"], "not a domain name"),
    (["192.0.2.1"], "not a domain name"),
    ([""], "no domain"),
    (["a..b"], "not a domain name"),
    (["d.example", "[192.0.2.1]"], "2 domains"),
)
def test_without_one_author_domain_dmarc_cannot_be_applied(authors: list[str], words: str) -> None:
    """Missing, several and invalid author domains have an explanation and cause no query."""
    zone = MemoryZone(policies(d_example=REJECT))
    verdict = settle(
        zone, lambda a: evaluate_dmarc_of_mail(authors, spf_of("d.example"), UNSIGNED, a)
    )
    assert verdict.result is PERMERROR
    assert verdict.author_domain is None
    assert verdict.verdict is None
    assert words in verdict.explanation
    assert zone.asked == []


@rows(["d.example", "D.EXAMPLE", "d.example."], ["D.example"])
def test_several_authors_of_one_domain_are_one(authors: list[str]) -> None:
    """Authors of one domain in any spelling have one policy."""
    verdict = judge(policies(d_example=REJECT), spf_of("d.example"), UNSIGNED, authors)
    assert (verdict.result, verdict.author_domain) == (PASS, "d.example")


def test_an_international_author_domain_is_read_in_a_labels() -> None:
    """A From domain in U-labels is queried and compared in A-labels."""
    records: Records = {"_dmarc.xn--mnchen-3ya.example": {"TXT": ["v=DMARC1; p=reject"]}}
    verdict = judge(records, NOTHING, signed(("xn--mnchen-3ya.example", PASS)), "münchen.example")
    assert verdict.result is PASS
    assert verdict.author_domain == "xn--mnchen-3ya.example"


def test_without_a_record_dmarc_says_none() -> None:
    """Without a record, DMARC does not apply, whether identifiers align or not."""
    verdict = judge({}, spf_of("d.example"), UNSIGNED)
    assert verdict.result is NONE
    assert verdict.policy is None
    assert verdict.is_spf_aligned is True
    assert verdict.verdict is not None
    assert [f.id for f in verdict.verdict.findings] == ["dmarc.absent"]


@rows(DnsStatus.SERVFAIL, DnsStatus.TIMEOUT, DnsStatus.REFUSED)
def test_a_record_that_is_not_known_is_not_missing(status: DnsStatus) -> None:
    """A missing answer about the record is a temperror that names it."""
    verdict = judge({}, spf_of("d.example"), UNSIGNED, failing={"_dmarc.d.example": status})
    assert verdict.result is TEMPERROR
    assert verdict.unanswered_names == ("_dmarc.d.example",)
    assert "_dmarc.d.example" in verdict.explanation


@rows(
    # An identical domain needs no walk.
    ("_dmarc.example", spf_of("d.example"), PASS),
    # "d.example" may not be the organization, so a sibling may align, but not another domain.
    ("_dmarc.example", spf_of("bounce.d.example"), TEMPERROR),
    ("_dmarc.example", spf_of("other.example"), TEMPERROR),
    ("_dmarc.example", spf_of("other.test"), FAIL),
    # The walk of the identifier has no answer below the organization.
    ("_dmarc.bounce.d.example", spf_of("bounce.d.example"), TEMPERROR),
    ("_dmarc.bounce.d.example", spf_of("bounce.d.example", FAIL), FAIL),
    ("_dmarc.bounce.d.example", spf_of("d.example"), PASS),
)
def test_a_walk_without_answers_is_undetermined_only_if_it_matters(
    silent: str, spf: SpfOfMail, result: AuthResult
) -> None:
    """A certain pass stays a pass, and a certain fail stays a fail."""
    verdict = judge(policies(d_example=REJECT), spf, UNSIGNED, failing={silent: DnsStatus.TIMEOUT})
    assert verdict.result is result
    assert verdict.unanswered_names == ((silent,) if result is TEMPERROR else ())


@rows(("z.d.example", TEMPERROR), ("z.example", FAIL), ("a.b.d.example", PASS))
def test_a_step_without_an_answer_leaves_the_organization_open(
    identifier: str, result: AuthResult
) -> None:
    """An identifier outside every possible organization certainly does not align."""
    verdict = judge(
        policies(d_example=REJECT, a_b_d_example="v=DMARC1; p=none"),
        spf_of(identifier),
        UNSIGNED,
        "a.b.d.example",
        failing={"_dmarc.b.d.example": DnsStatus.TIMEOUT},
    )
    assert verdict.result is result


def count_rounds(records: Records, *, spf: SpfOfMail, dkim: DkimOfMail, is_early: bool) -> int:
    """Count the rounds of queries until the verdict is final."""
    zone = MemoryZone(records)
    answers = Answers()
    for number in range(10):
        answers.missing.clear()
        if is_early and number == 0:
            answers.lookup("something.else.example", "TXT")  # SPF and DKIM lack answers, too
        evaluate_dmarc_of_mail(["d.example"], spf, dkim, answers)
        if not answers.missing:
            return number
        for question in list(answers.missing):
            zone.lookup(question).addCallback(lambda a: answers.known.update({a.question: a}))
    raise AssertionError("no end")


def test_all_walks_are_made_at_once() -> None:
    """The walks of author and related identifiers need one round of queries together."""
    records = policies(d_example=REJECT.partition("; rua")[0])
    spf = spf_of("bounce.mail.d.example")
    dkim = signed(("a.b.c.d.example", PASS), ("esp.example", PASS))
    assert count_rounds(records, spf=spf, dkim=dkim, is_early=True) == 1


def test_unrelated_domains_are_not_walked() -> None:
    """Domains that cannot belong to the author cause no query."""
    zone = MemoryZone(policies(d_example="v=DMARC1; p=reject"))
    dkim = signed(("mail.esp.test", PASS))
    settle(
        zone, lambda a: evaluate_dmarc_of_mail(["d.example"], spf_of("bounce.esp.test"), dkim, a)
    )
    assert not any("esp" in question.name for question in zone.asked)


RESULTS = st.sampled_from([PASS, FAIL, NONE, TEMPERROR, PERMERROR, AuthResult.POLICY])
DOMAINS = st.sampled_from(["d.example", "sub.d.example", "other.example", "dep.d.example"])
RECORDS = policies(d_example=REJECT, dep_d_example="v=DMARC1; p=none; psd=n")
BELONGING = ("d.example", "sub.d.example")


@given(DOMAINS, RESULTS, st.lists(st.tuples(DOMAINS, RESULTS), max_size=4))
def test_pass_means_that_something_of_the_author_passes(
    sender: str, result: AuthResult, signatures: list[tuple[str, AuthResult]]
) -> None:
    """DMARC passes exactly if a passing identifier belongs to the organization."""
    verdict = judge(RECORDS, spf_of(sender, result), signed(*signatures))
    identifiers = [(sender, result), *signatures]
    assert (verdict.result is PASS) == any(
        domain in BELONGING and one is PASS for domain, one in identifiers
    )
    assert verdict.aligned_signatures == tuple(
        number
        for number, (domain, one) in enumerate(signatures)
        if domain in BELONGING and one is PASS
    )


RANK = {FAIL: 0, TEMPERROR: 1, PASS: 2}


@given(DOMAINS, RESULTS, DOMAINS, RESULTS, st.booleans(), st.sampled_from([FAIL, TEMPERROR]))
def test_worse_evidence_never_helps(
    sender: str, spf: AuthResult, signer: str, dkim: AuthResult, worsen_spf: bool, worse: AuthResult
) -> None:
    """A pass that becomes undetermined or a fail never improves the result."""
    before = judge(RECORDS, spf_of(sender, spf), signed((signer, dkim)))
    lowered = (worse, dkim) if worsen_spf else (spf, worse)
    if (spf if worsen_spf else dkim) is not PASS:
        return
    after = judge(RECORDS, spf_of(sender, lowered[0]), signed((signer, lowered[1])))
    assert RANK[after.result] <= RANK[before.result]


@given(
    DOMAINS,
    RESULTS,
    DOMAINS,
    RESULTS,
    st.sets(st.sampled_from(["d.example", "sub.d.example", "dep.d.example", "example"])),
)
def test_missing_answers_only_make_undetermined(
    sender: str, spf: AuthResult, signer: str, dkim: AuthResult, silent: set[str]
) -> None:
    """With missing answers, the result is the true one or temperror."""
    truth = judge(RECORDS, spf_of(sender, spf), signed((signer, dkim)))
    failing: Failing = {f"_dmarc.{name}": DnsStatus.SERVFAIL for name in silent}
    seen = judge(RECORDS, spf_of(sender, spf), signed((signer, dkim)), failing=failing)
    assert seen.result in (truth.result, TEMPERROR)


def test_a_repeated_from_has_no_author() -> None:
    """With two From fields it is unknown which one is shown, so DMARC passes for neither."""
    zone = MemoryZone(policies(d_example="v=DMARC1; p=reject"))
    spf, dkim = spf_of("d.example"), signed(("d.example", PASS))
    found = settle(
        zone, lambda a: evaluate_dmarc_of_mail(["d.example"], spf, dkim, a, author_fields=2)
    )
    assert (found.result, found.author_domain) == (AuthResult.PERMERROR, None)
    assert "2 From fields" in found.explanation
