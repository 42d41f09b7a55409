-- Mail is compressed where the server has lz4 (14 and newer, as most are built): that costs less than
-- to write the bytes that it saves. What is stored already stays as it is.
DO $$
BEGIN
    EXECUTE 'ALTER TABLE delivery ALTER COLUMN raw_message SET COMPRESSION lz4';
    EXECUTE 'ALTER TABLE delivery ALTER COLUMN raw_message SET STORAGE EXTENDED';
EXCEPTION WHEN syntax_error OR feature_not_supported OR invalid_parameter_value THEN
    NULL;
END
$$;
