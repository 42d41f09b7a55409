"""The document of a mail's HTML, for a sandboxed frame: the policy is the second defence.

What `safe_html` takes out can't come back in here: no script runs in this
document, it belongs to no site, it loads nothing but what is inside it, sends
no form, leads nowhere but to a new tab. Were the policy not obeyed, there
would be nothing in the document to run or to load.
"""

from html import escape

from mailcheck.checks.content.safe_html import PAGE_CLASS, SafeHtml
from mailcheck.web.site.replies import Reply

SANDBOX = "allow-same-origin allow-popups allow-popups-to-escape-sandbox"
"""What the frame may do: open a link in a new tab, which is an ordinary one then.

Of the same origin, so that the page around it can make it as high as what is in it; never
``allow-scripts`` beside that: the document could take its own sandbox off.
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
    # Without a source they have no size but for this.
    "img{max-width:100%}:where(img:not([src])){display:inline-block}"
    "img:not([src]){outline:1px dashed #999;outline-offset:-1px}"
    "a:focus-visible{outline:2px solid #1f5fbf}"
)


def frame_reply(safe: SafeHtml, title: str, *, allows_remote: bool) -> Reply:
    """Make the document that is put into a frame."""
    images = "data: https: http:" if allows_remote else "data:"
    body = (
        f"<!doctype html>\n<html{_root_attributes(safe)}><head>"
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>'
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


def _root_attributes(safe: SafeHtml) -> str:
    said = {"lang": safe.language, "dir": safe.direction}
    return "".join(f' {name}="{escape(value)}"' for name, value in said.items() if value)
