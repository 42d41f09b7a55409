-- When the person last signed in or confirmed who they are, for actions that outlast the session.
ALTER TABLE dashboard_session ADD COLUMN confirmed_at BIGINT NOT NULL DEFAULT 0;
