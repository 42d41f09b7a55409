"""pyspf, reading from answers that are known already.

pyspf asks DNS in the middle of its work and waits. Here it never does: a
question that isn't answered yet is named (`Answers.missing`), taken as "does
not match", and the work goes on, so that one run names all that can be known
to be needed. Such a run is provisional; it is repeated with the answers, and
the last one, which misses nothing, is an ordinary run of pyspf.

Nothing of the library is replaced: each evaluation is an object of its own.
"""

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from typing import Any

import spf  # type: ignore[import-untyped]
from dns.rdtypes.ANY.TXT import TXT
from dns.rdtypes.IN.A import A
from dns.rdtypes.IN.AAAA import AAAA

from mailcheck.checks.dns_answers import Answers, DnsAnswer
from mailcheck.checks.dns_records import mx_records, ptr_names
from mailcheck.checks.mail_domains import MAX_LABEL
from mailcheck.checks.spf.macros import explain_bad_domain_spec, is_macro_string
from mailcheck.checks.spf.mail_macros import MAX_NAME, cut_to_name, expand_macros
from mailcheck.checks.spf.verdicts import MAX_MX_HOSTS, MAX_VOIDS
from mailcheck.core.network_addresses import IpAddress

MAX_RECORD = 8192
"""Characters of a record that are looked at: sixteen times what RFC 7208 3.4 advises."""

MAX_TERMS = 500
"""Terms of a record: as many addresses as fit into the longest."""

MAX_ADDRESSES = 100
"""Addresses of one host that are compared; real hosts have a handful."""

MAX_PTR_NAMES = 10  # RFC 7208 4.6.4

_MATCHES_NOTHING = b"v=spf1"


class MailQuery(spf.query):  # type: ignore[misc]
    """One evaluation of one identity.

    After ``check()``: ``record`` is the domain's own record if there is one,
    ``silent`` what did not answer if that ended it, ``troubled_domain`` the
    one whose record is at fault, ``is_provisional`` that questions are open.
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
        self.troubled_domain: str | None = None
        self.is_provisional = False
        self._answers = answers
        self._client_ip = client_ip

    def check1(self, spf_text: str, domain: str, recursion: int) -> tuple[str, int, str]:
        """Evaluate one record; note whose record an error is in."""
        try:
            result: tuple[str, int, str] = super().check1(spf_text, domain, recursion)
        except spf.PermError:
            self.troubled_domain = self.troubled_domain or domain
            raise
        return result

    def dns_spf(self, domain: str) -> str | None:
        """Give the record of a domain, if it has one that can be read in bounded time."""
        try:
            text: str | None = super().dns_spf(domain)
        except spf.PermError:
            self.troubled_domain = self.troubled_domain or domain
            raise
        if text is not None and domain == self.o and self.record is None:
            self.record = text
        if text is not None and (len(text) > MAX_RECORD or len(text.split()) > MAX_TERMS):
            self.troubled_domain = domain
            raise spf.PermError("Record too long")
        return text

    def get_explanation(self, spec: str) -> None:
        """Fetch no explanation (RFC 7208 6.2): it changes no result, and anybody can write it."""

    def expand_domain(self, arg: str) -> str:
        """Expand a domain-spec, or the current domain where a term names none."""
        if arg == self.d:
            return arg
        problem = explain_bad_domain_spec(arg)
        if problem is not None:
            raise spf.PermError(f"domain-spec {problem}", arg)
        return cut_to_name(expand_macros(arg, self._value_of))

    def expand(self, s: str, stripdot: bool = True) -> str:
        """Judge the value of an unknown modifier; it has no meaning."""
        if not is_macro_string(s):
            raise spf.PermError("invalid-macro-char", s)
        return s

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
            return [(_MATCHES_NOTHING,)] if qtype == "TXT" else []  # RFC 8616 4
        if len(name) > MAX_NAME or not all(0 < len(x) <= MAX_LABEL for x in name.split(".")):
            return []
        answer = self._answers.lookup(name.replace("\\", "\\\\"), qtype)
        if answer is None:
            self.is_provisional = True
            return [(_MATCHES_NOTHING,)] if qtype == "TXT" else []
        if not answer.status.is_determined:
            self.silent = (name, qtype)
            raise spf.TempError("DNS")
        values = _values(answer)
        if not values and not ignore_void:
            self._count_void()
        return values

    def dns_mx(self, domainname: str) -> list[Any]:
        """Give the addresses of the mail hosts; one term is void at most once (RFC 7208 4.6.4)."""
        hosts = [exchange for _, exchange in self.dns(domainname, "MX")]
        if len(hosts) > MAX_MX_HOSTS:
            raise spf.PermError("Too many MX hosts")
        found = [self.dns(host, self.A, ignore_void=True) for host in hosts if host]
        addresses = [address for host in found for address in host]
        if hosts and not addresses and not self.is_provisional:
            self._count_void()
        return addresses

    def validated_ptrs(self) -> list[str]:
        """Give the names that lead back to the client; silence is no match (RFC 7208 5.5)."""
        return [name for name in self._ptr_names() if self._leads_back(name)]

    def _ptr_names(self) -> list[str]:
        try:
            names = self.dns(self._client_ip.reverse_pointer, "PTR")
        except spf.TempError:
            self.silent = None
            return []
        return [str(name) for name in names[:MAX_PTR_NAMES]]

    def _leads_back(self, name: str) -> bool:
        try:
            addresses = self.dns(name, self.A, ignore_void=True)
        except spf.TempError:
            self.silent = None
            return False
        return self.cidrmatch(addresses, self._client_ip.max_prefixlen)

    def cidrmatch(self, ipaddrs: Sequence[str], n: int) -> bool:
        """Tell whether the client is in a network with one of the addresses, ``n`` bits long."""
        other_bits = self._client_ip.max_prefixlen - n
        network = int(self._client_ip) >> other_bits
        return any(int(ip_address(text)) >> other_bits == network for text in ipaddrs)

    def _count_void(self) -> None:
        self.void_lookups += 1
        if self.void_lookups > MAX_VOIDS:
            raise spf.PermError("Void lookup limit exceeded")


def _values(answer: DnsAnswer) -> list[Any]:
    """Give record data as pyspf wants it."""
    rdtype = answer.question.rdtype
    if rdtype == "MX":
        return list(mx_records(answer))
    if rdtype == "PTR":
        return list(ptr_names(answer))
    if rdtype == "TXT":
        return [record.strings for record in answer.records if isinstance(record, TXT)]
    addresses = (r.address for r in answer.records if isinstance(r, A | AAAA))
    return sorted(addresses)[:MAX_ADDRESSES]
