"""How `make docs` builds these pages: plain HTML with search, which needs no network."""

from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parent.parent

_setup = ConfigParser()
_setup.read(ROOT / "setup.cfg")

project = "mailcheck"
version = release = _setup["metadata"]["version"]
language = "en"
html_show_copyright = False

extensions = ["myst_parser"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown"}
templates_path = ["_templates"]
exclude_patterns = ["recipes/node_modules"]

# The documentation has the colours, the header and the icon of the pages (web/dashboard/static).
_light = {
    "color-brand-primary": "#1d4ed8",
    "color-brand-content": "#1d4ed8",
    "color-brand-visited": "#1d4ed8",
    "color-foreground-primary": "#17212f",
    "color-foreground-secondary": "#536072",
    "color-foreground-muted": "#536072",
    "color-background-primary": "#ffffff",
    "color-background-secondary": "#f4f6f9",
    "color-background-hover": "#eef2f7",
    "color-background-border": "#d9e0e9",
    "color-sidebar-item-background--hover": "#e8eefc",
    "color-sidebar-item-background--current": "#e8eefc",
}
_dark = {
    "color-brand-primary": "#8fb2ff",
    "color-brand-content": "#8fb2ff",
    "color-brand-visited": "#8fb2ff",
    "color-foreground-primary": "#e8edf4",
    "color-foreground-secondary": "#a5b1c2",
    "color-foreground-muted": "#a5b1c2",
    "color-background-primary": "#171f2b",
    "color-background-secondary": "#0e131b",
    "color-background-hover": "#0f161f",
    "color-background-border": "#2b3647",
    "color-sidebar-item-background--hover": "#1c2a47",
    "color-sidebar-item-background--current": "#1c2a47",
}
html_theme = "furo"
html_theme_options = {
    "light_css_variables": _light,
    "dark_css_variables": _dark,
}
html_sidebars = {
    "**": [
        "sidebar/scroll-start.html",
        "sidebar/search.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_css_files = ["mailcheck.css"]
_icon = ROOT / "mailcheck" / "web" / "dashboard" / "static" / "icon.svg"
html_favicon = html_logo = str(_icon)
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

_SEARCH = "search"
_OF_SEARCH = ("documentation_options.js", "doctools.js", "sphinx_highlight.js")
_OF_EXTENSIONS = "furo-extensions.css"


def finish_page(app, pagename, templatename, context, doctree):
    """Complete the headings of the menu for screen readers, and load only the needed files."""
    for name in ("furo_navigation_tree", "body"):
        if name in context:
            heading = 'class="caption" role="heading"'
            context[name] = context[name].replace(heading, f'{heading} aria-level="2"')
    if pagename != _SEARCH:
        context["script_files"] = [
            one for one in context["script_files"] if not str(one.filename).endswith(_OF_SEARCH)
        ]
    context["css_files"] = [
        one for one in context["css_files"] if not str(one.filename).endswith(_OF_EXTENSIONS)
    ]


def setup(app):
    """Connect the function that finishes each page, after the one of the theme."""
    app.connect("html-page-context", finish_page, priority=900)
