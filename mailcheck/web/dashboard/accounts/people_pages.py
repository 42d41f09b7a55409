"""The operator's pages: all accounts with what they use, and the audit log."""

from msgspec import Struct

from mailcheck.api.requests.fields import INTEGER
from mailcheck.core.accounts import Account, AccountLimits, AccountOrder, choose_uses
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.operations.accounts.audit import PAGE, Audit
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import PERSON, Page, Visit, with_form
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

PATH = "/account/people"

LONGEST_NUMBER = 18
"""Maximum length of a number in a form, in digits. All databases can store it."""


ORDERS = {
    AccountOrder.NAME: "by name",
    AccountOrder.NEWEST: "newest first",
    AccountOrder.LARGEST: "largest first",
    AccountOrder.LAST_USED: "last active first",
}
"""Orders of the list of accounts."""


class PeoplePages(Struct, frozen=True):
    """The pages about all accounts, for the operator only. ``domain`` is that of the inboxes."""

    _accounts: ManageAccounts
    _audit: Audit
    _domain: str
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        one = f"{PATH}/<account_id>"
        return [
            Page("GET", PATH, self.show, costs.FREE, PERSON),
            Page("GET", f"{PATH}/activity", self.activity, costs.FREE, PERSON),
            Page("GET", one, self.edit, costs.FREE, PERSON),
            *with_form(
                self.edit,
                Page("POST", f"{one}/rename", self.rename, costs.AUDITED, PERSON),
                Page("POST", f"{one}/limits", self.set_limits, costs.AUDITED, PERSON),
                Page("POST", f"{one}/delete", self.delete, costs.AUDITED, PERSON),
            ),
            Page("POST", f"{one}/disable", self.disable, costs.AUDITED, PERSON),
            Page("POST", f"{one}/enable", self.enable, costs.AUDITED, PERSON),
            Page("POST", f"{one}/end-access", self.end_access, costs.AUDITED, PERSON),
        ]

    async def show(self, visit: Visit) -> Reply:
        """GET /account/people?search=&sort=.

        :raises NotOperator: the account is not the operator's. It is so on all of these pages.
        """
        visit.visitor.require_operator("see all accounts")
        search, sort = visit.query.text("search") or "", visit.query.text("sort") or ""
        order = AccountOrder(sort) if sort in set(AccountOrder) else AccountOrder.NAME
        uses = await self._accounts.uses()
        return self._renderer.page(
            visit,
            "people.html",
            uses=choose_uses(uses, search, order),
            total=len(uses),
            search=search,
            sort=order,
            orders=ORDERS,
            domain=self._domain,
        )

    async def activity(self, visit: Visit) -> Reply:
        """GET /account/people/activity?before=<position>: the audit log of all accounts."""
        visit.visitor.require_operator("see the activity of all accounts")
        before = visit.query.value("before", INTEGER, 0)
        entries = await self._audit.newest(None, before)
        return self._renderer.page(
            visit, "activity.html", entries=entries, page_size=PAGE, is_of_all=True, before=before
        )

    async def edit(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /account/people/<account_id>. A failure of a form is shown on the same page."""
        account = await self._find(visit)
        return self._renderer.page(
            visit,
            "person.html",
            error=failure,
            account=account,
            address=join_subaddress(account.mailbox_name, "", self._domain),
            holdings=await self._accounts.holdings(account),
            access=await self._accounts.access_of(account),
        )

    async def rename(self, visit: Visit) -> Reply:
        """POST /account/people/<account_id>/rename: name."""
        account = await self._find(visit)
        await self._accounts.rename(account, visit.form.text("name") or "", visit.actor)
        return self._back(visit, account)

    async def set_limits(self, visit: Visit) -> Reply:
        """POST /account/people/<account_id>/limits. An empty field is the configured limit."""
        account = await self._find(visit)
        names = AccountLimits.__struct_fields__
        limits = AccountLimits(**{name: _read_number(visit, name) for name in names})
        await self._accounts.set_limits(account, limits, visit.actor)
        return self._back(visit, account)

    async def disable(self, visit: Visit) -> Reply:
        """POST /account/people/<account_id>/disable."""
        account = await self._find(visit)
        await self._accounts.disable(account, visit.actor)
        return self._back(visit, account)

    async def end_access(self, visit: Visit) -> Reply:
        """POST /account/people/<account_id>/end-access."""
        account = await self._find(visit)
        await self._accounts.end_access(account, visit.actor)
        return redirect(visit, f"{PATH}/{account.id}", done="access-ended")

    async def enable(self, visit: Visit) -> Reply:
        """POST /account/people/<account_id>/enable."""
        account = await self._find(visit)
        await self._accounts.enable(account, visit.actor)
        return self._back(visit, account)

    async def delete(self, visit: Visit) -> Reply:
        """POST /account/people/<account_id>/delete: name, as a confirmation."""
        account = await self._find(visit)
        if (visit.form.text("name") or "").strip() != account.name:
            raise InvalidParameter("name", "enter the name of the account to confirm")
        await self._accounts.delete(account, visit.actor)
        return redirect(visit, PATH, done="account-deleted")

    async def _find(self, visit: Visit) -> Account:
        visit.visitor.require_operator("change accounts")
        return await self._accounts.get(visit.path["account_id"])

    def _back(self, visit: Visit, account: Account) -> Reply:
        return redirect(visit, f"{PATH}/{account.id}", done="account-changed")


def _read_number(visit: Visit, name: str) -> int | None:
    text = (visit.form.text(name) or "").strip().replace(",", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        problem = f"enter a whole number, or leave the field empty; got {text[:20]!r}"
        raise InvalidParameter(name, problem)
    return int(text)
