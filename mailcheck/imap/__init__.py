"""The mail server for mail programs: IMAP, over the mailboxes of an inbox."""
