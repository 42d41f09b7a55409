"""What can be asked about a domain or an address."""
