"""The JSON shapes of the domain tools."""
