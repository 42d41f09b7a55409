-- SQLite reads a row from its beginning, page by page: columns for searches come before long ones.
CREATE TABLE content_in_order (
    delivery_id TEXT NOT NULL PRIMARY KEY REFERENCES delivery (id) ON DELETE CASCADE,
    derivation BIGINT NOT NULL DEFAULT 0,
    attachment_count BIGINT NOT NULL DEFAULT 0,
    codes TEXT NOT NULL,
    signature TEXT NOT NULL DEFAULT '',
    best_link TEXT,
    snippet TEXT NOT NULL DEFAULT '',
    links TEXT NOT NULL,
    address_key TEXT NOT NULL DEFAULT '',
    file_key TEXT NOT NULL DEFAULT '',
    header_key TEXT NOT NULL DEFAULT '',
    text_key TEXT NOT NULL,
    document TEXT NOT NULL
);
INSERT INTO content_in_order
SELECT
    delivery_id, derivation, attachment_count, codes, signature, best_link, snippet, links,
    address_key, file_key, header_key, text_key, document
FROM content;
DROP TABLE content;
ALTER TABLE content_in_order RENAME TO content;
