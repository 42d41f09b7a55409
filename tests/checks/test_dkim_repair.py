"""Tests for the repair of DKIM keys that receivers cannot read."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dkim.evaluate import DkimVerdict, evaluate_dkim
from mailcheck.checks.dkim.key_record import (
    is_key_record,
    parse_key_record,
    read_key_records,
    repair_key_record,
)
from mailcheck.checks.dns_answers import Presence
from tests.fakes.dkim_keys import (
    EC_P256,
    ED25519,
    ED25519_WRAPPED,
    RSA_512,
    RSA_2048,
    RSA_2048_BARE,
)
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.fakes.signing_keys import RSA_2048_PRIVATE
from tests.linear import assert_linear
from tests.table import rows

WHOLE = f"v=DKIM1; k=rsa; p={RSA_2048}"
NAME = "default._domainkey.d.example"


def quote(text: str) -> str:
    """Write any text as one string of a zone file or several."""
    pieces = [text[cut : cut + 200] for cut in range(0, max(len(text), 1), 200)]
    escaped = (
        "".join(c if c.isalnum() else "".join(f"\\{o:03d}" for o in c.encode()) for c in piece)
        for piece in pieces
    )
    return " ".join(f'"{piece}"' for piece in escaped)


def judge(*texts: str, target: str = "") -> DkimVerdict:
    """Evaluate d.example with these TXT records at one selector."""
    zone = MemoryZone({"d.example": {"A": ["8.8.8.8"]}})
    if target:
        zone.publish(NAME, "CNAME", f"{target}.")
    zone.publish(target or NAME, "TXT", *map(quote, texts))
    return settle(zone, lambda answers: evaluate_dkim("d.example", ["default"], answers))


SPOILT = {
    "backslashes": (f"v=DKIM1\\; k=rsa\\; p={RSA_2048}",),
    "double semicolons": (f"v=DKIM1; k=rsa; p={RSA_2048};;",),
    "semicolons between": (f"v=DKIM1;; k=rsa; p={RSA_2048}",),
    "quotes around all": (f'"v=DKIM1; k=rsa; p={RSA_2048}"',),
    "quotes of two strings": (f'"v=DKIM1; k=rsa; p={RSA_2048[:99]}" "{RSA_2048[99:]}"',),
    "escaped quotes": (f'\\"v=DKIM1; k=rsa; p={RSA_2048[:99]}\\" \\"{RSA_2048[99:]}\\"',),
    "curly quotes": (f"\u201cv=DKIM1; k=rsa; p={RSA_2048}\u201d",),
    "quotes around the key": (f"v=DKIM1; k=rsa; p='{RSA_2048}'",),
    "PEM lines": (
        f"v=DKIM1; k=rsa; p=-----BEGIN PUBLIC KEY-----{RSA_2048}-----END PUBLIC KEY-----",
    ),
    "a whole PEM file": (f"-----BEGIN PUBLIC KEY-----\\n{RSA_2048}\\n-----END PUBLIC KEY-----",),
    "line ends in words": (f"v=DKIM1; k=rsa; p={RSA_2048[:64]}\\n{RSA_2048[64:]}",),
    "version behind": (f"k=rsa; p={RSA_2048}; v=DKIM1",),
    "version in small letters": (f"v=dkim1; k=rsa; p={RSA_2048}",),
    "tags in capitals": (f"V=DKIM1; K=RSA; P={RSA_2048}",),
    "commas": (f"v=DKIM1, k=rsa, p={RSA_2048}",),
    "blanks": (f"v=DKIM1 k=rsa p={RSA_2048}",),
    "no separator": (f"v=DKIM1k=rsap={RSA_2048}",),
    "colons": (f"v:DKIM1; k:rsa; p:{RSA_2048}",),
    "another version": (f"v=DKIM2; k=rsa; p={RSA_2048}",),
    "only SHA-1": (f"v=DKIM1; h=sha1; k=rsa; p={RSA_2048}",),
    "another service": (f"v=DKIM1; k=rsa; s=other; p={RSA_2048}",),
    "another type": (f"v=DKIM1; k=dsa; p={RSA_2048}",),
    "URL-safe": (f"v=DKIM1; k=rsa; p={RSA_2048.replace('+', '-').replace('/', '_')}",),
    "percent signs": (f"v=DKIM1; k=rsa; p={RSA_2048.replace('+', '%2B').replace('/', '%2F')}",),
    "plus lost": (f"v=DKIM1; k=rsa; p={RSA_2048.replace('+', ' ')}",),
    "a stray string behind": (f"v=DKIM1; k=rsa; p={RSA_2048}default._domainkey",),
    "cut into two": (f"v=DKIM1; k=rsa; p={RSA_2048[:200]}", RSA_2048[200:]),
    "cut into two, the other order": (RSA_2048[200:], f"v=DKIM1; k=rsa; p={RSA_2048[:200]}"),
    "cut into three": (
        f"v=DKIM1; k=rsa; p={RSA_2048[:120]}",
        RSA_2048[240:],
        RSA_2048[120:240],
    ),
    "cut, with tags in both": (
        f"v=DKIM1; k=rsa; p={RSA_2048[:200]}",
        f"v=DKIM1; k=rsa; p={RSA_2048[200:]}",
    ),
}


@rows(*SPOILT.values())
def test_the_same_key_is_offered_in_a_text_that_receivers_read(texts: tuple[str, ...]) -> None:
    """A broken record is not reported as hidden, and no new key is advised."""
    verdict = judge(*texts)
    assert (verdict.presence, verdict.is_hidden, verdict.usable_keys) == (
        Presence.FOUND,
        False,
        (),
    )
    finding = verdict.findings[0]
    assert finding.id in ("dkim.key-broken", "dkim.several-keys")
    assert "new RSA key" not in finding.fix
    assert finding.proposed is not None
    assert finding.proposed.name == NAME
    record = parse_key_record(finding.proposed.value)
    assert (record.key_data, record.problem) == (RSA_2048, "")
    assert judge(finding.proposed.value).findings == ()


@rows(
    ((f"v=DKIM1; k=ed25519; p={ED25519_WRAPPED}",), ED25519),
    ((f"v=DKIM1; k=rsa; p={ED25519}",), ED25519),
    ((f"v=DKIM1\\; k=ed25519\\; p={ED25519}",), ED25519),
    ((f"v=DKIM1;; k=rsa; p={RSA_2048_BARE}",), RSA_2048_BARE),
)
def test_keys_of_other_forms_are_repaired(texts: tuple[str, ...], key: str) -> None:
    """An Ed25519 key is published without its wrapping, and a bare RSA key unchanged."""
    (record,) = read_key_records(texts)
    assert record.problem
    repaired = parse_key_record(record.repaired)
    assert (repaired.key_data, repaired.problem) == (key, "")


@rows(
    ("backslashes", "backslashes"),
    ("double semicolons", "no tag between two semicolons"),
    ("quotes around all", "quotation marks"),
    ("PEM lines", "lines of a PEM file"),
    ("version behind", "v= is after another tag"),
    ("tags in capitals", "capital letters"),
    ("cut into two", "its key is cut into 2 records"),
    ("only SHA-1", "hash algorithms"),
    ("commas", "commas"),
    ("another version", 'its version is "DKIM2"'),
)
def test_the_mistake_is_named(name: str, mistake: str) -> None:
    """The finding says what is wrong with the record."""
    assert mistake in judge(*SPOILT[name]).findings[0].meaning


@rows(
    (f"v=DKIM1; k=rsa; p={RSA_2048[:200]}", False),
    ("v=DKIM1; k=rsa", False),
    ("v=DKIM1\\; k=rsa\\; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A", False),
    (f"v=DKIM1; s=tlsrpt; p={RSA_2048}", False),
    (f"v=DKIM1; k=rsa; p={RSA_512}", True),
    (f"v=DKIM1; k=rsa; p={EC_P256}", True),
    (f"v=DKIM1; k=rsa; p={RSA_2048_PRIVATE}", True),
    (f"v=DKIM1; p=-----BEGIN RSA PRIVATE KEY-----{RSA_2048_PRIVATE}-----END", True),
)
def test_a_new_key_is_asked_for_only_where_it_must_be(text: str, is_new: bool) -> None:
    """A truncated key can be published again; a short or private key must be replaced."""
    (finding, *_) = judge(text).findings
    assert finding.proposed is None
    assert ("new RSA key" in finding.fix) is is_new
    assert ("Publish the whole record again" in finding.fix) is not is_new


def test_a_text_beside_a_whole_key_is_named() -> None:
    """The key counts, the other text is named, and the advice keeps the key."""
    verdict = judge("default._domainkey", WHOLE)
    (finding,) = verdict.findings
    assert (finding.id, len(verdict.usable_keys)) == ("dkim.stray-record", 1)
    assert "default._domainkey" in finding.meaning
    assert finding.proposed is not None
    assert finding.proposed.value == WHOLE


def test_the_same_key_twice_is_kept_once() -> None:
    """One of two records with the same key is kept; of two keys, none is chosen."""
    same = judge(WHOLE, f"{WHOLE};").findings
    assert {one.proposed.value for one in same if one.proposed} == {WHOLE}
    other = judge(WHOLE, f"v=DKIM1; k=ed25519; p={ED25519}").findings
    assert [one.proposed for one in other] == [None, None]


def test_a_broken_key_behind_an_alias_is_repaired_there() -> None:
    """For a CNAME, the advice is text, or a record at its target."""
    text = f"v=DKIM1\\; p={RSA_2048}"
    own = judge(text, target="keys.d.example").findings[0]
    assert own.proposed is not None
    assert own.proposed.name == "keys.d.example"
    other = judge(text, target="d.keys.other.example").findings[0]
    assert other.proposed is None
    assert "d.keys.other.example" in other.fix


def test_other_texts_at_a_selector_are_no_keys() -> None:
    """A text for another purpose is not a key."""
    for text in ("v=spf1 include:_spf.d.example -all", "hello", "v=DMARC1; p=none", ""):
        assert read_key_records([text]) == []


LETTERS = "ABCabc0123+/=;: v=kp\\\"'-,\u00a0"


@given(st.lists(st.text(LETTERS, max_size=80), min_size=1, max_size=5))
def test_any_texts_can_be_read(texts: list[str]) -> None:
    """Any texts give records, and a repaired record is a key."""
    for record in read_key_records(texts):
        if record.repaired:
            assert is_key_record(record.repaired)
            assert not parse_key_record(record.repaired).problem


@given(
    st.integers(0, len(WHOLE)),
    st.sampled_from(["\\", '"', "'", ";", ";;", " ", "\n", "\u200b", "\u00a0", '" "']),
)
def test_one_stray_character_costs_no_key(place: int, stray: str) -> None:
    """A stray character in a record changes no key: it is read as before or repaired."""
    text = WHOLE[:place] + stray + WHOLE[place:]
    for record in read_key_records([text]):
        offered = record if record.is_usable else parse_key_record(record.repaired)
        if record.is_usable or record.repaired:
            assert offered.key_data == RSA_2048
    if stray in ("\\", '"', "'", "\u200b", '" "'):
        assert repair_key_record([text]) is not None


def test_a_stray_backslash_costs_no_letter() -> None:
    r"""A backslash before a letter of the key is not read as an escape: ``\n`` ``\r`` ``\t``."""
    places = [place for place, letter in enumerate(WHOLE) if letter in "nrt"]
    for place in places:
        repaired = repair_key_record([WHOLE[:place] + "\\" + WHOLE[place:]])
        assert repaired is not None
        assert parse_key_record(repaired).key_data == RSA_2048


@given(st.binary(max_size=400))
def test_no_octets_are_repaired_into_another_key(octets: bytes) -> None:
    """Octets that are not a key have no repair."""
    text = f"v=DKIM1; k=rsa;; p={base64.b64encode(octets).decode()}"
    repaired = repair_key_record([text])
    assert repaired is None or len(octets) >= 32


def test_hostile_texts_are_read_in_linear_time() -> None:
    """A text is read once and not repaired."""
    for piece in ("p=", "A", "v=DKIM1;", "-----BEGIN ", "\\n", "p=AAAAAAAAAAAAAAAA;", " ", "%2B"):
        assert_linear(lambda text: read_key_records([text] * 4), piece, "v=DKIM1;; p=")
