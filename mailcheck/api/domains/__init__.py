"""The JSON of the domain tools."""
