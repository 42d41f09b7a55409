"""Tests with mails of the corpus that break MIME rules."""

import tomllib
from pathlib import Path
from typing import Any

from mailcheck.checks.content.bodies import find_attachment
from mailcheck.checks.content.calendar import read_invitation
from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.checks.content.mime_parts import derive_structures
from mailcheck.checks.quality.reading import read_mail
from mailcheck.checks.quality.unsubscribe import judge_unsubscribe
from tests.table import rows

CORPUS = Path(__file__).parent.parent / "corpus" / "mime"
MAILS = tomllib.loads((CORPUS / "mails.toml").read_text("utf-8"))["mail"]


@rows(*MAILS)
def test_a_mail_is_read_as_its_reader_would(expected: dict[str, Any]) -> None:
    """Subject, text, HTML, codes, links and file names are right, and the problem is named."""
    raw = (CORPUS / expected["file"]).read_bytes()
    content, summary = derive_content(raw), summarize_header(raw)
    html = content.html.strip()
    found = {
        "subject": summary.subject,
        "author": [summary.author_address, summary.author_name],
        "to": [one.address for one in content.people_in("to")],
        "text": content.text.strip(),
        "html": html,
        "codes": list(content.codes),
        "links": list(content.links),
        "snippet": content.snippet,
        "filenames": [one.filename for one in content.attachments],
    }
    assert found == found | {name: expected[name] for name in found if name in expected}
    assert html.endswith(expected.get("html_end", ""))
    assert any(expected.get("problem", "") in one for one in (*content.problems, ""))
    assert [one for one in expected.get("searched", ()) if one not in content.searched] == []
    ((envelope, structure, _),) = derive_structures([raw])
    assert expected.get("envelope", "").encode() in envelope
    assert expected.get("structure", "").encode() in structure
    if "finding" in expected:
        findings = judge_unsubscribe(read_mail(raw), None)
        assert any(expected["finding"] in one.finding.meaning for one in findings)
    if "invitation" in expected:
        attachment = find_attachment(raw, "1")
        assert attachment is not None
        shown = read_invitation(attachment.data, attachment.charset, attachment.method)
        assert shown is not None
        ends = shown.ends.text if shown.ends else ""
        assert [shown.title, shown.summary, ends] == expected["invitation"]
    if "attached" in expected:
        attachment = find_attachment(raw, "1")
        assert attachment is not None
        assert attachment.data == expected["attached"].encode()


def test_every_mail_of_the_corpus_is_judged() -> None:
    """Every mail in the folder has an expectation."""
    assert {path.name for path in CORPUS.glob("*.eml")} == {one["file"] for one in MAILS}
