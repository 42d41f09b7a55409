"""Signs mails with DKIM and seals them with ARC (RFC 6376, RFC 8617).

    signed = RSA.sign(MAIL)                    # the mail with its DKIM-Signature on top
    zone = MemoryZone({RSA.key_name: {"TXT": [RSA.key_record]}})

The canonical forms are implemented here again, so that the code under test does not verify itself.
Any tag can be set, or left out with `None`.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import nacl.signing
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import load_der_private_key

from tests.fakes import signing_keys

SIGNED_FIELDS = ("from", "to", "subject", "date", "message-id")
SIGNED_AT = 1_790_000_000
CRLF = b"\r\n"
COMPUTED = "(computed)"

MAIL = (
    b"From: Ann Example <ann@sender.example>\r\n"
    b"To: bob@rcpt.example\r\n"
    b"Subject: Hello   there\r\n"
    b" and a folded  line\t\r\n"
    b"Date: Sat, 21 Nov 2026 10:00:00 +0000\r\n"
    b"Message-ID: <1@sender.example>\r\n"
    b"\r\n"
    b"Hello  Bob, \t\r\n"
    b"\r\n"
    b"a second\tparagraph.  \r\n"
    b"\r\n"
    b"\r\n"
)


@dataclass(frozen=True)
class MailSigner:
    """A key pair with a name; ``private`` and ``public`` are Base64."""

    private: str
    public: str
    domain: str = "sender.example"
    selector: str = "s1"
    algorithm: str = "rsa-sha256"

    @property
    def key_name(self) -> str:
        """The name of the key record."""
        return f"{self.selector}._domainkey.{self.domain}"

    @property
    def key_record(self) -> str:
        """The text of the key record."""
        return f"v=DKIM1; k={self.algorithm.partition('-')[0]}; p={self.public}"

    def sign(
        self,
        raw_message: bytes,
        canonicalization: str = "relaxed/relaxed",
        fields: Sequence[str] = SIGNED_FIELDS,
        tags: Mapping[str, str | None] | None = None,
        first: Sequence[str] = (),
    ) -> bytes:
        """Add a DKIM-Signature; ``tags`` override the defaults, ``first`` tags come first."""
        usual: dict[str, str | None] = {
            "v": "1",
            "a": self.algorithm,
            "c": canonicalization,
            "d": self.domain,
            "s": self.selector,
            "t": str(SIGNED_AT),
            "h": " : ".join(fields),
        }
        usual.update(tags or {})
        leading: dict[str, str | None] = dict.fromkeys(first, COMPUTED)
        usual = leading | usual
        return self._sign_message(b"DKIM-Signature", usual, raw_message, canonicalization, fields)

    def seal(
        self,
        raw_message: bytes,
        instance: int = 1,
        chain: str | None = None,
        fields: Sequence[str] = SIGNED_FIELDS,
    ) -> bytes:
        """Add an ARC set; without ``chain`` its cv= is the one of a correct sealer."""
        chain = chain or ("none" if instance == 1 else "pass")
        results = b"ARC-Authentication-Results: i=%d; mx.example; spf=pass\r\n" % instance
        key = {"a": self.algorithm, "d": self.domain, "s": self.selector, "t": str(SIGNED_AT)}
        tags = {"i": str(instance), **key, "c": "relaxed/relaxed", "h": ":".join(fields)}
        mail = self._sign_message(
            b"ARC-Message-Signature", tags, raw_message, "relaxed/relaxed", fields
        )
        mail = results + mail
        found = {
            (name.lower(), number): (name, body)
            for name, body in _split(mail)[0]
            for number in range(1, instance + 1)
            if name.startswith(b"ARC-") and body.lstrip().startswith(b"i=%d;" % number)
        }
        kinds = (b"arc-authentication-results", b"arc-message-signature", b"arc-seal")
        places = [(kind, number) for number in range(1, instance + 1) for kind in kinds]
        sets = [found[place] for place in places if place in found]
        seal = self._make_field(
            b"ARC-Seal", {"i": str(instance), **key, "cv": chain}, sets, "relaxed"
        )
        return seal + mail

    def _sign_message(
        self,
        name: bytes,
        tags: Mapping[str, str | None],
        raw_message: bytes,
        canonicalization: str,
        fields: Sequence[str],
    ) -> bytes:
        header, body = _split(raw_message)
        header_form, _, body_form = canonicalization.partition("/")
        form = relax_body(body) if body_form == "relaxed" else simplify_body(body)
        length = tags.get("l")
        digest = hashlib.sha256(form[: int(length)] if length else form).digest()
        signed = _choose(header, fields)
        all_tags = dict(tags)
        if all_tags.setdefault("bh", COMPUTED) == COMPUTED:
            all_tags["bh"] = base64.b64encode(digest).decode()
        return self._make_field(name, all_tags, signed, header_form) + raw_message

    def _make_field(
        self,
        name: bytes,
        tags: Mapping[str, str | None],
        signed: Sequence[tuple[bytes, bytes]],
        form: str,
    ) -> bytes:
        all_tags = {**tags, "b": ""}
        shown = [f"{tag}={value}" for tag, value in all_tags.items() if value is not None]
        make = relax_field if form == "relaxed" else simplify_field
        own = make((name, _join(shown))).removesuffix(CRLF)
        signature = base64.b64encode(self._sign_octets(b"".join(map(make, signed)) + own)).decode()
        folded = "\r\n ".join(signature[at : at + 70] for at in range(0, len(signature), 70))
        return name + b":" + _join([f"b={folded}" if tag == "b=" else tag for tag in shown])

    def _sign_octets(self, octets: bytes) -> bytes:
        private = base64.b64decode(self.private)
        if self.algorithm.startswith("rsa"):
            sha = SHA1() if self.algorithm.endswith("sha1") else SHA256()
            return _read_key(private).sign(octets, PKCS1v15(), sha)
        return nacl.signing.SigningKey(private).sign(hashlib.sha256(octets).digest()).signature


@cache
def _read_key(private: bytes) -> RSAPrivateKey:
    key = load_der_private_key(private, None, unsafe_skip_rsa_key_validation=True)
    assert isinstance(key, RSAPrivateKey)
    return key


RSA = MailSigner(signing_keys.RSA_2048_PRIVATE, signing_keys.RSA_2048_PUBLIC)
RSA_1024 = MailSigner(signing_keys.RSA_1024_PRIVATE, signing_keys.RSA_1024_PUBLIC, selector="s1024")
RSA_768 = MailSigner(signing_keys.RSA_768_PRIVATE, signing_keys.RSA_768_PUBLIC, selector="s768")
ED25519 = MailSigner(
    signing_keys.ED25519_PRIVATE,
    signing_keys.ED25519_PUBLIC,
    selector="ed",
    algorithm="ed25519-sha256",
)


def simplify_field(field: tuple[bytes, bytes]) -> bytes:
    """Return a field in the simple form (RFC 6376 3.4.1)."""
    return field[0] + b":" + field[1]


def relax_field(field: tuple[bytes, bytes]) -> bytes:
    """Return a field in the relaxed form (RFC 6376 3.4.2)."""
    unfolded = field[1].replace(CRLF, b"")
    return (
        field[0].lower().rstrip() + b":" + b" ".join(re.split(rb"[ \t]+", unfolded)).strip() + CRLF
    )


def simplify_body(body: bytes) -> bytes:
    """Return a body in the simple form (RFC 6376 3.4.3)."""
    while body.endswith(CRLF * 2):
        body = body.removesuffix(CRLF)
    return body if body.endswith(CRLF) else body + CRLF


def relax_body(body: bytes) -> bytes:
    """Return a body in the relaxed form (RFC 6376 3.4.4)."""
    lines = [line.rstrip(b" ") for line in re.sub(rb"[ \t]+", b" ", body).split(CRLF)]
    while lines and not lines[-1]:
        lines.pop()
    return b"".join(line + CRLF for line in lines)


def _join(tags: Sequence[str]) -> bytes:
    return b" " + ";\r\n ".join(tags).encode() + CRLF


def _split(raw_message: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    header, _, body = raw_message.partition(CRLF * 2)
    folded = header.replace(b"\r\n ", b"\n ").replace(b"\r\n\t", b"\n\t")
    lines = folded.split(CRLF)
    fields = [line.replace(b"\n", CRLF).split(b":", 1) for line in lines]
    return [(name, value + CRLF) for name, value in fields], body


def _choose(header: list[tuple[bytes, bytes]], wanted: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Return the named fields; for a repeated name the last field first (RFC 6376 5.4.2)."""
    left: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for field in header:
        left.setdefault(field[0].lower(), []).append(field)
    named = (left.get(name.encode()) for name in wanted)
    return [fields.pop() for fields in named if fields]
