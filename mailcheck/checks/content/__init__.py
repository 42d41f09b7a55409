"""Content of a mail: header, text, HTML, attachments, links and one-time codes."""
