"""The web server below all routes: connections, limits, responses and errors."""
