-- 1: created for the alerts of a watch that names its URL; deleted with the last such watch.
ALTER TABLE webhook ADD COLUMN is_of_watches INTEGER NOT NULL DEFAULT 0;
