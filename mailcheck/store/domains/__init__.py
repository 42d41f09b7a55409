"""What was found out about domains and lists, as rows."""
