"""Signing in with the account of a company: OpenID Connect with an authorization code and PKCE.

For each sign-in, the browser keeps a random secret in a cookie while the person is at the provider.
The state, the nonce and the code verifier are derived from it. Any daemon can finish a sign-in,
without a row in the store.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from twisted.logger import Logger

from mailcheck.core.accounts import Account
from mailcheck.core.audit import COMMAND_LINE, Action, Actor
from mailcheck.core.errors import (
    AccountDisabled,
    AccountNameTaken,
    AccountNotFound,
    ExpectedFailure,
    InvalidParameter,
    LimitExceeded,
    OnlyOwner,
    SignInFailed,
    SignInUnavailable,
)
from mailcheck.core.identifiers import new_session_secret, new_short_id
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.core.memory.keys import key_of
from mailcheck.core.projects import Role
from mailcheck.core.signing_in.company import (
    MAX_SUBJECT,
    GroupRole,
    Identity,
    LinkedIdentity,
    find_claim,
    groups_in,
    roles_of,
)
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.id_tokens import REFUSED, Provider, failure_of
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.projects import ManageProjects
from mailcheck.operations.accounts.registration_rules import NameRules
from mailcheck.operations.accounts.sign_in import (
    MAX_NAME,
    PER_ADDRESS,
    TOO_MANY,
    Attempts,
    SignedIn,
    SignIn,
)
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.journals import AccessJournal
from mailcheck.store.accounts.identity_store import IdentityStore

LONGEST = 10 * MINUTE
"""Time within which a person must come back from the provider."""

MAX_SHOWN = 30
"""Maximum number of groups or claims in a line of the log."""

NAME_CLAIMS = ("preferred_username", "name", "email", "sub")
"""Claims that propose the name of a new account. None of them finds an existing account."""

NAME_ATTEMPTS = 5
"""Number of names that are tried for a new account."""

BEGUN_ELSEWHERE = "this sign-in was begun in another browser, or took too long; sign in again"


class CompanyRules(Struct, frozen=True):
    """How people of the company sign in. ``title`` is the name of the provider on pages.

    With ``allowed_groups``, only their members sign in. ``roles`` are the projects of groups.
    ``id_claim`` is the claim with the id of a person in the directory.
    """

    client_id: str
    client_secret: str
    title: str
    scopes: Sequence[str]
    groups_claim: str
    allowed_groups: Sequence[str]
    roles: Sequence[GroupRole]
    creates_accounts: bool
    id_claim: str


class Beginning(Struct, frozen=True):
    """A sign-in that has begun: the address of the provider, its state, and the secret.

    The browser keeps the secret until it comes back with the state.
    """

    url: str
    state: str
    secret: str


class Answer(Struct, frozen=True):
    """The parameters with which the provider sent the browser back; empty if they are missing."""

    code: str
    state: str
    issuer: str
    error: str


class Finished(Struct, frozen=True):
    """A finished sign-in, and the path to show. ``signed_in`` is `None` after linking."""

    signed_in: SignedIn | None
    path: str


class _State(Struct, frozen=True, array_like=True):
    """The content of the state. ``links_to`` is the id of the account that is being linked."""

    begun_at: Instant
    path: str
    links_to: str


class CompanySignIn(Struct, frozen=True, eq=False):
    """Sign-in of people of the company, and links of their accounts."""

    _log = Logger()

    rules: CompanyRules
    provider: Provider
    identities: IdentityStore
    accounts: ManageAccounts
    projects: ManageProjects
    names: NameRules
    sign_in: SignIn
    attempts: Attempts
    audit: Audit
    journal: AccessJournal
    clocks: ClockAndRandomness

    async def begin(
        self, back: str, path: str, client: str, links_to: Account | None = None
    ) -> Beginning:
        """Begin a sign-in.

        :param back: the address to which the provider sends the browser back.
        :param path: the page to show afterwards.
        :param links_to: the signed-in account to link, or `None` to sign in.
        :raises SignInUnavailable: the provider does not answer.
        :raises LimitExceeded: too many attempts from this address.
        """
        await self.attempts.count(key_of("company sign-in from", client), PER_ADDRESS, TOO_MANY)
        metadata = await self.provider.metadata()
        secret = new_session_secret(self.clocks.random_bytes)
        links_id = "" if links_to is None else links_to.id
        state = _seal(secret, _State(self.clocks.now(), path, links_id))
        query = {
            "response_type": "code",
            "client_id": self.rules.client_id,
            "redirect_uri": back,
            "scope": " ".join(self.rules.scopes),
            "state": state,
            "nonce": _derive(secret, "nonce"),
            "code_challenge": _challenge(_derive(secret, "verifier")),
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in metadata.authorization_endpoint else "?"
        url = f"{metadata.authorization_endpoint}{joint}{urlencode(query)}"
        return Beginning(url, state, secret)

    async def finish(
        self, secret: str, answer: Answer, back: str, client: str, person: Account | None
    ) -> Finished:
        """Finish a sign-in: verify the answer of the provider, and open a session or link.

        :param secret: the secret of the cookie, or empty.
        :param person: the account that is signed in already.
        :raises SignInFailed: the answer does not belong to this browser, or is not valid.
        :raises SignInUnavailable: the provider does not answer.
        :raises AccountDisabled: the account is disabled.
        :raises IdentityTaken: the identity is linked to another account.
        :raises LimitExceeded: too many attempts from this address.
        """
        counted = key_of("company sign-in finished from", client)
        try:
            await self.attempts.count(counted, PER_ADDRESS, TOO_MANY)
            state = self._open(secret, answer.state)
            identity = await self._identify(secret, answer, back)
            if state.links_to:
                if person is None or person.id != state.links_to:
                    raise SignInFailed(BEGUN_ELSEWHERE)
                by = Actor(person.name, client)
                await self.link(person, identity.subject, by, identity.external_id)
                return Finished(None, state.path)
            account = await self._account_of(identity, client)
            account.require_enabled()
        except (SignInFailed, LimitExceeded, AccountDisabled) as failure:
            self.journal.note_failed_access("sign-in", client, str(failure))
            raise
        await self._follow_groups(account, identity.groups, client)
        signed_in = await self.sign_in.open(account, client, is_company=True)
        return Finished(signed_in, state.path)

    def path_in(self, secret: str, sealed: str) -> str:
        """Return the page to show after a sign-in, whether or not it succeeds.

        :param secret: the secret of the cookie, or empty.
        :param sealed: the state with which the browser came back.
        """
        state = _unseal(secret, sealed) if secret else None
        return "/" if state is None or state.links_to else state.path

    async def logout_url(self, back: str) -> str:
        """Return where the provider ends its own session, or empty if it cannot.

        :param back: the address to which the provider sends the browser afterwards.
        """
        try:
            metadata = await self.provider.metadata()
        except (SignInUnavailable, SignInFailed):
            return ""
        if not metadata.end_session_endpoint:
            return ""
        query = {"client_id": self.rules.client_id, "post_logout_redirect_uri": back}
        joint = "&" if "?" in metadata.end_session_endpoint else "?"
        return f"{metadata.end_session_endpoint}{joint}{urlencode(query)}"

    async def link(
        self,
        account: Account,
        subject: str,
        by: Actor = COMMAND_LINE,
        external_id: str | None = None,
    ) -> None:
        """Let a person of the provider sign in to an existing account.

        :param external_id: id of the person in the directory, if it is known.
        :raises InvalidParameter: the account is a project, or the subject is empty or too long.
        :raises IdentityTaken: the person signs in to another account.
        """
        account.require_person()
        if not 0 < len(subject) <= MAX_SUBJECT:
            problem = f"the subject must have 1 to {MAX_SUBJECT} characters"
            raise InvalidParameter("subject", f"{problem}; got {len(subject)}")
        issuer, now = self.provider.issuer, self.clocks.now()
        identity = LinkedIdentity(issuer, subject, account.id, now, external_id)
        with self.audit.noting(Action.IDENTITY_LINKED, account.id, by, subject) as entry:
            await self.identities.link(identity, entry)

    async def unlink(self, account: Account, by: Actor = COMMAND_LINE) -> bool:
        """Remove the links of an account. Return whether there were any.

        :raises InvalidParameter: the person could not sign in any more.
        """
        sign_in = self.sign_in
        has_password = sign_in.has_passwords and await sign_in.has_password(account)
        if by != COMMAND_LINE and not has_password:
            raise InvalidParameter(
                "company", "you have no password: ask the operator for one, then remove the link"
            )
        with self.audit.noting(Action.IDENTITY_REMOVED, account.id, by) as entry:
            return await self.identities.unlink(account.id, entry)

    async def is_linked(self, account: Account) -> bool:
        """Return whether a person of the provider can sign in to an account."""
        found = await self.identities.identities_of(account.id)
        return any(identity.issuer == self.provider.issuer for identity in found)

    async def _identify(self, secret: str, answer: Answer, back: str) -> Identity:
        """Return the identity that the provider confirms."""
        metadata = await self.provider.metadata()
        expected = self.provider.issuer
        # RFC 9207: the answer of another provider must not reach this one.
        if (answer.issuer or metadata.sends_issuer) and answer.issuer != expected:
            raise SignInFailed("the answer comes from another sign-in service; sign in again")
        if answer.error or not answer.code:
            self._log.warn(
                "the provider has not signed a person in: {why!r}", why=answer.error[:60]
            )
            raise failure_of(answer.error, SignInFailed(REFUSED))
        form = {
            "grant_type": "authorization_code",
            "code": answer.code,
            "redirect_uri": back,
            "code_verifier": _derive(secret, "verifier"),
        }
        rules = self.rules
        tokens = await self.provider.exchange(form, rules.client_id, rules.client_secret)
        nonce = _derive(secret, "nonce")
        claims = await self.provider.verify(tokens.get("id_token"), rules.client_id, nonce)
        subject: str = claims["sub"]
        groups: tuple[str, ...] = ()
        if rules.roles or rules.allowed_groups:
            found = find_claim(claims, rules.groups_claim)
            if found is None:
                token = tokens.get("access_token")
                sent = token if isinstance(token, str) else ""
                more = await self.provider.user_info(sent, subject)
                found = find_claim(more, rules.groups_claim)
                claims = {**more, **claims}
            groups = groups_in(found)
            self._explain_groups(claims, found, groups)
        external_id = claims.get(rules.id_claim)
        if not isinstance(external_id, str) or not 0 < len(external_id) <= MAX_SUBJECT:
            external_id = None
        return Identity(expected, subject, _name_of(claims), external_id, groups)

    def _explain_groups(
        self, claims: Mapping[str, Any], found: object, groups: Sequence[str]
    ) -> None:
        """Log the groups that came if none of them has a meaning here."""
        meant = {*self.rules.allowed_groups, *(role.group for role in self.rules.roles)}
        if meant.intersection(groups):
            return
        if found is None:
            self._log.warn(
                "the provider sends no claim {claim!r}, which [oidc] groups_claim names; its "
                "claims are {names}",
                claim=self.rules.groups_claim,
                names=_shown(claims),
            )
        else:
            # Without allowed_groups, people without a project are nothing unusual.
            tell = self._log.warn if self.rules.allowed_groups else self._log.info
            tell(
                "the claim {claim!r} has the groups {groups}; [oidc] allowed_groups and roles name "
                "none of them",
                claim=self.rules.groups_claim,
                groups=_shown(groups),
            )

    async def _account_of(self, identity: Identity, client: str) -> Account:
        """Return the account of a person, and create it at the first sign-in."""
        allowed = self.rules.allowed_groups
        if allowed and not set(allowed).intersection(identity.groups):
            raise SignInFailed("you are not in a group that may use this service")
        known = await self.identities.find_account(identity.issuer, identity.subject)
        managed = await self._find_managed(identity, known)
        if known is not None:
            await self.identities.note_external_id(
                identity.issuer, identity.subject, identity.external_id
            )
            return known
        if managed is not None:
            by = Actor("company account", client)
            await self.link(managed, identity.subject, by, identity.external_id)
            return managed
        if not self.rules.creates_accounts:
            raise SignInFailed(
                "no account is linked to your company account: ask the operator of this service"
            )
        for name in self._names_for(identity.name):
            try:
                account = await self.accounts.draft(self.names.require(name))
                linked = LinkedIdentity(
                    identity.issuer,
                    identity.subject,
                    account.id,
                    account.created_at,
                    identity.external_id,
                )
                by, detail = Actor(account.name, client), "company account"
                with self.audit.noting(Action.ACCOUNT_CREATED, account.id, by, detail) as entry:
                    found = await self.identities.add_person(account, linked, entry)
            except (AccountNameTaken, InvalidParameter):
                continue
            return found.account
        raise SignInFailed("no free name was found for your account: ask the operator")

    async def _find_managed(self, identity: Identity, known: Account | None) -> Account | None:
        """Return the account that the directory has created for a person, or `None`.

        :param known: the account with which the person has signed in before.
        :raises AccountDisabled: the person has left, as far as the directory knows.
        :raises SignInFailed: the account was not created by the directory, so its owner has to link
            it: the directory must not give it to somebody else.
        """
        if not identity.external_id:
            return None
        managed = await self.identities.find_managed(identity.external_id)
        if managed is None:
            return None
        managed.account.require_enabled()
        if known is None and not managed.is_created:
            raise SignInFailed(
                f"the account {managed.account.name!r} is yours, and not linked: sign in with its "
                "password, and link your company account on the page Account"
            )
        return managed.account

    def _names_for(self, proposed: str) -> list[str]:
        short = proposed[: MAX_NAME - 8]
        numbered = [f"{short}-{number}" for number in range(2, NAME_ATTEMPTS)]
        return [proposed, *numbered, f"person-{new_short_id(self.clocks.random_bytes)}"]

    async def _follow_groups(self, account: Account, groups: Sequence[str], client: str) -> None:
        """Set the roles of a person in the projects of the mapping to those of the groups."""
        current = {
            membership.project.id: membership.role
            for membership in await self.projects.of_person(account)
        }
        by = Actor("company account", client)
        for name, role in roles_of(groups, self.rules.roles).items():
            try:
                project = await self.projects.meant_by(name)
                if role is not current.get(project.id):
                    await self._set_role(account, project, role, by)
            except (AccountNotFound, OnlyOwner) as failure:
                self._log.warn(
                    "the role of {person} in {project} does not follow the groups: {why}",
                    person=account.name,
                    project=name,
                    why=failure,
                )

    async def _set_role(
        self, account: Account, project: Account, role: Role | None, by: Actor
    ) -> None:
        if role is None:
            await self.projects.remove_member(project, account.id, by)
        else:
            await self.projects.set_member(project, account, role, by)

    def _open(self, secret: str, sealed: str) -> _State:
        state = _unseal(secret, sealed) if secret else None
        if state is None or not 0 <= self.clocks.now() - state.begun_at <= LONGEST:
            raise SignInFailed(BEGUN_ELSEWHERE)
        return state


def _shown(texts: Iterable[str]) -> str:
    """Return the first texts for the log."""
    listed = list(texts)
    more = f" and {len(listed) - MAX_SHOWN} more" if len(listed) > MAX_SHOWN else ""
    return ", ".join(repr(value[:100]) for value in listed[:MAX_SHOWN]) + more if listed else "none"


def _name_of(claims: Mapping[str, Any]) -> str:
    """Return a name for a new account; the local part of a mail address."""
    for claim in NAME_CLAIMS:
        found = claims.get(claim)
        if isinstance(found, str) and found.strip():
            name = found.strip().partition("@")[0] if claim != "sub" else found
            printable = "".join(character for character in name if character.isprintable())
            if printable.strip():
                return printable.strip()[:MAX_NAME]
    return "person"


def _mac(secret: str, purpose: str, data: str = "") -> str:
    digest = hmac.digest(secret.encode(), f"mailcheck {purpose} {data}".encode(), hashlib.sha256)
    return _encode(digest)


def _derive(secret: str, purpose: str) -> str:
    """Return 43 characters of base64url that only the holder of the secret can derive."""
    return _mac(secret, purpose)


def _challenge(verifier: str) -> str:
    """Return the code challenge (RFC 7636 4.2)."""
    return _encode(hashlib.sha256(verifier.encode("ascii")).digest())


def _seal(secret: str, state: _State) -> str:
    text = _encode(msgspec.json.encode(state))
    return f"{text}.{_mac(secret, 'state', text)}"


def _unseal(secret: str, sealed: str) -> _State | None:
    text, _, proof = sealed.partition(".")
    if not hmac.compare_digest(proof.encode(), _mac(secret, "state", text).encode()):
        return None
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(data, type=_State)
    except (binascii.Error, ValueError, ExpectedFailure):
        return None


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
