"""One file for each thing a user can ask for; REST, MCP and the rest are thin skins over these."""
