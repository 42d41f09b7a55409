"""From the bytes of a mail to what people read: header, text, html, attachments, links, codes."""
