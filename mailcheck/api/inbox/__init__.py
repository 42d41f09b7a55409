"""The JSON shapes of the inbox."""
