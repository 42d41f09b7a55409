"""Findings about the servers of a domain, its registration and blocklists."""

from mailcheck.checks.finding_row import (
    CLOSED_RESOLVER,
    OTHER_RESOLVER,
    SEND_FROM_REAL_SERVER,
    Case,
    Row,
    silent_row,
)
from mailcheck.checks.findings import Area, Severity

_ERROR, _WARNING, _UNDETERMINED, _NOTE = Severity

_OWN_RESOLVER = (
    "Run a resolver of your own (not a public one such as 8.8.8.8 or 1.1.1.1) and name"
    " it in [blocklists] resolvers. Barracuda requires that you register its address; Spamhaus"
    " and SpamRATS give out keys for their lists."
)

# fmt: off
MX = (
    Row("mx.absent", None, "The domain has neither an MX record nor an address",
        "{domain} has neither an MX record nor an address: replies and bounces cannot be"
        " delivered, and many receivers reject senders to whom no reply is possible.", _ERROR,
        advice="Publish an MX record that names your mail server."),
    Row("mx.address-literal", None, "An MX record names an IP address",
        "The MX record names the IP address {exchange}, but only host names are allowed there;"
        " senders cannot use it.",
        advice="Give the address a name such as mail.{domain}, and use that name in the MX"
        " record."),
    Row("mx.alias", None, "An MX record names an alias (CNAME)",
        "The MX record names {exchange}, which is an alias (CNAME) of {target}; some senders do"
        " not accept that.", _WARNING,
        advice="Name the real host in the MX record."),
    Row("mx.dead-host", None, "A mail host has no address",
        "The mail host {exchange} has no address, so mail sent to it waits or bounces.",
        advice="Publish an address for {exchange}, or remove the MX record that names it.",
        cases={"zone-appended": Case(
            "The mail host {exchange} has no address: the name of the zone was appended to"
            " {intended}. Mail sent to it waits or bounces.",
            "Name {intended} in the MX record. If your zone editor appends the name of the zone,"
            " end the name with a dot.")}),
    Row("mx.implicit", None, "The domain has an address but no MX record",
        "{domain} has no MX record, so mail is sent to its web address; it arrives only if a mail"
        " server runs there.", _WARNING,
        advice="Publish an MX record that names your mail server, or this host if it receives your"
        " mail."),
    Row("mx.no-null", None, "A domain that sends no mail does not declare that it receives none",
        "{domain} sends no mail (v=spf1 -all) but does not declare that it receives none, so"
        " {where}.", _WARNING,
        advice="Publish a null MX (RFC 7505) if the domain does not use mail. Otherwise publish an"
        " MX record that names its mail server."),
    Row("mx.no-such-domain", None, "The domain does not exist in DNS",
        "The domain {domain} does not exist in DNS, so it neither receives mail nor is it accepted"
        " as a sender.", _ERROR,
        advice="Check the spelling. If the name is right, check that the domain is registered and"
        " paid for, and that its name servers are entered at the registrar."),
    Row("mx.not-public", None, "A mail host has private addresses only",
        "The mail host {exchange} has only addresses that are not reachable from the Internet"
        " ({host}).",
        advice="Publish the public address of {exchange}, or remove the MX record that names it."),
    Row("mx.null", None, "The domain declares that it receives no mail (null MX)",
        "{domain} declares that it receives no mail (null MX, RFC 7505); replies to mail from it"
        " are not possible.", _NOTE,
        advice="Keep it if the domain is not used for mail. Otherwise publish an MX record that"
        " names your mail server."),
    Row("mx.null-among-others", None, "A null MX is published beside other MX records",
        '{domain} has an MX record of ".", which means that it receives no mail, and other MX'
        ' records: some senders will not deliver.', _ERROR,
        advice='Remove the MX record "0 ." and keep the others.'),
    Row("mx.partly-public", None, "Some addresses of a mail host are private",
        "Some addresses of the mail host {exchange} are not reachable from the Internet ({host}),"
        " so mail is delayed or lost when a sender uses one of them.", _WARNING,
        advice="Remove the private addresses of {exchange} from the public DNS."),
    Row("mx.too-many", None, "The domain names many mail hosts",
        "{domain} names {count} mail hosts; only the first {limit} were looked up.", _NOTE,
        advice="Keep only the hosts that really receive mail."),
    silent_row("mx.undetermined", None, "The mail hosts could not be determined",
        resolver=Case(CLOSED_RESOLVER, OTHER_RESOLVER)),
)

ENCRYPTION = (
    Row("starttls.broken", None, "Encryption (STARTTLS) fails at a mail host",
        "{host} offers encryption (STARTTLS), but it fails: mail to it may not arrive.", _ERROR,
        advice="Check the TLS settings, the certificate and the log of the mail server."),
    Row("starttls.missing", None, "A mail host offers no encryption (STARTTLS)",
        "{host} does not offer encryption (STARTTLS): mail to it can be read in transit.", _ERROR,
        advice="Turn on STARTTLS in the mail server, with a certificate for the name in the MX"
        " record."),
    Row("starttls.outdated", None, "A mail host encrypts with an outdated version of TLS",
        "{host} encrypts with {tls_version}, which RFC 8996 forbids.", _WARNING,
        advice="Update the mail server, or allow TLS 1.2 and 1.3 in its settings."),
    Row("starttls.undetermined", None, "Encryption could not be determined",
        "Could not be determined: {exchange} {reason}.", _UNDETERMINED,
        advice="Try again later, or from a network that allows connections to port 25."),
    Row("starttls.unverified", None, "The certificate of a mail host cannot be verified",
        "The certificate of {exchange} {problem}, so a sender cannot verify that this is the right"
        " server.", _WARNING,
        advice="Install a certificate for {exchange}, for example from Let's Encrypt."),
    Row("dane.absent", None, "The mail hosts have no TLSA records (DANE)",
        "The mail hosts of {domain} have no TLSA records (DANE), so senders do not know which"
        " certificate to expect.", _NOTE,
        advice="Once the domain is signed with DNSSEC, publish the TLSA record of each mail host's"
        ' certificate ("3 1 1" and the SHA-256 of its key).'),
    Row("dane.insecure", None, "The TLSA records are not signed with DNSSEC",
        "The TLSA records at {record_name} are not signed with DNSSEC, so senders ignore them.",
        _WARNING,
        advice="Enable DNSSEC for the domain of {exchange}."),
    Row("dane.partial", None, "Some mail hosts have no TLSA record",
        "{exchange} has no TLSA record, but other hosts have one, so only some of the mail is"
        " protected.", _WARNING,
        advice="Publish a TLSA record at {record_name}."),
    silent_row("dane.undetermined", None, "DANE could not be determined"),
    Row("dane.unusable", None, "No TLSA record of a mail host can be used",
        "No TLSA record at {record_name} can be used for mail, so some senders do not deliver and"
        " others ignore it.", _ERROR,
        advice='Publish a TLSA record with usage 3 or 2, such as "3 1 1" and the SHA-256 of the'
        " server's key."),
    silent_row("dnssec.undetermined", None, "DNSSEC could not be determined",
        "DNS gave no usable answer, or the resolver does not validate",
        no_validator=Case(
            "Could not be determined: no resolver of this service is configured as validating"
            " DNSSEC.",
            "Run a validating resolver and declare it in the configuration of mailcheck.")),
    Row("dnssec.unsigned", None, "The domain is not signed (DNSSEC)",
        "{domain} is not signed (DNSSEC), so forged answers about its mail cannot be detected, and"
        " DANE cannot be used.", _NOTE,
        advice="Turn on DNSSEC at the provider of your name servers."),
    Row("mta-sts.absent", None, "The domain has no MTA-STS record",
        "{domain} does not require encryption from senders (no MTA-STS), so an attacker between"
        " the servers can disable it.", _NOTE,
        advice='Publish a policy file at {url}, and then this TXT record at {prefix}{domain}:'
        ' "v={version}; id=1".'),
    Row("mta-sts.ip-address", None, "The MTA-STS policy names an IP address",
        "The MTA-STS policy of {domain} names the IP address {pattern} as a host (mx). Senders"
        " compare host names only.", _WARNING,
        advice='Write the name of the mail host instead, as "mx: NAME" in {url}.'),
    Row("mta-sts.misplaced", None, "The MTA-STS record is published at the wrong name",
        "The MTA-STS record is published at {place}, where senders do not look, instead of at"
        " {proper}.", _WARNING,
        advice="Move the MTA-STS record to {proper}, and serve the policy at {domain}."),
    Row("mta-sts.policy-missing", None, "The MTA-STS policy cannot be fetched",
        "The MTA-STS record of {domain} announces a policy at {url}, but {problem}; senders act as"
        " if there were no policy.", _ERROR,
        advice="Serve the policy file at its URL with a valid certificate, or remove the record."),
    Row("mta-sts.policy-syntax", None, "The MTA-STS policy is malformed",
        "Senders ignore the MTA-STS policy of {domain}: {problems}.", _ERROR,
        advice="Correct the file at {url} and change the id in the record."),
    Row("mta-sts.several", None, "The domain has several MTA-STS records",
        "{domain} has more than one MTA-STS record, so senders ignore all of them.", _ERROR,
        advice="Keep one MTA-STS record, and remove the others."),
    Row("mta-sts.short-age", None, "Senders cache the MTA-STS policy for a short time only",
        "Senders keep the MTA-STS policy for {max_age} seconds only, which leaves gaps.", _NOTE,
        advice="Set max_age to at least {short_max_age} seconds (a week)."),
    Row("mta-sts.syntax", None, "The MTA-STS record has no valid id",
        "The MTA-STS record of {domain} has no id of 1 to {max_id} letters and digits, so senders"
        " ignore it.", _ERROR,
        advice="Publish the MTA-STS record with an id, and use a new id with each change of the"
        " policy."),
    Row("mta-sts.testing", None, "The MTA-STS policy is in testing mode",
        "The MTA-STS policy of {domain} is in testing: senders report problems, but still deliver"
        " without encryption.", _NOTE,
        advice="When the TLS reports show no problems, set the mode to enforce."),
    Row("mta-sts.uncovered-host", None, "The MTA-STS policy does not name a mail host",
        "The MTA-STS policy of {domain} does not name the mail host {exchange}, so senders {do}"
        " not deliver to it.",
        advice='Add "mx: {exchange}" to {url} and change the id in the record.'),
    silent_row("mta-sts.undetermined", None, "MTA-STS could not be determined",
        "DNS gave no usable answer, or the policy was not fetched"),
    Row("mta-sts.unreadable", None, 'The MTA-STS record does not begin with "v=STSv1;"',
        'The record at {prefix}{domain} ("{text}") does not begin exactly with'
        ' "v={version};"{mistake}, so senders ignore it.', _ERROR,
        advice='Replace that TXT record with one beginning with "v=STSv1;".'),
    Row("tls-rpt.absent", None, "The domain has no TLS-RPT record",
        "{domain} does not request reports about encryption (no TLS-RPT), so you do not learn"
        " about failures.", _NOTE,
        advice="Publish a TLS-RPT record with an address for reports (rua=mailto: and an address"
        " that you read)."),
    Row("tls-rpt.misplaced", None, "The TLS-RPT record is published at the wrong name",
        "The TLS-RPT record is published at {place}, where senders do not look, instead of at"
        " {proper}.", _WARNING,
        advice="Move the TLS-RPT record to {proper}."),
    Row("tls-rpt.several", None, "The domain has several TLS-RPT records",
        "{domain} has more than one TLS-RPT record, so senders ignore all of them.", _WARNING,
        advice="Keep one TLS-RPT record, and remove the others."),
    Row("tls-rpt.syntax", None, "A report address in the TLS-RPT record cannot be used",
        "The TLS-RPT record of {domain} has a report address that is neither mailto: nor https:,"
        " so senders ignore it.", _WARNING,
        advice="Correct the address (rua) in the TLS-RPT record at {prefix}{domain}."),
    silent_row("tls-rpt.undetermined", None, "TLS-RPT could not be determined"),
    Row("tls-rpt.unreadable", None, 'The TLS-RPT record does not begin with "v=TLSRPTv1;"',
        'The record at {prefix}{domain} ("{texts}") does not begin exactly with'
        ' "v={version};"{mistake}, so senders ignore it.', _WARNING,
        advice="Replace that TXT record with one beginning with v=TLSRPTv1; and keep the"
        " addresses."),
)

CERTIFICATES = (
    Row("caa.absent", None, "The domain has no CAA record",
        "{domain} and the domains above it have no CAA record, so any certificate authority may"
        " issue certificates for its hosts, its addresses (S/MIME) and its logo.", _NOTE,
        advice="This is optional. To restrict it, publish CAA records that name your certificate"
        " authorities: issue for hosts, issuemail for S/MIME, issuevmc for the logo."),
    Row("caa.bad-report-address", None, "The report address in a CAA record is not a URL",
        "The value of {one} of {name} is not a mailto: or https: URL, so authorities cannot report"
        " there.", _WARNING,
        advice="Write the address (iodef) as a mailto: or https: URL."),
    Row("caa.contradiction", None, "CAA records forbid and allow the same certificates",
        "The record {denials} of {name} forbids {what}, but {grants} allows them. The prohibition"
        " has no effect.", _WARNING,
        advice='Remove the record with the value ";", or the records that name an authority.'),
    Row("caa.mail-forbidden", None, "No certificate authority may issue S/MIME certificates",
        "{name} forbids all certificate authorities to issue S/MIME certificates for its"
        " addresses.", _NOTE,
        advice="Keep it if nobody signs mail of the domain with S/MIME. Otherwise name the"
        " authority in the record."),
    Row("caa.mail-unrestricted", None, "The CAA records do not restrict S/MIME certificates",
        "The CAA records of {name} restrict certificates for hosts, but not those for mail"
        " addresses (S/MIME): any certificate authority may issue these.", _NOTE,
        advice="This is optional. To restrict it, publish a CAA record with the tag issuemail and"
        ' the authority of your S/MIME certificates, or ";" if there are none.'),
    Row("caa.marks-forbidden", None, "No certificate authority may issue mark certificates",
        "{name} forbids all certificate authorities to issue mark certificates for its logo.",
        _NOTE,
        advice="Keep it if the domain does not use BIMI with a certificate. Otherwise name the"
        " authority in the record."),
    Row("caa.reserved-flags", None, "A CAA record has flags that have no meaning",
        "The record {one} of {name} has flags {flags}. Authorities ignore all of them but"
        " {critical} (critical).", _WARNING,
        advice="Publish the record with flags 0, or with 128 if it is critical."),
    Row("caa.syntax", None, "A CAA record does not name a certificate authority",
        "The value of {one} of {name} is not the domain name of a certificate authority, with"
        " parameters after a semicolon. It allows no authority to issue {what}.", _WARNING,
        advice="Write the domain name of the authority, as its documentation gives it, such as"
        " letsencrypt.org. Publish one record for each authority."),
    silent_row("caa.undetermined", None, "The CAA records could not be determined",
        "DNS gave no usable answer; certificate authorities refuse to issue then"),
    Row("caa.unknown-critical", None, "A critical CAA record has an unknown tag",
        'The record {one} of {name} is critical, and no authority knows its tag "{tag}", so none'
        ' may issue any certificate.', _ERROR,
        advice="Correct the tag, remove the record, or publish it with flags 0.",
        cases={"near": Case(advice='Correct the tag to "{near}".')}),
    Row("caa.unknown-tag", None, "A CAA record has an unknown tag",
        'Authorities ignore the record {one} of {name}: they do not know its tag "{tag}".', _NOTE,
        advice="Correct the tag, or remove the record.",
        cases={"near": Case(advice='Correct the tag to "{near}".')}),
)

REPUTATION = (
    Row("registration.absent", None, "The domain is not registered",
        "The registry does not have {name}: it is not registered.", _ERROR,
        advice="Check the spelling, or register the domain."),
    Row("registration.undetermined", None, "The date of registration could not be determined",
        "Could not be determined: {reason}.", _UNDETERMINED,
        advice="Try again later. If the registry publishes no date, this cannot be fixed, and half"
        " of the points are counted."),
    Row("registration.young", None, "The domain was registered a short time ago",
        "{name} was registered {days} ago; many filters distrust mail from such young domains.",
        _WARNING,
        advice="Wait. In the first weeks, send little mail, and only mail that is wanted."),
    Row("dnsbl.listed", Area.BLACKLIST, "The address or domain is on a blocklist",
        "{name} lists {matched}{what}.",
        advice="Find and fix the cause, then ask the list to remove the entry.",
        cases={
            "blocking": Case(
                "{name} lists {matched}{what}. Many receivers reject mail because of it."),
            "shared": Case(
                "{name} lists {matched}{what}. The address belongs to a mail provider and is"
                " shared with others."),
            "weighed": Case(
                "{name} lists {matched}{what}. Some receivers rate your mail worse because of"
                " it."),
            "unused": Case("{name} lists {matched}{what}. Hardly any receiver uses it."),
            "delist": Case(
                advice="Find and stop the cause of the listing, then request removal at {url}"),
            "expires": Case(
                advice="Find and stop the cause of the listing; the listing expires"
                " automatically."),
        }),
    Row("dnsbl.no-answer", Area.BLACKLIST, "Blocklists gave no answer",
        "{names} gave no answer, so their result is unknown.", _UNDETERMINED,
        advice=f"Try again in a minute. {_OWN_RESOLVER}"),
    Row("dnsbl.no-target", Area.BLACKLIST, "Blocklists could not be queried",
        "{names} could not be queried: the addresses of the domain's mail servers could not be"
        " determined, so their result is unknown.", _UNDETERMINED,
        advice="Try again later."),
    Row("dnsbl.over-budget", Area.BLACKLIST, "The daily limit of blocklist queries is reached",
        "{names} received as many queries today as their operators allow, so their result is"
        " unknown.", _UNDETERMINED,
        advice="Try again later."),
    Row("dnsbl.refused", Area.BLACKLIST, "Blocklists refuse to answer the resolver",
        "{names} refuse to answer the resolver of this service, so their result is unknown.",
        _UNDETERMINED,
        advice=_OWN_RESOLVER),
    Row("dnsbl.rewritten", Area.BLACKLIST, "The answers do not come from a blocklist",
        "The answers for {names} are not from a blocklist: the list has expired, or the"
        " resolver of this service rewrites answers.", _UNDETERMINED,
        advice=_OWN_RESOLVER),
    Row("dnsbl.sick", Area.BLACKLIST, "Blocklists fail their self-test",
        "{names} fail their self-test and are not trusted until they recover, so their result is"
        " unknown.", _UNDETERMINED,
        advice="Try again later."),
    Row("dnsbl.strange-code", Area.BLACKLIST, "Blocklists gave an undocumented answer",
        "{names} gave an answer with an undocumented code, so their result is unknown.",
        _UNDETERMINED,
        advice="Try again later."),
    Row("blacklist.no-address", Area.BLACKLIST, "The sending address is not public",
        "The mail came from an address that is not reachable from the Internet, so no blocklist"
        " was queried about it.", _UNDETERMINED,
        advice=SEND_FROM_REAL_SERVER),
    Row("blacklist.undetermined", Area.BLACKLIST, "Too few blocklists answered",
        "Too few blocklists answered to say whether the mail is listed.", _UNDETERMINED,
        advice="Check the test again later. GET /tools/blacklists shows which lists do not answer"
        " the resolver of this service."),
)
# fmt: on

ROWS = (*MX, *ENCRYPTION, *CERTIFICATES, *REPUTATION)
