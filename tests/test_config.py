"""The configuration: a file, environment variables that override it, and errors with a location."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.config.example import render_example
from mailcheck.config.options import Config, options_of
from mailcheck.config.reading import ConfigError, load_config, variable_name
from tests.table import rows

EXAMPLE = Path(__file__).parent.parent / "etc" / "mailcheck.toml"

EVERY_OPTION = [
    (section, option)
    for section in Config.__struct_fields__
    for option in options_of(getattr(Config(), section))
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of the configuration file."""
    return tmp_path / "mailcheck.toml"


def load(file: Path, text: str, **variables: str) -> Config:
    """Load a file with a text and environment variables."""
    file.write_text(text, "utf-8")
    return load_config(file, variables)


class TestTheExample:
    """`etc/mailcheck.toml` shows every option at its default."""

    def test_it_is_up_to_date(self) -> None:
        """The example in the repository is the one that the options generate."""
        assert EXAMPLE.read_text("utf-8") == render_example()

    def test_it_changes_nothing(self) -> None:
        """A daemon with the example as its configuration has all defaults."""
        assert load_config(EXAMPLE, {}) == Config()

    def test_every_option_can_be_uncommented(self, file: Path) -> None:
        """Every option of the example has its default value when it is uncommented."""
        text = re.sub(r"(?m)^#(\w+ = )", r"\1", render_example())
        assert load(file, text) == Config()
        values = tomllib.loads(text)
        named = {(section, name) for section in values for name in values[section]}
        assert named == {(section, option.name) for section, option in EVERY_OPTION}

    def test_every_option_says_what_it_means(self) -> None:
        """The example shows a description and a variable for each option."""
        example = render_example()
        for section, option in EVERY_OPTION:
            assert option.described.text.endswith((".", ")")), option.name
            assert f"{option.name} = " in example
            assert variable_name(section, option.name) in example


class TestTheFile:
    """The options of a file."""

    def test_no_file(self) -> None:
        """Without a file and variables every option has its default."""
        assert load_config(None, {}) == Config()

    def test_sign_up_needs_an_invitation(self) -> None:
        """Without a file and variables an account needs an invitation."""
        assert load_config(None, {}).accounts.registration == "invite"

    def test_options(self, file: Path) -> None:
        """Options in the file are used; the others keep their defaults."""
        config = load(
            file,
            """
            [inbox]
            domain = "Inbox.example"
            aliases = ["a.example", "b.example"]
            retention_hours = 48  # a whole number where a fraction may be
            [smtp]
            listen = "0.0.0.0:25"
            [limits]
            requests_per_minute = 100_000
            [accounts]
            bootstrap = true
            """,
        )
        assert (config.inbox.domain, config.inbox.aliases) == (
            "Inbox.example",
            ("a.example", "b.example"),
        )
        assert config.inbox.retention_hours == 48.0
        assert isinstance(config.inbox.retention_hours, float)
        assert config.smtp.listen == ("0.0.0.0:25",)
        assert config.smtp.submission_listen == Config().smtp.submission_listen
        assert config.limits.requests_per_minute == 100_000
        assert config.accounts.bootstrap is True

    @rows(
        ("[inbxo]\n", 1, r"unknown section \[inbxo\]; did you mean inbox\?"),
        ("\n\n[ 'inbxo' ]\n", 3, r"unknown section \[inbxo\]"),
        ("domain = 1\n", 1, r"unknown section \[domain\]"),
        ("[[inbox]]\ndomain = 'a.example'\n", 1, "unknown section"),
        ("[rspamd]\nurl = '127.0.0.1:11333'\n", 2, "must be a URL like http://127.0.0.1:11333"),
        ("[rspamd]\npassword = 'x'\n", 2, "password requires url; set both"),
        ("[milter]\nlisten = '8891'\n", 2, "'8891': write host:port"),
        ("[milter]\nallow_from = '10.0.0.1/8'\n", 2, "has host bits set"),
        ("[milter]\nsample = 2\n", 2, "sample must be at most 1, not 2"),
        ("[inbox]\n\ndoman = 'x'\n", 3, r"\[inbox\] has no option doman"),
        ("[inbox]\n'doman' = 'x'\n", 2, "no option doman"),
        ("[inbox]\ndomain_file = '/x'\n", 2, "no option domain_file"),
        ("[smtp]\ndomain = 'x'\n[inbox]\ndomain = 'x.example'\n", 2, "no option domain"),
        ("[inbox]\ndomain = 5\n", 2, "domain must be a string, not 5"),
        ("[inbox]\naliases = 5\n", 2, "aliases must be a list of strings, not 5"),
        ("[inbox]\naliases = ['a.example', 5]\n", 2, "aliases must be a list of strings"),
        ("[inbox]\nmax_messages = '5'\n", 2, "max_messages must be an integer, not '5'"),
        ("[inbox]\nmax_messages = 5.0\n", 2, "an integer, not 5.0"),
        ("[inbox]\nmax_messages = true\n", 2, "an integer, not True"),
        ("[inbox]\nmax_messages = 0\n", 2, "at least 1, not 0"),
        (
            "[inbox]\nretention_hours = false\n",
            2,
            "retention_hours must be a number, not False",
        ),
        ("[inbox]\nretention_hours = nan\n", 2, "retention_hours must be a number, not nan"),
        ("[inbox]\nretention_hours = inf\n", 2, "must be a number, not inf"),
        ("[inbox]\nretention_hours = 0.001\n", 2, "at least 0.01"),
        ("[inbox]\nretention_hours = 10_000\n", 2, "at most 8760"),
        ("[accounts]\nbootstrap = 'yes'\n", 2, "bootstrap must be true or false, not 'yes'"),
        ("[accounts]\nbootstrap = 1\n", 2, "true or false, not 1"),
        ("[smtp]\nauth_without_tls = 'maybe'\n", 2, "one of private, never, always"),
        ("[inbox]\ndomain = 'a.example'\nmax_bytes = 0\n", 3, "max_bytes must be at least 1"),
        ("inbox.max_bytes = 0\n", 1, "max_bytes must be at least 1"),
        ("\ninbox = { max_bytes = 0 }\n", 2, "max_bytes must be at least 1"),
    )
    def test_mistakes_name_their_line(self, file: Path, text: str, line: int, problem: str) -> None:
        """The error for a mistake names the file, the line and the problem."""
        with pytest.raises(ConfigError, match=problem) as caught:
            load(file, text)
        assert str(caught.value).startswith(f"{file}, line {line}: ")

    def test_invalid_toml(self, file: Path) -> None:
        """The error for invalid TOML contains the line that the parser reports."""
        with pytest.raises(ConfigError, match=r"mailcheck\.toml: .*line 2"):
            load(file, "[inbox]\ndomain = x\n")

    def test_unreadable_files(self, tmp_path: Path) -> None:
        """The error for a missing file, a folder or a binary file names the path."""
        binary = tmp_path / "binary"
        binary.write_bytes(b"\xff\xfe")
        for path in (tmp_path / "none", tmp_path, binary):
            with pytest.raises(ConfigError, match=f"{path} cannot be read"):
                load_config(path, {})


class TestContradictions:
    """Invalid values, and values that contradict each other."""

    @rows(
        ("inbox", "domain = 'two words'", r"domain 'two words' is not a domain name"),
        ("inbox", "domain = 'bücher.example'", "xn--"),
        ("inbox", "domain = 'mail.example.'", "is not a domain name"),
        ("inbox", "domain = ''", "is not a domain name"),
        ("inbox", "aliases = ['good.example', '-bad']", "aliases '-bad' is not a domain"),
        ("smtp", "host_name = 'a b'", "host_name 'a b' is not"),
        ("smtp", "listen = ['127.0.0.1:25', '2525']", "listen '2525': write host:port"),
        ("smtp", "submission_listen = ['x:99999']", "submission_listen 'x:99999'"),
        ("web", "listen = ['']", "listen ''"),
        ("web", "listen = []", "listen is empty"),
        ("mailpit", "web_root = 'mailpit/'", "web_root 'mailpit/' is not a path"),
        ("smtp", "proxy_protocol_from = ['10.0.0.1/8']", "has host bits set"),
        ("smtp", "xclient_from = ['localhost']", "xclient_from 'localhost'"),
        ("web", "trusted_proxies = ['1.2.3.4.5']", "trusted_proxies"),
        ("smtp", "certificate = 'c.pem'", "certificate requires private_key"),
        ("smtp", "private_key = 'k.pem'", "private_key requires certificate"),
        (
            "smtp",
            "private_key = 'k.pem'\ncertificate = 'self-signed'",
            "cannot be used with a self",
        ),
        ("storage", "url = 'mysql:x'", "url begins with 'mysql'; write sqlite:<path>"),
        ("storage", "url = 'sqlite:'", "write sqlite:<path>"),
        ("storage", "url = 'sqlite::memory:'", "url is in memory"),
        ("storage", "url = 'postgresql:secret'", "is not of the form postgresql://"),
        ("cluster", "redis = 'http://:secret@x'", "redis is not of the form redis://"),
        ("daemon", "processes = 2", "processes is more than 1, which requires"),
        ("webhooks", "allow = ['10.0.0.0/8']", "is not of the form account=network"),
        ("web", "public_url = 'mail.example'", "public_url 'mail.example' is not an http"),
        ("web", "public_url = 'https://mail.example/'", "without a slash"),
        ("web", "public_url = 'https://'", "is not an http"),
        ("web", "public_url = 'ftp://mail.example'", "is not an http"),
        ("web", "public_url = 'http://['", "is not an http"),
        ("web", "public_url = 'https://mail.example:99999'", "is not an http"),
        ("web", "public_url = 'https://ann@mail.example'", "is not an http"),
        ("web", "public_url = 'https://mail.example?x'", "is not an http"),
        ("web", "public_url = 'https://\u2603.example'", "is not an http"),
        ("accounts", "bootstrap_key = 'short'", "bootstrap_key must have at least 16 ASCII"),
        ("accounts", "bootstrap_key = 'ssssssssssssssß'", "must have at least 16 ASCII"),
        ("dns", "resolvers = ['dns.example']", "resolvers 'dns.example'"),
        ("blocklists", "resolvers = ['1.1.1.1:0']", "resolvers '1.1.1.1:0'"),
        ("blocklists", "keys = ['secret']", "keys must be of the form zone=key"),
        ("blocklists", "daily_budgets = ['a.example']", "not of the form zone=value"),
        ("blocklists", "daily_budgets = ['a.example=x']", "'x' is not an integer"),
        (
            "alerts",
            "smtp_relay = 'mail.example.org'",
            "smtp_relay 'mail.example.org': write host",
        ),
        ("alerts", "smtp_relay = 'unix:relay'", "smtp_relay 'unix:relay': write host"),
        (
            "alerts",
            "from_address = 'alerts'",
            "from_address 'alerts': must be a mail address",
        ),
        ("alerts", "user = 'bob'", "user requires password"),
        ("alerts", "password = 'secret'", "password requires user"),
        ("alerts", "user = 'a'\npassword = 'b'\ntls = 'never'", "user requires tls = required"),
        ("alerts", "allow_recipients = ['a@example.com']", "not of the form account=address"),
        ("alerts", "allow_recipients = ['a=example.com']", "must be a mail address"),
        ("release", "relay = 'mail.example.org'", "relay 'mail.example.org': write host"),
        ("release", "relay = 'mail.example.org:25'", "relay requires sender"),
        (
            "release",
            "relay = 'mail.example.org:25'\nsender = 'a@b.example'",
            "relay requires allow_recipients",
        ),
        ("release", "sender = 'a%c@b.example'", "is not a plain mail address"),
        ("release", "sender = 'A <a@b.example>'", "is not a plain mail address"),
        ("release", "relay = 'localhost:2525'", "relay is this daemon itself"),
        ("release", "user = 'a'\npassword = 'b'\ntls = 'offered'", "user requires tls = required"),
        ("release", "allow_recipients = ['a=*']", "must be a mail address"),
        ("release", "allow_recipients = ['a=@']", "must be a mail address"),
        ("release", "allow_recipients = ['a=*@b.example@c.example']", "must be a mail address"),
        ("spamassassin", "spamd = 'on'", "spamd 'on': must be auto, off, host:port or unix:"),
        ("spamassassin", "spamd = 'unix:spamd.sock'", "spamd 'unix:spamd.sock'"),
    )
    def test_contradictions_name_their_line(
        self, file: Path, section: str, text: str, problem: str
    ) -> None:
        """The error for an invalid value names line, section and option, but no secret."""
        with pytest.raises(ConfigError, match=problem) as caught:
            load(file, f"# a comment\n[{section}]\n{text}\n")
        assert str(caught.value).startswith(f"{file}, line 3: [{section}] ")
        assert "short" not in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_contradictions_name_their_variable(self, file: Path) -> None:
        """The error for an invalid environment variable names the variable."""
        variables = {"MAILCHECK_INBOX_DOMAIN": "two words"}
        with pytest.raises(ConfigError, match=r"^MAILCHECK_INBOX_DOMAIN: \[inbox\] domain"):
            load(file, "[inbox]\ndomain = 'good.example'\n", **variables)

    @rows(
        "[smtp]\nlisten = []\nsubmission_listen = []\n",
        "[smtp]\nlisten = ['systemd:domain=INET:name=smtp', '[::]:25']\n",
        "[smtp]\ncertificate = 'c.pem'\nprivate_key = 'k.pem'\n",
        "[smtp]\nproxy_protocol_from = ['10.0.0.0/8', '::1', '192.0.2.1']\n",
        "[web]\npublic_url = 'https://mail.example:8443/mailcheck'\n",
        "[inbox]\ndomain = 'localhost'\n",
        "[dns]\nresolvers = ['127.0.0.1:5354', '::1', '[::1]:53']\n",
        "[accounts]\nbootstrap_key = 'sixteen letters!'\n",
        "[alerts]\nallow_recipients = ['a=b=ops@example.com', '*=@example.com']\n",
        "[alerts]\nsmtp_relay = '[::1]:25'\ntls = 'never'\n",
    )
    def test_unusual_values(self, file: Path, text: str) -> None:
        """Unusual but valid settings are accepted."""
        assert load(file, text) != Config()


class TestTheEnvironment:
    """Every option has an environment variable, which overrides the file."""

    @rows(
        ("MAILCHECK_INBOX_DOMAIN", "bare.example", "bare.example"),
        ("MAILCHECK_INBOX_DOMAIN", '"quoted.example"', "quoted.example"),
        ("MAILCHECK_INBOX_DOMAIN", "'quoted.example'", "quoted.example"),
        ("MAILCHECK_INBOX_DOMAIN", "123", "123"),
        ("MAILCHECK_INBOX_ALIASES", "a.example, b.example,", ("a.example", "b.example")),
        ("MAILCHECK_INBOX_ALIASES", '["a.example"]', ("a.example",)),
        ("MAILCHECK_INBOX_ALIASES", '"a.example"', ("a.example",)),
        ("MAILCHECK_INBOX_ALIASES", "", ()),
        ("MAILCHECK_SMTP_LISTEN", "127.0.0.1:25", ("127.0.0.1:25",)),
        ("MAILCHECK_INBOX_MAX_MESSAGES", "1_000", 1_000),
        ("MAILCHECK_INBOX_RETENTION_HOURS", "2", 2.0),
        ("MAILCHECK_ACCOUNTS_BOOTSTRAP", "true", True),
        ("MAILCHECK_STORAGE_STATE_DIRECTORY", "/var/lib/it's", "/var/lib/it's"),
        ("MAILCHECK_STORAGE_STATE_DIRECTORY", "'", "'"),
        ("MAILCHECK_SMTP_HOST_NAME", "", ""),
    )
    def test_values(self, file: Path, variable: str, text: str, value: object) -> None:
        """A TOML value, a bare word and comma-separated words are read."""
        section_name, option_name = variable.removeprefix("MAILCHECK_").lower().split("_", 1)
        config = load(file, "[inbox]\ndomain = 'file.example'\n", **{variable: text})
        assert getattr(getattr(config, section_name), option_name) == value

    @rows(
        ("MAILCHECK_INBOX_DOMIAN", "x", "not the variable of an option"),
        ("MAILCHECK_INBOX", "x", "not the variable of an option"),
        ("MAILCHECK_PORTS", "x", "not the variable of an option"),
        ("MAILCHECK_INBOX_DOMAIN_FILE", "x", "not the variable of an option"),
        ("MAILCHECK_INBOX_MAX_MESSAGES", "many", "an integer, not 'many'"),
        ("MAILCHECK_INBOX_MAX_MESSAGES", "", "an integer, not ''"),
        ("MAILCHECK_INBOX_MAX_MESSAGES", "0", "at least 1"),
        ("MAILCHECK_ACCOUNTS_BOOTSTRAP", "yes", "true or false, not 'yes'"),
        ("MAILCHECK_ACCOUNTS_BOOTSTRAP", "True", "true or false, not 'True'"),
        ("MAILCHECK_INBOX_ALIASES", "[1]", "a list of strings"),
        ("MAILCHECK_INBOX_ALIASES", "1979-05-27", "a list of strings"),
        ("MAILCHECK_INBOX_DOMAIN", '"a\\qb"', "Unescaped|escape"),
        ("MAILCHECK_INBOX_DOMAIN", "'a'b'", "."),
        ("MAILCHECK_INBOX_ALIASES", "'a'b'", "."),
        ("MAILCHECK_SMTP_IDLE_TIMEOUT", "nan", "must be a number"),
        ("MAILCHECK_WEB_LISTEN", "", "listen is empty"),
    )
    def test_mistakes_name_their_variable(
        self, file: Path, variable: str, text: str, problem: str
    ) -> None:
        """The error for a mistake in the environment names the variable."""
        with pytest.raises(ConfigError, match=problem) as caught:
            load(file, "", **{variable: text})
        assert str(caught.value).startswith(variable)

    def test_other_variables(self, file: Path) -> None:
        """Variables of other programs and of the client libraries are ignored."""
        variables = {"HOME": "/x", "MAILCHECK_URL": "http://x", "MAILCHECK_API_KEY": "mck_x"}
        assert load(file, "", **variables) == Config()

    @rows(
        *("MAILCHECK_SERVICE_HOST", "MAILCHECK_SERVICE_PORT", "MAILCHECK_SERVICE_PORT_WEB"),
        *("MAILCHECK_PORT", "MAILCHECK_PORT_8080_TCP", "MAILCHECK_PORT_8080_TCP_ADDR"),
        *("MAILCHECK_NAME", "MAILCHECK_ENV_MAILCHECK_ACCOUNTS_BOOTSTRAP"),
    )
    def test_a_service_called_mailcheck(self, file: Path, variable: str) -> None:
        """Variables that container engines set for a service with this name are ignored."""
        assert load(file, "", **{variable: "tcp://10.0.0.7:8080"}) == Config()

    @given(st.sampled_from(EVERY_OPTION), st.text(st.characters(exclude_categories=["Cs"])))
    def test_any_text(self, option: tuple[str, Any], text: str) -> None:
        """Any text of a variable becomes a value of the right type, or an error that names it."""
        section_name, field = option
        variable = variable_name(section_name, field.name)
        try:
            config = load_config(None, {variable: text})
        except ConfigError as error:
            problem = str(error)
        else:
            problem = variable
            value = getattr(getattr(config, section_name), field.name)
            assert type(value) is type(field.default)
        assert problem.startswith(variable)


class TestSecrets:
    """Secrets in separate files."""

    KEY = "a key of our own choice"

    @pytest.fixture
    def key_file(self, tmp_path: Path) -> Path:
        """A file with the key and a line break."""
        path = tmp_path / "the key's file"
        path.write_text(f"{self.KEY}\n")
        return path

    def test_from_a_file(self, file: Path, key_file: Path) -> None:
        """An option or a variable names the file. White space around the secret is ignored."""
        text = f'[accounts]\nbootstrap_key_file = "{key_file}"\n'
        assert load(file, text).accounts.bootstrap_key == self.KEY
        variables = {"MAILCHECK_ACCOUNTS_BOOTSTRAP_KEY_FILE": str(key_file)}
        assert load(file, "", **variables).accounts.bootstrap_key == self.KEY

    def test_the_environment_counts_first(self, file: Path, key_file: Path) -> None:
        """The environment overrides the file, with a secret or with the name of its file."""
        in_file = "[accounts]\nbootstrap_key = 'another key, longer'\n"
        variables = {"MAILCHECK_ACCOUNTS_BOOTSTRAP_KEY_FILE": str(key_file)}
        assert load(file, in_file, **variables).accounts.bootstrap_key == self.KEY
        in_file = "[accounts]\nbootstrap_key_file = '/nowhere'\n"
        variables = {"MAILCHECK_ACCOUNTS_BOOTSTRAP_KEY": self.KEY}
        assert load(file, in_file, **variables).accounts.bootstrap_key == self.KEY

    def test_lists_of_secrets(self, file: Path, tmp_path: Path) -> None:
        """A file may contain a list of secrets, one per line."""
        keys = tmp_path / "keys"
        keys.write_text("a.example=one\nb.example=two\n")
        variables = {"MAILCHECK_BLOCKLISTS_KEYS_FILE": str(keys)}
        for config in (
            load(file, "", **variables),
            load(file, f"[blocklists]\nkeys_file = '{keys}'\n"),
        ):
            assert " ".join(config.blocklists.keys).split() == ["a.example=one", "b.example=two"]

    def test_given_twice(self, file: Path, key_file: Path) -> None:
        """A secret and the name of its file cannot be given together."""
        twice = f"[accounts]\nbootstrap_key = 'x'\nbootstrap_key_file = \"{key_file}\"\n"
        with pytest.raises(ConfigError, match="line 3: set either bootstrap_key or") as caught:
            load(file, twice)
        assert "not both" in str(caught.value)

    @rows("'/nowhere/at/all'", "''", "5", '"\\u0000"')
    def test_an_unreadable_secret(self, file: Path, value: str) -> None:
        """The error for an unreadable file names the line and the file."""
        with pytest.raises(ConfigError, match=r"line 2: the file .* cannot be read"):
            load(file, f"[accounts]\nbootstrap_key_file = {value}\n")
        variables = {"MAILCHECK_ACCOUNTS_BOOTSTRAP_KEY_FILE": "/nowhere/at/all"}
        with pytest.raises(ConfigError, match="MAILCHECK_ACCOUNTS_BOOTSTRAP_KEY_FILE: the file"):
            load_config(None, variables)


@rows(("auto", "auto"), ("0", 0), ("1048576", 1_048_576), ('"auto"', "auto"))
def test_a_word_or_a_number(text: str, value: object) -> None:
    """An option may be the word ``auto`` or a number."""
    config = load_config(None, {"MAILCHECK_STORAGE_MIN_FREE": text})
    assert config.storage.min_free == value


@rows("much", "-1", "1.5", "true")
def test_neither_word_nor_number(text: str) -> None:
    """Any other value is rejected, and the error lists the valid values."""
    with pytest.raises(ConfigError, match="min_free must be auto or an integer"):
        load_config(None, {"MAILCHECK_STORAGE_MIN_FREE": text})
