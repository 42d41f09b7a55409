-- Of each row that goes PostgreSQL asks, one by one, every table that refers to it, and of each that
-- comes the one that it refers to: that was a third of what the server did for mail that expires.
-- What refers to a delivery comes in its transaction, or takes the place of what did; and it goes
-- under its lock, when nothing refers to it any more. SQLite, where that costs little, still asks.
ALTER TABLE message DROP CONSTRAINT message_delivery_id_fkey;
ALTER TABLE deliverability_test DROP CONSTRAINT deliverability_test_delivery_id_fkey;
ALTER TABLE receiver_report DROP CONSTRAINT receiver_report_delivery_id_fkey;
