"""All readers of the HTML of a mail agree on what is visible."""

from mailcheck.api.mcp.views import view_content
from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.safe_html import sanitise_html
from mailcheck.checks.quality.reading import read_mail
from tests.table import rows

CODE = "482913"
LINK = "https://acme.example/verify"
WORDS = f"Your code is {CODE}. <a href='{LINK}' style='color:inherit'>Verify</a>"

SEEN, HIDDEN, NO_WORDS = "seen", "hidden", "no words"

STYLES = {
    "display:none": HIDDEN,
    "DISPLAY : NONE !important": HIDDEN,
    "display:none;display:block": SEEN,
    "display:none!important;display:block": HIDDEN,
    "dis/**/play:none": SEEN,
    "display:/**/none": HIDDEN,
    "d\\69splay:none": HIDDEN,
    "font-family:'display:none;x'": SEEN,
    "background:url(data:image/png;display:none)": SEEN,
    "visibility:hidden": HIDDEN,
    "visibility:collapse": HIDDEN,
    "opacity:0": HIDDEN,
    "opacity:0.0": HIDDEN,
    "opacity:0.9": SEEN,
    "font-size:0": HIDDEN,
    "font-size:1px": HIDDEN,
    "font-size:0.05em": HIDDEN,
    "font:0/0 a": HIDDEN,
    "font:bold 14px/0 Arial": SEEN,
    "line-height:0": SEEN,
    "color:#ffffff": HIDDEN,
    "color: White !important": HIDDEN,
    "color:rgb(255, 255, 255)": HIDDEN,
    "color:rgba(0,0,0,0)": HIDDEN,
    "color:transparent": HIDDEN,
    "color:#fff;background:#fff url(x.png)": SEEN,
    "color:#fff;background-image:linear-gradient(red,blue)": SEEN,
    "color:#fff;background-color:#036": SEEN,
    "color:#fff;background:transparent": HIDDEN,
    "background:black;color:#000": HIDDEN,
    "background:red;color:#f00": HIDDEN,
    "color:var(--a);background:var(--a)": SEEN,
    "position:absolute;left:-9999px": HIDDEN,
    "position:absolute;top:-100em": HIDDEN,
    "margin-left:-10px": SEEN,
    "text-indent:-9999px": HIDDEN,
    "text-indent:2em": SEEN,
    "clip:rect(0,0,0,0)": HIDDEN,
    "clip-path:inset(50%)": HIDDEN,
    "height:0;overflow:hidden": HIDDEN,
    "width:0px;overflow:hidden": HIDDEN,
    "height:0": SEEN,
    "max-height:0;overflow:hidden": HIDDEN,
    "max-width:600px": SEEN,
    "mso-hide:all": HIDDEN,
}

PAGES = {
    "<div hidden>{}</div>": HIDDEN,
    "<font color=white>{}</font>": HIDDEN,
    "<table><tr><td bgcolor='#336699'><span style='color:#369'>{}</span></td></tr></table>": HIDDEN,
    "<table><tr><td bgcolor='#336699'><span style='color:#fff'>{}</span></td></tr></table>": SEEN,
    "<table background='x.png'><tr><td><span style='color:#fff'>{}</span></td></tr></table>": SEEN,
    "<div style='background:#000'><b style='color:black'>{}</b></div>": HIDDEN,
    "<body bgcolor=black text=white>{}</body>": SEEN,
    "<style>.dark{{background:#000}}</style><p class=dark><b style='color:#fff'>{}</b>": SEEN,
    "<div style='display:none'><table><tr><td style='display:block'>{}</table></div>": HIDDEN,
    "<div style='visibility:hidden'><p style='visibility:visible'>{}</p></div>": SEEN,
    "<div style='font-size:0'><p style='font-size:14px'>{}</p></div>": SEEN,
    "<div style='font-size:0'><p style='font-size:2em'>{}</p></div>": HIDDEN,
    "<div style='color:#fff'><p style='color:#222'>{}</p></div>": SEEN,
    "<div style='opacity:0'><p style='opacity:1'>{}</p></div>": HIDDEN,
    # Ends of elements by the standard.
    "<p style='display:none'>x<p>{}": SEEN,
    "<ul><li style='display:none'>x<li>{}</ul>": SEEN,
    "<ul><li style='display:none'>x<ul><li>y</ul>{}</ul>": HIDDEN,
    "<dl><dt hidden>x<dd>{}</dl>": SEEN,
    "<table><tr><td hidden>x<td>{}</table>": SEEN,
    "<table><tr hidden><td>x<tr><td>{}</table>": SEEN,
    "<table><thead hidden><tr><td>x<tbody><tr><td>{}</table>": SEEN,
    "<div style='display:none'></span></b></li></td>{}</div>": HIDDEN,
    "<span style='display:none'><div></span>{}</div></span>": HIDDEN,
    "<div style='display:none'><table><tr><td></div>{}</table></div>": HIDDEN,
    "<p style='display:none'><div>{}</div>": SEEN,
    "<h1 style='display:none'>x</h2>{}": SEEN,
    # Formatting continues after a block, and ends inside one.
    "<p><b style='display:none'>x</p>{}</b>": HIDDEN,
    "<p><b style='display:none'>x</b></p>{}": SEEN,
    "<i style='display:none'>x<div></i>{}</div>": SEEN,
    "<b style='display:none'><i>x</b>{}</i>": SEEN,
    "<table><tr><td><font color=white>x<td>{}</table>": SEEN,
    # Words in a table outside its cells are drawn before it.
    "<table style='display:none'>{}<tr><td>x</table>": SEEN,
    # Elements whose content is no text of the page.
    "<title>{}</title>": NO_WORDS,
    "<style>{}</style>": NO_WORDS,
    "<script>{}</script>": NO_WORDS,
    "<!-- {} -->": NO_WORDS,
    "<!--[if mso]>{}<![endif]-->": NO_WORDS,
    "<!--[if !mso]><!-->{}<!--<![endif]-->": SEEN,
    "<template>{}</template>": NO_WORDS,
    "<select><option>{}</select>": NO_WORDS,
    "<svg><text>{}</text></svg>": NO_WORDS,
    "<svg><circle/><p>{}</p></svg>": SEEN,
    "<textarea>{}</textarea>": NO_WORDS,
    "<video>{}</video>": NO_WORDS,
    "<object>{}</object>": SEEN,
    "<noscript>{}</noscript>": SEEN,
    "<map>{}</map>": SEEN,
}  # fmt: skip

HEADS = {
    "<html><head><title>T</title><body><p>Hello</p>{}": SEEN,
    "<html><head><meta charset=utf-8><p>Hello</p>{}": SEEN,
    "<html><head><style>p{{}}</style><table><tr><td>Hello {}</table>": SEEN,
    "<html><head>Hello {}</html>": SEEN,
    "<head><title>T</title><center>Hello {}</center></head>": SEEN,
    "<p>Hello</p><head>{}": SEEN,
    "<head></head><body>Hello<head><title>T</title>{}</head></body>": SEEN,
    "<html><head><body>Hello</body></html><html><head><body>{}</body></html>": SEEN,
    "<head><meta name=x><link rel=y><base href=z><noscript><style></style></noscript>"
    "<title>T</title></head>Hello {}": SEEN,
}


def readings(markup: str) -> dict[str, str]:
    """Return each reader's answer about the words of a page."""
    raw = f"Subject: Acme\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{markup}".encode()
    content = derive_content(raw)
    html = read_mail(raw).html
    assert html is not None
    view = view_content(content)
    answers = {
        "codes": SEEN if CODE in content.codes else "",
        "links": SEEN if LINK in content.links else "",
        "quality": SEEN if CODE in html.preheader else HIDDEN if html.hidden_length else NO_WORDS,
        "agents": SEEN if CODE in view.text else HIDDEN if view.hides_text else NO_WORDS,
        # A browser hides content of the page itself.
        "page": "" if CODE in sanitise_html(markup).body else NO_WORDS,
    }
    return {reader: answer for reader, answer in answers.items() if answer}


@rows(
        *((f'Hello <p style="{style}">{{}}</p> Bye', answer) for style, answer in STYLES.items()),
        *((f"<p>Hello</p>{page}<p>Bye</p>", answer) for page, answer in PAGES.items()),
        *HEADS.items(),
    )  # fmt: skip
def test_all_readers_agree_on_visibility(page: str, answer: str) -> None:
    """Codes, links, findings, the text for agents and the shown page agree."""
    expected = {"quality": answer, "agents": answer}
    if answer is SEEN:
        expected |= {"codes": SEEN, "links": SEEN}
    if answer is NO_WORDS:
        expected |= {"page": NO_WORDS}
    assert readings(page.format(WORDS)) == expected
