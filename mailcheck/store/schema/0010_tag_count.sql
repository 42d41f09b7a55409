-- How many tags an inbox has: an overview must not count rows.
ALTER TABLE inbox ADD COLUMN tag_count BIGINT NOT NULL DEFAULT 0;

UPDATE inbox SET tag_count = (
    SELECT COUNT(*) FROM inbox_tag WHERE inbox_tag.account_id = inbox.account_id
);
