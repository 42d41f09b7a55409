"""The facts about the targets of a mail's links."""

import re
from collections.abc import Iterable, Sequence

from mailcheck.checks.content.links import Link, is_web_url
from mailcheck.checks.content.phrases import fold, make_plain
from mailcheck.checks.content.visible_text import Anchor
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.checks.quality.facts import LinkFacts
from mailcheck.checks.quality.hosts import (
    decode_host,
    host_list,
    is_address,
    is_on_list,
    mixes_scripts,
    normalize_host,
    split_authority,
)

MAX_SHOWN = 20
"""Maximum number of examples of each kind."""

_MAX_WORDS = 200  # maximum characters of a link text that are read
_SHOWN_HOST = re.compile(
    r"(?P<scheme>https?://)?(?P<host>(?>(?:[\w-]++\.)+)(?P<end>[^\W\d_]{2,}))\.?(?:[/?#:]\S*)?",
    re.IGNORECASE,
)
# Without "https://" or "www." only these endings make a word a host: "Node.js" is not one.
_SURE_ENDS = frozenset(("com", "net", "org", "info", "biz", "edu", "gov", "bank"))
_OTHER_SCHEME = re.compile(r"[a-z][\w+.-]*+:", re.IGNORECASE | re.ASCII)
_NO_WHITE_SPACE = str.maketrans("", "", "\t\r\n")


def list_hosts(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct domain names of URLs in A-labels, without IP addresses."""
    hosts = (split_authority(url)[1] for url in urls)
    names = (normalize_host(host) for host in hosts if not is_address(host))
    return tuple(dict.fromkeys(name for name in names if name))


def judge_urls(urls: Sequence[str], anchors: Sequence[Anchor]) -> LinkFacts:
    """Group the URLs of a mail by suspicious properties.

    A link relative to a ``<base>`` is relative, since web mail removes the base.
    """
    authorities = {url: split_authority(url) for url in urls}
    hosts = list_hosts(urls)
    others = [_squeeze(anchor.href) for anchor in anchors if not is_web_url(_squeeze(anchor.href))]
    return LinkFacts(
        count=len(urls),
        insecure=_first(url for url in urls if url[:7].lower() == "http://"),
        shortened=_first(
            url for url in urls if is_on_list(normalize_host(authorities[url][1]), "shorteners")
        ),
        address_hosts=_first(host for _, host, _ in authorities.values() if is_address(host)),
        punycode_hosts=_first(host for host in hosts if "xn--" in host),
        mixed_script_hosts=_first(decode_host(host) for host in hosts if mixes_scripts(host)),
        disguised=_find_disguised(anchors),
        with_user=_first(url for url in urls if authorities[url][0]),
        with_port=_first(url for url in urls if authorities[url][2] not in ("", "80", "443")),
        script_links=sum(href[:11].lower() == "javascript:" for href in others),
        relative=sum(_is_relative(href) for href in others),
    )


def count_unsubscribe_links(links: Iterable[Link]) -> int:
    """Return the number of links that offer to unsubscribe."""
    return sum(map(offers_to_unsubscribe, links))


def offers_to_unsubscribe(link: Link) -> bool:
    """Return whether the text of a link or its URL offers to unsubscribe."""
    text = fold(make_plain(f"{link.words[:_MAX_WORDS]} {link.url}"))
    return any(word in text for word in host_list("unsubscribe_words"))


def _first(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))[:MAX_SHOWN]


def _squeeze(href: str) -> str:
    return href.strip().translate(_NO_WHITE_SPACE)


def _is_relative(href: str) -> bool:
    return bool(href) and not href.startswith("#") and _OTHER_SCHEME.match(href) is None


def _find_disguised(anchors: Iterable[Anchor]) -> tuple[tuple[str, str], ...]:
    """Find links whose text shows a host of another domain than the target's."""
    found: dict[tuple[str, str], None] = {}
    for anchor in anchors:
        href = _squeeze(anchor.url)
        shown = _find_shown_host(anchor.text)
        actual = normalize_host(split_authority(href)[1]) if shown and is_web_url(href) else ""
        if shown and actual and registrable_domain(shown) != registrable_domain(actual):
            found[shown, actual] = None
    return tuple(found)[:MAX_SHOWN]


def _find_shown_host(words: str) -> str:
    match = _SHOWN_HOST.fullmatch(words[:_MAX_WORDS].strip(" .,;:()<>[]\"'"))
    if match is None:
        return ""
    is_sure = match["scheme"] or match["host"][:4].lower() == "www."
    if not is_sure and match["end"].lower() not in _SURE_ENDS:
        return ""
    return normalize_host(match["host"])
