"""Decisions of a person about the senders in DMARC reports: mine or not mine."""

from collections.abc import Mapping

from msgspec import Struct

from mailcheck.checks.receiver_reports.services import find_service_by_id
from mailcheck.core.domains.domain_names import parse_domain
from mailcheck.core.domains.receiver_reports import OTHER_SENDERS, SenderDecision
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.ports.clocks import Now
from mailcheck.store.domains.sender_store import SenderStore


def parse_sender(text: str) -> str:
    """Return the key of a sender in its stored form.

    :raises InvalidParameter: the text is not the id of a service, a domain or an IP address.
    """
    text = text.strip()
    address = parse_ip_address(text)
    if address is not None:
        return str(address)
    if text == OTHER_SENDERS or find_service_by_id(text) is not None:
        return text
    try:
        return parse_domain(text, allow_special_use=True)
    except InvalidParameter:
        raise InvalidParameter(
            "sender",
            f'sender must be the key of a sender, as the reports show it; got "{text[:60]}"',
        ) from None


class DecideSenders(Struct, frozen=True, eq=False):
    """Stores the decisions of an account."""

    store: SenderStore
    now: Now

    async def decide(
        self, account_id: AccountId, domain: str, sender: str, decision: SenderDecision | None
    ) -> None:
        """Store whether a sender of a domain is the account's own; `None`: undecided.

        :raises TooManyDecisions: the account has the maximum number of decisions.
        """
        if decision is None:
            await self.store.forget(account_id, domain, sender)
        else:
            await self.store.decide(account_id, domain, sender, decision, self.now())

    async def of_domain(self, account_id: AccountId, domain: str) -> Mapping[str, SenderDecision]:
        """Return the decisions about the senders of a domain, by key."""
        return await self.store.decisions(account_id, domain)
