"""What DNS says of a mail: each verdict is made once for the same answers.

The report asks for them, and its advice is judged by the same ones, so that a trial makes
only those anew that its records change.
"""

from mailcheck.checks.deliverability.identities import Identities
from mailcheck.checks.deliverability.origin import Origin
from mailcheck.checks.dkim.mail import DkimOfMail, KeyOfSignature
from mailcheck.checks.dkim.signature_headers import SignatureHeader
from mailcheck.checks.dkim.verify import evaluate_keys
from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dmarc.mail import DmarcOfMail, evaluate_dmarc_of_mail
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.hosts.helo import HeloVerdict, evaluate_helo
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict, evaluate_reverse_dns
from mailcheck.checks.mail_domains import is_local_name, read_mail_domain
from mailcheck.checks.proofs import Kept
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.mail import SpfOfMail, evaluate_spf_of_mail
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.core.network_addresses import IpAddress


class MailVerdicts:
    """The evaluations of one mail; what takes an address judges the sending host by it."""

    def __init__(self, origin: Origin, envelope_sender: str, receiver: str) -> None:
        """Make them for a mail.

        :param receiver: the name of the host that received it.
        """
        self._helo_name = origin.helo_name
        self._envelope_sender = envelope_sender
        self._receiver = receiver
        self.spf = Kept(self._judge_spf)
        self.spf_record = Kept(self._judge_spf_record)
        self.reverse_dns = Kept(self._judge_reverse_dns)
        self.helo = Kept(self._judge_helo)
        self.keys = Kept(self._find_keys)
        self.policy = Kept(self._judge_policy)
        self.dmarc = Kept(self._judge_dmarc)

    def _judge_spf(self, answers: Answers, address: IpAddress) -> SpfOfMail:
        return evaluate_spf_of_mail(
            address, self._helo_name, self._envelope_sender, self._receiver, answers
        )

    def _judge_spf_record(self, answers: Answers, domain: str) -> SpfVerdict:
        return evaluate_spf(domain, answers)

    def _judge_reverse_dns(self, answers: Answers, address: IpAddress) -> ReverseDnsVerdict:
        # The HELO name is proposed where the sending address can be called so.
        name = read_mail_domain(self._helo_name) or ""
        proposed = "" if is_local_name(name) else name
        return evaluate_reverse_dns(address, answers, host_name=proposed)

    def _judge_helo(self, answers: Answers, address: IpAddress) -> HeloVerdict:
        return evaluate_helo(self._helo_name, address, answers)

    def _find_keys(
        self, answers: Answers, headers: tuple[SignatureHeader, ...]
    ) -> tuple[KeyOfSignature, ...]:
        return evaluate_keys(headers, answers)

    def _judge_policy(self, answers: Answers, author: str) -> DmarcVerdict:
        return evaluate_dmarc(author, answers)

    def _judge_dmarc(
        self, answers: Answers, identities: Identities, spf: SpfOfMail | None, dkim: DkimOfMail
    ) -> DmarcOfMail:
        return evaluate_dmarc_of_mail(
            identities.author_domains,
            spf,
            dkim,
            answers,
            author_fields=identities.author_fields,
            judge_policy=lambda author, known: self.policy(known, author),
        )
