"""Ways to sign in without a password."""
