"""The database engines: SQLite and PostgreSQL, schema upgrades, backups and copies."""
