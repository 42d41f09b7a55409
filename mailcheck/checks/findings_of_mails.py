"""Findings about a mail: its sender, headers, content, links and transport, and its filters."""

from collections.abc import Mapping

from mailcheck.checks.finding_row import Case, Row
from mailcheck.checks.findings import Area, Severity

_ERROR, _WARNING, _UNDETERMINED, _NOTE = Severity


# fmt: off
def _of_sender(what: str) -> Mapping[str, Case]:
    """Return the advice for an address whose domain accepts no mail, by what the domain has."""
    return {
        "no-domain": Case(
            advice=f"Use {what} in a domain of yours that exists. Check the spelling of"
            " {domain}."),
        "null-mx": Case(
            advice=f"Use {what} in a domain that receives mail, or publish an MX record at"
            " {domain} that names your mail server instead of the null MX."),
        "no-mx": Case(
            advice="Publish an MX record at {domain} that names your mail server, or use"
            f" {what} in a domain that receives mail."),
    }


SENDER = (
    Row("authentication.nothing-passes", Area.AUTHENTICATION, "Neither SPF nor DKIM passes",
        "Neither SPF nor DKIM passes, so receivers cannot verify the sender. Gmail rejects such"
        " mail.", price=20,
        advice="Make SPF or DKIM pass. One of them is enough, both are better."),
    Row("sender.bounces-undeliverable", Area.SENDER,
        "The domain of the envelope sender accepts no mail or does not exist",
        "Bounces cannot be delivered: {domain}, the domain of the envelope sender, {problem}. Many"
        " receivers reject such mail (450 4.1.8 or 550 5.7.27).", price=20,
        advice="Use a return address whose domain accepts mail.",
        cases=_of_sender("an envelope sender")),
    Row("sender.replies-undeliverable", Area.SENDER,
        "The From domain, if it is another one, accepts no mail or does not exist",
        "Replies cannot be delivered: {domain}, the domain of the From address, {problem}. Many"
        " receivers reject such mail (550 5.7.27).", price=10,
        advice="Use a From address whose domain accepts mail.",
        cases=_of_sender("a From address")),
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
        " at once.",
        cases={"fault": Case(advice="{fix}")}),
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
    *(
        Row(name, Area.SPAMASSASSIN, title, "The content was not checked", _UNDETERMINED,
            cases={"explained": Case("{explanation}", "{fix}")})
        for name, title in (
            ("spamassassin.broken-answer", "The content filter returned an invalid answer"),
            ("spamassassin.busy", "The content filter is busy"),
            ("spamassassin.no-memory", "There is no memory for the content filter"),
            ("spamassassin.not-installed", "The content filter is not installed"),
            ("spamassassin.off", "The content filter is turned off"),
            ("spamassassin.skipped", "The content filter exempts the mail"),
            ("spamassassin.timeout", "The content filter did not answer in time"),
            ("spamassassin.too-large", "The mail is too large for the content filter"),
            ("spamassassin.unreachable", "The content filter cannot be reached"),
        )
    ),
    Row("rspamd.points", Area.RSPAMD, "rspamd gives points to the mail",
        "{engine} gives the content {counted_points:.1f} points ({threshold:.1f} or more is spam):"
        " {outcome}.{rest}",
        advice="Change the content that the rules match: {descriptions}."),
    Row("rspamd.undetermined", Area.RSPAMD, "rspamd has no verdict",
        "rspamd did not check the content", _UNDETERMINED,
        cases={"explained": Case("{explanation}", "{fix}")}),
)

ACCESSIBILITY = (
    Row("accessibility.empty-link", None, "Links without text",
        "Links without text: {count} (the first leads to {sample}).", _WARNING,
        advice="Add a text that says where the link leads, or remove the link."),
    Row("accessibility.heading-skipped", None, "Headings skip a level",
        "Headings that skip a level: {count} (the first: {sample}). Readers who navigate by"
        " headings look for the missing one.", _NOTE,
        advice="Go down one level at a time: an h3 under an h2."),
    Row("accessibility.image-link-without-text", None,
        "Links made of images without an alternative text",
        "Links made of images without an alternative text: {count} (the first leads to"
        " {sample}). Readers who cannot see the image do not learn where the link leads.", _WARNING,
        advice="Add an alt text to the image that says where the link leads."),
    Row("accessibility.image-without-alt", None, "Images without an alternative text",
        "Images without an alternative text: {count} (the first: {sample}). Screen readers read"
        " their URL or skip them, and so do programs without images.", _WARNING,
        advice='Add an alt text to every image that describes it, and alt="" to decoration.'),
    Row("accessibility.low-contrast", None, "Text with too little contrast",
        "Texts with too little contrast: {count} (the first: {sample}).", _WARNING,
        advice="Choose colours with a contrast of at least {least}, or {least_of_large:g} for large"
        " text."),
    Row("accessibility.no-language", None, "The HTML does not declare its language",
        "The HTML does not declare its language, so screen readers may use the wrong one.",
        _WARNING,
        advice='Declare the language in the html element, such as <html lang="en">.'),
    Row("accessibility.vague-link-text", None, "Link texts that say little on their own",
        "Link texts that say little on their own: {count} (the first: {sample}). Screen readers"
        " list links without the words around them.", _NOTE,
        advice="Say in the link text where it leads: “Read the invoice”, not “here”."),
)
# fmt: on

ROWS = (
    *SENDER,
    *HEADERS,
    *CONTENT,
    *TRANSPORT,
    *LINKS,
    *UNSUBSCRIBE,
    *CONTENT_FILTER,
    *ACCESSIBILITY,
)
