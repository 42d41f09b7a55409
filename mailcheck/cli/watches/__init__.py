"""Commands for watches: domains and addresses, and mail that is expected on a schedule."""
