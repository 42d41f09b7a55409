"""Support of mail clients for HTML and CSS, and the places of unsupported features."""

import json
from importlib.resources import files

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.html_tree import read_tree
from mailcheck.checks.html_checks.compatibility import judge_compatibility
from mailcheck.checks.html_checks.css import (
    CssFeatures,
    Kind,
    load_facts,
    load_rules,
    read_style_sheet,
)
from mailcheck.checks.html_checks.places import Lines
from mailcheck.checks.mail_checks import Compatibility, FeatureFinding
from tests.table import rows

YES, PART, NO = "y", "a", "n"

GMAIL, OUTLOOK, OUTLOOK_COM = "gmail.desktop-webmail", "outlook.windows", "outlook.outlook-com"
APPLE, IPHONE, YAHOO = "apple-mail.macos", "apple-mail.ios", "yahoo.desktop-webmail"

PAGES: dict[str, dict[str, str]] = {
    # Written down by hand from the pages caniemail.com/features/<name>/.
    "css-animation": {GMAIL: NO, OUTLOOK: NO, APPLE: YES, IPHONE: YES, YAHOO: NO},
    "css-at-font-face": {GMAIL: NO, OUTLOOK_COM: NO, APPLE: YES, IPHONE: YES, YAHOO: NO},
    "css-at-media": {GMAIL: PART, OUTLOOK: NO, APPLE: YES, IPHONE: YES, YAHOO: PART},
    "css-at-media-prefers-color-scheme": {GMAIL: NO, OUTLOOK: NO, APPLE: YES, IPHONE: YES},
    "css-background-image": {GMAIL: YES, OUTLOOK: NO, OUTLOOK_COM: YES, APPLE: YES},
    "css-border-radius": {GMAIL: YES, OUTLOOK: NO, OUTLOOK_COM: YES, APPLE: YES, YAHOO: PART},
    "css-box-shadow": {GMAIL: NO, OUTLOOK: NO, APPLE: YES, IPHONE: YES, YAHOO: NO},
    "css-display-flex": {GMAIL: YES, OUTLOOK: NO, OUTLOOK_COM: YES, APPLE: YES, YAHOO: YES},
    "css-float": {GMAIL: YES, OUTLOOK: NO, APPLE: YES, IPHONE: YES},
    "css-linear-gradient": {GMAIL: YES, OUTLOOK: NO, APPLE: YES, IPHONE: YES},
    "css-max-width": {GMAIL: YES, OUTLOOK: PART, APPLE: YES, YAHOO: YES},
    "css-opacity": {GMAIL: YES, OUTLOOK: NO, APPLE: YES, IPHONE: YES},
    "css-padding": {GMAIL: YES, OUTLOOK: PART, APPLE: YES, YAHOO: YES},
    "css-position": {GMAIL: NO, OUTLOOK: NO},
    "css-variables": {GMAIL: NO, OUTLOOK: NO, OUTLOOK_COM: NO, APPLE: YES, YAHOO: NO},
    "html-link": {GMAIL: NO, OUTLOOK_COM: NO, APPLE: YES, IPHONE: YES, YAHOO: NO},
    "html-style": {GMAIL: PART, OUTLOOK_COM: YES, APPLE: YES, IPHONE: YES, YAHOO: YES},
    "html-svg": {GMAIL: NO, OUTLOOK: NO, IPHONE: YES, YAHOO: NO},
    "html-table": {GMAIL: YES, OUTLOOK: YES, OUTLOOK_COM: YES, APPLE: YES, YAHOO: YES},
    "html-video": {GMAIL: NO, OUTLOOK: NO, APPLE: YES, YAHOO: NO},
    "image-base64": {GMAIL: NO, APPLE: YES, IPHONE: YES},
    "image-webp": {OUTLOOK: NO, APPLE: YES, IPHONE: YES, YAHOO: YES},
}

USES = {
    # A mail that uses it, and nothing else that is not supported everywhere.
    "css-animation": "<style>p{animation:a}</style>",
    "css-at-font-face": "<style>@font-face{src:none}</style>",
    "css-at-media": "<style>@media print{p{}}</style>",
    "css-at-media-prefers-color-scheme": "<style>@media (prefers-color-scheme:dark){p{}}</style>",
    "css-background-image": '<p style="background-image:none">',
    "css-border-radius": '<p style="border-top-left-radius:0">',
    "css-box-shadow": '<p style="box-shadow:none">',
    "css-display-flex": '<p style="display:flex">',
    "css-float": '<p style="float:left">',
    "css-linear-gradient": '<p style="background:linear-gradient(red,blue)">',
    "css-max-width": '<p style="max-width:9px">',
    "css-opacity": '<p style="opacity:1">',
    "css-padding": '<p style="padding-top:9px">',
    "css-position": '<p style="position:static">',
    "css-variables": '<p style="color:var(--ink)">',
    "html-link": '<link rel="stylesheet" href="https://shop.example/a.css">',
    "html-style": "<style></style>",
    "html-svg": "<svg></svg>",
    "html-table": "<table></table>",
    "html-video": "<video></video>",
    "image-base64": '<img src="data:image/png;base64,AAAA" alt="">',
    "image-webp": '<img src="https://shop.example/a.webp?v=1" alt="">',
}


PARTS = {"logo@shop": "image/png", "shoe@shop": "image/webp", "list@shop": "text/csv"}


def judge(markup: str) -> Compatibility:
    """Judge a page."""
    return judge_compatibility(markup, read_tree(markup), Lines(markup), PARTS)


def found_in(markup: str) -> dict[str, FeatureFinding]:
    """Judge a page; return the findings by name."""
    return {one.slug: one for one in judge(markup).findings}


@rows(
    ('<link rel="stylesheet" href="https://a.example/a.css">', ["style-sheet"]),
    ('<link rel="alternate" href="https://a.example/">', []),
    ("<style>@import 'https://a.example/a.css';</style>", ["style-sheet"]),
    ('<img src="https://a.example/shoe?id=3">', ["picture"]),
    ('<img src="https://a.example/shoe.webp?id=3">', []),
    ('<img src="https://a.example/look?id=3" width="1" height="1">', []),
    ('<img src="cid:gone@shop">', ["picture"]),
    ('<img src="cid:list@shop">', ["picture"]),
    ('<img src="cid:logo%40shop">', []),
)
def test_external_files_are_not_judged(markup: str, expected: list[str]) -> None:
    """External files are not fetched, so they are reported as not judged."""
    judged = judge(markup)
    assert [one.what.value for one in judged.not_judged] == expected
    assert all(one.reason and one.count == len(one.places) == 1 for one in judged.not_judged)


def test_pictures_in_the_mail_are_judged_by_their_parts() -> None:
    """The format of a ``cid:`` image is that of its part, whatever its name."""
    found = found_in('<img src="cid:shoe@shop">\n<img src="CID:logo@shop">')["image-webp"]
    assert [place.line for place in found.places] == [1]


@rows(*sorted(PAGES))
def test_data_matches_the_pages(slug: str) -> None:
    """The verdict about a feature is the same as on its page at caniemail.com."""
    facts = load_facts()
    finding = found_in(USES[slug]).get(slug)
    for client, letter in PAGES[slug].items():
        name = facts.client_name(client)
        said = NO if finding and name in finding.unsupported else YES
        said = PART if finding and name in finding.partial else said
        assert said == letter, (slug, name)


def test_over_twenty_pages_are_compared() -> None:
    """The data is compared with pages of all kinds, each with a mail that uses the feature."""
    assert len(PAGES) >= 20
    assert PAGES.keys() == USES.keys()
    assert {slug.partition("-")[0] for slug in PAGES} == {"css", "html", "image"}


def test_every_feature_is_looked_for() -> None:
    """Every feature of the data has a rule, or a reason why it is not judged."""
    rules = load_rules()
    tables = [
        *(getattr(rules, name) for name in rules.__struct_fields__),
        *rules.values.values(),
        *rules.elements_with.values(),
    ]
    looked_for = {
        slug
        for table in tables
        if table not in (rules.values, rules.elements_with, rules.not_judged)
        for slugs in table.values()
        for slug in slugs
    }
    features = {feature.slug for feature in load_facts().features}
    assert looked_for | set(rules.not_judged) == features
    assert not looked_for & set(rules.not_judged)
    assert all(rules.not_judged.values())


def test_data_is_complete() -> None:
    """Each feature has a letter for every client, and a source, a date and a licence."""
    facts = load_facts()
    assert all(len(one.support) == len(facts.clients) for one in facts.features)
    assert {letter for one in facts.features for letter in one.support} <= set("yanu.")
    assert all(
        str(number) in one.notes
        for one in facts.features
        for numbers in one.noted.values()
        for number in numbers
    )
    assert facts.licence.startswith("MIT")
    assert facts.date >= "2026-05-13"
    assert len(facts.features) > 300
    assert len(facts.clients) > 40


def test_findings_have_their_lines() -> None:
    """A finding has its number of places, their lines and the text there."""
    markup = (
        "<style>\n"  # 1
        "p { color: red }\n"
        ".card {\n"
        "  padding: 1px;\n"
        "  border-radius: 4px }\n"  # 5
        "</style>\n"
        "<p\n"
        '  style="border-radius: 2px">one</p>\n'
        '<p style="border-radius: 9px">two</p> <p style="border-radius: 9px">three</p>\n'
    )
    finding = found_in(markup)["css-border-radius"]
    assert [place.line for place in finding.places] == [5, 7, 9]
    assert finding.places[0].excerpt == "border-radius: 4px }"
    assert finding.places[1].excerpt == "<p"
    assert finding.count == 4


def test_families_are_counted() -> None:
    """Every client is counted once for a finding and once for the mail, in its family."""
    facts = load_facts()
    judged = judge('<p style="border-radius:4px;position:absolute">hi</p>')
    for support in (judged.clients, *(one.support for one in judged.findings)):
        assert [one.family for one in support] == [
            *("Gmail", "Outlook", "Apple Mail", "Yahoo", "Others")
        ]
        total = sum(one.supported + one.partial + one.unsupported + one.unknown for one in support)
        assert total == len(facts.clients)
    (radius,) = (one for one in judged.findings if one.slug == "css-border-radius")
    outlook = radius.support[1]
    assert (outlook.supported, outlook.unsupported) == (4, 2)


def test_a_client_has_its_worst_support() -> None:
    """A client that lacks one feature counts as unsupported for the whole mail."""
    good = judge("<p>hi</p>")
    assert not good.findings
    assert all(not (one.partial or one.unsupported) for one in good.clients)
    gmail = judge('<p style="border-radius:4px;position:absolute">hi</p>').clients[0]
    assert (gmail.supported, gmail.unsupported) == (0, 4)


def test_worst_findings_come_first() -> None:
    """Features that most clients lack come before features that few clients lack."""
    judged = judge('<p style="padding:1px"><video></video></p>')
    assert [one.slug for one in judged.findings] == ["html-video", "css-padding"]


def test_content_that_outlook_skips_does_not_count_against_it() -> None:
    """Content that Outlook on Windows does not read does not count against it."""
    hidden = '<!--[if !mso]><!--><p style="border-radius:4px">x</p><!--<![endif]-->'
    finding = found_in(hidden)["css-border-radius"]
    assert "Outlook (Windows)" not in finding.unsupported
    both = found_in(hidden + '<p style="border-radius:4px">x</p>')["css-border-radius"]
    assert "Outlook (Windows)" in both.unsupported


def test_content_for_outlook_alone_is_not_judged() -> None:
    """Other clients ignore the content of a conditional comment."""
    assert not judge('<!--[if mso]><p style="border-radius:4px">x</p><![endif]-->').findings


def features_of(sheet: str) -> set[str]:
    """Return the features of a style sheet."""
    css = CssFeatures(load_rules())
    return {slug for piece in read_style_sheet(sheet) for slug in css.of_piece(piece)}


@rows(
    ("p > a { color: red }", {"css-selector-child", "css-selector-type"}),
    ("p>a{}", {"css-selector-child", "css-selector-type"}),
    ("p a{}", {"css-selector-descendant", "css-selector-type"}),
    ("p+a{}", {"css-selector-adjacent-sibling", "css-selector-type"}),
    ("p ~ a{}", {"css-selector-general-sibling", "css-selector-type"}),
    (".a.b{}", {"css-selector-class", "css-selector-chaining"}),
    (".a, #b{}", {"css-selector-class", "css-selector-id", "css-selector-grouping"}),
    ("*{}", {"css-selector-universal"}),
    ('[class~="x, > .y"]{}', {"css-selector-attribute"}),
    ("a:hover{}", {"css-selector-type", "css-pseudo-class-hover"}),
    ("a:before{}", {"css-selector-type", "css-pseudo-element-before"}),
    ("a::before{}", {"css-selector-type", "css-pseudo-element-before"}),
    ("a:nth-child(2n + 1){}", {"css-selector-type", "css-pseudo-class-nth-child"}),
    ("a:not(.b){}", {"css-selector-type", "css-pseudo-class-not"}),
    (
        "@media (min-width: 9px) and (orientation: portrait) {}",
        {"css-at-media", "css-at-media-orientation"},
    ),
    (
        "@media (-webkit-min-device-pixel-ratio:2) {}",
        {"css-at-media", "css-at-media-device-pixel-ratio"},
    ),
    ("@import url(https://shop.example/a;b.css);", {"css-at-import"}),
    ("@keyframes turn { from {} 50.5% {} to {} }", {"css-at-keyframes"}),
    ("@supports (display:grid) {}", {"css-at-supports"}),
    ("@font-face { font-family: x }", {"css-at-font-face"}),
    ("/* p > a { float: left } */", {"css-comments"}),
    ("<!-- p {} -->", {"css-selector-type"}),
    ("p { .a { } }", {"css-selector-type", "css-selector-class", "css-nesting"}),
    ("@media print { p { } }", {"css-at-media", "css-selector-type"}),
)
def test_rules_of_a_style_sheet(sheet: str, expected: set[str]) -> None:
    """Selectors, conditions and at-rules are distinguished in every spelling."""
    assert features_of(sheet) == expected


@rows(
    ("width:10PX", {"css-width", "css-unit-px"}),
    ("WIDTH : 50.5%", {"css-width", "css-unit-percent"}),
    ("margin:-.5em 1e", {"css-margin", "css-unit-em"}),
    ("color:#1e3", set()),
    ("color:#1ch", set()),
    ("width:calc(100% - 2rem)", {"css-width", "css-unit-calc", "css-unit-percent"}),
    ("display:inline-flex", {"css-display", "css-display-flex"}),
    ("display:none", {"css-display", "css-display-none"}),
    ("width:fit-content", {"css-width", "css-intrinsic-size"}),
    ("--ink: red", {"css-variables"}),
    ("color:var(--ink)", {"css-variables"}),
    ("color:red ! important", {"css-important"}),
    ("color:rgba(1,2,3,.4)", {"css-rgba"}),
    ("font-family:'10px calc(', system-ui", {"css-sytem-ui"}),
    ("background:url(data:image/png;base64,AA;10px)", {"css-background"}),
    ('content:"; float:left"', set()),
    ("mso-line-height-rule:exactly", set()),
    ("color", set()),
)
def test_declarations(declaration: str, expected: set[str]) -> None:
    """Properties, units, functions and words count, except within strings and URLs."""
    found = set(CssFeatures(load_rules()).of_style(declaration))
    if "calc" in declaration and "rem" in declaration:
        expected = expected | {"css-unit-rem"}
    assert found == expected


@rows(
    ('<a href="#top">x</a>', "html-anchor-links"),
    ('<a href="MAILTO:a@b.example">x</a>', "html-mailto-links"),
    ('<input type="Checkbox">', "html-input-checkbox"),
    ('<button type="submit">x</button>', "html-button-submit"),
    ('<img src="a.png" srcset="b.png 2x" alt="">', "html-srcset"),
    ('<meta name="color-scheme" content="dark">', "html-meta-color-scheme"),
    ('<img src="a.SVG" alt="">', "image-svg"),
    ("<nav>x</nav>", "html-semantics"),
    ('<p inert="">x</p>', "css-inert-attribute"),
    ('<td align="center">x</td>', "html-align"),
)
def test_elements_and_attributes(markup: str, expected: str) -> None:
    """Elements, attributes and values that some client does not support are found."""
    letters = next(one.support for one in load_facts().features if one.slug == expected)
    assert (expected in found_in(markup)) == bool({"n", "a"} & set(letters))
    assert {"n", "a"} & set(letters)


def test_a_feature_that_all_support_is_not_a_finding() -> None:
    """A page of plain text in a table has no findings."""
    assert not found_in("<table><tr><td>Hello <span>you</span></td></tr></table>")


PIECES = st.lists(
    st.sampled_from(
        [
            *("{", "}", "(", ")", "[", "]", ";", ":", ",", '"', "'", "\\", "/*", "*/", "@", "!"),
            *("@media", "@import", "url(", "p", ".a", "#b", ">", " ", "\n", "color", "10px", "--x"),
            *("<!--", "-->", "var(", "display:flex"),
        ]
    ),
    max_size=40,
).map("".join)


@given(PIECES)
def test_any_text_is_a_style_sheet(text: str) -> None:
    """Any text is accepted as a style sheet, and each piece has its position."""
    css = CssFeatures(load_rules())
    for piece in read_style_sheet(text):
        assert 0 <= piece.position <= len(text)
        css.of_piece(piece)
    css.of_style(text)


NAMES = st.sampled_from(["p", ".a", "#b", "td.c > a", "a:hover, b"])
DECLARATIONS = st.lists(
    st.sampled_from(["float:left", "color: red", "width : 9px", "border-radius:4px !important"]),
    min_size=1,
    max_size=4,
)
BLANKS = st.sampled_from(["", " ", "\n", "/* a { b: c } */"])


@given(st.lists(st.tuples(NAMES, DECLARATIONS), min_size=1, max_size=5), BLANKS)
def test_style_sheets_round_trip(rules: list[tuple[str, list[str]]], blank: str) -> None:
    """Selectors and declarations are read unchanged with any whitespace around them."""
    text = "".join(
        f"{blank}{name}{blank}{{{blank}{';'.join(said)}{blank}}}" for name, said in rules
    )
    pieces = list(read_style_sheet(text))
    selectors = [one.text for one in pieces if one.kind is Kind.SELECTOR]
    declarations = [one for one in pieces if one.kind is Kind.DECLARATION]
    assert selectors == [name for name, _ in rules]
    wanted = [one for _, said in rules for one in said]
    css = CssFeatures(load_rules())
    for piece, written in zip(declarations, wanted, strict=True):
        assert css.of_piece(piece) == css.of_style(written)
        if not blank.startswith("/"):
            assert text[piece.position :].startswith(written)


@given(st.lists(st.sampled_from(sorted(USES)), unique=True, max_size=6))
def test_a_mail_has_the_findings_of_its_parts(slugs: list[str]) -> None:
    """Features are found beside any others, and never improve the result of a client."""
    whole = judge("\n".join(USES[slug] for slug in slugs))
    found = {one.slug for one in whole.findings}
    for slug in slugs:
        part = judge(USES[slug])
        assert {one.slug for one in part.findings} <= found
        for one, other in zip(part.clients, whole.clients, strict=True):
            assert other.unsupported >= one.unsupported


def test_the_file_is_read_as_a_diff() -> None:
    """A change of one feature in the data changes only the lines of that feature."""
    text = files("mailcheck.checks.html_checks").joinpath("caniemail.json").read_text("utf-8")
    lines = [line.rstrip(",") for line in text.splitlines() if line.startswith('{"slug"')]
    assert len(lines) == len(load_facts().features)
    assert [json.loads(line)["slug"] for line in lines] == sorted(
        one.slug for one in load_facts().features
    )


@rows("css-border-radius", "html-video")
def test_family_counts_match_the_clients(slug: str) -> None:
    """The numbers of the families match the named clients."""
    finding = found_in(USES[slug])[slug]
    assert sum(one.unsupported for one in finding.support) == len(finding.unsupported)
    assert sum(one.partial for one in finding.support) == len(finding.partial)
