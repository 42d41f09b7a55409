"""Pages to add, name, use and remove passkeys. A script asks the browser for the passkey."""

from msgspec import Struct

from mailcheck.api.requests.fields import FLAG
from mailcheck.core.errors import ExpectedFailure, SignInFailed
from mailcheck.operations.accounts.passkeys import MAX_CREDENTIAL, Passkeys
from mailcheck.web.dashboard.accounts.pages import AccountPages
from mailcheck.web.dashboard.accounts.sign_in_pages import SignInPages
from mailcheck.web.dashboard.rendering import redirect
from mailcheck.web.dashboard.visits import (
    ANYONE,
    CONFIRMED_PERSON,
    PERSON,
    Page,
    Visit,
    next_path,
    with_form,
)
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply


class PasskeyPages(Struct, frozen=True):
    """The pages of passkeys."""

    _configured: Passkeys | None
    _sign_in: SignInPages
    _account: AccountPages

    def pages(self) -> list[Page]:
        """List the pages."""
        one = "/account/passkeys/<passkey_id>"
        return [
            Page("POST", "/sign-in/passkey/options", self.sign_in_options, costs.SIGN_IN, ANYONE),
            Page("POST", "/sign-in/passkey", self.sign_in, costs.SIGN_IN, ANYONE),
            Page(
                "POST", "/account/passkeys/options", self.options, costs.SIGN_IN, CONFIRMED_PERSON
            ),
            *with_form(
                self._account.account,
                Page("POST", "/account/passkeys", self.add, costs.SIGN_IN, CONFIRMED_PERSON),
                Page(
                    "POST", "/account/second-factor", self.require, costs.SIGN_IN, CONFIRMED_PERSON
                ),
                Page("POST", f"{one}/rename", self.rename, costs.SIGN_IN, PERSON),
                Page("POST", f"{one}/remove", self.remove, costs.SIGN_IN, CONFIRMED_PERSON),
            ),
        ]

    @property
    def _passkeys(self) -> Passkeys:
        if self._configured is None:
            raise SignInFailed("passkeys need an HTTPS address in [web] public_url")
        return self._configured

    async def sign_in_options(self, visit: Visit) -> Reply:
        """POST /sign-in/passkey/options: the challenge for any account."""
        return _json(await self._passkeys.begin_sign_in(visit.client))

    async def sign_in(self, visit: Visit) -> Reply:
        """POST /sign-in/passkey: credential, next."""
        wanted = next_path(visit.form)
        try:
            signed_in = await self._passkeys.sign_in(_credential(visit), visit.client)
        except ExpectedFailure as failure:
            return await self._sign_in.form(visit, wanted, failure=failure)
        return await self._sign_in.welcome(visit, signed_in, wanted)

    async def options(self, visit: Visit) -> Reply:
        """POST /account/passkeys/options: the challenge for a new passkey."""
        return _json(await self._passkeys.begin_adding(visit.visitor))

    async def add(self, visit: Visit) -> Reply:
        """POST /account/passkeys: name, credential."""
        name = visit.form.text("name") or ""
        await self._passkeys.add(visit.visitor, name, _credential(visit), visit.actor)
        return redirect(visit, "/account", done="passkey-added")

    async def rename(self, visit: Visit) -> Reply:
        """POST /account/passkeys/{id}/rename: name."""
        name, passkey_id = visit.form.text("name") or "", visit.path["passkey_id"]
        await self._passkeys.rename(visit.visitor, passkey_id, name, visit.actor)
        return redirect(visit, "/account", done="passkey-renamed")

    async def remove(self, visit: Visit) -> Reply:
        """POST /account/passkeys/{id}/remove."""
        await self._passkeys.remove(visit.visitor, visit.path["passkey_id"], visit.actor)
        return redirect(visit, "/account", done="passkey-removed")

    async def require(self, visit: Visit) -> Reply:
        """POST /account/second-factor: required=true or false."""
        is_required = FLAG.parse("required", visit.form.text("required") or "")
        await self._passkeys.set_required(visit.visitor, is_required=is_required, by=visit.actor)
        return redirect(visit, "/account", done="second-factor-changed")


def _credential(visit: Visit) -> str:
    return "".join(visit.form.texts("credential", 1, MAX_CREDENTIAL))


def _json(text: str) -> Reply:
    return Reply(200, text.encode(), "application/json; charset=utf-8")
