"""Passkeys: adding, using and removing them. ``fido2`` verifies the answers of browsers.

A passkey signs in alone, since the device verifies its user. An account can also require one after
the password.
"""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from msgspec import Struct
from twisted.logger import Logger

from mailcheck.core.accounts import Account
from mailcheck.core.audit import COMMAND_LINE, Action, Actor
from mailcheck.core.domains.domain_names import origin_of
from mailcheck.core.errors import (
    AccountDisabled,
    InvalidParameter,
    LimitExceeded,
    SignInFailed,
)
from mailcheck.core.identifiers import AccountId, new_short_id
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.core.memory.keys import key_of
from mailcheck.core.signing_in.passkeys import MAX_PASSKEY_NAME, Passkey
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.sign_in import (
    PER_ADDRESS,
    PER_DEVICE,
    TOO_MANY,
    Attempts,
    SignedIn,
    SignIn,
)
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.journals import AccessJournal
from mailcheck.store.accounts.passkey_store import PasskeyStore

if TYPE_CHECKING:
    from fido2.server import Fido2Server
    from fido2.webauthn import AttestedCredentialData

CHALLENGE_BYTES = 32

CHALLENGE_AGE = 5 * MINUTE
"""Time within which a person must answer a challenge."""

MAX_CREDENTIAL = 16_384
"""Maximum number of characters of an answer. One with an attestation has a few thousand."""

NOT_ACCEPTED = "the passkey was not accepted; try again"

BROKEN = (ValueError, TypeError, LookupError, AttributeError, struct.error, UnsupportedAlgorithm)
"""Errors of the library and of its CBOR decoder for answers that are not well-formed."""

ADD, SIGN_IN, CONFIRM = "add", "sign in", "confirm"
"""Purposes of challenges. Each challenge is for one purpose, and may be for one account."""


class RelyingParty(Struct, frozen=True):
    """The site that passkeys belong to. ``domain`` is their RP ID and cannot change later."""

    domain: str
    origin: str


def relying_party_of(public_url: str) -> RelyingParty | None:
    """Return the relying party of a public URL, or `None` if browsers allow no passkeys there.

    They require HTTPS or localhost, and a name instead of an IP address.
    """
    if not public_url:
        return None
    origin = origin_of(public_url)
    parts = urlsplit(origin)
    host = parts.hostname or ""
    is_secure = parts.scheme == "https" or host == "localhost"
    has_name = any(letter.isalpha() for letter in host) and ":" not in host
    if not is_secure or not has_name:
        return None
    return RelyingParty(host, origin)


class Passkeys(Struct, frozen=True, eq=False):
    """The operations on passkeys."""

    _log = Logger()

    site: RelyingParty
    store: PasskeyStore
    sessions: SignIn
    attempts: Attempts
    audit: Audit
    journal: AccessJournal
    clocks: ClockAndRandomness

    async def of_account(self, account: Account) -> list[Passkey]:
        """List the passkeys of an account, oldest first."""
        return await self.store.passkeys_of(account.id)

    async def begin_adding(self, account: Account) -> str:
        """Return the options for a new passkey as JSON (``PublicKeyCredentialCreationOptions``)."""
        from fido2.webauthn import ResidentKeyRequirement, UserVerificationRequirement

        challenge = await self._new_challenge(ADD, account.id)
        known = await self.store.passkeys_of(account.id)
        options, _ = self._server.register_begin(
            {"id": account.id.encode(), "name": account.name, "displayName": account.name},  # type: ignore[arg-type]
            [_credential(passkey) for passkey in known],
            resident_key_requirement=ResidentKeyRequirement.REQUIRED,
            user_verification=UserVerificationRequirement.REQUIRED,
            challenge=challenge,
        )
        return json.dumps(dict(options)["publicKey"], default=dict)

    async def add(self, account: Account, name: str, credential: str, by: Actor) -> Passkey:
        """Add the passkey with which a browser has answered the options.

        :raises InvalidParameter: the name or the answer is not acceptable.
        """
        name = _require_name(name)
        answer = _read(credential)
        try:
            challenge = _challenge_in(answer)
            await self._use_challenge(challenge, ADD, account)
            found = self._server.register_complete(_state(challenge), answer)
            if found.credential_data is not None:
                _require_possible(found.credential_data.public_key)
        except BROKEN as failure:
            self._log.warn("a passkey was not added: {why}", why=failure)
            raise InvalidParameter("credential", NOT_ACCEPTED) from None
        data = found.credential_data
        if data is None:
            raise InvalidParameter("credential", NOT_ACCEPTED)
        from fido2 import cbor

        passkey = Passkey(
            id=new_short_id(self.clocks.random_bytes),
            account_id=account.id,
            credential_id=bytes(data.credential_id),
            public_key=cbor.encode(data.public_key),
            sign_count=found.counter,
            name=name,
            created_at=self.clocks.now(),
        )
        with self.audit.noting(Action.PASSKEY_ADDED, account.id, by, name) as entry:
            await self.store.add_passkey(passkey, entry)
        return passkey

    async def begin_sign_in(self, client: str, account_id: AccountId | None = None) -> str:
        """Return the options to sign in as JSON (``PublicKeyCredentialRequestOptions``).

        :param account_id: the account whose password was right; only its passkeys are accepted.
        :raises LimitExceeded: too many attempts from this address.
        """
        return await self._begin(SIGN_IN, client, account_id)

    async def begin_confirmation(self, account: Account, client: str) -> str:
        """Return the options for a person who is signed in, as `begin_sign_in` does."""
        return await self._begin(CONFIRM, client, account.id)

    async def _begin(self, purpose: str, client: str, account_id: AccountId | None) -> str:
        from fido2.webauthn import UserVerificationRequirement

        await self.attempts.count(key_of("passkey challenge for", client), PER_ADDRESS, TOO_MANY)
        challenge = await self._new_challenge(purpose, account_id)
        known = [] if account_id is None else await self.store.passkeys_of(account_id)
        options, _ = self._server.authenticate_begin(
            [_credential(passkey) for passkey in known] or None,
            user_verification=UserVerificationRequirement.REQUIRED,
            challenge=challenge,
        )
        return json.dumps(dict(options)["publicKey"], default=dict)

    async def sign_in(self, credential: str, client: str) -> SignedIn:
        """Open a session with the answer of a browser. ``client`` is as in `SignIn.sign_in`.

        :raises SignInFailed: the answer is not valid, or the passkey seems to be a copy.
        :raises AccountDisabled: the account is disabled.
        :raises LimitExceeded: too many attempts from this address.
        """
        try:
            await self.attempts.count(key_of("sign-in from", client), PER_ADDRESS, TOO_MANY)
            account = await self._verify(credential, SIGN_IN)
            account.require_enabled()
        except (SignInFailed, LimitExceeded, AccountDisabled) as failure:
            self.journal.note_failed_access("sign-in", client, str(failure))
            raise
        return await self.sessions.open(account, client)

    async def require(self, account: Account, credential: str) -> None:
        """Check the answer of a person who is signed in.

        :raises SignInFailed: the answer is not valid, or is of another person.
        :raises LimitExceeded: too many attempts.
        """
        await self.attempts.count(key_of("passkey of", account.id), PER_DEVICE, TOO_MANY)
        if (await self._verify(credential, CONFIRM)).id != account.id:
            raise SignInFailed(NOT_ACCEPTED)

    async def _verify(self, credential: str, purpose: str) -> Account:
        try:
            answer = _read(credential)
            challenge = _challenge_in(answer)
            known = await self.store.find_passkey(_credential_id_in(answer))
            if known is None:
                raise ValueError("unknown credential")
            passkey, account = known
            await self._use_challenge(challenge, purpose, account, or_any=purpose == SIGN_IN)
            self._server.authenticate_complete(_state(challenge), [_credential(passkey)], answer)
            count = _counter_in(answer, account)
        except (*BROKEN, InvalidParameter) as failure:
            self._log.info("a passkey was refused: {why}", why=failure)
            raise SignInFailed(NOT_ACCEPTED) from None
        if not await self.store.note_use(passkey.id, count, self.clocks.now()):
            self._log.warn(
                "the passkey {id} of {name} has counted back, so it may have been copied",
                id=passkey.id,
                name=account.name,
            )
            raise SignInFailed("this passkey seems to be a copy: remove it, and add a new one")
        return account

    async def rename(self, account: Account, passkey_id: str, name: str, by: Actor) -> None:
        """Rename a passkey.

        :raises InvalidParameter: the name is not acceptable, or the account has no such passkey.
        """
        name = _require_name(name)
        with self.audit.noting(Action.PASSKEY_RENAMED, account.id, by, name) as entry:
            if not await self.store.rename_passkey(account.id, passkey_id, name, entry):
                raise InvalidParameter("id", f"this account has no passkey {passkey_id!r}")

    async def remove(self, account: Account, passkey_id: str, by: Actor) -> None:
        """Remove a passkey of a person who is signed in.

        :raises InvalidParameter: the account has no such passkey, or it is the last way to sign in.
        """
        with self.audit.noting(Action.PASSKEY_REMOVED, account.id, by) as entry:
            removed = await self.store.remove_spare_passkey(
                account.id, passkey_id, entry, has_passwords=self.sessions.has_passwords
            )
        _require_removed(removed, passkey_id)

    async def set_required(self, account: Account, *, is_required: bool, by: Actor) -> None:
        """Require a passkey after the password of an account, or not.

        :raises InvalidParameter: the account has no passkey or no password.
        """
        detail = "passkey required" if is_required else "passkey not required"
        with self.audit.noting(Action.SECOND_FACTOR_CHANGED, account.id, by, detail) as entry:
            if not await self.store.require_passkey(account.id, entry, is_required=is_required):
                raise InvalidParameter("required", "this needs a passkey and a password")

    @property
    def _server(self) -> "Fido2Server":
        # Imported here, since few daemons need it.
        from fido2.server import Fido2Server
        from fido2.webauthn import PublicKeyCredentialRpEntity

        site = PublicKeyCredentialRpEntity(name="mailcheck", id=self.site.domain)
        return Fido2Server(
            site,
            attestation="none",  # type: ignore[arg-type]
            verify_origin=lambda origin: origin == self.site.origin,
        )

    async def _new_challenge(self, purpose: str, account_id: AccountId | None) -> bytes:
        challenge, now = self.clocks.random_bytes(CHALLENGE_BYTES), self.clocks.now()
        digest = _digest(challenge, purpose, account_id)
        await self.store.add_challenge(digest, now, Instant(now + CHALLENGE_AGE))
        return challenge

    async def _use_challenge(
        self, challenge: bytes, purpose: str, account: Account, *, or_any: bool = False
    ) -> None:
        """Use up a challenge for an account, or with ``or_any`` for any account.

        :raises ValueError: there is no such challenge.
        """
        for account_id in (account.id, None) if or_any else (account.id,):
            if await self.store.use_challenge(
                _digest(challenge, purpose, account_id), self.clocks.now()
            ):
                return
        raise ValueError("the challenge is unknown, used or expired")


async def remove_passkeys(
    store: PasskeyStore,
    audit: Audit,
    account: Account,
    passkey_id: str | None = None,
    by: Actor = COMMAND_LINE,
) -> list[str]:
    """Remove a passkey of an account, or all (`None`). Return the names of the removed ones.

    :raises InvalidParameter: the account has no such passkey.
    """
    with audit.noting(Action.PASSKEY_REMOVED, account.id, by) as entry:
        removed = await store.remove_passkeys(account.id, passkey_id, entry)
    _require_removed(removed, passkey_id)
    return removed


def _require_removed(removed: Sequence[str], passkey_id: str | None) -> None:
    if passkey_id is not None and not removed:
        raise InvalidParameter("id", f"this account has no passkey {passkey_id!r}")


def _require_possible(public_key: Mapping[int, Any]) -> None:
    """Verify that a signature can be verified with a key, such as one on its curve.

    :raises ValueError: it cannot.
    """
    from fido2.cose import CoseKey

    try:
        CoseKey.parse(public_key).verify(b"", b"")
    except InvalidSignature:
        return  # the key works, and the empty signature is not its own
    except NotImplementedError:
        pass
    raise ValueError("no signature can be verified with the key")


def _require_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= MAX_PASSKEY_NAME or not name.isprintable():
        problem = f"the name of a passkey must have 1 to {MAX_PASSKEY_NAME} visible characters"
        raise InvalidParameter("name", problem)
    return name


def _read(credential: str) -> dict[str, Any]:
    """Parse the JSON that a browser has made.

    :raises InvalidParameter: it is no JSON object, or too long.
    """
    try:
        found = json.loads(credential[: MAX_CREDENTIAL + 1])
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("response"), dict):
        raise InvalidParameter("credential", NOT_ACCEPTED)
    return found


def _challenge_in(answer: dict[str, Any]) -> bytes:
    """Return the challenge in the client data, and check that no frame of another site answered."""
    from fido2.utils import websafe_decode
    from fido2.webauthn import CollectedClientData

    data = CollectedClientData(websafe_decode(answer["response"]["clientDataJSON"]))
    if data.cross_origin:
        raise ValueError("a frame of another site has answered")
    return bytes(data.challenge)


def _credential_id_in(answer: dict[str, Any]) -> bytes:
    from fido2.utils import websafe_decode

    return bytes(websafe_decode(answer["rawId"]))


def _counter_in(answer: dict[str, Any], account: Account) -> int:
    """Return the signature counter, and check that the device names the same account."""
    from fido2.webauthn import AuthenticationResponse

    response = AuthenticationResponse.from_dict(answer).response
    if response.user_handle not in (None, b"", account.id.encode()):
        raise ValueError("the passkey names another account")
    return response.authenticator_data.counter


def _credential(passkey: Passkey) -> "AttestedCredentialData":
    from fido2 import cbor
    from fido2.cose import CoseKey
    from fido2.webauthn import AttestedCredentialData

    decoded = cbor.decode(passkey.public_key)
    if not isinstance(decoded, Mapping):
        raise ValueError("the stored key is damaged")
    key = CoseKey.parse(decoded)
    return AttestedCredentialData.create(bytes(16), passkey.credential_id, key)


def _state(challenge: bytes) -> dict[str, Any]:
    from fido2.utils import websafe_encode
    from fido2.webauthn import UserVerificationRequirement

    return {
        "challenge": websafe_encode(challenge),
        "user_verification": UserVerificationRequirement.REQUIRED,
    }


def _digest(challenge: bytes, purpose: str, account_id: AccountId | None) -> bytes:
    return hashlib.sha256(f"{purpose}:{account_id or ''}:".encode() + challenge).digest()
