"""Every option with its default and what it means; `etc/mailcheck.toml` is printed from here."""

from dataclasses import Field, dataclass, field
from typing import Any

SELF_SIGNED = "self-signed"
"""A certificate that the daemon signs, offered to clients on its own machine as well."""

MEBIBYTE = 1024 * 1024
GIBIBYTE = 1024 * MEBIBYTE

AUTO = "auto"


def option(
    default: Any,
    text: str,
    *,
    lowest: float | None = None,
    highest: float | None = None,
    choices: tuple[str, ...] = (),
    is_secret: bool = False,
    is_number_too: bool = False,
) -> Any:
    """Describe an option; a secret one can also come from a file, ``<name>_file``.

    ``is_number_too``: a whole number may stand in the place of a word.
    """
    return field(
        default=default,
        metadata={
            "text": text,
            "lowest": lowest,
            "highest": highest,
            "choices": choices,
            "is_secret": is_secret,
            "is_number_too": is_number_too,
        },
    )


@dataclass(frozen=True, slots=True)
class InboxOptions:
    """The developer inboxes."""

    domain: str = option(
        "mailcheck.example", "Domain of the inbox addresses. Its MX must lead to this server."
    )
    aliases: tuple[str, ...] = option((), "Further domains of the same inboxes.")
    retention_hours: float = option(
        24.0, "Hours until a message expires.", lowest=0.01, highest=24 * 365
    )
    max_messages: int = option(
        10_000, "Messages an inbox may hold; over it senders are told to try later.", lowest=1
    )
    max_bytes: int = option(GIBIBYTE, "Bytes of raw mail an inbox may hold.", lowest=1)
    faults: bool = option(
        True,
        "Simulate a failure for mail to tags such as fault.data-451: see "
        "docs/how-to/simulate-failures.md.",
    )


@dataclass(frozen=True, slots=True)
class SmtpOptions:
    """The mail receiver."""

    listen: tuple[str, ...] = option(
        ("127.0.0.1:2525",),
        "Where mail is received: host:port, or a Twisted endpoint (systemd:domain=INET:name=smtp).",
    )
    submission_listen: tuple[str, ...] = option(
        ("127.0.0.1:2587",),
        "Where programs under test hand mail in with an API key as the password.",
    )
    broken_tls_listen: tuple[str, ...] = option(
        (),
        "Where a second submission port offers STARTTLS that always fails, for tests of programs. "
        "Empty: nowhere.",
    )
    host_name: str = option("", "Name in the greeting; empty: the inbox domain.")
    max_message_size: int = option(
        25 * MEBIBYTE, "Largest message in bytes.", lowest=65_536, highest=GIBIBYTE
    )
    max_recipients: int = option(
        100, "Recipients of one message (RFC 5321 asks for at least 100).", lowest=100
    )
    max_connections: int = option(
        5_000,
        "Connections at a time, of all clients. Beyond it the one that is idle longest without a "
        "mail makes room for the first of a new client.",
        lowest=1,
    )
    max_connections_per_address: int = option(
        100, "Connections at a time of one public client address.", lowest=1
    )
    idle_timeout: float = option(
        300.0, "Seconds until a silent client is disconnected.", lowest=1, highest=3_600
    )
    certificate: str = option(
        "",
        "PEM file with the certificate chain offered by STARTTLS to everyone. "
        "Empty: one that the daemon signs itself, offered to public client addresses only. "
        "self-signed: that one is offered to everyone; programs on this machine trust it by "
        "smtp-ca.pem in the state directory (SSL_CERT_FILE, NODE_EXTRA_CA_CERTS).",
    )
    private_key: str = option("", "PEM file with the key of the certificate.")
    auth_without_tls: str = option(
        "private",
        "Who may log in over an unencrypted connection: private (loopback and private networks), "
        "never, always.",
        choices=("private", "never", "always"),
    )
    proxy_protocol_from: tuple[str, ...] = option(
        (), "Networks whose hosts must send a PROXY protocol header (v1 or v2) first."
    )
    xclient_from: tuple[str, ...] = option(
        (), "Networks whose hosts may speak for other clients by XCLIENT and XFORWARD."
    )


@dataclass(frozen=True, slots=True)
class WebOptions:
    """The HTTP side."""

    listen: tuple[str, ...] = option(
        ("127.0.0.1:8080",), "Where HTTP is served: host:port or a Twisted endpoint."
    )
    public_url: str = option(
        "",
        "Address under which people reach it, without a slash at the end. Empty: the one that "
        "a trusted proxy was asked for, else the first listen.",
    )
    proxy_protocol_from: tuple[str, ...] = option(
        (), "Networks whose hosts must send a PROXY protocol header (v1 or v2) first."
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        "Networks whose X-Forwarded-For and X-Forwarded-Proto are believed. With the latter and "
        "no public_url, links begin with that scheme and the Host that was asked for.",
    )
    max_connections: int = option(
        10_000,
        "Connections at a time, of all clients; at most half of the files that the process may "
        "open. Beyond it the one idle longest is closed; where none is idle, new ones get 503.",
        lowest=1,
    )
    max_connections_per_address: int = option(
        1_000,
        "Connections at a time of one public client address (IPv6: its /64). Trusted proxies and "
        "private addresses are exempt.",
        lowest=1,
    )


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Where mail is kept."""

    url: str = option(
        "sqlite:var/mailcheck.db",
        "The database: sqlite:<path>, or postgresql://user:password@host/name. What a postgresql "
        "URL leaves out libpq finds as ever (PGPASSFILE, PGSERVICE): see "
        "docs/how-to/set-up-postgresql.md.",
        is_secret=True,
    )
    min_free: int | str = option(
        AUTO,
        "Bytes of disk that stay free; below it senders are told to try later (SQLite). auto: 1 "
        "GiB, or a twentieth of a disk that is smaller than 20 GiB.",
        lowest=0,
        choices=(AUTO,),
        is_number_too=True,
    )
    state_directory: str = option(
        "var", "Folder for what is not in the database: the self-signed certificate, the first key."
    )

    @property
    def is_shared(self) -> bool:
        """Tell whether several daemons can work on the database: it is a server, and no file."""
        return not self.url.startswith("sqlite:")

    @property
    def file(self) -> str:
        """Give the path of the database where it is a file."""
        return self.url.partition(":")[2]


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Settings of several daemons on one PostgreSQL: see `docs/how-to/run-several-daemons.md`."""

    redis: str = option(
        "",
        "The Redis of all daemons: redis://[[user]:password@]host[:port][/database], rediss:// "
        "(TLS) or unix:/path. Without it one daemon serves a database.",
        is_secret=True,
    )
    ca_file: str = option(
        "", "PEM file with the authorities that its certificate is checked against. Empty: public."
    )


@dataclass(frozen=True, slots=True)
class LimitsOptions:
    """What an API key may do; `mailcheck key issue` can give a key limits of its own."""

    requests_per_minute: int = option(60, "Requests in a clock minute.", lowest=1)
    requests_per_day: int = option(1_000, "Requests in a UTC day.", lowest=1)
    waits_per_key: int = option(100, "Waits parked at a time.", lowest=1)


@dataclass(frozen=True, slots=True)
class AccountsOptions:
    """How accounts come about."""

    bootstrap: bool = option(
        False, "Create an account with a key on the first start (`make run` does)."
    )
    bootstrap_key: str = option(
        "", "The API key of that account, chosen by you: for CI services.", is_secret=True
    )
    registration: str = option(
        "invite",
        "Who may sign up on the dashboard: open (everybody), invite (people with a link of "
        "`mailcheck account invite`), closed. `make run` on a loopback address sets open.",
        choices=("open", "invite", "closed"),
    )
    per_address: int = option(
        20, "Accounts that one client address may make in a UTC day.", lowest=1
    )
    password_cost: int = option(
        15,
        "Work of hashing a password: scrypt's N as a power of two (r 8, p 3). 15 needs 32 MiB and "
        "0.2 seconds; existing hashes follow as people sign in.",
        lowest=10,
        highest=20,
    )


@dataclass(frozen=True, slots=True)
class DnsOptions:
    """How the checks ask DNS."""

    resolvers: tuple[str, ...] = option(
        (), "Recursive resolvers, address or address:port. Empty: those of the system."
    )
    allow_special_use: bool = option(
        False, "Accept .test, .internal, .local and their like in checks: for test zones."
    )
    validating: bool = option(
        False,
        "The resolvers validate DNSSEC and the way to them is safe: their word is believed "
        "(DNSSEC and DANE are undetermined without).",
    )


@dataclass(frozen=True, slots=True)
class BlocklistOptions:
    """The DNS blocklists."""

    resolvers: tuple[str, ...] = option(
        (),
        "Resolvers for questions to blocklists, which refuse public ones. Empty: those of [dns].",
    )
    deadline: float = option(
        3.0, "Seconds after which a list that has not answered is unknown.", lowest=0.1, highest=10
    )
    catalogue: str = option(
        "",
        "A catalogue file of your own: what `mailcheck config blocklists` prints, changed."
        " Empty: the one of the package.",
    )
    disabled: tuple[str, ...] = option((), "Zones that are not asked.")
    keys: tuple[str, ...] = option(
        (), "Keys that operators of lists gave you, each as zone=key.", is_secret=True
    )
    daily_budgets: tuple[str, ...] = option(
        (), "Questions a zone gets in a UTC day, each as zone=number; 0: no limit."
    )


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Connections to mail hosts, registries and policy files."""

    smtp_port: int = option(25, "Port of the STARTTLS probe.", lowest=1, highest=65_535)
    rdap_bootstrap: str = option(
        "https://data.iana.org/rdap/dns.json", "Where the registries' RDAP servers are listed."
    )
    ca_file: str = option(
        "", "PEM file with the authorities that certificates are checked against. Empty: public."
    )


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """What checks may reach."""

    allow_private: bool = option(
        False, "Let probes and checks reach private addresses: for tests only, never in public."
    )


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Webhooks, which send new mail to other programs: see `docs/how-to/receive-webhooks.md`."""

    allow: tuple[str, ...] = option(
        (),
        "Networks that are not public, and which account may be told of its mail in each: "
        "account=network, like developer=127.0.0.0/8. The names of the accounts are reserved. "
        "mailcheck's own ports are never posted to.",
    )


@dataclass(frozen=True, slots=True)
class AlertOptions:
    """Alerts of watches by mail: see `docs/how-to/watch-a-domain.md`."""

    smtp_relay: str = option(
        "",
        "The server that takes mail for others: host:port. Empty: alerts go by no mail but that to "
        "the account's own inbox, and to webhooks.",
    )
    tls: str = option(
        "required",
        "When the connection is encrypted by STARTTLS, with a certificate that is checked: "
        "required, offered (where the relay offers it), never (one on this machine, say).",
        choices=("required", "offered", "never"),
    )
    user: str = option("", "User that signs in there. Empty: nobody does.")
    password: str = option("", "Password of the user.", is_secret=True)
    from_address: str = option("", "Whom the mails are from. Empty: alerts@ the inbox domain.")
    allow_recipients: tuple[str, ...] = option(
        (),
        "Whom alerts may be mailed to, and of which account: account=address, or "
        "account=@domain for all of its addresses; * is every account. Others get no mail. "
        "The names of the accounts are reserved.",
    )


@dataclass(frozen=True, slots=True)
class DeliverabilityOptions:
    """Deliverability tests."""

    retention_days: int = option(
        7,
        "Days that a test and its mail are kept after the mail came in.",
        lowest=1,
        highest=365,
    )


@dataclass(frozen=True, slots=True)
class SpamassassinOptions:
    """The content filter of deliverability tests."""

    spamd: str = option(
        "auto",
        "The spamd to ask: host:port or unix:/path. auto: one that runs on this machine, else a "
        "private one is started when the program is installed. off: none.",
    )
    user: str = option("nobody", "User that a private spamd runs as, where the daemon is root.")
    network_tests: bool = option(
        False,
        "Let a private spamd ask DNS and other services: slower, and mailcheck's own checks cover "
        "most of it.",
    )
    concurrency: int = option(
        2,
        "Mails judged at a time; a private spamd holds about 120 MB for each.",
        lowest=1,
        highest=50,
    )


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """The process itself."""

    processes: int = option(
        1,
        "Processes on this machine that share the ports; more than one need PostgreSQL and "
        "[cluster] redis. Each serves /metrics on a port of its own: that of [ops] listen for the "
        "first, the next one for the second, and so on.",
        lowest=1,
        highest=64,
    )


@dataclass(frozen=True, slots=True)
class OpsOptions:
    """What an operator sees of a running daemon."""

    listen: tuple[str, ...] = option(
        ("127.0.0.1:9464",),
        "Where /metrics is served for Prometheus, to whoever asks: host:port or a Twisted "
        "endpoint. A port that is taken is named in the log, and the daemon runs on. "
        "Empty: nowhere.",
    )
    log: str = option(
        "text",
        "How the log is written: text (a line for each event), or json (an object on each).",
        choices=("text", "json"),
    )
    log_level: str = option(
        "info",
        "What is written: debug, info (a line for each mail and each refusal), warn, error. "
        "SIGHUP reads it again.",
        choices=("debug", "info", "warn", "error"),
    )
    manhole: str = option(
        "",
        "Where a Python shell inside the daemon is reached by SSH: 127.0.0.1:port, [::1]:port or "
        "unix:path. Whoever gets in can do all that the daemon can. Empty: there is none.",
    )
    manhole_keys: str = option(
        "", "File with the public keys that open the shell, as OpenSSH's authorized_keys."
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration; a section of the file for each field."""

    inbox: InboxOptions = field(default_factory=InboxOptions)
    smtp: SmtpOptions = field(default_factory=SmtpOptions)
    web: WebOptions = field(default_factory=WebOptions)
    storage: StorageOptions = field(default_factory=StorageOptions)
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    daemon: DaemonOptions = field(default_factory=DaemonOptions)
    limits: LimitsOptions = field(default_factory=LimitsOptions)
    accounts: AccountsOptions = field(default_factory=AccountsOptions)
    dns: DnsOptions = field(default_factory=DnsOptions)
    blocklists: BlocklistOptions = field(default_factory=BlocklistOptions)
    probes: ProbeOptions = field(default_factory=ProbeOptions)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    webhooks: WebhookOptions = field(default_factory=WebhookOptions)
    alerts: AlertOptions = field(default_factory=AlertOptions)
    tests: DeliverabilityOptions = field(default_factory=DeliverabilityOptions)
    spamassassin: SpamassassinOptions = field(default_factory=SpamassassinOptions)
    ops: OpsOptions = field(default_factory=OpsOptions)


OptionField = Field[Any]
