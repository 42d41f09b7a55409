"""The findings about links that filters distrust."""

from collections.abc import Iterator

from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.quality.facts import LinkFacts, MailFacts
from mailcheck.checks.quality.wording import count_of, enumerate_some, quote
from mailcheck.checks.weights import charge


def judge_links(facts: MailFacts) -> Iterator[ChargedFinding]:
    """Yield the findings about the links of a mail; no link is requested."""
    links = facts.link_facts
    if links.disguised:
        pairs = [f"{shown} leads to {actual}" for shown, actual in links.disguised]
        yield charge("links.disguised", pairs=enumerate_some(pairs))
    if links.mixed_script_hosts:
        yield charge(
            "links.mixed-scripts", mixed_script_hosts=enumerate_some(links.mixed_script_hosts)
        )
    elif links.punycode_hosts:
        yield charge("links.punycode", punycode_hosts=quote(links.punycode_hosts[0]))
    if links.with_user:
        yield charge("links.user-in-url", with_user=quote(links.with_user[0]))
    if links.shortened:
        yield charge("links.shortened", shortened=enumerate_some(links.shortened))
    if links.address_hosts:
        yield charge("links.ip-address", address_hosts=enumerate_some(links.address_hosts))
    if links.with_port:
        yield charge("links.port", with_port=quote(links.with_port[0]))
    yield from _judge_form(links)


def _judge_form(links: LinkFacts) -> Iterator[ChargedFinding]:
    if links.insecure:
        yield charge("links.insecure", insecure=enumerate_some(links.insecure))
    if links.script_links:
        yield charge("links.script", links=count_of(links.script_links, "link"))
    if links.relative:
        yield charge("links.relative", links=count_of(links.relative, "link"))
