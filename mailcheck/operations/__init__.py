"""The operations of users, one per file. REST, MCP and the pages only present them."""
