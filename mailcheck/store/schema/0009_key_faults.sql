-- Every n-th mail that a key sends over the submission port gets 451; none if it is NULL.
ALTER TABLE api_key ADD COLUMN fails_every INTEGER;
