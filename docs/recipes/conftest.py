"""Fixtures: the shop, which sends to the mail server of the package's fixture `mailcheck`."""

import pytest
from shop import app


@pytest.fixture
def shop(mailcheck, monkeypatch):
    """Return a Flask test client for the shop."""
    monkeypatch.setenv("SMTP_HOST", mailcheck.smtp_host)
    monkeypatch.setenv("SMTP_PORT", str(mailcheck.smtp_port))
    return app.test_client()
