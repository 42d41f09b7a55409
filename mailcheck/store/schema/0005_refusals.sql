-- A refusal takes a position of its inbox as a message does, and says for which tag it was:
-- a wait is told of those since its cursor.

-- Of those of before neither is known; they would be forgotten within the hour.
DELETE FROM refusal;

ALTER TABLE refusal ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
ALTER TABLE refusal ADD COLUMN recipient_key TEXT NOT NULL DEFAULT '';
ALTER TABLE refusal ADD COLUMN tag TEXT NOT NULL DEFAULT '';
ALTER TABLE refusal ADD COLUMN tag_key TEXT NOT NULL DEFAULT '';
