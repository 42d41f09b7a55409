"""The words for what is wrong with DKIM keys."""

from collections.abc import Iterator

from mailcheck.checks.dkim.key_record import GOOD_RSA_BITS, RSA, VERSION
from mailcheck.checks.dkim.verdicts import ANY_SELECTOR, DkimKey
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.tag_lists import parse_tag_list

_NEW_KEY = (
    f"Make a new RSA key of {GOOD_RSA_BITS} bits in your mail server or at your mail provider and"
    " publish the record that it shows."
)


def absent(domain: str) -> Finding:
    """Say that there is no key at all."""
    return Finding(
        "dkim.absent",
        Severity.ERROR,
        f"{domain} has no DKIM key, so its mail cannot be signed; Google, Yahoo and Microsoft ask"
        " for signatures.",
        "Switch DKIM on in your mail server or at your mail provider and publish the record that"
        " it shows.",
    )


def hidden(domain: str) -> Finding:
    """Say that there may be keys under a name nobody can guess."""
    return Finding(
        "dkim.hidden",
        Severity.UNDETERMINED,
        f"Could not be determined: there is something below _domainkey.{domain}, but under none"
        " of the usual names, and DNS does not list names.",
        "Name the selector (s= in the DKIM-Signature field of a mail you sent), or send a test"
        " mail: its signature tells.",
    )


def dangling(domain: str, selector: str, target: str) -> Finding:
    """Say that a provider's key is pointed at but not there."""
    return Finding(
        "dkim.dangling",
        Severity.WARNING,
        f"The DKIM record {selector}._domainkey.{domain} points to {target}, where there is no"
        " key; mail signed with it fails.",
        "Switch DKIM on at the provider whose name that is, or remove the record.",
    )


def describe(key: DkimKey, *, has_usable: bool) -> Iterator[Finding]:
    """Give what there is to say about one key; worse when there is no usable one beside it."""
    record, name = key.record, key.record_name
    grave = Severity.WARNING if has_usable else Severity.ERROR
    if key.selector == ANY_SELECTOR:
        yield _wildcard(key)
    if key.is_one_of_several:
        yield Finding(
            "dkim.several",
            grave,
            f"More than one DKIM key stands at {name}; which one counts is undefined, so"
            " signatures may fail.",
            "Keep one of them and move the other to a selector of its own.",
        )
    if record.problem:
        identifier = "dkim.short-key" if record.is_too_short else "dkim.broken-key"
        meaning = f"The DKIM record {name} {record.problem}; mail signed with it fails."
        yield Finding(identifier, grave, meaning, _NEW_KEY)
    elif record.is_revoked:
        yield Finding(
            "dkim.revoked",
            Severity.NOTE if has_usable else Severity.WARNING,
            f"The DKIM key at {name} is revoked (empty p=): mail signed with it fails.",
            "Nothing to do if it is no longer used; otherwise publish the new key.",
        )
    elif not record.is_strong and record.key_type == RSA:
        yield Finding(
            "dkim.weak-key",
            Severity.WARNING,
            f"The DKIM key at {name} has {record.bits} bits; {GOOD_RSA_BITS} are advised, and some"
            " receivers mark shorter ones.",
            _NEW_KEY,
        )
    if record.is_testing and record.is_usable:
        yield _testing(key)


def _wildcard(key: DkimKey) -> Finding:
    return Finding(
        "dkim.wildcard",
        Severity.NOTE,
        f"Every name below {key.record_name.partition('.')[2]} has the same DKIM record (a"
        " wildcard).",
        "Nothing to do if the domain sends no mail; otherwise publish each key at its selector.",
    )


def _testing(key: DkimKey) -> Finding:
    tags = dict(parse_tag_list(key.record.text).tags)
    flags = [flag.strip() for flag in tags.pop("t", "").split(":")]
    kept = ":".join(flag for flag in flags if flag.lower() != "y")
    tags = {"v": VERSION} | tags | ({"t": kept} if kept else {})
    return Finding(
        "dkim.testing",
        Severity.WARNING,
        f"The DKIM key at {key.record_name} is marked as a test (t=y): receivers may treat mail"
        " signed with it as unsigned.",
        "Remove t=y.",
        RecordToPublish(
            key.alias_of or key.record_name,
            "TXT",
            "; ".join(f"{name}={value}" for name, value in tags.items()),
        ),
    )
