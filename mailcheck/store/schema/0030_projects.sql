-- An account is a person's, or a project's, which several people share. A project has an inbox,
-- keys, tests, watches and webhooks like every account, but no password.
ALTER TABLE account ADD COLUMN is_project INTEGER NOT NULL DEFAULT 0;

CREATE TABLE member (
    project_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    -- owner, editor or reader
    role TEXT NOT NULL,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (project_id, account_id)
);
CREATE INDEX member_account ON member (account_id);

-- Deleted when a person joins the project with it.
CREATE TABLE project_invitation (
    digest BYTEA NOT NULL PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX project_invitation_project ON project_invitation (project_id);
CREATE INDEX project_invitation_expiry ON project_invitation (expires_at);

-- The project that the pages show; NULL is the person's own account.
ALTER TABLE dashboard_session ADD COLUMN project_id TEXT REFERENCES account (id) ON DELETE SET NULL;
CREATE INDEX dashboard_session_project ON dashboard_session (project_id);
