"""The addresses under which the service is reached from outside."""

from msgspec import Struct

from mailcheck.core.identifiers import (
    DeliverabilityTestId,
    MessageId,
    format_share_token,
    format_test_share_token,
)

API_PATH = "/api/v1"
MCP_PATH = "/mcp"
API_PAGE_PATH = "/api"


class PublicUrls(Struct, frozen=True):
    """``public_url`` has no slash at its end."""

    public_url: str

    @property
    def base_url(self) -> str:
        """Give the base of the REST API."""
        return self.public_url + API_PATH

    @property
    def mcp_url(self) -> str:
        """Give the address of the endpoint for agents."""
        return self.public_url + MCP_PATH

    @property
    def api_page_url(self) -> str:
        """Give the page that describes the REST API to people."""
        return self.public_url + API_PAGE_PATH

    def share_url(self, message_id: MessageId, secret: str) -> str:
        """Give the share link of a message."""
        return f"{self.public_url}/share/{format_share_token(message_id, secret)}"

    def report_url(self, test_id: DeliverabilityTestId, secret: str) -> str:
        """Give the share link of a deliverability test."""
        return f"{self.public_url}/share/{format_test_share_token(test_id, secret)}"

    def invitation_url(self, code: str) -> str:
        """Give the link with which an account can be made."""
        return f"{self.public_url}/sign-up?invitation={code}"

    def attachment_url(self, message_id: MessageId, attachment_id: str) -> str:
        """Give the address of an attachment (it needs the key, like all of the API)."""
        return f"{self.base_url}/inbox/messages/{message_id}/attachments/{attachment_id}"
