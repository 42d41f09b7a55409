"""An adapter for pyspf that evaluates SPF from known DNS answers.

pyspf sends DNS queries during the evaluation and waits for the answers. This adapter never
waits. A query without an answer is added to `Answers.missing` and counts as "no match", and the
evaluation continues, so that one run finds as many missing queries as possible. Such a run is
provisional: it is repeated with the answers until none is missing.

Records are parsed by `mailcheck.checks.spf.record`, as in the check of a domain. pyspf gets the
parsed terms in the order in which it evaluates them, and every error is raised here with a
`Fault`. Nothing of pyspf is patched: each evaluation is a separate object.
"""

from enum import Enum
from ipaddress import IPv6Address
from typing import Any, NoReturn

import spf  # type: ignore[import-untyped]
from dns.rdtypes.IN.A import A
from dns.rdtypes.IN.AAAA import AAAA
from msgspec import Struct

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dns_answers import Answers, DnsAnswer, mx_records, ptr_names, txt_values
from mailcheck.checks.spf.record import (
    Mechanism,
    MechanismName,
    TermProblem,
    expand_macros,
    parse_spf_record,
    to_query_name,
    truncate_name,
)
from mailcheck.checks.spf.tree import MAX_LOOKUPS, MAX_MX_HOSTS, MAX_VOIDS, REDIRECT
from mailcheck.checks.spf_texts import VERSION, is_spf_record
from mailcheck.core.network_addresses import IpAddress

MAX_ADDRESSES = 100
"""Maximum number of addresses of one host that are compared; real hosts have few."""

MAX_PTR_NAMES = 10  # RFC 7208 4.6.4


class Fault(Enum):
    """The reason for a ``permerror``; the value is the rest of a sentence about the record."""

    SYNTAX = "cannot be parsed"
    SEVERAL = "is one of several SPF records, but only one is allowed"
    NO_TARGET_RECORD = "leads to a name that has no SPF record"
    LOOP = "leads back to itself"
    LOOKUPS = f"needs more than the {MAX_LOOKUPS} DNS lookups that are allowed"
    VOIDS = f"has more than {MAX_VOIDS} terms without a DNS record for"
    MX_HOSTS = f"has an mx term with more than {MAX_MX_HOSTS} mail hosts"


class RecordFault(Struct, frozen=True):
    """The fault of the record of ``domain``; ``problem`` is the term that cannot be parsed."""

    fault: Fault
    domain: str
    problem: TermProblem | None = None


class MailQuery(spf.query):  # type: ignore[misc]
    """One evaluation of one identity.

    These attributes are set by ``check()``: ``record`` is the record of the domain, or `None`.
    ``silent`` is the query without an answer that ended the evaluation. ``fault`` is the reason
    for a ``permerror``. ``is_provisional`` is true while answers are missing. ``void_terms`` are
    the terms without a DNS record.
    """

    def __init__(
        self,
        client_ip: IpAddress,
        local_part: str,
        domain: str,
        helo_name: str,
        receiver: str,
        answers: Answers,
    ) -> None:
        if isinstance(client_ip, IPv6Address) and client_ip.ipv4_mapped is not None:
            client_ip = client_ip.ipv4_mapped  # RFC 7208 5
        sender = f"{local_part}@{domain}"
        super().__init__(str(client_ip), sender, helo_name, receiver=receiver)
        # pyspf splits at the first @, which a quoted local part may contain.
        self.l, self.o, self.d = local_part, domain, domain
        self.record: str | None = None
        self.silent: tuple[str, str] | None = None
        self.fault: RecordFault | None = None
        self.is_provisional = False
        self._answers = answers
        self._client_ip = client_ip
        self._path: list[str] = []
        self._depth = 0
        self._terms: dict[str, Mechanism] = {}
        self._terms_by_query: dict[tuple[str, str], str] = {}
        self.void_terms: list[str] = []

    def dns_spf(self, domain: str) -> str | None:
        """Return the record of a domain; the target of an include or redirect must have one."""
        records = [text for text in self.dns(domain, "TXT") if is_spf_record(text)]
        if len(records) > 1:
            self._fail(Fault.SEVERAL, domain)
        if records and not self._path:
            self.record = records[0]
        if not records and self._path:
            self._fail(Fault.NO_TARGET_RECORD, self._path[-1])
        return records[0] if records else None

    def check1(self, spf_text: str | None, domain: str, recursion: int) -> tuple[str, int, str]:
        """Parse one record with our parser and evaluate it with pyspf."""
        if spf_text is None:
            return AuthResult.NONE.value, 250, ""
        record = parse_spf_record(spf_text)
        if record.is_broken:
            self._fail(Fault.SYNTAX, domain, record.problems[0])
        if domain in self._path:
            self._fail(Fault.LOOP, domain)
        if self._path and recursion == self._depth:
            self.check_lookups()  # pyspf evaluates a redirect at the depth of its record
        if record.redirect:
            # pyspf counts a redirect before the terms of its record, although it may never follow
            # it. It is counted above, once it is followed (RFC 7208 4.6.4).
            self.lookups -= 1
        self._terms.update((mechanism.text, mechanism) for mechanism in record.mechanisms)
        # Only valid terms are passed on, so pyspf finds no error that our parser did not find.
        terms = [mechanism.text for mechanism in record.mechanisms]
        terms += [REDIRECT + record.redirect] if record.redirect else []
        before = self._path, self._depth
        self._path, self._depth = [*self._path, domain], recursion
        try:
            result: tuple[str, int, str] = super().check1(
                " ".join([VERSION, *terms]), domain, recursion
            )
        finally:
            self._path, self._depth = before
        return result

    def validate_mechanism(self, mech: str) -> tuple[str, str, str, int, str]:
        """Return a term as pyspf evaluates it: text, name, argument, length and result."""
        term = self._terms[mech]
        result: str = spf.RESULTS[term.qualifier.value]
        if term.network is not None:
            network = term.network
            return mech, term.name.value, str(network.network_address), network.prefixlen, result
        target = self.expand_domain(term.target) if term.target else self.d
        rdtype = {MechanismName.MX: "MX", MechanismName.INCLUDE: "TXT"}.get(term.name, "A")
        self._terms_by_query[truncate_name(target).lower(), rdtype] = mech
        return mech, term.name.value, target, term.lengths[self._client_ip.version == 6], result

    def expand_domain(self, arg: str) -> str:
        """Expand a domain-spec."""
        return truncate_name(expand_macros(arg, self._value_of))

    def check_lookups(self) -> None:
        """Count a term that queries DNS (RFC 7208 4.6.4)."""
        self.lookups += 1
        if self.lookups > MAX_LOOKUPS:
            self._fail(Fault.LOOKUPS, self.d)

    def _fail(self, fault: Fault, domain: str, problem: TermProblem | None = None) -> NoReturn:
        self.fault = RecordFault(fault, domain, problem)
        raise spf.PermError(fault.name)

    def _value_of(self, letter: str) -> str:
        value: str = self.getp() if letter == "p" else getattr(self, letter)
        if letter == "p" and self.is_provisional:
            self.p = None
            raise spf.TempError("the answer is missing")
        return value

    def dns(
        self,
        name: str,
        qtype: str,
        cnames: dict[str, str] | None = None,
        ignore_void: bool = False,
    ) -> list[Any]:
        """Return an answer (RFC 7208 4.4); names that are not valid in DNS have no records."""
        name = name.removesuffix(".").lower()
        if not name.isascii():
            return [VERSION] if qtype == "TXT" else []  # RFC 8616 4
        question = to_query_name(name)
        if question is None:
            return []
        answer = self._answers.lookup(question, qtype)
        if answer is None:
            self.is_provisional = True
            return [VERSION] if qtype == "TXT" else []
        if not answer.status.is_determined:
            self.silent = (name, qtype)
            raise spf.TempError("DNS")
        values = _values(answer)
        if not values and not ignore_void:
            self._count_void(name, qtype)
        return values

    def dns_mx(self, domainname: str) -> list[Any]:
        """Return the addresses of the mail hosts; a term is void at most once (RFC 7208 4.6.4)."""
        hosts = [exchange for _, exchange in self.dns(domainname, "MX")]
        if len(hosts) > MAX_MX_HOSTS:
            self._fail(Fault.MX_HOSTS, self.d)
        found = [self.dns(host, self.A, ignore_void=True) for host in hosts if host]
        addresses = [address for host in found for address in host]
        if hosts and not addresses and not self.is_provisional:
            self._count_void(domainname, "MX")
        return addresses

    def validated_ptrs(self) -> list[str]:
        """Return the confirmed names of the client; no answer is no match (RFC 7208 5.5)."""
        names = self._dns_or_empty(self._client_ip.reverse_pointer, "PTR", ignore_void=False)
        return [
            name
            for name in map(str, names[:MAX_PTR_NAMES])
            if self.cidrmatch(self._dns_or_empty(name, self.A), self._client_ip.max_prefixlen)
        ]

    def _dns_or_empty(self, name: str, rdtype: str, *, ignore_void: bool = True) -> list[Any]:
        try:
            return self.dns(name, rdtype, ignore_void=ignore_void)
        except spf.TempError:
            self.silent = None
            return []

    def _count_void(self, name: str, rdtype: str) -> None:
        place = name.removesuffix(".").lower(), "A" if rdtype == "AAAA" else rdtype
        self.void_terms.append(self._terms_by_query.get(place, name))
        self.void_lookups += 1
        if self.void_lookups > MAX_VOIDS:
            self._fail(Fault.VOIDS, self.d)


def _values(answer: DnsAnswer) -> list[Any]:
    """Return record data in the form that pyspf expects."""
    rdtype = answer.question.rdtype
    if rdtype == "MX":
        return list(mx_records(answer))
    if rdtype == "PTR":
        return list(ptr_names(answer))
    if rdtype == "TXT":
        return list(txt_values(answer))
    addresses = (r.address for r in answer.records if isinstance(r, A | AAAA))
    return sorted(addresses)[:MAX_ADDRESSES]
