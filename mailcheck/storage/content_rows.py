"""Derived content as JSON in a row, and back."""

import json

from mailcheck.core.content import AttachmentFacts, Candidate, CandidateKind, MessageContent
from mailcheck.core.folded_text import fold_text

CONTENT_COLUMNS = "text_key, attachment_count, links, codes, best_link, document"


def dump_content(content: MessageContent) -> tuple[str, int, str, str, str | None, str]:
    """Give the values of `CONTENT_COLUMNS`."""
    document: dict[str, object] = {
        "headers": content.header_list,
        "text": content.text,
        "html": content.html,
        "attachments": [
            (fact.id, fact.filename, fact.content_type, fact.size, fact.content_id)
            for fact in content.attachments
        ],
        "candidates": [
            (one.kind.value, one.value, one.score, one.is_accepted, one.reasons)
            for one in content.candidates
        ],
        "problems": content.problems,
    }
    return (
        fold_text(content.searched),
        len(content.attachments),
        json.dumps(content.links),
        json.dumps(content.codes),
        content.best_link,
        json.dumps(document),
    )


def load_content(
    links: str, codes: str, best_link: str | None, document_text: str
) -> MessageContent:
    """Make the value of a ``content`` row again."""
    document = json.loads(document_text)
    return MessageContent(
        header_list=tuple((name, value) for name, value in document["headers"]),
        text=document["text"],
        html=document["html"],
        attachments=tuple(AttachmentFacts(*facts) for facts in document["attachments"]),
        links=load_list(links),
        best_link=best_link,
        codes=load_list(codes),
        candidates=tuple(
            Candidate(CandidateKind(kind), value, score, is_accepted, tuple(reasons))
            for kind, value, score, is_accepted, reasons in document["candidates"]
        ),
        problems=tuple(document["problems"]),
    )


def load_list(text: str) -> tuple[str, ...]:
    """Read a JSON array of strings."""
    return tuple(json.loads(text))
