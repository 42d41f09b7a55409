"""The commands for people and keys."""
