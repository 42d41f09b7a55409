"""From a bare Debian to a running mailcheck with all that the pages about operation describe.

The walk includes mail on port 25, a doctor without findings, a reload, a web proxy, an alert, a
backup, a restore and an upgrade. It runs the commands of docs/how-to/install.md and the pages that
it leads to as root in a separate namespace. Changes of /etc, /opt, /usr
and /var are discarded at the end, and ports 25, 53, 80, 443, 587, 8080 and 9090 belong to the
namespace. systemd does not run there: ``tests/servers/debian-systemctl`` replaces it, with the
filters of the units and a real journal. apt-get installs no packages. The Internet is a name server
and a web server on addresses of the namespace. mailcheck is installed from a wheel of the sources.
Its dependencies come from the environment of the tests, or from one that is made for Debian's
Python where that has another version.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mailcheck.probes.mail_host_prober import REFERENCE_HOSTS
from tests.docs.blocks import ROOT, read_blocks
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone
from tests.interop.test_installation import FILES, FOLDERS
from tests.servers.certificates import Authority
from tests.servers.name_server import write_name_server
from tests.servers.postgresql import program

pytestmark = [pytest.mark.end_to_end, pytest.mark.long, pytest.mark.timeout(900)]

RUNNER = "tests/interop/test_debian.py"
PYTHON = "/usr/bin/python3"
DEADLINE = 800  # seconds, for a busy machine

NAMESPACE = r"""
set -eu -o pipefail
ip link set lo up
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log
mkdir /var/log/nginx
mount -t tmpfs tmpfs "$WORK/layers"
for folder in etc opt usr/lib/sysusers.d var/lib; do
    upper="$WORK/layers/$folder"
    mkdir -p "$upper/upper" "$upper/work" "/$folder"
    options="lowerdir=/$folder,upperdir=$upper/upper,workdir=$upper/work"
    mount -t overlay overlay -o "$options" "/$folder"
done
rm -rf /opt/mailcheck
mkdir -p /etc/systemd/system "$WORK/home"
cd "$WORK/home"
ln -s "$WHEELS" dist
echo "$SMALL" > /run/mailcheck-more-environment
apt-get() { echo "apt-get $*"; }
"""

DEPENDENCIES = """
upper=$WORK/layers/dependencies
mkdir -p "$upper/upper" "$upper/work" /opt/dependencies
options="lowerdir=$DEPENDENCIES,upperdir=$upper/upper,workdir=$upper/work"
mount -t overlay overlay -o "$options" /opt/dependencies
# The new environment has its own pip, and the files that Twisted writes.
rm -rf /opt/dependencies/twisted/plugins/dropin.cache /opt/dependencies/{pip,setuptools}*
version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
packages=/opt/mailcheck/lib/python$version/site-packages
mkdir -p /opt/mailcheck/bin "$packages"
echo /opt/dependencies > "$packages/dependencies.pth"
sed '1s|.*|#!/opt/mailcheck/bin/python|' "$TWISTD" > /opt/mailcheck/bin/twistd
chmod +x /opt/mailcheck/bin/twistd
"""

INTERNET = r"""
ip address add 5.45.100.25/32 dev lo
ip route add local 5.45.101.0/24 dev lo src 5.45.100.25
ip route add 192.0.2.0/24 dev lo src 5.45.100.25
echo nameserver 127.0.0.1 > /etc/resolv.conf
settings=/etc/mailcheck/mailcheck.toml
/opt/mailcheck/bin/mailcheck --config $settings doctor --dns >> "$INTERNET/0.zone"
nsd -c "$INTERNET/nsd.conf"
cat "$INTERNET/authority.pem" >> /etc/ssl/certs/ca-certificates.crt
/usr/bin/python3 -c "$CLOCK" 2> /dev/null &
clock=$!
"""
"""The address of the machine, and the records and hosts that the doctor queries.

Packets to 5.45.101.0/24 stay here, but leave from the machine's address like those to other hosts.
"""

CLOCK = """
import os, ssl
from http.server import HTTPServer, SimpleHTTPRequestHandler
folder = os.environ["INTERNET"]
server = HTTPServer(("5.45.101.11", 443), SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server-key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
os.chdir(f"{folder}/web")
server.serve_forever()
"""
"""The web server of the registries, whose clock the doctor compares."""

STEPS = r"""
kill "$clock"
KEY=$(mailcheck key issue alice | grep -o 'mck_[A-Za-z0-9]*' | head -n 1)
API=http://127.0.0.1:8080/api/v1
ADDRESS=$(curl -sf -H "X-API-Key: $KEY" "$API/inbox/address" | sed 's/.*"address":"//; s/".*//')

post() {
    printf 'Subject: %s\n\nHello\n' "$1" |
        curl -sf --crlf -T - smtp://127.0.0.1:25 --mail-from shop@example.com --mail-rcpt "$ADDRESS"
}
subjects() {
    curl -sf -H "X-API-Key: $KEY" "$API/inbox/messages" | grep -o '"subject":"[^"]*"' | tr '\n' ' '
}
logged() {
    journalctl --sync
    journalctl --identifier=twistd --output=cat "$@"
}
"""

DASHBOARD = r"""
sign_in() {
    local jar=/run/cookies page=http://127.0.0.1:8080/sign-in token
    rm -f "$jar"
    token=$(curl -sf -c "$jar" "$page" | sed -n 's/.*name="form-token" value="\([^"]*\)".*/\1/p')
    curl -s -b "$jar" -c "$jar" -o /dev/null --data-urlencode "form-token=${token%%$'\n'*}" \
        --data-urlencode name=alice --data-urlencode "password=$1" "$page"
    curl -sL -b "$jar" http://127.0.0.1:8080/inbox
}
sign_in a-password-of-alice > /run/inbox
grep -q "${ADDRESS%@*}" /run/inbox
echo "dashboard: $(grep -o first /run/inbox | head -n 1)"
"""
"""Sign in, and find the mail in the inbox."""

SCORED = r"""
field() { grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | sed 's/.*:"//; s/"$//'; }
made=$(curl -sf -X POST -H "X-API-Key: $KEY" "$API/test/generate")
(ADDRESS=$(field email <<< "$made"); post scored)
curl -sf -H "X-API-Key: $KEY" "$API/test/$(field testId <<< "$made")/wait?timeout=60" > /run/report
echo "scored: $(grep -o '"score":[0-9.]*' /run/report | head -n 1 | grep -c :)"
echo "undetermined: $(grep -o '"undetermined":[^]]*]' /run/report | head -n 1)"
"""
"""Score a mail, also with the content filter that the daemon starts."""

GUESSES = r"""
echo "warnings: $(logged --priority=warning | tr '\n' ' ')"
sign_in a-guess > /dev/null
curl -s -o /dev/null -H 'X-API-Key: mck_aGuess' "$API/inbox"
! printf 'Subject: x\n\nx\n' | curl -s -T - smtp://127.0.0.1:25 --mail-from shop@example.com \
    --mail-rcpt a-guess@inbox.example.com
echo "urgent: $(logged --priority=warning | tr '\n' ' ')"
filter=/opt/mailcheck/share/mailcheck/etc/fail2ban/filter.conf
echo "guessers: $(fail2ban-regex --out ip --journalmatch SYSLOG_IDENTIFIER=twistd systemd-journal \
    $filter | tr '\n' ' ')"
"""
"""Guess a password, a key and an address, and list the guessers."""

CERTIFICATE = r"""
certify() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
        -subj "/CN=$1" -keyout privkey.pem -out fullchain.pem 2> /dev/null
}
shown() {
    openssl s_client -connect 127.0.0.1:25 -starttls smtp < /dev/null 2> /dev/null |
        sed -n 's/^subject=.*CN = //p'
}
certify first.example
"""

RELOADED = r"""
cat >> /etc/mailcheck/mailcheck.toml <<'END'
[smtp]
certificate = "/etc/mailcheck/tls/certificate.pem"
private_key = "/etc/mailcheck/tls/key.pem"
END
systemctl restart mailcheck.service
echo "shown: $(shown)"
certify second.example
"""


RENEWED = r"""
certify third.example
mkdir -p /etc/letsencrypt/renewal-hooks/deploy
"""

RENEW = r"""
RENEWED_LINEAGE=$PWD /etc/letsencrypt/renewal-hooks/deploy/mailcheck
"""

PROXIED = r"""
proxied() {
    curl -sfk --resolve mailcheck.your.domain:443:127.0.0.1 "https://mailcheck.your.domain$1"
}
for _ in $(seq 100); do proxied /readyz > /dev/null && break; sleep 0.1; done
echo "proxied: $(proxied /readyz | grep -o '"ready"')"
NAMED='https://mailcheck.your.domain/api/v1'
echo "named: $(proxied /api/v1/openapi.json | grep -o "$NAMED" | head -n 1)"
"""

AT_ONCE = r"""
sed -i 's/ for: .*/ for: 200ms/' /etc/prometheus/alerts.yml
"""
"""Fire alerts after 200 ms instead of minutes."""


def until_shown(name: str) -> str:
    """Return commands that wait for a certificate on port 25 and print its name."""
    looked = f'[ "$(shown)" = {name} ] && break; sleep 0.1'
    return f'for _ in $(seq 100); do {looked}; done\necho "shown: $(shown)"'


def quickly(block: str) -> str:
    """Return the configuration with five evaluations of Prometheus per second."""
    return block.replace("15s", "200ms").replace("sleep 5", "sleep 0.2")


SERVERS = r"""
apt-get() {
    mkdir -p /run/postgresql /run/database
    chown postgres /run/postgresql /run/database
    runuser -u postgres -- "$POSTGRESQL/initdb" --auth-local=peer --auth-host=scram-sha-256 \
        --no-sync --pgdata=/run/database/data > /dev/null
    runuser -u postgres -- "$POSTGRESQL/pg_ctl" --pgdata=/run/database/data --wait \
        --options="-k /run/postgresql" --log=/run/database/log start > /dev/null
    redis-server --daemonize yes --dir /run --save "" > /dev/null
}
cd "$WORK/home"
"""

BALANCED = r"""
echo
until curl -s http://127.0.0.1/readyz | grep -q '"ready"'; do sleep 0.1; done
API=http://127.0.0.1/api/v1
"""


def blocks(page: str) -> list[str]:
    """Return the blocks of a page that this file runs, from top to bottom."""
    found = list(read_blocks(ROOT / "docs" / page))
    return [block.text for block in found if block.runner == RUNNER]


def installation() -> str:
    """Return the commands that install and start mailcheck with an account."""
    install, settings, start = blocks("how-to/install.md")
    configure = in_file(settings, ">>")
    steps = (NAMESPACE, DEPENDENCIES, install, configure, 'cd "$WORK/home"', INTERNET)
    return "\n".join((*steps, start, STEPS))


def in_file(settings: str, how: str) -> str:
    """Return a command that writes a page's settings into the configuration."""
    return f"cat {how} /etc/mailcheck/mailcheck.toml <<'END'\n{settings}END\n"


def script() -> str:
    """Return the commands of the pages, with commands between them that print their effects."""
    backup, upgrade = blocks("how-to/back-up-and-upgrade.md")
    certificate, reload = blocks("how-to/operate-a-daemon.md")
    (resolver,) = blocks("how-to/tune-a-daemon.md")
    proxy, renewal = blocks("how-to/set-up-a-proxy.md")
    observe, alert = map(quickly, blocks("how-to/set-up-alerts.md"))
    rules, restart = observe.split("promtool check")
    save, stop_and_restore = backup.split("\n\n")
    return "\n".join(
        (
            *(installation(), "post first", 'echo "mail: $(subjects)"', DASHBOARD, SCORED, GUESSES),
            *(CERTIFICATE, certificate, RELOADED, certificate, reload),
            until_shown("second.example"),
            *(resolver, proxy, PROXIED, RENEWED, renewal, RENEW, until_shown("third.example")),
            *(rules, AT_ONCE, "promtool check" + restart, alert),
            *(save, "post second", 'echo "mail: $(subjects)"', stop_and_restore),
            *('echo "mail: $(subjects)"', 'cd "$WORK/home"', upgrade, 'echo "mail: $(subjects)"'),
            "post third",
            'echo "mail: $(subjects)"',
            'echo "cache: $(logged | grep -c "plugin cache")"',
            "systemctl stop mailcheck.service",
        )
    )


def script_of_three() -> str:
    """Return the commands of docs/how-to/run-several-daemons.md that follow."""
    prepare, settings, start, upgrade = blocks("how-to/run-several-daemons.md")
    seen = 'echo "mail: $(subjects)"'
    return "\n".join(
        (
            *(installation(), "post first", SERVERS, prepare, in_file(settings, ">"), start),
            *(BALANCED, seen, "post second", seen, "systemctl kill --signal=KILL mailcheck@2"),
            # The killed daemon refuses connections, and HAProxy uses the others.
            *("post third", seen, "systemctl enable --now mailcheck@2"),
            *('cd "$WORK/home"', upgrade, seen),
            "kill $(cat /run/mailcheck@?.pid) $(cat /run/haproxy.pid)",
        )
    )


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the sources."""
    folder = tmp_path_factory.mktemp("debian")
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "dropin.cache")
        shutil.copytree(ROOT / name, folder / "sources" / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, folder / "sources" / name)
    command = ["-m", "pip", "wheel", "--quiet", "--no-deps"]
    into = [f"--wheel-dir={folder / 'wheels'}", str(folder / "sources")]
    subprocess.run([sys.executable, *command, *into], check=True, capture_output=True)
    return folder / "wheels"


@pytest.fixture(scope="module")
def environment(wheels: Path) -> Path:
    """An environment of Debian's Python with all dependencies of mailcheck."""
    said = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
    found = subprocess.run([PYTHON, "-c", said], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"{PYTHON} with venv is needed")
    if found.stdout.strip() == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.prefix)
    environment = wheels.parent / "environment"
    python = str(environment / "bin" / "python")
    for command in (
        [PYTHON, "-m", "venv", str(environment)],
        [python, "-m", "pip", "install", "--quiet", *map(str, wheels.iterdir())],
        [python, "-m", "pip", "uninstall", "--quiet", "--yes", "mailcheck-daemon"],
    ):
        subprocess.run(command, check=True, capture_output=True)
    return environment


@pytest.fixture(scope="module")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for a name server of root, blocklists and hosts, and for a web server."""
    folder = tmp_path_factory.mktemp("internet")
    zone = MemoryZone({"data.iana.org": {"A": ["5.45.101.11"]}})
    for host in REFERENCE_HOSTS:
        zone.publish(host, "A", "5.45.101.10")
    publish_list_test_entries(zone)
    write_name_server(zone, folder, "127.0.0.1", 53)
    authority = Authority()
    authority.write_to(folder / "authority.pem")
    authority.issue("data.iana.org").write_to(folder)
    (folder / "web" / "rdap").mkdir(parents=True)
    (folder / "web" / "rdap" / "dns.json").write_text("{}")
    return folder


def require_a_namespace() -> None:
    """Skip the test if a namespace cannot be created."""
    unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "true"]
    systemd = ("systemd-socket-activate", "systemd-sysusers")
    servers = (
        "nginx",
        "prometheus",
        "promtool",
        "redis-server",
        "haproxy",
        "nsd",
        "fail2ban-regex",
    )
    for needed in ("unshare", "ip", *systemd, "openssl", *servers):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is missing")
    if os.geteuid() != 0 or subprocess.run(unshare, check=False).returncode:
        pytest.skip("root with the right to create namespaces is needed")


def walk(wheels: Path, environment: Path, internet: Path, script: str) -> str:
    """Run a script as root of a bare Debian, and return its output."""
    require_a_namespace()
    work = Path(tempfile.mkdtemp(dir=wheels.parent))
    programs = work / "bin"
    programs.mkdir()
    (work / "layers").mkdir()
    servers = ROOT / "tests" / "servers"
    shutil.copy(servers / "debian-systemctl", programs / "systemctl")
    for name in ("journaled", "unit_sandbox.py"):
        shutil.copy(servers / name, programs)
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "bash", "-c", script],
        env={
            "PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C.UTF-8",
            "HOME": str(work),
            "WORK": str(work),
            "TWISTD": str(environment / "bin" / "twistd"),
            "DEPENDENCIES": str(next(environment.glob("lib/python3*/site-packages"))),
            "POSTGRESQL": str(Path(program("initdb")).parent),
            "INTERNET": str(internet),
            "CLOCK": CLOCK,
            "SMALL": "MAILCHECK_STORAGE_MIN_FREE=0",
            "MAILCHECK_STORAGE_MIN_FREE": "0",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "WHEELS": str(wheels),
        },
        input="a-password-of-alice\n",
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def subjects_of(printed: str) -> list[list[str]]:
    """Return the subjects in the inbox, for each time that they were printed."""
    return [re.findall(r':"(\w+)"', line) for line in re.findall(r"^mail: (.*)$", printed, re.M)]


def test_the_pages_lead_from_debian_to_an_upgrade(
    wheels: Path, environment: Path, internet: Path
) -> None:
    """The doctor has no findings. Mail arrives, is shown on the dashboard, and is scored.

    The content filter scores it too. fail2ban finds guessers, a reload shows the new certificate,
    nginx forwards to the daemon, an alert fires while it is stopped, and a restore brings back the
    mail of the backup. The mail is still there after an upgrade, and new mail arrives. All of this
    runs under the filters of the unit, and no start logs a warning about the plugin cache.
    """
    printed = walk(wheels, environment, internet, script())
    assert "\ndashboard: first\n" in printed
    assert "\nscored: 1\n" in printed
    (undetermined,) = re.findall("^undetermined: (.*)$", printed, re.M)
    assert "spamassassin" not in undetermined, printed
    assert re.search("^warnings: there is no account yet, and no inbox: [^:]*$", printed, re.M), (
        printed
    )
    assert re.search("^urgent: .* failed sign-in: .* failed key: ", printed, re.M), printed
    assert "\nguessers: 127.0.0.1 127.0.0.1 127.0.0.1 \n" in printed
    assert "\ncache: 0\n" in printed
    shown = ["first.example", "second.example", "third.example"]
    assert re.findall(r"^shown: (.*)$", printed, re.M) == shown
    assert '\nproxied: "ready"\n' in printed
    assert "\nnamed: https://mailcheck.your.domain/api/v1\n" in printed
    assert re.search(r'alertname="MailcheckDown".* => 1 ', printed), printed
    assert subjects_of(printed) == [
        *(["first"], ["second", "first"], ["first"], ["first"]),
        ["third", "first"],
    ]


def test_the_page_leads_to_three_daemons(wheels: Path, environment: Path, internet: Path) -> None:
    """The first daemon's mail is in PostgreSQL, and new mail arrives on port 25 through HAProxy,
    also while a daemon is down or is being upgraded.
    """
    assert subjects_of(walk(wheels, environment, internet, script_of_three())) == [
        *(["first"], ["second", "first"], ["third", "second", "first"]),
        ["third", "second", "first"],
    ]
