"""The facts about the client of a connection."""

from msgspec import Struct

from mailcheck.core.accounts import Caller
from mailcheck.core.identifiers import AccountId
from mailcheck.core.messages import Session, TlsFacts


class ClientOverrides(Struct, frozen=True):
    """The facts that a trusted host sends about its client; `None` for each that is missing.

    ``is_extended`` is true for ESMTP and false for SMTP.
    """

    client_ip: str | None = None
    helo_name: str | None = None
    is_extended: bool | None = None


class Client:
    """The facts about the client of a connection that are known so far.

    ``ip`` is the real peer, or the address in the PROXY header. Policies use ``claimed_ip``, which
    XCLIENT can change. ``helo_name`` is empty before EHLO or HELO. ``forwarded`` comes from
    XFORWARD and applies to the next mail only.
    """

    __slots__ = (
        "claimed_ip",
        "forwarded",
        "helo_name",
        "ip",
        "is_extended",
        "overrides",
        "signed_in",
        "tls",
    )

    def __init__(self, ip: str) -> None:
        self.ip = ip
        self.tls: TlsFacts | None = None
        self.forwarded: ClientOverrides | None = None
        self.override(ClientOverrides())

    @property
    def account_id(self) -> AccountId | None:
        """The account that has authenticated, or `None`."""
        return None if self.signed_in is None else self.signed_in.account_id

    def override(self, overrides: ClientOverrides) -> None:
        """Replace the facts that XCLIENT names, and reset the session."""
        self.overrides = overrides
        self.claimed_ip = overrides.client_ip or self.ip
        self.reset()

    def set_helo_name(self, helo_name: str, *, is_extended: bool) -> None:
        """Store the name of EHLO or HELO, unless XCLIENT overrides it."""
        overrides = self.overrides
        self.helo_name = overrides.helo_name or helo_name
        self.is_extended = is_extended if overrides.is_extended is None else overrides.is_extended

    def reset(self) -> None:
        """Return to the state after connecting; TLS and XCLIENT's facts stay."""
        self.set_helo_name("", is_extended=False)
        self.signed_in: Caller | None = None
        self.forwarded = None

    def session(self) -> Session:
        """Return the facts for the mail that begins now.

        The facts of XFORWARD and of the connection are not mixed. Without an address, the
        mail comes from the forwarding host itself (Postfix's XFORWARD_README, notes 4 and "server
        operation").
        """
        forwarded, account_id = self.forwarded, self.account_id
        user_name = "" if self.signed_in is None else self.signed_in.user_name
        if forwarded is None or forwarded.client_ip is None:
            helo = self.helo_name, self.is_extended
            return Session(self.claimed_ip, *helo, self.tls, account_id, user_name)
        helo = forwarded.helo_name or "", forwarded.is_extended or False
        return Session(forwarded.client_ip, *helo, None, account_id, user_name)
