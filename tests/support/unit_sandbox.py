"""Runs a program as a unit of deploy/ lets it run, as far as that can be had without systemd. Needs root.

``python unit_sandbox.py <unit>[:<drop-in>] <writable folder> <command …>``. Like systemd it drops all capabilities,
lets through the system calls and address families of the unit only, forbids new namespaces if the unit does, and makes
all files read-only but those in the folder and in /dev/shm. The program runs as the folder's owner. Private devices,
limits of memory and tasks, and what the unit hides are left out.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

ALLOW, FAIL = 0x7FFF0000, 0x00050000
EQUAL, GREATER, MASKED_EQUAL = 4, 6, 7
CLONE_NEWNS = 0x00020000
# mnt, cgroup, uts, ipc, user, pid, net
NAMESPACES = (CLONE_NEWNS, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, LAST_CAPABILITY = 38, 24, 40
libc = ctypes.CDLL(None, use_errno=True)
seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
seccomp.seccomp_init.restype = ctypes.c_void_p


class Comparison(ctypes.Structure):
    """struct scmp_arg_cmp"""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


class Filter:
    """A filter of system calls; several that are loaded hold together."""

    def __init__(self, otherwise: int) -> None:
        self._context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(otherwise)))

    def add(self, action: int, name: str, *comparison: int) -> None:
        """Without effect for system calls that this machine does not have."""
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number < 0:
            return
        given = (Comparison * 1)(Comparison(*comparison)) if comparison else None
        code = seccomp.seccomp_rule_add_array(
            self._context, ctypes.c_uint32(action), number, 1 if comparison else 0, given
        )
        assert code == 0, (name, code)

    def load(self) -> None:
        assert seccomp.seccomp_load(self._context) == 0


def known_calls(group: str) -> set[str]:
    """The system calls of a group of systemd's, with those of the groups in it."""
    text = subprocess.run(
        ["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True
    ).stdout
    words = re.findall(r"^ +(@?[\w-]+)$", text, re.M)
    return {call for word in words for call in (known_calls(word) if word.startswith("@") else {word})}


def mount_read_only(writable: str) -> None:
    assert libc.unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
    for command in (
        ["--make-rprivate", "/"],
        ["--bind", writable, writable],
        ["-t", "tmpfs", "tmpfs", "/dev/shm"],
    ):
        subprocess.run(["mount", *command], check=True)
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for place in mounts:
        if place != writable and not place.startswith(("/dev", "/proc", "/sys")):
            subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)


def main() -> None:
    unit, writable, *command = sys.argv[1:]
    text = "\n".join(Path(path).read_text() for path in unit.split(":"))
    found = re.findall(r"^(\w+)=(.*)$", text, re.M)
    lines = dict(found)
    allowed: set[str] = set()
    for value in (value for name, value in found if name == "SystemCallFilter"):
        for word in value.removeprefix("~").split():
            calls_of_word = known_calls(word) if word.startswith("@") else {word}
            allowed = allowed - calls_of_word if value.startswith("~") else allowed | calls_of_word
    mount_read_only(writable)
    assert (lines["CapabilityBoundingSet"], lines["NoNewPrivileges"]) == ("", "yes")
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    owner = Path(writable).stat()
    os.setgroups([])
    os.setgid(owner.st_gid)
    os.setuid(owner.st_uid)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0

    values = [value for name, value in found if name == "RestrictAddressFamilies"]
    families = {getattr(socket, name) for value in values for name in value.split()}
    others = Filter(ALLOW)
    for family in set(range(64)) - families:
        others.add(FAIL | errno.EAFNOSUPPORT, "socket", 0, EQUAL, family)
    others.add(FAIL | errno.EAFNOSUPPORT, "socket", 0, GREATER, 63)
    for namespace in NAMESPACES if lines["RestrictNamespaces"] == "yes" else ():
        others.add(FAIL | errno.EPERM, "unshare", 0, MASKED_EQUAL, namespace, namespace)
        others.add(FAIL | errno.EPERM, "clone", 0, MASKED_EQUAL, namespace, namespace)
    others.add(FAIL | errno.EPERM, "setns")
    others.add(FAIL | errno.ENOSYS, "clone3")
    others.load()
    calls = Filter(FAIL | getattr(errno, lines["SystemCallErrorNumber"]))
    for call in allowed:
        calls.add(ALLOW, call)
    calls.load()
    environment = dict(value.split("=", 1) for name, value in found if name == "Environment")
    os.execvpe(command[0], command, os.environ | environment)


if __name__ == "__main__":
    main()
