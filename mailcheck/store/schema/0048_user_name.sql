-- The name that a client has given to a listener that needs no key, as Mailpit shows it.
ALTER TABLE delivery ADD COLUMN user_name TEXT NOT NULL DEFAULT '';
