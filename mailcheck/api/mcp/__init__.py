"""The results of MCP tools, as agents read them."""
