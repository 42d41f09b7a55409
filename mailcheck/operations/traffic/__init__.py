"""Statistics of the mail that a mail server has received, from copies of it."""
