"""HTTP: the REST API and the pages; thin skins over the operations."""
