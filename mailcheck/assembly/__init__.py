"""Assembly: each module builds a part of the daemon from the configuration."""
