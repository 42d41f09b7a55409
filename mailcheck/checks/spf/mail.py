"""SPF of one received mail: who let the client send it, and how that is said (RFC 7208 2)."""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.network_addresses import IpAddress

if TYPE_CHECKING:
    from mailcheck.checks.spf.pyspf_query import MailQuery


class SpfIdentity(Enum):
    """The two identities that SPF checks (RFC 7208 2.3, 2.4)."""

    MAIL_FROM = "mailfrom"
    HELO = "helo"


class SpfOfIdentity(Struct, frozen=True):
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


class SpfOfMail(Struct, frozen=True):
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


MAX_SHOWN = 80  # characters of a term that are repeated


def explain_result(query: "MailQuery", result: AuthResult) -> str:
    """Say in a sentence how the result came about; which term matched or what is wrong."""
    explain: Callable[[MailQuery], str] = {
        AuthResult.NONE: _explain_none,
        AuthResult.TEMPERROR: _explain_silence,
        AuthResult.PERMERROR: _explain_error,
    }.get(result, _explain_match)
    return explain(query)


def shown(text: str) -> str:
    """Give what can be repeated of a text that somebody else wrote."""
    cut = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
    if cut.isprintable():
        return cut
    return "".join(letter if letter.isprintable() else "?" for letter in cut)


def _explain_none(query: "MailQuery") -> str:
    return f"No SPF record stands at {shown(query.o)}."


def _explain_silence(query: "MailQuery") -> str:
    if query.silent is None:
        return "DNS gave no answer in time."
    name, rdtype = query.silent
    return f"DNS gave no usable answer about {shown(name)} ({rdtype})."


def _explain_match(query: "MailQuery") -> str:
    if query.mechanism:
        return (
            f'"{shown(query.mechanism)}" in the SPF record of {shown(query.o)} matches {query.c}.'
        )
    return f"No term in the SPF record of {shown(query.o)} matches {query.c}."


def _explain_error(query: "MailQuery") -> str:
    assert query.fault is not None, "every permerror is raised with what it is"
    where = f"SPF record of {shown(query.fault.domain)}"
    if query.fault.domain != query.o:
        where = f"{where}, which the record of {shown(query.o)} leads to,"
    problem = query.fault.problem
    if problem is not None:
        return f'"{shown(problem.term)}" in the {where} {problem.reason}.'
    return f"The {where} {query.fault.fault.value}."


POSTMASTER = "postmaster"
"""The local part where there is none (RFC 7208 2.4, 4.3)."""


def evaluate_spf_of_mail(
    client_ip: IpAddress,
    helo_name: str,
    envelope_sender: str,
    receiver: str,
    answers: Answers,
) -> SpfOfMail:
    """Judge both identities of a mail, from the answers that are known.

    While ``answers.missing`` is not empty afterwards, the verdict is
    provisional: ask, and evaluate again.

    :param envelope_sender: empty for the null reverse-path.
    :param receiver: the name of the host that received the mail.
    """
    from mailcheck.checks.spf.pyspf_query import MailQuery  # here: few processes need pyspf

    def judge(identity: SpfIdentity, local_part: str, domain: str) -> SpfOfIdentity:
        name = read_mail_domain(domain)
        if name is None or "." not in name:
            return _without_domain(identity, domain)
        helo = read_mail_domain(helo_name) or helo_name
        query = MailQuery(client_ip, local_part, name, helo, receiver, answers)
        return _run(query, identity, name)

    helo = judge(SpfIdentity.HELO, POSTMASTER, helo_name)
    if not envelope_sender:
        return SpfOfMail(client_ip, replace(helo, identity=SpfIdentity.MAIL_FROM), helo)
    local_part, domain = _split_sender(envelope_sender)
    return SpfOfMail(client_ip, judge(SpfIdentity.MAIL_FROM, local_part, domain), helo)


def _split_sender(envelope_sender: str) -> tuple[str, str]:
    """Give local part and domain; of what is no address, what stands where they would."""
    try:
        mailbox = parse_mailbox(envelope_sender)
    except ValueError:
        local_part, _, domain = envelope_sender.rpartition("@")
        return local_part or POSTMASTER, domain
    return mailbox.local_part, mailbox.domain


def _without_domain(identity: SpfIdentity, domain: str) -> SpfOfIdentity:
    where = "HELO" if identity is SpfIdentity.HELO else "the envelope sender"
    words = f'"{shown(domain)}" in {where} is no full domain name, so there is no SPF for it.'
    return SpfOfIdentity(identity, shown(domain), AuthResult.NONE, None, "", words)


def _run(query: "MailQuery", identity: SpfIdentity, domain: str) -> SpfOfIdentity:
    result = AuthResult(query.check()[0])
    has_match = result not in (AuthResult.TEMPERROR, AuthResult.PERMERROR)
    return SpfOfIdentity(
        identity=identity,
        domain=domain,
        result=result,
        record=query.record,
        mechanism=(query.mechanism or "") if has_match else "",
        explanation=explain_result(query, result),
        silent_names=() if query.silent is None else (query.silent[0],),
    )
