"""The page that describes the API."""
