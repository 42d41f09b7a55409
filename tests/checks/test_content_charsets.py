"""Tests for charsets: every label, every variant of ISO-2022, and bad bytes."""

import re
from itertools import product

import webencodings
from hypothesis import given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from mailcheck.checks.content.charsets import decode_as, find_codec
from mailcheck.checks.content.decoding import decode_header_bytes, decode_text
from mailcheck.checks.content.derive import derive_content
from tests.table import rows

SAMPLES = {
    "big5": "驗證碼：",
    "euc-jp": "認証コード",
    "euc-kr": "인증번호 믜",
    "gb18030": "验证码：镕",
    "gbk": "验证码：镕",
    "ibm866": "Код",
    "iso-2022-jp": "認証コード",
    "iso-8859-6": "رمز",
    "iso-8859-7": "Κωδικός",
    "iso-8859-8": "קוד",
    "iso-8859-8-i": "קוד",
    "koi8-r": "Код",
    "koi8-u": "Код їґ",
    "iso-8859-5": "Код",
    "macintosh": "Bestätigung",
    "shift_jis": "認証コード①",
    "utf-16be": "Bestätigung",
    "utf-16le": "Bestätigung",
    "utf-8": "Bestätigung 验证码",
    "windows-1251": "Код",
    "windows-1252": "Bestätigung €",
    "windows-1253": "Κωδικός",
    "windows-1255": "קוד",
    "windows-1256": "رمز",
    "windows-874": "รหัส",
    "x-mac-cyrillic": "Код",
}
"""Return a text for a charset of the standard; most charsets have Latin letters."""


@rows(*LABELS.items())
def test_every_label_of_the_standard_is_known(label: str, name: str) -> None:
    """All labels of the WHATWG Encoding Standard decode text in their charset."""
    if name in ("replacement", "x-user-defined"):
        assert find_codec(label) is not None
        return
    sample = SAMPLES.get(name, "é" if name != "iso-8859-5" else "К")
    data = webencodings.encode(sample, name)
    for written in (label, label.upper(), f'"{label}"', f" {label} ", f"{label};"):
        assert decode_text(data, written)[0] == sample


@rows(
    ("x-windows-949 windows-949 cp949 ms949 uhc x-euc-kr", "믜".encode("cp949"), "믜"),
    ("x-johab johab cp1361", "한".encode("johab"), "한"),
    ("cp50220 cp50221 cp50222 iso-2022-jp-ms iso-2022-jp-1 jis", b"\x1b$B-!\x1b(B", "①"),
    ("_iso-2022-jp$ESC CsISO2022JP$SIO iso2022jp", b"\x1b$B-!\x1b(B", "①"),
    ("windows-31j cp932 ms932 x-ms-cp932 x-sjis sjis cp943", b"\x87\x40", "①"),
    ("eucJP-ms eucJP-win cp51932 x-eucjp euc_jp", b"\xad\xa1", "①"),
    ("x-gbk gb_2312-80 cp936 windows-936 ms936 euc-cn cn-gb", "镕".encode("gbk"), "镕"),
    ("hz hz-gb-2312 x-hz", b"~{VPND~}", "中文"),
    ("windows-950 cp950 big5-eten x-x-big5 big5-hkscs", b"\xa3\xe1\x88\x62", "€Ê̄"),
    ("x-cp1252 win-1252 windows1252 windows_1252 1252 ansi cp-1252", b"\x80", "€"),
    ("x-cp1251 win1251 x-windows-1251", b"\xca", "К"),
    ("cp-850 ibm850 dos-850", b"\x84", "ä"),
    ("iso8859-15 iso_8859_15 8859-15 latin-9 iso885915", b"\xa4", "€"),
    ("utf8 utf_8 UTF-8; utf8mb4 cp65001 utf-8http-equiv charset=utf-8", b"\xc3\xa4", "ä"),
    ("unicode-1-1-utf-7 utf-7 cp65000", b"+AOQ-", "ä"),
    ("x-mac-ce x-mac-centraleurroman", b"\x8a", "ä"),
    ("koi8-u koi8-ru", b"\xae", "ў"),
    ("windows-1255 cp1255", b"\xca", "\u05ba"),
    ("gb18030 gbk", b"\x80", "€"),
    ("iso-2022-kr csiso2022kr", b"\x1b$)C\x0eGQ\x0f!", "한!"),
    ("iso-2022-cn", b"\x1b$)A\x0eVPND\x0f!", "中文!"),
    ("iso-8859-1\x1b(B", b"\xe4", "ä"),
)
def test_labels_that_mail_programs_write(labels: str, data: bytes, text: str) -> None:
    """Labels outside the standard have the charset that mail programs mean."""
    for label in labels.split(" "):
        assert decode_text(data, label) == (text, None), label


@rows("", "x-nonsense", "iso-8859-12", "idna", "base64", "rot13", "a" * 65)
def test_labels_that_name_no_charset(label: str) -> None:
    """An unknown label, a codec that is not a charset, and an overlong label have no codec."""
    assert find_codec(label) is None


def test_a_label_for_an_unknown_charset_costs_nothing() -> None:
    """Text with a label for an unknown charset is read as UTF-8, or else as Windows-1252."""
    for label in ("x-unknown", "unknown-8bit", "default", "8bit"):
        assert decode_text("ä".encode(), label)[0] == "ä"
        assert decode_text(b"\xe4", label)[0] == "ä"


@rows(
    (b"\x1b$BG'>Z%3!<%I\x1b(B 12", "認証コード 12"),
    (b"\x1b$@G'>Z\x1b(J12\\", "認証12¥"),
    (b"\x1b$B-!-j-b|b\x1b(B", "①㈱№髙"),
    (b"\x1b&@\x1b$BG'\x1b(B", "認"),
    (b"\x1b(I1\x1b(B1", "ｱ1"),
    (b"\x0e1\x0f1", "ｱ1"),
    (b"\xb1", "ｱ"),
    (b"\x1b$(D0!\x1b(B", "丂"),
    (b"\x1b$(O.!\x1b(B", "俱"),
    (b"\x1b$(?!!\x1b(B", "\ue000"),
    (b"\x1b$AVP\x1b$(CGQ\x1b(B", "中한"),
    (b"\x1b$BG'", "認"),
    (b"\x1b$BG' >Z\x1b(B", "認 証"),
    (b"\x1b$BG'\r\n12", "認\r\n12"),
    (b"\x1b$BG'>\x1b(B12", "認\ufffd12"),
    (b"\x1b$BG'\xff>>Z\x1b(B12", "認\ufffd証12"),
    (b"\x1b$BG'\x7e\x7e>Z\x1b(B12", "認\ufffd証12"),
)
def test_iso_2022_jp_as_mail_programs_write_it(data: bytes, text: str) -> None:
    """All sets, NEC and IBM characters and unfinished sequences are read; a bad pair costs one."""
    assert decode_as(data, str(find_codec("iso-2022-jp"))) == (text, "\ufffd" not in text)


@rows("", "us-ascii", "utf-8", "iso-8859-1", "x-nonsense", "shift_jis")
def test_undeclared_iso_2022_jp_is_detected(label: str) -> None:
    """Its escape sequences occur in no other text, so it is detected with any label."""
    assert decode_text(b"\x1b$B-!G'>Z\x1b(B 12", label)[0] == "①認証 12"
    assert decode_header_bytes(b"\x1b$B-!G'>Z\x1b(B 12") == "①認証 12"
    colours = b"\x1b[31mred\x1b[0m \x1b(B"
    assert decode_text(colours, label)[0] == colours.decode("ascii")


def _encode_iso_2022_jp(text: str) -> bytes:
    """Encode NEC and IBM characters as well, which Python's codec lacks."""
    rows = {"①": b"-!", "㈱": b"-j", "髙": b"|b"}
    switched = (
        b"\x1b$B" + rows[one] + b"\x1b(B" if one in rows else one.encode("iso2022_jp")
        for one in text
    )
    return b"".join(switched).replace(b"\x1b(B\x1b$B", b"")


_STATEFUL = {
    # A charset, letters, their encoding, and the octets that switch to another set.
    "iso-2022-jp": ("認証コード。①㈱髙", _encode_iso_2022_jp, rb"\x1b\$B|\x1b\(B"),
    "iso-2022-kr": ("확인번호", lambda text: text.encode("iso2022_kr"), rb"\x1b\$\)C|[\x0e\x0f]"),
    "hz": ("验证码中文", lambda text: text.encode("hz"), rb"~[{}]"),
}


@given(st.sampled_from(sorted(_STATEFUL)), st.data())
def test_a_bad_byte_in_a_stateful_charset_costs_one_character(
    label: str, data: st.DataObject
) -> None:
    """A replaced octet costs one character; the rest of the text stays."""
    letters, encode, switch = _STATEFUL[label]
    text = data.draw(st.text(st.sampled_from(letters + "ABC 12=?"), min_size=1, max_size=12))
    encoded = encode(text)
    switches = {place for match in re.finditer(switch, encoded) for place in range(*match.span())}
    place = data.draw(st.sampled_from(sorted(set(range(len(encoded))) - switches)))
    octet = data.draw(st.sampled_from((0x80, 0xA0, 0xE5, 0xFF)))
    damaged = encoded[:place] + bytes((octet,)) + encoded[place + 1 :]
    found, is_valid = decode_as(damaged, str(find_codec(label)))
    assert len(found) == len(text)
    assert [one for one, other in zip(found, text, strict=True) if one != other] == ["\ufffd"]
    assert not is_valid


@given(st.sampled_from(sorted(set(LABELS.values()))), st.binary(max_size=60))
def test_any_bytes_in_any_charset_are_text(label: str, data: bytes) -> None:
    """Decoding never fails, and its text can be stored."""
    decode_text(data, label)[0].encode("utf-8")


@rows(
    ("\ufeffä".encode(), "utf-8", "ä"),
    ("\ufeffä".encode(), "iso-8859-1", "ä"),
    ("\ufeffä".encode(), "", "ä"),
    ("\ufeffä1".encode("utf-16-le"), "utf-16", "ä1"),
    ("\ufeffä1".encode("utf-16-be"), "utf-16", "ä1"),
    ("\ufeffä1".encode("utf-16-be"), "utf-16le", "ä1"),
    ("\ufeffä1".encode("utf-16-le"), "", "ä1"),
    ("ä1".encode("utf-16-be"), "utf-16be", "ä1"),
    (b"plain ASCII text", "utf-16", "plain ASCII text"),
    ("Kod".encode("utf-16-be"), "unicode", "Kod"),
)
def test_a_byte_order_mark_is_not_text(data: bytes, label: str, text: str) -> None:
    """A byte order mark names the charset (WHATWG Encoding 6) and is removed."""
    assert decode_text(data, label) == (text, None)


@rows(
    *product(
        [
            '<meta charset="windows-1251">',
            "<META CHARSET=windows-1251>",
            "<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>",
            '<meta content="text/html;charset = cp1251" http-equiv=Content-Type />',
            '<?xml version="1.0" encoding="windows-1251"?><html>',
        ],
        ["", "; charset=us-ascii", "; charset=x-nonsense"],
    )
)
def test_html_may_declare_its_charset_in_itself(head: str, parameter: str) -> None:
    """A page without a charset in its Content-Type has the charset that it declares."""
    page = f"{head}<p>Ваш код</p>"
    mail = f"Content-Type: text/html{parameter}\r\n\r\n".encode() + page.encode("cp1251")
    assert derive_content(mail).html == page
    utf_8 = f"Content-Type: text/html{parameter}\r\n\r\n{page}".encode()
    assert derive_content(utf_8).html == page


def test_the_charset_of_a_part_counts_before_that_of_its_page() -> None:
    """A gateway that recodes a page changes the header, but not the page."""
    page = '<meta charset="iso-8859-1"><p>Grüße €</p>'
    mail = b"Content-Type: text/html; charset=windows-1252\r\n\r\n" + page.encode("cp1252")
    assert derive_content(mail).html == page
