"""HTTP: the REST API and the pages, all over the same operations."""
