"""The built documentation, and how the daemon serves it."""

import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from zipfile import ZipFile

import pytest
from playwright.sync_api import Browser, expect

from mailcheck.web.site.public_pages import Documentation, redirect_to_first_page
from tests.browser.conftest import browser, one_browser
from tests.house import House
from tests.servers.http_stub import serving
from tests.table import rows

__all__ = ["browser", "one_browser"]

ROOT = Path(__file__).parents[2]
EXTERNAL = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)="(?:https?:)?//')
INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>|\son[a-z]+=\"[^#]*\(")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as `make docs` builds them; a warning of Sphinx is an error."""
    folder = tmp_path_factory.mktemp("docs")
    command = ["-q", "-W", "--keep-going", "-d", str(folder / "read"), "-b", "html"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *command, str(ROOT / "docs"), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def documentation(built: Path) -> Documentation:
    """The built pages in an archive."""
    return Documentation(Path(shutil.make_archive(str(built.parent / "docs"), "zip", built)))


@pytest.mark.interop
def test_links_and_anchors_exist(built: Path) -> None:
    """Sphinx finds every linked page and anchor, and every page is linked."""
    pages = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert pages
    for page in pages:
        assert (built / page.with_suffix(".html")).exists(), page


@rows("README.md", "CONTRIBUTING.md", "NEWS.md", "SECURITY.md")
def test_links_of_the_sources_exist(name: str) -> None:
    """Documents outside docs/ link to existing files, folders and headings."""
    text = re.sub(r"`[^`]*`", "", (ROOT / name).read_text("utf-8"))
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        target = ROOT / (path or name)
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_index_lists_the_pages_of_the_side_bar() -> None:
    """Each section of the index lists its pages, for readers of the files, as the side bar does."""
    sections = (ROOT / "docs" / "index.md").read_text("utf-8").split("\n## ")[1:]
    for section in sections:
        listed = re.findall(r"^\* \[.+\]\((.+)\.md\)$", section, re.M)
        (in_side_bar,) = re.findall(r"\n:hidden:\n\n(.*?)```", section, re.S)
        assert listed == in_side_bar.split()


def test_mailcheck_is_not_installed_from_pypi() -> None:
    """No document installs mailcheck by name, because that name on PyPI is another project."""
    by_name = re.compile(r"\b(?:pip|pipx) (?:install|run) (?:-\S+ )*mailcheck\b(?!-daemon)")
    pages = [*ROOT.glob("*.md"), ROOT / "Dockerfile", *(ROOT / "docs").rglob("*.*")]
    texts = {page: page.read_text("utf-8") for page in pages if page.suffix != ".png"}
    texts.pop(ROOT / "NEWS.md")  # what earlier versions said
    assert [page for page, text in texts.items() if by_name.search(text)] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, in the form that Markdown renderers use."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.interop
def test_pages_need_no_network(built: Path) -> None:
    """No page loads a resource from another server."""
    for path in built.rglob("*.html"):
        assert not EXTERNAL.search(path.read_text("utf-8")), path.name


@pytest.mark.interop
def test_pages_have_no_inline_scripts(built: Path) -> None:
    """No page contains a script, because the content security policy allows files only."""
    for path in built.rglob("*.html"):
        assert not INLINE_SCRIPT.search(path.read_text("utf-8")), path.name


@pytest.mark.interop
@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("", "text/html; charset=utf-8"),
        ("index.html", "text/html; charset=utf-8"),
        ("search.html", "text/html; charset=utf-8"),
        ("searchindex.js", "text/javascript; charset=utf-8"),
        ("reference/options.html", "text/html; charset=utf-8"),
        ("_static/styles/furo.css", "text/css; charset=utf-8"),
    ],
)
def test_files_are_served(documentation: Documentation, name: str, media_type: str) -> None:
    """Each file has its media type, and a policy that forbids resources of other servers."""
    reply = documentation.read(name)
    assert (reply.status, reply.content_type) == (200, media_type)
    assert reply.body
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "http" not in policy


@pytest.mark.interop
@pytest.mark.parametrize(
    "name", ["nowhere.html", "../setup.cfg", "/etc/passwd", "reference", "x" * 5000, "\0"]
)
def test_other_paths_are_not_found(documentation: Documentation, name: str) -> None:
    """A name that is not in the archive is answered with 404."""
    assert documentation.read(name).status == 404


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>mail",
    "mail<svg/onload=alert(1)>",
    "javascript:alert(1)",
    '"><iframe src=https://example.com/></iframe>',
    "mail'); alert(1); ('",
    "${alert(1)} {{constructor.constructor('alert(1)')()}}",
    "__proto__ constructor mail",
    "mail " + "<b>" * 2_000,
)


@pytest.mark.interop
def test_hostile_words_in_the_search(documentation: Documentation, browser: Browser) -> None:
    """A link to the search with any words shows them as text: no script, request or dialog."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = documentation.read(urlsplit(self.path).path[1:])
            self.send_response(reply.status)
            for name, value in {"Content-Type": reply.content_type, **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    asked: list[str] = []
    with serving(Pages) as url, browser.new_context() as context:
        page = context.new_page()
        page.on("dialog", lambda dialog: asked.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        for words in HOSTILE:
            for field in ("q", "highlight"):
                page.goto(f"{url}/search.html?{urlencode({'q': 'mail', field: words})}")
                expect(page.locator("#search-results h2")).to_be_visible()
                expect(page.locator("#search-results :is(img, iframe, script, svg)")).to_have_count(
                    0
                )
    assert all(one.startswith(url) for one in asked), asked


def test_a_missing_archive_is_explained(tmp_path: Path) -> None:
    """Without an archive, the answer names `make docs`."""
    reply = Documentation(tmp_path / "docs.zip").read("index.html")
    assert reply.status == 404
    assert b"make docs" in reply.body


def test_a_replaced_archive_is_read(tmp_path: Path) -> None:
    """A running daemon serves the pages of a new archive."""
    archive, anew = tmp_path / "docs.zip", tmp_path / "anew.zip"
    documentation = Documentation(archive)
    for words in ("the first", "the second"):
        with ZipFile(anew, "w") as written:
            written.writestr("index.html", words)
        anew.replace(archive)
        assert [documentation.read("").body for _ in range(2)] == [words.encode()] * 2
    archive.unlink()
    assert documentation.read("").status == 404


def test_the_daemon_serves_the_documentation(house: House) -> None:
    """/docs/ serves the pages without a key, or explains how to build them; /docs redirects."""
    assert redirect_to_first_page().headers["Location"] == "docs/"
    for path in ("/docs/", "/docs/reference/options.html", "/docs/_static/styles/furo.css"):
        answer = house.open(path).answer()
        assert answer.status == 200 or b"make docs" in answer.body
    assert house.open("/docs/..%2fsetup.cfg").answer().status == 404
