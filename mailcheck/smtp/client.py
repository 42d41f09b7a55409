"""What is known of the client of one connection, and how it comes to be known."""

from dataclasses import dataclass

from mailcheck.core.identifiers import AccountId
from mailcheck.core.messages import Session, TlsFacts


@dataclass(frozen=True, slots=True)
class SpokenFor:
    """A client that another host speaks for; nothing where it was not named.

    ``is_extended`` tells ESMTP from SMTP.
    """

    client_ip: str | None = None
    helo_name: str | None = None
    is_extended: bool | None = None


class Client:
    """The facts of a connection, as far as the client has told them.

    ``ip`` is who really connected, by the PROXY header where there was one.
    ``overrides`` came by XCLIENT and last; ``forwarded`` came by XFORWARD and
    goes for the next mail alone.
    """

    __slots__ = (
        "_helo_name",
        "_is_extended",
        "account_id",
        "forwarded",
        "ip",
        "overrides",
        "tls",
    )

    def __init__(self, ip: str) -> None:
        self.ip = ip
        self._helo_name = ""
        self._is_extended = False
        self.tls: TlsFacts | None = None
        self.account_id: AccountId | None = None
        self.overrides = SpokenFor()
        self.forwarded: SpokenFor | None = None

    @property
    def claimed_ip(self) -> str:
        """The address that policies go by: what XCLIENT said, else who connected."""
        return self.overrides.client_ip or self.ip

    @property
    def helo_name(self) -> str:
        """The name in EHLO or HELO, empty before."""
        return self.overrides.helo_name or self._helo_name

    @property
    def is_extended(self) -> bool:
        """Tell whether the client said EHLO, not HELO."""
        said = self.overrides.is_extended
        return self._is_extended if said is None else said

    def greet(self, helo_name: str, *, is_extended: bool) -> None:
        """Take note of an EHLO or HELO."""
        self._helo_name = helo_name
        self._is_extended = is_extended

    def forget(self) -> None:
        """Go back to the state right after connecting; TLS and XCLIENT's facts stay."""
        self._helo_name = ""
        self._is_extended = False
        self.account_id = None
        self.forwarded = None

    def session(self) -> Session:
        """Freeze the facts for the mail that begins now.

        XFORWARD's facts are not mixed with the connection's own; without an
        address the mail comes from the forwarding host itself (Postfix's
        XFORWARD_README, notes 4 and "server operation").
        """
        forwarded = self.forwarded
        if forwarded is None or forwarded.client_ip is None:
            return Session(
                self.claimed_ip, self.helo_name, self.is_extended, self.tls, self.account_id
            )
        return Session(
            forwarded.client_ip,
            forwarded.helo_name or "",
            forwarded.is_extended or False,
            None,
            self.account_id,
        )
