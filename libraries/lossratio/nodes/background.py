"""Programs that outlive the command that starts them on a node: servers of a DUT, and of a generator.

The node's shell does everything. A DUT needs no Python, and the command that stops a program must work when only the
node's shell is left to run it (see `lossratio.nodes.node.Will`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

_STOP_SECONDS = 10.0

# The time of its start distinguishes the program from any later process with the same id. A process that has ended but
# that its parent has not waited for (Z) counts as ended.
LIVES = """
pid= start=
read -r pid start < "$1pid" 2>/dev/null
lives() {
    [ -n "$start" ] && [ -r "/proc/$pid/stat" ] && set -- $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) &&
        [ "$1" != Z ] && [ "${20}" = "$start" ]
}
"""
"""Shell code: ``$1`` is `BackgroundProgram.files`; ``lives`` succeeds if the program runs, and ``$pid`` is its id."""

# The inner shell becomes the program, so its id and the time of its start are the program's. Both are as /proc shows
# them: the program may be in its own PID namespace. The outer shell stays until the program has ended.
_START = """
files=$1 directory=$2; shift 2
cd -- "$directory" && rm -f -- "${files}pid" "${files}status" || exit 1
{
    setsid sh -c '
        files=$1; shift
        read -r stat < /proc/self/stat
        start=$(set -- ${stat##*) }; echo "${20}")
        echo "${stat%% *} $start" > "${files}pid" && exec "$@"
    ' start "$files" "$@"
    echo $? > "${files}status"
} > "${files}log" 2>&1 < /dev/null &
tries=0
while [ "$tries" -lt 100 ] && [ ! -e "${files}status" ]; do
    [ ! -s "${files}pid" ] || exit 0
    tries=$((tries + 1))
    sleep 0.05
done
[ ! -s "${files}pid" ] || exit 0
if ! echo > "${files}test"; then
    why=": cannot write files as ${files}pid, is the disk full?"
fi 2>/dev/null
rm -f -- "${files}test"
echo "it did not start$why" >&2
exit 1
"""
_IS_ALIVE = f"{LIVES} lives"
# The outer shell of the start writes the status when the program has ended, and the directory of the files must not be
# removed before then. Five seconds are enough, unless that shell was killed.
_STOP = f"""{LIVES}
[ -n "$start" ] || exit 0
if lives; then
    kill "-$2" "$pid"
    tenths=0
    while lives; do
        [ "$tenths" -lt "$3" ] || kill -KILL "$pid"
        [ "$tenths" -lt "$((2 * $3))" ] || {{ echo "process $pid does not end" >&2; exit 1; }}
        tenths=$((tenths + 1))
        sleep 0.1
    done
fi
tries=0
while [ ! -s "$1status" ] && [ "$tries" -lt 250 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
"""


# On a node without chrt, or for a user without the right, it runs as an ordinary program.
_BEFORE_ORDINARY = """
priority=$1; shift
if chrt -r "$priority" true 2>/dev/null; then set -- chrt -r "$priority" "$@"; fi
exec "$@"
"""


def before_ordinary(priority: int, command: Sequence[str]) -> tuple[str, ...]:
    """The command that runs a program with priority over all ordinary ones (SCHED_RR), if the node's kernel grants it.

    It is for programs that sleep while they have nothing to do: a polling program would take a CPU from the system.
    """
    return ("sh", "-c", _BEFORE_ORDINARY, "run", str(priority), *command)


@dataclass(frozen=True)
class BackgroundProgram:
    """A program on a node, in its own session, and the commands that start, check and stop it there."""

    files: str
    """Beginning of the paths of its files: ``pid`` (its id and the time of its start), ``log`` (its output) and
    ``status`` (its exit status as a shell reports it, as soon as it has ended)."""
    directory: str
    """Its working directory."""
    command: tuple[str, ...]
    """The program and its arguments."""

    @property
    def start(self) -> tuple[str, ...]:
        """The command that starts the program. It ends as soon as the id is known, or fails if nothing starts."""
        return ("sh", "-c", _START, "start", self.files, self.directory, *self.command)

    @property
    def is_alive(self) -> tuple[str, ...]:
        """The command that succeeds if the program runs."""
        return ("sh", "-c", _IS_ALIVE, "alive", self.files)

    def stop(self, signal: str = "TERM", seconds: float = _STOP_SECONDS) -> tuple[str, ...]:
        """The command that stops the program. It succeeds if the program does not run, and fails if it does not end.

        The signal asks it to end. After this many seconds, it is killed, and after the same time again, it must be
        gone.
        """
        return ("sh", "-c", _STOP, "stop", self.files, signal, str(round(10 * seconds)))

    @property
    def pid(self) -> str:
        """Path of the file with the program's id, and the time of its start."""
        return f"{self.files}pid"

    @property
    def log(self) -> str:
        """Path of the file with the program's output."""
        return f"{self.files}log"

    @property
    def status(self) -> str:
        """Path of the file with its exit status."""
        return f"{self.files}status"
