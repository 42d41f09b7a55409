"""How readers can unsubscribe from a mail, and the findings about it."""

from collections.abc import Iterator, Sequence, Set
from enum import Enum

from msgspec import Struct

from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.quality.facts import MailFacts, UnsubscribeFacts
from mailcheck.checks.quality.header import uris_in
from mailcheck.checks.quality.wording import quote
from mailcheck.checks.weights import charge

ONE_CLICK = "List-Unsubscribe=One-Click"
"""The exact value required in List-Unsubscribe-Post (RFC 8058 3.1)."""

MUST_BE_SIGNED = frozenset(("list-unsubscribe", "list-unsubscribe-post"))
"""Fields that a valid DKIM signature must cover, or receivers ignore them (RFC 8058 4)."""

BULK_PRECEDENCE = frozenset(("bulk", "list", "junk"))


class OneClick(Enum):
    """Whether one-click unsubscribe works; the values complete "it has ..."."""

    WORKS = "works"
    UNDETERMINED = "undetermined"
    NO_FIELD = "no List-Unsubscribe field"
    ENCODED = (
        "List-Unsubscribe or List-Unsubscribe-Post in encoded words, which receivers do not decode"
    )
    NO_HTTPS = "no https address in List-Unsubscribe"
    NO_POST = "no List-Unsubscribe-Post field"
    WRONG_POST = "a List-Unsubscribe-Post field without List-Unsubscribe=One-Click"
    REPEATED = "several List-Unsubscribe or List-Unsubscribe-Post fields"
    NOT_SIGNED = "no valid DKIM signature that covers both fields"


class OneClickOffer(Struct, frozen=True):
    """The address for one-click unsubscribe that a mail offers.

    ``lacks`` is `OneClick.WORKS`, or the reason why there is none. Signatures are not part of it.
    """

    url: str = ""
    lacks: OneClick = OneClick.WORKS

    @property
    def fix(self) -> str:
        """The advice for a mail without one, or empty."""
        return _FIXES.get(self.lacks, "")


def read_offer(header_list: Sequence[tuple[str, str]]) -> OneClickOffer:
    """Return the address for one-click unsubscribe in the decoded header fields of a mail."""
    found: dict[str, list[str]] = {name: [] for name in MUST_BE_SIGNED}
    for name, value in header_list:
        if name.lower() in found:
            found[name.lower()].append(value)
    if any(len(values) > 1 for values in found.values()):
        return OneClickOffer(lacks=OneClick.REPEATED)
    listed, post = found["list-unsubscribe"], found["list-unsubscribe-post"]
    uris = uris_in("".join(listed))
    facts = UnsubscribeFacts(bool(listed), uris, post[0].strip() if post else None)
    broken = _find_fault_of_fields(facts)
    if broken is not None:
        return OneClickOffer(lacks=broken)
    return OneClickOffer(next(uri for uri in uris if _is_https(uri)))


def _is_https(uri: str) -> bool:
    return uri[:8].lower() == "https://" and len(uri) > 8


def is_bulk_looking(facts: MailFacts) -> bool:
    """Return whether a mail looks like bulk mail: a List-* field, or Precedence.

    An automatic reply (RFC 3834 5) uses ``Precedence: bulk`` to prevent replies, but it is one
    mail to one person.
    """
    is_reply = facts.bulk.auto_submitted.lower().startswith("auto-replied")
    says_bulk = facts.bulk.precedence in BULK_PRECEDENCE and not is_reply
    return bool(facts.bulk.list_fields) or says_bulk


def find_one_click(facts: MailFacts, signed_fields: Set[str] | None) -> OneClick:
    """Return whether one-click unsubscribe works, or the first reason why it does not.

    :param signed_fields: lower-case names of the header fields that valid DKIM signatures cover;
        `None` if this could not be determined.
    """
    if MUST_BE_SIGNED & set(facts.repeated_fields):
        return OneClick.REPEATED
    broken = _find_fault_of_fields(facts.unsubscribe)
    if broken is not None:
        return broken
    if signed_fields is None:
        return OneClick.UNDETERMINED
    return OneClick.WORKS if signed_fields >= MUST_BE_SIGNED else OneClick.NOT_SIGNED


def _find_fault_of_fields(unsubscribe: UnsubscribeFacts) -> OneClick | None:
    if not unsubscribe.is_present:
        return OneClick.NO_FIELD
    if unsubscribe.is_encoded:
        return OneClick.ENCODED
    if not any(map(_is_https, unsubscribe.uris)):
        return OneClick.NO_HTTPS
    if unsubscribe.post is None:
        return OneClick.NO_POST
    return None if unsubscribe.post == ONE_CLICK else OneClick.WRONG_POST


_FIXES = {
    OneClick.NO_FIELD: (
        "Add both fields: List-Unsubscribe: <https://your.domain/unsubscribe/id> and"
        f" List-Unsubscribe-Post: {ONE_CLICK}. A POST to that URL must unsubscribe at once."
    ),
    OneClick.ENCODED: (
        "Send both fields as they are, without encoded words (RFC 2047 5), and fold a long one only"
        " at white space."
    ),
    OneClick.NO_HTTPS: (
        "Add an https URL in angle brackets to List-Unsubscribe. A POST to it must unsubscribe at"
        " once."
    ),
    OneClick.NO_POST: f"Add the field List-Unsubscribe-Post: {ONE_CLICK}.",
    OneClick.WRONG_POST: f"Write exactly: List-Unsubscribe-Post: {ONE_CLICK}.",
    OneClick.REPEATED: "Keep one List-Unsubscribe and one List-Unsubscribe-Post field.",
    OneClick.NOT_SIGNED: (
        "Sign both fields with DKIM: add list-unsubscribe and list-unsubscribe-post to the header"
        " fields that your signer covers (h=)."
    ),
}


def judge_unsubscribe(facts: MailFacts, signed_fields: Set[str] | None) -> Iterator[ChargedFinding]:
    """Yield the findings about unsubscribing; parameters as for `find_one_click`.

    Mail to one person (no List-* field, no Precedence) needs no way to unsubscribe.
    """
    if not is_bulk_looking(facts):
        return
    one_click = find_one_click(facts, signed_fields)
    if one_click is OneClick.UNDETERMINED:
        yield charge("unsubscribe.undetermined")
    elif one_click is not OneClick.WORKS:
        yield charge(
            "unsubscribe.no-one-click",
            case="fault",
            fix=_FIXES[one_click],
            one_click=one_click.value,
        )
    if one_click not in (OneClick.NO_FIELD, OneClick.ENCODED) and not facts.unsubscribe.uris:
        yield charge("unsubscribe.no-address", names=quote(", ".join(facts.bulk.list_fields)))
    if not facts.unsubscribe.body_links:
        yield charge("unsubscribe.no-link")
