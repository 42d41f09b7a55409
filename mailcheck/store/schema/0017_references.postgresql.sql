-- For each deleted row PostgreSQL queries every table that refers to it; for each inserted row, the
-- table that it refers to. For expired mail that was a third of the server's work. Rows that refer to
-- a delivery are inserted in its transaction or replace such a row. A delivery is deleted under its
-- lock when no row refers to it. SQLite, where the checks cost little, keeps them.
ALTER TABLE message DROP CONSTRAINT message_delivery_id_fkey;
ALTER TABLE deliverability_test DROP CONSTRAINT deliverability_test_delivery_id_fkey;
ALTER TABLE receiver_report DROP CONSTRAINT receiver_report_delivery_id_fkey;
