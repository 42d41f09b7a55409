"""SCIM 2.0: the directory of a company creates, changes and disables accounts."""
