"""Run a command under the restrictions of a systemd unit.

    python3 tests/servers/unit_sandbox.py systemd/mailcheck.service COMMAND...

It reads the unit, applies its restrictions with libseccomp and prctl(2) as systemd does, and then
executes the command. It supports SystemCallFilter with its error number, its architectures and its
sets (as ``systemd-analyze syscall-filter`` lists them), RestrictAddressFamilies,
RestrictNamespaces, RestrictRealtime, RestrictSUIDSGID, LockPersonality, MemoryDenyWriteExecute,
NoNewPrivileges, CapabilityBoundingSet, LimitNOFILE and UMask. It uses the standard library only, so
that any Python of the machine can run it. Options that need mounts (ProtectSystem and others) are
not applied.
"""

import ctypes
import errno
import os
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ALLOW = 0x7FFF0000
NOT_EQUAL, EQUAL, GREATER, MASKED_EQUAL = 1, 4, 6, 7  # scmp_compare

NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
REALTIME = (1, 2, 6)  # SCHED_FIFO, SCHED_RR, SCHED_DEADLINE
SET_ID = (0o4000, 0o2000)
WRITE_AND_EXECUTE, EXECUTE = 0x6, 0x4
SHARED_EXECUTE = 0o100000  # SHM_EXEC
THIS_PERSONALITY = 0xFFFFFFFF
HIGHEST_FAMILY = 45
SET_NO_NEW_PRIVILEGES, DROP_FROM_BOUNDING_SET = 38, 24  # PR_...


class Comparison(ctypes.Structure):
    """struct scmp_arg_cmp of libseccomp: the argument by which a rule selects calls."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


class Filter:
    """A filter of system calls; ``default`` is the action for a call without a rule."""

    _library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    _library.seccomp_init.restype = ctypes.c_void_p

    def __init__(self, default: int) -> None:
        self._filter = ctypes.c_void_p(self._library.seccomp_init(ctypes.c_uint32(default)))
        self._default = default

    def add(self, action: int, call: str, *comparisons: Comparison) -> None:
        """Add a rule; ignore a call that this machine does not have."""
        number = self._library.seccomp_syscall_resolve_name(call.encode())
        if number < 0 or action == self._default:
            return
        array = (Comparison * len(comparisons))(*comparisons)
        _succeed(
            f"the rule for {call}",
            self._library.seccomp_rule_add_array(
                self._filter, ctypes.c_uint32(action), number, len(comparisons), array
            ),
        )

    def load(self) -> None:
        """Apply the filter permanently."""
        _succeed("seccomp_load", self._library.seccomp_load(self._filter))


def sandbox(unit: dict[str, list[str]]) -> None:
    """Apply a unit to this process. The system call filter is last, since it forbids the others."""
    if limit := _last(unit, "LimitNOFILE"):
        highest = min(int(limit), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, highest), highest))
    os.umask(int(_last(unit, "UMask") or "022", 8))
    if _last(unit, "CapabilityBoundingSet") == "" and os.geteuid() == 0:
        for capability in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
            _prctl(DROP_FROM_BOUNDING_SET, capability)
    _prctl(SET_NO_NEW_PRIVILEGES, 1)
    restrictions = Filter(ALLOW)
    for code, call, comparisons in _restrictions(unit):
        restrictions.add(_refuse(code), call, *comparisons)
    calls = _filter_of_calls(unit) if "SystemCallFilter" in unit else None
    restrictions.load()
    if calls is not None:
        calls.load()


def read_unit(path: Path) -> dict[str, list[str]]:
    """Parse a unit; an option may occur more than once."""
    found: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", path.read_text(), re.M):
        found.setdefault(name, []).append(value)
    return found


Rule = tuple[int, str, list[Comparison]]
"""The error number of a rejected call, its name, and the conditions on its arguments."""


def _restrictions(unit: dict[str, list[str]]) -> Iterator[Rule]:
    """Yield the rules of single options."""
    if "RestrictAddressFamilies" in unit:
        yield from _other_families(" ".join(unit["RestrictAddressFamilies"]).split())
    for option, rules in RULES.items():
        if _last(unit, option) == "yes":
            yield from rules


def _other_families(allowed: list[str]) -> Iterator[Rule]:
    families = {int(getattr(socket, name)) for name in allowed}
    for family in set(range(HIGHEST_FAMILY + 1)) - families:
        yield errno.EAFNOSUPPORT, "socket", [Comparison(0, EQUAL, family)]
    yield errno.EAFNOSUPPORT, "socket", [Comparison(0, GREATER, HIGHEST_FAMILY)]


def _with_bits(call: str, argument: int, *masks: int) -> list[Rule]:
    """Return rules that reject a call with any of these bits in an argument."""
    return [(errno.EPERM, call, [Comparison(argument, MASKED_EQUAL, one, one)]) for one in masks]


RULES: dict[str, list[Rule]] = {
    "RestrictNamespaces": [
        *_with_bits("unshare", 0, *NAMESPACES),
        *_with_bits("clone", 0, *NAMESPACES),
        (errno.EPERM, "setns", []),
        (errno.ENOSYS, "clone3", []),
    ],
    "RestrictRealtime": [
        (errno.EPERM, "sched_setscheduler", [Comparison(1, EQUAL, one)]) for one in REALTIME
    ],
    "RestrictSUIDSGID": [
        *_with_bits("chmod", 1, *SET_ID),
        *_with_bits("fchmod", 1, *SET_ID),
        *_with_bits("fchmodat", 2, *SET_ID),
        *_with_bits("mkdir", 1, *SET_ID),
        *_with_bits("mkdirat", 2, *SET_ID),
    ],
    "LockPersonality": [(errno.EPERM, "personality", [Comparison(0, NOT_EQUAL, THIS_PERSONALITY)])],
    "MemoryDenyWriteExecute": [
        *_with_bits("mmap", 2, WRITE_AND_EXECUTE),
        *_with_bits("mprotect", 2, EXECUTE),
        *_with_bits("pkey_mprotect", 2, EXECUTE),
        *_with_bits("shmat", 2, SHARED_EXECUTE),
    ],
}
"""The rules of each option with the value yes."""


def _filter_of_calls(unit: dict[str, list[str]]) -> Filter:
    """Build the filter of SystemCallFilter. Its first line must list the allowed calls."""
    if (architectures := unit.get("SystemCallArchitectures", ["native"])) != ["native"]:
        raise ValueError(f"SystemCallArchitectures={architectures} is not supported")
    sets = _sets()
    allowed = set(sets["@default"])
    if unit["SystemCallFilter"][0].startswith("~"):
        raise ValueError("the first SystemCallFilter must list the allowed calls")
    for line in unit["SystemCallFilter"]:
        named = {call for name in line.lstrip("~").split() for call in sets.get(name, {name})}
        allowed = allowed - named if line.startswith("~") else allowed | named
    refused = _refuse(getattr(errno, _last(unit, "SystemCallErrorNumber") or "EPERM"))
    # As with systemd, a call unknown to this version fails as on a kernel without it.
    calls = Filter(_refuse(errno.ENOSYS))
    for call in sets["@known"] | allowed:
        calls.add(ALLOW if call in allowed else refused, call)
    return calls


def _sets() -> dict[str, set[str]]:
    """Return systemd's sets of system calls, with nested sets expanded."""
    done = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager"],
        capture_output=True,
        text=True,
        check=True,
    )
    plain: dict[str, list[str]] = {}
    members: list[str] = []
    for line in done.stdout.splitlines():
        if line.startswith("@"):
            members = plain.setdefault(line.strip(), [])
        elif word := re.match(r" +([@\w-]+)$", line):
            members.append(word[1])

    def whole(name: str) -> set[str]:
        return {one for each in plain[name] for one in (whole(each) if each in plain else {each})}

    return {name: whole(name) for name in plain}


def _refuse(code: int) -> int:
    return 0x00050000 | code


def _last(unit: dict[str, list[str]], option: str) -> str | None:
    return unit[option][-1] if option in unit else None


def _prctl(option: int, value: int) -> None:
    _succeed("prctl", ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0))


def _succeed(what: str, result: int) -> None:
    if result:
        code = -result if result < -1 else ctypes.get_errno()
        raise OSError(code, f"{what} failed: {os.strerror(code)}")


if __name__ == "__main__":
    sandbox(read_unit(Path(sys.argv[1])))
    os.execvp(sys.argv[2], sys.argv[2:])
