-- A deletion that can still be undone: the message has expired at the time of the deletion, and this
-- is its expiry before. Undoing the deletion restores it.
ALTER TABLE message ADD COLUMN undo_expires_at BIGINT;

-- The beginning of the response of a webhook's receiver.
ALTER TABLE webhook_delivery ADD COLUMN response TEXT NOT NULL DEFAULT '';
