"""The JSON of the REST API and the MCP tools: requests are parsed here, and shapes rendered."""
