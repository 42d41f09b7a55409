"""Records with tags, such as DMARC's: lists of tags, and repair of their mistakes."""
