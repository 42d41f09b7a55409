-- People whom the directory of a company manages (SCIM 2.0, RFC 7643).
CREATE TABLE provisioned_user (
    account_id TEXT NOT NULL PRIMARY KEY REFERENCES account (id) ON DELETE CASCADE,
    user_name TEXT NOT NULL,
    -- The name without case.
    folded_name TEXT NOT NULL UNIQUE,
    external_id TEXT UNIQUE,
    -- The other attributes, as JSON.
    profile TEXT NOT NULL,
    -- Whether the directory has created the account.
    is_created INTEGER NOT NULL,
    modified_at BIGINT NOT NULL,
    version BIGINT NOT NULL
);

-- Its groups.
CREATE TABLE provisioned_group (
    id TEXT NOT NULL PRIMARY KEY,
    display_name TEXT NOT NULL,
    folded_name TEXT NOT NULL UNIQUE,
    external_id TEXT,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    version BIGINT NOT NULL
);
CREATE TABLE provisioned_member (
    group_id TEXT NOT NULL REFERENCES provisioned_group (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    PRIMARY KEY (group_id, account_id)
);
CREATE INDEX provisioned_member_account ON provisioned_member (account_id);

-- The roles that the groups have given. Other roles are left alone.
CREATE TABLE provisioned_role (
    project_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    PRIMARY KEY (project_id, account_id)
);
CREATE INDEX provisioned_role_account ON provisioned_role (account_id);

-- The id of a person in the directory, as the claim of the last sign-in had it.
ALTER TABLE linked_identity ADD COLUMN external_id TEXT;
UPDATE linked_identity SET external_id = subject;
CREATE INDEX linked_identity_external ON linked_identity (external_id);
