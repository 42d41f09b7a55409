-- The mail address that an invitation names: it is the name of an account that is created with it.
-- Empty: the invitation is for a person who has an account.
ALTER TABLE project_invitation ADD COLUMN address TEXT NOT NULL DEFAULT '';
