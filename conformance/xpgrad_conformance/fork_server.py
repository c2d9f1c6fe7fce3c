"""Server processes that have imported everything except the library under test, and fork a child for each run.

Planted faults are tried by the hundred, each in a separate copy of the library, on contracts or on the repository's tests. With a server,
such a run costs the import of the library, but not that of Python, NumPy and Hypothesis. It needs `os.fork`; a run by pytest (`session`)
reports the same results.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Forked", "Server", "available", "kill", "pool", "warm"]


def available() -> bool:
    """Return whether processes can fork here."""
    return hasattr(os, "fork")


def kill(process: subprocess.Popen[Any] | Forked) -> None:
    """Kill a process that leads a session, and the processes that it has started; only the process itself if the system has no groups."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif isinstance(process, subprocess.Popen):
            process.kill()


# -- the client ------------------------------------------------------------------------------------------------------------------


class Server:
    """A client of one server process, which does one run at a time.

    Parameters
    ----------
    libraries : str
        For runs of tests, the modules that the server imports before it forks, as far as they are installed. None of them may import the
        library under test. Without them, it prepares for runs of contracts.
    """

    def __init__(self, *libraries: str) -> None:
        here = Path(__file__).resolve().parents[1]
        paths = [str(here), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_") and k not in ("PYTHONWARNINGS", "XPGRAD_DEVICE")}
        environment |= {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, *libraries], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert self._process.stdout is not None
        self._output, self._text = self._process.stdout.fileno(), b""

    def start(self, job: dict[str, Any]) -> Forked:
        """Have the server fork a process that does a job (see `_work`), and return that process."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        self._process.stdin.flush()
        return Forked(self, self.line(None) or 0)

    def line(self, seconds: float | None) -> int | None:
        """Read the next number from the server, a process id or an exit code.

        Returns None if none comes within `seconds` (None waits forever), and the server's own exit code (at least 1) if it has ended.
        """
        while b"\n" not in self._text:
            if not select.select([self._output], [], [], seconds)[0]:
                return None
            if not (more := os.read(self._output, 100)):
                return self._process.wait() or 1
            self._text += more
        first, _, self._text = self._text.partition(b"\n")
        return int(first)

    def close(self) -> None:
        """Kill the server process."""
        self._process.kill()
        self._process.communicate()


class Forked:
    """A process that a server has forked, with the interface of `subprocess.Popen` (`pid`, `poll`, `wait`, `returncode`)."""

    def __init__(self, server: Server, pid: int) -> None:
        self._server, self.pid = server, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code; None while the process runs."""
        if self.returncode is None:
            self.returncode = self._server.line(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended, and return its exit code.

        Raises
        ------
        subprocess.TimeoutExpired
            If it has not ended after `timeout` seconds (None waits forever).
        """
        if self.returncode is None:
            self.returncode = self._server.line(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        return self.returncode


@contextlib.contextmanager
def pool(count: int, *libraries: str) -> Iterator[Callable[[], contextlib.AbstractContextManager[Server | None]]]:
    """Context manager that yields a thread-safe function that lends one of `count` servers for a while; None where processes cannot fork.

    Parameters
    ----------
    count : int
        How many servers there are.
    libraries : str
        What each imports first (see `Server`).
    """
    free: queue.SimpleQueue[Server | None] = queue.SimpleQueue()

    @contextlib.contextmanager
    def lend() -> Iterator[Server | None]:
        server = free.get()
        try:
            yield server
        finally:
            free.put(server)

    with contextlib.ExitStack() as stack:
        for _ in range(count):
            server = Server(*libraries) if available() else None
            if server is not None:
                stack.callback(server.close)
            free.put(server)
        yield lend


# -- the server ------------------------------------------------------------------------------------------------------------------


def warm() -> None:
    """Run one trivial Hypothesis test, so that Hypothesis's slow first use happens before processes are forked."""
    import hypothesis
    from hypothesis import strategies

    hypothesis.settings(max_examples=1, database=None)(hypothesis.given(strategies.integers())(lambda n: None))()


def _work(job: dict[str, Any]) -> int:
    """Run tests or contracts, and return the exit code.

    Of every job, `environment` has variables to set, and `folder` is where files are written (``output`` among them). A job with the key
    `tests` (pytest's arguments) runs pytest in the folder `root`. The other keys are those of `_run_contracts`.
    """
    os.environ.update(job["environment"])
    sys.path[:0] = [path for path in job["environment"].get("PYTHONPATH", "").split(os.pathsep) if path]
    importlib.invalidate_caches()
    if "tests" not in job:
        return _run_contracts(job)
    import pytest

    for name in [name for name in sys.modules if name.startswith("xpgrad_conformance")]:
        del sys.modules[name]  # the folder may have a copy of it
    os.chdir(job["root"])
    # Plugins that the server has imported, Hypothesis's for one, keep their assertions as they are.
    return pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *job["tests"]])


def _run_contracts(job: dict[str, Any]) -> int:
    """Run contracts, write their results to the file ``events`` as pytest's items do, and return the exit code.

    The keys are `target`, `contracts` (ids, in the order in which they run), `profile`, `seed`, `known` (files of expected failures),
    `exitfirst`, and `modules` (which must be importable).
    """
    from xpgrad_conformance.contract import contracts
    from xpgrad_conformance.engine import PROFILES, counts_as_failure, tell
    from xpgrad_conformance.facade import open_library
    from xpgrad_conformance.known import bundled, load

    try:
        for module in job["modules"]:
            importlib.import_module(module)
        library = open_library(job["target"])
        library.value(library.ones(2) * 2)
    except Exception as exc:  # noqa: BLE001 (whatever a faulty library raises)
        print(f"ERROR: {type(exc).__name__}: {exc}")
        return 4
    known = [*bundled(), *(k for path in job["known"] for k in load(path))]
    with open("events", "a", encoding="utf-8", buffering=1) as file:

        def emit(event: dict[str, Any]) -> None:
            file.write(json.dumps(event) + "\n")

        emit(library.about())
        for contract in (contracts()[name] for name in job["contracts"]):
            result, _ = tell(contract, library, PROFILES[job["profile"]], emit, seed=job["seed"], known=known)
            if job["exitfirst"] and counts_as_failure(result):
                break
    return 0


def _fork(job: dict[str, Any]) -> int:
    """Fork a process that does a job, and return its process id."""
    pid = os.fork()
    if not pid:
        code = 70
        try:
            os.setsid()  # whoever kills this process group also kills the processes that it has started
            os.chdir(job["folder"])
            output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for old, new in ((nothing, 0), (output, 1), (output, 2)):
                os.dup2(old, new)
            faulthandler.enable()
            code = _work(job)
        except BaseException:  # noqa: BLE001 (it is printed, and this process must not go on as the server)
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    return pid


def _prepare_for_contracts() -> None:
    import pluggy  # noqa: F401

    from xpgrad_conformance import facade, known  # noqa: F401
    from xpgrad_conformance.contract import contracts

    contracts()
    warm()  # not for tests: Hypothesis's plugin for pytest has to be loaded before its first use


def main(libraries: Sequence[str]) -> None:
    """Prepare, and read jobs, one per line; for each, print the id of the process that does it, and then its exit code."""
    if not libraries:
        _prepare_for_contracts()
    for name in libraries:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        pid = _fork(json.loads(line))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
