-- Read marks, and the columns of a mail that searches use in addition to its text.

-- 1 if a user has opened it on the dashboard; API calls never set it.
ALTER TABLE message ADD COLUMN is_read INTEGER NOT NULL DEFAULT 0;

ALTER TABLE content ADD COLUMN attachment_count BIGINT NOT NULL DEFAULT 0;

-- Searched texts are folded differently from here on, and attachments were not counted:
-- everything is derived again.
DELETE FROM content;
