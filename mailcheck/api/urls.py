"""The public URLs of the service."""

from msgspec import Struct

from mailcheck.core.identifiers import (
    AccountId,
    DeliverabilityTestId,
    MessageId,
    format_share_token,
    format_test_share_token,
)

API_PATH = "/api/v1"
MCP_PATH = "/mcp"
API_PAGE_PATH = "/api"
IMPORT_PATH = "/reports/import"
"""Path of imports of reports, in the API and in a project. Their bodies may be large."""
"""Path of imports of reports in the API, whose bodies may be large."""
INBOUND_PATH = "/inbound/routes"
"""Path of the routes into applications below `API_PATH`. Mails are posted there."""

PROVIDERS_PATH = "/providers"

PROJECT_PAGES_PATH = "/p"
"""Beginning of the paths of pages of a project, before its id."""

PAGES_WITH_FILES = ("/inbound/routes/*/write", "/inbox/messages/*/reply", IMPORT_PATH)
"""Paths in a project of the pages whose forms have files. ``*`` stands for one segment."""


class PublicUrls(Struct, frozen=True):
    """The URLs below ``public_url``, which has no slash at its end."""

    public_url: str

    @property
    def base_url(self) -> str:
        """The base URL of the REST API."""
        return self.public_url + API_PATH

    @property
    def mcp_url(self) -> str:
        """The URL of the MCP endpoint."""
        return self.public_url + MCP_PATH

    @property
    def api_page_url(self) -> str:
        """The URL of the page that documents the REST API."""
        return self.public_url + API_PAGE_PATH

    def page_url(self, account_id: AccountId, path: str) -> str:
        """Return the URL of a page of a project, or of a person's own account."""
        return f"{self.public_url}{PROJECT_PAGES_PATH}/{account_id}{path}"

    def share_url(self, message_id: MessageId, secret: str) -> str:
        """Return the share link of a message."""
        return f"{self.public_url}/share/{format_share_token(message_id, secret)}"

    def attachment_link(self, attachment_id: str, token: str) -> str:
        """Return the link to an attachment that requires no key and ends soon."""
        return f"{self.public_url}/attachments/{token}/{attachment_id}"

    def report_url(self, test_id: DeliverabilityTestId, secret: str) -> str:
        """Return the share link of a deliverability test."""
        return f"{self.public_url}/share/{format_test_share_token(test_id, secret)}"

    def invitation_url(self, code: str) -> str:
        """Return the link to sign up with an invitation."""
        return f"{self.public_url}/sign-up?invitation={code}"

    def sign_in_url(self, code: str) -> str:
        """Return the link to sign in once."""
        return f"{self.public_url}/sign-in/link?code={code}"

    def join_url(self, code: str) -> str:
        """Return the link to join a project with an invitation."""
        return f"{self.public_url}/join?invitation={code}"

    def attachment_url(self, message_id: MessageId, attachment_id: str) -> str:
        """Return the URL of an attachment. Like all of the API, it requires an API key."""
        return f"{self.base_url}/inbox/messages/{message_id}/attachments/{attachment_id}"
