"""The part of an analysis that begins with reading the mail: signatures, author, links."""

from dataclasses import dataclass
from functools import partial

from mailcheck.checks.arc.verdicts import ArcOfMail
from mailcheck.checks.arc.verify import evaluate_arc_keys
from mailcheck.checks.deliverability.reading import (
    KeysOfMail,
    MailReading,
    read_mail_for_score,
    verify_mail,
)
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dkim.signature_keys import evaluate_keys
from mailcheck.checks.dmarc.evaluate import evaluate_dmarc
from mailcheck.checks.dmarc.mail import evaluate_dmarc_of_mail
from mailcheck.checks.dmarc.mail_alignment import foresee_walks
from mailcheck.checks.dmarc.mail_verdicts import DmarcOfMail
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.mx.evaluate import evaluate_mx
from mailcheck.checks.mx.verdicts import MxVerdict
from mailcheck.checks.spf.mail_verdicts import SpfOfMail
from mailcheck.operations.deliverability.blocklists_of_mail import names_to_ask
from mailcheck.operations.deliverability.score_mail_run import ScoringRun
from mailcheck.operations.domains.ask_blocklists import TimedListing
from mailcheck.operations.fan_out import run_all


@dataclass(frozen=True, slots=True)
class ContentOfMail:
    """What is known of the mail itself.

    ``answers`` are those about the author's domain, which DMARC is judged
    from; ``author_mx`` is nothing when there is no single author domain.
    """

    reading: MailReading
    dkim: DkimOfMail
    arc: ArcOfMail
    author_mx: MxVerdict | None
    answers: Answers
    listings: tuple[TimedListing, ...]

    async def judge_dmarc(self, run: ScoringRun, spf: SpfOfMail) -> DmarcOfMail:
        """Judge DMARC, when SPF is known as well; hardly ever is anything left to ask."""
        authors = self.reading.facts.author_domains
        # What comes from a host that can't be judged might have passed from another one.
        judged = None if run.origin.judged_address is None else spf
        return await run.ask(
            lambda answers: evaluate_dmarc_of_mail(authors, judged, self.dkim, answers),
            self.answers,
        )


async def judge_content_of_mail(run: ScoringRun) -> ContentOfMail:
    """Read the mail, then verify, walk and ask lists at the same time."""
    reading = await run.worker.run(partial(read_mail_for_score, run.mail.raw_message))
    names = names_to_ask(reading.facts.author_domains, run.sender_domain, reading.facts.link_hosts)
    (dkim, arc), (author_mx, answers), listings = await run_all(
        _verify(run, reading),
        _ask_about_author(run, reading),
        run.blocklists.ask_about_names(names),
    )
    return ContentOfMail(reading, dkim, arc, author_mx, answers, listings)


async def _verify(run: ScoringRun, reading: MailReading) -> tuple[DkimOfMail, ArcOfMail]:
    """Verify as soon as the keys are there: not for the other questions' answers."""
    mail = run.mail
    keys = await run.ask(
        lambda answers: KeysOfMail(
            evaluate_keys(reading.signatures, answers), evaluate_arc_keys(reading.chain, answers)
        )
    )
    verify = partial(verify_mail, mail.raw_message, reading, keys, mail.received_at)
    if not reading.signatures and not reading.chain.sets:
        return verify()
    return await run.worker.run(verify)


async def _ask_about_author(
    run: ScoringRun, reading: MailReading
) -> tuple[MxVerdict | None, Answers]:
    """Ask what DMARC may need, before it is known which identifiers pass."""
    answers = Answers()
    authors = reading.facts.author_domains
    if len(authors) != 1:
        return None, answers
    (author,) = authors
    identifiers = [header.signing_domain for header in reading.signatures]
    identifiers.append(run.sender_domain or run.origin.helo_name)

    def evaluate(answers: Answers) -> MxVerdict:
        evaluate_dmarc(author, answers)
        mx = evaluate_mx(author, answers, allow_private=run.allow_private)
        # Foresight is free while something else is open; for its own sake nobody waits.
        if answers.missing:
            foresee_walks(author, filter(None, identifiers), answers)
        return mx

    return await run.ask(evaluate, answers), answers
