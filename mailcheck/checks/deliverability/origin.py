"""Where a mail came from, and whether anything can be said about that address."""

from msgspec import Struct

from mailcheck.core.network_addresses import (
    DOCUMENTATION,
    IpAddress,
    parse_ip_address,
    why_not_public,
)


class Origin(Struct, frozen=True):
    """The sending host. ``problem`` says why its address can't be judged; empty when it can."""

    client_ip: str
    helo_name: str
    address: IpAddress | None
    problem: str

    @property
    def judged_address(self) -> IpAddress | None:
        """Give the address for SPF, reverse DNS and blocklists; nothing where it means nothing."""
        return None if self.problem else self.address

    @property
    def opening(self) -> str:
        """Give the sentence with which the report opens; empty when the address can be judged."""
        if not self.problem:
            return ""
        return f"came from {self.client_ip or 'nowhere'}: only content and DKIM could be judged"


def judge_origin(client_ip: str, helo_name: str, *, allow_private: bool) -> Origin:
    """Tell whether the world could know the address.

    Those reserved for documentation count as public, as in the blocklist
    check: no real mail comes from them, and people try a tool with them.
    """
    address = parse_ip_address(client_ip)
    if address is None:
        return Origin(client_ip, helo_name, None, "not known")
    reason = why_not_public(address)
    is_usable = allow_private or reason in (None, DOCUMENTATION)
    return Origin(client_ip, helo_name, address, "" if is_usable else str(reason))
