"""Tests for BIMI: the record, the logo and its certificate, with a vector for each finding."""

import gzip
import hashlib
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mailcheck.checks.bimi.certificate import (
    ChainState,
    MarkKind,
    UnreadableCertificate,
    load_roots,
    read_certificate,
)
from mailcheck.checks.bimi.evaluate import (
    BimiFiles,
    BimiVerdict,
    FileFetch,
    evaluate_bimi,
    read_evidence,
    read_logo,
)
from mailcheck.checks.bimi.logotype import BadLogotype, read_logotype
from mailcheck.checks.bimi.record import BimiRecord, Preference, evaluate_bimi_record
from mailcheck.checks.bimi.selector import read_logo_selector
from mailcheck.checks.bimi.svg import MAX_LOGO, MAX_READ, MEDIA_TYPE, check_logo
from mailcheck.checks.dmarc.evaluate import evaluate_dmarc
from mailcheck.checks.dns_answers import Answers, DnsStatus, Presence
from mailcheck.checks.findings import Severity
from mailcheck.checks.findings_of_logos import ROWS
from mailcheck.checks.hosts.caa import evaluate_caa
from mailcheck.checks.hosts.mta_sts import FetchOutcome
from mailcheck.core.instants import instant_of
from tests.checks.verdicts import ids
from tests.docs.blocks import ROOT as SOURCE
from tests.docs.blocks import read_blocks
from tests.fakes.marks import (
    CERTIFICATE_URL,
    DOMAIN,
    GOOD_LOGO,
    ISSUER,
    LOGO_URL,
    NOW,
    RECORD,
    ROOT,
    Mark,
    authority,
    bundle,
    der,
    logotype,
    pem,
    roots,
    svg,
)
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.operations.scored_mails import MAIL, received, score
from tests.table import rows

NAME = f"default._bimi.{DOMAIN}"
WITHOUT_CERTIFICATE = f"v=BIMI1; l={LOGO_URL};"


def served(octets: bytes, media_type: str = MEDIA_TYPE) -> FileFetch:
    """Return the result of fetching a file."""
    return FileFetch(FetchOutcome.FETCHED, octets, media_type)


def failed(outcome: FetchOutcome) -> FileFetch:
    """Return the result of fetching a file in vain."""
    return FileFetch(outcome)


def setup(
    *texts: str,
    logo: bytes | FileFetch = GOOD_LOGO,
    mark: bytes | FileFetch | Mark | None = None,
    dmarc: str = "v=DMARC1; p=reject",
    caa: Sequence[str] = (),
    distrusted_after: str = "",
    domain: str = DOMAIN,
) -> BimiVerdict:
    """Evaluate a domain with records and files; the defaults have no fault."""
    zone = MemoryZone({f"_dmarc.{DOMAIN}": {"TXT": [dmarc]} if dmarc else {}})
    zone.publish(NAME, "TXT", *texts)
    zone.publish(DOMAIN, "CAA", *caa)
    if mark is None or isinstance(mark, Mark):
        mark = bundle(mark)

    def evaluate(answers: Answers) -> BimiVerdict:
        policy = evaluate_dmarc(domain, answers)
        allowed = evaluate_caa(domain, answers)
        record = evaluate_bimi_record(domain, "default", policy.organizational_domain, answers)
        image = logo if isinstance(logo, FileFetch) else served(logo)
        proof = mark if isinstance(mark, FileFetch) else served(bytes(mark))
        files = BimiFiles(
            record.location,
            read_logo(record.location, image) if record.location else None,
            record.evidence,
            read_evidence(proof, roots(distrusted_after=distrusted_after))
            if record.evidence
            else None,
        )
        return evaluate_bimi(files, instant_of(NOW.timestamp()), record, policy, allowed)

    return settle(zone, evaluate)


def drawing(inside: str = "", **options: str) -> partial[BimiVerdict]:
    """Return a set-up whose logo has a fault, and that has no certificate."""
    logo = svg(inside, **options)
    return partial(setup, RECORD, logo=logo, mark=Mark(extension=logotype(logo)))


def marked(**options: object) -> partial[BimiVerdict]:
    """Return a set-up whose certificate has a fault."""
    return partial(setup, RECORD, mark=replace(Mark(), **options))


OTHER_LOGO = svg('<path d="M1 1h62v62H1z"/>')
LONG = "Brand " * 20
XLINK = 'xmlns:x="http://www.w3.org/1999/xlink"'

VECTORS: dict[str, partial[BimiVerdict]] = {
    # The record
    "bimi.absent": partial(setup),
    "bimi.bad-preference": partial(setup, f"{RECORD} avp=logo;"),
    "bimi.bad-url": partial(setup, f"v=BIMI1; l={LOGO_URL}; a=https://127.0.0.1/mark.pem"),
    "bimi.declined": partial(setup, "v=BIMI1; l=; a=;"),
    "bimi.no-location": partial(setup, "v=BIMI1;"),
    "bimi.not-https": partial(setup, f"v=BIMI1; l={LOGO_URL}; a=http://d.example/mark.pem"),
    "bimi.several": partial(setup, RECORD, WITHOUT_CERTIFICATE),
    "bimi.syntax": partial(setup, f"{RECORD} avp"),
    "bimi.undetermined": partial(setup, RECORD, logo=failed(FetchOutcome.NO_ANSWER)),
    "bimi.unknown-tag": partial(setup, f"{RECORD} size=64;"),
    "bimi.unreadable": partial(setup, RECORD.replace("v=BIMI1", "v=bimi1")),
    # DMARC
    "bimi.dmarc-partial": partial(setup, RECORD, dmarc="v=DMARC1; p=quarantine; pct=50"),
    "bimi.dmarc-policy": partial(setup, RECORD, dmarc="v=DMARC1; p=none"),
    "bimi.dmarc-subdomains": partial(setup, RECORD, dmarc="v=DMARC1; p=reject; sp=none"),
    # The logo
    "bimi.logo-damaged": partial(setup, RECORD, logo=gzip.compress(GOOD_LOGO)[:-4]),
    "bimi.logo-missing": partial(setup, RECORD, logo=failed(FetchOutcome.MISSING)),
    "bimi.logo-not-svg": drawing("<g>"),
    "bimi.logo-too-large": drawing(f"<desc>{'x' * MAX_LOGO}</desc>"),
    "bimi.logo-type": partial(setup, RECORD, logo=served(GOOD_LOGO, "text/plain")),
    "bimi.svg-animation": drawing('<rect><animate attributeName="x"/></rect>'),
    "bimi.svg-doctype": drawing(before="<!DOCTYPE svg>"),
    "bimi.svg-element": drawing("<clipPath/>"),
    "bimi.svg-external": drawing(f'<use {XLINK} x:href="https://e.example/a.svg"/>'),
    "bimi.svg-not-square": drawing(box=' viewBox="0 0 64 32"'),
    "bimi.svg-profile": drawing(root='xmlns="http://www.w3.org/2000/svg" version="1.2"'),
    "bimi.svg-raster": drawing(f'<image {XLINK} x:href="#a"/>'),
    "bimi.svg-root": drawing(box=' viewBox="0 0 64 64" x="0"'),
    "bimi.svg-script": drawing("<script>alert(1)</script>"),
    "bimi.svg-style": drawing('<path style="fill:red"/>'),
    "bimi.svg-title": drawing(title=""),
    "bimi.svg-title-long": drawing(title=f"<title>{LONG}</title>"),
    "bimi.svg-version": drawing(root='xmlns="http://www.w3.org/2000/svg" baseProfile="tiny-ps"'),
    # The certificate
    "bimi.caa-forbids": partial(setup, RECORD, caa=['0 issuevmc "other.example"']),
    "bimi.certificate-chain": partial(setup, RECORD, mark=pem(Mark().build())),
    "bimi.certificate-domain": marked(domains=("other.example",)),
    "bimi.certificate-ending": marked(ends=20),
    "bimi.certificate-expired": marked(ends=-1),
    "bimi.certificate-logo": marked(extension=None),
    "bimi.certificate-missing": partial(setup, RECORD, mark=failed(FetchOutcome.MISSING)),
    "bimi.certificate-order": partial(setup, RECORD, mark=pem(ISSUER, Mark().build())),
    "bimi.certificate-purpose": marked(has_purpose=False),
    "bimi.certificate-unreadable": partial(setup, RECORD, mark=b"<html>"),
    "bimi.issuer-distrusted": partial(setup, RECORD, distrusted_after="2001-01-01"),
    "bimi.issuer-undetermined": partial(
        setup,
        RECORD,
        mark=pem(Mark(issuer="Other Root").build(), authority("Other Root")),
    ),
    "bimi.logo-differs": partial(setup, RECORD, logo=OTHER_LOGO),
    "bimi.mark-type": marked(mark_type="Doodle"),
    "bimi.no-certificate": partial(setup, WITHOUT_CERTIFICATE),
    "bimi.no-timestamps": marked(has_timestamps=False),
}
"""Set-ups that cause exactly this finding."""


@rows(*VECTORS)
def test_each_fault_has_its_finding(name: str) -> None:
    """Each vector has one fault, and exactly the finding about it."""
    assert ids(VECTORS[name]()) == [name]


def test_every_finding_has_a_vector() -> None:
    """No finding about BIMI is without a vector."""
    assert {one.id for one in ROWS} == {*VECTORS, *FIELDS}


def test_no_fault_is_an_error() -> None:
    """Mail is delivered without a logo, so a fault is a warning at most."""
    assert Severity.ERROR not in {one.severity for one in ROWS}


@rows(False, True)
def test_a_good_logo_is_ready(compressed: bool) -> None:
    """A domain without a fault has no finding; the logo may be compressed (SVGZ)."""
    logo = gzip.compress(GOOD_LOGO) if compressed else GOOD_LOGO
    verdict = setup(f"{RECORD} avp=personal;", logo=logo)
    assert verdict.findings == ()
    assert verdict.is_ready is True
    assert verdict.record.preference is Preference.PERSONAL
    assert verdict.logo is not None
    assert (verdict.logo.title, verdict.logo.is_shown) == ("Shop", True)
    mark = verdict.certificate
    assert mark is not None
    assert (mark.kind, mark.chain, mark.domains) == (
        MarkKind.VERIFIED,
        ChainState.TRUSTED,
        (DOMAIN,),
    )


def test_the_logo_of_the_guide_passes() -> None:
    """The example in docs/how-to/show-your-logo.md has no fault."""
    page = SOURCE / "docs" / "how-to" / "show-your-logo.md"
    (block,) = [one for one in read_blocks(page) if one.language == "xml"]
    assert check_logo(block.text.encode(), LOGO_URL).findings == ()


@rows(
    ("bimi.no-certificate", True),
    ("bimi.svg-title-long", True),
    ("bimi.undetermined", None),
    ("bimi.issuer-undetermined", None),
    ("bimi.logo-differs", False),
    ("bimi.absent", False),
    ("bimi.declined", False),
)
def test_readiness_is_not_guessed(name: str, ready: bool | None) -> None:
    """A result that could not be determined is neither yes nor no."""
    assert VECTORS[name]().is_ready is ready


def record_of(zone: MemoryZone, domain: str, selector: str = "default") -> BimiRecord:
    """Evaluate the record of a subdomain of d.example."""
    return settle(zone, lambda answers: evaluate_bimi_record(domain, selector, DOMAIN, answers))


def test_the_organizational_domain_is_the_fallback() -> None:
    """A subdomain without a record has that of its organizational domain, with this selector."""
    zone = MemoryZone({NAME: {"TXT": [RECORD]}})
    zone.publish(f"shop._bimi.{DOMAIN}", "TXT", WITHOUT_CERTIFICATE)
    found = record_of(zone, "news.d.example")
    assert (found.found_at, found.location, found.evidence) == (DOMAIN, LOGO_URL, CERTIFICATE_URL)
    assert record_of(zone, "news.d.example", "shop").evidence == ""
    assert record_of(zone, "news.d.example", "other").presence is Presence.ABSENT
    zone.publish("default._bimi.news.d.example", "TXT", "v=BIMI1; l=;")
    assert record_of(zone, "news.d.example").is_declined


@rows(f"default._bimi.news.{DOMAIN}", NAME)
def test_a_lost_answer_is_not_an_absent_record(lost: str) -> None:
    """Without an answer, BIMI is undetermined."""
    zone = MemoryZone({}, failing={lost: DnsStatus.SERVFAIL})
    assert record_of(zone, "news.d.example").presence is Presence.UNDETERMINED


@rows(
    (f"v=bimi1 l={LOGO_URL}", WITHOUT_CERTIFICATE),
    (f"“v=BIMI1”; l={LOGO_URL}; a={CERTIFICATE_URL}", RECORD),
    (f"V=BIMI1; L={LOGO_URL}; A={CERTIFICATE_URL}", RECORD),
    (f"v=BIMI1, l={LOGO_URL}, a={CERTIFICATE_URL}", RECORD),
    ("v=bimi1; l=somewhere", None),
)
def test_a_clear_intention_is_repaired(text: str, fixed: str | None) -> None:
    """A record is proposed only if the URL of the logo is clear."""
    (finding,) = [one for one in setup(text).findings if one.id == "bimi.unreadable"]
    assert (finding.proposed.value if finding.proposed else None) == fixed


@rows(
    "https://192.0.2.1/logo.svg",
    "https://[2001:db8::1]/logo.svg",
    "https://2130706433/logo.svg",
    "https://localhost/logo.svg",
    "https://d.example:25/logo.svg",
    "https://user@d.example/logo.svg",
    "https://d.example\\@e.example/logo.svg",
    "ftp://d.example/logo.svg",
    "data:image/svg+xml;base64,PHN2Zz4=",
    "https://d.example/a b.svg",
    "javascript:alert(1)",
    "https://" + "a" * 5000 + ".example/",
)
def test_only_web_servers_are_asked(url: str) -> None:
    """Only https URLs of host names on the standard port are fetched."""
    assert setup(f"v=BIMI1; l={url};").record.location == ""


@rows(
    ("v=DMARC1; p=quarantine", []),
    ("v=DMARC1; p=quarantine; pct=100", []),
    ("v=DMARC1; p=reject; pct=50", []),
    ("v=DMARC1; p=reject; t=y", ["bimi.dmarc-policy"]),
    ("", ["bimi.dmarc-policy"]),
)
def test_dmarc_must_be_enforced(dmarc: str, expected: list[str]) -> None:
    """Receivers show logos only for domains whose policy they enforce."""
    assert ids(setup(RECORD, dmarc=dmarc)) == expected


@rows(
    ("v=DMARC1; p=reject", "v=DMARC1; p=reject", []),
    ("v=DMARC1; p=reject", "v=DMARC1; p=none", ["bimi.dmarc-policy"]),
    ("v=DMARC1; p=none", "v=DMARC1; p=reject", ["bimi.dmarc-policy"]),
    ("v=DMARC1; p=reject", "v=DMARC1; p=reject; sp=none", ["bimi.dmarc-subdomains"]),
    ("", "v=DMARC1; p=reject; sp=quarantine", []),
    ("", "v=DMARC1; p=none; sp=reject", []),
)
def test_the_organization_must_be_protected_too(own: str, above: str, expected: list[str]) -> None:
    """The policy of the organizational domain must be enforced, besides that of a subdomain."""
    zone = MemoryZone({f"_dmarc.{DOMAIN}": {"TXT": [above]}})
    zone.publish(f"_dmarc.news.{DOMAIN}", "TXT", *([own] if own else []))
    policy = settle(zone, lambda answers: evaluate_dmarc(f"news.{DOMAIN}", answers))
    caa = settle(zone, lambda answers: evaluate_caa(DOMAIN, answers))
    record = BimiRecord(
        f"news.{DOMAIN}", "default", Presence.FOUND, DOMAIN, WITHOUT_CERTIFICATE, LOGO_URL
    )
    files = BimiFiles(LOGO_URL, read_logo(LOGO_URL, served(GOOD_LOGO)))
    verdict = evaluate_bimi(files, instant_of(NOW.timestamp()), record, policy, caa)
    assert [one for one in ids(verdict) if one != "bimi.no-certificate"] == expected


@rows(
    ('<rect onclick="x()"/>', "script"),
    ("<foreignObject/>", "script"),
    (f'<use {XLINK} x:href="javascript:alert(1)"/>', "script"),
    (f'<use {XLINK} x:href=" java&#10;script:alert(1)"/>', "script"),
    ('<use href="//e.example/a"/>', "external"),
    ('<path fill="url(https://e.example/a#b)"/>', "external"),
    ('<path fill="URL( &quot;http://e.example&quot;)"/>', "external"),
    ('<g xml:base="https://e.example/"/>', "external"),
    ('<?xml-stylesheet href="https://e.example/a.css"?>', "external"),
    ("<style>@import 'a.css';</style>", "external"),
    ('<path fill="\\75rl(a)"/>', "external"),
    (f'<use {XLINK} x:href="data:image/png;base64,AAAA"/>', "raster"),
    ('<feImage href="#a"/>', "raster"),
    ("<set/>", "animation"),
    ("<audio/>", "animation"),
    ('<h:img xmlns:h="http://www.w3.org/1999/xhtml"/>', "element"),
    ('<a href="#a"/>', "element"),
    ("<filter/>", "element"),
)
def test_harmful_content_is_found(inside: str, fault: str) -> None:
    """Active content and references are found in each form, and such a file is not shown."""
    logo = check_logo(svg(inside), LOGO_URL)
    assert f"bimi.svg-{fault}" in [one.id for one in logo.findings]
    assert not logo.is_shown


@rows(
    f'<defs><linearGradient id="a"/></defs><use {XLINK} x:href="#a"/><path fill="url(#a)"/>',
    '<metadata><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/></metadata>',
    "<g><title>Inner</title></g><desc>A shop</desc>",
    "<!-- a comment -->",
)
def test_harmless_content_passes(inside: str) -> None:
    """References within the file, metadata and comments are allowed."""
    logo = check_logo(svg(inside), LOGO_URL)
    assert (logo.findings, logo.title, logo.is_shown) == ((), "Shop", True)


LAUGHS = (
    '<!DOCTYPE svg [<!ENTITY a "ha">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>"
)
"""Definitions that expand to a hundred megabytes."""


@rows(
    LAUGHS,
    '<!DOCTYPE svg SYSTEM "file:///etc/passwd">',
    '<!DOCTYPE svg [<!ENTITY x SYSTEM "http://127.0.0.1/">]>',
    '<!DOCTYPE svg [<!ENTITY % x SYSTEM "http://127.0.0.1/"> %x;]>',
)
def test_entities_are_never_expanded(before: str) -> None:
    """A document type declaration ends the check: nothing is expanded or fetched."""
    logo = check_logo(svg("<desc>&i;&x;</desc>", before=before), LOGO_URL)
    assert [one.id for one in logo.findings] == ["bimi.svg-doctype"]
    assert not logo.is_shown


def test_a_bomb_is_not_unpacked() -> None:
    """A small file that expands to many megabytes is read up to the limit only."""
    logo = check_logo(gzip.compress(b" " * 50_000_000), LOGO_URL)
    assert [one.id for one in logo.findings] == ["bimi.logo-too-large"]
    assert (logo.size, logo.svg) == (MAX_READ + 1, b"")


@rows(
    b"",
    b"\x89PNG\r\n",
    b"<html></html>",
    b"<svg/>",
    svg("<g>" * 300 + "</g>" * 300),
    b'<?xml version="1.0" encoding="klingon"?><svg/>',
    gzip.compress(gzip.compress(GOOD_LOGO)),
    GOOD_LOGO + b"<svg/>",
)
def test_other_files_are_not_logos(octets: bytes) -> None:
    """A file that is not one SVG document is reported, and not shown."""
    logo = check_logo(octets, LOGO_URL)
    assert [one.id for one in logo.findings] == ["bimi.logo-not-svg"]
    assert not logo.is_shown


@given(st.one_of(st.binary(max_size=400), st.text(max_size=200).map(svg)))
def test_any_file_can_be_checked(octets: bytes) -> None:
    """The check accepts any octets."""
    check_logo(octets, LOGO_URL)
    with pytest.raises(UnreadableCertificate):
        read_certificate(octets)


FIELDS = {
    "bimi.bad-selector": b"BIMI-Selector: s=shop\r\n",
    "bimi.selector": b"BIMI-Selector: v=BIMI1; s=shop\r\n",
}
"""Fields of a mail that cause exactly this finding."""


@rows(*FIELDS)
def test_the_selector_of_a_mail_is_a_note(name: str) -> None:
    """The report of a mail explains its field BIMI-Selector, without a change of the score."""
    plain, chosen = score(mail=received(MAIL)), score(mail=received(FIELDS[name] + MAIL))
    (finding,) = [one.finding for one in chosen.score.charged if one.finding.id == name]
    assert finding.severity is Severity.NOTE
    assert chosen.score.tenths == plain.score.tenths


@rows(
    (b"", "", ""),
    (b"BIMI-Selector: v=BIMI1; s=shop;\r\n", "shop", ""),
    (b"bimi-selector: v=BIMI1;\r\n s=shop\r\n", "shop", ""),
    (b"BIMI-Selector: v=BIMI1\r\n", "", 'selector ""'),
    (b"BIMI-Selector: v=BIMI1; s=a b\r\n", "", "not valid"),
    (b"BIMI-Selector: v=BIMI1; s=a\r\nBIMI-Selector: v=BIMI1; s=b\r\n", "", "more than once"),
    (b"BIMI-Selector: v=BIMI2; s=a\r\n", "", "does not begin"),
)
def test_the_selector_of_a_mail_is_read(field: bytes, name: str, problem: str) -> None:
    """One field with a version and a valid selector counts."""
    selector = read_logo_selector(field + MAIL)
    assert selector.name == name
    assert problem in selector.problem


@rows(
    ([Mark().build(), ISSUER], ChainState.TRUSTED),
    ([Mark().build(), ISSUER, ROOT], ChainState.TRUSTED),
    ([Mark(issuer="Mark Root").build()], ChainState.TRUSTED),
    ([Mark().build()], ChainState.INCOMPLETE),
    ([Mark(signer="Shop").build(), ISSUER], ChainState.BROKEN),
    (
        [Mark().build(), authority("Mark Issuer", "Mark Root", may_sign=False)],
        ChainState.BROKEN,
    ),
    ([Mark(issuer="Other").build(), authority("Other")], ChainState.UNKNOWN_ROOT),
    ([Mark(issuer="Other").build(), authority("Other", "Gone")], ChainState.INCOMPLETE),
)
def test_issuers_are_followed(files: list, state: ChainState) -> None:  # type: ignore[type-arg]
    """The chain ends at a known root, whose certificate may be missing in the file."""
    assert read_certificate(pem(*files), roots()).chain is state


def test_a_certificate_of_a_mark_is_no_authority() -> None:
    """A mark certificate cannot issue another one."""
    other = Mark(issuer="Shop", domains=("victim.example",)).build()
    file = pem(other, Mark(mark_type="").build(), ISSUER)
    assert read_certificate(file, roots()).chain is ChainState.BROKEN


def test_a_certificate_of_the_organization_is_for_its_subdomains() -> None:
    """Mail of a subdomain shows the logo of the organizational domain."""
    assert setup(RECORD, domain=f"news.{DOMAIN}").findings == ()


@rows(
    ("Registered Mark", MarkKind.VERIFIED),
    ("Government Mark", MarkKind.VERIFIED),
    ("Prior Use Mark", MarkKind.COMMON),
    ("Modified Registered Mark", MarkKind.COMMON),
    ("", MarkKind.UNKNOWN),
)
def test_kinds_of_certificates(mark_type: str, kind: MarkKind) -> None:
    """The type of the mark tells a VMC from a CMC."""
    assert read_certificate(bundle(Mark(mark_type=mark_type)), roots()).kind is kind


EXPIRED = authority("Mark Issuer", "Mark Root", ends=NOW - timedelta(days=1))


@rows(
    (Mark(extension=logotype(GOOD_LOGO, media_type="image/png")), "logo", "not SVG"),
    (Mark(extension=logotype(GOOD_LOGO, uri="https://d.example/logo.svg")), "logo", "elsewhere"),
    (
        Mark(extension=logotype(GOOD_LOGO, uri="data:image/svg+xml;base64,!")),
        "logo",
        "damaged base64",
    ),
    (
        Mark(extension=logotype(GOOD_LOGO, uri="data:image/svg+xml;base64,H4sIAAAA")),
        "logo",
        "cannot be used",
    ),
    (Mark(extension=b""), "logo", "malformed"),
    (Mark(extension=b"\x30\x84\xff\xff\xff\xff"), "logo", "malformed"),
    (Mark(extension=b"\x30\x80\x00\x00"), "logo", "malformed"),
    (Mark(extension=der(0x30, der(0xA1, b""))), "logo", "no logo of its subject"),
    (Mark(extension=der(0x30) * 1000), "logo", "no logo of its subject"),
    # The logo in a certificate must match the hash there.
    (Mark(extension=logotype(GOOD_LOGO, hashed=OTHER_LOGO)), "logo", ""),
    # A certificate is valid from its first day on, until the first one of its chain expires.
    (pem(Mark().build(), EXPIRED), "expired", "an issuer of"),
    (Mark(begins=2), "expired", "valid from"),
    # It is for the names in it, or for one selector of them, without wildcards.
    (Mark(domains=(DOMAIN,)), "", ""),
    (Mark(domains=(f"default._bimi.{DOMAIN}",)), "", ""),
    (Mark(domains=("other.example", DOMAIN.upper())), "", ""),
    (Mark(domains=(f"news.{DOMAIN}",)), "domain", ""),
    (Mark(domains=(f"shop._bimi.{DOMAIN}",)), "domain", ""),
    (Mark(domains=(f"*.{DOMAIN}",)), "domain", ""),
    (Mark(domains=("example",)), "domain", ""),
    (Mark(domains=()), "domain", ""),
)
def test_a_certificate_that_cannot_be_used_says_why(
    mark: bytes | Mark, fault: str, words: str
) -> None:
    """The reason why a certificate or the logo in it cannot be used is named."""
    verdict = setup(RECORD, mark=mark)
    assert ids(verdict) == ([f"bimi.certificate-{fault}"] if fault else [])
    assert words in "".join(one.meaning for one in verdict.findings)


@rows(
    logotype(GOOD_LOGO, algorithms=()),
    logotype(GOOD_LOGO, algorithms=("2a0304",)),
    logotype(GOOD_LOGO).replace(hashlib.sha256(GOOD_LOGO).digest(), bytes(32)),
)
def test_a_logo_with_an_unknown_or_wrong_hash_is_not_verified(extension: bytes) -> None:
    """A logo counts as verified only if all hashes match, and one is known."""
    assert not read_logotype(extension).has_valid_hash


def test_a_bomb_in_a_certificate_is_not_unpacked() -> None:
    """The logo in a certificate is unpacked up to the limit only."""
    found = read_logotype(logotype(b" " * 10_000_000))
    assert len(found.svg) == MAX_READ + 1


@given(st.binary(max_size=300))
def test_any_logotype_can_be_read(octets: bytes) -> None:
    """The parser accepts any octets."""
    for extension in (octets, der(0x30, der(0xA2, der(0xA0, octets)))):
        with pytest.raises(BadLogotype):
            read_logotype(extension)


def test_a_file_may_have_few_certificates() -> None:
    """A file with many certificates is rejected before they are parsed."""
    many = pem(*[ISSUER] * 11)
    for file in (many, many.replace(b"N CERT", b"N X509 CERT").replace(b"D CERT", b"D X509 CERT")):
        with pytest.raises(UnreadableCertificate, match="more than 10"):
            read_certificate(file)


def test_the_known_roots_are_authorities() -> None:
    """Each root of the table has its certificate, which is self-signed and valid for years."""
    for root, certificate in load_roots().values():
        assert certificate.subject == certificate.issuer, root.name
        assert certificate.not_valid_after_utc > NOW + timedelta(days=3650)
        assert root.source.startswith("https://")
        assert root.caa
    assert len(load_roots()) == 5
