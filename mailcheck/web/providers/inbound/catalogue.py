"""The formats of inbound routes: requests, answers, schedules and limits of each provider."""

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct

from mailcheck.core.inbound import (
    InboundFault,
    InboundFormat,
    InboundProvider,
    InboundProviders,
    WriteInboundRequest,
)
from mailcheck.web.providers.inbound import (
    brevo,
    mailgun,
    mailtrap,
    own,
    postmark,
    relays,
    resend,
    sendgrid,
    ses,
)

KIB, MIB = 1_024, 1_048_576
MINUTE, HOUR = 60, 3_600

CLIENT_ERRORS = range(400, 500)
REDIRECTS = range(300, 400)
SERVER_ERRORS = range(500, 600)
TOO_MANY = 429

_WITHOUT_TIME = frozenset(InboundFault) - {InboundFault.OLD_TIME_STAMP}
_WITHOUT_SIGNATURE = _WITHOUT_TIME - {InboundFault.WRONG_SIGNATURE}

SENDGRID_SCHEDULE = (*(450,) * 8, *(3 * HOUR,) * 23)
"""Every 5 to 10 minutes in the first hour, and about every 3 hours until 72 hours."""

MAILGUN_SCHEDULE = (10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR)

POSTMARK_SCHEDULE = (
    *(MINUTE, 5 * MINUTE, 10 * MINUTE, 10 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 6 * HOUR),
)

RESEND_SCHEDULE = (5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR)

BREVO_SCHEDULE = (10 * MINUTE, 50 * MINUTE, HOUR, 6 * HOUR)
"""10 minutes, 1, 2 and 8 hours after the first attempt."""

SNS_SCHEDULE = (20, 20, 20)

MAILTRAP_SCHEDULE = tuple(160 * 2**number for number in range(9))
"""Ten attempts in 24 hours with exponential back-off. The first interval is not documented."""

SERVER_SCHEDULE = (5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 40 * MINUTE, *(4_000,) * 6)
"""The usual intervals of Postfix, which tries for five days; here, for about eight hours."""

OWN_SCHEDULE = (5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR)
"""The schedule that Standard Webhooks recommends, for about a day and a half."""


class FormatRow(Struct, frozen=True):
    """A format, and the text about it on the reference page.

    :param title: the product, and its setting.
    :param authentication: what proves that a request is from the provider.
    :param notes: what is chosen or left out, where the provider's documents do not say it.
    """

    title: str
    provider: InboundProvider
    authentication: str
    notes: Sequence[str]


def inbound_providers(base: str) -> InboundProviders:
    """Return the behaviour of all formats. ``base`` is the URL of the providers' APIs here."""
    return {name: row.provider for name, row in format_rows(base).items()}


_BASIC = "user and password of the route (Basic)"
_ECDSA = (
    "`X-Twilio-Email-Event-Webhook-Signature` and `-Timestamp`: ECDSA with the `verificationKey` of"
    " the route; and Basic"
)
_HMAC = (
    "`timestamp`, `token` and `signature`: HMAC-SHA256 with the secret of the route, which stands"
    " for the HTTP webhook signing key"
)

_SENDGRID_NOTES = (
    (
        "One request has all recipients. `envelope` lists them, and is the only place that shows a"
        " blind copy."
    ),
    "The spam check is on: `spam_score` and `spam_report` are always there.",
    "`Authorization` with a token of OAuth is left out.",
)
_MAILGUN_NOTES = (
    "`X-Mailgun-Spam-Rules` is left out.",
    (
        "Every status 2xx ends the delivery. The documents name 200 only, but the ingress of Rails"
        " answers 204."
    ),
    (
        "`stripped-text` and `stripped-html` end where the quoted mail begins. Mailgun's own"
        " parser may decide differently."
    ),
)


def format_rows(base: str) -> Mapping[InboundFormat, FormatRow]:
    """Return all formats in the order of the reference page."""
    sns = f"{base}/sns"
    return {
        InboundFormat.SENDGRID: FormatRow(
            "SendGrid Inbound Parse",
            _sendgrid(sendgrid.write_fields),
            _ECDSA,
            (
                *_SENDGRID_NOTES,
                "`text` and `html` are the original bytes in the charsets that `charsets` names.",
            ),
        ),
        InboundFormat.SENDGRID_RAW: FormatRow(
            "SendGrid Inbound Parse, raw", _sendgrid(sendgrid.write_raw), _ECDSA, _SENDGRID_NOTES
        ),
        InboundFormat.MAILGUN: FormatRow(
            'Mailgun route, `forward("...")`',
            _mailgun(mailgun.write_parsed),
            _HMAC,
            _MAILGUN_NOTES,
        ),
        InboundFormat.MAILGUN_MIME: FormatRow(
            'Mailgun route, `forward(".../mime")`',
            _mailgun(mailgun.write_mime),
            _HMAC,
            ("`body-mime` has the bytes of the mail, which may be no UTF-8.", *_MAILGUN_NOTES[:2]),
        ),
        InboundFormat.MAILGUN_STORE: FormatRow(
            "Mailgun route, `store(notify=...)`",
            _mailgun(partial(mailgun.write_stored, base=f"{base}/mailgun")),
            _HMAC,
            (
                *_MAILGUN_NOTES,
                (
                    "`message-url` and the URLs of the files need an API key of the project as the"
                    " password of the user `api`."
                ),
                "`content-id-map` has the URLs of the files. The documents do not show it.",
            ),
        ),
        InboundFormat.POSTMARK: FormatRow(
            "Postmark inbound webhook",
            InboundProvider(
                postmark.write,
                (403,),
                POSTMARK_SCHEDULE,
                48 * MIB,
                is_per_recipient=True,
                faults=_WITHOUT_TIME,
            ),
            _BASIC,
            (
                "Each recipient gets a request, since `OriginalRecipient` is one address.",
                (
                    "`RawEmail` is always there, with LF as line ends and in UTF-8: other charsets"
                    " with eight bits are damaged."
                ),
                "Every status 2xx ends the delivery. The documents name 200 only.",
                "The limit is 35 MB of files, which are 48 MiB of Base64.",
                "`X-Spam-Tests` is left out.",
            ),
        ),
        InboundFormat.RESEND: FormatRow(
            "Resend, `email.received`",
            InboundProvider(resend.write, (), RESEND_SCHEDULE),
            "`svix-id`, `svix-timestamp`, `svix-signature` (Standard Webhooks)",
            (
                "The event has no bodies, no files and no verdicts.",
                (
                    "The mail is at `GET /emails/receiving/{id}` of `/providers/resend`, with"
                    " an API key of the project. Its downloads need no key, and are valid for"
                    " an hour."
                ),
            ),
        ),
        InboundFormat.BREVO: FormatRow(
            "Brevo inbound parsing",
            InboundProvider(
                brevo.write,
                (
                    *REDIRECTS,
                    *(status for status in CLIENT_ERRORS if status != TOO_MANY),
                    *SERVER_ERRORS,
                ),
                BREVO_SCHEDULE,
                faults=_WITHOUT_TIME,
            ),
            _BASIC,
            (
                "One request has one mail in `items`.",
                (
                    "A file is at `GET /v3/inbound/attachments/{DownloadToken}` of"
                    " `/providers/brevo`, with an API key of the project."
                ),
                "`Recipients` is left out: Brevo's documents do not have it.",
                "The schedule is that of Brevo's other webhooks.",
                (
                    "`ExtractedMarkdownMessage` is the text without the quoted mail. It is not"
                    " converted to Markdown."
                ),
            ),
        ),
        InboundFormat.MAILTRAP: FormatRow(
            "Mailtrap inbound",
            InboundProvider(
                mailtrap.write, (), MAILTRAP_SCHEDULE, faults=_WITHOUT_TIME, seconds=30.0
            ),
            "`Mailtrap-Signature`: HMAC-SHA256 of the body with the secret of the route",
            (
                (
                    "The event has the ids of the mail only. The mail is at"
                    " `GET /api/inbound/inboxes/{inbox_id}/messages/{message_id}` of"
                    " `/providers/mailtrap`, with an API key of the project."
                ),
                (
                    "Ten attempts in 24 hours. The first interval is not documented, and Mailtrap's"
                    " general page has another schedule."
                ),
            ),
        ),
        InboundFormat.SES: FormatRow(
            "Amazon SES over SNS",
            InboundProvider(
                partial(ses.write, base=sns),
                (*REDIRECTS, *CLIENT_ERRORS),
                SNS_SCHEDULE,
                150 * KIB,
                open=partial(ses.write_confirmation, base=sns),
            ),
            "`Signature` in the JSON: RSA with SHA-1 (version 1); Basic after a 401",
            (
                (
                    "The action is SNS with the encoding UTF-8: other charsets with eight bits are"
                    " damaged. The action S3 is left out."
                ),
                (
                    "A larger mail is not delivered: SES sends a bounce to its sender. No bounce is"
                    " sent here; the attempt shows the reason."
                ),
                (
                    "The first request is a `SubscriptionConfirmation`. No mail is sent before the"
                    " application has got its `SubscribeURL`, or has called ConfirmSubscription at"
                    " `/providers/sns`. The libraries of AWS call it if its URL is in the variable"
                    " `AWS_ENDPOINT_URL_SNS`."
                ),
                (
                    "The key of the signature is ours, and its certificate is at"
                    " `SigningCertURL` on this server. A stock validator accepts"
                    " `https://sns.<region>.amazonaws.com` only: in tests, let it accept this"
                    " server (LocalStack needs the same), or turn the verification off."
                ),
                "`UnsubscribeURL` does not end the subscription: delete the route instead.",
                "The password of the route is sent only after a 401 with `WWW-Authenticate`.",
                "`X-SES-RECEIPT` and `X-SES-DKIM-SIGNATURE` are left out.",
                "`dmarcPolicy` is `none`, and only there if DMARC fails.",
            ),
        ),
        InboundFormat.CLOUDFLARE: FormatRow(
            "Cloudflare Email Workers, local handler of wrangler",
            InboundProvider(
                relays.write_for_cloudflare,
                (*REDIRECTS, *CLIENT_ERRORS, *SERVER_ERRORS, None),
                (),
                MIB,
                is_per_recipient=True,
                faults=_WITHOUT_SIGNATURE,
            ),
            "none",
            (
                (
                    "The URL of the route is that of the handler:"
                    " `http://localhost:8787/cdn-cgi/local/email`, or `/cdn-cgi/handler/email` in"
                    " earlier versions of wrangler. `from` and `to` are added to it."
                ),
                (
                    "The handler refuses a mail without a Message-ID, and one without an envelope"
                    " sender, such as a bounce."
                ),
                "The header fields that Cloudflare adds are left out, as wrangler leaves them out.",
            ),
        ),
        InboundFormat.RAILS: FormatRow(
            "Rails Action Mailbox, ingress `relay`",
            InboundProvider(
                relays.write_for_rails,
                (),
                SERVER_SCHEDULE,
                is_per_recipient=True,
                faults=_WITHOUT_TIME,
                seconds=10.0,
            ),
            "password of the route (Basic); the user is `actionmailbox` unless the route has one",
            (
                "Each recipient gets a request, as from a mail server that pipes mail to Rails.",
                "`Return-Path`, `X-Original-To`, `Delivered-To` and `Received` are put on top.",
                "The schedule is that of Postfix, for eight hours instead of five days.",
                (
                    "The other ingresses of Rails take the formats `sendgrid-raw`, `mailgun-mime`"
                    " and `postmark`."
                ),
            ),
        ),
        InboundFormat.SMTP: FormatRow(
            "SMTP",
            InboundProvider(
                None, SERVER_ERRORS, SERVER_SCHEDULE, faults=_WITHOUT_SIGNATURE, seconds=30.0
            ),
            "user and password of the route (SMTP AUTH)",
            (
                "One transaction has all recipients; the mail stays as it is.",
                "The schedule is that of Postfix, for eight hours instead of five days.",
                (
                    "A public server at port 25 gets mail only if the operator allows its network"
                    " in `[webhooks] allow`: it takes mail for its users from anybody."
                ),
            ),
        ),
        InboundFormat.MAILCHECK: FormatRow(
            "mailcheck",
            InboundProvider(own.write, (410,), OWN_SCHEDULE),
            "`webhook-id`, `webhook-timestamp`, `webhook-signature` (Standard Webhooks)",
            (
                (
                    "`data` has the envelope, the addresses, all header fields, `text`, `html`,"
                    " `reply` (the text without the quoted mail), the files in Base64, and the"
                    " verdicts."
                ),
            ),
        ),
    }


def _sendgrid(write: WriteInboundRequest) -> InboundProvider:
    return InboundProvider(write, (*REDIRECTS, *CLIENT_ERRORS), SENDGRID_SCHEDULE, 30 * MIB)


def _mailgun(write: WriteInboundRequest) -> InboundProvider:
    return InboundProvider(write, (406,), MAILGUN_SCHEDULE, 25 * MIB, is_per_recipient=True)
