-- How a message came, smtp or the name of a provider, and the request that was posted to its API.
ALTER TABLE message ADD COLUMN via TEXT NOT NULL DEFAULT 'smtp';
ALTER TABLE delivery ADD COLUMN request TEXT NOT NULL DEFAULT '';
