"""The JSON of the inbox."""
