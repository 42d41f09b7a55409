-- Number of tags of an inbox, so that an overview need not count rows.
ALTER TABLE inbox ADD COLUMN tag_count BIGINT NOT NULL DEFAULT 0;

UPDATE inbox SET tag_count = (
    SELECT COUNT(*) FROM inbox_tag WHERE inbox_tag.account_id = inbox.account_id
);
