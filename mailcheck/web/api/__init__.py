"""The REST API: routes, admission, and how a request becomes a reply."""
