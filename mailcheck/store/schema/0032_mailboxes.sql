-- Flags that mail programs set, separated by spaces. \Seen is not one of them: it is is_read.
ALTER TABLE message ADD COLUMN flags TEXT NOT NULL DEFAULT '';
-- The inbox's position of the last change of is_read or flags (the mod-sequence of RFC 7162).
-- NULL: the message is as it arrived, at its own position.
ALTER TABLE message ADD COLUMN mod_sequence BIGINT;
CREATE INDEX message_mod_sequence ON message (account_id, mod_sequence)
    WHERE mod_sequence IS NOT NULL;

-- What mail programs ask about the header and the parts of a mail, as IMAP writes it.
-- No row yet: derive it.
CREATE TABLE mail_structure (
    delivery_id TEXT NOT NULL PRIMARY KEY REFERENCES delivery (id) ON DELETE CASCADE,
    derivation INTEGER NOT NULL,
    -- of the Date field, milliseconds; NULL: there is none
    sent_at BIGINT,
    envelope BYTEA NOT NULL,
    structure BYTEA NOT NULL
);
