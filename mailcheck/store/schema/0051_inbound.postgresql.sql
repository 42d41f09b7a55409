-- As in 0017: the server would query this table for each deleted mail. A mail is added in the
-- transaction of its delivery, or under the lock of the inbox with a message that refers to it.
ALTER TABLE inbound_mail DROP CONSTRAINT inbound_mail_delivery_id_fkey;
