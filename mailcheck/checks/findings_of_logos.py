"""Findings about BIMI: the record, the logo and its certificate. All of it is optional.

Mail is delivered without a logo, so no finding is an error. A warning means that receivers do not
show the logo that the domain publishes.
"""

from mailcheck.checks.finding_row import RETRY_ADVICE, Row
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
        "Receivers show no logo", _NOTE,
        advice="This is optional. See the guide \"Show your logo with BIMI\" if you want one."),
    Row("bimi.bad-preference", None, "The BIMI record has an unknown preference (avp=)",
        "Receivers ignore it", _WARNING,
        advice="Set avp=brand or avp=personal, or remove the tag."),
    Row("bimi.bad-url", None, "A URL in the BIMI record cannot be used",
        "Receivers cannot fetch the file", _WARNING,
        advice="Write the whole URL, beginning with https:// and a host name."),
    Row("bimi.declined", None, "The domain declares that it has no logo",
        "The BIMI record has an empty l=", _NOTE,
        advice="Keep it if no logo shall be shown. Otherwise publish a record with a logo."),
    Row("bimi.no-location", None, "The BIMI record names no logo (l=)",
        "Receivers show none", _WARNING,
        advice="Add l= and the https URL of the logo. To declare that the domain has no logo,"
        ' publish "v=BIMI1; l=; a=;".'),
    Row("bimi.not-https", None, "A URL in the BIMI record begins with http:",
        "Receivers fetch files over https only", _WARNING,
        advice="Serve the file over https, and change the URL in the record."),
    Row("bimi.several", None, "The domain has several BIMI records",
        "Receivers ignore all of them", _WARNING,
        advice="Keep one BIMI record, and remove the others."),
    Row("bimi.syntax", None, "Part of the BIMI record is malformed",
        "Receivers may ignore the record", _WARNING,
        advice="Write each tag as name=value, and separate tags with semicolons."),
    Row("bimi.undetermined", None, "BIMI could not be determined",
        "DNS gave no usable answer, or a file was not fetched", _UNDETERMINED,
        advice=RETRY_ADVICE),
    Row("bimi.unknown-tag", None, "The BIMI record has unknown tags",
        "Receivers ignore them", _NOTE,
        advice="Correct the names of the tags, or remove them. BIMI has v, l, a and avp."),
    Row("bimi.unreadable", None, 'The BIMI record does not begin with "v=BIMI1;"',
        "Receivers ignore it", _WARNING,
        advice='Replace that TXT record with one beginning with "v=BIMI1;".'),
)

POLICY = (
    Row("bimi.dmarc-partial", None, "DMARC asks for quarantine of a part of the mail only",
        "Receivers show logos only with pct=100", _WARNING,
        advice="Remove pct from the DMARC record."),
    Row("bimi.dmarc-policy", None, "The DMARC policy is too weak for BIMI",
        "Receivers show logos only with p=quarantine or p=reject", _WARNING,
        advice="Follow the advice about DMARC until the policy is quarantine or reject. Do not"
        " change the policy for the logo alone: mail that fails DMARC is then lost."),
    Row("bimi.dmarc-subdomains", None, "DMARC has no policy for subdomains (sp=none)",
        "Receivers show no logo", _WARNING,
        advice="Set sp=quarantine or sp=reject, or remove sp, once mail of all subdomains passes."),
)

LOGO = (
    Row("bimi.logo-damaged", None, "The logo is damaged",
        "Its compression cannot be undone", _WARNING,
        advice="Upload the logo again, uncompressed."),
    Row("bimi.logo-missing", None, "The logo cannot be fetched",
        "Receivers show none", _WARNING,
        advice="Serve the logo at its URL with a valid certificate, or correct the URL in the"
        " record."),
    Row("bimi.logo-not-svg", None, "The logo is not an SVG file",
        "Receivers show SVG only", _WARNING,
        advice="Upload an SVG file with a root element svg and its namespace." + _EXPORT),
    Row("bimi.logo-too-large", None, "The logo is larger than 32 KiB",
        "Receivers may not show it", _WARNING,
        advice="Simplify the paths of the logo, and remove metadata of the editor."),
    Row("bimi.logo-type", None, "The web server sends the logo with another type",
        "Receivers may not accept it as SVG", _WARNING,
        advice="Let the web server send .svg files with the type image/svg+xml."),
    Row("bimi.svg-animation", None, "The logo is animated",
        "SVG Tiny PS allows neither animations nor sound", _WARNING,
        advice="Remove the animation." + _EXPORT),
    Row("bimi.svg-doctype", None, "The logo has a document type declaration",
        "It can define entities, so receivers reject the file", _WARNING,
        advice="Remove the line that begins with <!DOCTYPE."),
    Row("bimi.svg-element", None, "The logo has an element that SVG Tiny PS does not allow",
        "Receivers reject the file", _WARNING,
        advice="Replace or remove the element." + _EXPORT),
    Row("bimi.svg-external", None, "The logo refers to another file",
        "SVG Tiny PS does not allow it", _WARNING,
        advice="Put everything into the file itself." + _EXPORT),
    Row("bimi.svg-not-square", None, "The logo is not square",
        "Receivers show logos in a square or circle", _WARNING,
        advice="Set a viewBox with the same width and height, and place the logo in its middle."),
    Row("bimi.svg-profile", None, "The logo is not marked as SVG Tiny PS",
        "Receivers reject the file", _WARNING,
        advice='Set baseProfile="tiny-ps" in the root element, once the file follows the profile.'),
    Row("bimi.svg-raster", None, "The logo contains a picture of pixels",
        "SVG Tiny PS allows vector graphics only", _WARNING,
        advice="Draw the logo as paths. A converted photo does not pass." + _EXPORT),
    Row("bimi.svg-root", None, "The root element of the logo has x or y",
        "Receivers reject the file", _WARNING,
        advice="Remove x and y from the element svg."),
    Row("bimi.svg-script", None, "The logo contains script or HTML",
        "Receivers reject the file", _WARNING,
        advice="Remove scripts, event handlers and foreign content." + _EXPORT),
    Row("bimi.svg-style", None, "The logo uses CSS",
        "SVG Tiny has presentation attributes instead", _WARNING,
        advice="Write the colours as attributes, such as fill." + _EXPORT),
    Row("bimi.svg-title", None, "The logo has no title",
        "SVG Tiny PS requires one", _WARNING,
        advice="Add <title> with the name of the brand as the first element in svg."),
    Row("bimi.svg-title-long", None, "The title of the logo is long",
        "Receivers may cut it", _NOTE,
        advice="Use at most 64 characters."),
    Row("bimi.svg-version", None, "The logo is not marked as SVG 1.2",
        "Receivers reject the file", _WARNING,
        advice='Set version="1.2" in the root element.'),
)

CERTIFICATE = (
    Row("bimi.caa-forbids", None, "CAA does not allow the issuer of the logo's certificate",
        "The certificate cannot be renewed", _WARNING,
        advice="Add a CAA record with the tag issuevmc and the domain of the issuer, before the"
        " certificate expires."),
    Row("bimi.certificate-chain", None, "The chain of the logo's certificate is not complete",
        "Receivers cannot verify the certificate", _WARNING,
        advice="Publish the certificate of the logo, then the certificates of its issuers, in one"
        " PEM file."),
    Row("bimi.certificate-domain", None, "The logo's certificate is for another domain",
        "Receivers do not show the logo", _WARNING,
        advice="Publish the certificate of this domain, or have the domain added."
        + _ASK_ISSUER),
    Row("bimi.certificate-ending", None, "The logo's certificate expires soon",
        "Afterwards Gmail and Apple Mail show no logo", _WARNING,
        advice="Order the next certificate now: its issuer verifies the organization again."),
    Row("bimi.certificate-expired", None, "The logo's certificate is not valid now",
        "Gmail and Apple Mail show no logo", _WARNING,
        advice="Publish a certificate that is valid now."),
    Row("bimi.certificate-logo", None, "The certificate contains no usable logo",
        "Receivers show the logo in the certificate", _WARNING,
        advice="Tell the issuer." + _ASK_ISSUER),
    Row("bimi.certificate-missing", None, "The logo's certificate cannot be fetched",
        "Gmail and Apple Mail show no logo", _WARNING,
        advice="Serve the file at its URL with a valid certificate of the web server, or correct"
        " the URL in the record."),
    Row("bimi.certificate-order", None, "The file does not begin with the logo's certificate",
        "Receivers may not find it", _WARNING,
        advice="Publish the certificate of the logo first, then the certificates of its issuers."),
    Row("bimi.certificate-purpose", None, "The certificate is not one for logos",
        "Receivers ignore it", _WARNING,
        advice="Publish a mark certificate (VMC or CMC). A certificate of a web server does not"
        " work."),
    Row("bimi.certificate-unreadable", None, "The file has no usable certificate",
        "Gmail and Apple Mail show no logo", _WARNING,
        advice="Publish the certificates as the issuer delivers them, as text (PEM) in one file."),
    Row("bimi.issuer-distrusted", None, "A receiver does not trust the issuer any more",
        "It shows no logo", _WARNING,
        advice="Order the certificate from another issuer."),
    Row("bimi.issuer-undetermined", None, "The issuer of the logo's certificate is not known",
        "Each receiver has its own list of issuers", _UNDETERMINED,
        advice="Compare the issuer with the list at bimigroup.org/vmc-issuers."),
    Row("bimi.logo-differs", None, "The logo is not the one in its certificate",
        "Receivers reject both", _WARNING,
        advice="Upload the file that is in the certificate, unchanged. For another logo, order"
        " another certificate."),
    Row("bimi.mark-type", None, "The certificate does not say whether its mark is registered",
        "Gmail marks senders with a registered one", _NOTE,
        advice="Ask the issuer if the logo is a registered trademark."),
    Row("bimi.no-certificate", None, "The logo has no certificate",
        "Gmail and Apple Mail do not show it, other receivers may", _NOTE,
        advice="This is optional. Order a VMC for a registered trademark, or a CMC for a logo that"
        " has been in use for a year."),
    Row("bimi.no-timestamps", None, "The logo's certificate is not in a public log",
        "Receivers require timestamps of certificate logs (SCT)", _WARNING,
        advice="Tell the issuer." + _ASK_ISSUER),
)
MAIL = (
    Row("bimi.bad-selector", Area.HEADERS, "The field BIMI-Selector is not valid",
        "Receivers show no logo for this mail", _NOTE,
        advice='Write "BIMI-Selector: v=BIMI1; s=NAME" once, or leave out the field for the logo'
        " of the selector default."),
    Row("bimi.selector", Area.HEADERS, "The mail chooses a logo (BIMI-Selector)",
        "Receivers use another BIMI record than default", _NOTE,
        advice="Check the record of this selector."),
)
# fmt: on

ROWS = (*RECORD, *POLICY, *LOGO, *CERTIFICATE, *MAIL)
