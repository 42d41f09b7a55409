"""Findings about a mail: authentication, the sending host, headers, content and transport.

All prices are here, and the version of the score that they define.
"""

from mailcheck.checks.finding_row import RETRY_ADVICE, Row
from mailcheck.checks.findings import Area, Severity

_ERROR, _WARNING, _NOTE, _UNDETERMINED = (
    Severity.ERROR,
    Severity.WARNING,
    Severity.NOTE,
    Severity.UNDETERMINED,
)

SCORING_VERSION = "2"
"""Version of a mail's score; increment it with every change of a price."""

# fmt: off
SPF = (
    Row("spf.result-neutral", Area.SPF, "The SPF result is neutral",
        "The domain makes no statement about the sending host", price=5,
        advice="Publish an SPF record that authorizes the sending host, and send only through hosts"
        " that it names."),
    Row("spf.result-none", Area.SPF, "No SPF record",
        "Google, Yahoo and Microsoft require one from bulk senders", price=10,
        advice="Use a domain of your own in the envelope sender, and publish an SPF record for"
        " it."),
    Row("spf.result-softfail", Area.SPF, "The SPF result is softfail",
        "Receivers treat the mail with suspicion", price=10,
        advice="Add the sending host to the SPF record, or send through a host that the record"
        " names."),
    Row("spf.result-permerror", Area.SPF, "The SPF record cannot be evaluated (permerror)",
        "Many receivers treat this like a fail", price=15,
        advice="Correct the SPF record of the domain."),
    Row("spf.result-fail", Area.SPF, "The SPF result is fail",
        "The domain itself asks receivers to reject the mail", price=20,
        advice="Add the sending host to the SPF record, or send through a host that the record"
        " names."),
    Row("spf.open", Area.SPF, "The SPF record authorizes nearly everyone, so a pass is meaningless",
        "The SPF record lets {reach} send mail as {domain} ({terms}), so an SPF pass proves"
        " nothing.", price=10,
        advice="Replace {terms} with the servers that really send, and end the record with ~all or"
        " -all."),
    Row("spf.wide", Area.SPF,
        "The SPF record authorizes millions of addresses, so a pass proves little",
        "The SPF record lets {reach} send mail as {domain} ({terms}), far more than any sender"
        " has.", price=3,
        advice="List only the networks of the servers that really send. Look for a prefix length"
        " (after the slash) that is too short."),
    Row("spf.absent", Area.SPF, "The domain has no SPF record",
        "{domain} does not publish which servers may send its mail (no SPF record). Google, Yahoo"
        " and Microsoft reject or distrust such mail.", _ERROR,
        advice="Publish an SPF record that names every server and service that sends for the"
        ' domain, or "v=spf1 -all" if none does.'),
    Row("spf.glued-terms", Area.SPF, "Two terms of the SPF record are not separated by a space",
        'Receivers read "{term}" in the SPF record as a single term, with characters that no host'
        ' name has; the record may not mean what was intended.', _WARNING,
        advice='Write "{words}".'),
    Row("spf.helo-fail", Area.SPF, "The SPF result of the HELO name is fail",
        "A few receivers check it", _NOTE,
        advice="Publish an SPF record for the HELO name that authorizes the server, or greet with"
        " another name."),
    Row("spf.helo-permerror", Area.SPF,
        "The SPF record of the HELO name cannot be evaluated (permerror)",
        "A few receivers check it", _NOTE,
        advice="Publish an SPF record for the HELO name that authorizes the server, or greet with"
        " another name."),
    Row("spf.helo-softfail", Area.SPF, "The SPF result of the HELO name is softfail",
        "A few receivers check it", _NOTE,
        advice="Publish an SPF record for the HELO name that authorizes the server, or greet with"
        " another name."),
    Row("spf.ignored-term", Area.SPF, "Receivers ignore a term of the SPF record",
        '"{term}" in {place} {reason}; the record may not mean what was intended.', _WARNING,
        advice="Correct or remove the term. If it is in the record of another domain, ask the owner"
        " of that domain."),
    Row("spf.include-absent", Area.SPF, "An included domain has no SPF record",
        "Receivers return permerror, and no mail of the domain passes", _ERROR,
        advice="Remove the include, or ask the owner of the included domain to publish a record."),
    Row("spf.include-loop", Area.SPF, "An included SPF record leads back to itself",
        "Receivers return permerror, and no mail of the domain passes", _ERROR,
        advice="Remove the include, or ask the owner of the included record to correct it."),
    Row("spf.include-several", Area.SPF, "An included domain has several SPF records",
        "Receivers return permerror, and no mail of the domain passes", _ERROR,
        advice="Remove the include, or ask the owner of the included domain to keep one record."),
    Row("spf.long", Area.SPF, "The SPF record is long",
        "The SPF record has {count} characters; above {long_record} some receivers do not get the"
        " whole answer.", _NOTE,
        advice="Move part of the record to another name, and include that name."),
    Row("spf.macro", Area.SPF, "Part of the SPF record depends on each mail (macros)",
        "A part of the SPF record depends on each single mail (macros), so it could not be checked"
        " here.", _NOTE,
        advice="No action is needed. Send a test mail to see how receivers evaluate the record."),
    Row("spf.misplaced", Area.SPF, "The SPF record is published at the wrong name",
        "The SPF record is published at {place}, where receivers do not look, instead of at"
        " {domain}.", _ERROR,
        advice="Move the SPF record to {domain}."),
    Row("spf.neutral", Area.SPF, 'The SPF record ends in "?all"',
        '{where} ends in "?all", which gives no result for mail from other servers.', _WARNING,
        advice="End the SPF record with ~all, or with -all once you are sure that it names every"
        " sender. If it has a redirect, change the record that the redirect leads to instead."),
    Row("spf.no-end", Area.SPF, 'The SPF record does not end in an "all" term such as ~all',
        "{where} does not say what to do with mail from other servers, so forged mail is not"
        " marked.", _WARNING,
        advice="End the SPF record with ~all, or with -all once you are sure that it names every"
        " sender. If it has a redirect, change the record that the redirect leads to instead."),
    Row("spf.ptr", Area.SPF, 'The SPF record uses "ptr"',
        'The SPF record uses "ptr", which is slow and which many receivers no longer evaluate (RFC'
        ' 7208 5.5).', _WARNING,
        advice="Name the sending servers with a, mx, ip4 or ip6 instead."),
    Row("spf.several", Area.SPF, "The domain has several SPF records",
        "{domain} has {count} SPF records, but only one is allowed, {consequence}.", _ERROR,
        advice="Replace all SPF records with a single record that contains the terms of all."),
    Row("spf.syntax", Area.SPF, "A term of the SPF record is malformed",
        '"{term}" in {place} {reason}, {consequence}.', _ERROR,
        advice="Correct or remove the term. If it is in the record of another domain, ask the owner"
        " of that domain."),
    Row("spf.too-many-lookups", Area.SPF, "The SPF record needs too many DNS lookups",
        "The SPF record needs {count} DNS lookups and {max_lookups} are allowed, {broken}.", _ERROR,
        advice="Remove the services that no longer send for the domain, move some to a subdomain of"
        " their own, or replace a, mx and include with the ip4 and ip6 networks behind them."),
    Row("spf.too-many-mx", Area.SPF, "A term of the SPF record leads to more than ten mail hosts",
        '"{term}" in {place} leads to more than ten mail hosts, {consequence}.', _ERROR,
        advice="Replace the term with the ip4 and ip6 networks of these hosts."),
    Row("spf.too-many-voids", Area.SPF, "Too many terms of the SPF record find no DNS record",
        "{count} terms of the SPF record have no record in DNS ({quoted_terms}) and {max_voids}"
        " are allowed, {broken}.", _ERROR,
        advice="Remove the terms of the SPF record whose names do not exist. Put ip4 and ip6 before"
        " the terms that need a DNS lookup."),
    Row("spf.undetermined", Area.SPF, "SPF could not be determined",
        "DNS gave no usable answer, or the sending host cannot be checked", _UNDETERMINED,
        advice=RETRY_ADVICE),
    Row("spf.unreadable", Area.SPF, 'A record looks like SPF but does not begin with "v=spf1 "',
        '{domain} {which} that looks like SPF but does not begin exactly with "v=spf1 "'
        ' ("{text}"), so receivers ignore it.',
        advice="Publish one SPF record that names the senders of both, and remove the other one."),
    Row("spf.void", Area.SPF, "A term of the SPF record refers to a name that does not exist",
        "It authorizes no host and counts towards a limit of two", _WARNING,
        advice="Correct or remove the terms that find no DNS record. If the MX record of the domain"
        " is at fault, mend that first and keep the term."),
    Row("spf.voids-before-senders", Area.SPF, "Terms that find no DNS record come before senders",
        "For {client}, more than {max_voids} terms can have no record in DNS ({voids}) before"
        " {behind}. Receivers then return permerror, so mail of these senders does not pass SPF.",
        _WARNING,
        advice="Put ip4 and ip6 before the terms that need a DNS lookup. Replace a and mx with ip4"
        " and ip6 if their addresses seldom change."),
    Row("spf.voids-for-some", Area.SPF, "For some servers, too many terms find no DNS record",
        "For {client} that the SPF record does not name, more than {max_voids} terms can have no"
        " record in DNS ({voids}). Receivers then return permerror instead of the result at the"
        " end of the record.", _NOTE,
        advice="Put ip4 and ip6 before the terms that need a DNS lookup. Replace a and mx with ip4"
        " and ip6 if their addresses seldom change."),
)

HOST = (
    Row("rdns.absent", Area.RDNS, "The sending address has no reverse DNS name",
        "The address {address} has no name (no PTR record); Google and many others reject mail"
        " from such addresses.", price=10,
        advice="Ask the provider of the address (hosting or network provider) to set its reverse"
        " DNS name to the name of your mail server."),
    Row("rdns.unconfirmed", Area.RDNS,
        "The reverse DNS name does not lead back to the sending address",
        "The name of the address {address} is {name}, but that name does not resolve to the"
        " address, so receivers do not trust it.", price=5,
        advice="Ask the provider of the address (hosting or network) to set its reverse name to"
        " {wanted}, which must resolve to {address}. Only if {name} is your own name, publish the"
        " address there instead."),
    Row("rdns.generic", Area.RDNS, "The reverse DNS name looks as if it was made from the address",
        "The name {name} looks generated from the address {address}, as for home and dial-up"
        " connections; filters rate such mail worse.",
        _WARNING,
        advice="Have the reverse DNS name set to a name of your own, such as that of your mail"
        " server."),
    Row("rdns.undetermined", Area.RDNS, "The reverse DNS name could not be determined",
        "DNS gave no usable answer", _UNDETERMINED,
        advice=RETRY_ADVICE),
    Row("helo.unresolvable", Area.HELO, "The HELO name does not resolve",
        "RFC 5321 4.1.4 asks for a name that does, and many receivers check it", price=3,
        advice="Configure the server to greet (HELO, EHLO) with its full name, such as"
        " mail.example.com. The name must have an address in DNS."),
    Row("helo.other-address", Area.HELO, "The HELO name leads to another address",
        "The mail server greets with {helo_name}, a name that does not lead to its address"
        " {client_ip}; a few receivers compare the two.", _NOTE,
        advice="Configure the server to greet with the reverse DNS name of its address."),
    Row("helo.undetermined", Area.HELO, "The HELO name could not be looked up",
        "DNS gave no usable answer", _UNDETERMINED,
        advice=RETRY_ADVICE),
)

DKIM = (
    Row("dkim.weak-key", Area.DKIM, "The RSA key is shorter than 2048 bits",
        "The DKIM key at {name} has {bits} bits. {good_rsa_bits} are recommended, and some"
        " receivers mark shorter keys.", price=2,
        advice="Create a new RSA key of 2048 bits in your mail server or at your mail provider, and"
        " publish the record that it shows."),
    Row("dkim.unaligned", Area.DKIM, "A signature is valid, but not for the From domain",
        "The valid signature is from {signers}, not from {author_domain}, the domain in From:"
        " DMARC does not count it.", price=5,
        advice="Sign the mail with a key of {author_domain} (d={author_domain})."),
    Row("dkim.unsigned", Area.DKIM, "No DKIM signature",
        "The mail has no DKIM signature, so receivers cannot verify that it comes unchanged from"
        " your domain; Google, Yahoo and Microsoft ask bulk senders for one.", price=10,
        advice="Turn on DKIM signing in your mail server or at your mail provider, and publish the"
        " record that it shows."),
    Row("dkim.invalid", Area.DKIM, "No DKIM signature is valid",
        "The mail counts as unsigned, and looks altered or forged", price=15,
        advice="Correct the cause of each failure. The findings about the signatures name it."),
    Row("dkim.absent", Area.DKIM, "The domain has no DKIM key",
        "{domain} has no DKIM key, so its mail cannot be signed; Google, Yahoo and Microsoft ask"
        " for signatures.", _ERROR,
        advice="Turn on DKIM in your mail server or at your mail provider, and publish the record"
        " that it shows."),
    Row("dkim.alignment-undetermined", Area.DKIM,
        "Alignment of a valid signature could not be determined",
        "DNS gave no usable answer", _UNDETERMINED,
        advice="Check the mail again in a minute."),
    Row("dkim.body-changed", Area.DKIM, "The body was changed after signing",
        "The signature fails",
        advice="Sign last. Usual causes are a footer or disclaimer added after signing, a virus"
        " scanner or mailing list that rewrites the mail, links replaced for tracking, and a server"
        " on the way that converts 8-bit text or breaks lines over 998 characters. A signature with"
        " c=relaxed/relaxed tolerates changed whitespace."),
    Row("dkim.body-cut", Area.DKIM, "The body is shorter than the signature says (l=)",
        "The signature fails",
        advice="Turn off the body length (l=) in the signer, and find out what shortens the mail"
        " after signing."),
    Row("dkim.body-length", Area.DKIM, "The signature covers only part of the body (l=)",
        "The signature of {signing_domain} covers the first {body_length} octets of the body only"
        " (l=), so anyone can add text that seems signed{unsigned}.", _WARNING,
        advice="Turn off the body length in the signer, so that it writes no l=."),
    Row("dkim.clock-ahead", Area.DKIM, "The signature is dated after the mail arrived (t=)",
        "The signature of {signing_domain} is dated {seconds_ahead} after the mail arrived (t=);"
        " some receivers reject such a signature.", _WARNING,
        advice="Correct the clock and the time zone of the signing server."),
    Row("dkim.dangling", Area.DKIM, "A DKIM record points to a name without a key",
        "Mail signed with it fails", _WARNING,
        advice="Turn on DKIM at the provider that owns that name. Remove the record only if you no"
        " longer use that provider."),
    Row("dkim.expired", Area.DKIM, "The signature has expired (x=)",
        "The signature fails",
        advice="Use a longer lifetime for signatures (a week, or no end: leave x= out), and find"
        " out why the mail was on its way for so long. A wrong clock of the signing server has the"
        " same effect."),
    Row("dkim.from-the-future", Area.DKIM, "The signature is dated in the future (t=)",
        "Receivers reject such a signature",
        advice="Correct the clock and the time zone of the signing server."),
    Row("dkim.header-changed", Area.DKIM, "The header was changed after signing",
        "The signature fails",
        advice="Sign the mail last, after every program that changes its header."),
    Row("dkim.hidden", Area.DKIM,
        "No DKIM key was found under the usual selectors",
        "Could not be determined: {names}, and DNS cannot list names.", _UNDETERMINED,
        advice="Enter the selector (s= in the DKIM-Signature field of a mail that you sent), or"
        " send a test mail, whose signature contains it."),
    Row("dkim.key-broken", Area.DKIM, "The DKIM key record cannot be used",
        "Mail signed with the key fails", aliases=("dkim.broken-key",),
        advice="Publish the key record again, exactly as your mail server or mail provider shows"
        " it."),
    Row("dkim.key-of-other-type", Area.DKIM, "The key has a different type than the signature",
        "The signature fails",
        advice="Sign with the key that is published, or publish the key that signs."),
    Row("dkim.key-revoked", Area.DKIM, "The DKIM key is revoked (empty p=)",
        "The DKIM key at {name} is revoked (empty p=): mail signed with it fails.",
        aliases=("dkim.revoked",),
        advice="Publish the new key, if the key is still used. Otherwise no action is needed."),
    Row("dkim.key-too-short", Area.DKIM, "The DKIM key is shorter than 1024 bits",
        "Receivers reject it, and mail signed with it fails", aliases=("dkim.short-key",),
        advice="Create a new RSA key of 2048 bits in your mail server or at your mail provider, and"
        " publish the record that it shows."),
    Row("dkim.key-undetermined", Area.DKIM, "The key of a signature could not be looked up",
        "DNS gave no usable answer",
        advice="Check the mail again in a minute. If the problem persists, the name servers of that"
        " domain do not answer."),
    Row("dkim.malformed", Area.DKIM, "The DKIM-Signature field is malformed",
        "Receivers cannot use the signature",
        advice="Update the software that signs, or report the problem to its operator. Your mail"
        " server, or the provider that sends for you, writes a DKIM-Signature field that receivers"
        " cannot use."),
    Row("dkim.many-signatures", Area.DKIM, "The mail has many signatures",
        "The mail has {count} signatures; only the first {checked} were verified, as receivers do.",
        _NOTE,
        advice="Find out which servers sign the mail, and let each of them sign it once."),
    Row("dkim.misplaced", Area.DKIM, "A DKIM key is published at the wrong name",
        "The DKIM {record} is published at {place}, where receivers do not look, instead of at"
        " {name}.", _ERROR,
        advice="Move the DKIM {record} to {name}."),
    Row("dkim.next-key", Area.DKIM, "The record for the next DKIM key leads to no key yet",
        "The DKIM record {name} points to {target}, where there is no key yet: {provider}"
        " publishes it when it changes the key.", _NOTE,
        advice="Keep {name}. {provider} needs it for the next key."),
    Row("dkim.no-key", Area.DKIM, "No key is published at the name given in the signature",
        "The signature fails",
        advice="Publish the key at the name given in the signature, or sign with a selector that is"
        " published."),
    Row("dkim.no-key-record", Area.DKIM,
        "The record at the name given in the signature is not a DKIM key",
        "The signature fails",
        advice="Publish the key record at the name given in the signature."),
    Row("dkim.no-wildcard", Area.DKIM, "A domain that sends no mail has no empty wildcard key",
        "{domain} sends no mail and needs no DKIM key. An empty key for every selector declares"
        " that no signature in its name is valid.", _NOTE,
        advice="Publish an empty key at the wildcard name."),
    Row("dkim.other-identity", Area.DKIM, "The key (t=s) does not allow the identity (i=)",
        "The signature fails",
        advice="Configure the signer to write the signing domain (d=) itself into i=, or remove"
        " t=s."),
    Row("dkim.several-keys", Area.DKIM, "Several DKIM keys are published at one name",
        "There is more than one DKIM key at {name}. It is undefined which one counts, so"
        " signatures may fail.", aliases=("dkim.several",),
        advice="Keep one of the keys at this name, and move the others to selectors of their own."),
    Row("dkim.sha1", Area.DKIM, "The signature uses SHA-1",
        "Receivers no longer accept it (RFC 8301 3.1)",
        advice="Set the signer to rsa-sha256. The key can stay if it is long enough."),
    Row("dkim.stray-record", Area.DKIM, "Another TXT record is published beside the DKIM key",
        'There is another TXT record beside the DKIM key at {name} ("{strays}"); receivers that'
        ' read it first find no key.', _WARNING,
        advice="Remove that record and keep the key."),
    Row("dkim.testing", Area.DKIM, "The DKIM key is marked as a test (t=y)",
        "The DKIM key at {record_name} is marked as a test (t=y): receivers may treat mail signed"
        " with it as unsigned.", _WARNING,
        advice="Remove t=y from the DKIM record at {record_name}."),
    Row("dkim.undetermined", Area.DKIM, "DKIM could not be determined",
        "DNS gave no usable answer", _UNDETERMINED,
        advice=RETRY_ADVICE),
    Row("dkim.wildcard", Area.DKIM, "Every selector has the same DKIM record (wildcard)",
        "Every name below {parent} has the same DKIM record (a wildcard).", _NOTE,
        advice="No action is needed if the domain sends no mail. Otherwise publish each key at its"
        " selector."),
)

DMARC = (
    Row("dmarc.no-record", Area.DMARC, "No DMARC record",
        "Google, Yahoo and Microsoft reject bulk mail without one", price=10,
        advice="Publish a DMARC record for the domain in From; begin with p=none. Send from a"
        " domain of your own."),
    Row("dmarc.fails-none", Area.DMARC, "DMARC fails, and the policy is none",
        "Receivers see that the From address is not authenticated", price=15,
        advice="Make SPF or DKIM pass for the domain in From."),
    Row("dmarc.no-author", Area.DMARC, "No single From domain",
        "DMARC cannot be applied. {explanation}", price=15,
        advice="Send with exactly one From field that contains one address of your domain."),
    Row("dmarc.fails-enforced", Area.DMARC, "DMARC fails, and the policy is quarantine or reject",
        "Receivers are asked to quarantine or reject the mail", price=30,
        advice="Make SPF or DKIM pass for the domain in From."),
    Row("dmarc.absent", Area.DMARC, "The domain has no DMARC record",
        "{domain} has no DMARC record, so receivers do not know what to do with mail forged in its"
        " name. Google, Yahoo and Microsoft ask bulk senders for one.", _ERROR,
        advice="Publish a DMARC record{where}. Begin with p=none, read the reports, then change it"
        " to p=quarantine."),
    Row("dmarc.bad-policy", Area.DMARC, "The policy in the DMARC record is invalid",
        "The DMARC record has no valid policy, so receivers treat it as p=none.", _ERROR,
        advice="Set a valid policy in the DMARC record."),
    Row("dmarc.dangling", Area.DMARC,
        "The name of the DMARC record is an alias (CNAME) of a name without a record",
        "{name} is an alias (CNAME) of {target}, which {what}, so receivers find no DMARC record"
        " there.", _WARNING,
        advice="Publish the DMARC record at {target}, or replace the CNAME with a TXT record at"
        " {name}."),
    Row("dmarc.failure-reports", Area.DMARC, "The DMARC record requests failure reports (ruf=)",
        "The DMARC record asks receivers to send failure reports (ruf=) to {readers}. They contain"
        " addresses, subjects and often the text of mails.", _NOTE,
        advice="Keep ruf= only if its readers need the reports and may read the mails in them."
        " Aggregate reports (rua=) show the same senders without personal data."),
    Row("dmarc.misplaced", Area.DMARC, "The DMARC record is published at the wrong name",
        "The DMARC record is published at {place}, where receivers do not look, instead of at"
        " {proper}.", _ERROR,
        advice="Move the DMARC record to {proper}."),
    Row("dmarc.no-policy", Area.DMARC, "The DMARC record has no policy (p=)",
        "The DMARC record of {domain} has no valid policy (p=none, p=quarantine or"
        " p=reject){mistake}, so receivers ignore it.", _ERROR,
        advice="Add a policy to the DMARC record at {prefix}{domain}."),
    Row("dmarc.no-reports", Area.DMARC, "The DMARC record has no address for reports (rua=)",
        "The DMARC record has no address for reports, so you never learn which of your mail fails"
        " and who forges your name.", _WARNING,
        advice="Add an address for reports (rua=mailto: and an address) to the DMARC record."),
    Row("dmarc.not-reject", Area.DMARC, "A domain that sends no mail asks only for quarantine",
        "{domain} sends no mail, but its DMARC record asks for quarantine instead of rejection.",
        _NOTE,
        advice="Publish p=reject: all mail in the name of the domain is forged."),
    Row("dmarc.obsolete-tags", Area.DMARC, "The DMARC record uses tags that RFC 9989 removed",
        "The DMARC record uses {tags}, which the current standard (RFC 9989) has removed; old"
        " receivers may still evaluate it.", _NOTE,
        advice="Remove the obsolete tags from the DMARC record. Write t=y instead of pct=0."),
    Row("dmarc.older-receivers", Area.DMARC, "Receivers find different DMARC records",
        "Receivers that follow RFC 9989 find the DMARC record of {domain} here: {newer}. Receivers"
        " that still follow RFC 7489: {older}.", _NOTE,
        advice="Publish a DMARC record at {prefix}{domain} itself: all receivers look there"
        " first."),
    Row("dmarc.policy-none", Area.DMARC, "The DMARC policy is none",
        "The policy for {domain} is none: mail forged in its name is delivered as if it were"
        " genuine.", _WARNING,
        advice="{to_do} the reports show that all your own mail passes."),
    Row("dmarc.public-suffix", Area.DMARC,
        "The DMARC record says that the domain is a public suffix (psd=y)",
        "The DMARC record says that {place} is a public suffix (psd=y), so each subdomain counts"
        " as an organization of its own: mail of a subdomain that {place} signs, or that passes"
        " SPF for it, fails DMARC.", _WARNING,
        advice="Remove psd=y from the DMARC record. It is for registries, below whose domains"
        " others register names."),
    Row("dmarc.report-refused", Area.DMARC, "A report address in another domain is not authorized",
        "Receivers do not send reports there", _WARNING,
        advice="Ask the owner of the other domain to publish the record that allows the reports, or"
        " use an address of your own. Providers of free mailboxes do not publish such records."),
    Row("dmarc.several", Area.DMARC, "The domain has several DMARC records",
        "{domain} has {count} DMARC records, but only one is allowed, so receivers ignore all of"
        " them.", _ERROR,
        advice="Keep the right DMARC record at {prefix}{domain}, and delete the others."),
    Row("dmarc.subdomains-ignored", Area.DMARC, "Tags for subdomains have no effect here",
        "{ignored} in the DMARC record of {place} {have} no effect: the record of {organization}"
        " applies to its subdomains.", _NOTE,
        advice="Set the policy for subdomains in the DMARC record of {organization}."),
    Row("dmarc.syntax", Area.DMARC, "Part of the DMARC record is malformed",
        "{problem}; receivers ignore that part of the record.", _WARNING,
        advice="Correct that part of the DMARC record, or remove it."),
    Row("dmarc.testing", Area.DMARC, "The DMARC record is marked as a test (t=y)",
        "The DMARC record is marked as a test (t=y), so receivers apply {one_step_weaker} instead"
        " of {policy}.", _WARNING,
        advice="Remove t=y from the DMARC record once the reports show that all your own mail"
        " passes."),
    Row("dmarc.undetermined", Area.DMARC, "DMARC could not be determined",
        "DNS gave no usable answer, or the sending host cannot be checked", _UNDETERMINED,
        advice=RETRY_ADVICE),
    Row("dmarc.unreadable", Area.DMARC, 'The DMARC record does not begin with "v=DMARC1;"',
        'The record at {prefix}{domain} ("{broken}") does not begin exactly with'
        ' "v={version};"{mistake}, so receivers ignore it.', _ERROR,
        advice="{step}{besides}."),
    Row("dmarc.weaker-subdomains", Area.DMARC, "The policy for subdomains is weaker",
        "{whose} of {place} have a weaker policy ({tags}) than {place} itself, so forgers use a"
        " subdomain.", _WARNING,
        advice="Remove {tags} from the DMARC record: then p applies to subdomains too."),
)

ARC = (
    Row("arc.broken", Area.ARC, "The ARC chain is broken",
        "Receivers do not trust its results; it costs no points here", _NOTE,
        advice="It costs no points here. A server that forwards the mail should seal it last, after"
        " all changes. Mail that is sent directly needs no seal."),
    Row("arc.undetermined", Area.ARC, "The ARC chain could not be verified",
        "DNS gave no usable answer", _UNDETERMINED,
        advice="Check the mail again in a minute."),
    Row("arc.valid", Area.ARC, "The ARC chain is valid",
        "Receivers may trust the results of servers that forwarded the mail", _NOTE,
        advice="No action is needed. This is for information only."),
)

DKIM2 = (
    Row("dkim2.malformed", Area.DKIM2, "The DKIM2 fields are malformed",
        "The DKIM2 fields {problem}. DKIM2 is a draft, so they have no effect here.", _NOTE,
        advice="It costs no points here. If your server writes these fields, update it: versions of"
        " the draft are not compatible with each other. Keep signing with DKIM."),
    Row("dkim2.present", Area.DKIM2, "The mail is signed with DKIM2",
        "The mail is signed with DKIM2 by {hops} ({domains}). DKIM2 is a draft, so the signatures"
        " were not verified.",
        _NOTE,
        advice="No action is needed. Keep signing with DKIM, which receivers require."),
)

SENDER = (
    Row("authentication.nothing-passes", Area.AUTHENTICATION, "Neither SPF nor DKIM passes",
        "Neither SPF nor DKIM passes, so receivers cannot verify the sender. Gmail rejects such"
        " mail.", price=20,
        advice="Make SPF or DKIM pass. One of them is enough, both are better."),
    Row("sender.bounces-undeliverable", Area.SENDER,
        "The domain of the envelope sender accepts no mail or does not exist",
        "Bounces cannot be delivered: {domain}, the domain of the envelope sender, {problem}. Many"
        " receivers reject such mail (450 4.1.8 or 550 5.7.27).", price=20,
        advice="Use a return address whose domain accepts mail."),
    Row("sender.replies-undeliverable", Area.SENDER,
        "The From domain, if it is another one, accepts no mail or does not exist",
        "Replies cannot be delivered: {domain}, the domain of the From address, {problem}. Many"
        " receivers reject such mail (550 5.7.27).", price=10,
        advice="Use a From address whose domain accepts mail."),
)

HEADERS = (
    Row("headers.date-missing", Area.HEADERS, "No Date field",
        "The mail has no Date field, which is required. Some receivers reject such mail.", price=3,
        advice="Add a Date field with the time of sending, such as: Mon, 05 Jan 2026 10:00:00"
        " +0000."),
    Row("headers.message-id-missing", Area.HEADERS, "No Message-ID",
        "The mail has no Message-ID. Programs need it to find replies and duplicates.",
        price=3,
        advice="Add a unique Message-ID that ends in your domain: <unique@your.domain>."),
    Row("headers.date-form", Area.HEADERS, "The Date field has an unusual format",
        "The Date field {problem} ({text}). Some programs misread it.", _NOTE,
        advice="Write the time of sending into the Date field, such as: Mon, 05 Jan 2026 10:00:00"
        " +0000."),
    Row("headers.date-future", Area.HEADERS, "The Date field is in the future",
        "The Date field is in the future ({text}), which is common in spam.", _WARNING,
        advice="Correct the clock and time zone of the sending server (NTP), and set the date when"
        " you send."),
    Row("headers.date-old", Area.HEADERS, "The Date field is more than a day old",
        "The Date field is more than a day old ({shown}). Filters count that against the mail.",
        _WARNING,
        advice="Correct the clock and time zone of the sending server (NTP), and set the date when"
        " you send."),
    Row("headers.date-unreadable", Area.HEADERS, "The Date field cannot be read",
        "The Date field {problem} ({text}): the mail has no usable date.", _WARNING,
        advice="Write the time of sending into the Date field, such as: Mon, 05 Jan 2026 10:00:00"
        " +0000."),
    Row("headers.fake-reply", Area.HEADERS,
        "The subject looks like a reply, but the mail refers to no other mail",
        "The subject looks like a reply or a forwarded mail ({subject}), but the mail refers to no"
        " other mail. Filters detect this trick.", _WARNING,
        advice='Remove the prefix, such as "Re:", from the subject.'),
    Row("headers.from-missing", Area.HEADERS, "No From field",
        "The mail has no From field, so readers cannot see its author, and large receivers reject"
        " it.", _ERROR,
        advice="Add a From field with one address of your own domain."),
    Row("headers.from-repeated", Area.HEADERS, "Several From fields",
        "The mail has {author_fields} From fields, a trick of forgers. Gmail and others reject"
        " such mail.", _ERROR,
        advice="Find the program that adds the second From field, and keep only one."),
    Row("headers.from-several-domains", Area.HEADERS, "The authors are from several domains",
        "The From field names authors from several domains ({author_domains}). DMARC cannot"
        " evaluate them, and many receivers reject the mail.", _WARNING,
        advice="Name one author in From, and the others in Reply-To or Cc."),
    Row("headers.from-unreadable", Area.HEADERS, "The From field contains no mail address",
        "The From field contains no mail address with a domain name, so receivers cannot check the"
        " author.", _ERROR,
        advice="Write the From field as: Your Name <you@your-domain.example>."),
    Row("headers.large", Area.HEADERS, "The header is large",
        "The header has {kibibytes} KiB. Many servers reject or cut a header of this size.",
        _WARNING,
        advice="Look for a program that adds the same fields repeatedly, or for very long recipient"
        " lists."),
    Row("headers.message-id-local", Area.HEADERS, "The Message-ID ends in a private name",
        "The Message-ID ends in {domain}, a name that only your network knows.", _NOTE,
        advice="Use a unique Message-ID that ends in your domain: <unique@your.domain>."),
    Row("headers.message-id-malformed", Area.HEADERS, "The Message-ID is malformed",
        "The Message-ID is malformed ({text}). Filters count that against the mail.", _WARNING,
        advice="Use a unique Message-ID that ends in your domain: <unique@your.domain>."),
    Row("headers.mime-version-missing", Area.HEADERS, "MIME parts without a MIME-Version field",
        "The mail has MIME parts but no MIME-Version field. A strict program shows them as text.",
        _NOTE,
        advice="Add the field: MIME-Version: 1.0."),
    Row("headers.name-shows-address", Area.HEADERS, "The sender's name shows another address",
        "The sender's name shows an address at {shown}, but the mail is from {domain}. Filters"
        " treat that as a forgery.", _WARNING,
        advice="Use a name without a mail address."),
    Row("headers.no-reply", Area.HEADERS, "The sender's address says that replies are not read",
        "The sender's address says that replies are not read. People whose replies are ignored"
        " mark mail as spam sooner.", _NOTE,
        advice="Add a Reply-To field with an address that is read."),
    Row("headers.raw-8bit", Area.HEADERS, "Characters outside ASCII are not encoded",
        "Characters outside ASCII are not encoded in these fields: {raw_8bit_fields}. Some"
        " receivers reject that, and others show wrong characters.", _WARNING,
        advice="Encode them (RFC 2047: =?utf-8?q?...?=), as mail libraries do."),
    Row("headers.repeated", Area.HEADERS, "Fields that may occur only once are repeated",
        "Fields that may occur only once are repeated: {repeated}. Gmail rejects such mail, and"
        " mail programs show different values.", _WARNING,
        advice="Find the program that adds them again, and keep one of each."),
    Row("headers.reply-to-freemail", Area.HEADERS, "Replies go to a free mailbox in another domain",
        "Replies go to a free mailbox at {domain}, which is not the sender's domain. Fraudsters do"
        " that, and filters detect it.", _WARNING,
        advice="Receive replies at an address of the domain in From."),
    Row("headers.return-path", Area.HEADERS, "The mail was sent with a Return-Path field",
        "The mail was sent with a Return-Path field, which only the receiving server may add (RFC"
        " 5321 4.4).", _NOTE,
        advice="Pass the return address to your mail server as the envelope sender instead."),
    Row("headers.sender-missing", Area.HEADERS, "Several authors and no Sender field",
        "The mail has several authors and no Sender field, which must say which of them sent it"
        " (RFC 5322 3.6.2).", _NOTE,
        advice="Name one author in From, or add a Sender field."),
    Row("headers.subject-capitals", Area.HEADERS, "The subject is written in capital letters only",
        "The subject is written in capital letters only, as in much spam.", _NOTE,
        advice="Write the subject as you would to one person."),
    Row("headers.subject-emoji", Area.HEADERS, "The subject has many emoji",
        "The subject has {emoji} emoji. Some filters and people dislike that.", _NOTE,
        advice="Write the subject as you would to one person."),
    Row("headers.subject-long", Area.HEADERS, "The subject is long",
        "The subject has {count} characters. Mail programs show 40 to 80.", _NOTE,
        advice="Shorten the subject, and put the main point first."),
    Row("headers.subject-missing", Area.HEADERS, "No subject",
        "The mail has no subject. People and filters treat such mail as spam.", _WARNING,
        advice="Write a subject that says what the mail is about."),
    Row("headers.subject-punctuation", Area.HEADERS,
        "The subject has many exclamation or question marks",
        "The subject has more exclamation or question marks than a sentence needs.", _NOTE,
        advice="Write the subject as you would to one person."),
    Row("headers.to-missing", Area.HEADERS, "The mail names no recipient",
        "The mail names no recipient (To or Cc). Mass mail often names no recipient, and filters"
        " detect that.", _NOTE,
        advice="Add a To field with the recipient."),
)

CONTENT = (
    Row("content.html-only", Area.CONTENT, "HTML without a text part",
        "The mail has HTML but no text part. Filters count that against a mail, and programs"
        " without HTML show no readable text.", price=3,
        advice="Send multipart/alternative: a text/plain part with the same words, then the HTML."),
    Row("content.active", Area.CONTENT, "The HTML runs programs or loads other pages",
        "The HTML has elements that run programs or load other pages ({names}). Mail programs"
        " remove them, and filters distrust them.", _WARNING,
        advice="Remove these elements, and link to a web page instead."),
    Row("content.base64-html", Area.CONTENT, "The HTML is sent as base64",
        "The HTML is sent as base64, which makes it a third larger. Some filters count that"
        " against a mail.", _NOTE,
        advice="Send it as quoted-printable, if your program lets you choose."),
    Row("content.broken-structure", Area.CONTENT, "Parts of the mail cannot be read",
        "Parts of the mail cannot be read correctly: {problems}.", _WARNING,
        advice="Build the mail with a mail library, and do not change the bytes afterwards."),
    Row("content.clipped", Area.CONTENT, "The HTML is larger than Gmail shows",
        "The HTML has {kibibytes} KiB. Gmail shows the first 102 KiB and cuts off the rest, with"
        " the link to unsubscribe.", _WARNING,
        advice="Make the HTML smaller: fewer inline styles, no comments, no whitespace between"
        " tags."),
    Row("content.data-images", Area.CONTENT, "Images are embedded in the HTML (data:)",
        "The HTML embeds {images} (data:). Gmail and Outlook do not show them.", _NOTE,
        advice="Attach images with a Content-ID, or serve them over https."),
    Row("content.empty", Area.CONTENT, "The mail has no content",
        "The mail has no content.", _NOTE,
        advice="Write at least one sentence: filters and people distrust empty mail."),
    Row("content.empty-text", Area.CONTENT, "The text part beside the HTML is empty",
        "The text part beside the HTML is empty, so programs without HTML show an empty mail.",
        _NOTE,
        advice="Write the same words into the text part."),
    Row("content.external-styles", Area.CONTENT, "The HTML loads a style sheet",
        "The HTML loads a style sheet from elsewhere, but mail programs do not load it.", _NOTE,
        advice="Write the styles into the elements or into a style block."),
    Row("content.form", Area.CONTENT, "The HTML contains a form",
        "The HTML contains a form. Most mail programs do not submit it; many warn of fraud.",
        _WARNING,
        advice="Link to a web page that has the form."),
    Row("content.hidden-text", Area.CONTENT, "Text is hidden from readers",
        "{hidden_length} characters of text are hidden from readers (“{hidden_sample}”). Spam"
        " hides words for filters like this.", _WARNING,
        advice="Remove hidden text, except for one short preheader at the top."),
    Row("content.html-first", Area.CONTENT, "The HTML comes before the text",
        "The HTML comes before the text. Programs show the last alternative that they support, so"
        " people see the plain text.", _WARNING,
        advice="Put the text/plain part first and the HTML last (RFC 2046 5.1.4)."),
    Row("content.images-without-alt", Area.CONTENT, "Images without an alternative text",
        "Images without an alternative text: {images_without_alt} of {image_count}. People who do"
        " not load images or cannot see them miss these.", _NOTE,
        advice='Add an alt text to every image, and alt="" to images that only decorate.'),
    Row("content.insecure-images", Area.CONTENT, "Images are loaded over http",
        "The HTML loads {images} over http. Some programs show only images that are loaded over"
        " https.", _NOTE,
        advice="Serve images over https."),
    Row("content.large", Area.CONTENT, "The mail is large",
        "The mail has {mebibytes} MiB. Many servers reject more than 10 MiB.", _WARNING,
        advice="Offer large files for download through a link."),
    Row("content.long-lines", Area.CONTENT, "Lines over 998 octets",
        "The mail has {lines} over 998 octets; the longest has {longest_line}. Servers break or"
        " reject such lines, and a broken line makes the DKIM signature fail.", _WARNING,
        advice="Encode the parts as quoted-printable or base64."),
    Row("content.mostly-images", Area.CONTENT, "Many images and little text",
        "The mail has {images} and only {characters} of text. Spam hides its words in images, so"
        " filters count that against a mail.", _WARNING,
        advice="Say in text what the mail is about, and use images only in addition."),
    Row("content.placeholder", Area.CONTENT, "Placeholders were not filled in",
        "Placeholders were not filled in, and recipients will see them: {placeholders}.", _WARNING,
        advice="Check the names of the fields in the template, and send with real data."),
    Row("content.risky-attachment", Area.CONTENT, "Attachments of risky file types",
        "Some attachments have file types that Gmail and others reject or hold back:"
        " {risky_attachments}.", _WARNING,
        advice="Offer the file for download through a link, or send it as PDF."),
    Row("content.text-differs", Area.CONTENT, "The text part differs from the HTML",
        "The text part has only {overlap} % of the words that the HTML shows. Spam hides behind a"
        " harmless text, so filters compare both.", _NOTE,
        advice="Write the same words into both parts."),
    Row("content.unclosed-comment", Area.CONTENT, "A comment in the HTML is not closed",
        "A comment in the HTML is not closed, so the content after it may not be shown.", _WARNING,
        advice='End the comment with "-->".'),
    Row("content.unclosed-elements", Area.CONTENT, "Elements of the HTML are not closed",
        "These elements are not closed: {unclosed}. Each program guesses differently where they"
        " end.", _NOTE,
        advice="Add the missing end tags."),
)

TRANSPORT = (
    Row("transport.no-tls", Area.TRANSPORT, "The mail was sent without TLS",
        "The mail was sent over an unencrypted connection{how}. Google requires TLS from every"
        " sender.", price=3,
        advice="Configure your mail server to use STARTTLS where it is offered (Postfix:"
        " smtp_tls_security_level = may)."),
    Row("transport.helo", Area.TRANSPORT, "The sender greeted with HELO",
        "The sender greeted with HELO. EHLO replaced it in 1995; HELO supports neither encryption"
        " nor sizes.", _NOTE,
        advice="Use a mail server or library that greets with EHLO."),
    Row("transport.old-tls", Area.TRANSPORT, "The connection used an outdated version of TLS",
        "The connection was encrypted with {version}, which is no longer secure. Receivers are"
        " turning it off.", _WARNING,
        advice="Configure your mail server to use TLS 1.2 and 1.3 (a newer OpenSSL may be"
        " enough)."),
    Row("transport.refused-commands", Area.TRANSPORT, "Commands of the sender were rejected",
        "The server rejected commands of the sender: {refused}.", _NOTE,
        advice="Read the transcript. Mail servers do not make such mistakes, but self-written"
        " programs may."),
    Row("transport.tls-not-offered", Area.TRANSPORT, "This server offered no encryption",
        "This server offered no encryption to the client, so the sender's encryption could not be"
        " checked.", _NOTE,
        advice="No action is needed. The operator of this server can configure a certificate."),
    Row("transport.weak-cipher", Area.TRANSPORT, "The connection used a weak cipher",
        "The connection was encrypted with {cipher}, which protects little.", _WARNING,
        advice="Leave the choice of ciphers to a current version of your mail server."),
)

LINKS = (
    Row("links.disguised", Area.LINKS, "A link shows another site than it leads to",
        "The text of a link shows another site than it leads to: {pairs}. Fraud looks like that,"
        " and filters count it against a mail.", _WARNING,
        advice="Use words as the link text, like “Your account”, or let the link lead to the site"
        " that it shows (with click tracking on a name of your own domain)."),
    Row("links.insecure", Area.LINKS, "Links lead to http pages",
        "Links lead to http pages: {insecure}. Browsers warn of them.", _NOTE,
        advice="Link to https."),
    Row("links.ip-address", Area.LINKS, "A link leads to an IP address",
        "A link leads to an IP address instead of a name ({address_hosts}). Filters treat that as"
        " fraud.", _WARNING,
        advice="Link to a domain name."),
    Row("links.mixed-scripts", Area.LINKS,
        "A link's host name mixes scripts whose letters look alike",
        "The host name of a link mixes two scripts whose letters look alike: {mixed_script_hosts}."
        " Filters treat that as fraud.", _WARNING,
        advice="Link to a name in one script."),
    Row("links.port", Area.LINKS, "A link uses an unusual port",
        "A link uses an unusual port ({with_port}), which many networks block.", _NOTE,
        advice="Serve the page on the usual port of https."),
    Row("links.punycode", Area.LINKS, "A link's host name has letters outside ASCII",
        "The host name of a link has letters outside ASCII ({punycode_hosts}). Some programs show"
        " its encoded form.", _NOTE,
        advice="No action is needed if the name is yours. Test how your readers' programs show"
        " it."),
    Row("links.relative", Area.LINKS, "Links without a host",
        "The mail has {links} without a host. Such links do not work in a mail.", _NOTE,
        advice="Write full URLs: https://your.domain/page."),
    Row("links.script", Area.LINKS, "Links to a script (javascript:)",
        "The mail has {links} to a script (javascript:). Mail programs remove such links, and"
        " filters distrust them.", _WARNING,
        advice="Link to a web page."),
    Row("links.shortened", Area.LINKS, "Links through a public URL shortener",
        "Links use a public URL shortener: {shortened}. Spam uses shorteners too, so blocklists"
        " often contain their names.", _WARNING,
        advice="Link to your own domain."),
    Row("links.user-in-url", Area.LINKS, "A link has a user name before its host",
        "A link has a user name before its host ({with_user}), which hides where it leads.",
        _WARNING,
        advice="Remove the part between // and @."),
)

UNSUBSCRIBE = (
    Row("unsubscribe.no-one-click", Area.UNSUBSCRIBE, "Bulk mail without one-click unsubscribe",
        "The mail looks like bulk mail, but readers cannot unsubscribe with one click: it has"
        " {one_click}. Google and Yahoo require it from bulk senders.", price=5,
        advice="Add List-Unsubscribe with an https URL and List-Unsubscribe-Post:"
        " List-Unsubscribe=One-Click, and sign both with DKIM. A POST to that URL must unsubscribe"
        " at once."),
    Row("unsubscribe.no-address", Area.UNSUBSCRIBE, "List-Unsubscribe contains no address",
        "List-Unsubscribe contains no address in angle brackets (fields: {names}).", _NOTE,
        advice="Write it as: List-Unsubscribe: <https://your.domain/unsubscribe/id>."),
    Row("unsubscribe.no-link", Area.UNSUBSCRIBE, "The mail has no unsubscribe link",
        "The mail contains no unsubscribe link. Google asks for a visible one, too, and people who"
        " find none mark mail as spam.", _NOTE,
        advice="Add a link “Unsubscribe” at the end of the mail."),
    Row("unsubscribe.undetermined", Area.UNSUBSCRIBE,
        "Whether a signature covers the unsubscribe fields could not be determined",
        "It could not be determined whether a DKIM signature covers the fields for one-click"
        " unsubscribe.", _UNDETERMINED,
        advice="Check the test again in a minute."),
)

CONTENT_FILTER = (
    Row("spamassassin.points", Area.SPAMASSASSIN, "The content filter gives points to the mail",
        "{engine} gives the content {counted_points:.1f} points ({threshold:.1f} or more is spam):"
        " {outcome}.",
        advice="Change the content that the rules match: {descriptions}."),
    Row("spamassassin.broken-answer", Area.SPAMASSASSIN,
        "The content filter returned an invalid answer",
        "The content was not checked", _UNDETERMINED),
    Row("spamassassin.busy", Area.SPAMASSASSIN, "The content filter is busy",
        "The content was not checked", _UNDETERMINED),
    Row("spamassassin.no-memory", Area.SPAMASSASSIN, "There is no memory for the content filter",
        "The content was not checked", _UNDETERMINED),
    Row("spamassassin.not-installed", Area.SPAMASSASSIN, "The content filter is not installed",
        "The content was not checked", _UNDETERMINED),
    Row("spamassassin.off", Area.SPAMASSASSIN, "The content filter is turned off",
        "The content was not checked", _UNDETERMINED),
    Row("spamassassin.skipped", Area.SPAMASSASSIN, "The content filter exempts the mail",
        "The content was not checked", _UNDETERMINED),
    Row("spamassassin.timeout", Area.SPAMASSASSIN, "The content filter did not answer in time",
        "The content was not checked", _UNDETERMINED),
    Row("spamassassin.too-large", Area.SPAMASSASSIN, "The mail is too large for the content filter",
        "The content was not checked", _UNDETERMINED),
    Row("spamassassin.unreachable", Area.SPAMASSASSIN, "The content filter cannot be reached",
        "The content was not checked", _UNDETERMINED),
    Row("rspamd.points", Area.RSPAMD, "rspamd gives points to the mail",
        "{engine} gives the content {counted_points:.1f} points ({threshold:.1f} or more is spam):"
        " {outcome}.{rest}",
        advice="Change the content that the rules match: {descriptions}."),
    Row("rspamd.undetermined", Area.RSPAMD, "rspamd has no verdict",
        "rspamd did not check the content", _UNDETERMINED),
)

ACCESSIBILITY = (
    Row("accessibility.empty-link", None, "Links without text",
        "Screen readers have no text to read", _WARNING,
        advice="Add a text that says where the link leads, or remove the link."),
    Row("accessibility.heading-skipped", None, "Headings skip a level",
        "Readers who navigate by headings look for the missing one", _NOTE,
        advice="Go down one level at a time: an h3 under an h2."),
    Row("accessibility.image-link-without-text", None,
        "Links made of images without an alternative text",
        "Readers who cannot see the image do not learn where the link leads", _WARNING,
        advice="Add an alt text to the image that says where the link leads."),
    Row("accessibility.image-without-alt", None, "Images without an alternative text",
        "Screen readers read the URL of the image or skip it", _WARNING,
        advice='Add an alt text to every image that describes it, and alt="" to decoration.'),
    Row("accessibility.low-contrast", None, "Text with too little contrast",
        "Many people cannot read it", _WARNING,
        advice="Choose colours with more contrast."),
    Row("accessibility.no-language", None, "The HTML does not declare its language",
        "The HTML does not declare its language, so screen readers may use the wrong one.",
        _WARNING,
        advice='Declare the language in the html element, such as <html lang="en">.'),
    Row("accessibility.vague-link-text", None, "Link texts that say little on their own",
        "Screen readers list links without the words around them", _NOTE,
        advice="Say in the link text where it leads: “Read the invoice”, not “here”."),
)
# fmt: on

ROWS = (
    *SPF,
    *HOST,
    *DKIM,
    *DMARC,
    *ARC,
    *DKIM2,
    *SENDER,
    *HEADERS,
    *CONTENT,
    *TRANSPORT,
    *LINKS,
    *UNSUBSCRIBE,
    *CONTENT_FILTER,
    *ACCESSIBILITY,
)
