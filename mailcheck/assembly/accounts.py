"""Builds accounts: API keys, passwords and limits of requests."""

from msgspec import Struct
from twisted.application.service import Service

from mailcheck.assembly.deployment import reserved_names
from mailcheck.assembly.runtime import Runtime
from mailcheck.config.options import Config, OidcOptions
from mailcheck.core.accounts import RequestLimits
from mailcheck.core.memory.instruments import Tally
from mailcheck.core.signing_in.company import parse_group_role
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.retention import AUDIT_INTERVAL, AuditRetention, retention_service
from mailcheck.operations.accounts.administer import Administer
from mailcheck.operations.accounts.audit import Audit
from mailcheck.operations.accounts.authenticate import (
    ACCESS_INTERVAL,
    Authenticator,
    CheckBudget,
    EndedAccess,
    RequestMeter,
    StrangerBudget,
)
from mailcheck.operations.accounts.company_sign_in import CompanyRules, CompanySignIn
from mailcheck.operations.accounts.confirm import Confirmation
from mailcheck.operations.accounts.id_tokens import Provider
from mailcheck.operations.accounts.log_in import LogIn
from mailcheck.operations.accounts.manage_accounts import ManageAccounts
from mailcheck.operations.accounts.own_keys import OwnKeys
from mailcheck.operations.accounts.passkeys import Passkeys, relying_party_of
from mailcheck.operations.accounts.passwords import PasswordHasher, ScryptCost
from mailcheck.operations.accounts.projects import ManageProjects
from mailcheck.operations.accounts.register import Invitations, Register
from mailcheck.operations.accounts.registration_rules import (
    InviteBy,
    NameRules,
    Registration,
    RegistrationRules,
)
from mailcheck.operations.accounts.sign_in import Attempts, DashboardSessions, SignIn
from mailcheck.operations.follow_audit import JOURNAL_INTERVAL, AuditJournal
from mailcheck.operations.oauth.clients import OAuthClients, OpenTo
from mailcheck.operations.oauth.grants import AccessTokens, Grants
from mailcheck.ports.cluster import Notifications
from mailcheck.store.accounts.account_removal import AccountRemoval
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.accounts.audit_store import AuditStore
from mailcheck.store.accounts.identity_store import IdentityStore
from mailcheck.store.accounts.oauth_store import OAuthStore
from mailcheck.store.accounts.passkey_store import PasskeyStore
from mailcheck.store.accounts.project_store import ProjectStore
from mailcheck.store.accounts.sign_in_store import PasswordStore, SessionStore

KEY_USE_INTERVAL = 30.0
"""Seconds between writes of the times at which keys were last used."""


class AccountParts(Struct, frozen=True):
    """The operations on accounts. ``checks`` limits checks that accounts start on the pages.

    ``oauth_outcomes`` counts requests to the authorization server by endpoint and outcome.
    """

    keep: ManageAccounts
    meter: RequestMeter
    checks: CheckBudget
    stranger_checks: StrangerBudget
    authenticator: Authenticator
    ended_access: EndedAccess
    sessions: DashboardSessions
    invitations: Invitations
    sign_in: SignIn
    log_in: LogIn
    register: Register
    audit: Audit
    audit_store: AuditStore
    audit_changes: Notifications[str]
    audit_journal: AuditJournal
    audit_retention: AuditRetention
    projects: ManageProjects
    own_keys: OwnKeys
    administer: Administer
    oauth_clients: OAuthClients
    grants: Grants
    access_tokens: AccessTokens
    attempts: Attempts
    oauth_outcomes: Tally
    company: CompanySignIn | None
    confirmation: Confirmation
    passkeys: Passkeys | None
    passkey_store: PasskeyStore
    names: NameRules


def request_limits(config: Config) -> RequestLimits:
    """Return the limits of keys without their own."""
    return RequestLimits(config.limits.requests_per_minute, config.limits.requests_per_day)


def registration_rules(config: Config, names: NameRules) -> RegistrationRules:
    """Return the policy for new accounts."""
    options = config.accounts
    return RegistrationRules(
        # Nobody can choose a password then.
        Registration(options.registration) if options.passwords else Registration.CLOSED,
        options.per_address,
        names,
        is_first_ours=options.bootstrap,
        invite_by=InviteBy(options.invite_by),
    )


def build_accounts(runtime: Runtime) -> AccountParts:
    """Build the operations on accounts."""
    clocks, engine, now = runtime.clocks, runtime.engine, runtime.now
    options = runtime.config.accounts
    store, passwords = AccountStore(engine), PasswordStore(engine)
    audit_store = AuditStore(engine)
    ended_access, changes = EndedAccess(store, now), runtime.cluster.notifications("ended access")
    changes.listen(ended_access.on_hint)
    runtime.cluster.when_hints_are_lost(ended_access.on_hint)
    audit = Audit(audit_store, changes, clocks)
    keep = ManageAccounts(store, AccountRemoval(engine), audit, clocks)
    meter = RequestMeter(runtime.cluster.counters, now)
    default = request_limits(runtime.config)
    hasher = PasswordHasher(
        runtime.workers.passwords,
        ScryptCost(options.password_cost),
        clocks.random_bytes,
        runtime.clock,
    )
    attempts = Attempts(meter, now)
    sessions = DashboardSessions(SessionStore(engine), audit, clocks)
    invitations = Invitations(passwords, audit, clocks)
    sign_in = SignIn(
        passwords,
        hasher,
        sessions,
        audit,
        attempts,
        journal=runtime.clients,
        clocks=clocks,
        links=IdentityStore(engine),
        digest_key=clocks.random_bytes(32),
        has_passwords=options.passwords,
    )
    names = NameRules(reserved_names(runtime.config))
    rules = registration_rules(runtime.config, names)
    authenticator = Authenticator(store, default, now)
    projects = ManageProjects(ProjectStore(engine), keep, rules, audit, clocks)
    own_keys = OwnKeys(keep, authenticator, meter, now)
    oauth_store, open_to = OAuthStore(engine), OpenTo(runtime.config.web.oauth_clients)
    oauth_clients = OAuthClients(
        oauth_store,
        runtime.probes,
        attempts,
        audit,
        open_to,
        schemes=runtime.config.web.oauth_schemes,
        clocks=clocks,
    )
    company = build_company(runtime, keep, projects, names, sign_in, attempts=attempts, audit=audit)
    passkeys = build_passkeys(runtime, sign_in, attempts, audit)
    return AccountParts(
        keep=keep,
        meter=meter,
        checks=CheckBudget(meter, default),
        stranger_checks=StrangerBudget(meter, runtime.config.limits.stranger_checks_per_day),
        authenticator=authenticator,
        ended_access=ended_access,
        sessions=sessions,
        invitations=invitations,
        sign_in=sign_in,
        log_in=LogIn(authenticator, ended_access, passwords, sign_in),
        register=Register(
            rules=rules,
            accounts=keep,
            store=passwords,
            hasher=hasher,
            sign_in=sign_in,
            invitations=invitations,
            projects=projects,
            attempts=attempts,
            audit=audit,
            now=now,
        ),
        audit=audit,
        audit_store=audit_store,
        audit_changes=changes,
        audit_journal=AuditJournal(audit_store),
        audit_retention=AuditRetention(audit_store, now),
        projects=projects,
        own_keys=own_keys,
        administer=Administer(projects, own_keys),
        oauth_clients=oauth_clients,
        grants=Grants(
            oauth_store,
            oauth_clients,
            keep,
            projects,
            audit,
            clocks=clocks,
        ),
        access_tokens=AccessTokens(oauth_store, authenticator, now),
        attempts=attempts,
        oauth_outcomes=Tally(),
        company=company,
        confirmation=Confirmation(sign_in, sessions, passkeys, company, runtime.clients, now=now),
        passkeys=passkeys,
        passkey_store=PasskeyStore(engine),
        names=names,
    )


def build_passkeys(
    runtime: Runtime, sign_in: SignIn, attempts: Attempts, audit: Audit
) -> Passkeys | None:
    """Build the operations on passkeys, if browsers allow them at the public URL."""
    site = relying_party_of(runtime.config.web.public_url)
    if site is None:
        return None
    store, clocks = PasskeyStore(runtime.engine), runtime.clocks
    return Passkeys(site, store, sign_in, attempts, audit, journal=runtime.clients, clocks=clocks)


def company_rules(options: OidcOptions, id_claim: str) -> CompanyRules:
    """Return how people of the company sign in."""
    return CompanyRules(
        options.client_id,
        options.client_secret,
        options.title,
        options.scopes,
        options.groups_claim,
        allowed_groups=options.allowed_groups,
        roles=[parse_group_role(role) for role in options.roles],
        creates_accounts=options.create_accounts,
        id_claim=id_claim,
    )


def build_company(
    runtime: Runtime,
    keep: ManageAccounts,
    projects: ManageProjects,
    names: NameRules,
    sign_in: SignIn,
    attempts: Attempts,
    audit: Audit,
) -> CompanySignIn | None:
    """Build the sign-in with the accounts of a company, if it is configured."""
    options, provider = runtime.config.oidc, runtime.identity_provider
    if provider is None:
        return None
    return CompanySignIn(
        rules=company_rules(options, runtime.config.scim.id_claim),
        provider=Provider(options.issuer, provider, runtime.now),
        identities=IdentityStore(runtime.engine),
        accounts=keep,
        projects=projects,
        names=names,
        sign_in=sign_in,
        attempts=attempts,
        audit=audit,
        journal=runtime.clients,
        clocks=runtime.clocks,
    )


def account_services(runtime: Runtime, accounts: AccountParts) -> list[Service]:
    """Return the services that save when keys were used, and detect ended access."""
    return [
        PeriodicService(
            "noting key uses",
            KEY_USE_INTERVAL,
            accounts.authenticator.save_key_uses,
            runtime.clock,
            ends_with_round=True,
        ),
        PeriodicService(
            "ended access", ACCESS_INTERVAL, accounts.ended_access.check, runtime.clock
        ),
        PeriodicService(
            "journal of the audit log",
            JOURNAL_INTERVAL,
            accounts.audit_journal.write,
            runtime.clock,
            ends_with_round=True,
        ),
        retention_service(
            "retention of the audit log",
            AUDIT_INTERVAL,
            accounts.audit_retention.sweep,
            runtime.clock,
        ),
    ]
