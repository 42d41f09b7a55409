"""The blocks of code in README and docs/, and who runs each.

A comment above a block says who, unless it is the shell of its page (``sh``), which
``tests/end_to_end/test_docs.py`` runs from top to bottom, or data that is read::

    <!-- run by tests/interop/test_mailers.py -->
    <!-- not run: it asks a person for a password -->

A block that the page "Connect" has too names it, and is written from there by ``make reference``::

    <!-- run by tests/interop/test_mailers.py (snippet rails) -->
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE = ROOT / "docs" / "reference"

_BLOCK = re.compile(
    r"^(?:[ ]*<!--[ ]*(?P<marker>(?:run by|not run:)[^>]*?)[ ]*-->\n)?"
    r"(?P<indent>[ ]*)(?P<fence>`{3,})(?P<language>[^\n]*)\n"
    r"(?P<text>.*?)^(?P=indent)(?P=fence)[ ]*$",
    re.DOTALL | re.MULTILINE,
)
_MARKER = re.compile(r"(?:run by (?P<runner>[^ ]+)|not run: .*?)(?: \(snippet (?P<snippet>\w+)\))?")
_INDENTED = re.compile(r"(?:\A|\n\n)( {4}[^ *\n].*)")


@dataclass(frozen=True)
class Block:
    """One block. ``marker`` is what its comment says, or empty."""

    page: Path
    line: int
    language: str
    text: str
    marker: str

    @property
    def name(self) -> str:
        """Say where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runner(self) -> str:
        """Give the file that runs it, or nothing."""
        return self._told["runner"] or ""

    @property
    def snippet(self) -> str:
        """Give the name of the snippet of the pages that it is, or nothing."""
        return self._told["snippet"] or ""

    @property
    def _told(self) -> Mapping[str, str | None]:
        found = _MARKER.fullmatch(self.marker)
        return found.groupdict() if found else {"runner": None, "snippet": None}

    @property
    def is_run_with_its_page(self) -> bool:
        """Tell whether it is a piece of its page's shell."""
        return self.language == "sh" and not self.marker


def list_pages() -> list[Path]:
    """List the pages that people write."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if MADE not in path.parents]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(pages)]


def read_blocks(page: Path) -> Iterator[Block]:
    """Read the blocks of a page, from top to bottom."""
    text = page.read_text("utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("fence")) + 1
        indent = len(found["indent"])
        lines = [one[indent:] for one in found["text"].splitlines()]
        marker = " ".join((found["marker"] or "").split())
        yield Block(page, line, found["language"].strip(), "\n".join(lines) + "\n", marker)


def with_snippets(page: Path, texts: Mapping[str, str]) -> str:
    """Give the text of a page with each snippet in it as ``texts`` has it by its name."""
    text = page.read_text("utf-8")
    for block in read_blocks(page):
        if block.snippet:
            fence = f"```{block.language}\n"
            head, found, rest = text.partition(f"(snippet {block.snippet}) -->\n{fence}")
            assert rest.startswith(block.text), f"{block.name} is not at the margin, or there twice"
            text = head + found + texts[block.snippet] + rest.removeprefix(block.text)
    return text


def indented_blocks(page: Path) -> list[str]:
    """List the first lines of blocks without a fence: nobody can tell what they are."""
    bare = _BLOCK.sub("", page.read_text("utf-8"))
    return _INDENTED.findall(bare)
