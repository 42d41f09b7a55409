"""One file for each thing a user can ask for; REST, MCP and the pages only offer these."""
