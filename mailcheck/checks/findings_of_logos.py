"""Findings about BIMI: the record, the logo and its certificate. All of it is optional.

Mail is delivered without a logo, so no finding is an error. A warning means that receivers do not
show the logo that the domain publishes.
"""

from mailcheck.checks.finding_row import Case, Row, silent_row
from mailcheck.checks.findings import Area, Severity

_WARNING, _NOTE, _UNDETERMINED = Severity.WARNING, Severity.NOTE, Severity.UNDETERMINED

_EXPORT = (
    " Export the logo as SVG Tiny PS, or convert it with the tools of the BIMI Group, and upload it"
    " to the same URL."
)
_ASK_ISSUER = " The certificate must be issued again."

# fmt: off
RECORD = (
    Row("bimi.absent", None, "The domain has no BIMI record",
        "{domain} has no BIMI record at {selector}, so receivers show no logo of it. This is"
        " optional.", _NOTE,
        advice="This is optional. See the guide \"Show your logo with BIMI\" if you want one."),
    Row("bimi.bad-preference", None, "The BIMI record has an unknown preference (avp=)",
        'The BIMI record at {name} has avp="{preference}". Receivers know only brand and personal.',
        _WARNING,
        advice="Set avp=brand or avp=personal, or remove the tag."),
    Row("bimi.bad-url", None, "A URL in the BIMI record cannot be used",
        'The URL of the {what} ({tag}=) at {name} cannot be used: "{url}" is not an https URL of a'
        ' host name.', _WARNING,
        advice="Write the whole URL, beginning with https:// and a host name."),
    Row("bimi.declined", None, "The domain declares that it has no logo",
        "{domain} declares at {name} that it has no logo, so receivers show none.", _NOTE,
        advice="Keep it if no logo shall be shown. Otherwise publish a record with a logo."),
    Row("bimi.no-location", None, "The BIMI record names no logo (l=)",
        "The BIMI record at {name} names no logo (l=), so receivers show none.", _WARNING,
        advice="Add l= and the https URL of the logo. To declare that the domain has no logo,"
        ' publish "v=BIMI1; l=; a=;".'),
    Row("bimi.not-https", None, "A URL in the BIMI record begins with http:",
        "The URL of the {what} ({tag}=) at {name} begins with http:. Receivers fetch it over https"
        " only.", _WARNING,
        advice="Serve the file over https, and change the URL in the record."),
    Row("bimi.several", None, "The domain has several BIMI records",
        "{domain} has more than one BIMI record, so senders ignore all of them.", _WARNING,
        advice="Keep one BIMI record, and remove the others."),
    Row("bimi.syntax", None, "Part of the BIMI record is malformed",
        "Part of the BIMI record at {name} is malformed: {problems}.", _WARNING,
        advice="Write each tag as name=value, and separate tags with semicolons."),
    silent_row("bimi.undetermined", None, "BIMI could not be determined",
        "DNS gave no usable answer, or a file was not fetched"),
    Row("bimi.unknown-tag", None, "The BIMI record has unknown tags",
        "Receivers ignore tags of the BIMI record at {name}: {names}.", _NOTE,
        advice="Correct the names of the tags, or remove them. BIMI has v, l, a and avp."),
    Row("bimi.unreadable", None, 'The BIMI record does not begin with "v=BIMI1;"',
        'The record at {name} ("{text}") does not begin with "v={version};"{mistake}, so receivers'
        ' ignore it.', _WARNING,
        advice='Replace that TXT record with one beginning with "v=BIMI1;".'),
)

POLICY = (
    Row("bimi.dmarc-partial", None, "DMARC asks for quarantine of a part of the mail only",
        "The DMARC record of {domain} asks for quarantine of a part of the mail only"
        " (pct={percentage}).", _WARNING,
        advice="Remove pct from the DMARC record."),
    Row("bimi.dmarc-policy", None, "The DMARC policy is too weak for BIMI",
        "{domain} has {what}. Receivers show logos only with p=quarantine or p=reject.", _WARNING,
        advice="Follow the advice about DMARC until the policy is quarantine or reject. Do not"
        " change the policy for the logo alone: mail that fails DMARC is then lost."),
    Row("bimi.dmarc-subdomains", None, "DMARC has no policy for subdomains (sp=none)",
        "The DMARC record of {domain} has no policy for subdomains (sp=none). Receivers then show"
        " no logo.", _WARNING,
        advice="Set sp=quarantine or sp=reject, or remove sp, once mail of all subdomains passes."),
)

LOGO = (
    Row("bimi.logo-damaged", None, "The logo is damaged",
        "The logo at {url} cannot be used: {damage}.", _WARNING,
        advice="Upload the logo again, uncompressed."),
    Row("bimi.logo-missing", None, "The logo cannot be fetched",
        "The logo at {url} cannot be fetched: {reason}.", _WARNING,
        advice="Serve the logo at its URL with a valid certificate, or correct the URL in the"
        " record."),
    Row("bimi.logo-not-svg", None, "The logo is not an SVG file",
        "The file at {url} is not SVG, but {what}.", _WARNING,
        advice="Upload an SVG file with a root element svg and its namespace." + _EXPORT,
        cases={
            "malformed": Case("The logo at {url} is not well-formed XML: {fault}."),
            "nested": Case("The logo at {url} has more than {most} nested elements."),
        }),
    Row("bimi.logo-too-large", None, "The logo is larger than 32 KiB",
        "The logo at {url} has {size} KiB. Receivers show logos of up to {most} KiB,"
        " uncompressed.", _WARNING,
        advice="Simplify the paths of the logo, and remove metadata of the editor.",
        cases={"not-read": Case("The logo at {url} has more than {most} KiB.")}),
    Row("bimi.logo-type", None, "The web server sends the logo with another type",
        "The web server sends the logo at {url} with the type {shown} instead of {media_type}.",
        _WARNING,
        advice="Let the web server send .svg files with the type image/svg+xml."),
    Row("bimi.svg-animation", None, "The logo is animated",
        "The logo at {url} is animated or has sound (<{local}>).", _WARNING,
        advice="Remove the animation." + _EXPORT),
    Row("bimi.svg-doctype", None, "The logo has a document type declaration",
        "The logo at {url} has a document type declaration (DOCTYPE), which can define entities."
        " Receivers reject it.", _WARNING,
        advice="Remove the line that begins with <!DOCTYPE."),
    Row("bimi.svg-element", None, "The logo has an element that SVG Tiny PS does not allow",
        "The logo at {url} has an element that SVG Tiny PS does not allow: {what}.", _WARNING,
        advice="Replace or remove the element." + _EXPORT),
    Row("bimi.svg-external", None, "The logo refers to another file",
        "The logo at {url} refers to another file: {what}.", _WARNING,
        advice="Put everything into the file itself." + _EXPORT),
    Row("bimi.svg-not-square", None, "The logo is not square",
        "The logo at {url} has {fault}.", _WARNING,
        advice="Set a viewBox with the same width and height, and place the logo in its middle."),
    Row("bimi.svg-profile", None, "The logo is not marked as SVG Tiny PS",
        'The logo at {url} has baseProfile="{profile}", not "tiny-ps".', _WARNING,
        advice='Set baseProfile="tiny-ps" in the root element, once the file follows the profile.'),
    Row("bimi.svg-raster", None, "The logo contains a picture of pixels",
        "The logo at {url} contains a picture of pixels: {what}.", _WARNING,
        advice="Draw the logo as paths. A converted photo does not pass." + _EXPORT),
    Row("bimi.svg-root", None, "The root element of the logo has x or y",
        "The root element of the logo at {url} has an attribute x or y.", _WARNING,
        advice="Remove x and y from the element svg."),
    Row("bimi.svg-script", None, "The logo contains script or HTML",
        "The logo at {url} contains script or HTML: {what}.", _WARNING,
        advice="Remove scripts, event handlers and foreign content." + _EXPORT),
    Row("bimi.svg-style", None, "The logo uses CSS",
        "The logo at {url} uses CSS ({what}), which SVG Tiny does not have.", _WARNING,
        advice="Write the colours as attributes, such as fill." + _EXPORT),
    Row("bimi.svg-title", None, "The logo has no title",
        "The logo at {url} has no <title> with the name of the brand.", _WARNING,
        advice="Add <title> with the name of the brand as the first element in svg."),
    Row("bimi.svg-title-long", None, "The title of the logo is long",
        "The <title> of the logo at {url} has more than {max_title} characters.", _NOTE,
        advice="Use at most 64 characters."),
    Row("bimi.svg-version", None, "The logo is not marked as SVG 1.2",
        'The logo at {url} has version="{version}", not "1.2".', _WARNING,
        advice='Set version="1.2" in the root element.'),
)

CERTIFICATE = (
    Row("bimi.caa-forbids", None, "CAA does not allow the issuer of the logo's certificate",
        "The CAA records of {found_at} do not allow {name} to issue the next certificate for the"
        " logo (issuevmc).", _WARNING,
        advice="Add a CAA record with the tag issuevmc and the domain of the issuer, before the"
        " certificate expires."),
    Row("bimi.certificate-chain", None, "The chain of the logo's certificate is not complete",
        "The file at {url} lacks the certificate of an issuer ({issuer}).", _WARNING,
        advice="Publish the certificate of the logo, then the certificates of its issuers, in one"
        " PEM file.",
        cases={"not-signed": Case(
            "An issuer in the file at {url} has not signed the certificate of the logo, or may not"
            " issue.")}),
    Row("bimi.certificate-domain", None, "The logo's certificate is for another domain",
        "The certificate at {url} is for {names}, not for {found_at}.", _WARNING,
        advice="Publish the certificate of this domain, or have the domain added."
        + _ASK_ISSUER),
    Row("bimi.certificate-ending", None, "The logo's certificate expires soon",
        "The certificate of {whose}the logo at {url} expires on {day}, in {days} days.", _WARNING,
        advice="Order the next certificate now: its issuer verifies the organization again."),
    Row("bimi.certificate-expired", None, "The logo's certificate is not valid now",
        "The certificate of {whose}the logo at {url} expired on {day}.", _WARNING,
        advice="Publish a certificate that is valid now.",
        cases={"not-yet": Case("The certificate at {url} is valid from {day} only.")}),
    Row("bimi.certificate-logo", None, "The certificate contains no usable logo",
        "The certificate at {url} {problem}.", _WARNING,
        advice="Tell the issuer." + _ASK_ISSUER,
        cases={"hash": Case(
            "The logo in the certificate at {url} does not match its hash there.")}),
    Row("bimi.certificate-missing", None, "The logo's certificate cannot be fetched",
        "The certificate at {url} cannot be fetched: {reason}.", _WARNING,
        advice="Serve the file at its URL with a valid certificate of the web server, or correct"
        " the URL in the record."),
    Row("bimi.certificate-order", None, "The file does not begin with the logo's certificate",
        "The file at {url} does not begin with the certificate of the logo, or has several of"
        " them.", _WARNING,
        advice="Publish the certificate of the logo first, then the certificates of its issuers."),
    Row("bimi.certificate-purpose", None, "The certificate is not one for logos",
        "The certificate at {url} is not one for logos: it lacks the purpose"
        " id-kp-BrandIndicatorforMessageIdentification.", _WARNING,
        advice="Publish a mark certificate (VMC or CMC). A certificate of a web server does not"
        " work."),
    Row("bimi.certificate-unreadable", None, "The file has no usable certificate",
        "The file at {url} {problem}.", _WARNING,
        advice="Publish the certificates as the issuer delivers them, as text (PEM) in one file."),
    Row("bimi.issuer-distrusted", None, "A receiver does not trust the issuer any more",
        "{by} does not trust certificates for logos that {name} has issued after"
        " {distrusted_after}.", _WARNING,
        advice="Order the certificate from another issuer."),
    Row("bimi.issuer-undetermined", None, "The issuer of the logo's certificate is not known",
        "The issuer of the certificate at {url} ({issuer}) could not be determined: this service"
        " does not know its root.", _UNDETERMINED,
        advice="Compare the issuer with the list at bimigroup.org/vmc-issuers."),
    Row("bimi.logo-differs", None, "The logo is not the one in its certificate",
        "The logo at {location} is not the one in the certificate at {url}.", _WARNING,
        advice="Upload the file that is in the certificate, unchanged. For another logo, order"
        " another certificate."),
    Row("bimi.mark-type", None, "The certificate does not say whether its mark is registered",
        'The certificate at {url} does not say whether its mark is registered: its type is'
        ' "{mark_type}".', _NOTE,
        advice="Ask the issuer if the logo is a registered trademark."),
    Row("bimi.no-certificate", None, "The logo has no certificate",
        "The BIMI record at {name} names no certificate (a=). Gmail and Apple Mail show only logos"
        " that have one.", _NOTE,
        advice="This is optional. Order a VMC for a registered trademark, or a CMC for a logo that"
        " has been in use for a year."),
    Row("bimi.no-timestamps", None, "The logo's certificate is not in a public log",
        "The certificate at {url} has no timestamps of certificate logs (SCT).", _WARNING,
        advice="Tell the issuer." + _ASK_ISSUER),
)
MAIL = (
    Row("bimi.bad-selector", Area.HEADERS, "The field BIMI-Selector is not valid",
        "The field BIMI-Selector {problem}, so receivers look for no logo.", _NOTE,
        advice='Write "BIMI-Selector: v=BIMI1; s=NAME" once, or leave out the field for the logo'
        " of the selector default."),
    Row("bimi.selector", Area.HEADERS, "The mail chooses a logo (BIMI-Selector)",
        "The mail chooses the logo of the selector {name}: receivers look for the record"
        " {name}._bimi.{place}.", _NOTE,
        advice="To check the logo, run: mailcheck domain {at_domain} --bimi-selector {name}"),
)
# fmt: on

ROWS = (*RECORD, *POLICY, *LOGO, *CERTIFICATE, *MAIL)
