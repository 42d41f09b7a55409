-- Problems that the last run of a watch found, alerted or not; NULL before the first run.

ALTER TABLE watch ADD COLUMN problem_count BIGINT;
