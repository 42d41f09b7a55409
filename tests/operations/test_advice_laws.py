"""No advice, and no two pieces of advice together, turn a pass into anything else.

The worlds are drawn: records, redirects, includes, macros and dead hosts. Passes are judged as a
receiver judges them, not by the evaluation that verifies the advice.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from ipaddress import ip_address
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.identities import Identities, header_of, read_identities
from mailcheck.checks.dkim.mail import evaluate_keys
from mailcheck.checks.dkim.verify import verify_signatures
from mailcheck.checks.dmarc.mail import evaluate_dmarc_of_mail
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.proofs import ProvenFix
from mailcheck.checks.spf.mail import evaluate_spf_of_mail
from mailcheck.core.deliverability_tests import ReceivedMail
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.mail_signer import RSA
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.operations.described_domain import describe
from tests.operations.scored_mails import HELO, MAIL, PERFECT, SENDER, received, score

THOROUGH = 2_000
"""Number of worlds in `make soak`."""

DOMAIN = "sender.example"

HOSTS = {
    "mx.sender.example": {"A": ["8.8.4.10"], "TXT": ["v=spf1 a -all"]},
    "h.sender.example": {"A": ["8.8.4.2"]},
    "six.sender.example": {"AAAA": ["2600:6::1"]},
    "good.example": {"TXT": ["v=spf1 ip4:8.8.8.0/24 -all"]},
    "open-ended.example": {"TXT": ["v=spf1 ip4:8.8.9.0/24"]},
    "neutral.example": {"TXT": ["v=spf1 ip4:8.8.10.0/24 ?all"]},
    "soft.example": {"TXT": ["v=spf1 ip4:8.8.11.0/24 ~all"]},
    "deep.example": {"TXT": ["v=spf1 include:good.example redirect=neutral.example"]},
    "broken.example": {"TXT": ["v=spf1 ip4:8.8.12.0/24 nonsense -all"]},
    "dead-inside.example": {"TXT": ["v=spf1 a:gone.example ip4:8.8.13.0/24 -all"]},
    "10.4.8.8.in-addr.arpa": {"PTR": ["mx.sender.example."]},
    "8.8.14.1.list.example": {"A": ["127.0.0.2"]},
    "sender.example.of.example": {"TXT": ["v=spf1 ip4:8.8.15.0/24"]},
    "ann.by-user.example": {"TXT": ["v=spf1 ip4:8.8.16.0/24 ?all"]},
    RSA.key_name: {"TXT": [RSA.key_record]},
}
"""Hosts, and the records that the terms below lead to."""

CLIENTS = (
    *("8.8.4.10", "8.8.4.2", "8.8.4.1", "2600:6::1", "8.8.6.7", "8.8.8.5", "8.8.9.5", "8.8.10.5"),
    *("8.8.11.5", "8.8.12.5", "8.8.13.5", "8.8.14.1", "8.8.15.5", "8.8.16.5"),
)
"""Addresses, each of which some term permits."""

SOUND = st.sampled_from(
    [
        *("mx", "mx", "a", "a:h.sender.example", "a:six.sender.example", "ip4:8.8.6.7"),
        *("include:good.example", "include:open-ended.example", "include:neutral.example"),
        *("include:deep.example", "include:%{d}.of.example", "include:%{l}.by-user.example"),
        *("exists:%{i}.list.example", "include:soft.example", "-ip4:8.8.8.5"),
    ]
)
ODD = st.sampled_from(
    [
        *("8.8.6.7", "ipv4:8.8.6.7", "?a:h.sender.example", "include:broken.example", "ptr"),
        *("include:dead-inside.example", "include:sender.example", "include:gone.example"),
        *("exists:gone.example", "a:gone.example", "a:gone.sender.example", "mx:other.example"),
        *("a:mx.sender.example.sender.example", "-all", "nonsense"),
    ]
)
ENDS = st.sampled_from(
    [
        *("", "-all", "~all", "?all", "redirect=good.example", "redirect=open-ended.example"),
        *("redirect=neutral.example", "redirect=deep.example", "redirect=%{d}.of.example"),
        *("redirect=%{l}.by-user.example", "redirect=gone.example", "redirect=sender.example"),
        *("-all redirect=good.example", "redirect=neutral.example ~all"),
    ]
)
TERMS = st.tuples(st.lists(SOUND, max_size=3), st.lists(ODD, max_size=2)).flatmap(
    lambda both: st.permutations([*both[0], *both[1]])
)
SPF = st.builds(lambda terms, end: " ".join(["v=spf1", *terms, end]).strip(), TERMS, ENDS)
DMARC = st.builds(
    lambda tags: "; ".join(["v=DMARC1", *tags]),
    st.lists(
        st.sampled_from(
            [
                *("p=none", "p=quarantine", "p=reject", "sp=none", "pct=0", "pct=50", "t=y"),
                *("adkim=s", "aspf=s", "psd=y", "rua=mailto:d@sender.example", "rubbish"),
                *("rua=mailto:someone@gmail.com", "p=bogus", "np=reject"),
            ]
        ),
        max_size=4,
        unique_by=lambda tag: tag.partition("=")[0],
    ),
)
MX = st.sampled_from(
    [
        (),
        ("10 mx.sender.example.",),
        ("10 mx.sender.example.sender.example.",),
        ("10 gone.sender.example.",),
        ("10 mx.sender.example.sender.example.", "20 mx.sender.example.sender.example."),
        ("10 gone.sender.example.", "20 mx.sender.example."),
        ("0 .",),
        ("0 .", "10 mx.sender.example."),
        ("10 8.8.4.10.",),
    ]
)
KEYS = st.sampled_from(
    [
        (RSA.key_record,),
        (),
        (RSA.key_record.replace("v=DKIM1;", "v=DKIM1; t=y;"),),
        (RSA.key_record, f"{RSA.key_record};"),
        (RSA.key_record, "hello"),
    ]
)


class World(Struct, frozen=True):
    """The records of a domain, and a mail from it.

    ``author`` is the domain in From; the mail is signed by the domain if ``is_signed``.
    """

    spf: tuple[str, ...]
    dmarc: tuple[str, ...]
    mx: tuple[str, ...]
    keys: tuple[str, ...]
    client: str
    author: str
    is_signed: bool

    @property
    def mail(self) -> ReceivedMail:
        """The mail."""
        raw = MAIL.replace(b"ann@sender.example", f"ann@{self.author}".encode(), 1)
        signed = RSA.sign(raw) if self.is_signed else raw
        return received(signed, client_ip=self.client)

    def build_zone(self) -> MemoryZone:
        """Publish the records."""
        zone = MemoryZone({**PERFECT, **HOSTS})
        for name, rdtype, values in (
            (DOMAIN, "TXT", self.spf),
            (f"_dmarc.{DOMAIN}", "TXT", self.dmarc),
            (DOMAIN, "MX", self.mx),
            (RSA.key_name, "TXT", self.keys),
            (DOMAIN, "A", ("8.8.4.1",)),
        ):
            zone.publish(name, rdtype, *values)
        return zone


WORLDS = st.builds(
    World,
    spf=st.one_of(SPF.map(lambda one: (one,)), st.lists(SPF, max_size=2).map(tuple)),
    dmarc=st.one_of(DMARC.map(lambda one: (one,)), st.lists(DMARC, max_size=2).map(tuple)),
    mx=MX,
    keys=KEYS,
    client=st.sampled_from(CLIENTS),
    author=st.sampled_from([DOMAIN, f"news.{DOMAIN}"]),
    is_signed=st.booleans(),
)


def find_passing(zone: MemoryZone, mail: ReceivedMail, clients: Iterable[str]) -> set[str]:
    """Return the clients whose mail passes SPF, and the checks that this mail passes."""
    identities = read_identities(header_of(mail.raw_message))
    passing = {
        client for client in clients if settle(zone, partial(_judge_spf, client)) is AuthResult.PASS
    }
    return passing | settle(zone, partial(_judge_mail, mail, identities))


def _judge_spf(client: str, answers: Answers) -> AuthResult:
    address = ip_address(client)
    return evaluate_spf_of_mail(address, HELO, SENDER, "receiver", answers).mail_from.result


def _judge_mail(mail: ReceivedMail, identities: Identities, answers: Answers) -> set[str]:
    address = ip_address(mail.session.client_ip)
    spf = evaluate_spf_of_mail(address, HELO, SENDER, "receiver", answers)
    keys = evaluate_keys(identities.signatures, answers)
    dkim = verify_signatures(mail.raw_message, identities.signatures, keys, mail.received_at)
    dmarc = evaluate_dmarc_of_mail(identities.author_domains, spf, dkim, answers)
    results = {"SPF": spf.has_pass, "HELO": spf.helo.result is AuthResult.PASS}
    results |= {"DKIM": bool(dkim.passing), "DMARC": dmarc.result is AuthResult.PASS}
    return {name for name, is_pass in results.items() if is_pass}


def publish(zone: MemoryZone, fixes: Sequence[ProvenFix]) -> MemoryZone:
    """Follow advice from top to bottom: each record replaces an earlier one of the same place."""
    removed = {(fix.record.name, fix.record.value) for fix in fixes[:-1]}
    for fix in fixes:
        record, gone = fix.record, {(fix.record.name, one) for one in fix.removed}
        published = zone.published(record.name, record.rdtype)
        kept = [one for one in published if (record.name, one) not in gone | removed]
        zone.publish(record.name, record.rdtype, *dict.fromkeys([*kept, record.value]))
    return zone


@settings(max_examples=20 if settings().max_examples < 1_000 else THOROUGH)
@given(WORLDS)
def test_no_advice_and_no_pair_costs_a_pass(world: World) -> None:
    """Each pass holds after each shown record, and after each pair of them."""
    mail = world.mail
    before = find_passing(world.build_zone(), mail, CLIENTS)
    of_domain = describe(world.build_zone(), hosts=FakeHosts(), domain=DOMAIN).proofs
    report = score(world.build_zone(), mail)
    for proofs in (of_domain, report.proofs):
        shown = list({one.record: one for one in proofs.values() if not one.beside}.values())
        alone = []
        for fix in shown:
            after = find_passing(publish(world.build_zone(), [fix]), mail, CLIENTS)
            assert before <= after, (fix.finding.id, fix.record, before - after)
            alone.append(after)
        for (fix, one), (other, two) in combinations(zip(shown, alone, strict=True), 2):
            wanted = (one | two).intersection(CLIENTS)
            both = find_passing(publish(world.build_zone(), [fix, other]), mail, wanted)
            assert one <= both, (fix.record, other.record, one - both)
            assert two <= both, (fix.record, other.record, two - both)
    for fix in report.proofs.values():
        if not fix.beside:
            after_score = score(publish(world.build_zone(), [fix]), mail).score.tenths
            assert after_score >= report.score.tenths, fix.record
