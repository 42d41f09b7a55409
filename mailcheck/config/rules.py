"""Validation of values that need parsing, and of combinations of options."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from ipaddress import ip_network
from itertools import chain
from typing import TypeVar
from urllib.parse import urlsplit

from mailcheck.cluster.redis_address import parse_redis_address
from mailcheck.config.options import (
    SELF_SIGNED,
    AlertOptions,
    Config,
    MailboxOptions,
    ReleaseOptions,
    options_of,
)
from mailcheck.core.addresses import is_domain_name, parse_plain_address
from mailcheck.core.domains.domain_names import origin_of
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import MIN_PRESET_KEY, is_possible_key
from mailcheck.core.network_addresses import (
    IpNetwork,
    parse_ip_address,
    parse_listen_address,
)
from mailcheck.core.oauth.clients import LOOPBACK_HOSTS
from mailcheck.core.signing_in.company import DISCOVERY, is_safe_url, parse_group_role
from mailcheck.core.webhooks import MAILTO, parse_alert_receiver
from mailcheck.dns.servers import parse_server
from mailcheck.probes.spamd_address import parse_rspamd_url, parse_spamd_address

Allowed = TypeVar("Allowed")

Problem = tuple[str, str, str]
"""Section, option, and the problem as a phrase that follows the name of the option."""

DATABASES = ("sqlite", "postgresql", "postgres")

_WEB_ROOT = re.compile(r"(?:/[A-Za-z0-9._~-]+)*", re.ASCII)


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def find_problem(config: Config) -> Problem | None:
    """Return the first problem of a whole configuration, or `None`."""
    problems = chain(
        _check_forms(config),
        _check_domains(config),
        _check_web(config),
        _check_certificate(config),
        _check_database(config),
        _check_redis(config),
        _check_processes(config),
        _check_public_url(config),
        _check_oauth(config),
        _check_preset_key(config),
        _check_oidc(config),
        _check_scim(config),
        _check_blocklists(config),
        _check_filters(config),
        _check_manhole(config),
        _check_webhooks(config),
        _check_relay_login("alerts", config.alerts),
        _check_release(config),
        _check_mailboxes(config),
    )
    return next(problems, None)


def _check_domains(config: Config) -> Iterator[Problem]:
    named = [("inbox", "domain", config.inbox.domain)]
    named += [("inbox", "aliases", alias) for alias in config.inbox.aliases]
    if config.smtp.host_name:
        named.append(("smtp", "host_name", config.smtp.host_name))
    for section, option, domain in named:
        if not is_domain_name(domain) or not domain.isascii() or domain.endswith("."):
            yield (
                section,
                option,
                f"{domain!r} is not a domain name (write an IDN in its xn--... form)",
            )


def _check_web(config: Config) -> Iterator[Problem]:
    if not config.web.listen:
        yield "web", "listen", "is empty; set at least one address"
    if _WEB_ROOT.fullmatch(config.mailpit.web_root) is None:
        root = config.mailpit.web_root
        yield "mailpit", "web_root", f"{root!r} is not a path like /mailpit, or empty"


def _check_certificate(config: Config) -> Iterator[Problem]:
    smtp = config.smtp
    if smtp.certificate not in ("", SELF_SIGNED) and not smtp.private_key:
        yield "smtp", "certificate", "requires private_key; set both"
    if smtp.private_key and not smtp.certificate:
        yield "smtp", "private_key", "requires certificate; set both"
    if smtp.private_key and smtp.certificate == SELF_SIGNED:
        yield "smtp", "private_key", "cannot be used with a self-signed certificate; omit it"


def _check_database(config: Config) -> Iterator[Problem]:
    scheme, _, path = config.storage.url.partition(":")
    # The URL is left out of messages, since it may contain a password.
    if scheme not in DATABASES or not path:
        yield "storage", "url", f"begins with {scheme!r}; write sqlite:<path> or postgresql://..."
    elif scheme != "sqlite" and not path.startswith("//"):
        yield "storage", "url", "is not of the form postgresql://user:password@host/name"
    elif path == ":memory:":
        yield "storage", "url", "is in memory; write sqlite:<path>, since processes share it"


def _check_oidc(config: Config) -> Iterator[Problem]:
    oidc = config.oidc
    if not oidc.issuer:
        if not config.accounts.passwords:
            yield "accounts", "passwords", "cannot be false without [oidc] issuer"
        return
    if not is_safe_url(oidc.issuer) or "?" in oidc.issuer:
        yield "oidc", "issuer", f"{oidc.issuer!r} is not an https URL without a query"
    if oidc.issuer.endswith(DISCOVERY):
        issuer = oidc.issuer.removesuffix(DISCOVERY)
        yield "oidc", "issuer", f"is the address of the metadata; write the issuer: {issuer}"
    if not oidc.client_id:
        yield "oidc", "client_id", "is empty; write the client id that the provider has given you"
    if not config.web.public_url:
        yield "oidc", "issuer", "requires [web] public_url, to which the provider sends browsers"
    if "openid" not in oidc.scopes:
        yield "oidc", "scopes", "must contain openid"


def _check_scim(config: Config) -> Iterator[Problem]:
    signed_in = {parse_group_role(role).project for role in config.oidc.roles}
    for role in map(parse_group_role, config.scim.roles):
        if role.project in signed_in:
            yield "scim", "roles", f"names the project {role.project!r}, as [oidc] roles does"


def _check_redis(config: Config) -> Iterator[Problem]:
    try:
        if config.cluster.redis:
            parse_redis_address(config.cluster.redis)
    except ValueError as error:
        # The address is left out of messages, since it may contain a password.
        yield "cluster", "redis", str(error)


def _check_processes(config: Config) -> Iterator[Problem]:
    can_be_many = config.cluster.redis and config.storage.is_shared
    if config.daemon.processes > 1 and not can_be_many:
        problem = "is more than 1, which requires PostgreSQL as [storage] url and [cluster] redis"
        yield "daemon", "processes", problem


def _check_public_url(config: Config) -> Iterator[Problem]:
    url = config.web.public_url
    try:
        parts, origin = urlsplit(url), origin_of(url)
        is_address = origin.startswith(("http://", "https://")) and parts.username is None
    except ValueError:
        is_address = False
    if url and (not is_address or parts.query or parts.fragment or url.endswith("/")):
        problem = f"{url!r} is not an http or https URL without a slash at the end"
        yield "web", "public_url", problem


def _check_oauth(config: Config) -> Iterator[Problem]:
    parts = urlsplit(config.web.public_url)
    is_safe = parts.scheme != "http" or parts.hostname in LOOPBACK_HOSTS
    if config.web.oauth == "on" and not is_safe:
        yield "web", "oauth", "is on, which requires an https public_url"


def _check_preset_key(config: Config) -> Iterator[Problem]:
    key = config.accounts.bootstrap_key
    if key and not is_possible_key(key):
        yield "accounts", "bootstrap_key", f"must have at least {MIN_PRESET_KEY} ASCII characters"


def _check_blocklists(config: Config) -> Iterator[Problem]:
    try:
        parse_pairs(config.blocklists.keys)
    except ValueError:
        # The key is left out of messages, since it is secret.
        yield "blocklists", "keys", "must be of the form zone=key"
    try:
        budgets = parse_pairs(config.blocklists.daily_budgets)
    except ValueError as error:
        yield "blocklists", "daily_budgets", str(error)
        return
    for zone, budget in budgets.items():
        if not budget.isascii() or not budget.isdigit():
            problem = f"{zone}={budget}: {budget!r} is not an integer"
            yield "blocklists", "daily_budgets", problem


def _check_filters(config: Config) -> Iterator[Problem]:
    rspamd = config.rspamd
    if rspamd.password and not rspamd.url:
        yield "rspamd", "password", "requires url; set both"
    if not rspamd.password.isprintable():
        yield "rspamd", "password", "contains a control character"


def _check_manhole(config: Config) -> Iterator[Problem]:
    if config.ops.manhole and not config.ops.manhole_keys:
        yield "ops", "manhole", "requires manhole_keys; set both"


def _check_webhooks(config: Config) -> Iterator[Problem]:
    try:
        parse_allowed(config.webhooks.allow)
    except ValueError as error:
        yield "webhooks", "allow", str(error)


def _check_release(config: Config) -> Iterator[Problem]:
    release = config.release
    yield from _check_relay_login("release", release)
    if not release.relay:
        return  # the other options may stay, so that an operator can stop the release of mail
    if _is_own_listener(config, release.relay):
        yield "release", "relay", "is this daemon itself; released mail would come back"
    if not release.sender:
        yield "release", "relay", "requires sender, the address that gets the bounces"
    if not release.allow_recipients:
        yield "release", "relay", "requires allow_recipients; without it, no mail can be released"


def _check_mailboxes(config: Config) -> Iterator[Problem]:
    seen: dict[tuple[str, ...], int] = {}
    for number, mailbox in enumerate(config.reports.mailboxes, 1):
        rule = _check_maildir if mailbox.maildir else _check_imap_mailbox
        for problem in (*_check_any_mailbox(mailbox), *rule(mailbox)):
            yield "reports", "mailboxes", f"table {number}: {problem}"
        place = (mailbox.imap, mailbox.user, mailbox.folder, mailbox.maildir)
        if (first := seen.setdefault(place, number)) != number:
            yield "reports", "mailboxes", f"table {number}: is the mailbox of table {first}"


def _check_any_mailbox(mailbox: MailboxOptions) -> Iterator[str]:
    if not mailbox.account:
        yield "account is empty; write the account or the project that gets the reports"
    if bool(mailbox.imap) == bool(mailbox.maildir):
        yield "set either imap or maildir"
    if (mailbox.then == "move") != bool(mailbox.move_to):
        yield "then = move requires move_to, and only then it has a meaning"


_OF_IMAP = frozenset(
    (
        *("tls", "user", "password", "folder"),
        *("token_url", "client_id", "client_secret", "refresh_token", "scope"),
    )
)
"""The options of a mailbox that a Maildir does not have."""


def _check_maildir(mailbox: MailboxOptions) -> Iterator[str]:
    given = [
        option.name
        for option in options_of(mailbox)
        if option.name in _OF_IMAP and getattr(mailbox, option.name) != option.default
    ]
    if given:
        yield f"{given[0]} is not an option of a Maildir; omit it"
    if mailbox.then == "leave":
        yield "then = leave is not possible in a Maildir; set mark or move"
    for name, path in (("maildir", mailbox.maildir), ("move_to", mailbox.move_to)):
        if path and not path.startswith("/"):
            yield f"{name} {path!r} is not an absolute path"
    if mailbox.maildir == mailbox.move_to:
        yield "move_to is the Maildir itself"


def _check_imap_mailbox(mailbox: MailboxOptions) -> Iterator[str]:
    try:
        host, _ = parse_relay(mailbox.imap)
    except ValueError as error:
        yield f"imap {mailbox.imap!r}: {error}"
        return
    address = parse_ip_address(host)
    is_near = host == "localhost" or (address is not None and address.is_loopback)
    if mailbox.tls == "none" and not is_near:
        yield "tls = none is for a server on this machine, since passwords must be encrypted"
    if not mailbox.user:
        yield "requires user"
    if bool(mailbox.password) == bool(mailbox.token_url):
        yield "set either password (or password_file) or token_url"
    for name in ("user", "password", "folder", "move_to"):
        if not getattr(mailbox, name).isprintable():
            yield f"{name} contains a control character"
    if mailbox.folder == mailbox.move_to:
        yield "move_to is the folder itself"
    if mailbox.token_url:
        yield from _check_grant(mailbox)


def _check_grant(mailbox: MailboxOptions) -> Iterator[str]:
    if not is_safe_url(mailbox.token_url):
        yield f"token_url {mailbox.token_url!r} is not an https URL"
    if not mailbox.client_id:
        yield "token_url requires client_id"
    if not mailbox.client_secret and not mailbox.refresh_token:
        yield "token_url requires client_secret, refresh_token or both"


def _is_own_listener(config: Config, relay: str) -> bool:
    """Return whether the address of a relay is one at which this daemon receives mail."""
    host, port = parse_relay(relay)
    smtp, mailpit = config.smtp, config.mailpit
    own = (*smtp.listen, *smtp.submission_listen, *smtp.broken_tls_listen, *mailpit.smtp_listen)
    listens = map(parse_listen_address, own)
    return any(address.port == port and host in (*_LOOPBACK, address.host) for address in listens)


def _check_relay_login(section: str, options: AlertOptions | ReleaseOptions) -> Iterator[Problem]:
    if options.user and not options.password:
        yield section, "user", "requires password; set both"
    if options.password and not options.user:
        yield section, "password", "requires user; set both"
    if options.user and options.tls != "required":
        yield (
            section,
            "user",
            "requires tls = required, since a password must not be sent unencrypted",
        )
    try:
        parse_recipients(options.allow_recipients)
    except ValueError as error:
        yield section, "allow_recipients", str(error)


def _require_own_machine(text: str) -> None:
    """Raise `ValueError` if an address can be reached from other machines."""
    address = parse_listen_address(text)
    ip = parse_ip_address(address.host or "")
    if not text.startswith("unix:") and (ip is None or not ip.is_loopback):
        raise ValueError("must be 127.0.0.1:port, [::1]:port or unix:path")


def parse_pairs(texts: Iterable[str]) -> dict[str, str]:
    """Parse ``zone=value`` items, which may also be lines of files.

    :raises ValueError: an item has another form; the message names it.
    """
    pairs = {}
    for word in (word for text in texts for word in text.split()):
        zone, equals, value = word.partition("=")
        if not zone or not equals or not value:
            raise ValueError(f"{word!r} is not of the form zone=value")
        pairs[zone.lower()] = value
    return pairs


def parse_allowed(texts: Iterable[str]) -> dict[str, list[IpNetwork]]:
    """Parse the networks that each account may use.

    :raises ValueError: an item is not of the form ``account=network``; the message names it.
    """
    return _parse_by_account(texts, "network", ip_network)


def parse_recipients(texts: Iterable[str]) -> dict[str, list[str]]:
    """Parse the addresses that each account may use. ``@domain`` is all addresses of a domain.

    :raises ValueError: an item is not of the form ``account=address``; the message names it.
    """
    return _parse_by_account(texts, "address", _parse_recipient)


def _parse_recipient(text: str) -> str:
    parse_alert_address(f"all{text}" if text.startswith("@") else text)
    return text


def _parse_by_account(
    texts: Iterable[str], what: str, parse: Callable[[str], Allowed]
) -> dict[str, list[Allowed]]:
    allowed: dict[str, list[Allowed]] = {}
    for text in texts:
        account, _, value = (part.strip() for part in text.rpartition("="))
        if not account:
            raise ValueError(f"{text!r} is not of the form account={what}")
        try:
            allowed.setdefault(account, []).append(parse(value))
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from None
    return allowed


def parse_alert_address(text: str) -> str:
    """Parse a mail address.

    :raises ValueError: it is not a mail address.
    """
    try:
        return parse_alert_receiver(f"{MAILTO}{text}").removeprefix(MAILTO)
    except InvalidParameter:
        raise ValueError("must be a mail address like ops@example.com") from None


def parse_relay(text: str) -> tuple[str, int]:
    """Parse the address of a relay.

    :raises ValueError: it is not of the form host:port.
    """
    try:
        address = parse_listen_address(text)
    except ValueError:
        address = None
    if address is None or address.host is None or not address.port:
        raise ValueError("write host:port or [IPv6]:port")
    return address.host, address.port


def _parse_filter(text: str) -> object:
    """Parse the address of a spamd, or a word instead of one."""
    return text if text in ("auto", "off") else parse_spamd_address(text)


_FORMS: Mapping[str, Callable[[str], object]] = {
    "smtp proxy_protocol_from": ip_network,
    "smtp xclient_from": ip_network,
    "milter allow_from": ip_network,
    "web proxy_protocol_from": ip_network,
    "web trusted_proxies": ip_network,
    "oidc roles": parse_group_role,
    "scim roles": parse_group_role,
    "dns resolvers": parse_server,
    "blocklists resolvers": parse_server,
    "spamassassin spamd": _parse_filter,
    "rspamd url": parse_rspamd_url,
    "ops manhole": _require_own_machine,
    "alerts smtp_relay": parse_relay,
    "alerts from_address": parse_alert_address,
    "release sender": parse_plain_address,
    "release relay": parse_relay,
}
"""Functions that parse each value of an option, by section and name. Those whose names end with
``listen`` are addresses to listen on."""


def _check_forms(config: Config) -> Iterator[Problem]:
    for section in Config.__struct_fields__:
        options = getattr(config, section)
        for option in options.__struct_fields__:
            is_listen = option.endswith("listen")
            parse = parse_listen_address if is_listen else _FORMS.get(f"{section} {option}")
            if parse is not None:
                value = getattr(options, option)
                for text in value if isinstance(value, tuple) else filter(None, [value]):
                    try:
                        parse(text)
                    except ValueError as error:
                        yield section, option, f"{text!r}: {error}"
