"""The OpenAPI document of the REST API."""
