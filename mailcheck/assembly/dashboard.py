"""Builds the dashboard: the operations of who signs in, and the pages."""

from collections.abc import Callable, Sequence
from ipaddress import ip_network
from typing import Any

from mailcheck.assembly.deployment import mail_server, reserved_names, submission_server
from mailcheck.config.options import Config
from mailcheck.core.accounts import RequestLimits
from mailcheck.operations.accounts.authenticate import Authenticator, CheckBudget, RequestMeter
from mailcheck.operations.accounts.keep_accounts import KeepAccounts, OwnKeys
from mailcheck.operations.accounts.passwords import PasswordHasher, ScryptCost
from mailcheck.operations.accounts.register import (
    Invitations,
    Register,
    Registration,
    RegistrationRules,
)
from mailcheck.operations.accounts.sign_in import Attempts, DashboardSessions, SignIn
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.engine import Engine
from mailcheck.ports.journals import AccessJournal
from mailcheck.ports.workers import Worker
from mailcheck.store.accounts.account_store import PasswordStore, SessionStore
from mailcheck.web.dashboard.accounts.key_pages import KeyPages
from mailcheck.web.dashboard.accounts.pages import AccountPages, ServerNames, SignInPages
from mailcheck.web.dashboard.accounts.webhook_pages import WebhookPages
from mailcheck.web.dashboard.admission import Admission
from mailcheck.web.dashboard.application import Dashboard
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.static_files import StaticFiles
from mailcheck.web.dashboard.visits import Page
from mailcheck.web.site.requests import ClientAddresses, RequestUrls


def check_budget(config: Config, meter: RequestMeter) -> CheckBudget:
    """Give the budget of the checks that accounts start on the pages."""
    limits = config.limits
    return CheckBudget(meter, RequestLimits(limits.requests_per_minute, limits.requests_per_day))


class DashboardAssembly:
    """Everything of the dashboard, built once."""

    def __init__(
        self,
        config: Config,
        engine: Engine,
        worker: Worker,
        accounts: KeepAccounts,
        meter: RequestMeter,
        journal: AccessJournal,
        refuses_mail: Callable[[], bool],
        time_and_chance: TimeAndChance,
    ) -> None:
        options = config.accounts
        self._config = config
        self._refuses_mail = refuses_mail
        self._accounts = accounts
        self._meter = meter
        self._time_and_chance = time_and_chance
        passwords = PasswordStore(engine)
        cost = ScryptCost(options.password_cost)
        hasher = PasswordHasher(worker, cost, time_and_chance.random_bytes, time_and_chance.clock)
        attempts = Attempts(meter, time_and_chance.now)
        self.sessions = DashboardSessions(SessionStore(engine), time_and_chance)
        self.invitations = Invitations(passwords, time_and_chance)
        self.sign_in = SignIn(passwords, hasher, self.sessions, attempts, journal, time_and_chance)
        self.register = Register(
            RegistrationRules(
                Registration(options.registration),
                options.per_address,
                reserved_names(config),
                is_first_ours=options.bootstrap,
            ),
            accounts,
            passwords,
            hasher,
            self.sign_in,
            self.invitations,
            attempts,
            time_and_chance.now,
        )

    def resource(
        self,
        urls: RequestUrls,
        authenticator: Authenticator,
        inbox: InboxOperations,
        *more: Callable[[Renderer], Sequence[Page]],
    ) -> Any:
        """Build what answers at ``<public_url>/``; ``more`` make the pages of other rooms."""
        networks = [ip_network(text) for text in self._config.web.trusted_proxies]
        static = StaticFiles()
        renderer = Renderer(static, self._refuses_mail)
        admission = Admission(self.sessions, urls, ClientAddresses(networks), self._time_and_chance)
        pages = [*static.pages(), *self._account_pages(authenticator, inbox, renderer)]
        for make_pages in more:
            pages += make_pages(renderer)
        return Dashboard(admission, renderer, pages).resource()

    def _account_pages(
        self, authenticator: Authenticator, inbox: InboxOperations, renderer: Renderer
    ) -> list[Page]:
        keys = OwnKeys(self._accounts, authenticator, self._meter)
        budget = check_budget(self._config, self._meter)
        options = self._config.inbox
        submission = submission_server(self._config)
        servers = ServerNames(options.domain, mail_server(self._config), submission)
        key_pages = KeyPages(
            keys, inbox.webhooks, budget, renderer, submission, has_faults=options.faults
        )
        webhook_pages = WebhookPages(inbox.webhooks, budget, renderer, key_pages.show_with)
        return [
            *SignInPages(self.sign_in, self.register, self.sessions, renderer).pages(),
            *AccountPages(
                self.sign_in, self.register, self.invitations, keys, inbox.read, servers, renderer
            ).pages(),
            *key_pages.pages(),
            *webhook_pages.pages(),
        ]
