"""All options with their defaults and descriptions. `etc/mailcheck.toml` is generated from them."""

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
    """Describe an option. A secret one can also be read from a file, ``<name>_file``.

    ``is_number_too``: the option accepts an integer as well as a word.
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
        "mailcheck.example", "Domain of the inbox addresses. Its MX record must name this server."
    )
    aliases: tuple[str, ...] = option((), "Additional domains of the inbox addresses.")
    retention_hours: float = option(
        24.0, "Hours until a message expires.", lowest=0.01, highest=24 * 365
    )
    max_messages: int = option(
        10_000,
        "Maximum number of messages in an inbox; above it, mail gets a temporary error.",
        lowest=1,
    )
    max_bytes: int = option(GIBIBYTE, "Maximum bytes of raw mail in an inbox.", lowest=1)
    faults: bool = option(
        True,
        "Simulate a failure for mail to tags such as fault.data-451: see "
        "docs/how-to/simulate-failures.md.",
    )


@dataclass(frozen=True, slots=True)
class SmtpOptions:
    """The SMTP server."""

    listen: tuple[str, ...] = option(
        ("127.0.0.1:2525",),
        "Addresses for mail: host:port, or a Twisted endpoint (systemd:domain=INET:name=smtp).",
    )
    submission_listen: tuple[str, ...] = option(
        ("127.0.0.1:2587",),
        "Addresses for programs that submit mail. They log in with an API key as the password, or "
        "with name and password of an account.",
    )
    broken_tls_listen: tuple[str, ...] = option(
        (),
        "A second submission port on which STARTTLS always fails, to test programs. Empty: none.",
    )
    host_name: str = option("", "Name in the greeting; empty: the inbox domain.")
    max_message_size: int = option(
        25 * MEBIBYTE, "Maximum bytes of a message.", lowest=65_536, highest=GIBIBYTE
    )
    max_recipients: int = option(
        100, "Maximum recipients of a message (RFC 5321 requires at least 100).", lowest=100
    )
    max_connections: int = option(
        5_000,
        "Maximum number of connections. When it is reached, the connection that has been idle "
        "longest without a mail is closed for a client that has none.",
        lowest=1,
    )
    max_connections_per_address: int = option(
        100, "Maximum number of connections of one public client address.", lowest=1
    )
    idle_timeout: float = option(
        300.0, "Seconds until a silent client is disconnected.", lowest=1, highest=3_600
    )
    certificate: str = option(
        "",
        "PEM file with the certificate chain offered by STARTTLS to everyone. "
        "Empty: a self-signed certificate, offered to public client addresses only. "
        "self-signed: the same certificate, offered to everyone; programs on this machine can "
        "trust it with smtp-ca.pem in the state directory (SSL_CERT_FILE, NODE_EXTRA_CA_CERTS).",
    )
    private_key: str = option("", "PEM file with the key of the certificate.")
    auth_without_tls: str = option(
        "private",
        "Clients that may log in without TLS: private (loopback and private networks), "
        "never, always.",
        choices=("private", "never", "always"),
    )
    proxy_protocol_from: tuple[str, ...] = option(
        (), "Networks whose hosts must send a PROXY protocol header (v1 or v2) first."
    )
    xclient_from: tuple[str, ...] = option(
        (), "Networks whose hosts may use XCLIENT and XFORWARD to name the real client."
    )


_CONNECTIONS = (
    "Maximum number of connections. When it is reached, the connection that has been idle longest "
    "is closed for a client that has none."
)
_PER_ADDRESS = "Maximum number of connections of one public client address."


@dataclass(frozen=True, slots=True)
class ImapOptions:
    """IMAP for mail programs. Name, certificate, proxies and auth_without_tls are of [smtp]."""

    listen: tuple[str, ...] = option(
        (),
        "Addresses for IMAP with STARTTLS: host:port or a Twisted endpoint. Empty: no IMAP.",
    )
    tls_listen: tuple[str, ...] = option((), "Addresses for IMAP over TLS from the first byte.")
    max_connections: int = option(
        5_000,
        _CONNECTIONS,
        lowest=1,
    )
    max_connections_per_address: int = option(100, _PER_ADDRESS, lowest=1)
    idle_timeout: float = option(
        1_800.0,
        "Seconds until a silent client is disconnected (RFC 9051 requires at least 30 minutes).",
        lowest=1,
        highest=86_400,
    )


@dataclass(frozen=True, slots=True)
class Pop3Options:
    """POP3 for mail programs. Name, certificate, proxies and auth_without_tls are of [smtp]."""

    listen: tuple[str, ...] = option(
        (),
        "Addresses for POP3 with STLS: host:port or a Twisted endpoint. Empty: no POP3.",
    )
    tls_listen: tuple[str, ...] = option((), "Addresses for POP3 over TLS from the first byte.")
    max_connections: int = option(
        1_000,
        _CONNECTIONS,
        lowest=1,
    )
    max_connections_per_address: int = option(100, _PER_ADDRESS, lowest=1)
    idle_timeout: float = option(
        600.0,
        "Seconds until a silent client is disconnected (RFC 1939 requires at least 10 minutes).",
        lowest=1,
        highest=86_400,
    )


@dataclass(frozen=True, slots=True)
class MilterOptions:
    """Statistics of a mail server's traffic: see `docs/how-to/score-your-traffic.md`."""

    listen: tuple[str, ...] = option(
        (),
        "Addresses of the milter endpoint: host:port or a Twisted endpoint "
        "(unix:/run/mailcheck/milter). Empty: none.",
    )
    allow_from: tuple[str, ...] = option(
        (),
        "Networks of the mail servers that may use it. Empty: this machine and private networks.",
    )
    project: str = option(
        "", "Account or project that sees the statistics. Empty: the first account of this daemon."
    )
    sample: float = option(
        1.0, "Share of the mails that are scored, chosen at random.", lowest=0, highest=1
    )
    content_filter: bool = option(
        True, "Let SpamAssassin or rspamd judge the mails, which takes most of the time."
    )
    max_message_size: int = option(
        10 * MEBIBYTE,
        "Maximum bytes of a mail that is scored.",
        lowest=65_536,
        highest=32 * MEBIBYTE,
    )
    max_connections: int = option(
        500,
        "Maximum number of connections. The mail of further connections passes without being "
        "scored.",
        lowest=1,
    )
    retention_days: int = option(
        30, "Days until the counts of a day are deleted.", lowest=1, highest=400
    )


@dataclass(frozen=True, slots=True)
class WebOptions:
    """The HTTP server."""

    listen: tuple[str, ...] = option(
        ("127.0.0.1:8080",), "Addresses for HTTP: host:port or a Twisted endpoint."
    )
    public_url: str = option(
        "",
        "Public URL, without a slash at the end. Empty: the URL that a trusted proxy reports, or "
        "the first listen address.",
    )
    oauth: str = option(
        AUTO,
        "Let people connect hosted agents to the MCP endpoint by OAuth: on, off, or auto (on if "
        "public_url begins with https).",
        choices=(AUTO, "on", "off"),
    )
    oauth_clients: str = option(
        "any",
        "Programs that people can connect: any, or registered (only those that an operator has "
        "registered with `mailcheck client add`).",
        choices=("any", "registered"),
    )
    proxy_protocol_from: tuple[str, ...] = option(
        (), "Networks whose hosts must send a PROXY protocol header (v1 or v2) first."
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        "Networks whose X-Forwarded-For and X-Forwarded-Proto headers are trusted. With the latter "
        "and no public_url, links use that scheme and the Host header.",
    )
    max_connections: int = option(
        10_000,
        "Maximum number of connections; at most half of the files that the process may open. "
        "When it is reached, the one idle longest is closed; if none is idle, new ones get 503.",
        lowest=1,
    )
    max_connections_per_address: int = option(
        1_000,
        "Maximum number of connections of one public client address (IPv6: its /64). Trusted "
        "proxies and private addresses are exempt.",
        lowest=1,
    )


@dataclass(frozen=True, slots=True)
class ProvidersOptions:
    """The APIs of mail providers, which are below /providers of the HTTP server as well."""

    listen: tuple[str, ...] = option(
        (),
        "Addresses for HTTP with the paths of all providers, for SDKs that accept only a host: "
        "host:port or a Twisted endpoint. The limits of [web] apply.",
    )


@dataclass(frozen=True, slots=True)
class CompatibleOptions:
    """The APIs of other mail testers, which their clients use unchanged."""

    hold: float = option(
        1.0,
        "Seconds for which a search that finds nothing waits for mail, so that a client that "
        "polls gets its mail at once. 0: such a search is answered at once.",
        lowest=0,
        highest=60,
    )


@dataclass(frozen=True, slots=True)
class MailpitOptions:
    """Listeners for clients of Mailpit and MailHog. Without a password, only private ones may."""

    listen: tuple[str, ...] = option(
        (),
        "Addresses for HTTP, usually port 8025: host:port or a Twisted endpoint. Empty: none. The "
        "limits of [web] apply.",
    )
    smtp_listen: tuple[str, ...] = option(
        (),
        "Addresses for mail to any recipient, usually port 1025. Empty: none. The limits of "
        "[smtp] apply.",
    )
    web_root: str = option(
        "",
        "Path below which the API is served, like /mailpit, for proxies that forward it unchanged. "
        "Empty: the root.",
    )
    project: str = option(
        "", "Account or project whose inbox it is. Empty: the first account of this daemon."
    )
    ui_password: str = option(
        "",
        "user:password for HTTP, several separated by spaces. With one, clients from everywhere "
        "are accepted.",
        is_secret=True,
    )
    smtp_password: str = option(
        "",
        "user:password for SMTP, several separated by spaces. With one, clients from everywhere "
        "are accepted, and without one any password is.",
        is_secret=True,
    )
    hosts: tuple[str, ...] = option(
        (),
        "Names in public DNS by which browsers reach the HTTP listener. Other public names are "
        "rejected, as they may be a page's attempt of DNS rebinding.",
    )


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """The storage of mail."""

    url: str = option(
        "sqlite:var/mailcheck.db",
        "The database: sqlite:<path>, or postgresql://user:password@host/name. libpq takes "
        "missing parts of a postgresql URL from PGPASSFILE or PGSERVICE: see "
        "docs/how-to/set-up-postgresql.md.",
        is_secret=True,
    )
    min_free: int | str = option(
        AUTO,
        "Minimum free bytes of the disk; below it, mail gets a temporary error (SQLite). auto: 1 "
        "GiB, or a twentieth of a disk smaller than 20 GiB.",
        lowest=0,
        choices=(AUTO,),
        is_number_too=True,
    )
    state_directory: str = option(
        "var", "Directory for the self-signed certificate and the first API key."
    )

    @property
    def is_shared(self) -> bool:
        """Whether several daemons can use the database: it is a server and not a file."""
        return not self.url.startswith("sqlite:")

    @property
    def file(self) -> str:
        """The path of a database that is a file."""
        return self.url.partition(":")[2]


@dataclass(frozen=True, slots=True)
class OidcOptions:
    """Sign-in with the accounts of a company: see `docs/how-to/sign-in-with-your-company.md`."""

    issuer: str = option(
        "",
        "Issuer URL of the OpenID Connect provider, exactly as in its metadata. Empty: off. "
        "Requires [web] public_url.",
    )
    client_id: str = option("", "Client id that the provider has given this service.")
    client_secret: str = option(
        "", "Client secret. Empty: a public client, which PKCE protects.", is_secret=True
    )
    title: str = option("your company account", "Name of the provider on the sign-in page.")
    scopes: tuple[str, ...] = option(
        ("openid", "profile", "email"), "Scopes to request; openid is required."
    )
    create_accounts: bool = option(
        True,
        "Create an account for a person who signs in for the first time. false: the operator "
        "links accounts with `mailcheck account link`.",
    )
    groups_claim: str = option("groups", "Claim with the names of a person's groups.")
    allowed_groups: tuple[str, ...] = option(
        (), "Groups whose members may sign in. Empty: everyone whom the provider identifies."
    )
    roles: tuple[str, ...] = option(
        (),
        "Roles of groups in projects: group=project:role (owner, editor, reader). Membership "
        "follows the groups at each sign-in.",
    )
    ca_file: str = option(
        "", "PEM file with the certificate authorities of the provider. Empty: public authorities."
    )


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
        "", "PEM file with the certificate authorities for Redis. Empty: public authorities."
    )


@dataclass(frozen=True, slots=True)
class LimitsOptions:
    """Limits of an API key; `mailcheck key issue` can set other limits for a key."""

    requests_per_minute: int = option(60, "Maximum number of requests in a clock minute.", lowest=1)
    requests_per_day: int = option(1_000, "Maximum number of requests in a UTC day.", lowest=1)
    waits_per_key: int = option(100, "Maximum number of concurrent waits.", lowest=1)


@dataclass(frozen=True, slots=True)
class AccountsOptions:
    """How accounts are created."""

    bootstrap: bool = option(
        False, "Create an account with a key on the first start (`make run` does)."
    )
    bootstrap_key: str = option(
        "", "The API key of that account, chosen by the operator, for CI services.", is_secret=True
    )
    registration: str = option(
        "invite",
        "Registration on the dashboard: open (for everyone), invite (with a link of "
        "`mailcheck account invite`), closed. `make run` on a loopback address sets open.",
        choices=("open", "invite", "closed"),
    )
    passwords: bool = option(
        True,
        "Let people sign in with name and password. false: only with [oidc], or with a link of "
        "`mailcheck account sign-in-link`.",
    )
    per_address: int = option(
        20, "Maximum number of accounts that one client address may create in a UTC day.", lowest=1
    )
    password_cost: int = option(
        15,
        "Cost of hashing a password: scrypt's N as a power of two (r 8, p 3). 15 needs 32 MiB and "
        "0.2 seconds; existing hashes are updated at the next sign-in.",
        lowest=10,
        highest=20,
    )


@dataclass(frozen=True, slots=True)
class DnsOptions:
    """DNS queries of the checks."""

    resolvers: tuple[str, ...] = option(
        (), "Recursive resolvers, address or address:port. Empty: the system's resolvers."
    )
    allow_special_use: bool = option(
        False,
        "Accept special-use domains such as .test, .internal and .local in checks, for test zones.",
    )
    validating: bool = option(
        False,
        "The resolvers validate DNSSEC over a trusted network, so their result is trusted. "
        "Otherwise, DNSSEC and DANE are undetermined.",
    )


@dataclass(frozen=True, slots=True)
class BlocklistOptions:
    """The DNS blocklists."""

    resolvers: tuple[str, ...] = option(
        (),
        "Resolvers for blocklist queries, since lists reject public ones. Empty: [dns] resolvers.",
    )
    deadline: float = option(
        3.0,
        "Seconds to wait for the answer of a list. Without an answer, its result is unknown.",
        lowest=0.1,
        highest=10,
    )
    catalogue: str = option(
        "",
        "A file with a catalogue in the format of `mailcheck config blocklists`."
        " Empty: the catalogue of the package.",
    )
    disabled: tuple[str, ...] = option((), "Zones that are not queried.")
    keys: tuple[str, ...] = option(
        (), "Query keys issued by the operators of lists, each as zone=key.", is_secret=True
    )
    daily_budgets: tuple[str, ...] = option(
        (), "Maximum number of queries to a zone in a UTC day, each as zone=number; 0: no limit."
    )


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Connections to mail hosts, registries and policy files."""

    smtp_port: int = option(25, "Port of the STARTTLS probe.", lowest=1, highest=65_535)
    rdap_bootstrap: str = option(
        "https://data.iana.org/rdap/dns.json", "URL of the list of the registries' RDAP servers."
    )
    ca_file: str = option(
        "", "PEM file with the certificate authorities to trust. Empty: public authorities."
    )


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """Networks that checks may connect to."""

    allow_private: bool = option(
        False, "Let probes and checks reach private addresses: for tests only, never in public."
    )


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """Webhooks, which send new mail to other programs: see `docs/how-to/receive-webhooks.md`."""

    allow: tuple[str, ...] = option(
        (),
        "Private networks to which an account may send webhooks: "
        "account=network, like developer=127.0.0.0/8. The names of the accounts are reserved. "
        "Webhooks are never sent to mailcheck's own ports.",
    )


@dataclass(frozen=True, slots=True)
class AlertOptions:
    """Alerts of watches by mail: see `docs/how-to/watch-a-domain.md`."""

    smtp_relay: str = option(
        "",
        "Mail server that relays alerts: host:port. Empty: alerts are sent to the account's own "
        "inbox and to webhooks only.",
    )
    tls: str = option(
        "required",
        "When the connection uses STARTTLS with certificate verification: required, offered (if "
        "the relay offers it), never (for example for a relay on this machine).",
        choices=("required", "offered", "never"),
    )
    user: str = option("", "User name for the relay. Empty: no authentication.")
    password: str = option("", "Password of the user.", is_secret=True)
    from_address: str = option("", "Sender address of the mails. Empty: alerts@ the inbox domain.")
    allow_recipients: tuple[str, ...] = option(
        (),
        "Addresses to which an account may mail alerts: account=address, or "
        "account=@domain for all addresses of the domain; * is every account. "
        "The names of the accounts are reserved.",
    )


@dataclass(frozen=True, slots=True)
class ReportsOptions:
    """Failure reports and complaints, which are about one mail each."""

    keep_mail: bool = option(
        False,
        "Store addresses, the subject and the beginning of the text of the mails in failure "
        "reports and complaints. These are personal data of people who never used this service. "
        "false: only domains, addresses of servers, campaigns and results.",
    )


@dataclass(frozen=True, slots=True)
class DeliverabilityOptions:
    """Deliverability tests."""

    retention_days: int = option(
        7,
        "Days until a test and its mail are deleted, counted from the arrival of the mail.",
        lowest=1,
        highest=365,
    )


@dataclass(frozen=True, slots=True)
class SpamassassinOptions:
    """The content filter of deliverability tests."""

    spamd: str = option(
        "auto",
        "The spamd to use: host:port or unix:/path. auto: a spamd on this machine; otherwise the "
        "daemon starts its own if the program is installed. off: none.",
    )
    user: str = option("nobody", "User that a private spamd runs as, if the daemon runs as root.")
    network_tests: bool = option(
        False,
        "Let a private spamd use DNS and other services. This is slower, and mailcheck's own "
        "checks cover most of it.",
    )
    concurrency: int = option(
        2,
        "Mails checked at a time; a private spamd uses about 120 MB for each.",
        lowest=1,
        highest=50,
    )


@dataclass(frozen=True, slots=True)
class RspamdOptions:
    """A second content filter: see `docs/how-to/set-up-rspamd.md`."""

    url: str = option(
        "",
        "URL of the normal worker of an rspamd, such as http://127.0.0.1:11333. Mails of "
        "deliverability tests are sent to it. Empty: none.",
    )
    password: str = option(
        "", "Password for an rspamd that requires one, as its controller does.", is_secret=True
    )
    threshold: float = option(
        6.0,
        "Points from which this rspamd marks mail as spam: add_header in its actions.conf.",
        lowest=0.1,
        highest=1_000,
    )


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """The daemon process."""

    processes: int = option(
        1,
        "Processes on this machine that share the ports; more than one requires PostgreSQL and "
        "[cluster] redis. Each serves /metrics on a port of its own: [ops] listen is the port of "
        "the first process, the next port belongs to the second, and so on.",
        lowest=1,
        highest=64,
    )


@dataclass(frozen=True, slots=True)
class OpsOptions:
    """Monitoring, logs and remote access for operators."""

    listen: tuple[str, ...] = option(
        ("127.0.0.1:9464",),
        "Addresses of /metrics for Prometheus, without authentication: host:port or a Twisted "
        "endpoint. If the port is in use, the daemon logs it and continues. "
        "Empty: nowhere.",
    )
    log: str = option(
        "text",
        "Format of the log: text (a line for each event), or json (an object on each line).",
        choices=("text", "json"),
    )
    log_level: str = option(
        "info",
        "Lowest level in the log: debug, info (a line for each mail and each rejection), warn, "
        "error. SIGHUP reloads it.",
        choices=("debug", "info", "warn", "error"),
    )
    manhole: str = option(
        "",
        "SSH address of a Python shell inside the daemon: 127.0.0.1:port, [::1]:port or "
        "unix:path. Its users can do all that the daemon can. Empty: no shell.",
    )
    manhole_keys: str = option(
        "", "File with the public keys for the shell, in the format of OpenSSH's authorized_keys."
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration, with a field for each section of the file."""

    inbox: InboxOptions = field(default_factory=InboxOptions)
    smtp: SmtpOptions = field(default_factory=SmtpOptions)
    imap: ImapOptions = field(default_factory=ImapOptions)
    pop3: Pop3Options = field(default_factory=Pop3Options)
    milter: MilterOptions = field(default_factory=MilterOptions)
    web: WebOptions = field(default_factory=WebOptions)
    providers: ProvidersOptions = field(default_factory=ProvidersOptions)
    compatible: CompatibleOptions = field(default_factory=CompatibleOptions)
    mailpit: MailpitOptions = field(default_factory=MailpitOptions)
    storage: StorageOptions = field(default_factory=StorageOptions)
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    daemon: DaemonOptions = field(default_factory=DaemonOptions)
    limits: LimitsOptions = field(default_factory=LimitsOptions)
    accounts: AccountsOptions = field(default_factory=AccountsOptions)
    oidc: OidcOptions = field(default_factory=OidcOptions)
    dns: DnsOptions = field(default_factory=DnsOptions)
    blocklists: BlocklistOptions = field(default_factory=BlocklistOptions)
    probes: ProbeOptions = field(default_factory=ProbeOptions)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    webhooks: WebhookOptions = field(default_factory=WebhookOptions)
    alerts: AlertOptions = field(default_factory=AlertOptions)
    reports: ReportsOptions = field(default_factory=ReportsOptions)
    tests: DeliverabilityOptions = field(default_factory=DeliverabilityOptions)
    spamassassin: SpamassassinOptions = field(default_factory=SpamassassinOptions)
    rspamd: RspamdOptions = field(default_factory=RspamdOptions)
    ops: OpsOptions = field(default_factory=OpsOptions)


OptionField = Field[Any]
