"""Derivation of the displayed content from the bytes of a mail."""

import re

from mailcheck.checks.content.bodies import (
    Bodies,
    choose_bodies,
    describe_attachments,
    read_bodies,
)
from mailcheck.checks.content.code.codes import find_codes
from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.content.header.fields import unsubscribe_addresses
from mailcheck.checks.content.header.mailboxes import parse_mailboxes
from mailcheck.checks.content.limits import (
    MAX_CODES,
    MAX_HEADER_BYTES,
    MAX_HTML,
    MAX_KEPT_CANDIDATES,
    MAX_LINK_TEXT,
    MAX_PROBLEMS,
    MAX_SEARCHED,
    MAX_SNIPPET,
)
from mailcheck.checks.content.links import (
    Links,
    collect_links,
    list_urls,
    score_links,
)
from mailcheck.checks.content.structure import scan_structure
from mailcheck.core.content import (
    Candidate,
    CandidateKind,
    MessageContent,
    Person,
    fold_text,
    sign_text,
)

LONE_LINE_FEEDS = (
    "lines end in LF alone, which other mail servers refuse: they must end in CRLF "
    "(in Python use send_message or as_bytes(policy=SMTP))"
)

_BLANKS = re.compile(r"[\s\u00ad\u034f\u200b-\u200d\u2060\ufeff]{2,}|\s")
"""White space, and invisible characters with which newsletters fill their preview."""

_ADDRESSES = re.compile(r"(?: ?[<(\[]?https?://[^\s>)\]]+[>)\]]?)+")
"""URLs with the brackets around them."""

_LINES = re.compile(r"[-=_*#~.\u2013-\u2015\u2500-\u257f]{3,}")
"""Lines drawn with characters."""


PEOPLE = ("to", "cc", "bcc", "reply-to")
"""Fields whose addresses are shown and searched; the author is stored with the header."""


def derive_content(raw_message: bytes) -> MessageContent:
    """Derive header list, text, HTML, attachments, links and codes from a mail.

    Any bytes are accepted. Content that is broken or exceeds a limit of ``limits.py`` is left out
    or replaced, and described in ``problems``. Time and memory are linear in the size of the mail.
    """
    as_sent, raw_message = raw_message, end_lines(raw_message)
    structure = scan_structure(raw_message)
    problems = list(structure.problems)
    if raw_message is not as_sent:
        problems.append(LONE_LINE_FEEDS)
    bodies = read_bodies(raw_message, choose_bodies(structure.root), problems)
    if len(bodies.prose) > MAX_LINK_TEXT or len(bodies.markup) > MAX_HTML:
        problems.append(f"only the first {MAX_HTML // 1024} KiB were searched for links and codes")
    links = collect_links(bodies.prose, bodies.page)
    header_list = tuple((field.name, field.decode()) for field in structure.fields)
    link_candidates = score_links(links.web, unsubscribe_addresses(header_list))
    subjects = (value for name, value in header_list if name.lower() == "subject")
    code_candidates = find_codes(next(subjects, ""), bodies.prose, bodies.page)
    words = bodies.words
    searched = _write_searched(words, bodies)
    return MessageContent(
        header_list=header_list,
        text=bodies.text,
        html=bodies.html,
        attachments=describe_attachments(raw_message, structure.root),
        links=list_urls(links.web),
        best_link=next(iter(_accepted(link_candidates)), None),
        codes=tuple(_accepted(code_candidates)[:MAX_CODES]),
        candidates=(*code_candidates, *link_candidates, *_other_candidates(links)),
        problems=tuple(dict.fromkeys(problems))[:MAX_PROBLEMS],
        snippet=_write_snippet(words),
        people=tuple(
            Person(name, address, display_name)
            for field in structure.fields
            if (name := field.name.lower()) in PEOPLE
            for address, display_name in parse_mailboxes(field.as_text(), MAX_HEADER_BYTES)
        ),
        searched=searched,
        signature=sign_text(searched),
    )


def _write_searched(words: str, bodies: Bodies) -> str:
    """Return the text for searches: the text of the mail, and other words of its HTML."""
    searched = fold_text(words[:MAX_SEARCHED])
    others = fold_text(bodies.other_words[:MAX_SEARCHED])
    return searched if others.strip() in searched else f"{searched} {others}"


def _write_snippet(text: str) -> str:
    """Return the start of a text in one line, with an ellipsis for URLs beside words.

    Long URLs do not help readers of a list.
    """
    beginning = text[: MAX_SNIPPET * 20]
    if beginning.isascii():  # without invisible characters, for a tenth of the time
        beginning = " ".join(beginning.split())
    else:
        beginning = _BLANKS.sub(" ", beginning).strip()
    words = _LINES.sub(" ", _ADDRESSES.sub(" \u2026", beginning))
    line = " ".join(words.split()) if words.strip(" \u2026") else beginning
    return line[:MAX_SNIPPET].rstrip()


def _accepted(candidates: list[Candidate]) -> list[str]:
    return [candidate.value for candidate in candidates if candidate.is_accepted]


def _other_candidates(links: Links) -> list[Candidate]:
    address, app = CandidateKind.MAIL_ADDRESS, CandidateKind.APP_LINK
    found = [(address, mail_address) for mail_address in links.mail_addresses[:MAX_KEPT_CANDIDATES]]
    found += [(app, app_link) for app_link in links.apps[:MAX_KEPT_CANDIDATES]]
    reasons = {address: "is a mail address", app: "opens an app"}
    return [
        Candidate(kind, value, 0, False, (f"{reasons[kind]}, which no list of links holds",))
        for kind, value in found
    ]
