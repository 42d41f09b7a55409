-- Owners delete the reports of a reporter or of a day.

CREATE INDEX report_count_reporter ON report_count (account_id, reporter, day);
DROP INDEX report_count_forgetting;
CREATE INDEX report_count_day ON report_count (day, account_id);
