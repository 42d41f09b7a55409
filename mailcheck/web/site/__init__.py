"""The web server below all routes: connections, limits, answers and errors."""
