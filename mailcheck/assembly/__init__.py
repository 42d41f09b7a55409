"""Puts the rooms together: each file builds a part of the daemon from the configuration."""
