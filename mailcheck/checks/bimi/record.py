"""Evaluation of BIMI records (draft-brand-indicators-for-message-identification)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.aliases import alias_target, publish_at_target
from mailcheck.checks.dns_answers import Answers, Presence, look_up, txt_values
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.tags.tag_lists import TagList, has_version, parse_tag_list
from mailcheck.checks.tags.tag_repair import find_tags, name_mistake, start_of, without_look_alikes
from mailcheck.core.network_addresses import parse_ip_address

VERSION = "BIMI1"
DEFAULT_SELECTOR = "default"

LOCATION, EVIDENCE, PREFERENCE = "l", "a", "avp"
KNOWN_TAGS = ("v", LOCATION, EVIDENCE, PREFERENCE, "lps")

MAX_TEXT = 4_096
"""Maximum number of characters of a record that are evaluated; real ones have up to 300."""

MAX_SHOWN = 80  # characters of a value that are quoted

_NEAR_MISS = re.compile(r"bimi-?v?1?|^l=https?:", re.ASCII)  # against the result of `start_of`
_HOST = re.compile(r"(?=.{4,253}$)(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]")
_URL = re.compile(r"https://[!-~]+", re.ASCII)


class Preference(Enum):
    """The picture that a receiver shows if it has one of the person, too (``avp=``)."""

    BRAND = "brand"
    PERSONAL = "personal"


class BimiRecord(Struct, frozen=True):
    """The record that applies to mail of a domain.

    ``found_at`` is the domain below which the record is published: the domain itself, or its
    organizational domain. ``text`` is the record, even if receivers ignore it, or empty without
    one. ``location`` and ``evidence`` are URLs that can be fetched, or empty.
    """

    domain: str
    selector: str
    presence: Presence
    found_at: str | None = None
    text: str = ""
    location: str = ""
    evidence: str = ""
    preference: Preference | None = None
    is_declined: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def wanted_urls(self) -> tuple[str, str]:
        """The URLs of the logo and of the certificate; empty if there is none that can be fetched.

        If receivers ignore the record, these are the URLs that its advice names, so that the advice
        is verified with the files.
        """
        proposed = [
            finding.proposed.value for finding in self.findings if finding.proposed is not None
        ]
        tags = [parse_tag_list(text) for text in (self.text, *proposed)]
        location, evidence = (
            next(filter(is_usable_url, (tag_list.get(tag) or "" for tag_list in tags)), "")
            for tag in (LOCATION, EVIDENCE)
        )
        return location, evidence

    @property
    def name(self) -> str:
        """The DNS name of the record."""
        return record_name(self.selector, self.found_at or self.domain)


def record_name(selector: str, domain: str) -> str:
    """Return the DNS name of a record."""
    return f"{selector}._bimi.{domain}"


def evaluate_bimi_record(
    domain: str, selector: str, organizational_domain: str | None, answers: Answers
) -> BimiRecord:
    """Evaluate the record of a domain, or that of its organizational domain without one.

    :param organizational_domain: `None` if it could not be determined.
    """
    places = tuple(dict.fromkeys((domain, organizational_domain or domain)))
    found = [look_up(answers, record_name(selector, place), "TXT") for place in places]
    for place, answer in zip(places, found, strict=True):
        name = record_name(selector, place)
        if not answer.status.is_determined:
            silence = undetermined("bimi.undetermined", [name])
            return BimiRecord(domain, selector, Presence.UNDETERMINED, findings=(silence,))
        texts = [value[:MAX_TEXT] for value in txt_values(answer)]
        records = [value for value in texts if has_version(value, VERSION)]
        near = [value for value in texts if _NEAR_MISS.search(start_of(value))]
        if not records and not near:
            continue
        if len(records) == 1:
            record = _read(domain, selector, place, records[0])
        else:
            text = records[0] if records else near[0]
            record = BimiRecord(domain, selector, Presence.ABSENT, place, text)
            fault = _several(name, records) if records else _unreadable(name, text)
            record = replace(record, findings=(fault,))
        target = alias_target(answer)
        findings = [publish_at_target(finding, name, target) for finding in record.findings]
        return replace(record, findings=tuple(findings))
    absent = make_finding("bimi.absent", domain=domain, selector=record_name(selector, domain))
    return BimiRecord(domain, selector, Presence.ABSENT, findings=(absent,))


def is_usable_url(text: str) -> bool:
    """Return whether a text is an https URL of a public host name on the standard port."""
    if _URL.fullmatch(text) is None or len(text) > MAX_TEXT // 2:
        return False
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    is_name = _HOST.fullmatch(host) is not None and parse_ip_address(host) is None
    return is_name and port in (None, 443) and parts.username is None


def _read(domain: str, selector: str, place: str, text: str) -> BimiRecord:
    tags, name = parse_tag_list(text), record_name(selector, place)
    location, evidence = tags.get(LOCATION), tags.get(EVIDENCE) or ""
    if location == "" and not evidence:
        declined = make_finding("bimi.declined", domain=domain, name=name)
        return BimiRecord(
            domain, selector, Presence.FOUND, place, text, is_declined=True, findings=(declined,)
        )
    findings = tuple(_judge(name, text, tags))
    usable = location if location and is_usable_url(location) else ""
    preference = next((known for known in Preference if known.value == tags.get(PREFERENCE)), None)
    return BimiRecord(
        domain=domain,
        selector=selector,
        presence=Presence.FOUND if usable else Presence.ABSENT,
        found_at=place,
        text=text,
        location=usable,
        evidence=evidence if is_usable_url(evidence) else "",
        preference=preference,
        findings=findings,
    )


def _judge(name: str, text: str, tags: TagList) -> Iterator[Finding]:
    if tags.problems:
        yield make_finding(
            "bimi.syntax", proposed=_repaired(name, text), name=name, problems=tags.problems[0]
        )
    if not tags.get(LOCATION):
        yield make_finding("bimi.no-location", name=name)
    for tag, what in ((LOCATION, "logo"), (EVIDENCE, "certificate")):
        yield from _judge_url(name, tags, tag, what)
    preference = tags.get(PREFERENCE)
    if preference is not None and preference not in [known.value for known in Preference]:
        yield make_finding(
            "bimi.bad-preference",
            proposed=_changed(name, tags.tags, {PREFERENCE: _near_preference(preference)}),
            name=name,
            preference=preference[:MAX_SHOWN],
        )
    unknown = [tag for tag in tags.tags if tag not in KNOWN_TAGS]
    if unknown:
        names = ", ".join(tag[:MAX_SHOWN] for tag in unknown[:5])
        yield make_finding("bimi.unknown-tag", name=name, names=names)


def _judge_url(name: str, tags: TagList, tag: str, what: str) -> Iterator[Finding]:
    url = tags.get(tag)
    if not url or is_usable_url(url):
        return
    secure = re.sub(r"^http:", "https:", url, count=1, flags=re.I | re.A)
    if secure != url and is_usable_url(secure):
        yield make_finding(
            "bimi.not-https",
            proposed=_changed(name, tags.tags, {tag: secure}),
            what=what,
            tag=tag,
            name=name,
        )
        return
    bare = f"https://{url}"
    yield make_finding(
        "bimi.bad-url",
        proposed=_changed(name, tags.tags, {tag: bare}) if is_usable_url(bare) else None,
        what=what,
        tag=tag,
        name=name,
        url=url[:MAX_SHOWN],
    )


def _near_preference(text: str) -> str:
    """Return the intended preference, or an empty text if none is meant clearly."""
    word = text.strip().lower()
    return word if word in [preference.value for preference in Preference] else ""


def _changed(
    name: str, tags: Mapping[str, str], changes: Mapping[str, str]
) -> RecordToPublish | None:
    """Return the record with other values; a tag with an empty new value is left out."""
    new = {**tags, **changes}
    kept = [f"{tag}={value}" for tag, value in new.items() if value or tag not in changes]
    return RecordToPublish(name, "TXT", f"{'; '.join(kept)};")


def _repaired(name: str, text: str) -> RecordToPublish | None:
    """Return the intended record of a text, or `None` if its logo is not clear."""
    tags = dict(find_tags(without_look_alikes(text), (LOCATION, EVIDENCE, PREFERENCE)))
    urls = {tag: re.split(r"[;\s]", tags.get(tag, ""))[0] for tag in (LOCATION, EVIDENCE)}
    if not is_usable_url(urls[LOCATION]) or (urls[EVIDENCE] and not is_usable_url(urls[EVIDENCE])):
        return None
    more = {PREFERENCE: _near_preference(tags.get(PREFERENCE, ""))}
    return _changed(name, {"v": VERSION}, {**urls, **more})


def _several(name: str, records: Sequence[str]) -> Finding:
    kept = RecordToPublish(name, "TXT", records[0])
    return make_finding("bimi.several", proposed=kept, domain=name)


def _unreadable(name: str, text: str) -> Finding:
    mistake = name_mistake(text)
    return make_finding(
        "bimi.unreadable",
        proposed=_repaired(name, text),
        name=name,
        text=text[:40],
        version=VERSION,
        mistake=f": {mistake}" if mistake else "",
    )
