"""The document with the HTML of a mail: sanitised, in a sandbox, without remote content unasked."""

from html import escape

from mailcheck.checks.content.safe_html import PAGE_CLASS, SafeHtml
from mailcheck.core.messages import StoredMessage
from mailcheck.operations.inbox.show_message import ShowMessage
from mailcheck.web.site.replies import Reply

SANDBOX = "allow-same-origin allow-popups allow-popups-to-escape-sandbox"
"""Sandbox of the frame with a message: links may open ordinary new tabs.

The frame has the same origin, so that the page can adjust its height to the content. It must
never have ``allow-scripts`` too, since the document could then remove its sandbox.
"""

_POLICY = (
    "default-src 'none'; img-src {images}; style-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'"
)
_POLICY_OF_FRAME = "sandbox {sandbox}; {policy}; frame-ancestors 'self'"

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
    policy = _POLICY.format(images="data: https: http:" if allows_remote else "data:")
    body = _document(safe, message.summary.header.subject)
    return Reply(
        200,
        body.encode("utf-8", "replace"),
        "text/html; charset=utf-8",
        {
            "Content-Security-Policy": _POLICY_OF_FRAME.format(sandbox=SANDBOX, policy=policy),
            "X-Robots-Tag": "noindex, nofollow",
            "Cross-Origin-Resource-Policy": "same-origin",
        },
    )


def standalone_document(safe: SafeHtml, subject: str) -> str:
    """Return the HTML document of a message for a frame without headers, with its own policy."""
    policy = escape(_POLICY.format(images="data:"))
    return _document(
        safe, subject, f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    )


def _document(safe: SafeHtml, subject: str, policy: str = "") -> str:
    said = {"lang": safe.language, "dir": safe.direction}
    root = "".join(f' {name}="{escape(value)}"' for name, value in said.items() if value)
    return (
        f"<!doctype html>\n<html{root}><head>"
        f'<meta charset="utf-8">{policy}'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        # Without links of its own, since test suites take the first address of a view.
        f"<title>{escape(subject)}</title>"
        f"<style>{_OWN_STYLE}</style><style>{safe.style_sheet}</style></head>"
        f"<body>{safe.body}</body></html>\n"
    )
