"""The document with the HTML of a mail: sanitised, in a sandbox, without remote content unasked."""

from html import escape

from mailcheck.checks.content.safe_html import PAGE_CLASS
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.site.replies import Reply

SANDBOX = "allow-same-origin allow-popups allow-popups-to-escape-sandbox"
"""Sandbox of the frame with a message: links may open ordinary new tabs.

The frame has the same origin, so that the page can adjust its height to the content. It must
never have ``allow-scripts`` too, since the document could then remove its sandbox.
"""

_POLICY = (
    "sandbox {sandbox}; default-src 'none'; img-src {images}; style-src 'unsafe-inline'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)

_OWN_STYLE = (
    "html{color-scheme:only light;color:#111}html.dark{color-scheme:dark;color:#eee}"
    "body{margin:12px;font:15px/1.45 system-ui,Arial,sans-serif;overflow-wrap:anywhere}"
    f"body:has(>.{PAGE_CLASS}){{margin:0}}.{PAGE_CLASS}{{padding:12px;min-height:100vh;"
    "box-sizing:border-box}"
    # Images without a source have no size of their own.
    "img{max-width:100%}:where(img:not([src])){display:inline-block}"
    "img:not([src]){outline:1px dashed #999;outline-offset:-1px}"
    "a:focus-visible{outline:2px solid #1f5fbf}"
)


async def frame_reply(show: ShowMessage, message: StoredMessage, *, allows_remote: bool) -> Reply:
    """Return the HTML document of a message, for a frame."""
    safe = await show.html(message, allows_remote=allows_remote)
    images = "data: https: http:" if allows_remote else "data:"
    said = {"lang": safe.language, "dir": safe.direction}
    root = "".join(f' {name}="{escape(value)}"' for name, value in said.items() if value)
    body = (
        f"<!doctype html>\n<html{root}><head>"
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        # Without links of its own, since test suites take the first address of a view.
        f"<title>{escape(message.summary.header.subject)}</title>"
        f"<style>{_OWN_STYLE}</style><style>{safe.style_sheet}</style></head>"
        f"<body>{safe.body}</body></html>\n"
    )
    return Reply(
        200,
        body.encode("utf-8", "replace"),
        "text/html; charset=utf-8",
        {
            "Content-Security-Policy": _POLICY.format(sandbox=SANDBOX, images=images),
            "X-Robots-Tag": "noindex, nofollow",
            "Cross-Origin-Resource-Policy": "same-origin",
        },
    )
