"""OAuth 2.1 for the MCP endpoint: clients, their metadata, and what they are granted."""
