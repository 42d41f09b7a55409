"""Sentences about a sender: why its mail fails, and what to do about it."""

from collections.abc import Iterable, Mapping

from mailcheck.checks.quality.wording import count_of
from mailcheck.checks.receiver_reports.senders import Cause, Sender

MAX_NAMED = 3
"""Maximum number of selectors or domains in a sentence."""

_OTHERWISE = "If it does not, p=reject stops this mail."
_IF_YOURS, _IF_NOT = "If {name} sends for you, ", (" If it does not,", " If you do not know it,")

_SENTENCES: Mapping[Cause, tuple[str, str]] = {
    Cause.PASSES: ("All of its mail passes ({all}).", "No action is needed."),
    Cause.FORWARDED: (
        "{failing} failed because of forwarding, which breaks SPF and DKIM.",
        (
            "No action is needed on your side. Mail that is signed for your domain survives most"
            " forwarding."
        ),
    ),
    Cause.MAYBE_FORWARDED: (
        (
            "{failing} had a broken signature of {domain}. Whether they were forwarded or forged"
            " could not be determined."
        ),
        (
            "If you know that {name} forwards your mail, no action is needed on your side."
            f" {_OTHERWISE}"
        ),
    ),
    Cause.OWN_SIGNATURE: (
        "{failing} had a signature of {domain} that receivers cannot verify with {keys}.",
        (
            "If {name} sends for you, publish its DKIM key at {key} again. It shows the record in"
            f" its DKIM settings. {_OTHERWISE}"
        ),
    ),
    Cause.OWN_KEY: (
        "{failing} had a signature of {domain}, but receivers cannot use the key at {keys}.",
        (
            "If {name} sends for you, publish its complete DKIM key at {key} again. The domain"
            f" check shows the mistake in the present one. {_OTHERWISE}"
        ),
    ),
    Cause.OWN_SPF: (
        "{failing} came from addresses that the SPF {records} of {envelopes} {do} not authorize.",
        (
            "If {name} sends for you, add its addresses to the SPF record of {envelope}."
            f" {_OTHERWISE}"
        ),
    ),
    Cause.OWN_SPF_BROKEN: (
        "{failing} failed because receivers cannot use the SPF {records} of {envelopes}.",
        (
            "Correct the SPF record of {envelope}; the domain check shows the mistake. Until then,"
            " no mail of {envelope} passes SPF."
        ),
    ),
    Cause.OWN_SPF_ABSENT: (
        "{failing} failed because there is no SPF record at {envelopes}.",
        (
            "If {name} sends for you, publish an SPF record at {envelope} that authorizes its"
            f" addresses. {_OTHERWISE}"
        ),
    ),
    Cause.NO_ANSWER: (
        "{failing} could not be verified: receivers got no DNS answer about {asked}.",
        (
            "No record needs to change. If this lasts for days, check that all name servers of"
            " {domain} answer."
        ),
    ),
    Cause.STRICT_ALIGNMENT: (
        "{failing} passed for {aligned}, but the DMARC record requires {domain} itself ({tags}).",
        (
            "Remove {tags} from the DMARC record, so that other names of the domain are accepted,"
            " or sign the mail with d={domain}."
        ),
    ),
    Cause.NO_RESULT: (
        "The receivers of {failing} report no result.",
        "No action is needed. Other receivers show whether the mail passes.",
    ),
    Cause.OTHER_DOMAIN: (
        "{failing} passed for {vouched_for}, which {are} not {domain}.",
        (
            "If {name} sends for you, turn on DKIM for {domain} there, and publish the record that"
            f" it shows. {_OTHERWISE}"
        ),
    ),
    Cause.UNSIGNED: (
        "{failing} had no DKIM signature, and SPF does not pass.",
        "If {name} sends for you, turn on DKIM signing for {domain} there. " + _OTHERWISE,
    ),
    Cause.NOTHING: (
        "Neither SPF nor DKIM passes for {failing}.",
        (
            "If {name} sends for you, set up DKIM for {domain} there. If you do not know it, your"
            " mail is forged, and p=reject stops it."
        ),
    ),
}
"""Reason why mail fails, and advice."""


def explain(sender: Sender) -> str:
    """Return why the mail of a sender fails, or that it passes."""
    return _SENTENCES[sender.cause][0].format_map(_values_of(sender))


def advise(sender: Sender) -> str:
    """Return what to do about a sender."""
    return _SENTENCES[sender.cause][1].format_map(_values_of(sender))


def advise_owner(sender: Sender) -> str:
    """Return what to do about a sender that is the owner's own."""
    text = _SENTENCES[sender.cause][1].removeprefix(_IF_YOURS)
    for ending in _IF_NOT:
        text = text.partition(ending)[0]
    text = text.format_map(_values_of(sender))
    return text[:1].upper() + text[1:]


def _values_of(sender: Sender) -> dict[str, str]:
    keys = [f"{selector}._domainkey.{own}" for selector, own in sender.selectors]
    envelopes = sender.envelope_domains
    return {
        "all": count_of(sender.messages, "message"),
        "failing": count_of(sender.failing, "message"),
        "domain": sender.domain,
        "name": sender.name,
        "keys": _list(keys),
        "key": next(iter(keys), sender.domain),
        "envelopes": _list(envelopes),
        "records": "record" if len(set(envelopes)) < 2 else "records",
        "do": "does" if len(set(envelopes)) < 2 else "do",
        "envelope": next(iter(envelopes), sender.domain),
        "asked": _list((*envelopes, *keys)) or sender.domain,
        "vouched_for": _list(sender.vouched_for),
        "are": "is" if len(set(sender.vouched_for)) == 1 else "are",
        "aligned": _list(name for _, name in sender.strict),
        "tags": _list(f"{tag}=s" for tag, _ in sender.strict),
    }


def _list(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    rest = len(distinct) - MAX_NAMED
    return ", ".join(distinct[:MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")
