"""References to files of the project, in its code, comments and documents."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.table import rows

ROOT = Path(__file__).parent.parent.parent

SUFFIX = re.compile(r"\.(?:md|py|toml|sql)\b")
REFERENCE = re.compile(r"(?<![\w./:<>{}$*~-])((?:[\w-]+/)+[\w.-]+|[A-Z]{4,}\.md)\Z")
"""What is before the end of a suffix: a path with a folder, or a document in capitals."""

FILES_OF_OTHERS = {
    "AGENTS.md",
    "CLAUDE.md",
    "modoboa/admin/constants.py",
    "rules/dnsbl.toml",
    "utility/check-dnsbl.py",
}
"""Files of readers, and of public projects that a list was taken from."""

INVENTED = ("tests/test_architecture.py", "tests/corpus/", "tests/docs/test_references.py")
"""Files and folders that mention files which exist in an example or a mail only."""

SKILLS = ("mailcheck/clients", "mailcheck/clients/receive-test-mail")
FOLDERS = ("", "mailcheck", "tests", "docs", "mailcheck/web", *SKILLS)
"""Folders from which a path may start, beside that of the file that mentions it."""


def references(text: str) -> Iterator[str]:
    """Yield the paths of files that a text mentions."""
    for suffix in SUFFIX.finditer(text):
        begin = text.rfind("\n", 0, suffix.start()) + 1
        if found := REFERENCE.search(text, begin, suffix.end()):
            yield found[1]


def exists_for(reference: str, mentioned_in: Path) -> bool:
    """Return whether a path exists below the project or one of the folders it may start from."""
    starts = [ROOT / folder for folder in FOLDERS] + [mentioned_in.parent]
    return any((start / reference).exists() for start in starts)


def tracked_files() -> list[Path]:
    """Return the text files of the project that can mention others."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = listed.stdout.decode().split("\0")
    texts = [name for name in names if name.endswith((".py", ".md", ".toml", ".cfg", ".yml"))]
    return [ROOT / name for name in texts if not name.startswith(INVENTED)]


def test_every_reference_leads_to_a_file() -> None:
    """A path in code, comments and documents names a file that exists."""
    missing = [
        f"{path.relative_to(ROOT)}: {reference}"
        for path in tracked_files()
        if path.exists()
        for reference in references(path.read_text("utf-8", "replace"))
        if reference not in FILES_OF_OTHERS and not exists_for(reference, path)
    ]
    assert not missing, "\n".join(missing)


def test_no_file_has_the_marks_of_a_merge() -> None:
    """A page would show them, since templates and documents are no programs."""
    marks = ["git", "grep", "--line-number", "--extended-regexp", "^(<{7}|>{7}) "]
    found = subprocess.run(marks, cwd=ROOT, capture_output=True, check=False)
    assert found.stdout.decode() == ""


@rows("see (SPEC.md 2.1)", "as `docs/reference/none.md` says")
def test_a_reference_to_a_missing_file_is_found(text: str) -> None:
    """A document that is not part of the project is not a valid reference."""
    assert [exists_for(one, ROOT / "README.md") for one in references(text)] == [False]
