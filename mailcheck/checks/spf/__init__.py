"""Who may send for a domain: SPF records and the tree they form (RFC 7208)."""
