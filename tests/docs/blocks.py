"""The code blocks of README, CONTRIBUTING and docs/, and the tests that run them.

``tests/end_to_end/test_docs.py`` runs the ``sh`` blocks of each page from top to bottom. Data such
as JSON and TOML is only parsed. Other blocks have a comment above them that names their test::

    <!-- run by tests/interop/test_mailers.py -->
    <!-- not run: it prompts for a password -->

``make reference`` writes a block that the page "Connect" has too. Its comment names the snippet::

    <!-- run by tests/interop/test_mailers.py (snippet rails) -->
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "reference"

SHELL = r"""
set -E -u -o pipefail
failed() {
    case "$1 $2" in
        # The result of a check is not a failure of the command.
        [13]\ *mailcheck\ doctor*|[13]\ mailcheck\ dmarc\ plan*) ;;
        [13]\ mailcheck\ score*|[13]\ mailcheck\ test*) ;;
        *) echo "status $1 of: $2" >&2; exit "$1" ;;
    esac
}
trap 'failed $? "$BASH_COMMAND"' ERR
"""
"""The beginning of a script of commands that a reader types: each must succeed."""

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
    """A code block. ``marker`` is the text of its comment, or empty.

    ``follows`` is whether the block stands directly below another one.
    """

    page: Path
    line: int
    language: str
    text: str
    marker: str
    follows: bool

    @property
    def name(self) -> str:
        """The page and line of the block."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runner(self) -> str:
        """The file that runs the block, or an empty string."""
        return self._parts["runner"] or ""

    @property
    def snippet(self) -> str:
        """The name of the snippet that the block shows, or an empty string."""
        return self._parts["snippet"] or ""

    @property
    def _parts(self) -> Mapping[str, str | None]:
        found = _MARKER.fullmatch(self.marker)
        return found.groupdict() if found else {"runner": None, "snippet": None}

    @property
    def is_run_with_its_page(self) -> bool:
        """Whether the block is run with the other shell commands of its page."""
        return self.language == "sh" and not self.marker


def list_pages() -> list[Path]:
    """Return the pages that are written by hand."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if GENERATED not in path.parents]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(pages)]


def read_blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page, from top to bottom."""
    text = page.read_text("utf-8")
    end = 0
    for found in _BLOCK.finditer(text):
        follows = end > 0 and not text[end : found.start()].strip()
        end = found.end()
        line = text.count("\n", 0, found.start("fence")) + 1
        indent = len(found["indent"])
        lines = [one[indent:] for one in found["text"].splitlines()]
        marker = " ".join((found["marker"] or "").split())
        yield Block(page, line, found["language"].strip(), "\n".join(lines) + "\n", marker, follows)


def code_with(page: Path, part: str) -> str:
    """Return the text of the only block of a page that contains a text."""
    (found,) = (block.text for block in read_blocks(page) if part in block.text)
    return found


def with_snippets(page: Path, texts: Mapping[str, str]) -> str:
    """Return the text of a page with its snippets replaced by ``texts``, by their names."""
    text = page.read_text("utf-8")
    for block in read_blocks(page):
        if block.snippet:
            fence = f"```{block.language}\n"
            head, found, rest = text.partition(f"(snippet {block.snippet}) -->\n{fence}")
            assert rest.startswith(block.text), (
                f"{block.name} must be at the margin, and exist once"
            )
            text = head + found + texts[block.snippet] + rest.removeprefix(block.text)
    return text


def indented_blocks(page: Path) -> list[str]:
    """Return the first lines of code blocks without a fence, whose language is unknown."""
    bare = _BLOCK.sub("", page.read_text("utf-8"))
    return _INDENTED.findall(bare)
