-- The URL of a page names its project, so a session shows none by itself.
DROP INDEX dashboard_session_project;
ALTER TABLE dashboard_session DROP COLUMN project_id;
