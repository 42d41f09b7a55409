"""The environment of Mailpit's images, as options of mailcheck."""

from pathlib import Path

import pytest

from mailcheck.config.mailpit import translate_environment
from mailcheck.config.reading import ConfigError, load_config
from tests.table import rows


def test_without_variables_it_listens_as_mailpit_does() -> None:
    """Both usual ports are open on all addresses, and there is an account."""
    config = load_config(None, translate_environment({}).variables)
    assert config.mailpit.listen == ("0.0.0.0:8025",)
    assert config.mailpit.smtp_listen == ("0.0.0.0:1025",)
    assert config.accounts.bootstrap


def test_every_variable_becomes_an_option(tmp_path: Path) -> None:
    """Addresses, passwords, limits and the database are those of the image."""
    (tmp_path / "users").write_text("ann:one\nbob:two\n")
    translated = translate_environment(
        {
            "MP_UI_BIND_ADDR": ":9025",
            "MP_SMTP_BIND_ADDR": "127.0.0.1:9125",
            "MP_WEBROOT": "mail/pit/",
            "MP_UI_AUTH_FILE": str(tmp_path / "users"),
            "MP_SMTP_AUTH": "ann:mail",
            "MP_SMTP_AUTH_ACCEPT_ANY": "1",
            "MP_SMTP_AUTH_ALLOW_INSECURE": "true",
            "MP_SMTP_TLS_CERT": "/certs/cert.pem",
            "MP_SMTP_TLS_KEY": "/certs/key.pem",
            "MP_MAX_MESSAGES": "500",
            "MP_MAX_AGE": "3d",
            "MP_DATABASE": "/data/mailpit.db",
            "MP_ENABLE_CHAOS": "false",
            "MP_SMTP_MAX_RECIPIENTS": "150",
            "MP_VERBOSE": "1",
            "HOME": "/root",
        }
    )
    assert translated.ignored == ["MP_VERBOSE"]
    config = load_config(None, translated.variables)
    assert config.mailpit.listen == ("0.0.0.0:9025",)
    assert config.mailpit.smtp_listen == ("127.0.0.1:9125",)
    assert config.mailpit.web_root == "/mail/pit"
    assert config.mailpit.ui_password == "ann:one bob:two"
    assert config.mailpit.smtp_password == "ann:mail"
    assert config.smtp.auth_without_tls == "always"
    assert (config.smtp.certificate, config.smtp.private_key) == (
        "/certs/cert.pem",
        "/certs/key.pem",
    )
    assert (config.inbox.max_messages, config.inbox.retention_hours) == (500, 72)
    assert config.storage.url == "sqlite:/data/mailpit.db"
    assert (config.inbox.faults, config.smtp.max_recipients) == (False, 150)


def test_a_certificate_for_names_is_self_signed() -> None:
    """Mailpit signs one itself for names after sans:, and so does mailcheck."""
    translated = translate_environment({"MP_SMTP_TLS_CERT": "sans:localhost,mail"})
    assert load_config(None, translated.variables).smtp.certificate == "self-signed"


def test_variables_of_mailcheck_take_precedence() -> None:
    """An option that is set already is kept, also as a file."""
    environment = {
        "MP_MAX_MESSAGES": "500",
        "MP_UI_AUTH": "ann:one",
        "MAILCHECK_INBOX_MAX_MESSAGES": "7",
        "MAILCHECK_MAILPIT_UI_PASSWORD_FILE": "/run/secrets/password",
    }
    variables = translate_environment(environment).variables
    assert not {"MAILCHECK_INBOX_MAX_MESSAGES", "MAILCHECK_MAILPIT_UI_PASSWORD"} & set(variables)


def test_no_limit_stays_our_limit() -> None:
    """``MP_MAX_MESSAGES=0`` has no counterpart, so the default of mailcheck applies."""
    variables = translate_environment({"MP_MAX_MESSAGES": "0"}).variables
    assert "MAILCHECK_INBOX_MAX_MESSAGES" not in variables


@rows(
    ("MP_UI_AUTH", "ann", "user:password"),
    ("MP_UI_AUTH", "ann:$2y$05$abc", "without a hash"),
    ("MP_SMTP_AUTH", "ann:{SHA}abc=", "without a hash"),
    ("MP_SMTP_AUTH_FILE", "/nowhere/users", "cannot be read"),
    ("MP_MAX_AGE", "soon", "12h or 3d"),
)
def test_a_value_without_counterpart(name: str, value: str, words: str) -> None:
    """The error names the variable, and what to write."""
    with pytest.raises(ConfigError, match=words) as raised:
        translate_environment({name: value})
    assert name in str(raised.value)
