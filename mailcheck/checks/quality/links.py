"""The findings about links that filters distrust."""

from collections.abc import Iterator

from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.quality.facts import LinkFacts, MailFacts
from mailcheck.checks.quality.wording import count_of, enumerate_some, quote
from mailcheck.checks.weights import charge


def judge_links(facts: MailFacts) -> tuple[ChargedFinding, ...]:
    """Return the findings about the links of a mail; no link is requested."""
    links = facts.link_facts
    return (*_judge_deceit(links), *_judge_hosts(links), *_judge_form(links))


def _judge_deceit(links: LinkFacts) -> Iterator[ChargedFinding]:
    if links.disguised:
        pairs = [f"{shown} leads to {actual}" for shown, actual in links.disguised]
        yield charge(
            "links.disguised",
            f"The text of a link shows another site than it leads to: {enumerate_some(pairs)}."
            " Fraud looks like that, and filters count it against a mail.",
        )
    if links.mixed_script_hosts:
        yield charge(
            "links.mixed-scripts",
            "The host name of a link mixes two scripts whose letters look alike:"
            f" {enumerate_some(links.mixed_script_hosts)}. Filters treat that as fraud.",
        )
    elif links.punycode_hosts:
        yield charge(
            "links.punycode",
            "The host name of a link has letters outside ASCII"
            f" ({quote(links.punycode_hosts[0])}). Some programs show its encoded form.",
        )
    if links.with_user:
        yield charge(
            "links.user-in-url",
            f"A link has a user name before its host ({quote(links.with_user[0])}), which hides"
            " where it leads.",
        )


def _judge_hosts(links: LinkFacts) -> Iterator[ChargedFinding]:
    if links.shortened:
        yield charge(
            "links.shortened",
            f"Links use a public URL shortener: {enumerate_some(links.shortened)}. Spam uses"
            " shorteners too, so blocklists often contain their names.",
        )
    if links.address_hosts:
        yield charge(
            "links.ip-address",
            "A link leads to an IP address instead of a name"
            f" ({enumerate_some(links.address_hosts)}). Filters treat that as fraud.",
        )
    if links.with_port:
        yield charge(
            "links.port",
            f"A link uses an unusual port ({quote(links.with_port[0])}), which many networks"
            " block.",
        )


def _judge_form(links: LinkFacts) -> Iterator[ChargedFinding]:
    if links.insecure:
        yield charge(
            "links.insecure",
            f"Links lead to http pages: {enumerate_some(links.insecure)}. Browsers warn of them.",
        )
    if links.script_links:
        yield charge(
            "links.script",
            f"The mail has {count_of(links.script_links, 'link')} to a script (javascript:). Mail"
            " programs remove such links, and filters distrust them.",
        )
    if links.relative:
        yield charge(
            "links.relative",
            f"The mail has {count_of(links.relative, 'link')} without a host. Such links do not"
            " work in a mail.",
        )
