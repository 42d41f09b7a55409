"""Messages about a limit that is reached: they say when to try again."""

from mailcheck.core.errors import LimitExceeded, MessageNotFound, TooManyChecks
from mailcheck.web.dashboard.rendering import describe_failure
from tests.table import rows


@rows(
    (TooManyChecks("too many checks are running", 1), "; try again in 1 second"),
    (LimitExceeded("the limit of 60 is reached.", 61), "; try again in 2 minutes"),
    (LimitExceeded("too many attempts; try again tomorrow (UTC)", 9), "tomorrow (UTC)"),
    (MessageNotFound(), "or has expired"),
)
def test_a_limit_says_when_to_try_again(failure: Exception, said: str) -> None:
    """Each message about a limit ends with the time to wait, once; others are unchanged."""
    text = describe_failure(failure)  # type: ignore[arg-type]
    assert text.endswith(said)
    assert text.count("try again") <= 1
