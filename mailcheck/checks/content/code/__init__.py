"""Finding verification codes in the text of a mail."""
