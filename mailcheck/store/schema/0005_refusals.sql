-- A refusal takes a position of its inbox, as a message does, and has the tag of its recipient.
-- A wait reports the refusals since its cursor.

-- Earlier refusals have neither; they are deleted within the hour.
DELETE FROM refusal;

ALTER TABLE refusal ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
ALTER TABLE refusal ADD COLUMN recipient_key TEXT NOT NULL DEFAULT '';
ALTER TABLE refusal ADD COLUMN tag TEXT NOT NULL DEFAULT '';
ALTER TABLE refusal ADD COLUMN tag_key TEXT NOT NULL DEFAULT '';
