-- Findings about DKIM keys have the same ids as in the reports of mails.

UPDATE watch_change SET name = 'dkim.key-broken' WHERE name = 'dkim.broken-key';
UPDATE watch_alert SET problem = 'DKIM: dkim.key-broken' WHERE problem = 'DKIM: dkim.broken-key';
UPDATE watch_change SET name = 'dkim.key-revoked' WHERE name = 'dkim.revoked';
UPDATE watch_alert SET problem = 'DKIM: dkim.key-revoked' WHERE problem = 'DKIM: dkim.revoked';
UPDATE watch_change SET name = 'dkim.key-too-short' WHERE name = 'dkim.short-key';
UPDATE watch_alert SET problem = 'DKIM: dkim.key-too-short' WHERE problem = 'DKIM: dkim.short-key';
UPDATE watch_change SET name = 'dkim.several-keys' WHERE name = 'dkim.several';
UPDATE watch_alert SET problem = 'DKIM: dkim.several-keys' WHERE problem = 'DKIM: dkim.several';
