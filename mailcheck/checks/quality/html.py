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
    yield from _judge_size(html)
    yield from _judge_images(html)
    yield from _judge_image_sources(html)
    yield from _judge_removed_elements(html)
    yield from _judge_markup(html)


def _judge_size(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.size > CLIPPED_SIZE:
        yield charge(
            "content.clipped",
            f"The HTML has {html.size // 1024} KiB. Gmail shows the first 102 KiB and cuts off the"
            " rest, with the link to unsubscribe.",
        )
    if html.is_base64:
        yield charge(
            "content.base64-html",
            "The HTML is sent as base64, which makes it a third larger. Some filters count that"
            " against a mail.",
        )


def _judge_images(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.images_without_alt:
        yield charge(
            "content.images-without-alt",
            f"Images without an alternative text: {html.images_without_alt} of {html.image_count}."
            " People who do not load images or cannot see them miss these.",
        )
    letters_needed = max(FEW_LETTERS, html.image_count * LETTERS_PER_IMAGE)
    if html.image_count and html.visible_length < letters_needed:
        yield charge(
            "content.mostly-images",
            f"The mail has {count_of(html.image_count, 'image')} and only"
            f" {count_of(html.visible_length, 'character')} of text. Spam hides its words in"
            " images, so filters count that against a mail.",
        )


def _judge_image_sources(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.insecure_images:
        yield charge(
            "content.insecure-images",
            f"The HTML loads {count_of(html.insecure_images, 'image')} over http. Some programs"
            " show only images that are loaded over https.",
        )
    if html.inline_data_images:
        yield charge(
            "content.data-images",
            f"The HTML embeds {count_of(html.inline_data_images, 'image')} (data:). Gmail and"
            " Outlook do not show them.",
        )


def _judge_removed_elements(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.active_elements or html.event_handlers:
        names = html.active_elements or ("on... attributes",)
        yield charge(
            "content.active",
            "The HTML has elements that run programs or load other pages"
            f" ({enumerate_some(names)}). Mail programs remove them, and filters distrust them.",
        )
    if html.form_count:
        yield charge(
            "content.form",
            "The HTML contains a form. Most mail programs do not submit it; many warn of fraud.",
        )
    if html.external_styles:
        yield charge(
            "content.external-styles",
            "The HTML loads a style sheet from elsewhere, but mail programs do not load it.",
        )


def _judge_markup(html: HtmlFacts) -> Iterator[ChargedFinding]:
    if html.hidden_length > HIDDEN_LETTERS:
        yield charge(
            "content.hidden-text",
            f"{html.hidden_length} characters of text are hidden from readers"
            f" (\u201c{quote(html.hidden_sample)}\u201d). Spam hides words for filters like this.",
        )
    if html.has_unclosed_comment:
        yield charge(
            "content.unclosed-comment",
            "A comment in the HTML is not closed, so the content after it may not be shown.",
        )
    if html.unclosed:
        yield charge(
            "content.unclosed-elements",
            f"These elements are not closed: {enumerate_some(html.unclosed)}. Each program guesses"
            " differently where they end.",
        )
