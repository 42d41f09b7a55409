"""pyspf, reading from answers that are known already.

pyspf asks DNS in the middle of its work and waits. Here it never does: a
question that isn't answered yet is named (`Answers.missing`), taken as "does
not match", and the work goes on, so that one run names all that can be known
to be needed. Such a run is provisional; it is repeated with the answers, and
the last one, which misses nothing, is an ordinary run of pyspf.

Records are read by our own grammar, the one that judges a domain: pyspf is given
what was read, in the order in which it evaluates it, and every error is raised
here as a value (`Fault`). Nothing of the library is replaced: each evaluation is
an object of its own.
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
"""Addresses of one host that are compared; real hosts have a handful."""

MAX_PTR_NAMES = 10  # RFC 7208 4.6.4


class Fault(Enum):
    """Why a record is permerror for a mail; the value says it, behind the record's domain."""

    SYNTAX = "can't be read"
    SEVERAL = "stands beside another SPF record; there may be one only"
    NO_TARGET_RECORD = "leads to a name that has no SPF record"
    LOOP = "leads back to itself"
    LOOKUPS = f"needs more than the {MAX_LOOKUPS} DNS lookups that are allowed"
    VOIDS = f"has more than {MAX_VOIDS} terms that find nothing in DNS for"
    MX_HOSTS = f"leads to more than {MAX_MX_HOSTS} mail hosts in one mx term"


class RecordFault(Struct, frozen=True):
    """What is wrong with the record of ``domain``; ``problem`` is the term that can't be read."""

    fault: Fault
    domain: str
    problem: TermProblem | None = None


class MailQuery(spf.query):  # type: ignore[misc]
    """One evaluation of one identity.

    After ``check()``: ``record`` is the domain's own record if there is one,
    ``silent`` what did not answer if that ended it, ``fault`` what is wrong if
    it is permerror, ``is_provisional`` that questions are open, ``void_terms`` the
    terms that found nothing.
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
        # pyspf cuts at the first @, which a quoted local part may hold.
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
        """Give the record of a domain; one that an include or redirect leads to must be there."""
        records = [text for text in self.dns(domain, "TXT") if is_spf_record(text)]
        if len(records) > 1:
            self._fail(Fault.SEVERAL, domain)
        if records and not self._path:
            self.record = records[0]
        if not records and self._path:
            self._fail(Fault.NO_TARGET_RECORD, self._path[-1])
        return records[0] if records else None

    def check1(self, spf_text: str | None, domain: str, recursion: int) -> tuple[str, int, str]:
        """Evaluate one record: read by our grammar, handed on in pyspf's words."""
        if spf_text is None:
            return AuthResult.NONE.value, 250, ""
        record = parse_spf_record(spf_text)
        if record.is_broken:
            self._fail(Fault.SYNTAX, domain, record.problems[0])
        if domain in self._path:
            self._fail(Fault.LOOP, domain)
        if self._path and recursion == self._depth:
            self.check_lookups()  # pyspf evaluates a redirect as deep as the record it is in
        if record.redirect:
            # pyspf counts a redirect before the terms of its record, though it may never
            # come to it; it is counted above, once it did (RFC 7208 4.6.4).
            self.lookups -= 1
        self._terms.update((mechanism.text, mechanism) for mechanism in record.mechanisms)
        # What counts of the record: pyspf finds no fault in it that our grammar did not.
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
        """Give a term as pyspf evaluates it: its text, name, argument, length and result."""
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
        """Count a term that asks DNS (RFC 7208 4.6.4)."""
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
            raise spf.TempError("not known yet")
        return value

    def dns(
        self,
        name: str,
        qtype: str,
        cnames: dict[str, str] | None = None,
        ignore_void: bool = False,
    ) -> list[Any]:
        """Read an answer (RFC 7208 4.4): names that DNS can't hold have no records."""
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
        """Give the addresses of the mail hosts; one term is void at most once (RFC 7208 4.6.4)."""
        hosts = [exchange for _, exchange in self.dns(domainname, "MX")]
        if len(hosts) > MAX_MX_HOSTS:
            self._fail(Fault.MX_HOSTS, self.d)
        found = [self.dns(host, self.A, ignore_void=True) for host in hosts if host]
        addresses = [address for host in found for address in host]
        if hosts and not addresses and not self.is_provisional:
            self._count_void(domainname, "MX")
        return addresses

    def validated_ptrs(self) -> list[str]:
        """Give the names that lead back to the client; silence is no match (RFC 7208 5.5)."""
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
    """Give record data as pyspf wants it."""
    rdtype = answer.question.rdtype
    if rdtype == "MX":
        return list(mx_records(answer))
    if rdtype == "PTR":
        return list(ptr_names(answer))
    if rdtype == "TXT":
        return list(txt_values(answer))
    addresses = (r.address for r in answer.records if isinstance(r, A | AAAA))
    return sorted(addresses)[:MAX_ADDRESSES]
