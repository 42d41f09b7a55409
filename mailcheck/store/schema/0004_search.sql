-- Read marks, and what a search asks of a mail beside its text.

-- 1 when somebody has opened it on the dashboard; programs never do.
ALTER TABLE message ADD COLUMN is_read INTEGER NOT NULL DEFAULT 0;

ALTER TABLE content ADD COLUMN attachment_count BIGINT NOT NULL DEFAULT 0;

-- What texts are looked for in is folded in another way from here on, and attachments were
-- not counted: it is all derived again.
DELETE FROM content;
