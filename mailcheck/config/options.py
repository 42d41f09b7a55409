"""All options with their defaults and descriptions. `etc/mailcheck.toml` is generated from them."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import fields

SELF_SIGNED = "self-signed"
"""A certificate that the daemon signs, offered to clients on its own machine as well."""

MEBIBYTE = 1024 * 1024
GIBIBYTE = 1024 * MEBIBYTE

AUTO = "auto"


class Option(Struct, frozen=True):
    """The description of an option. A secret one can also be read from a file, ``<name>_file``.

    ``tables``: each item of the option is a table with the options of this class.
    ``is_number_too``: the option accepts an integer as well as a word.
    ``is_reloadable``: a reload applies a change; otherwise, it takes effect at the next start.
    """

    text: str
    lowest: float | None = None
    highest: float | None = None
    choices: tuple[str, ...] = ()
    tables: type[Struct] | None = None
    is_secret: bool = False
    is_number_too: bool = False
    is_reloadable: bool = False


class InboxOptions(Struct, frozen=True):
    """The developer inboxes."""

    domain: Annotated[
        str, Option("Domain of the inbox addresses. Its MX record must name this server.")
    ] = "mailcheck.example"
    aliases: Annotated[tuple[str, ...], Option("Additional domains of the inbox addresses.")] = ()
    retention_hours: Annotated[
        float,
        Option(
            "Hours until a message expires. After a restart with fewer hours, stored mail expires "
            "earlier too, but not within 24 hours of its receipt.",
            lowest=0.01,
            highest=24 * 365,
        ),
    ] = 24.0
    max_messages: Annotated[
        int,
        Option(
            "Maximum number of messages in an inbox; above it, mail gets a temporary error.",
            lowest=1,
            is_reloadable=True,
        ),
    ] = 10_000
    max_bytes: Annotated[
        int, Option("Maximum bytes of raw mail in an inbox.", lowest=1, is_reloadable=True)
    ] = GIBIBYTE
    faults: Annotated[
        bool,
        Option(
            "Simulate a failure for mail to tags such as fault.data-451: see "
            "docs/how-to/simulate-failures.md."
        ),
    ] = True


Connections = Annotated[
    int,
    Option(
        "Maximum number of connections. When it is reached, the connection that has been idle "
        "longest is closed for a client that has none.",
        lowest=1,
        is_reloadable=True,
    ),
]
PerAddress = Annotated[
    int,
    Option(
        "Maximum number of connections of one public client address.",
        lowest=1,
        is_reloadable=True,
    ),
]


class SmtpOptions(Struct, frozen=True):
    """The SMTP server."""

    listen: Annotated[
        tuple[str, ...],
        Option(
            "Addresses for mail: host:port, or a Twisted endpoint (systemd:domain=INET:name=smtp)."
        ),
    ] = ("127.0.0.1:2525",)
    submission_listen: Annotated[
        tuple[str, ...],
        Option(
            "Addresses for programs that submit mail. They log in with an API key as the "
            "password, or with name and password of an account."
        ),
    ] = ("127.0.0.1:2587",)
    broken_tls_listen: Annotated[
        tuple[str, ...],
        Option(
            "A second submission port on which STARTTLS always fails, to test programs. Empty: "
            "none."
        ),
    ] = ()
    host_name: Annotated[str, Option("Name in the greeting; empty: the inbox domain.")] = ""
    max_message_size: Annotated[
        int, Option("Maximum bytes of a message.", lowest=65_536, highest=GIBIBYTE)
    ] = 25 * MEBIBYTE
    max_recipients: Annotated[
        int,
        Option(
            "Maximum recipients of a message (RFC 5321 requires at least 100).",
            lowest=100,
            is_reloadable=True,
        ),
    ] = 100
    max_connections: Annotated[
        int,
        Option(
            "Maximum number of connections. When it is reached, the connection that has been idle "
            "longest without a mail is closed for a client that has none.",
            lowest=1,
            is_reloadable=True,
        ),
    ] = 5_000
    max_connections_per_address: PerAddress = 100
    idle_timeout: Annotated[
        float,
        Option(
            "Seconds until a silent client is disconnected.",
            lowest=1,
            highest=3_600,
            is_reloadable=True,
        ),
    ] = 300.0
    certificate: Annotated[
        str,
        Option(
            "PEM file with the certificate chain offered by STARTTLS to everyone. "
            "Empty: a self-signed certificate, offered to public client addresses only. "
            "self-signed: the same certificate, offered to everyone; programs on this machine can "
            "trust it with smtp-ca.pem in the state directory (SSL_CERT_FILE, "
            "NODE_EXTRA_CA_CERTS).",
            is_reloadable=True,
        ),
    ] = ""
    private_key: Annotated[
        str, Option("PEM file with the key of the certificate.", is_reloadable=True)
    ] = ""
    auth_without_tls: Annotated[
        str,
        Option(
            "Clients that may log in without TLS: private (loopback and private networks), "
            "never, always.",
            choices=("private", "never", "always"),
            is_reloadable=True,
        ),
    ] = "private"
    proxy_protocol_from: Annotated[
        tuple[str, ...],
        Option(
            "Networks whose hosts must send a PROXY protocol header (v1 or v2) first.",
            is_reloadable=True,
        ),
    ] = ()
    xclient_from: Annotated[
        tuple[str, ...],
        Option(
            "Networks whose hosts may use XCLIENT and XFORWARD to name the real client.",
            is_reloadable=True,
        ),
    ] = ()


class ImapOptions(Struct, frozen=True):
    """IMAP for mail programs. Name, certificate, proxies and auth_without_tls are of [smtp]."""

    listen: Annotated[
        tuple[str, ...],
        Option(
            "Addresses for IMAP with STARTTLS: host:port or a Twisted endpoint. Empty: no IMAP."
        ),
    ] = ()
    tls_listen: Annotated[
        tuple[str, ...], Option("Addresses for IMAP over TLS from the first byte.")
    ] = ()
    max_connections: Connections = 5_000
    max_connections_per_address: PerAddress = 100
    idle_timeout: Annotated[
        float,
        Option(
            "Seconds until a silent client is disconnected (RFC 9051 requires at least 30 "
            "minutes).",
            lowest=1,
            highest=86_400,
            is_reloadable=True,
        ),
    ] = 1_800.0


class Pop3Options(Struct, frozen=True):
    """POP3 for mail programs. Name, certificate, proxies and auth_without_tls are of [smtp]."""

    listen: Annotated[
        tuple[str, ...],
        Option("Addresses for POP3 with STLS: host:port or a Twisted endpoint. Empty: no POP3."),
    ] = ()
    tls_listen: Annotated[
        tuple[str, ...], Option("Addresses for POP3 over TLS from the first byte.")
    ] = ()
    max_connections: Connections = 1_000
    max_connections_per_address: PerAddress = 100
    idle_timeout: Annotated[
        float,
        Option(
            "Seconds until a silent client is disconnected (RFC 1939 requires at least 10 "
            "minutes).",
            lowest=1,
            highest=86_400,
            is_reloadable=True,
        ),
    ] = 600.0


class MilterOptions(Struct, frozen=True):
    """Statistics of a mail server's traffic: see `docs/how-to/score-your-traffic.md`."""

    listen: Annotated[
        tuple[str, ...],
        Option(
            "Addresses of the milter endpoint: host:port or a Twisted endpoint "
            "(unix:/run/mailcheck/milter). Empty: none."
        ),
    ] = ()
    allow_from: Annotated[
        tuple[str, ...],
        Option(
            "Networks of the mail servers that may use it. Empty: this machine and private "
            "networks.",
            is_reloadable=True,
        ),
    ] = ()
    project: Annotated[
        str,
        Option(
            "Account or project that sees the statistics. The name is reserved. Empty: the first "
            "account, which the bootstrap or the operator has made."
        ),
    ] = ""
    sample: Annotated[
        float, Option("Share of the mails that are scored, chosen at random.", lowest=0, highest=1)
    ] = 1.0
    content_filter: Annotated[
        bool, Option("Let SpamAssassin or rspamd judge the mails, which takes most of the time.")
    ] = True
    max_message_size: Annotated[
        int, Option("Maximum bytes of a mail that is scored.", lowest=65_536, highest=32 * MEBIBYTE)
    ] = 10 * MEBIBYTE
    max_connections: Annotated[
        int,
        Option(
            "Maximum number of connections. The mail of further connections passes without being "
            "scored.",
            lowest=1,
            is_reloadable=True,
        ),
    ] = 500
    retention_days: Annotated[
        int, Option("Days until the counts of a day are deleted.", lowest=1, highest=400)
    ] = 30


class WebOptions(Struct, frozen=True):
    """The HTTP server."""

    listen: Annotated[
        tuple[str, ...], Option("Addresses for HTTP: host:port or a Twisted endpoint.")
    ] = ("127.0.0.1:8080",)
    public_url: Annotated[
        str,
        Option(
            "Public URL, without a slash at the end. Empty: the URL that a trusted proxy reports,"
            " or the first listen address."
        ),
    ] = ""
    oauth: Annotated[
        str,
        Option(
            "Let people connect hosted agents to the MCP endpoint by OAuth: on, off, or auto (on "
            "if public_url begins with https).",
            choices=(AUTO, "on", "off"),
        ),
    ] = AUTO
    oauth_clients: Annotated[
        str,
        Option(
            "Programs that people can connect: any, or registered (only those that an operator has "
            "registered with `mailcheck client add`).",
            choices=("any", "registered"),
        ),
    ] = "any"
    oauth_schemes: Annotated[
        tuple[str, ...],
        Option(
            "Schemes without a dot to which programs that are not registered with `mailcheck "
            "client add` may lead a browser back, such as cursor in cursor://. Any program can "
            "take such a scheme."
        ),
    ] = ("cursor", "vscode", "vscode-insiders")
    proxy_protocol_from: Annotated[
        tuple[str, ...],
        Option("Networks whose hosts must send a PROXY protocol header (v1 or v2) first."),
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        Option(
            "Networks whose X-Forwarded-For and X-Forwarded-Proto headers are trusted. With the "
            "latter and no public_url, links use that scheme and the Host header.",
            is_reloadable=True,
        ),
    ] = ()
    max_connections: Annotated[
        int,
        Option(
            "Maximum number of connections; fewer if the process may open few files. "
            "When it is reached, the one idle longest is closed; if none is idle, new ones get "
            "503.",
            lowest=1,
            is_reloadable=True,
        ),
    ] = 10_000
    max_connections_per_address: Annotated[
        int,
        Option(
            "Maximum number of connections of one public client address (IPv6: its /64). Trusted "
            "proxies and private addresses are exempt.",
            lowest=1,
            is_reloadable=True,
        ),
    ] = 1_000
    preload: Annotated[
        bool,
        Option(
            "Load the pages and the APIs of agents, providers and other products at the start. "
            "false: the first request to one of them loads it, which takes up to a quarter of a "
            "second; the daemon is ready earlier and uses less memory."
        ),
    ] = False


class ProvidersOptions(Struct, frozen=True):
    """The APIs of mail providers, which are below /providers of the HTTP server as well."""

    listen: Annotated[
        tuple[str, ...],
        Option(
            "Addresses for HTTP with the paths of all providers, for SDKs that accept only a host: "
            "host:port or a Twisted endpoint. The limits of [web] apply."
        ),
    ] = ()


class CompatibleOptions(Struct, frozen=True):
    """The APIs of other mail testers, which their clients use unchanged."""

    hold: Annotated[
        float,
        Option(
            "Seconds for which a search that finds nothing waits for mail, so that a client that "
            "polls gets its mail at once. Some clients have a time-out of one second. 0: such a "
            "search is answered at once.",
            lowest=0,
            highest=60,
        ),
    ] = 0.7


class MailpitOptions(Struct, frozen=True):
    """Listeners for clients of Mailpit and MailHog. Without a password, only private ones may."""

    listen: Annotated[
        tuple[str, ...],
        Option(
            "Addresses for HTTP, usually port 8025: host:port or a Twisted endpoint. Empty: none."
            " The limits of [web] apply."
        ),
    ] = ()
    smtp_listen: Annotated[
        tuple[str, ...],
        Option(
            "Addresses for mail to any recipient, usually port 1025. Empty: none. The limits of "
            "[smtp] apply."
        ),
    ] = ()
    web_root: Annotated[
        str,
        Option(
            "Path below which the API is served, like /mailpit, for proxies that forward it "
            "unchanged. Empty: the root."
        ),
    ] = ""
    project: Annotated[
        str,
        Option(
            "Account or project whose inbox it is. The name is reserved. Empty: the first account, "
            "which the bootstrap or the operator has made."
        ),
    ] = ""
    ui_password: Annotated[
        str,
        Option(
            "user:password for HTTP, several separated by spaces. With one, clients from "
            "everywhere are accepted.",
            is_secret=True,
        ),
    ] = ""
    smtp_password: Annotated[
        str,
        Option(
            "user:password for SMTP, several separated by spaces. With one, clients from "
            "everywhere are accepted, and without one any password is.",
            is_secret=True,
        ),
    ] = ""
    hosts: Annotated[
        tuple[str, ...],
        Option(
            "Names in public DNS by which browsers reach the HTTP listener. Other public names are "
            "rejected, as they may be a page's attempt of DNS rebinding."
        ),
    ] = ()


class StorageOptions(Struct, frozen=True):
    """The storage of mail."""

    url: Annotated[
        str,
        Option(
            "The database: sqlite:<path>, or postgresql://user:password@host/name. libpq takes "
            "missing parts of a postgresql URL from PGPASSFILE or PGSERVICE: see "
            "docs/how-to/set-up-postgresql.md.",
            is_secret=True,
        ),
    ] = "sqlite:var/mailcheck.db"
    min_free: Annotated[
        int | str,
        Option(
            "Minimum free bytes of the disk; below it, mail gets a temporary error (SQLite). "
            "auto: 1 GiB, or a twentieth of a disk smaller than 20 GiB.",
            lowest=0,
            choices=(AUTO,),
            is_number_too=True,
            is_reloadable=True,
        ),
    ] = AUTO
    state_directory: Annotated[
        str, Option("Directory for the self-signed certificate and the first API key.")
    ] = "var"

    @property
    def is_shared(self) -> bool:
        """Whether several daemons can use the database: it is a server and not a file."""
        return not self.url.startswith("sqlite:")

    @property
    def file(self) -> str:
        """The path of a database that is a file."""
        return self.url.partition(":")[2]


class BackupOptions(Struct, frozen=True):
    """Backups on a schedule: see `docs/how-to/back-up-and-upgrade.md`."""

    every: Annotated[
        float,
        Option(
            "Hours between backups of the database. Each is checked after it was written. 0: none.",
            lowest=0,
            highest=24 * 31,
            is_reloadable=True,
        ),
    ] = 0.0
    keep: Annotated[
        int,
        Option(
            "Number of backups that are kept; older ones are deleted.",
            lowest=1,
            highest=10_000,
            is_reloadable=True,
        ),
    ] = 7
    folder: Annotated[
        str,
        Option(
            "Folder of the backups, which contain all accounts and mail. Empty: backup in the "
            "state directory. A folder on another disk survives the loss of this one.",
            is_reloadable=True,
        ),
    ] = ""


class OidcOptions(Struct, frozen=True):
    """Sign-in with the accounts of a company: see `docs/how-to/sign-in-with-your-company.md`."""

    issuer: Annotated[
        str,
        Option(
            "Issuer URL of the OpenID Connect provider, exactly as in its metadata. Empty: off. "
            "Requires [web] public_url."
        ),
    ] = ""
    client_id: Annotated[str, Option("Client id that the provider has given this service.")] = ""
    client_secret: Annotated[
        str, Option("Client secret. Empty: a public client, which PKCE protects.", is_secret=True)
    ] = ""
    title: Annotated[str, Option("Name of the provider on the sign-in page.")] = (
        "your company account"
    )
    scopes: Annotated[tuple[str, ...], Option("Scopes to request; openid is required.")] = (
        "openid",
        "profile",
        "email",
    )
    create_accounts: Annotated[
        bool,
        Option(
            "Create an account for a person who signs in for the first time. false: the operator "
            "links accounts with `mailcheck account link`."
        ),
    ] = True
    groups_claim: Annotated[
        str,
        Option("Claim with the groups of a person. Dots lead into objects: realm_access.roles."),
    ] = "groups"
    allowed_groups: Annotated[
        tuple[str, ...],
        Option("Groups whose members may sign in. Empty: everyone whom the provider identifies."),
    ] = ()
    roles: Annotated[
        tuple[str, ...],
        Option(
            "Roles of groups in projects: group=project:role (owner, editor, reader). Membership "
            "follows the groups at each sign-in."
        ),
    ] = ()
    ca_file: Annotated[
        str,
        Option(
            "PEM file with the certificate authorities of the provider. Empty: public authorities."
        ),
    ] = ""


class ScimOptions(Struct, frozen=True):
    """Accounts from the directory of a company: see `docs/how-to/provision-accounts.md`."""

    roles: Annotated[
        tuple[str, ...],
        Option(
            "Roles of groups of the directory in projects: group=project:role (owner, editor, "
            "reader). A project cannot be in [oidc] roles, too."
        ),
    ] = ()
    id_claim: Annotated[
        str,
        Option(
            "Claim of the sign-in with [oidc] that is the externalId of the person in the "
            "directory: sub for Okta, oid for Entra ID."
        ),
    ] = "sub"


class ClusterOptions(Struct, frozen=True):
    """Settings of several daemons on one PostgreSQL: see `docs/how-to/run-several-daemons.md`."""

    redis: Annotated[
        str,
        Option(
            "The Redis of all daemons: redis://[[user]:password@]host[:port][/database], rediss:// "
            "(TLS) or unix:/path. Without it one daemon serves a database.",
            is_secret=True,
        ),
    ] = ""
    ca_file: Annotated[
        str,
        Option("PEM file with the certificate authorities for Redis. Empty: public authorities."),
    ] = ""


class LimitsOptions(Struct, frozen=True):
    """Limits of an API key; `mailcheck key issue` can set other limits for a key."""

    requests_per_minute: Annotated[
        int, Option("Maximum number of requests in a clock minute.", lowest=1, is_reloadable=True)
    ] = 60
    requests_per_day: Annotated[
        int, Option("Maximum number of requests in a UTC day.", lowest=1, is_reloadable=True)
    ] = 1_000
    waits_per_key: Annotated[
        int, Option("Maximum number of concurrent waits.", lowest=1, is_reloadable=True)
    ] = 100
    stranger_checks_per_day: Annotated[
        int,
        Option(
            "Maximum number of domain checks in a UTC day from an address without an account, on "
            "the welcome page. 0 permits none.",
            lowest=0,
            is_reloadable=True,
        ),
    ] = 20


class AccountsOptions(Struct, frozen=True):
    """How accounts are created."""

    bootstrap: Annotated[
        bool, Option("Create an account with a key on the first start (`make run` does).")
    ] = False
    bootstrap_key: Annotated[
        str,
        Option(
            "The API key of that account, chosen by the operator, for CI services.", is_secret=True
        ),
    ] = ""
    registration: Annotated[
        str,
        Option(
            "Registration on the dashboard: open (for everyone), invite (with a link of "
            "`mailcheck account invite`), closed. `make run` on a loopback address sets open.",
            choices=("open", "invite", "closed"),
            is_reloadable=True,
        ),
    ] = "invite"
    invite_by: Annotated[
        str,
        Option(
            "Who may invite people without an account to a project, if registration is invite: "
            "operators, or owners (owners of projects; everyone with an account can create one).",
            choices=("operators", "owners"),
            is_reloadable=True,
        ),
    ] = "operators"
    passwords: Annotated[
        bool,
        Option(
            "Let people sign in with name and password. false: only with [oidc], or with a link of "
            "`mailcheck account sign-in-link`."
        ),
    ] = True
    per_address: Annotated[
        int,
        Option(
            "Maximum number of accounts that one client address may create in a UTC day.",
            lowest=1,
            is_reloadable=True,
        ),
    ] = 20
    password_cost: Annotated[
        int,
        Option(
            "Cost of hashing a password: scrypt's N as a power of two (r 8, p 3). 15 needs 32 MiB"
            " and 0.2 seconds; existing hashes are updated at the next sign-in.",
            lowest=10,
            highest=20,
        ),
    ] = 15


class DnsOptions(Struct, frozen=True):
    """DNS queries of the checks."""

    resolvers: Annotated[
        tuple[str, ...],
        Option("Recursive resolvers, address or address:port. Empty: the system's resolvers."),
    ] = ()
    allow_special_use: Annotated[
        bool,
        Option(
            "Accept special-use domains such as .test, .internal and .local in checks, for test "
            "zones."
        ),
    ] = False
    validating: Annotated[
        bool,
        Option(
            "The resolvers validate DNSSEC over a trusted network, so their result is trusted. "
            "Otherwise, DNSSEC and DANE are undetermined."
        ),
    ] = False


class BlocklistOptions(Struct, frozen=True):
    """The DNS blocklists."""

    resolvers: Annotated[
        tuple[str, ...],
        Option(
            "Resolvers for blocklist queries, since lists reject public ones. Empty: [dns] "
            "resolvers."
        ),
    ] = ()
    deadline: Annotated[
        float,
        Option(
            "Seconds to wait for the answer of a list. Without an answer, its result is unknown.",
            lowest=0.1,
            highest=10,
            is_reloadable=True,
        ),
    ] = 3.0
    catalogue: Annotated[
        str,
        Option(
            "A file with a catalogue in the format of `mailcheck config blocklists`."
            " Empty: the catalogue of the package.",
            is_reloadable=True,
        ),
    ] = ""
    disabled: Annotated[
        tuple[str, ...], Option("Zones that are not queried.", is_reloadable=True)
    ] = ()
    keys: Annotated[
        tuple[str, ...],
        Option(
            "Query keys issued by the operators of lists, each as zone=key.",
            is_secret=True,
            is_reloadable=True,
        ),
    ] = ()
    daily_budgets: Annotated[
        tuple[str, ...],
        Option(
            "Maximum number of queries to a zone in a UTC day, each as zone=number; 0: no limit.",
            is_reloadable=True,
        ),
    ] = ()


class ProbeOptions(Struct, frozen=True):
    """Connections to mail hosts, registries and policy files."""

    smtp_port: Annotated[int, Option("Port of the STARTTLS probe.", lowest=1, highest=65_535)] = 25
    rdap_bootstrap: Annotated[str, Option("URL of the list of the registries' RDAP servers.")] = (
        "https://data.iana.org/rdap/dns.json"
    )
    ca_file: Annotated[
        str,
        Option("PEM file with the certificate authorities to trust. Empty: public authorities."),
    ] = ""


class NetworkOptions(Struct, frozen=True):
    """Networks that checks may connect to."""

    allow_private: Annotated[
        bool,
        Option("Let probes and checks reach private addresses: for tests only, never in public."),
    ] = False


class WebhookOptions(Struct, frozen=True):
    """Webhooks, which send new mail to other programs: see `docs/how-to/receive-webhooks.md`."""

    allow: Annotated[
        tuple[str, ...],
        Option(
            "Private networks to which an account may send webhooks, and mail to applications: "
            "account=network, like developer=127.0.0.0/8. The names of the accounts are reserved. "
            "Neither is sent to mailcheck's own ports.",
            is_reloadable=True,
        ),
    ] = ()


RelayTls = Annotated[
    str,
    Option(
        "When the connection uses STARTTLS with certificate verification: required, offered "
        "(if the relay offers it), never (for example for a relay on this machine).",
        choices=("required", "offered", "never"),
        is_reloadable=True,
    ),
]
RelayUser = Annotated[
    str, Option("User name for the relay. Empty: no authentication.", is_reloadable=True)
]
RelayPassword = Annotated[str, Option("Password of the user.", is_secret=True, is_reloadable=True)]


class AlertOptions(Struct, frozen=True):
    """Alerts of watches by mail: see `docs/how-to/watch-a-domain.md`."""

    smtp_relay: Annotated[
        str,
        Option(
            "Mail server that relays alerts: host:port. Empty: alerts are sent to the account's "
            "own inbox and to webhooks only.",
            is_reloadable=True,
        ),
    ] = ""
    tls: RelayTls = "required"
    user: RelayUser = ""
    password: RelayPassword = ""
    from_address: Annotated[
        str,
        Option("Sender address of the mails. Empty: alerts@ the inbox domain.", is_reloadable=True),
    ] = ""
    allow_recipients: Annotated[
        tuple[str, ...],
        Option(
            "Addresses to which an account may mail alerts: account=address, or "
            "account=@domain for all addresses of the domain; * is every account. "
            "The names of the accounts are reserved.",
            is_reloadable=True,
        ),
    ] = ()


class ReleaseOptions(Struct, frozen=True):
    """Release of captured mail to real mailboxes: see `docs/how-to/release-mail.md`."""

    relay: Annotated[
        str,
        Option(
            "Mail server that relays released mail: host:port. Empty: no mail leaves mailcheck.",
            is_reloadable=True,
        ),
    ] = ""
    tls: RelayTls = "required"
    user: RelayUser = ""
    password: RelayPassword = ""
    sender: Annotated[
        str,
        Option(
            "Address that sends released mail: the envelope sender, which gets the bounces, and "
            "Resent-From. Required with relay.",
            is_reloadable=True,
        ),
    ] = ""
    allow_recipients: Annotated[
        tuple[str, ...],
        Option(
            "Addresses to which an account may release mail: account=address, or "
            "account=@domain for all addresses of the domain; * is every account. "
            "The names of the accounts are reserved. Required with relay.",
            is_reloadable=True,
        ),
    ] = ()
    per_hour: Annotated[
        int,
        Option(
            "Maximum number of recipients to which an account may release mail in an hour, in all "
            "daemons of a cluster together.",
            lowest=1,
            highest=10_000,
            is_reloadable=True,
        ),
    ] = 20


class MailboxOptions(Struct, frozen=True):
    """A mailbox with reports, on an IMAP server or in a Maildir."""

    account: Annotated[str, Option("Account or project that gets the reports.")] = ""
    imap: Annotated[
        str,
        Option(
            "IMAP server: host:port, such as imap.gmail.com:993. It may be in a private network."
        ),
    ] = ""
    tls: Annotated[
        str,
        Option(
            "implicit: TLS from the first byte (port 993). starttls: TLS after STARTTLS (port 143)."
            " none: no TLS, for a server on this machine only.",
            choices=("implicit", "starttls", "none"),
        ),
    ] = "implicit"
    user: Annotated[str, Option("User name, often the mail address.")] = ""
    password: Annotated[str, Option("Password, or app password.", is_secret=True)] = ""
    token_url: Annotated[
        str,
        Option(
            "Token endpoint of OAuth 2.0, for XOAUTH2 instead of a password: "
            "https://oauth2.googleapis.com/token, or "
            "https://login.microsoftonline.com/<tenant>/oauth2/v2.0/token."
        ),
    ] = ""
    client_id: Annotated[str, Option("Client id at the token endpoint.")] = ""
    client_secret: Annotated[
        str, Option("Client secret at the token endpoint.", is_secret=True)
    ] = ""
    refresh_token: Annotated[
        str,
        Option(
            "Refresh token of the user. Empty: client credentials are used. A new refresh token in "
            "an answer of the token endpoint is stored in the database and used from then on.",
            is_secret=True,
        ),
    ] = ""
    scope: Annotated[
        str,
        Option(
            "Scope to request, such as https://outlook.office365.com/.default. Empty: none is sent."
        ),
    ] = ""
    folder: Annotated[str, Option("Folder of the IMAP server that is read.")] = "INBOX"
    maildir: Annotated[
        str, Option("Path of a Maildir (a folder with cur, new and tmp), instead of imap.")
    ] = ""
    then: Annotated[
        str,
        Option(
            "What happens to a mail whose reports are stored. mark: it is marked as read. move: it "
            "is moved to move_to. leave: it stays as it is. Other mails stay as they are, and no "
            "mail is deleted.",
            choices=("mark", "move", "leave"),
        ),
    ] = "mark"
    move_to: Annotated[
        str, Option("Folder of the IMAP server, or path of a Maildir, for then = move.")
    ] = ""
    every_minutes: Annotated[
        int, Option("Minutes between two looks into the mailbox.", lowest=1, highest=1_440)
    ] = 10


class ReportsOptions(Struct, frozen=True):
    """Reports of receivers: which are fetched, and what is stored of reports about one mail."""

    keep_mail: Annotated[
        bool,
        Option(
            "Store addresses, the subject and the beginning of the text of the mails in failure "
            "reports and complaints. These are personal data of people who never used this "
            "service. false: only domains, addresses of servers, campaigns and results."
        ),
    ] = False
    mailboxes: Annotated[
        tuple[MailboxOptions, ...],
        Option(
            "Mailboxes from which reports are fetched, each for an account or a project whose name "
            "is reserved. Each is a table that begins with [[reports.mailboxes]]: see "
            "docs/how-to/fetch-reports.md.",
            tables=MailboxOptions,
            is_reloadable=True,
        ),
    ] = ()


class DeliverabilityOptions(Struct, frozen=True):
    """Deliverability tests."""

    retention_days: Annotated[
        int,
        Option(
            "Days until a test and its mail are deleted, counted from the arrival of the mail.",
            lowest=1,
            highest=365,
        ),
    ] = 7


class SpamassassinOptions(Struct, frozen=True):
    """The content filter of deliverability tests."""

    spamd: Annotated[
        str,
        Option(
            "The spamd to use: host:port or unix:/path. auto: a spamd on this machine; otherwise "
            "the daemon starts its own if the program is installed. off: none."
        ),
    ] = "auto"
    user: Annotated[
        str, Option("User that a private spamd runs as, if the daemon runs as root.")
    ] = "nobody"
    network_tests: Annotated[
        bool,
        Option(
            "Let a private spamd use DNS and other services. This is slower, and mailcheck's own "
            "checks cover most of it."
        ),
    ] = False
    concurrency: Annotated[
        int,
        Option(
            "Mails checked at a time; a private spamd uses about 120 MB for each.",
            lowest=1,
            highest=50,
        ),
    ] = 2


class RspamdOptions(Struct, frozen=True):
    """A second content filter: see `docs/how-to/set-up-rspamd.md`."""

    url: Annotated[
        str,
        Option(
            "URL of the normal worker of an rspamd, such as http://127.0.0.1:11333. Mails of "
            "deliverability tests are sent to it. Empty: none."
        ),
    ] = ""
    password: Annotated[
        str,
        Option("Password for an rspamd that requires one, as its controller does.", is_secret=True),
    ] = ""
    threshold: Annotated[
        float,
        Option(
            "Points from which this rspamd marks mail as spam: add_header in its actions.conf.",
            lowest=0.1,
            highest=1_000,
        ),
    ] = 6.0


class DaemonOptions(Struct, frozen=True):
    """The daemon process."""

    processes: Annotated[
        int,
        Option(
            "Processes on this machine that share the ports; more than one requires PostgreSQL "
            "and [cluster] redis. Each serves /metrics on a port of its own: [ops] listen is the "
            "port of the first process, the next port belongs to the second, and so on.",
            lowest=1,
            highest=64,
        ),
    ] = 1
    memory: Annotated[
        int | str,
        Option(
            "Bytes of memory that the daemon and its processes may use together. The limits of "
            "incoming mail, answers and analyses follow it. auto: the limit of its cgroups "
            "(MemoryHigh or MemoryMax of a unit, or of a container), or half of the machine's "
            "memory.",
            lowest=134_217_728,
            choices=(AUTO,),
            is_number_too=True,
        ),
    ] = AUTO


class OpsOptions(Struct, frozen=True):
    """Monitoring, logs and remote access for operators."""

    listen: Annotated[
        tuple[str, ...],
        Option(
            "Addresses of /metrics for Prometheus, without authentication: host:port or a Twisted "
            "endpoint. If the port is in use, the daemon logs it and continues. "
            "Empty: nowhere."
        ),
    ] = ("127.0.0.1:9464",)
    log: Annotated[
        str,
        Option(
            "Format of the log: text (a line for each event), or json (an object on each line).",
            choices=("text", "json"),
            is_reloadable=True,
        ),
    ] = "text"
    log_level: Annotated[
        str,
        Option(
            "Lowest level in the log: debug, info (a line for each mail and each rejection), warn, "
            "error.",
            choices=("debug", "info", "warn", "error"),
            is_reloadable=True,
        ),
    ] = "info"
    manhole: Annotated[
        str,
        Option(
            "SSH address of a Python shell inside the daemon: 127.0.0.1:port, [::1]:port or "
            "unix:path. Its users can do all that the daemon can. Empty: no shell."
        ),
    ] = ""
    manhole_keys: Annotated[
        str,
        Option(
            "File with the public keys for the shell, in the format of OpenSSH's authorized_keys."
        ),
    ] = ""


class Config(Struct, frozen=True):
    """The whole configuration, with a field for each section of the file."""

    inbox: InboxOptions = InboxOptions()
    smtp: SmtpOptions = SmtpOptions()
    imap: ImapOptions = ImapOptions()
    pop3: Pop3Options = Pop3Options()
    milter: MilterOptions = MilterOptions()
    web: WebOptions = WebOptions()
    providers: ProvidersOptions = ProvidersOptions()
    compatible: CompatibleOptions = CompatibleOptions()
    mailpit: MailpitOptions = MailpitOptions()
    storage: StorageOptions = StorageOptions()
    backup: BackupOptions = BackupOptions()
    cluster: ClusterOptions = ClusterOptions()
    daemon: DaemonOptions = DaemonOptions()
    limits: LimitsOptions = LimitsOptions()
    accounts: AccountsOptions = AccountsOptions()
    oidc: OidcOptions = OidcOptions()
    scim: ScimOptions = ScimOptions()
    dns: DnsOptions = DnsOptions()
    blocklists: BlocklistOptions = BlocklistOptions()
    probes: ProbeOptions = ProbeOptions()
    network: NetworkOptions = NetworkOptions()
    webhooks: WebhookOptions = WebhookOptions()
    alerts: AlertOptions = AlertOptions()
    release: ReleaseOptions = ReleaseOptions()
    reports: ReportsOptions = ReportsOptions()
    tests: DeliverabilityOptions = DeliverabilityOptions()
    spamassassin: SpamassassinOptions = SpamassassinOptions()
    rspamd: RspamdOptions = RspamdOptions()
    ops: OpsOptions = OpsOptions()


class NamedOption(NamedTuple):
    """An option with its name and default."""

    name: str
    default: Any
    described: Option


def options_of(section: Struct | type[Struct]) -> Iterator[NamedOption]:
    """List the options of a section of the configuration, in the order of the file."""
    for field in fields(section):
        (described,) = field.type.__metadata__
        yield NamedOption(field.name, field.default, described)
