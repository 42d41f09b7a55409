-- Every so manieth mail that a key hands in on the submission port gets 451; none where it is null.
ALTER TABLE api_key ADD COLUMN fails_every INTEGER;
