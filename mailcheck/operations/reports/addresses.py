"""The addresses to which an account's reports go, and the records that ask for them."""

from msgspec import Struct

from mailcheck.core.receiver_reports import (
    ReportKind,
    ReportPlaces,
    report_local_part,
    report_token,
)

TLS_PATH = "/tls-reports/"
"""Where TLS reports are posted; what follows stands for the account."""


class ReportAddresses(Struct, frozen=True):
    """``domains`` are ours, the first of them is shown; ``url`` is where the daemon answers.

    ``is_offered``: mail from outside comes here, so that advice may name the addresses.
    """

    domains: tuple[str, ...]
    url: str
    is_offered: bool = True

    def places(self, mailbox_name: str) -> ReportPlaces:
        """Give where the reports of an account go."""
        dmarc, tls = (self.mail_address(kind, mailbox_name)[0] for kind in ReportKind)
        return ReportPlaces(dmarc, tls, self.post_url(mailbox_name))

    def mail_address(self, kind: ReportKind, mailbox_name: str) -> tuple[str, ...]:
        """Give the addresses of an account, the one that is shown first."""
        local_part = report_local_part(kind, mailbox_name)
        return tuple(f"{local_part}@{domain}" for domain in self.domains)

    def post_url(self, mailbox_name: str) -> str:
        """Give where TLS reports are posted."""
        return f"{self.url}{TLS_PATH}{report_token(mailbox_name)}"

    def tls_places(self, mailbox_name: str) -> tuple[str, ...]:
        """Give the URIs with which a TLS-RPT record asks for reports to an account."""
        mails = self.mail_address(ReportKind.TLS, mailbox_name)
        return (*(f"mailto:{one}" for one in mails), self.post_url(mailbox_name))
