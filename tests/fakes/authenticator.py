"""A test double for a browser with an authenticator: makes passkeys and signs challenges."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256, CoseKey
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

FLAG = AuthenticatorData.FLAG
VERIFIED = FLAG.UP | FLAG.UV


@dataclass
class Authenticator:
    """An authenticator with one passkey. A test may change what it sends at any time."""

    origin: str
    domain: str
    credential_id: bytes = b"credential-1"
    counter: int = 1
    flags: int = VERIFIED
    user_handle: bytes | None = None
    cross_origin: bool = False
    public_key: dict[int, Any] | None = None
    """Another public key than that of ``key``."""
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def create(self, options: dict[str, Any], kind: str = "webauthn.create") -> str:
        """Answer the options for a new passkey."""
        if self.user_handle is None:
            self.user_handle = websafe_decode(options["user"]["id"])
        own = ES256.from_cryptography_key(self.key.public_key())
        public = own if self.public_key is None else CoseKey(self.public_key)
        credential = AttestedCredentialData.create(bytes(16), self.credential_id, public)
        data = AuthenticatorData.create(
            self._site_hash(), FLAG(self.flags | FLAG.AT), self.counter, credential
        )
        return self._answer(
            self._client_data(options, kind),
            attestationObject=bytes(AttestationObject.create("none", data, {})),
        )

    def get(self, options: dict[str, Any], kind: str = "webauthn.get") -> str:
        """Answer the options to sign in."""
        client_data = self._client_data(options, kind)
        data = AuthenticatorData.create(self._site_hash(), FLAG(self.flags), self.counter)
        signed = bytes(data) + hashlib.sha256(client_data).digest()
        return self._answer(
            client_data,
            authenticatorData=bytes(data),
            signature=self.key.sign(signed, ec.ECDSA(hashes.SHA256())),
            userHandle=self.user_handle or b"",
        )

    def _site_hash(self) -> bytes:
        return hashlib.sha256(self.domain.encode()).digest()

    def _client_data(self, options: dict[str, Any], kind: str) -> bytes:
        return bytes(
            CollectedClientData.create(
                kind, websafe_decode(options["challenge"]), self.origin, self.cross_origin
            )
        )

    def _answer(self, client_data: bytes, **fields: bytes) -> str:
        response = {name: websafe_encode(value) for name, value in fields.items() if value}
        raw_id = websafe_encode(self.credential_id)
        return json.dumps(
            {
                "id": raw_id,
                "rawId": raw_id,
                "type": "public-key",
                "clientExtensionResults": {},
                "response": {"clientDataJSON": websafe_encode(client_data), **response},
            }
        )
