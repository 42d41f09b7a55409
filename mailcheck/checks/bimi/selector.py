"""The field BIMI-Selector, with which a mail chooses one of several logos of its domain."""

from msgspec import Struct

from mailcheck.checks.bimi.record import MAX_SHOWN, MAX_TEXT, VERSION
from mailcheck.checks.content.header.fields import split_header
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.tags.tag_lists import has_version, parse_tag_list
from mailcheck.core.domains.domain_names import parse_selector
from mailcheck.core.errors import InvalidParameter

FIELD = "bimi-selector"


class LogoSelector(Struct, frozen=True):
    """The selector of a mail; empty if the mail has no valid one.

    ``problem`` completes the sentence "The field BIMI-Selector ...", or is empty.
    """

    name: str = ""
    problem: str = ""


def read_logo_selector(raw_message: bytes) -> LogoSelector:
    """Parse the field of a mail of any bytes."""
    fields = split_header(raw_message, 0, len(raw_message)).fields
    texts = [field.as_text() for field in fields if field.name.lower() == FIELD]
    if not texts:
        return LogoSelector()
    if len(texts) > 1:
        return LogoSelector(problem="occurs more than once")
    text = " ".join(texts[0][:MAX_TEXT].split())
    if not has_version(text, VERSION):
        return LogoSelector(problem=f'does not begin with "v={VERSION};"')
    selector = parse_tag_list(text).get("s") or ""
    try:
        return LogoSelector(parse_selector(selector))
    except InvalidParameter:
        return LogoSelector(
            problem=f'has the selector "{selector[:MAX_SHOWN]}", which is not valid'
        )


def describe_logo_selector(selector: LogoSelector, domain: str) -> tuple[Finding, ...]:
    """Return the finding about the field; there is none for a mail without it.

    :param domain: the domain of the author, or empty if it is not known.
    """
    if selector.problem:
        return (make_finding("bimi.bad-selector", problem=selector.problem),)
    if not selector.name:
        return ()
    place = domain or "the domain in From"
    return (
        make_finding(
            "bimi.selector", name=selector.name, place=place, at_domain=domain or "DOMAIN"
        ),
    )
