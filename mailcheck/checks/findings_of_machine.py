"""Findings of the doctor about this machine and its configuration."""

from collections.abc import Mapping

from mailcheck.checks.finding_row import CLOSED_RESOLVER, OTHER_RESOLVER, Case, Row, silent_row
from mailcheck.checks.findings import Severity

_ERROR, _WARNING, _UNDETERMINED, _NOTE = Severity

_OWN_RESOLVER = (
    "Set [blocklists] resolvers to a resolver of your own that queries name servers itself (apt"
    " install unbound). Blocklists refuse large public resolvers."
)

# fmt: off
_FIXED_ROWS = (
    Row("doctor.backup.missing", None, "There is no backup",
        "[backup] every is {every:g} hours, but {folder} has no backup.", _WARNING,
        advice="Read why in the log of the daemon. Start it if it is stopped: it makes a backup at"
        " once."),
    Row("doctor.backup.old", None, "The newest backup is too old",
        "The newest backup, {path}, is {hours:.0f} hours old, and [backup] every is {every:g}"
        " hours.", _WARNING,
        advice="Read in the log of the daemon why the last backups failed."),
    Row("doctor.blocklists.refused", None, "Blocklists fail their self-test",
        "{count} of {asked} blocklists fail their self-test: {names}, ...", _WARNING,
        advice=_OWN_RESOLVER),
    Row("doctor.certificate.ending", None, "A certificate expires soon or has expired",
        "The certificate {path} {when}; it has not been renewed.",
        advice="Renew it, and find out why your ACME client does not. The daemon loads a new file"
        " by itself, within a minute."),
    Row("doctor.certificate.self-signed", None, "Mail programs cannot verify the certificate",
        "[imap] and [pop3] listen for other machines, whose mail programs cannot verify the"
        " self-signed certificate.", _WARNING,
        advice="Set [smtp] certificate and private_key to a certificate of a public authority for"
        " the name of this server."),
    Row("doctor.certificate.unreadable", None, "A certificate cannot be read",
        "The certificate {path} cannot be read: {error}.", _ERROR,
        advice="Set [smtp] certificate and private_key to the PEM files of the certificate and its"
        " key."),
    Row("doctor.clock.wrong", None, "The clock of this machine is wrong",
        "This machine's clock is {ahead:.0f} s {side}.", _WARNING,
        advice="Synchronize the clock over the network: timedatectl set-ntp true."),
    Row("doctor.company.groups", None, "The provider does not list the claim of groups",
        "Groups are read from the claim {claim} ([oidc] groups_claim), which the provider does not"
        " list. Its claims are {shown}.", _WARNING,
        advice="Set [oidc] groups_claim to the claim that has the groups, or let the provider add"
        " it. A person who signs in without groups is named in the log."),
    Row("doctor.company.groups-claim", None, "The claim that holds the groups of people",
        "Groups are read from the claim {claim} ([oidc] groups_claim).", _NOTE,
        advice="If the provider writes groups into another claim, set [oidc] groups_claim to it."),
    Row("doctor.company.redirect", None, "The provider refuses the redirect address or the client",
        "The provider refuses the client {client_id} with the redirect address {redirect}: it"
        " answers with status {status}.", _ERROR,
        advice="Register this redirect address at the provider, for the client of [oidc] client_id,"
        " and compare [web] public_url.",
        cases={"client": Case("The provider refuses [oidc] client_id {client_id}: {error}.")}),
    Row("doctor.company.unusable", None, "The company's sign-in service is not usable",
        "[oidc] issuer {issuer}: {problem}.", _ERROR,
        advice="Correct [oidc] issuer: it is written exactly as in the metadata of the provider, at"
        " issuer/.well-known/openid-configuration.",
        cases={
            "no-provider": Case("[oidc] issuer does not lead to a usable provider: {failure}."),
            "no-keys": Case("The provider publishes no usable key at {address}."),
        }),
    Row("doctor.database.away", None, "The database does not answer",
        "{failure}.", _ERROR,
        advice="Start the daemon once, or correct [storage] url."),
    Row("doctor.disk.full", None, "The disk is full",
        "Only {free} are free at {folder}, less than [storage] min_free ({min_free}). Mail is"
        " temporarily rejected (452).", _ERROR,
        advice="Free some space, delete mail, or lower [storage] min_free."),
    Row("doctor.disk.low", None, "Little disk space is free",
        "Only {free} are free at {folder}. Below {min_free}, mail is rejected.", _WARNING,
        advice="Free some space."),
    silent_row("doctor.dmarc", None, "The DMARC record of this service could not be determined"),
    Row("doctor.dmarc.open", None, "Receivers are not asked to reject mail from this service",
        "{domain} sends no mail, but its DMARC policy does not ask receivers to reject mail from"
        " it.", _WARNING,
        advice="Publish this DMARC record."),
    Row("doctor.dns.example", None, "The domain of this service is an example",
        "Local programs can send mail to @{example_domain}; other mail servers cannot.", _NOTE,
        advice="To receive mail from outside, set [inbox] domain to a domain of yours."),
    silent_row("doctor.host", None, "The address of this server could not be determined"),
    Row("doctor.host.absent", None, "The name of this server has no address",
        "The name {name} has no address, so clients cannot connect to this server by name.", _ERROR,
        advice="Publish this server's address for the name."),
    Row("doctor.host.elsewhere", None, "The name of this server leads to another address",
        "{host_name} leads to {published}; this server has {addresses}.", _ERROR,
        advice="Publish this server's address, unless the other address belongs to a router or load"
        " balancer of yours."),
    silent_row("doctor.mx", None, "The MX record of this service could not be determined"),
    Row("doctor.mx.absent", None, "The domain of this service has no MX record",
        "{domain} has no MX record: mail from outside does not reach its inboxes.", _ERROR,
        advice="Publish an MX record that leads to {host_name}."),
    Row("doctor.mx.elsewhere", None, "Mail for this service goes to another server",
        "Mail for {domain} goes to {exchanges}, not to {host_name}.", _ERROR,
        advice="Change the MX record to {host_name}, or set [smtp] host_name to the name in the MX"
        " record."),
    Row("doctor.port-in.closed", None, "No server listens on the port for mail",
        "No server listens on port {port} of {addresses}: no mail comes in.", _ERROR,
        advice="Set [smtp] listen to 0.0.0.0:{port}, or forward that port to the configured one."),
    Row("doctor.port-in.other", None, "Another server listens on the port for mail",
        "Another server answers on port {port} of {addresses}: {line!r}.", _ERROR,
        advice="Stop that server, or let it forward mail for the inbox domain to {host_name}."),
    Row("doctor.port-out.blocked", None, "This network blocks outgoing connections to port 25",
        "Connections to port 25 do not leave this network, so it cannot be determined whether mail"
        " hosts offer encryption. Receiving mail is not affected.", _WARNING,
        advice="Ask the operator of the network to allow outgoing connections to port 25."),
    Row("doctor.redis.away", None, "Redis does not answer",
        "Redis at {address} does not answer, so each daemon counts rate limits on its own.", _ERROR,
        advice="Start it, or correct [cluster] redis."),
    Row("doctor.resolver.closed", None, "The resolver does not resolve names of the Internet",
        CLOSED_RESOLVER, _ERROR,
        advice=OTHER_RESOLVER),
    Row("doctor.rights.no-folder", None, "The data folder does not exist",
        "The folder {folder} does not exist: no daemon has been started with this configuration.",
        _ERROR,
        advice="Start the daemon once, or run the doctor in the folder that the daemon runs in."),
    Row("doctor.rights.not-writable", None, "The data folder is not writable",
        "This user cannot write to {folder}.", _ERROR,
        advice="Run the doctor as the daemon's user, or give the folder to that user."),
    Row("doctor.rights.open-file", None, "Other users can read a file of the service",
        "Other users of this machine can read {file}.", _WARNING,
        advice="chmod 600 {file}"),
    Row("doctor.installation.twice", None, "An earlier distribution of mailcheck is installed too",
        "The distribution mailcheck, the name of this one before it became mailcheck-daemon, is"
        " installed in the same environment.", _WARNING,
        advice="Run pip uninstall mailcheck, then install the wheel again: pip install"
        " --force-reinstall --no-deps dist/mailcheck_daemon-*.whl. Restart the daemon."),
    Row("doctor.mailboxes.failing", None, "A mailbox with reports cannot be read",
        "No reports are fetched from {mailbox}: {problem}", _WARNING,
        advice="Correct its table [[reports.mailboxes]]. `mailcheck reload` tries again at once."),
    Row("doctor.mailboxes.new", None, "A mailbox with reports was not read yet",
        "The mailbox {mailbox} was not read yet.", _NOTE,
        advice="Start the daemon, or let `mailcheck reload` apply the configuration."),
    Row("doctor.milter.silent", None, "The milter endpoint does not answer",
        "The milter endpoint {text} does not answer.", _WARNING,
        advice="Start the daemon, or correct [milter] listen."),
    Row("doctor.rspamd.silent", None, "rspamd gives no verdict",
        "rspamd at {url} gives no verdict: {failure}.", _WARNING,
        advice="Start it, or correct [rspamd] url and password."),
    Row("doctor.spamd.missing", None, "SpamAssassin is not installed",
        "SpamAssassin is not installed, so reports have no content filter result.", _WARNING,
        advice="Install it: apt install spamassassin spamd."),
    Row("doctor.spamd.off", None, "The content filter is turned off",
        "The content filter is switched off, so reports do not include it.", _NOTE,
        advice="Set [spamassassin] spamd to auto to include it in reports."),
    Row("doctor.spamd.silent", None, "spamd does not answer",
        "spamd at {option} does not answer, so reports have no content filter result.", _WARNING,
        advice="Start it."),
    silent_row("doctor.spf", None, "The SPF record of this service could not be determined"),
    Row("doctor.spf.open", None, "The SPF record does not declare that the service sends no mail",
        "{domain} sends no mail, but its SPF record does not say so, so others can forge mail from"
        " it.", _WARNING,
        advice="Publish this SPF record, and no other."),
)

TOPICS = (
    "resolver", "dns", "port-in", "port-out", "blocklists", "spamd", "clock", "disk", "rights",
    "database", "certificate", "redis", "backup", "milter",
    "rspamd", "installation", "company", "mailboxes",
)
"""Topics that the doctor checks."""

_COMPARE_YOURSELF = "Compare the output of `date -u` with another clock."

_UNDETERMINED_CASES: Mapping[str, Mapping[str, Case]] = {
    "resolver": {"silent": Case("No resolver answers.", OTHER_RESOLVER)},
    "blocklists": {
        "silent": Case("No blocklist answers the resolver.", _OWN_RESOLVER),
    },
    "port-out": {
        "unknown": Case(
            "It could not be determined whether connections to port 25 leave this network."),
    },
    "port-in": {
        "no-address": Case(
            "{host_name} has no address to connect to.", "Publish its address first."),
        "no-answer": Case(
            "Port {port} of {addresses} does not answer from here.",
            "Open the port in the firewall. If a router translates addresses, test from outside:"
            " nc {host_name} {port}"),
        "no-greeting": Case("Port {port} of {addresses} accepts connections but sends no greeting"
            "{problem}."),
    },
    "clock": {
        "no-server": Case(
            "No web server is configured to compare clocks with.", _COMPARE_YOURSELF),
        "no-authorities": Case(
            "The clock was not compared: there are no certificate authorities to verify a web"
            " server with."),
        "not-fetched": Case("The clock was not compared: {url} cannot be fetched: {problem}."),
        "no-date": Case("The clock was not compared: {url} sends no Date.", _COMPARE_YOURSELF),
    },
    "backup": {"not-listed": Case("The backups in {folder} cannot be listed: {error}.")},
    "mailboxes": {"no-database": Case("The database is not available: {failure}.")},
    "company": {"silent": Case("The provider does not answer: {failure}.")},
}
"""Why a topic could not be checked, beside the reasons of all topics."""

_UNDETERMINED_ROWS = tuple(
    Row(f"doctor.{topic}.undetermined", None, f"The doctor could not check: {topic}",
        "The check failed or took too long", _UNDETERMINED,
        advice="Try again in a minute.",
        cases={
            "timeout": Case("The examination did not finish within {seconds:.0f} s."),
            "failed": Case("The examination failed. The log has the cause."),
            **_UNDETERMINED_CASES.get(topic, {}),
        })
    for topic in TOPICS
)
# fmt: on

ROWS = (*_FIXED_ROWS, *_UNDETERMINED_ROWS)
