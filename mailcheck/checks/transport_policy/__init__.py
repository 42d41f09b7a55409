"""How mail to a domain is protected on its way: MTA-STS, TLS-RPT, DANE, DNSSEC. Never scored."""
