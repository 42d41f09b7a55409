"""The header of a mail: its fields, the mailboxes and the parameters in them."""
