"""Signature Version 4 of AWS, by which requests to SES are signed."""

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, unquote
from uuid import UUID

from msgspec import Struct

from mailcheck.web.providers.provider import KeyMissing, Posting, WrongSignature

ALGORITHM = "AWS4-HMAC-SHA256"


class Credentials(Struct, frozen=True):
    """The value of Authorization.

    ``scope`` is date, region, service and ``aws4_request``. ``signed`` are names of headers.
    """

    key: str
    scope: tuple[str, ...]
    signed: tuple[str, ...]
    signature: str


def parse_credentials(headers: Mapping[str, str]) -> Credentials:
    """Parse the Authorization header of a signed request.

    :raises KeyMissing: the request is not signed.
    """
    scheme, _, rest = headers.get("authorization", "").strip().partition(" ")
    fields = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    key, *scope = fields.get("Credential", "").split("/")
    signed, signature = fields.get("SignedHeaders", ""), fields.get("Signature", "")
    if scheme != ALGORITHM or not key or len(scope) != 4 or not signed or not signature:
        raise KeyMissing(
            "sign the request with Signature Version 4, with the API key of mailcheck as the access"
            " key id and as the secret access key"
        )
    return Credentials(key, tuple(scope), tuple(signed.lower().split(";")), signature)


def request_id(posting: Posting) -> str:
    """Return an id of a signed request, which AWS gives with its answers."""
    digest = hashlib.sha256(posting.headers.get("authorization", "").encode()).digest()
    return str(UUID(bytes=digest[:16]))


def read_key(headers: Mapping[str, str]) -> str:
    """Return the access key id, which is the API key.

    :raises KeyMissing: the request is not signed.
    """
    return parse_credentials(headers).key


def verify(posting: Posting, secret: str) -> None:
    """Check that the request is signed with the secret access key, which is the API key too.

    :raises WrongSignature: it is signed with another secret, or was changed.
    """
    found = parse_credentials(posting.headers)
    signature = sign(posting, found, secret)
    if not hmac.compare_digest(signature.encode(), found.signature.encode()):
        raise WrongSignature(
            "the signature does not match: set the API key of mailcheck as the access key id and"
            " as the secret access key"
        )


def sign(posting: Posting, credentials: Credentials, secret: str) -> str:
    """Return the signature of a request (AWS General Reference, "Signature Version 4").

    A path is encoded once more than in the request.
    """
    path, _, query = posting.target.partition("?")
    headers = "".join(
        f"{name}:{' '.join(posting.headers.get(name, '').split())}\n" for name in credentials.signed
    )
    digest = hashlib.sha256(posting.body).hexdigest()
    canonical = "\n".join(
        (
            posting.method,
            quote(path, safe="/-_.~"),
            _canonical_query(query),
            headers,
            ";".join(credentials.signed),
            digest,
        )
    )
    scope = "/".join(credentials.scope)
    hashed = hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()
    text = "\n".join((ALGORITHM, posting.headers.get("x-amz-date", ""), scope, hashed))
    key = f"AWS4{secret}".encode()
    for part in (*credentials.scope, text):
        signed = hmac.new(key, part.encode("utf-8", "replace"), hashlib.sha256)
        key = signed.digest()
    return signed.hexdigest()


def _canonical_query(query: str) -> str:
    pairs = [
        (quote(unquote(name), safe="-_.~"), quote(unquote(value), safe="-_.~"))
        for name, value in parse_qsl(query, keep_blank_values=True)
    ]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))
