"""Tests for plain text that is split at its links."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.bodies import find_inline_images, image_type
from mailcheck.checks.content.links import MAX_LINKS_SHOWN, TextPiece, cut_at_links, is_web_url

PNG = b"\x89PNG\r\n\x1a\n"

TEXTS = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from(["https://e.example/a", "http://x", "javascript:a", "<", ">", " ", ")."]),
    ),
    max_size=15,
).map("".join)


@given(TEXTS)
def test_the_pieces_are_the_text(text: str) -> None:
    """The joined pieces are the text, and each link is a web address."""
    pieces = cut_at_links(text)
    assert "".join(piece.text for piece in pieces) == text
    assert all(is_web_url(piece.text) for piece in pieces if piece.is_link)


def test_links_are_cut_where_a_person_would() -> None:
    """The sentence around a link is not part of the link."""
    assert cut_at_links("See (https://e.example/a). Bye") == (
        TextPiece("See (", is_link=False),
        TextPiece("https://e.example/a", is_link=True),
        TextPiece("). Bye", is_link=False),
    )


def test_links_are_bounded() -> None:
    """Links beyond the maximum are plain text."""
    pieces = cut_at_links("https://e.example/ " * (MAX_LINKS_SHOWN + 10))
    assert sum(piece.is_link for piece in pieces) == MAX_LINKS_SHOWN


def test_pictures_are_known_by_their_bytes() -> None:
    """The first bytes determine an image, not the declared type; SVG and HTML are never images."""
    assert image_type(PNG + b"x") == "image/png"
    assert image_type(b"\xff\xd8\xff\xe0") == "image/jpeg"
    assert image_type(b"GIF89a") == "image/gif"
    assert image_type(b"RIFF\0\0\0\0WEBPVP8 ") == "image/webp"
    for data in (b"", b"<svg onload=x>", b"<html>", b"RIFF\0\0\0\0WAVE", b" " + PNG):
        assert image_type(data) is None


def test_images_are_found_by_their_id() -> None:
    """Only requested parts are returned, the first of each id."""
    part = "--b\r\nContent-Type: x/y\r\nContent-ID: <{}>\r\n"
    part += "Content-Transfer-Encoding: base64\r\n\r\n{}\r\n"
    raw = "Content-Type: multipart/related; boundary=b\r\n\r\n" + "".join(
        part.format(*one)
        for one in (("a", "iVBORw0KGgo="), ("a", "R0lGODlh"), ("b", "R0lGODlh"), ("c", "PGh0bWw+"))
    )
    found = find_inline_images(f"{raw}--b--\r\n".encode(), ["a", "c", "none"])
    assert found == {"a": "data:image/png;base64,iVBORw0KGgo="}
