"""Reloads of the configuration, and the log lines of HTTP, by the real parts of a daemon."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from twisted.internet.task import Clock
from twisted.logger import LogEvent, LogLevel, capturedLogs, formatEvent

from mailcheck.assembly.deployment import accounts_to_find, backup_plan
from mailcheck.assembly.mail_programs import imap_factory, pop3_factory
from mailcheck.assembly.ops import Certificates, Environment
from mailcheck.assembly.probes import Probes
from mailcheck.assembly.running.reloading import Reloading, Servers, milter_access
from mailcheck.assembly.running.services import mail_factory
from mailcheck.assembly.workers import Workers
from mailcheck.checks.dnsbl.catalogue import Blocklist, TargetKind, packaged_catalogue_text
from mailcheck.config.options import (
    AlertOptions,
    Config,
    NamedOption,
    WebhookOptions,
    options_of,
)
from mailcheck.config.reading import load_config
from mailcheck.config.reloading import merge_config
from mailcheck.core.accounts import Caller, InboxState, Quota, RequestLimits
from mailcheck.core.errors import InvalidParameter, SignInFailed
from mailcheck.core.instants import Instant
from mailcheck.daemon.reserved_names import MissingAccounts
from mailcheck.milter.connection import MilterFactory
from mailcheck.operations.accounts.registration_rules import RegistrationRules
from mailcheck.operations.inbox.release_mail import ReleaseMail
from mailcheck.operations.reloads import ReloadReport
from mailcheck.ops.log import RENDERINGS, LogWriter
from mailcheck.smtp.settings import SmtpSettings
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, result_of, run
from tests.servers.certificates import Authority
from tests.table import rows
from tests.web.workers import FaultyWorker


def ours(events: Sequence[LogEvent], namespace: str) -> list[str]:
    """Return the lines of one module."""
    return [formatEvent(event) for event in events if event["log_namespace"].startswith(namespace)]


NAMES = ("first.example", "second.example")
FIRST, SECOND = (Authority().issue(name) for name in NAMES)

ZONE = "zen.spamhaus.org"
CATALOGUE = packaged_catalogue_text()


class Reloaded:
    """The parts of a daemon whose configuration file changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "mailcheck.toml"
        self.output = io.StringIO()
        self.log = LogWriter(self.output, RENDERINGS["text"], "info")
        self.house = House(config_in_memory())
        self.daemon = self.house.assembly
        self.daemon.runtime.config = self.read("")
        self.certificates = Certificates(self.config, self.daemon.runtime.conditions, Instant(0))
        self.environment = Environment(self.output, {}, self.log, self.read, {})
        self.servers = self._build_servers()
        missing = MissingAccounts(
            self.daemon.accounts.keep, lambda: accounts_to_find(self.config), Clock()
        )
        self._reloading = Reloading(
            self.daemon, self.servers, self.certificates, missing, self.environment
        )

    def _build_servers(self) -> Servers:
        daemon, tls_for = self.daemon, self.certificates.policy
        allowed, limits = milter_access(self.config)
        return Servers(
            sites=[self.house.site],
            mail=[mail_factory(daemon, tls_for, is_submission=False)],
            imap=[imap_factory(daemon, tls_for, is_tls=False)],
            pop3=[pop3_factory(daemon, tls_for, is_tls=False)],
            milter=[MilterFactory(daemon.traffic.score, allowed, limits, self.house.clock)],
        )

    @property
    def release(self) -> ReleaseMail:
        """The release of mail."""
        return self.daemon.inbox.release

    @property
    def config(self) -> Config:
        """The configuration in use."""
        return self.daemon.runtime.config

    def read(self, content: str | None = None) -> Config:
        """Read the file, after writing it if there is a content."""
        if content is not None:
            self.path.write_text(content)
        return load_config(self.path, {"MAILCHECK_STORAGE_STATE_DIRECTORY": str(self.folder)})

    def reload(self, content: str) -> ReloadReport:
        """Write another configuration and reload it. ``lines`` are those that are logged."""
        self.path.write_text(content)
        with capturedLogs() as events:
            report = self._reloading.reload()
        self.lines = [(event["log_level"], formatEvent(event)) for event in events]
        return report


@dataclass(frozen=True)
class Change:
    """A changed option. ``shows`` returns the value in use, in the parts of the daemon."""

    option: str
    toml: str
    value: Any
    shows: Callable[[Reloaded], Any]
    more: str = ""


def spamhaus(one: Reloaded) -> Blocklist:
    """Return a list of the catalogue in use."""
    return next(each for each in one.daemon.checks.catalogue.blocklists if each.zone == ZONE)


def limits_of_port(one: Reloaded, name: str) -> Any:
    """Return the limits of new connections of a server, as the port itself has them."""
    ((factory,),) = [getattr(one.servers, name)]
    protocol = factory.buildProtocol(None)
    factory.open.remove(protocol)
    return protocol.settings


RELAY = 'smtp_relay = "relay.example:25"\n'
LOGIN = f'{RELAY}user = "u"\npassword = "p"\n'
ALLOWED = 'allow_recipients = ["*=a@c.example"]\n'
SENDER = 'sender = "a@c.example"\n'
TO = f'relay = "a.example:7"\n{ALLOWED}'
NETWORK = ip_network("192.0.2.0/24")

CHANGES = [
    Change("inbox.max_messages", "7", 7, lambda one: quota(one).max_messages),
    Change("inbox.max_bytes", "7", 7, lambda one: quota(one).max_bytes),
    Change(
        "reports.mailboxes",
        '[{account = "first", maildir = "/mail"}]',
        ["/mail"],
        lambda one: [
            mailbox.name for mailbox in run(one.daemon.reports.fetching.of_account("first"))
        ],
    ),
    Change("smtp.max_recipients", "700", 700, lambda one: smtp(one).limits.recipients),
    Change("smtp.max_connections", "7", 7, lambda one: one.servers.mail[0].open.limits.in_all),
    Change(
        "smtp.max_connections_per_address",
        "7",
        7,
        lambda one: one.servers.mail[0].open.limits.of_address,
    ),
    Change("smtp.idle_timeout", "7", 7.0, lambda one: smtp(one).limits.idle),
    Change(
        "smtp.certificate",
        '"{folder}/server.pem"',
        True,
        lambda one: one.certificates.watched is not None,
        'private_key = "{folder}/server-key.pem"\n',
    ),
    Change(
        "smtp.private_key",
        '"{folder}/server-key.pem"',
        True,
        lambda one: one.certificates.watched is not None,
        'certificate = "{folder}/server.pem"\n',
    ),
    Change(
        "smtp.auth_without_tls", '"never"', "never", lambda one: smtp(one).auth_without_tls.value
    ),
    Change(
        "smtp.proxy_protocol_from",
        '["192.0.2.0/24"]',
        (NETWORK,),
        lambda one: smtp(one).proxy_protocol_from,
    ),
    Change("smtp.xclient_from", '["192.0.2.0/24"]', (NETWORK,), lambda one: smtp(one).xclient_from),
    Change("imap.max_connections", "7", 7, lambda one: one.servers.imap[0].open.limits.in_all),
    Change(
        "imap.max_connections_per_address",
        "7",
        7,
        lambda one: one.servers.imap[0].open.limits.of_address,
    ),
    Change("imap.idle_timeout", "7", 7.0, lambda one: limits_of_port(one, "imap").lines.idle),
    Change("pop3.max_connections", "7", 7, lambda one: one.servers.pop3[0].open.limits.in_all),
    Change(
        "pop3.max_connections_per_address",
        "7",
        7,
        lambda one: one.servers.pop3[0].open.limits.of_address,
    ),
    Change("pop3.idle_timeout", "7", 7.0, lambda one: limits_of_port(one, "pop3").lines.idle),
    Change(
        "milter.allow_from",
        '["192.0.2.0/24"]',
        (NETWORK,),
        lambda one: one.servers.milter[0].allowed,
    ),
    Change("milter.max_connections", "7", 7, lambda one: one.servers.milter[0].open.limits.in_all),
    Change(
        "web.trusted_proxies",
        '["192.0.2.0/24"]',
        True,
        lambda one: one.house.site.addresses.is_shared("192.0.2.7"),
    ),
    Change("web.max_connections", "7", 7, lambda one: one.house.site.connections.limits.in_all),
    Change(
        "web.max_connections_per_address",
        "7",
        7,
        lambda one: one.house.site.connections.limits.of_address,
    ),
    Change("storage.min_free", "7", 7, lambda one: one.daemon.receiver.settings.min_free),
    Change("backup.every", "7", 7 * 3_600, lambda one: one.daemon.backups.every),
    Change("backup.keep", "3", 3, lambda one: backup_plan(one.config).keep),
    Change(
        "backup.folder", '"/backup"', Path("/backup"), lambda one: backup_plan(one.config).folder
    ),
    Change("limits.requests_per_minute", "7", 7, lambda one: key_limits(one).per_minute),
    Change("limits.requests_per_day", "7", 7, lambda one: key_limits(one).per_day),
    Change(
        "limits.stranger_checks_per_day",
        "7",
        7,
        lambda one: one.daemon.accounts.stranger_checks.per_day,
    ),
    Change("limits.waits_per_key", "7", 7, lambda one: one.daemon.slots.waits.per_owner),
    Change("accounts.registration", '"open"', "open", lambda one: registration(one).mode.value),
    Change(
        "accounts.invite_by", '"owners"', "owners", lambda one: registration(one).invite_by.value
    ),
    Change("accounts.per_address", "7", 7, lambda one: registration(one).per_address),
    Change("blocklists.deadline", "7", 7.0, lambda one: one.daemon.checks.lists.deadline),
    Change(
        "blocklists.catalogue", '"{folder}/lists.toml"', "Renamed", lambda one: spamhaus(one).name
    ),
    Change("blocklists.disabled", f'["{ZONE}"]', False, lambda one: spamhaus(one).is_enabled),
    Change(
        "blocklists.keys",
        f'["{ZONE}=secretkey"]',
        True,
        lambda one: "secretkey" in spamhaus(one).query_zones[TargetKind.IPV4],
    ),
    Change(
        "blocklists.daily_budgets",
        f'["{ZONE}=7"]',
        7,
        lambda one: one.daemon.checks.budgets.limit_of(spamhaus(one)),
    ),
    Change("webhooks.allow", '["shop=10.0.0.0/8"]', True, lambda one: is_reserved(one, "shop")),
    Change(
        "alerts.allow_recipients",
        '["shop=ops@example.com"]',
        True,
        lambda one: is_reserved(one, "shop"),
    ),
    Change("alerts.smtp_relay", '"relay.example:7"', "relay.example:7", lambda one: alerts(one)[0]),
    Change("alerts.tls", '"offered"', "offered", lambda one: alerts(one)[1], RELAY),
    Change("alerts.user", '"v"', "v", lambda one: alerts(one)[2], f'{RELAY}password = "p"\n'),
    Change("alerts.password", '"q"', "q", lambda one: alerts(one)[3], f'{RELAY}user = "u"\n'),
    Change("alerts.from_address", '"a@b.example"', "a@b.example", lambda one: alerts(one)[4]),
    Change("release.relay", '"a.example:7"', True, lambda one: one.release.is_on, ALLOWED + SENDER),
    Change("release.sender", '"b@c.example"', "b@c.example", lambda one: one.release.sender, TO),
    Change(
        "release.allow_recipients",
        '["*=b@c.example"]',
        True,
        lambda one: one.release.settings.allowed.has("b@c.example", "x"),
        f'relay = "a.example:7"\n{SENDER}',
    ),
    Change("release.per_hour", "7", 7, lambda one: one.release.settings.per_hour),
    Change("release.tls", '"offered"', "offered", lambda one: released_over(one)[0]),
    Change("release.user", '"v"', "v", lambda one: released_over(one)[1], 'password = "p"\n'),
    Change("release.password", '"q"', "q", lambda one: released_over(one)[2], 'user = "u"\n'),
    Change("ops.log", '"json"', True, lambda one: one.log.render is RENDERINGS["json"]),
    Change("ops.log_level", '"debug"', True, lambda one: writes(one, LogLevel.debug)),
]
"""A change of each option that needs no restart, and where it shows."""


def quota(one: Reloaded) -> Quota:
    """Return the quota of a new inbox."""
    name = one.house.account.mailbox_name
    inbox: InboxState = result_of(one.daemon.mail.store.find_inbox(name))
    return inbox.quota


def smtp(one: Reloaded) -> SmtpSettings:
    """Return the settings of a new connection to the mail server."""
    settings: SmtpSettings = limits_of_port(one, "mail")
    return settings


def key_limits(one: Reloaded) -> RequestLimits:
    """Return the limits of a new key, which are those of checks on the pages too."""
    key = one.house.issue_key(one.house.account, per_minute=None, per_day=None)
    caller: Caller = run(one.daemon.accounts.authenticator.identify(key))
    assert caller.limits == one.daemon.accounts.checks.limits
    return caller.limits


def registration(one: Reloaded) -> RegistrationRules:
    """Return the policy for new accounts and for invitations to projects."""
    accounts = one.daemon.accounts
    assert accounts.projects.rules is accounts.register.rules
    return accounts.register.rules


def is_reserved(one: Reloaded, name: str) -> bool:
    """Return whether people cannot take a name, and the senders know the new configuration."""
    sent = one.house.receivers.config
    known = (*sent.webhooks.allow, *sent.alerts.allow_recipients)
    is_known = any(text.startswith(f"{name}=") for text in known)
    assert is_known == (name in registration(one).names.reserved)
    return is_known


def alerts(one: Reloaded) -> tuple[str, ...]:
    """Return the relay of alerts and its options, as their sender knows them."""
    options = one.house.receivers.config.alerts
    return options.smtp_relay, options.tls, options.user, options.password, options.from_address


def released_over(one: Reloaded) -> tuple[str, ...]:
    """Return the options of the relay of released mail, as their sender knows them."""
    options = one.house.receivers.config.release
    return options.tls, options.user, options.password


def writes(one: Reloaded, level: LogLevel) -> bool:
    """Return whether the log has lines of a level."""
    before = one.output.tell()
    one.log({"log_level": level, "log_format": "x", "log_time": 0.0})
    return bool(one.output.tell() > before)


def every_option() -> Iterator[tuple[str, NamedOption]]:
    """List the options of all sections."""
    for section in Config.__struct_fields__:
        for option in options_of(getattr(Config(), section)):
            yield section, option


def another_value(option: NamedOption) -> Any:
    """Return a value that differs from the default."""
    if option.described.tables is not None:
        return (option.described.tables(),)
    if isinstance(option.default, bool):
        return not option.default
    if isinstance(option.default, int | float):
        return option.default + 1
    return (*option.default, "x") if isinstance(option.default, tuple) else option.default + "x"


def test_each_changed_option_is_applied_or_named() -> None:
    """A reload names each changed option: either it is in use, or it needs a restart."""
    for section, option in every_option():
        now = Config()
        options = replace(getattr(now, section), **{option.name: another_value(option)})
        read, name = replace(now, **{section: options}), f"[{section}] {option.name}"
        merged = merge_config(now, read)
        applied = option.described.is_reloadable
        assert merged.changed == ((name,) if applied else ()), name
        assert merged.waiting == (() if applied else (name,)), name
        assert merged.config == (read if applied else now), name


def test_the_table_has_each_option_that_can_be_reloaded() -> None:
    """The table below has all options that declare it, and no other."""
    declared = {
        f"{section}.{option.name}"
        for section, option in every_option()
        if option.described.is_reloadable
    }
    assert {change.option for change in CHANGES} == declared


@rows(*CHANGES)
def test_a_change_is_in_use(tmp_path: Path, change: Change) -> None:
    """After a reload, the parts of the daemon use the new value, and the report names the option.

    A second reload changes nothing.
    """
    one = Reloaded(tmp_path)
    FIRST.write_to(tmp_path)
    (tmp_path / "lists.toml").write_text(CATALOGUE.replace('"Spamhaus ZEN"', '"Renamed"'))
    section, _, name = change.option.partition(".")
    assert change.shows(one) != change.value
    lines = f"[{section}]\n{change.more}{name} = {change.toml}\n"
    content = lines.replace("{folder}", str(tmp_path))
    report = one.reload(content)
    assert not report.problem
    assert f"[{section}] {name}" in report.applied
    assert report.waiting == ()
    assert change.shows(one) == change.value
    assert one.reload(content) == ReloadReport()
    assert one.lines == [(LogLevel.info, "reloaded: no option has changed")]
    one.house.close()


def test_what_needs_a_restart_is_named_until_then(tmp_path: Path) -> None:
    """A change that needs a restart is named by each reload, and is not in use."""
    one = Reloaded(tmp_path)
    content = '[inbox]\ndomain = "new.example"\n[limits]\nwaits_per_key = 7\n'
    assert one.reload(content) == ReloadReport(("[limits] waits_per_key",), ("[inbox] domain",))
    assert one.reload(content) == ReloadReport((), ("[inbox] domain",))
    assert one.lines[1:] == [(LogLevel.info, "needs a restart: [inbox] domain")]
    assert one.config.inbox.domain == Config().inbox.domain
    assert one.reload("") == ReloadReport(("[limits] waits_per_key",))


@rows(
    "[nonsense]\n",
    '[ops]\nlog_level = "loud"\n',
    "x =",
    '[smtp]\ncertificate = "/nowhere"\nprivate_key = "/nowhere"\n',
    '[blocklists]\ncatalogue = "/nowhere"\n',
    f'[blocklists]\nkeys_file = "/nowhere"\ndisabled = ["{ZONE}"]\n',
    '[blocklists]\ndisabled = ["list.example"]\n',
    '[alerts]\nuser = "u"\n',
)
def test_a_bad_configuration_changes_nothing(tmp_path: Path, content: str) -> None:
    """A reload of an invalid configuration reports the error and changes no option.

    This includes valid options in the same file, and files that the configuration names.
    """
    one = Reloaded(tmp_path)
    before = one.config
    if "[ops]" not in content:
        content += '[ops]\nlog_level = "debug"\n' if "=" in content else ""
    report = one.reload(content)
    assert report.problem
    assert (report.applied, report.waiting) == ((), ())
    ((level, line),) = one.lines
    assert level is LogLevel.error
    assert line == f"the configuration stays as it was: {report.problem}"
    assert one.config is before
    assert not writes(one, LogLevel.debug)
    one.house.close()


def test_a_renewed_certificate_is_named(tmp_path: Path) -> None:
    """A reload uses a renewed certificate; a broken renewal is a problem, and the old one stays."""
    certificate, key = FIRST.write_to(tmp_path)
    content = f'[smtp]\ncertificate = "{certificate}"\nprivate_key = "{key}"\n'
    one = Reloaded(tmp_path)
    one.reload(content)
    first = one.certificates.policy("192.0.2.7")
    SECOND.write_to(tmp_path)
    assert one.reload(content) == ReloadReport(("[smtp] certificate",))
    second = one.certificates.policy("192.0.2.7")
    assert second is not first
    certificate.write_text("x")
    assert "certificate" in one.reload(content).problem
    assert one.certificates.policy("192.0.2.7") is second


def test_open_lines_of_webhooks_end(tmp_path: Path) -> None:
    """A network that is no longer allowed gets no further event over an open connection."""
    one = Reloaded(tmp_path)
    one.reload('[webhooks]\nallow = ["first=10.0.0.0/8"]\n')
    deliver = one.daemon.webhooks.deliver
    run(deliver.start())
    made = one.house.ask("POST", "/inbox/webhooks", json={"url": "http://10.1.2.3/hook"})
    assert made.answer().status == 200
    one.house.pass_time(1)
    hung_up = one.house.receivers.hung_up
    one.reload("")
    assert one.house.receivers.hung_up == hung_up + 1
    run(deliver.stop())


def test_the_senders_know_the_changed_receivers(tmp_path: Path) -> None:
    """The real senders of webhooks and alerts allow what a changed configuration allows."""
    one = Reloaded(tmp_path)
    runtime = one.daemon.runtime
    probes = Probes(
        Config(),
        Clock(),
        runtime.clocks,
        runtime.resolvers.plain,
        runtime.persistent_state,
    )
    asked = (
        lambda: probes.require_allowed("http://10.1.2.3/hook", "shop"),
        lambda: probes.require_mailable("ops@example.com", "shop"),
    )
    for ask in asked:
        with pytest.raises(InvalidParameter):
            ask()
    probes.change(
        Config(
            webhooks=WebhookOptions(allow=("shop=10.0.0.0/8",)),
            alerts=AlertOptions(
                smtp_relay="relay.example:25", allow_recipients=("shop=ops@example.com",)
            ),
        )
    )
    for ask in asked:
        ask()


JOURNAL = "mailcheck.ops.journal"


def test_a_fault_of_http_has_a_line(logged_failures: list[LogEvent]) -> None:
    """The line of a 500 has the reference of the response, and no share link."""
    reader = FaultyWorker()
    house = House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))
    reader.fault = RuntimeError("broken")
    token = "a" * 52
    with capturedLogs() as events:
        reference = house.open(f"/share/{token}").answer().json["reference"]
    (line,) = ours(events, JOURNAL)
    assert re.match(
        rf"HTTP 500: client=\S+ reference={reference} method=GET path=/share/\.\.\. "
        "why=internal error",
        line,
    )
    assert not any(token in formatEvent(event) for event in events)
    assert len(logged_failures) == 1


def test_what_is_answered_well_has_no_line(house: House) -> None:
    """Successful requests and mistakes of clients are counted, not logged."""
    with capturedLogs() as events:
        house.get("/inbox")
        house.get("/nowhere")
    assert ours(events, JOURNAL) == []
    assert sorted(house.site.answers.counts.items()) == [
        (("GET /api/v1/inbox", "200"), 1),
        (("none", "404"), 1),
    ]
    assert {route: taken.count for (route,), taken in house.site.seconds.items()} == {
        "GET /api/v1/inbox": 1,
        "none": 1,
    }


def test_a_failed_sign_in_has_a_line(house: House) -> None:
    """The line of a failed sign-in has the client's address, but neither name nor password."""
    with capturedLogs() as events, pytest.raises(SignInFailed):
        run(house.assembly.accounts.sign_in.sign_in("my-password", "hunter2", "203.0.113.9"))
    (line,) = ours(events, JOURNAL)
    assert line == ("failed sign-in: client=203.0.113.9 why=no account has this name and password")
