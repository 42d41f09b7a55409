"""A Debian with systemd as its first process, in namespaces of this machine.

The machine reads the files of a folder, and its changes are discarded. Its network is a loopback
interface. It cannot load modules of the kernel, or set the clock or the variables of the kernel.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BOOT_DEADLINE = 60.0  # seconds
RUN_DEADLINE = 300.0  # seconds, for one script
POLL = 0.1  # seconds
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "teletype",
}
STATES = {"running", "degraded"}
"""States in which systemd has started everything."""

MACHINE = r"""
set -eu
mkdir -p "$LAYERS"
mount -t tmpfs tmpfs "$LAYERS"
mkdir "$LAYERS/groups"
mount -t cgroup2 cgroup2 "$LAYERS/groups"
group=$LAYERS/groups/debian-$$
mkdir "$group"
echo $$ > "$group/cgroup.procs"
setpriv --pdeathsig=KILL unshare --mount --net --pid --uts --ipc --cgroup --fork --kill-child \
    bash -c "$BOOT" || true
echo $$ > "$LAYERS/groups/cgroup.procs"
find "$group" -depth -type d -delete
"""
"""Boot with a control group of its own, and delete the group afterwards."""

BOOT = r"""
set -eu
mkdir "$LAYERS/upper" "$LAYERS/work" "$LAYERS/root"
options="lowerdir=$FILES,upperdir=$LAYERS/upper,workdir=$LAYERS/work"
mount -t overlay overlay -o "$options" "$LAYERS/root"
mkdir "$LAYERS/root/packages"
mount --bind "$PACKAGES" "$LAYERS/root/packages"
cd "$LAYERS/root"
mount -t proc proc proc
mount --bind -o ro proc/sys proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm old
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up
pivot_root . old
umount -l /old
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --bounding-set=-sys_module,-sys_time,-sys_boot,-sys_rawio,-syslog \
    /lib/systemd/systemd
"""


class BootedDebian:
    """A running machine. ``first`` is the process ID of its systemd, as seen from outside."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._enter = ("nsenter", f"--target={first}", "--all")

    @contextmanager
    def beside(self, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program of the outside in the machine's network."""
        enter = ("nsenter", f"--target={self._first}", "--net")
        with subprocess.Popen([*enter, *command]) as program:
            try:
                yield program
            finally:
                program.terminate()

    def start(self, script: str, input_text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a script as root. Its standard error becomes a part of its output."""
        return subprocess.run(
            [*self._enter, "bash", "-euc", script],
            env=ENVIRONMENT,
            input=input_text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_DEADLINE,
            check=False,
        )

    def run(self, script: str, input_text: str = "") -> str:
        """Return the output of a script of root, which must succeed."""
        done = self.start(script, input_text)
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout

    def answer(self, script: str, *dialog: tuple[str, str]) -> str:
        """Return what a script of root prints on a terminal, where each question is answered.

        ``dialog`` has the questions in their order, each with its answer.
        """
        with subprocess.Popen(
            [*self._enter, "script", "--quiet", "--return", "--command", script, "/dev/null"],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            printed = ""
            for question, answer in dialog:
                start = len(printed)
                while question not in printed[start:]:
                    character = process.stdout.read(1)
                    assert character, f"{question} is not asked: {printed}"
                    printed += character
                process.stdin.write(f"{answer}\n")
                process.stdin.flush()
            printed += process.stdout.read()
        assert process.returncode == 0, f"{script}\n{printed}"
        return printed


@contextmanager
def booted_debian(files: Path, packages: Path, layers: Path) -> Iterator[BootedDebian]:
    """Boot a machine with the files of a folder, and with packages in /packages."""
    paths = {"FILES": str(files), "PACKAGES": str(packages), "LAYERS": str(layers)}
    outer = subprocess.Popen(
        ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "bash", "-c", MACHINE],
        env={**os.environ, **paths, "BOOT": BOOT},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield _until_started(outer)
    finally:
        if first := _first_process(outer.pid):
            os.kill(first, signal.SIGKILL)  # and with it all others of the machine
        else:
            os.killpg(outer.pid, signal.SIGKILL)
        outer.wait()


def _until_started(outer: subprocess.Popen[bytes]) -> BootedDebian:
    """Return the machine when its systemd has started everything."""
    end = time.monotonic() + BOOT_DEADLINE
    while time.monotonic() < end and outer.poll() is None:
        if first := _first_process(outer.pid):
            machine = BootedDebian(first)
            if machine.start("systemctl is-system-running").stdout.strip() in STATES:
                return machine
        time.sleep(POLL)
    raise AssertionError(f"the machine does not start: {outer.poll()}")


def _first_process(ancestor: int) -> int | None:
    """Return the descendant that is process 1 of its namespace, or `None` if there is none."""
    process = ancestor
    try:
        while children := Path(f"/proc/{process}/task/{process}/children").read_text().split():
            process = int(children[0])
            status = Path(f"/proc/{process}/status").read_text()
            if re.search(r"^NSpid:\s.*\s1$", status, re.MULTILINE):
                return process
    except FileNotFoundError:  # a process has ended meanwhile
        pass
    return None
