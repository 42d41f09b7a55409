-- Mail is compressed if the server has lz4 (most builds of version 14 and newer). Compression costs
-- less than writing the bytes that it saves. Stored mail is not changed.
DO $$
BEGIN
    EXECUTE 'ALTER TABLE delivery ALTER COLUMN raw_message SET COMPRESSION lz4';
    EXECUTE 'ALTER TABLE delivery ALTER COLUMN raw_message SET STORAGE EXTENDED';
EXCEPTION WHEN syntax_error OR feature_not_supported OR invalid_parameter_value THEN
    NULL;
END
$$;
