"""Each field of a request that a provider documents is read here, or named as ignored."""

from collections.abc import Iterator
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import fields

from mailcheck.web.providers import brevo, mailgun, mailtrap, postmark, resend, sendgrid, ses
from mailcheck.web.providers.catalogue import PROVIDERS
from tests.table import rows

DOCUMENTED: dict[type[Struct], str] = {
    resend.SendEmail: """
        from to subject bcc cc scheduled_at reply_to html text headers topic_id attachments tags
        template name value content filename path content_type content_id id variables
    """,
    postmark.SendEmail: """
        From To Cc Bcc MessageStream Subject ReplyTo HtmlBody TextBody Tag TrackOpens TrackLinks
        Headers Attachments Metadata TemplateId TemplateAlias TemplateModel InlineCss
        Name Value Content ContentType ContentID
    """,
    sendgrid.SendMail: """
        personalizations from reply_to reply_to_list subject content attachments template_id headers
        categories custom_args send_at batch_id asm ip_pool_name mail_settings tracking_settings
        sections to cc bcc substitutions dynamic_template_data email name type value filename
        disposition content_id sandbox_mode enable mail_settings.bcc mail_settings.footer
        mail_settings.spam_check mail_settings.bypass_list_management
        mail_settings.bypass_spam_management mail_settings.bypass_bounce_management
        mail_settings.bypass_unsubscribe_management
    """,
    ses.SendEmail: """
        FromEmailAddress FromEmailAddressIdentityArn Destination ToAddresses CcAddresses
        BccAddresses ReplyToAddresses FeedbackForwardingEmailAddress
        FeedbackForwardingEmailAddressIdentityArn Content Simple Subject Data Charset Body Text Html
        Headers Name Value Attachments RawContent ContentDisposition FileName ContentDescription
        ContentId ContentTransferEncoding ContentType Raw Template TemplateName TemplateArn
        TemplateContent TemplateData EmailTags ConfigurationSetName EndpointId TenantName
        ListManagementOptions ConfigurationOverrides
    """,
    ses.SendBulkEmail: """
        DefaultContent BulkEmailEntries DefaultEmailTags ReplacementTags ReplacementEmailContent
        ReplacementTemplate ReplacementTemplateData ReplacementHeaders EndpointId TenantName
        FeedbackForwardingEmailAddress ConfigurationSetName ReplyToAddresses ConfigurationOverrides
    """,
    brevo.SendSmtpEmail: """
        sender to cc bcc replyTo subject htmlContent textContent headers params templateId tags
        attachment scheduledAt messageVersions batchId email name id content url
        contactPixelTrackingConsent
    """,
    mailtrap.SendEmail: """
        from to cc bcc reply_to subject text html category headers custom_variables attachments
        template_uuid template_variables email name filename type content disposition content_id
    """,
}
"""The fields of each request at any depth, from the SDKs of the provider."""


def structs_in(kind: Any) -> Iterator[type[Struct]]:
    """Yield the classes of a type and of its fields."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        yield kind
        for field in fields(kind):
            yield from structs_in(field.type)
    for one in get_args(kind):
        yield from structs_in(one)


@rows(*DOCUMENTED)
def test_each_field_is_read_or_named_as_ignored(request_class: type[Struct]) -> None:
    """No field is dropped without a word, and none is both read and named as ignored."""
    name = request_class.__module__.rpartition(".")[2]
    read = {field.encode_name for one in structs_in(request_class) for field in fields(one)}
    ignored = {field for one in PROVIDERS if one.name == name for field in one.ignored}
    documented = set(DOCUMENTED[request_class].split())
    assert documented - read - ignored == set()
    assert ignored & read == set()


OPTIONS_OF_MAILGUN = """
    o:tag o:dkim o:secondary-dkim o:secondary-dkim-public o:deliverytime o:testmode o:tracking
    o:deliverytime-optimize-period o:time-zone-localize o:tracking-clicks o:tracking-opens
    o:require-tls o:skip-verification o:sending-ip o:sending-ip-pool o:suppress-headers o:archive-to
    o:tracking-pixel-location-top t:version t:text t:variables
"""


def test_each_option_of_mailgun_is_read_or_named_as_ignored() -> None:
    """The options of a form are not dropped without a word either."""
    read = {"o:tag", "o:deliverytime", "t:variables"}
    assert set(OPTIONS_OF_MAILGUN.split()) == read | set(mailgun.MAILGUN.ignored)
