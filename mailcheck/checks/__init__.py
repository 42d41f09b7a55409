"""The checks: parse records and mails, evaluate them, and describe the findings."""
