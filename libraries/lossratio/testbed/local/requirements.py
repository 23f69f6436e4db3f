"""The requirements of a local testbed on this machine, and the remedies for what is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from lossratio.errors import TopologyError
from lossratio.nodes.holder import Tools

_PATH = os.pathsep.join(
    ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin")
)
_SFTP_SERVERS = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
)
_PACKAGES = {
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}
_CAPABILITIES = {
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_NET_ADMIN": 12,
    "CAP_SYS_CHROOT": 18,
    "CAP_SYS_ADMIN": 21,
}
_TRIAL = """
mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /run || exit 1
"$1" link add name a type veth peer name b || exit 2
"""
_NO_VETH = 2


class TestbedUnavailableError(TopologyError):
    """A local testbed cannot be built on this machine. The message gives the reason and the remedy."""

    __test__ = False


def why_unavailable() -> str | None:
    """Why no local testbed can be built here, in one line, with the remedy; None: one can be built.

    This takes a few hundredths of a second: it tries to make namespaces, because the kernel's settings alone are no
    proof.
    """
    if not sys.platform.startswith("linux"):
        return "a local testbed needs Linux, and this is " + sys.platform
    missing = [name for name in _PACKAGES if _find(name) is None]
    if missing:
        packages = " ".join(sorted({_PACKAGES[name] for name in missing}))
        return f"not installed: {', '.join(missing)}; on Debian: apt install {packages}"
    # Imported here because the module exists only on systems with a passwd file.
    import pwd

    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return f"user id {os.geteuid()} has no account (no line in /etc/passwd), and sshd refuses such users"
    return _why_no_namespaces()


def find_tools() -> Tools:
    """Finds the programs that build a testbed.

    Raises:
        TestbedUnavailableError: If one is missing.
    """
    sshd, ssh_keygen, ip, nsenter = (
        _find(name) for name in ("sshd", "ssh-keygen", "ip", "nsenter")
    )
    if sshd is None or ssh_keygen is None or ip is None or nsenter is None:
        raise TestbedUnavailableError(f"No local testbed can be built: {why_unavailable()}.")
    sftp_server = next((path for path in _SFTP_SERVERS if os.access(path, os.X_OK)), None)
    return Tools(sshd, ssh_keygen, ip, nsenter, sftp_server)


def is_privileged() -> bool:
    """Whether this process can build namespaces, and sshd can change its user, without a new user namespace."""
    if os.geteuid() != 0:
        return False
    status = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    effective = int(status["CapEff"], 16)
    may_change_groups = Path("/proc/self/setgroups").read_text().strip() == "allow"
    return may_change_groups and all(effective >> bit & 1 for bit in _CAPABILITIES.values())


def _find(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=_PATH)


def _why_no_namespaces() -> str | None:
    user = [] if is_privileged() else ["--user", "--map-root-user"]
    namespaces = [*user, "--mount", "--net", "--ipc", "--pid", "--fork"]
    command = [str(_find("unshare")), *namespaces, "sh", "-c", _TRIAL, "sh", str(_find("ip"))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    message = " ".join(done.stderr.split())
    if done.returncode == _NO_VETH:
        return f"the kernel cannot create veth interfaces ({message}); try: sudo modprobe veth"
    return f"{_forbidden_by()} ({message})"


def _forbidden_by() -> str:
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return (
            "user namespaces are forbidden by the sysctl kernel.unprivileged_userns_clone; "
            "allow them: sudo sysctl kernel.unprivileged_userns_clone=1"
        )
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1" and os.geteuid() != 0:
        return (
            "user namespaces are restricted by AppArmor; "
            "allow them: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        )

    for kind in ("user", "net", "mnt", "pid", "ipc"):
        if _setting(f"user/max_{kind}_namespaces") == "0":
            setting = f"user.max_{kind}_namespaces"
            return f"{kind} namespaces are forbidden by the sysctl {setting}; allow them: sudo sysctl {setting}=1000"

    if any(Path(path).exists() for path in ("/.dockerenv", "/run/.containerenv")):
        return "this container may not make namespaces; start it with --privileged, or run outside of it"
    return "the kernel or a security policy forbids namespaces; try it as root"


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None
