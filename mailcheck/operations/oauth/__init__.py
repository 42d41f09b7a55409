"""The OAuth 2.1 authorization server: clients, consent, codes and tokens."""
