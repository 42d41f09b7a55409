"""BIMI: the logo that receivers show beside mail of a domain, and the certificate for it."""
