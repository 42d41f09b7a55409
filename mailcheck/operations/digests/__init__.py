"""The digest of an account by mail: gathering, rendering, sending and its settings."""
