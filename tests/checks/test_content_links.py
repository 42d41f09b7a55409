"""Tests for the links of a mail and its best link."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.html_tree import MAX_BASE
from mailcheck.checks.content.links import find_urls
from mailcheck.checks.content.safe_html import sanitise_html
from mailcheck.core.content import CandidateKind, MessageContent
from tests.table import rows


def _text_mail(text: str, kind: str = "text/plain; charset=utf-8") -> MessageContent:
    return derive_content(f"Content-Type: {kind}\r\n\r\n{text}".encode())


def _html_mail(markup: str) -> MessageContent:
    return _text_mail(markup, "text/html; charset=utf-8")


@rows(
    ("see https://a.example.", "https://a.example"),
    ("see https://a.example/x, then", "https://a.example/x"),
    ("(https://a.example/x)", "https://a.example/x"),
    ("<https://a.example/x>", "https://a.example/x"),
    ('"https://a.example/x"', "https://a.example/x"),
    ("„https://a.example/x“", "https://a.example/x"),
    ("[https://a.example/x]", "https://a.example/x"),
    ("https://a.example/x?!", "https://a.example/x"),
    ("**https://a.example/x**", "https://a.example/x"),
    ("https://a.example/wiki/A_(b)", "https://a.example/wiki/A_(b)"),
    ("(https://a.example/wiki/A_(b))", "https://a.example/wiki/A_(b)"),
    ("[Verify](https://a.example/x)", "https://a.example/x"),
    ("[https://a.example/x](https://b.example)", "https://a.example/x"),
    ("HTTPS://A.example/X", "HTTPS://A.example/X"),
    ("http://localhost:8080/x?a=1&b=%20#f", "http://localhost:8080/x?a=1&b=%20#f"),
    ("https://a.example/?t=abc-_", "https://a.example/?t=abc-_"),
    ("https://a.example/?t=abc==", "https://a.example/?t=abc=="),
    ("https://[2001:db8::1]:8443/x", "https://[2001:db8::1]:8443/x"),
    ("https://user:pw@a.example/x", "https://user:pw@a.example/x"),
    ("https://bücher.example/straße", "https://bücher.example/straße"),
    ("https://例え.example/x", "https://例え.example/x"),
    ("请点击https://a.example/x?t=1，谢谢", "https://a.example/x?t=1"),
    ("https://a.example/xにアクセスしてください。", "https://a.example/x"),
    ("「https://a.example/x」", "https://a.example/x"),
    ("<https://a.example/very/\n  long?x=1>", "https://a.example/very/long?x=1"),
    ("> quoted <https://a.example/very/\n> long>", "https://a.example/very/long"),
)
def test_a_url_in_text_ends_where_a_reader_ends_it(text: str, url: str) -> None:
    """Brackets, quotes, punctuation and CJK text around a URL are not part of it."""
    assert _text_mail(text).links[0] == url


@rows(
    "[Verify](https://a.example/x)[No](https://b.example/y)",
    "[https://a.example/x](https://b.example/y)",
    "[A](https://a.example/x)|[B](https://b.example/y)",
    "[A][1]\n\n[1]: https://a.example/x\n[2]: https://b.example/y",
    "![logo](https://a.example/x)[![](https://b.example/y)",
)
def test_markdown_links_may_touch_each_other(text: str) -> None:
    """Each URL ends with its own link."""
    assert _text_mail(text).links == ("https://a.example/x", "https://b.example/y")


@rows(
    "https://",
    "http:// x",
    "https://.",
    "https:///path",
    "https:a.example",
    "ftp://a.example",
    "javascript:alert(1)",
    "www.a.example",
    "//a.example/x",
)
def test_what_is_no_absolute_url_is_no_link(text: str) -> None:
    """Only http and https with a host are listed."""
    assert _text_mail(text).links == ()


def test_links_keep_their_order_and_come_once() -> None:
    """A repeated link is listed at its first place."""
    text = "https://b.example https://a.example https://b.example https://c.example/"
    links = ("https://b.example", "https://a.example", "https://c.example/")
    assert _text_mail(text).links == links


def test_flowed_text_is_joined_before_it_is_searched() -> None:
    """A URL that format=flowed wrapped with DelSp is joined; a soft break without it ends a URL."""
    kind = "text/plain; format=flowed; delsp=yes"
    content = _text_mail("go to https://a.example/abc \r\ndef now\r\n", kind)
    assert content.links == ("https://a.example/abcdef",)
    content = _text_mail("go to https://a.example/abc \r\ndef", "text/plain; format=flowed")
    assert content.links == ("https://a.example/abc",)


def test_links_of_html_are_its_anchors_and_visible_urls() -> None:
    """References are decoded; images, styles, forms and comments are not links."""
    content = _html_mail(
        '<base href="https://base.example/"><link href="https://no.example/style.css">'
        '<!-- <a href="https://no.example/comment">x</a> -->'
        '<a href=" https://a.example/?x=1&amp;copy=2&amp;y&#61;3 ">one</a>'
        '<a href="https://b.example/?a=1&copy=2">two</a>'
        "<A HREF='https://c.example/\n x'>three</A>"
        '<a href="relative">four</a><a href="//d.example/x">five</a>'
        '<a href="javascript:alert(1)">six</a><a name="x">seven</a>'
        '<img src="https://no.example/pixel.gif"><form action="https://no.example/f"></form>'
        "<p>or https://e.example/x.</p>"
    )
    assert content.links == (
        "https://a.example/?x=1&copy=2&y=3",
        "https://b.example/?a=1&copy=2",
        "https://c.example/%20x",
        "https://base.example/relative",
        "https://d.example/x",
        "https://e.example/x",
    )


BASE = "https://a.example/m/"


@rows(
    (BASE, "x?y=1", f"{BASE}x?y=1"),
    (BASE, "../x", "https://a.example/x"),
    (BASE, "/x", "https://a.example/x"),
    (BASE, "?y", f"{BASE}?y"),
    (BASE, "//b.example/z", "https://b.example/z"),
    (f" {BASE} ", " x ", f"{BASE}x"),
    ("HTTP://a.example", "x y", "http://a.example/x%20y"),
    (BASE, "https://b.example/", "https://b.example/"),
    (BASE, "#place", ""),
    (BASE, "javascript:alert(1)", ""),
    (BASE, "java\tscript:alert(1)", ""),
    ("/m/", "x", ""),
    ("javascript:alert(1)//", "x", ""),
    ("https://[", "x", ""),
    (BASE + "x" * MAX_BASE, "x", ""),
)
def test_links_are_relative_to_the_base_of_their_page(base: str, href: str, url: str) -> None:
    """Lists of links and the shown page agree where a relative link leads."""
    content = _html_mail(f'<base href="{base}"><a href="{href}">Verify</a><area href="{href}">')
    assert content.links == ((url,) if url else ())
    shown = sanitise_html(content.html).body.replace(" y", "%20y")
    assert (f'href="{url}"' in shown) is bool(url)
    assert "script:" not in shown
    # The first base with a web address counts.
    second = _html_mail(
        f'<base><base href="/"><base href="{BASE}"><base href="x"><a href="y">z</a>'
    )
    assert second.links == (f"{BASE}y",)


def test_few_links_are_joined_with_a_long_base() -> None:
    """The length of a base does not multiply with the number of links."""
    base = f"https://a.example/{'x' * 1_900}/"
    content = _html_mail(f'<base href="{base}">' + "<a href=y>z</a>" * 4_000)
    assert content.links == (f"{base}y",)
    assert len(sanitise_html(content.html).body) < 5_000_000


def test_hidden_links_are_left_out() -> None:
    """Hidden links are left out."""
    content = _html_mail(
        '<div style="display:none"><a href="https://a.example">x</a></div>'
        '<p hidden><a href="https://b.example">x</a></p>'
        '<td style="font-size:0"><a href="https://c.example/x" style="font-size:14px">y</a></td>'
    )
    assert content.links == ("https://c.example/x",)


def test_mail_addresses_are_candidates_only() -> None:
    """A mailto link is a candidate, but not in the list of links."""
    content = _html_mail('<a href="mailto:help@a.example">mail us</a>')
    assert content.links == ()
    (candidate,) = content.candidates
    assert candidate.kind is CandidateKind.MAIL_ADDRESS
    assert candidate.value == "help@a.example"
    assert not candidate.is_accepted


VERIFY = "https://app.example/verify?token=5f2c77a1b9e04d1c88"


@rows(
    '<a href="https://app.example/"><img src="l.png" alt="App"></a>',
    '<a href="https://app.example/unsubscribe?u=5f2c77a1b9e04d1c88">Unsubscribe</a>',
    '<a href="https://app.example/settings/5f2c77a1b9e04d1c88">Email preferences</a>',
    '<a href="https://app.example/view/5f2c77a1b9e04d1c88">View in browser</a>',
    '<a href="https://twitter.com/app">Twitter</a>',
    '<a href="https://apps.apple.com/app/id1182">Download the app</a>',
    '<a href="https://app.example/privacy">Privacy policy</a>',
    '<a href="https://app.example/report/5f2c77a1b9e04d1c88">I didn\'t request this</a>',
    '<a href="https://app.example/help">Help center</a>',
)
def test_the_best_link_is_the_one_the_mail_was_sent_for(other: str) -> None:
    """Logos, footers and denials are never the best link."""
    for label in ("Verify my e-mail", "here", "Get started", "https://app.example/v"):
        anchor = f'<a href="{VERIFY}">{label}</a>'
        assert _html_mail(f"<p>{other}</p><p>{anchor}</p>").best_link == VERIFY
        assert _html_mail(f"<p>{anchor}</p><p>{other}</p>").best_link == VERIFY


LINK = "https://app.test/u/abcdef"


@rows(
    "{url}",
    "Hello,\n\n{url}\n\nBye",
    "Click {url} to activate your account",
    "New sign-in. Not you? {url}",
    "Hello\n{url}\n\nIf you did not request this, ignore it. https://app.test/help",
    "bitte klicken Sie auf den folgenden Link:\n{url}\n\nImpressum: https://firma.test/i",
    "Öffnen Sie {url}, um Ihr Konto zu aktivieren. Musterfirma https://firma.test/ AGB https://firma.test/a",
    "Cliquez sur {url} pour activer votre compte.\nMentions légales https://app.test/ml",
    "Ga naar {url} om je wachtwoord te herstellen. https://app.test/nieuws",
    "Abra {url} para redefinir sua senha. Loja https://app.test/loja",
    "Öppna {url} för att bekräfta. https://app.test/nytt",
    "{url} にアクセスして登録を完了してください。https://app.test/shop",
    "请点击 {url} 激活您的账户。 https://app.test/shop",
    "Перейдите {url} чтобы подтвердить адрес. https://app.test/shop",
    # In plain text, the nearest words before a URL count, in every language.
    "Confirm your address: {url}\n\nUnsubscribe: https://app.example/u/1",
    "https://app.example/\n\nSetzen Sie Ihr Passwort zurück:\n{url}\n",
    "Réinitialisez votre mot de passe : {url} (mentions légales : https://app.example/l)",
    "Activa tu cuenta en {url}. Ayuda: https://app.example/ayuda",
    "点击以下链接验证邮箱：{url}\n退订：https://app.example/t",
    "下記のURLから登録を完了してください。\n{url}\n\nお問い合わせ https://app.example/c",
    "Подтвердите адрес: {url}\nОтписаться: https://app.example/o",
    "E-postanı doğrula: {url}\nGizlilik: https://app.example/g",
    "이메일 인증: {url}\n고객센터: https://app.example/k",
)
def test_the_only_link_or_the_words_around_it_decide(text: str) -> None:
    """The only link outside the frame is the best one; else the words around a link decide."""
    assert _text_mail(text.format(url=LINK)).best_link == LINK


@rows(
    '<p><a href="{url}">{url}</a></p>',
    '<p><a href="{url}"><img src="b.png"></a></p>',
    '<p><a href="{url}">{url}</a> to activate your account</p><a href="https://app.test/x">x</a>',
    '<p>Verify with the link below.</p><a href="{url}">https://app.test/v</a>',
    '<p>To confirm, click <a href="{url}">here</a>. See <a href="https://app.test/x">us</a>.</p>',
    'Um zu bestätigen, klicken Sie <a href="{url}">hier</a>. <a href="https://app.test/s">Shop</a>',
    'Şifrenizi sıfırlamak için <a href="{url}">buraya</a> <a href="https://app.test/s">Blog</a>',
    '<a href="https://app.test/z">Click here</a> to unsubscribe. <a href="{url}">Order</a>',
    'To unsubscribe, <a href="https://app.test/z">click here</a>. <a href="{url}">Order</a>',
)
def test_the_sentence_says_what_a_label_without_meaning_is_for(markup: str) -> None:
    """The sentence around a link counts if its label is a URL, or only says "here"."""
    assert _html_mail(markup.format(url=LINK)).best_link == LINK


def test_an_address_of_list_unsubscribe_is_never_the_best_link() -> None:
    """A link that the header names for unsubscribing is a part of the frame."""
    raw_message = f"List-Unsubscribe: <mailto:u@app.test>, <{LINK}>\r\n\r\nHello {LINK}"
    assert derive_content(raw_message.encode()).best_link is None


@rows(
    "<p>Hello</p>",
    '<a href="https://app.example/"><img src="logo.png"></a>',
    '<a href="https://app.example/terms">Terms</a> <a href="https://x.com/app">X</a>',
    '<a href="https://app.example/unsubscribe">Unsubscribe</a>',
    '<a href="mailto:a@app.example">Confirm</a>',
    '<a class="btn" href="https://app.example/x/5f2c77a1b9e04d1c88">Unsubscribe</a>',
)
def test_there_is_no_best_link_where_none_is_sensible(markup: str) -> None:
    """A frame without a purpose has no best link."""
    assert _html_mail(markup).best_link is None


def test_a_product_named_like_a_network_keeps_its_links() -> None:
    """An action on a network counts, but not the name of the network alone."""
    content = _html_mail(
        '<a href="https://github.example">GitHub</a><a href="https://github.example/i/7">'
        "View it on GitHub</a>"
    )
    assert content.best_link == "https://github.example/i/7"


def test_every_link_is_explained() -> None:
    """Each link is a candidate with its score and matching reasons."""
    content = _html_mail(
        f'<a href="{VERIFY}" class="btn">Verify</a><a href="https://a.example/">a</a>'
    )
    links = [found for found in content.candidates if found.kind is CandidateKind.LINK]
    assert [found.value for found in links] == [VERIFY, "https://a.example/"]
    for found in links:
        assert found.score == sum(int(reason.split(" ")[0]) for reason in found.reasons)
    assert [found.is_accepted for found in links] == [True, False]


@given(st.text(alphabet="https://a.b()[]<>\"' \n.,;!?&=%日", max_size=80))
def test_a_found_url_stands_in_its_text(text: str) -> None:
    """URLs are exact parts of the text, begin with their scheme and contain no white space."""
    for start, url in find_urls(text):
        assert text.startswith(url, start)
        assert url.lower().startswith(("http://", "https://"))
        assert not any(character.isspace() for character in url)


@rows(
    "[{0}][{1}]",
    "({0})({1})",
    "[{0}] [{1}]",
    "<{0}><{1}>",
    "[a]({0})[b]({1})",
    "({0})[{1}]",
    "[{0}]({1})",
    "[{0}]<{1}>",
)
def test_links_in_brackets_side_by_side_are_two(written: str) -> None:
    """A bracket between two links belongs to neither."""
    urls = ("https://a.example/x?t=1", "https://b.example/y")
    assert derive_content(f"Subject: x\r\n\r\n{written.format(*urls)}".encode()).links == urls


def test_links_of_a_picture_are_found() -> None:
    """Areas of an image map are links, described by their alt text."""
    content = _html_mail(
        '<img src=b.png usemap="#m"><map name=m><area href="https://a.example/" alt="Home">'
        '<area href="https://a.example/v/1" alt="Verify your address"><area alt=x></map>'
        '<div style="display:none"><area href="https://hidden.example/"></div>'
    )
    assert content.links == ("https://a.example/", "https://a.example/v/1")
    assert content.best_link == "https://a.example/v/1"


def test_links_to_apps_are_told_apart() -> None:
    """Links to apps are separate candidates in order, and not in the list of links."""
    content = _html_mail(
        '<a href="myapp://verify?token=abc">a</a><a href="com.shop.app:/x">b</a>'
        '<a href="javascript:x()">c</a><a href="data:text/html,x">d</a><a href="file:///x">e</a>'
        '<a href="cid:x">f</a><a href="vbscript:x">g</a><p>or otpauth://totp/x?secret=y.</p>'
    )
    apps = ["myapp://verify?token=abc", "com.shop.app:/x", "otpauth://totp/x?secret=y"]
    assert content.app_links == apps
    assert content.links == ()
    assert [one.value for one in content.candidates if one.kind is CandidateKind.APP_LINK] == apps
    text = derive_content(b"Subject: x\r\n\r\nOpen (myapp://verify?token=abc), http://a.example/")
    assert text.app_links == ["myapp://verify?token=abc"]
    assert text.links == ("http://a.example/",)
