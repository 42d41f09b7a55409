"""The MCP endpoint, which offers the inbox and the checks to agents as tools."""
