"""Building the services of a daemon process, starting them and reloading their configuration."""
