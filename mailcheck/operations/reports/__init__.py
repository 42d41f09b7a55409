"""Reports of receivers: taken in, kept, and what they say about who sends as a domain."""
