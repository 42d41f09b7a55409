"""The pages of the API reference."""
