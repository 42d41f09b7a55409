"""The milter endpoint: mail servers send it a copy of their mail for statistics."""
