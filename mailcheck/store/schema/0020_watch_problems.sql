-- Number of problems in the last run of a watch, with or without an alert; NULL before the first run.

ALTER TABLE watch ADD COLUMN problem_count BIGINT;
