"""What receivers report about a domain: DMARC aggregate reports, and reports about TLS."""
