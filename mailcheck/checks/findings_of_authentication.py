"""Findings about the authentication of a mail and of its domain: SPF, DKIM, DMARC and ARC.

The names and the address of the sending host are part of the check ``spf``.
"""

from collections.abc import Mapping

from mailcheck.checks.finding_row import (
    EXPLAINED,
    SEND_FROM_REAL_SERVER,
    Case,
    Row,
    silent_row,
)
from mailcheck.checks.findings import Area, Severity

_ERROR, _WARNING, _UNDETERMINED, _NOTE = Severity

_CHECK_AGAIN = "Check the test again in a minute."

_KNOWN = Case("{meaning}", "{fix}")
"""The sentences of the check of the domain, which has found the cause."""

# fmt: off
_AND_BREAKS = ", so receivers return permerror and no mail of {domain} passes SPF."

_NO_RECORD = (
    " No record is proposed here: it is not certain what was intended, and a sender could be left"
    " out."
)

_STRAY_SPF = (
    '{domain} also has a TXT record that looks like SPF but does not begin exactly with "v=spf1 "'
    ' ("{text}"), so receivers ignore it.'
)

_UNTIL_THEN = '; until then remove "{top}" from your own record if you do not need it.'


_ANY_HOST = (
    'If {ip} belongs to you or to a service that sends for you, add "{term}" to the SPF record of'
    " {domain}, before its end. If not, the mail was forwarded or forged: do not change the record."
)


def _of_result(meaning: str) -> Mapping[str, Case]:
    """Return the cases of an SPF result: of any host, and of a host of the domain."""
    return {
        "any-host": Case(meaning, _ANY_HOST),
        "own-host": Case(
            meaning,
            'Add "{term}" to the SPF record of {domain}: by its name or MX, {ip} is a host of this'
            " domain."),
    }


_OF_TERM = {
    "write": Case(advice='Write "{words}".'),
    "redirect": Case(advice='Remove "{term}".'),
    "redirect-or-include": Case(
        advice='Write "{included}" before the all, or remove "{term}".'),
    "never-read": Case(advice="Put it before that term, or remove it."),
    "spaces": Case(advice="Remove the spaces inside terms: a term contains no space."),
    "unclear": Case(
        advice="Correct it: write a: before a mail server, ip4: or ip6: before an address, and"
        " include: before a service." + _NO_RECORD),
    "owner": Case(advice="Ask the owner of that record to fix it."),
    "owner-or-remove": Case(advice="Ask the owner of that record to fix it" + _UNTIL_THEN),
}
"""Advice for a term that receivers cannot read or that they ignore."""

_OF_INCLUDE = {
    "write": Case(advice='Write "{words}".'),
    "unclear": Case(advice='Correct "{term}": only one domain name may follow the colon.'),
    "owner": Case(advice='Ask the owner of the record with "{term}" to fix it.'),
    "owner-or-remove": Case(
        advice='Ask the owner of the record with "{term}" to fix it' + _UNTIL_THEN),
}
"""Advice for a term that leads to no usable record."""

_OF_OTHER_RECORD = {
    "own": Case(advice="Fix the record at {target}."),
    "owner": Case(advice="Ask the owner of {target} to fix the record there."),
    "owner-or-remove": Case(
        advice="Ask the owner of {target} to fix the record there" + _UNTIL_THEN),
}
"""Advice for a record that the record of the domain leads to."""

_END_RECORD = (
    "End the SPF record with ~all, or with -all once you are sure that it names every sender. If"
    " it has a redirect, change the record that the redirect leads to instead."
)

_OF_TARGET = {
    "own": Case(
        advice="End the SPF record at {target} with ~all. Do not add it to the record of {domain}:"
        " receivers ignore a redirect beside an all (RFC 7208 6.1)."),
    "owner": Case(
        advice="Ask the owner of {target} to end the SPF record at {target} with ~all. Do not add"
        " it to the record of {domain}: receivers ignore a redirect beside an all (RFC 7208"
        " 6.1)."),
}
"""Advice for the end of a record that another one redirects to."""

SPF = (
    Row("spf.result-neutral", Area.SPF, "The SPF result is neutral",
        "The domain makes no statement about the sending host", price=5,
        advice=_ANY_HOST,
        cases=_of_result(
            "The SPF record of {domain} neither allows nor forbids {ip} to send for it, so it"
            " does not help the mail. {explanation}")),
    Row("spf.result-none", Area.SPF, "No SPF record",
        "Google, Yahoo and Microsoft require one from bulk senders", price=10,
        advice="Use a domain of your own in the envelope sender, and publish an SPF record for"
        " it.",
        cases={
            "local-name": Case(
                "{domain} is a name that exists in your network only. Receivers cannot check"
                " whether the host may send the mail.",
                "Use a full domain name of your own in {where}, and publish an SPF record for"
                " it."),
            "no-domain": Case(
                "{explanation} Receivers cannot check whether the host may send the mail.",
                "Use a full domain name of your own in {where}, and publish an SPF record for"
                " it."),
            **_of_result("{domain} has no SPF record, so receivers cannot check whether {ip} may"
                         " send for it."),
        }),
    Row("spf.result-softfail", Area.SPF, "The SPF result is softfail",
        "Receivers treat the mail with suspicion", price=10,
        advice=_ANY_HOST,
        cases=_of_result(
            "The SPF record of {domain} says that {ip} probably may not send for it; receivers"
            " treat such mail with suspicion. {explanation}")),
    Row("spf.result-permerror", Area.SPF, "The SPF record cannot be evaluated (permerror)",
        "Many receivers treat this like a fail", price=15,
        advice="Correct the SPF record of the domain.",
        cases={
            "found": Case(
                "Receivers cannot use the SPF record of {domain}, and many count that as a fail."
                " {explanation}",
                "Fix the SPF record of {domain}."),
            "known": Case(
                "Receivers cannot use the SPF record of {domain}, and many count that as a fail."
                " {explanation}",
                "{fix}"),
        }),
    Row("spf.result-fail", Area.SPF, "The SPF result is fail",
        "The domain itself asks receivers to reject the mail", price=20,
        advice=_ANY_HOST,
        cases=_of_result(
            "The SPF record of {domain} says that {ip} may not send for it; receivers may reject"
            " such mail. {explanation}")),
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
        ' domain, or "v=spf1 -all" if none does.',
        cases={"sender": Case(
            advice="Publish an SPF record that names every server and service that sends for the"
            " domain.")}),
    Row("spf.glued-terms", Area.SPF, "Two terms of the SPF record are not separated by a space",
        'Receivers read "{term}" in the SPF record as a single term, with characters that no host'
        ' name has; the record may not mean what was intended.', _WARNING,
        advice='Write "{words}".'),
    *(
        Row(name, Area.SPF, title,
            "SPF for the HELO name {domain} results in {result}; a few receivers check it."
            " {explanation}", _NOTE,
            advice="Publish an SPF record for the HELO name that authorizes the server, or greet"
            " with another name.")
        for name, title in (
            ("spf.helo-fail", "The SPF result of the HELO name is fail"),
            ("spf.helo-permerror",
                "The SPF record of the HELO name cannot be evaluated (permerror)"),
            ("spf.helo-softfail", "The SPF result of the HELO name is softfail"),
        )
    ),
    Row("spf.ignored-term", Area.SPF, "Receivers ignore a term of the SPF record",
        '"{term}" in {place} {reason}; the record may not mean what was intended.', _WARNING,
        advice="Remove or correct it.",
        cases=_OF_TERM),
    *(
        Row(name, Area.SPF, title,
            f'"{{term}}" leads to {{target}}, which {fault}' + _AND_BREAKS, _ERROR,
            advice='Remove "{term}", or have an SPF record published at {target}.',
            cases=_OF_INCLUDE)
        for name, title, fault in (
            ("spf.include-absent", "An included domain has no SPF record", "has no SPF record"),
            ("spf.include-loop", "An included SPF record leads back to itself",
                "leads back to itself"),
            ("spf.include-several", "An included domain has several SPF records",
                "has more than one SPF record"),
        )
    ),
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
        advice=_END_RECORD,
        cases=_OF_TARGET),
    Row("spf.no-end", Area.SPF, 'The SPF record does not end in an "all" term such as ~all',
        "{where} does not say what to do with mail from other servers, so forged mail is not"
        " marked.", _WARNING,
        advice=_END_RECORD,
        cases=_OF_TARGET),
    Row("spf.ptr", Area.SPF, 'The SPF record uses "ptr"',
        'The SPF record uses "ptr", which is slow and which many receivers no longer evaluate (RFC'
        ' 7208 5.5).', _WARNING,
        advice="Name the sending servers with a, mx, ip4 or ip6 instead."),
    Row("spf.several", Area.SPF, "The domain has several SPF records",
        "{domain} has {count} SPF records, but only one is allowed" + _AND_BREAKS, _ERROR,
        advice="Replace all SPF records with a single one that has the terms of all.",
        cases={"unclear": Case(
            advice="Replace all SPF records with a single one that has the terms of all."
            + _NO_RECORD)}),
    Row("spf.syntax", Area.SPF, "A term of the SPF record is malformed",
        '"{term}" in {place} {reason}' + _AND_BREAKS, _ERROR,
        advice="Remove or correct it.",
        cases=_OF_TERM),
    Row("spf.too-many-lookups", Area.SPF, "The SPF record needs too many DNS lookups",
        "The SPF record needs {count} DNS lookups and {max_lookups} are allowed"
        + _AND_BREAKS, _ERROR,
        advice="Remove the services that no longer send for the domain, move some to a subdomain of"
        " their own, or replace a, mx and include with the ip4 and ip6 networks behind them."),
    Row("spf.too-many-mx", Area.SPF, "A term of the SPF record leads to more than ten mail hosts",
        '"{term}" in {place} leads to more than ten mail hosts' + _AND_BREAKS, _ERROR,
        advice="Replace the term with the ip4 and ip6 networks of these hosts.",
        cases=_OF_OTHER_RECORD),
    Row("spf.too-many-voids", Area.SPF, "Too many terms of the SPF record find no DNS record",
        "{count} terms of the SPF record have no record in DNS ({quoted_terms}) and {max_voids}"
        " are allowed" + _AND_BREAKS, _ERROR,
        advice="Remove the terms of the SPF record whose names do not exist. Put ip4 and ip6 before"
        " the terms that need a DNS lookup."),
    silent_row(
        "spf.undetermined", Area.SPF, "SPF could not be determined",
        "DNS gave no usable answer, or the sending host cannot be checked",
        private=Case(
            "SPF could not be determined. {explanation}", SEND_FROM_REAL_SERVER)),
    Row("spf.unreadable", Area.SPF, 'A record looks like SPF but does not begin with "v=spf1 "',
        '{domain} has a TXT record that looks like SPF but does not begin exactly with "v=spf1 "'
        ' ("{text}"), so receivers ignore it.',
        advice="Replace that TXT record with one that begins with v=spf1 and one space.",
        cases={
            "unclear": Case(
                advice="Replace that TXT record with one that begins with v=spf1 and one space."
                + _NO_RECORD),
            "beside": Case(
                _STRAY_SPF,
                "Publish one SPF record that names the senders of both, and delete the other"
                " one."),
            "beside-unclear": Case(
                _STRAY_SPF,
                "Publish one SPF record that names the senders of both, and delete the other one."
                + _NO_RECORD),
        }),
    Row("spf.void", Area.SPF, "A term of the SPF record refers to a name that does not exist",
        '"{term}" in {place} leads to a name that does not exist. It permits no host and counts'
        " against a limit of two.", _WARNING,
        advice='Remove "{term}" from the SPF record.',
        cases={
            "unborn": Case(
                '"{term}" in {place} leads to no mail host with an address. It permits no host and'
                " counts against a limit of two.",
                "Mend the MX records of {domain} and the addresses of its mail hosts first. Keep"
                ' "{term}", which permits them then. Remove it only if {domain} receives no'
                " mail."),
            "unclear": _OF_INCLUDE["unclear"],
            **_OF_OTHER_RECORD,
        }),
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
    silent_row("rdns.undetermined", Area.RDNS, "The reverse DNS name could not be determined"),
    Row("helo.unresolvable", Area.HELO, "The HELO name does not resolve",
        "RFC 5321 4.1.4 asks for a name that does, and many receivers check it", price=3,
        advice="Configure the server to greet (HELO, EHLO) with its full name, such as"
        " mail.example.com. The name must have an address in DNS.",
        cases={
            "literal": Case(
                "The mail server greets with {helo_name}, which is an address in brackets, not a"
                " name; many receivers distrust or reject that."),
            "single-label": Case(
                "The mail server greets with {helo_name}, which is a single word, not a full"
                " domain name; many receivers distrust or reject that."),
            "malformed": Case(
                "The mail server greets with {helo_name}, which is not a domain name; many"
                " receivers distrust or reject that."),
            "local-name": Case(
                "The mail server greets with {helo_name}, which is a name that exists in your"
                " network only; many receivers distrust or reject that."),
            "no-address": Case(
                "The mail server greets with {helo_name}, a name that has no address in DNS;"
                " many receivers distrust or reject that.",
                "Publish the address of the server under this name, or let the server greet with"
                " a name that has an address."),
        }),
    Row("helo.other-address", Area.HELO, "The HELO name leads to another address",
        "The mail server greets with {helo_name}, a name that does not lead to its address"
        " {client_ip}; a few receivers compare the two.", _NOTE,
        advice="Configure the server to greet with the reverse DNS name of its address."),
    silent_row("helo.undetermined", Area.HELO, "The HELO name could not be looked up"),
)

_NEW_KEY = (
    "Create a new RSA key of 2048 bits in your mail server or at your mail provider, and publish"
    " the record that it shows."
)

_OF_KEY = {
    "complete": Case(
        advice="Replace it with its corrected text: the key in it is complete, so no new key is"
        " needed."),
    "new-key": Case(advice=_NEW_KEY),
    "publish-again": Case(
        advice="Publish the whole record again, as your mail server or mail provider shows it, as"
        " one TXT record with strings of at most 255 characters. You need a new key only if you"
        " cannot find that record any more."),
}
"""Advice for a key record with which no signature can be verified."""

DKIM = (
    Row("dkim.weak-key", Area.DKIM, "The RSA key is shorter than 2048 bits",
        "The DKIM key at {name} has {bits} bits. {good_rsa_bits} are recommended, and some"
        " receivers mark shorter keys.", price=2,
        advice=_NEW_KEY),
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
        advice="Correct the cause of each failure. The findings about the signatures name it.",
        cases={
            "one": Case("The only signature is not valid. {meaning}", "{fix}"),
            "several": Case("None of the {count} signatures is valid. {meaning}", "{fix}"),
        }),
    Row("dkim.absent", Area.DKIM, "The domain has no DKIM key",
        "{domain} has no DKIM key, so its mail cannot be signed; Google, Yahoo and Microsoft ask"
        " for signatures.", _ERROR,
        advice="Turn on DKIM in your mail server or at your mail provider, and publish the record"
        " that it shows."),
    Row("dkim.alignment-undetermined", Area.DKIM,
        "Alignment of a valid signature could not be determined",
        "A signature is valid, but it could not be determined whether {author_domain} made it.",
        _UNDETERMINED,
        advice=_CHECK_AGAIN),
    Row("dkim.body-changed", Area.DKIM, "The body was changed after signing",
        "The signature fails",
        advice="Sign last. Usual causes are a footer or disclaimer added after signing, a virus"
        " scanner or mailing list that rewrites the mail, links replaced for tracking, and a server"
        " on the way that converts 8-bit text or breaks lines over 998 characters. A signature with"
        " c=relaxed/relaxed tolerates changed whitespace.",
        cases=EXPLAINED),
    Row("dkim.body-cut", Area.DKIM, "The body is shorter than the signature says (l=)",
        "The signature fails",
        advice="Turn off the body length (l=) in the signer, and find out what shortens the mail"
        " after signing.",
        cases=EXPLAINED),
    Row("dkim.body-length", Area.DKIM, "The signature covers only part of the body (l=)",
        "The signature of {signing_domain} covers the first {body_length} octets of the body only"
        " (l=), so anyone can add text that seems signed{unsigned}.", _WARNING,
        advice="Turn off the body length in the signer, so that it writes no l=."),
    Row("dkim.clock-ahead", Area.DKIM, "The signature is dated after the mail arrived (t=)",
        "The signature of {signing_domain} is dated {seconds_ahead} after the mail arrived (t=);"
        " some receivers reject such a signature.", _WARNING,
        advice="Correct the clock and the time zone of the signing server."),
    Row("dkim.dangling", Area.DKIM, "A DKIM record points to a name without a key",
        "The DKIM record {name} points to {target}, where there is no key; mail signed with it"
        " fails.", _WARNING,
        advice="Turn on DKIM at the provider that owns that name. Remove the record only if you no"
        " longer use that provider.",
        cases={"provider": Case(advice="Turn on DKIM at {provider}, and keep the record.")}),
    Row("dkim.expired", Area.DKIM, "The signature has expired (x=)",
        "The signature fails",
        advice="Use a longer lifetime for signatures (a week, or no end: leave x= out), and find"
        " out why the mail was on its way for so long. A wrong clock of the signing server has the"
        " same effect.",
        cases=EXPLAINED),
    Row("dkim.from-the-future", Area.DKIM, "The signature is dated in the future (t=)",
        "Receivers reject such a signature",
        advice="Correct the clock and the time zone of the signing server.",
        cases=EXPLAINED),
    Row("dkim.header-changed", Area.DKIM, "The header was changed after signing",
        "The signature fails",
        advice="Compare the key in use with the record at {name}: most often, a new key was"
        " created but not published. Otherwise look for a server that rewrites From, To,"
        " Subject, Date or Message-ID after signing, adds a second one of them, or folds them"
        " again. Signing with c=relaxed/relaxed tolerates new folding.",
        cases=EXPLAINED),
    Row("dkim.hidden", Area.DKIM,
        "No DKIM key was found under the usual selectors",
        "Could not be determined: {names}, and DNS cannot list names.", _UNDETERMINED,
        advice="Enter the selector (s= in the DKIM-Signature field of a mail that you sent), or"
        " send a test mail, whose signature contains it."),
    Row("dkim.key-broken", Area.DKIM, "The DKIM key record cannot be used",
        "The DKIM record {name} {problem}; mail signed with it fails.",
        aliases=("dkim.broken-key",),
        advice="Publish the key record again, exactly as your mail server or mail provider shows"
        " it.",
        cases={
            **_OF_KEY,
            "explained": Case(
                "{explanation}",
                "Publish the TXT record at {name} again, copied completely from what your mail"
                " server, or the provider that sends for you, shows."),
            "explained-new-key": Case(
                "{explanation}",
                "Create a new RSA key of 2048 bits, publish it under a new selector, and sign"
                " with it."),
            "explained-complete": Case(
                "{explanation}",
                "Correct the TXT record at {name}: its key is complete, so you need no new key."
                " The check of the domain shows the corrected text."),
        }),
    Row("dkim.key-of-other-type", Area.DKIM, "The key has a different type than the signature",
        "The signature fails",
        advice="Publish the key in use at {name}, or sign with the key that is published there."
        " An RSA key and an Ed25519 key need two selectors.",
        cases=EXPLAINED),
    Row("dkim.key-revoked", Area.DKIM, "The DKIM key is revoked (empty p=)",
        "The DKIM key at {name} is revoked (empty p=): mail signed with it fails.",
        aliases=("dkim.revoked",),
        advice="No action is needed if it is no longer used; otherwise publish the new key.",
        cases={
            "only-key": Case(advice=_NEW_KEY),
            "explained": Case(
                "{explanation}",
                "Sign with the new key, or publish the key in use at {name} again: your mail"
                " server, or the provider that sends for you, still signs with a revoked one."),
        }),
    Row("dkim.key-too-short", Area.DKIM, "The DKIM key is shorter than 1024 bits",
        "The DKIM record {name} {problem}; mail signed with it fails.",
        aliases=("dkim.short-key",),
        advice=_NEW_KEY,
        cases=_OF_KEY | {"explained": Case(
            "{explanation}",
            "Create a new RSA key of 2048 bits, publish it under a new selector, and sign with"
            " it.")}),
    Row("dkim.key-undetermined", Area.DKIM, "The key of a signature could not be looked up",
        "DNS gave no usable answer",
        advice="Check the mail again in a minute. If the problem persists, the name servers of that"
        " domain do not answer.",
        cases=EXPLAINED),
    Row("dkim.malformed", Area.DKIM, "The DKIM-Signature field is malformed",
        "Receivers cannot use the signature",
        advice="Update the software that signs, or report the problem to its operator. Your mail"
        " server, or the provider that sends for you, writes a DKIM-Signature field that receivers"
        " cannot use.",
        cases=EXPLAINED),
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
        advice="Publish the TXT record that your mail server, or the provider that sends for"
        " you, shows for this selector at exactly {name}. If it exists already, check that the"
        " domain is not doubled at the end of its name, and wait up to an hour until the old"
        " answer has left the caches.",
        cases=EXPLAINED),
    Row("dkim.no-key-record", Area.DKIM,
        "The record at the name given in the signature is not a DKIM key",
        "The signature fails",
        advice="Replace the TXT record at {name} with the one that your mail server, or the"
        " provider that sends for you, shows; it begins with v=DKIM1.",
        cases=EXPLAINED),
    Row("dkim.no-wildcard", Area.DKIM, "A domain that sends no mail has no empty wildcard key",
        "{domain} sends no mail and needs no DKIM key. An empty key for every selector declares"
        " that no signature in its name is valid.", _NOTE,
        advice="Publish an empty key at the wildcard name."),
    Row("dkim.other-identity", Area.DKIM, "The key (t=s) does not allow the identity (i=)",
        "The signature fails",
        advice="Remove t=s from the record at {name}, or sign with the domain of the address"
        " itself (d= equal to the domain in i=).",
        cases=EXPLAINED),
    Row("dkim.several-keys", Area.DKIM, "Several DKIM keys are published at one name",
        "There is more than one DKIM key at {name}. It is undefined which one counts, so"
        " signatures may fail.", aliases=("dkim.several",),
        advice="Keep one of them and move the other to another selector.",
        cases={
            "same": Case(
                advice="Keep one of them and delete the others: their key is the same."),
            "explained": Case(
                "{explanation}",
                "Keep the one TXT record at {name} that belongs to the key in use, and move the"
                " others to other selectors."),
        }),
    Row("dkim.sha1", Area.DKIM, "The signature uses SHA-1",
        "Receivers no longer accept it (RFC 8301 3.1)",
        advice="Set the signer to rsa-sha256. The key can stay if it is long enough.",
        cases=EXPLAINED),
    Row("dkim.stray-record", Area.DKIM, "Another TXT record is published beside the DKIM key",
        'There is another TXT record beside the DKIM key at {name} ("{strays}"); receivers that'
        ' read it first find no key.', _WARNING,
        advice="Remove that record and keep the key."),
    Row("dkim.testing", Area.DKIM, "The DKIM key is marked as a test (t=y)",
        "The DKIM key at {record_name} is marked as a test (t=y): receivers may treat mail signed"
        " with it as unsigned.", _WARNING,
        advice="Remove t=y from the DKIM record at {record_name}."),
    silent_row("dkim.undetermined", Area.DKIM, "DKIM could not be determined",
        mail=Case("{explanation}", _CHECK_AGAIN)),
    Row("dkim.wildcard", Area.DKIM, "Every selector has the same DKIM record (wildcard)",
        "Every name below {parent} has the same DKIM record (a wildcard).", _NOTE,
        advice="No action is needed if the domain sends no mail. Otherwise publish each key at its"
        " selector."),
)

_OF_ALIGNMENT = {
    "false-suffix": Case(
        advice="Remove psd=y from the DMARC record of {suffix}: it says that {author} is not part"
        " of {suffix}, so what passes for {suffix} does not count."),
    "strict": Case(
        advice="Remove {tags} from the DMARC record, so that other names of {home} align, or sign"
        " with d={author}."),
    "nothing-passes": Case(
        advice="Sign the mail with a DKIM key of {author} (d={author}), or make SPF pass for an"
        " envelope sender at {author}."),
    "only-dkim": Case(
        advice="Also sign the mail with a DKIM key of {author} (d={author}), or make SPF pass for"
        " an envelope sender at {author}."),
    "only-spf": Case(
        advice="Sign the mail with a DKIM key of {author} (d={author}), or use an envelope sender"
        " (bounce address) at {author} or a subdomain of it."),
    "both": Case(
        advice="Also sign the mail with a DKIM key of {author} (d={author}), or use an envelope"
        " sender (bounce address) at {author} or a subdomain of it."),
}
"""Advice for a mail in which nothing that passes aligns, by what passes."""

DMARC = (
    Row("dmarc.no-record", Area.DMARC, "No DMARC record",
        "Google, Yahoo and Microsoft reject bulk mail without one", price=10,
        advice="Publish a DMARC record for the domain in From; begin with p=none. Send from a"
        " domain of your own.",
        cases={
            "known": _KNOWN,
            "local-name": Case(
                "The From address is at {author}, a name that exists in your network only, so"
                " receivers cannot check the author; many reject such mail.",
                "Send from an address of a domain of your own."),
        }),
    Row("dmarc.fails-none", Area.DMARC, "DMARC fails, and the policy is none",
        "Receivers see that the From address is not authenticated", price=15,
        advice="Make SPF or DKIM pass for the domain in From.",
        cases=_OF_ALIGNMENT | {
            "found": Case("DMARC fails, and {author} requests no action (none): {explanation}"),
        }),
    Row("dmarc.no-author", Area.DMARC, "No single From domain",
        "DMARC cannot be applied. {explanation}", price=15,
        advice="Send with exactly one From field that contains one address of your domain."),
    Row("dmarc.fails-enforced", Area.DMARC, "DMARC fails, and the policy is quarantine or reject",
        "Receivers are asked to quarantine or reject the mail", price=30,
        advice="Make SPF or DKIM pass for the domain in From.",
        cases=_OF_ALIGNMENT | {
            "found": Case(
                "DMARC fails, and {author} asks receivers to {policy} such mail: {explanation}"),
        }),
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
        advice="Remove {tags} from the DMARC record.",
        cases={"trial": Case(
            advice="Remove {tags} from the DMARC record. Write t=y instead of pct=0: it has the"
            " same meaning.")}),
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
        "Reports to {uri} are not sent: {host} does not publish that it accepts reports about"
        " {place}.", _WARNING,
        advice="Ask the owner of {host} to publish this record, or use an address of your own.",
        cases={"mailbox-provider": Case(
            "Reports to {uri} are not sent: {host} is a mailbox provider, which does not publish"
            " that its users accept reports about {place}.",
            "Use an address at {place} for reports, or a service that reads reports.")}),
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
    silent_row(
        "dmarc.undetermined", Area.DMARC, "DMARC could not be determined",
        "DNS gave no usable answer, or the sending host cannot be checked",
        mail=Case(
            "DMARC could not be determined. {explanation}",
            _CHECK_AGAIN + " If the problem stays, the name servers of that domain or the resolver"
            " of this service do not answer."),
        private=Case("DMARC could not be determined. {explanation}", SEND_FROM_REAL_SERVER)),
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
        " all changes. Mail that is sent directly needs no seal.",
        cases=EXPLAINED),
    Row("arc.undetermined", Area.ARC, "The ARC chain could not be verified",
        "DNS gave no usable answer", _UNDETERMINED,
        advice="Check the mail again in a minute.",
        cases=EXPLAINED),
    Row("arc.valid", Area.ARC, "The ARC chain is valid",
        "Receivers may trust the results of servers that forwarded the mail", _NOTE,
        advice="No action is needed. This is for information only.",
        cases=EXPLAINED),
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
# fmt: on

ROWS = (*SPF, *HOST, *DKIM, *DMARC, *ARC, *DKIM2)
