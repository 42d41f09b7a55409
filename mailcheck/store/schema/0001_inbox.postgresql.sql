-- Mail is not compressed: that would cost more than the rest of its way into the table.
ALTER TABLE delivery ALTER COLUMN raw_message SET STORAGE EXTERNAL;
