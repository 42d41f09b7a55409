"""How `make docs` builds these pages: plain HTML with search, which needs no network."""

from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parent.parent

_setup = ConfigParser()
_setup.read(ROOT / "setup.cfg")

project = "mailcheck"
version = release = _setup["metadata"]["version"]
language = "en"

extensions = ["myst_parser"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown"}
templates_path = ["_templates"]
exclude_patterns = ["recipes/node_modules"]

html_theme = "furo"
html_title = f"mailcheck {version}"
html_static_path = ["_static"]
# Publish no sources and no dates, so that two builds of the same pages are equal.
html_copy_source = False
html_show_sphinx = False
html_use_index = False
pygments_style = "default"

# `make deb` builds this page for man(1), too.
man_pages = [("reference/commands", "mailcheck", "commands of the daemon", "mailcheck", 1)]
man_show_urls = True
