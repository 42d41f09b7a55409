-- The octets by which a mail is larger when all its lines end with CRLF, as POP3 sends it (RFC 1939 11). For earlier mail
-- they are not known.
ALTER TABLE message ADD COLUMN added_octets INTEGER NOT NULL DEFAULT 0;
