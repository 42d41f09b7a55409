-- The provider in whose format a webhook is told of messages; empty for our own format.
ALTER TABLE webhook ADD COLUMN provider TEXT NOT NULL DEFAULT '';
