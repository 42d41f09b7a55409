"""What a page says after something was done: the words that ``?done=`` may hold."""

from collections.abc import Mapping

NOTICES: Mapping[str, str] = {
    "signed-out": "You have signed out.",
    "signed-up": "Welcome: your account and its inbox are ready.",
    "password-changed": "Your password has been changed. All other sessions have ended.",
    "key-fault-set": "What the key's mails meet is set. It holds from its next sign-in on.",
    "key-revoked": "The key has been revoked: requests with it are refused from now on.",
    "receivers-chosen": "Alerts go there from now on.",
    "sample-sent": "A sample mail is on its way to your inbox.",
    "message-deleted": "The mail has been deleted.",
    "messages-deleted": "The mails have been deleted.",
    "messages-read": "The mail of the list is marked as read.",
    "recheck-started": "All checks run once more.",
    "report-share-renewed": "The old link to the report is dead. There is a new one.",
    "test-deleted": "The test has been deleted, with its report and its share link.",
    "report-deleted": "The report has been deleted, with its counts.",
    "reports-deleted": "The reports have been deleted, with their counts.",
    "share-renewed": "The old share link is dead. There is a new one.",
    "alert-acknowledged": "You know of it: only its end is told.",
    "watch-deleted": "It is watched no more.",
    "watch-made": "It is watched from now on. The first check says how it is.",
    "watch-run": "It has been checked.",
    "webhook-deleted": "The webhook has been deleted: nothing more is posted.",
    "webhook-replayed": "All mail that is still in the inbox is posted once more.",
    "webhook-resumed": "The webhook goes on where it stood.",
    "webhook-test-failed": "The test was not taken: the last deliveries below say why.",
    "webhook-test-taken": "The test was taken by your receiver.",
}
