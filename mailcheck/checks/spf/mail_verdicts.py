"""What SPF says about one mail."""

from dataclasses import dataclass, replace
from enum import Enum

from mailcheck.checks.auth_results import AuthResult
from mailcheck.core.network_addresses import IpAddress


class SpfIdentity(Enum):
    """The two identities that SPF checks (RFC 7208 2.3, 2.4)."""

    MAIL_FROM = "mailfrom"
    HELO = "helo"


@dataclass(frozen=True, slots=True)
class SpfOfIdentity:
    """The result for one identity.

    ``domain`` is the one whose record was read, ``record`` its text where one
    was found, ``mechanism`` the term that matched (empty when none did).
    ``explanation`` says in a sentence how the result came about: which term
    matched, which error it is, which name did not answer; ``silent_names`` are
    those names.
    """

    identity: SpfIdentity
    domain: str
    result: AuthResult
    record: str | None
    mechanism: str
    explanation: str
    silent_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SpfOfMail:
    """Both identities of one mail.

    With the null reverse-path ``mail_from`` is about ``postmaster@<helo>``
    (RFC 7208 2.4). A HELO name that is an address literal or no domain name has
    no SPF: its result is ``none``.
    """

    client_ip: IpAddress
    mail_from: SpfOfIdentity
    helo: SpfOfIdentity

    @property
    def has_pass(self) -> bool:
        """Tell whether the MAIL FROM identity passes: the one that DMARC and receivers look at."""
        return self.mail_from.result is AuthResult.PASS

    @property
    def is_by_helo(self) -> bool:
        """Tell whether MAIL FROM was judged by the HELO name, as with the null reverse-path."""
        return replace(self.mail_from, identity=SpfIdentity.HELO) == self.helo
