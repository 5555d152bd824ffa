"""A guard process between a recorder and a command that it starts: `python -SPs guard.py LIFELINE GROUP COMMAND...`.

The guard ends the command and all of its descendants in two cases: the recorder closes its end of the pipe LIFELINE (on
purpose, or because it died), or the command has ended by itself. The guard is a subreaper: Linux makes orphaned descendants
(`setsid`, a double fork) its children, so that it finds them too. A byte from the pipe is the number of a signal to send to
the command. GROUP is `own` if the command gets its own process group, and `same` if it shares the recorder's, with the
terminal's signals and input.

The command is started with posix_spawn and not with fork, because a tool such as Nsight Systems may have started threads in this
process, and a lock that one of them holds stays locked after a fork. What has to be set in the new process is set by a second
call of this file, `guard.py GUARD COMMAND...`, which then becomes the command; GUARD is the guard's process.

Limit: if the guard itself is killed with signal 9, the command dies with it, but the command's descendants do not.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Seconds for a terminal's signal, which the recorder already has, to reach this process.
_SAME_SIGNAL_S = 0.1
#: Seconds after which killing descendants is given up; a process may fork faster than it can be killed.
_KILL_S = 10.0


def main(lifeline: int, own_group: bool, command: list[str]) -> None:
    """Run the command, and end with its exit code or by its signal."""
    be_subreaper()
    woken, wake = wake_on_signals()
    received = dict.fromkeys(_SIGNALS, 0)

    def note(number: int, _: object) -> None:
        received[signal.Signals(number)] += 1

    for number in _SIGNALS:  # set handlers; the command does not inherit them
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, note)
    os.set_inheritable(lifeline, False)
    words = [sys.executable, "-SPs", __file__, str(os.getpid()), *command]
    if own_group:
        child = os.posix_spawn(words[0], words, os.environ, setpgroup=0)
    else:
        child = os.posix_spawn(words[0], words, os.environ)
    keep_open(lifeline, woken, wake)
    status = _watch(child, own_group, lifeline, woken, received)
    _end_as(_kill_all(child, own_group) if status is None else status, child, own_group)


def be_subreaper() -> None:
    """Become the parent of descendants that lose theirs."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def wake_on_signals() -> tuple[int, int]:
    """Make a pipe that a signal, or the end of a child, writes to. Returns its ends."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken, wake


def die_with(guard: int) -> None:
    """Let this process die when its guard does."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:  # the guard died before the line above
        os._exit(1)


def watch_over(child: int, lifeline: int, woken: int) -> int:
    """Wait until a child with a group of its own ends, or the recorder closes the pipe; then kill what is left. Returns
    the child's exit code; negative for a signal."""
    status = _watch(child, True, lifeline, woken, {})
    killed = _kill_all(child, True)
    return os.waitstatus_to_exitcode(killed if status is None else status)


def become(guard: int, command: list[str]) -> None:
    """Replace this process by the command."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    die_with(guard)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: cannot be started ({error.strerror})\n".encode(errors="replace"))
        os._exit(127)


def _watch(child: int, own_group: bool, lifeline: int, woken: int, received: dict[signal.Signals, int]) -> int | None:
    """Wait for the child, and return its status; None if the recorder closed the pipe first."""
    while True:
        ready = select.select([lifeline, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            ended = _reap(child)
            if ended is not None:
                return ended
        if lifeline in ready:
            request = os.read(lifeline, 1)
            if not request:
                return None
            number = signal.Signals(request[0])
            time.sleep(_SAME_SIGNAL_S)
            if received.get(number):  # the signal went to the whole group or terminal, and has reached the command
                received[number] -= 1
                continue
            with suppress(ProcessLookupError):
                (os.killpg if own_group else os.kill)(child, number)


def _reap(child: int) -> int | None:
    """Reap every child that has ended; return the status of `child` if it has. Raises ChildProcessError if none is left."""
    child_status = None
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return child_status
        if pid == child:
            return status  # _kill_all reaps the others


def _kill_all(child: int, own_group: bool) -> int:
    """Kill every descendant, and return the child's status."""
    status, deadline = signal.SIGKILL.value, time.monotonic() + _KILL_S
    while time.monotonic() < deadline:
        for pid in _descendants() or {child}:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if own_group:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
        try:
            ended = _reap(child)
        except ChildProcessError:
            break
        status = status if ended is None else ended
        time.sleep(0.002)
    return status


def _descendants() -> set[int]:
    """Return the ids of all descendants of this process, from /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - importing pathlib would take a third of the time that this process starts in
        with suppress(OSError, ValueError), open(f"/proc/{int(name)}/stat", "rb") as file:  # noqa: PTH123
            words = file.read().rpartition(b")")[2].split()
            children.setdefault(int(words[1]), []).append(int(name))
    descendants: set[int] = set()
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        descendants.update(below)
        todo += below
    return descendants


def _end_as(status: int, child: int, own_group: bool) -> None:
    with suppress(ChildProcessError):
        if os.waitpid(-1, os.WNOHANG) is not None:
            _kill_all(child, own_group)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # some signals cannot be handled
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def keep_open(*open_files: int) -> None:
    """Close all other file descriptors, so that readers of the command's pipes see when it ends."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208
        if int(name) > 2 and int(name) not in open_files:
            with suppress(OSError):
                os.close(int(name))


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    if sys.argv[2] in ("own", "same"):
        main(int(sys.argv[1]), sys.argv[2] == "own", sys.argv[3:])
    else:
        become(int(sys.argv[1]), sys.argv[2:])
