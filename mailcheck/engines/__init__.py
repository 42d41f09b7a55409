"""The databases below the stores: SQLite and PostgreSQL, their upgrades and copies."""
