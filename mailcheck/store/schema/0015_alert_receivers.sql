-- 1: made for alerts, by a watch that names its address; it goes with the last one that does.
ALTER TABLE webhook ADD COLUMN is_of_watches INTEGER NOT NULL DEFAULT 0;
