"""Findings about the links of a mail: what they look like, not what lies behind them."""

from collections.abc import Iterator

from mailcheck.checks.deliverability.report import Area, ChargedFinding
from mailcheck.checks.mail_quality.facts import LinkFacts, MailFacts
from mailcheck.checks.mail_quality.wording import count_of, enumerate_some, note, quote, warning

_LINKS = Area.LINKS


def judge_links(facts: MailFacts) -> tuple[ChargedFinding, ...]:
    """Judge the links of a mail; none is fetched."""
    links = facts.link_facts
    return (*_judge_deceit(links), *_judge_hosts(links), *_judge_form(links))


def _judge_deceit(links: LinkFacts) -> Iterator[ChargedFinding]:
    if links.disguised:
        pairs = [f"{shown} leads to {actual}" for shown, actual in links.disguised]
        yield warning(
            _LINKS,
            "links.disguised",
            f"The words on a link show another site than it leads to: {enumerate_some(pairs)};"
            " that is how fraud looks, and filters mark it.",
            "Write words on the link, like \u201cYour account\u201d, or let it lead where it says"
            " (click tracking on a name of your own domain).",
        )
    if links.mixed_script_hosts:
        yield warning(
            _LINKS,
            "links.mixed-scripts",
            "A link leads to a name that mixes letters of two scripts that look alike:"
            f" {enumerate_some(links.mixed_script_hosts)}; filters take that for fraud.",
            "Link to a name in one script.",
        )
    elif links.punycode_hosts:
        yield note(
            _LINKS,
            "links.punycode",
            f"A link leads to a name with letters outside ASCII ({quote(links.punycode_hosts[0])}),"
            " which some programs show in its encoded form.",
            "Nothing to do if the name is yours; test how the programs of your readers show it.",
        )
    if links.with_user:
        yield warning(
            _LINKS,
            "links.user-in-url",
            f"A link has a user name before its host ({quote(links.with_user[0])}), which hides"
            " where it leads.",
            "Leave out what stands between // and @.",
        )


def _judge_hosts(links: LinkFacts) -> Iterator[ChargedFinding]:
    if links.shortened:
        yield warning(
            _LINKS,
            "links.shortened",
            f"Links go over a public shortener: {enumerate_some(links.shortened)}; spam uses them"
            " too, so their names are on blocklists time and again.",
            "Link to your own domain.",
        )
    if links.address_hosts:
        yield warning(
            _LINKS,
            "links.ip-address",
            "A link leads to an IP address and not to a name"
            f" ({enumerate_some(links.address_hosts)}); filters take that for fraud.",
            "Link to a domain name.",
        )
    if links.with_port:
        yield note(
            _LINKS,
            "links.port",
            f"A link names an unusual port ({quote(links.with_port[0])}), which many networks"
            " block.",
            "Serve the page on the usual port of https.",
        )


def _judge_form(links: LinkFacts) -> Iterator[ChargedFinding]:
    if links.insecure:
        yield note(
            _LINKS,
            "links.insecure",
            f"Links lead to http pages: {enumerate_some(links.insecure)}; browsers warn of them.",
            "Link to https.",
        )
    if links.script_links:
        yield warning(
            _LINKS,
            "links.script",
            f"The mail has {count_of(links.script_links, 'link')} to a script (javascript:); mail"
            " programs remove such links and filters distrust them.",
            "Link to a web page.",
        )
    if links.relative:
        yield note(
            _LINKS,
            "links.relative",
            f"The mail has {count_of(links.relative, 'link')} without a host; those lead nowhere in"
            " a mail.",
            "Write whole addresses: https://your.domain/page.",
        )
