"""Values and rules without I/O: the current time and randomness are passed as arguments."""
