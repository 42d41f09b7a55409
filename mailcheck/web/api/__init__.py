"""The REST API: routes, access control, and the conversion of requests to replies."""
