"""Runs contracts on one target in a separate process and watches it, so that a hang or a crash fails one contract and not the whole run.

The process is either pytest with the suite's own ini file, no other plugins, and none of the caller's pytest settings; or a process that
a server has forked (`fork_server`), which starts in a tenth of the time.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from xpgrad_conformance.contract import Contract
from xpgrad_conformance.engine import PROFILES, Result, counts_as_failure
from xpgrad_conformance.fork_server import Forked, Server, kill, pool

__all__ = ["Outcome", "Request", "run", "runners"]

HERE = Path(__file__).resolve().parent
#: After this many crashes on one target, the remaining contracts are not tried, if the request does not say otherwise.
CRASHES = 5
#: The kinds of contracts that were not tried, because the run was to stop, or after crashes or timeouts, or because nothing could be run.
UNTRIED = ("stopped", "crash", "timeout", "broken")
#: The number of characters of a process's output that a message quotes.
_QUOTED = 1500


class Request(NamedTuple):
    """A request to run contracts on a target.

    Attributes
    ----------
    target : str
        A device of xpgrad, or ``"pytorch"``.
    label : str
        The target's name in reports.
    contracts : sequence of Contract
        The contracts to run.
    profile : str
        A key of `PROFILES`.
    seed : int, optional
        The seed of the drawn cases and of the order of the contracts. Default: the same each time.
    known : sequence of str
        TOML files of expected failures.
    limit : float, optional
        Time limit for one contract in seconds. Default: the profile's.
    environment : mapping of str to str
        Variables to add to the process's environment.
    exitfirst : bool
        Stop at the first failure that counts, and report the remaining contracts as not run.
    as_listed : bool
        Run the contracts in the given order, not in the catalogue's. NB: a server's processes always do.
    crashes : int
        The number of crashes after which the remaining contracts are not tried. A contract that exceeds its time limit is no crash.
    timeouts : int, optional
        The number of contracts that exceed their time limit after which the remaining ones are not tried. Default: all are tried.
    modules : sequence of str
        Modules that a server's process imports first; if one cannot be imported, nothing is run.
    """

    target: str
    label: str
    contracts: Sequence[Contract]
    profile: str = "default"
    seed: int | None = None
    known: Sequence[str] = ()
    limit: float | None = None
    environment: Mapping[str, str] = {}
    exitfirst: bool = False
    as_listed: bool = False
    crashes: int = CRASHES
    timeouts: int | None = None
    modules: Sequence[str] = ()


class Outcome(NamedTuple):
    """The outcome of a request.

    Attributes
    ----------
    library : str
        Name and version of the array library.
    capabilities : dict of str to bool
        Whether the target has each capability, as it declares them.
    rows : list of Result
        The result of each requested contract, in the order of the request.
    cause : str
        The reason if nothing could be run, else empty.
    """

    library: str
    capabilities: dict[str, bool]
    rows: list[Result]
    cause: str = ""


def run(request: Request, progress: Callable[[Result], None] = lambda result: None, server: Server | None = None) -> Outcome:
    """Run the contracts of a request, by pytest or by a server; `progress` is called with each result as it comes."""
    limit = PROFILES[request.profile].limit if request.limit is None else request.limit
    found: dict[str, Result] = {}
    about: dict[str, Any] = {}
    crashes, timeouts, cause = 0, 0, ""

    def note(result: Result) -> None:
        found[result.id] = result
        progress(result)

    while rest := [c for c in request.contracts if c.id not in found]:
        # NB: Windows cannot delete a folder that a process still uses, such as one that a killed process has started.
        with tempfile.TemporaryDirectory(prefix="xpgrad-conformance-", ignore_cleanup_errors=True) as folder:
            running, ended = "", ""
            with _start_process(request, rest, Path(folder), server) as process:
                for event in _read_events(process, Path(folder) / "events", limit):
                    if "result" in event:
                        note(Result(**event["result"]))
                        running = ""
                    elif "start" in event:
                        running = event["start"]
                    elif "library" in event:
                        about = event
                    else:
                        ended = event["ended"]
            if not running and len(rest) == sum(c.id in found for c in rest):
                break
            if request.exitfirst and (culprit := next((r.id for r in found.values() if counts_as_failure(r)), "")):
                _skip_rest(request, found, f"not tried: {culprit} had failed, and the run was to stop there", note)
                break
            output = (Path(folder) / "output").read_text(encoding="utf-8", errors="replace").strip()
        if not about:
            cause = _find_cause(output) or ended
            break
        if not running and not ended:
            cause = _find_cause(output) or "the process ended without a message"
            break
        late = bool(running) and "no result" in ended
        crashes, timeouts = crashes + (not late), timeouts + late
        message = ended if ended else "the process ended"
        if running:
            note(Result(running, "failed", message=f"{message}\n{_find_stack(output)}".strip(), kind="timeout" if late else "crash"))
        if crashes >= request.crashes:
            times = f"{crashes} time{'s' if crashes > 1 else ''}"
            _skip_rest(request, found, f"not tried: the process had crashed {times}, the limit of --max-crashes", note, "crash")
        elif request.timeouts is not None and timeouts >= request.timeouts:
            _skip_rest(request, found, f"not tried: {timeouts} contracts had exceeded their time limit", note, "timeout")
        elif running and request.exitfirst:
            _skip_rest(request, found, f"not tried: {running} had failed, and the run was to stop there", note)
    if cause:
        _skip_rest(request, found, cause, note, "broken")
    rows = [found[c.id] for c in request.contracts]
    return Outcome(about.get("library", ""), about.get("capabilities", {}), rows, cause)


@contextlib.contextmanager
def runners(count: int) -> Iterator[Callable[[Request], Outcome]]:
    """Context manager that yields a thread-safe function that runs requests on `count` servers; by pytest if processes cannot fork."""
    with pool(count) as lend:

        def run_by_one(request: Request) -> Outcome:
            with lend() as server:
                return run(request, server=server)

        yield run_by_one


def _skip_rest(request: Request, found: Mapping[str, Result], why: str, note: Callable[[Result], None], kind: str = "stopped") -> None:
    """Report the contracts that have no result yet as not run, with a reason."""
    for contract in request.contracts:
        if contract.id not in found:
            note(Result(contract.id, "not run", why, kind=kind))


@contextlib.contextmanager
def _start_process(
    request: Request, contracts: Sequence[Contract], folder: Path, server: Server | None
) -> Iterator[subprocess.Popen[bytes] | Forked]:
    """Context manager that starts the process, and at the end kills it with all its children."""
    for name in ("events", "output"):
        (folder / name).touch()
    process = _start_pytest(request, contracts, folder) if server is None else _start_forked(request, contracts, folder, server)
    try:
        yield process
    finally:
        kill(process)
        process.wait()


def _start_forked(request: Request, contracts: Sequence[Contract], folder: Path, server: Server) -> Forked:
    job: dict[str, Any] = {
        "folder": str(folder),
        "target": request.target,
        "contracts": [c.id for c in contracts],
        "profile": request.profile,
    }
    job |= {"seed": request.seed, "known": [str(Path(path).resolve()) for path in request.known], "exitfirst": request.exitfirst}
    return server.start(job | {"environment": dict(request.environment), "modules": list(request.modules)})


def _start_pytest(request: Request, contracts: Sequence[Contract], folder: Path) -> subprocess.Popen[bytes]:
    (folder / "ids").write_text("\n".join(c.id for c in contracts), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-c", str(HERE / "conformance.ini"), "--rootdir", str(HERE)]
    command += ["-p", "xpgrad_conformance.plugin", "-p", "no:cacheprovider", "--xpgrad-backend", request.target]
    command += ["--xpgrad-profile", request.profile, "--xpgrad-contract", f"file:{folder / 'ids'}"]
    command += ["--xpgrad-events", str(folder / "events"), "--xpgrad-label", request.label]
    command += ["--xpgrad-exitfirst"] * request.exitfirst + ["--xpgrad-as-listed"] * request.as_listed
    if request.seed is not None:
        command += ["--xpgrad-seed", str(request.seed)]
    for path in request.known:
        command += ["--xpgrad-known", str(Path(path).resolve())]
    command.append(str(HERE / "contracts"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_") and k not in ("PYTHONWARNINGS", "XPGRAD_DEVICE")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **request.environment}
    with open(folder / "output", "wb") as output:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


def _read_events(process: subprocess.Popen[bytes] | Forked, path: Path, limit: float) -> Iterator[dict[str, Any]]:
    """Yield the events that the process reports, and at the end ``{"ended": why}`` if the process hung or failed."""
    last = time.monotonic()
    with open(path, encoding="utf-8") as file:
        text, pause = "", 0.005
        while True:
            over = process.poll() is not None  # asked before reading, so that everything it wrote is read
            text += file.read()
            *lines, text = text.split("\n")
            if lines:
                last, pause = time.monotonic(), 0.005
            yield from map(json.loads, lines)
            if over:
                code = process.returncode or 0
                if code < 0:
                    yield {"ended": f"crashed: {signal.Signals(-code).name}"}
                elif code not in (0, 1, 5):  # pytest's: all passed, some failed, nothing collected
                    yield {"ended": f"ended with exit code {code}"}
                return
            # Importing the libraries, before the first contract, may take longer than a contract may.
            if time.monotonic() - last > max(limit, 60.0 if not lines and file.tell() == 0 else 0.0):
                _abort(process)
                yield {"ended": f"no result within {limit:g} s"}
                return
            time.sleep(pause)
            pause = min(0.1, pause * 1.5)


def _abort(process: subprocess.Popen[bytes] | Forked) -> None:
    """Abort a process that hangs, and wait up to 5 seconds while its `faulthandler` writes the stacks of its threads."""
    if not hasattr(os, "killpg"):
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process.pid, signal.SIGABRT)
        end = time.monotonic() + 5.0
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)


def _find_stack(output: str) -> str:
    """Return the stack of the thread that hung or crashed from a process's output, innermost call first; else the end of the output."""
    _, found, stacks = output.rpartition("Fatal Python error: ")
    if not found:
        return output[-_QUOTED:]
    threads = [t for t in stacks.split("\n\n") if "hread 0x" in t]
    mine = next((t for t in threads if t.lstrip().startswith("Current thread")), threads[-1] if threads else stacks)
    return mine.strip()[:_QUOTED]


def _find_cause(output: str) -> str:
    """Return the last line of a process's output that is an error, else its first line; empty if it wrote nothing."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").removeprefix("E  ").strip() for line in lines if line.startswith(("ERROR:", "E  "))]
    return (errors[-1:] or lines or [""])[0]
