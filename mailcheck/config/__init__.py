"""All options: definitions, reading and validation."""
