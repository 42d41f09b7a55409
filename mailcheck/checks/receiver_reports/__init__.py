"""Reports that receivers send about a domain: DMARC aggregate reports and TLS reports."""
