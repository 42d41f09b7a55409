"""Pages of routes of mail into applications."""
