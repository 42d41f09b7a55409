"""The page on which a person confirms who they are before an action that outlasts the session."""

from collections.abc import Mapping

from msgspec import Struct

from mailcheck.core.errors import ExpectedFailure, SignInFailed
from mailcheck.operations.accounts.confirm import FRESH_MINUTES, Confirmation
from mailcheck.operations.accounts.passkeys import MAX_CREDENTIAL, Passkeys
from mailcheck.web.dashboard.addresses import address_in, first_segment
from mailcheck.web.dashboard.rendering import FORM_TOKEN, Renderer, redirect
from mailcheck.web.dashboard.visits import CONFIRMED_PERSON, PERSON, Page, Visit, prefers_html
from mailcheck.web.site import costs
from mailcheck.web.site.failures import CONFIRMATION_NEEDED
from mailcheck.web.site.replies import Reply, error_reply

PASSWORD, CREDENTIAL = "confirm-password", "confirm-credential"
"""The form fields that confirm who the person is."""


_FIELDS = (PASSWORD, CREDENTIAL, "confirm-username")


class ConfirmPages(Struct, frozen=True):
    """Asks for a password or a passkey, and then continues with the form that was submitted."""

    _confirmation: Confirmation
    _passkeys: Passkeys | None
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        path = "/account/confirm"
        return [
            Page("POST", path, self.confirmed, costs.PASSWORD, CONFIRMED_PERSON),
            Page("POST", f"{path}/options", self.options, costs.SIGN_IN, PERSON),
        ]

    async def confirmed(self, visit: Visit) -> Reply:
        """POST /account/confirm: confirm before something that cannot be submitted again."""
        return redirect(visit, "/account", done="confirmed")

    async def options(self, visit: Visit) -> Reply:
        """POST /account/confirm/options: the challenge for a passkey of the person."""
        if self._passkeys is None:
            raise SignInFailed("this service has no passkeys")
        text = await self._passkeys.begin_confirmation(visit.visitor, visit.client)
        return Reply(200, text.encode(), "application/json; charset=utf-8")

    async def ask(
        self, visit: Visit, back: str = "", headers: Mapping[str, str] | None = None
    ) -> Reply | None:
        """Return the page that asks, or `None` if the person need not be asked.

        The page submits the same form again, with the password or the passkey.

        :param back: the path to come back to from the company's sign-in service. Without it, this
            is the page with the first segment of the path.
        """
        if self._confirmation.is_fresh(visit.confirmed_at):
            return None
        failure: ExpectedFailure | None = None
        try:
            if await self._confirm(visit):
                return None
        except ExpectedFailure as raised:
            failure = raised
        if not prefers_html(visit.request):
            return error_reply(
                CONFIRMATION_NEEDED,
                f"you signed in more than {FRESH_MINUTES} minutes ago: reload the page and confirm "
                "who you are",
            )
        path = visit.request.path.decode("ascii", "replace")
        return self._renderer.page(
            visit,
            "confirm.html",
            headers=headers,
            status=CONFIRMATION_NEEDED,
            error=failure,
            action=path,
            fields=[pair for pair in visit.form.pairs() if pair[0] not in (FORM_TOKEN, *_FIELDS)],
            ways=await self._confirmation.ways_of(visit.visitor),
            back=back or _first_page(visit),
            minutes=FRESH_MINUTES,
        )

    async def _confirm(self, visit: Visit) -> bool:
        """Return whether the form confirms who the person is.

        :raises SignInFailed: the password or the passkey is not right.
        :raises LimitExceeded: too many attempts.
        """
        password = visit.form.text(PASSWORD) or ""
        credential = "".join(visit.form.texts(CREDENTIAL, 1, MAX_CREDENTIAL))
        person, session, client = visit.visitor, visit.session, visit.client
        if credential:
            await self._confirmation.by_passkey(person, session, credential, client)
        elif password:
            await self._confirmation.by_password(person, session, password, client)
        return bool(credential or password)


def _first_page(visit: Visit) -> str:
    """Return the path of the page with the first segment of the path, in its project."""
    page = "/" + first_segment(visit.page_path)
    return address_in(visit.project, page) if visit.project else page
