"""The API of Mailpit, on a listener of its own."""
