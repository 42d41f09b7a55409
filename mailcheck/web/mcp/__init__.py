"""The Model Context Protocol over HTTP: the inbox as tools for agents."""
