"""DMARC and TLS reports: receiving, counting and showing them."""
