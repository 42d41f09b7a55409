"""The HTTP endpoints of the OAuth 2.1 authorization server."""
