"""Findings of the doctor, about this machine and its configuration."""

from mailcheck.checks.finding_row import RETRY_ADVICE, Row
from mailcheck.checks.findings import Severity

_ERROR, _WARNING, _NOTE, _UNDETERMINED = (
    Severity.ERROR,
    Severity.WARNING,
    Severity.NOTE,
    Severity.UNDETERMINED,
)

# fmt: off
_STATED = (
    Row("doctor.blocklists.refused", None, "blocklists fail their self-test",
        "they refuse the resolver, so checks do without them", _WARNING,
        advice="Let [blocklists] resolvers name a resolver of your own that asks name servers"
        " itself (apt install unbound): large public ones are refused."),
    Row("doctor.certificate.ending", None, "a certificate ends soon or has ended",
        "nothing has renewed it; it is an error once it has ended",
        advice="Renew it, and see why your ACME client does not. The daemon takes a new file by"
        " itself, within a minute."),
    Row("doctor.certificate.unreadable", None, "a certificate can't be read",
        "no encryption is offered with it", _ERROR,
        advice="Name the PEM files of certificate and key in [smtp] certificate and private_key."),
    Row("doctor.clock.wrong", None, "the clock of this machine is wrong",
        "dates, signatures and codes are judged wrongly", _WARNING,
        advice="Let it be set by the network: timedatectl set-ntp true."),
    Row("doctor.database.away", None, "the database does not answer",
        "no mail is accepted", _ERROR,
        advice="Start the daemon once, or mend [storage] url."),
    Row("doctor.disk.full", None, "the disk is full",
        "mail is refused for now (452)", _ERROR,
        advice="Free some space, delete mail, or lower [storage] min_free."),
    Row("doctor.disk.low", None, "little space is free",
        "mail is refused below the limit", _WARNING,
        advice="Free some space."),
    Row("doctor.dmarc", None, "the DMARC record of this service could not be determined",
        "DNS gave no usable answer", _UNDETERMINED,
        advice=RETRY_ADVICE),
    Row("doctor.dmarc.open", None, "receivers are not asked to refuse mail of this service",
        "the domain sends no mail, so all of it is forged", _WARNING,
        advice="Publish this DMARC record."),
    Row("doctor.dns.example", None, "the domain of this service is an example",
        "only programs near by can send to it", _NOTE,
        advice="To receive mail from outside, set [inbox] domain to a domain of yours."),
    Row("doctor.host", None, "the address of this server could not be determined",
        "DNS gave no usable answer", _UNDETERMINED,
        advice=RETRY_ADVICE),
    Row("doctor.host.absent", None, "the name of this server has no address",
        "no client can connect by it", _ERROR,
        advice="Publish this server's address for the name."),
    Row("doctor.host.elsewhere", None, "the name of this server leads elsewhere",
        "clients connect to another server", _ERROR,
        advice="Publish this server's address, unless a router or balancer of yours has the"
        " other."),
    Row("doctor.mx", None, "the MX record of this service could not be determined",
        "DNS gave no usable answer", _UNDETERMINED,
        advice=RETRY_ADVICE),
    Row("doctor.mx.absent", None, "the domain of this service has no MX record",
        "mail from outside does not reach its inboxes", _ERROR,
        advice="Publish an MX record that leads to the name of this server."),
    Row("doctor.mx.elsewhere", None, "mail for this service goes to another server",
        "mail from outside does not reach its inboxes", _ERROR,
        advice="Let the MX record lead to this server, or set [smtp] host_name to the name it"
        " has."),
    Row("doctor.port-in.closed", None, "no server listens at the port for mail",
        "no mail comes in", _ERROR,
        advice="Let [smtp] listen be 0.0.0.0 with the port, or forward that port to where it"
        " listens."),
    Row("doctor.port-in.other", None, "another server listens at the port for mail",
        "no mail comes in", _ERROR,
        advice="Stop that server, or let mail for the inbox domain pass from it to this one."),
    Row("doctor.port-out.blocked", None, "connections to port 25 do not leave this network",
        "whether mail hosts offer encryption can't be determined", _WARNING,
        advice="Ask whoever runs the network to let connections to port 25 out."),
    Row("doctor.redis.away", None, "Redis does not answer",
        "each daemon counts and wakes for itself", _ERROR,
        advice="Start it, or mend [cluster] redis."),
    Row("doctor.resolver.closed", None, "the resolver knows no name of the Internet",
        "checks would report everything as missing", _ERROR,
        advice="Let [dns] resolvers name one that answers for the whole Internet."),
    Row("doctor.rights.no-folder", None, "the folder of the data does not exist",
        "no daemon has been started with this configuration", _ERROR,
        advice="Start the daemon once, or run the doctor in the folder that the daemon runs in."),
    Row("doctor.rights.not-writable", None, "the folder of the data can't be written",
        "the daemon cannot store mail", _ERROR,
        advice="Run the doctor as the daemon's user, or give the folder to that user."),
    Row("doctor.rights.open-file", None, "other users can read a file of the service",
        "it holds mail or secrets", _WARNING,
        advice="Take the rights of other users away: chmod 600 and the name of the file."),
    Row("doctor.spamd.missing", None, "SpamAssassin is not installed",
        "reports do without the content filter", _WARNING,
        advice="apt install spamassassin spamd"),
    Row("doctor.spamd.off", None, "the content filter is switched off",
        "reports do without it", _NOTE,
        advice="Set [spamassassin] spamd to auto for reports that count it."),
    Row("doctor.spamd.silent", None, "spamd does not answer",
        "reports do without the content filter", _WARNING,
        advice="Start it."),
    Row("doctor.spf", None, "the SPF record of this service could not be determined",
        "DNS gave no usable answer", _UNDETERMINED,
        advice=RETRY_ADVICE),
    Row("doctor.spf.open", None, "the SPF record does not say that the service sends no mail",
        "others can use its name", _WARNING,
        advice="Publish this SPF record, and no other."),
)

TOPICS = (
    "resolver", "dns", "port-in", "port-out", "blocklists", "spamd", "clock", "disk", "rights",
    "database", "certificate", "redis",
)
"""Topics that the doctor examines."""
# fmt: on

_OPEN = tuple(
    Row(
        f"doctor.{topic}.undetermined",
        None,
        f"the doctor could not examine: {topic}",
        "the examination failed or took too long",
        _UNDETERMINED,
        advice="Try again in a minute.",
    )
    for topic in TOPICS
)

ROWS = (*_STATED, *_OPEN)
