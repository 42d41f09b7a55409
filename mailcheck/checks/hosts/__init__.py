"""The hosts of a domain: MX, reverse DNS, HELO, STARTTLS, transport policy, registration."""
