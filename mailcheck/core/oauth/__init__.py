"""OAuth 2.1 for the MCP endpoint: clients, their metadata, and grants."""
