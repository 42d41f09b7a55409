-- The content of a failure report or complaint as JSON.
ALTER TABLE receiver_report ADD COLUMN feedback TEXT;
