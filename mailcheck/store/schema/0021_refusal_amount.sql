-- Refusals of mail to the same fault tag in the same minute share one row.

ALTER TABLE refusal ADD COLUMN amount BIGINT NOT NULL DEFAULT 1;
