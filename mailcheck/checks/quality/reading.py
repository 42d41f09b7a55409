"""Read the facts for a report from the bytes of a mail."""

from msgspec.structs import replace

from mailcheck.checks.content.bodies import Bodies, Chosen, choose_bodies, read_bodies
from mailcheck.checks.content.decoding import end_lines
from mailcheck.checks.content.limits import MAX_PROBLEMS
from mailcheck.checks.content.links import collect_links, list_urls
from mailcheck.checks.content.structure import Structure, scan_structure
from mailcheck.checks.quality import header
from mailcheck.checks.quality.content import (
    compare_words,
    find_placeholders,
    find_risky_attachments,
    has_html_first,
    list_parts,
)
from mailcheck.checks.quality.facts import HtmlFacts, MailFacts
from mailcheck.checks.quality.header import read_date
from mailcheck.checks.quality.html_reading import read_html
from mailcheck.checks.quality.link_reading import (
    count_unsubscribe_links,
    judge_urls,
    list_hosts,
)

MAX_LINE = 998
"""Maximum number of octets of a line without its line break (RFC 5322 2.1.1)."""


def read_mail(raw_message: bytes) -> MailFacts:
    """Read the facts about a mail's format.

    Any bytes are accepted. Never raises, and takes time and memory linear in the size. Content
    beyond the limits in `mailcheck.checks.content.limits` is left out and reported in
    ``problems``. The result can be pickled, because large mails are read in a child process.
    """
    size, raw_message = len(raw_message), end_lines(raw_message)
    structure = scan_structure(raw_message)
    facts, root = _read_header(structure), structure.root
    chosen = choose_bodies(root)
    problems = list(structure.problems)
    bodies = read_bodies(raw_message, chosen, problems)
    text, page = bodies.prose, bodies.page
    links = collect_links(text, page).web
    urls = list_urls(links)
    long_lines, longest_line = measure_lines(raw_message)
    return replace(
        facts,
        size=size,
        header_size=root.body[0],
        long_lines=long_lines,
        longest_line=longest_line,
        content_type=root.content_type[:MAX_LINE],
        parts=list_parts(root),
        has_text=bodies.has_text,
        text_size=len(text.strip().encode()),
        is_html_first=has_html_first(root),
        overlap=compare_words(bodies.text, page.text) if bodies.htmls else None,
        placeholders=find_placeholders(facts.subject, text, page.text),
        risky_attachments=find_risky_attachments(root),
        html=_read_html(bodies, chosen) if bodies.htmls else None,
        links=urls,
        link_hosts=list_hosts(urls),
        link_facts=judge_urls(urls, page.anchors),
        unsubscribe=replace(facts.unsubscribe, body_links=count_unsubscribe_links(links)),
        problems=tuple(dict.fromkeys(problems))[:MAX_PROBLEMS],
    )


def _read_header(structure: Structure) -> MailFacts:
    fields = structure.fields
    names = header.names_of_fields(fields)
    authors = header.read_authors(fields)
    date = header.find_field(fields, "date")
    return MailFacts(
        field_names=names,
        repeated_fields=header.find_repeated(names),
        raw_8bit_fields=header.find_8bit(fields),
        author_fields=names.count("from"),
        author_address=authors[0].address if authors else "",
        author_domains=tuple(dict.fromkeys(author.domain for author in authors if author.domain)),
        authors=authors,
        subject=header.read_text(fields, "subject"),
        has_subject="subject" in names,
        date=read_date(date.body) if date else None,
        message_id=header.read_message_id(fields),
        sender_address=header.read_address(fields, "sender"),
        reply_to_address=header.read_address(fields, "reply-to"),
        received_fields=names.count("received"),
        unsubscribe=header.read_unsubscribe(fields),
        bulk=header.read_bulk(fields),
    )


def _read_html(bodies: Bodies, chosen: Chosen) -> HtmlFacts:
    of_html = (
        entity for entity in (*chosen.plain, *chosen.rich) if entity.content_type == "text/html"
    )
    return replace(
        read_html(bodies.markup, bodies.tree),
        size=len(bodies.markup.encode()),
        is_base64=any(entity.encoding == "base64" for entity in of_html),
        visible_length=len(bodies.page.text),
    )


def measure_lines(raw_message: bytes) -> tuple[int, int]:
    """Return the number of lines over 998 octets, and the length of the longest one or 0."""
    count = longest = start = 0
    while len(raw_message) - start > MAX_LINE:
        # Jump to the last line break within the limit: one step for each kilobyte, even if the
        # lines are short.
        window = start + MAX_LINE + 2
        last = raw_message.rfind(b"\n", start, window)
        if last >= 0 and not _ends_too_late(raw_message, start, last):
            start = last + 1
            continue
        end = raw_message.find(b"\n", start)
        after = len(raw_message) if end < 0 else end + 1
        line = raw_message[start:after].rstrip(b"\r\n")
        if len(line) > MAX_LINE:
            count += 1
            longest = max(longest, len(line))
        start = after
    return count, longest


def _ends_too_late(raw_message: bytes, start: int, last: int) -> bool:
    """Return whether the break ends a line that began at ``start`` and is one octet too long."""
    is_first = raw_message.find(b"\n", start, last) < 0
    has_return = raw_message[last - 1 : last] == b"\r"
    return is_first and last - start - has_return > MAX_LINE
