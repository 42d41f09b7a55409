"""Judging the DKIM keys of a domain; their names have to be guessed (RFC 6376 3.1)."""

from collections.abc import Iterable, Sequence

from mailcheck.checks.dkim import findings as say
from mailcheck.checks.dkim.key_record import is_key_record, parse_key_record
from mailcheck.checks.dkim.selectors import choose_selectors
from mailcheck.checks.dkim.verdicts import ANY_SELECTOR, DkimKey, DkimVerdict
from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsStatus
from mailcheck.checks.dns_records import txt_values
from mailcheck.checks.findings import Finding, undetermined
from mailcheck.checks.lookups import Presence, look_up

NO_SUCH_SELECTOR = "mailcheck-asks-for-a-wildcard"
"""Nobody has a key of this name: an answer means a wildcard record."""


def evaluate_dkim(
    domain: str, answers: Answers, *, known: Sequence[str] = (), hosts: Iterable[str] = ()
) -> DkimVerdict:
    """Judge the keys that can be found below ``_domainkey.<domain>``.

    Every guess is asked as soon as it can be named, all of them at once.

    :param known: selectors from the caller or from signatures that were seen.
    :param hosts: exchanges and SPF includes of the domain, as far as they are known.
    """
    base = f"_domainkey.{domain}"
    tried = choose_selectors(known, hosts)
    found = {name: look_up(answers, f"{name}.{base}", "TXT") for name in tried}
    wildcard = _read_keys(ANY_SELECTOR, look_up(answers, f"{NO_SUCH_SELECTOR}.{base}", "TXT"))
    node = look_up(answers, base, "TXT")
    keys = [key for name, answer in found.items() for key in _read_keys(name, answer)]
    if wildcard:
        covered = {key.record.text for key in wildcard}
        keys = [key for key in keys if key.record.text not in covered]
    keys += wildcard
    silent = [a.question.name for a in (*found.values(), node) if not a.status.is_determined]
    presence = _judge_presence(keys, node, silent)
    dangling = tuple(
        (name, answer.canonical_name) for name, answer in found.items() if _is_dangling(answer)
    )
    return DkimVerdict(
        domain=domain,
        presence=presence,
        is_hidden=presence is Presence.UNDETERMINED and not silent,
        keys=tuple(keys),
        dangling=dangling,
        tried=tried,
        findings=tuple(_find(domain, presence, keys, dangling, silent)),
    )


def _judge_presence(keys: list[DkimKey], node: DnsAnswer, silent: list[str]) -> Presence:
    """Say whether there are keys; that there are none is known only without any node.

    Nothing is below a name that doesn't exist (RFC 8020); some servers say so
    of names that do have something below, so the guesses are asked as well.
    """
    if keys:
        return Presence.FOUND
    if node.status is DnsStatus.NXDOMAIN and not silent:
        return Presence.ABSENT
    return Presence.UNDETERMINED


def _read_keys(selector: str, answer: DnsAnswer) -> list[DkimKey]:
    texts = [text for text in txt_values(answer) if is_key_record(text)]
    asked = answer.question.name
    return [
        DkimKey(
            selector=selector,
            record_name=asked,
            record=parse_key_record(text),
            alias_of=answer.canonical_name if answer.canonical_name != asked else "",
            is_one_of_several=len(texts) > 1,
        )
        for text in texts
    ]


def _is_dangling(answer: DnsAnswer) -> bool:
    """Tell whether a CNAME leads to a name where no TXT record is."""
    return answer.status in (
        DnsStatus.NXDOMAIN,
        DnsStatus.NODATA,
    ) and answer.canonical_name not in ("", answer.question.name)


def _find(
    domain: str,
    presence: Presence,
    keys: list[DkimKey],
    dangling: tuple[tuple[str, str], ...],
    silent: list[str],
) -> list[Finding]:
    found = [say.dangling(domain, selector, target) for selector, target in dangling]
    if presence is Presence.FOUND:
        has_usable = any(key.is_usable for key in keys)
        return [f for key in keys for f in say.describe(key, has_usable=has_usable)] + found
    if presence is Presence.ABSENT:
        return [say.absent(domain), *found]
    if silent:
        return [undetermined("dkim", silent[:3]), *found]
    return found or [say.hidden(domain)]
