"""What becomes of forged mail: DMARC records, found by the tree walk (RFC 9989, RFC 9990)."""
