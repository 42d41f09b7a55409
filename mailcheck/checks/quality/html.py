"""The findings about the HTML of a mail."""

from collections.abc import Iterator

from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.quality.facts import HtmlFacts
from mailcheck.checks.quality.wording import count_of, enumerate_some, quote
from mailcheck.checks.weights import charge

CLIPPED_SIZE = 102 * 1024
"""Octets of HTML that Gmail shows before "[Message clipped]"."""

FEW_LETTERS = 100
"""Minimum number of characters of text in a mail with images. Filters treat a mail with less text
as an image."""

LETTERS_PER_IMAGE = 50
"""Minimum number of characters of text for each image."""

HIDDEN_LETTERS = 40
"""Maximum number of characters of hidden text that counts as the rest of a preheader or as a
screen-reader label."""


def judge_html(html: HtmlFacts) -> Iterator[ChargedFinding]:
    """Yield findings about the HTML."""
    if html.size > CLIPPED_SIZE:
        yield charge("content.clipped", kibibytes=html.size // 1024)
    if html.is_base64:
        yield charge("content.base64-html")
    if html.images_without_alt:
        yield charge(
            "content.images-without-alt",
            images_without_alt=html.images_without_alt,
            image_count=html.image_count,
        )
    letters_needed = max(FEW_LETTERS, html.image_count * LETTERS_PER_IMAGE)
    if html.image_count and html.visible_length < letters_needed:
        yield charge(
            "content.mostly-images",
            images=count_of(html.image_count, "image"),
            characters=count_of(html.visible_length, "character"),
        )
    if html.insecure_images:
        yield charge("content.insecure-images", images=count_of(html.insecure_images, "image"))
    if html.inline_data_images:
        yield charge("content.data-images", images=count_of(html.inline_data_images, "image"))
    yield from _judge_elements(html)


def _judge_elements(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.active_elements or html.event_handlers:
        names = html.active_elements or ("on... attributes",)
        yield charge("content.active", names=enumerate_some(names))
    if html.form_count:
        yield charge("content.form")
    if html.external_styles:
        yield charge("content.external-styles")
    if html.hidden_length > HIDDEN_LETTERS:
        yield charge(
            "content.hidden-text",
            hidden_length=html.hidden_length,
            hidden_sample=quote(html.hidden_sample),
        )
    if html.has_unclosed_comment:
        yield charge("content.unclosed-comment")
    if html.unclosed:
        yield charge("content.unclosed-elements", unclosed=enumerate_some(html.unclosed))
