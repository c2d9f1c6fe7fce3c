"""Law: what differs on macOS and Windows is handled: names of files, line ends, encodings, and calls that only POSIX has.

Windows is simulated: by a process without the calls and modules that only POSIX has, an output in a Windows code page, dtypes of C's
`long long`, and a patched `sys.platform`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import search_path
from xpgrad.programs.c import compiler
from xpgrad.programs.native import cache
from xpgrad_conformance import fork_server, reach as reaching
from xpgrad_numpy import _backend

ROOT = Path(__file__).resolve().parents[2]
#: What Windows lacks, removed before anything else is imported (a child process does the same).
WITHOUT = """
import os, signal, sys

for module, names in (
    (os, "fork forkpty register_at_fork getuid geteuid getgid getegid getpgid killpg setsid sched_getaffinity getloadavg"),
    (signal, "SIGALRM SIGHUP SIGUSR1 alarm setitimer pthread_kill pthread_sigmask"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.modules.update(dict.fromkeys(("fcntl", "grp", "pwd", "resource", "termios", "tty")))  # None: an import raises ImportError
"""


def listed(*options: str) -> list[str]:
    """Return the lines that ``git ls-files`` prints for the repository; skip the test in a copy without git."""
    try:
        run = subprocess.run(["git", "ls-files", *options], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no clone, or git is not installed")
    return run.stdout.splitlines()


@pytest.fixture
def without_posix(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process without the calls that only POSIX has."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), search_path())), "XPGRAD_CACHE": str(tmp_path / "cache")}


def run(*words: str, environment: dict[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments."""
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return subprocess.run([sys.executable, *words], env=environment, cwd=cwd, capture_output=True, encoding=encoding, check=False)


# -- files ---------------------------------------------------------------------------------------------------------------------------------


def test_names_of_files_are_valid_on_every_system() -> None:
    """Law: no name is reserved or has a character that Windows forbids, none is a link, and no two differ by case only."""
    names = listed()
    assert len(names) > 500
    reserved = re.compile(r'[<>:"|?*\\]|[ .](/|$)|(^|/)(con|prn|aux|nul|com\d|lpt\d)(\.[^/]*)?(/|$)', re.IGNORECASE)
    assert [name for name in names if reserved.search(name)] == []
    lower = [name.lower() for name in names]
    assert sorted({name for name in lower if lower.count(name) > 1}) == []
    assert max(map(len, names)) < 140  # Windows allows 260 characters with the folder that the clone is in
    assert [line for line in listed("--stage") if line.startswith("120000")] == []


def test_text_has_the_same_line_ends_everywhere() -> None:
    """Law: git stores lines that end in \\n, and checks them out so on every system; tests compare such files with what they generate."""
    rows = [line.split("\t")[0].split() for line in listed("--eol")]
    assert {row[0] for row in rows} <= {"i/lf", "i/none", "i/-text"}
    assert {" ".join(row[2:]) for row in rows} == {"attr/text=auto eol=lf", "attr/-text"}


def unencoded(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of a source that open a text without its encoding, for which Python then takes the system's."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or any(k.arg in ("encoding", None) for k in node.keywords):
            continue
        arguments = [a.value if isinstance(a, ast.Constant) else a for a in node.args]
        match node.func:
            case ast.Attribute(attr="read_text") if not arguments:
                yield node.lineno
            case ast.Attribute(attr="write_text") if len(arguments) == 1:
                yield node.lineno
            case ast.Attribute(attr="open") if arguments and isinstance(arguments[0], str) and set(arguments[0]) <= set("rwxat+"):
                yield node.lineno
            case ast.Name(id="open"):
                modes = [*arguments[1:2], *(k.value.value for k in node.keywords if k.arg == "mode" and isinstance(k.value, ast.Constant))]
                if not modes or (isinstance(modes[0], str) and "b" not in modes[0]):
                    yield node.lineno


@pytest.mark.slow
def test_text_is_read_and_written_with_its_encoding() -> None:
    """Law: on Windows, Python before 3.15 reads and writes text in a code page unless a program says UTF-8."""
    assert list(unencoded(ast.parse("open('x')\nopen('x', 'rb')\np.read_text()\np.write_text(t, encoding='utf-8')\np.open('a')"))) == [
        1,
        3,
        5,
    ]
    sources = [name for name in listed("*.py") if not name.startswith("examples/exported")]
    found = {name: list(unencoded(ast.parse((ROOT / name).read_text(encoding="utf-8")))) for name in sources}
    assert {name: lines for name, lines in found.items() if lines} == {}


# -- what only POSIX has -----------------------------------------------------------------------------------------------------------------


def test_it_runs_without_what_only_posix_has(without_posix: dict[str, str]) -> None:
    done = run("-W", "error", str(ROOT / "tests" / "smoke.py"), environment=without_posix)
    assert "smoke: all passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_machine_code_is_cached_without_what_only_posix_has(without_posix: dict[str, str]) -> None:
    pytest.importorskip("llvmlite")
    program = "import xpgrad as xp; x = xp.tensor([1.0, 2.0], requires_grad=True); "
    program += "f = xp.compile(lambda x: xp.sum(xp.sin(x) * x), emitter='native'); f(x).backward(); print(x.grad.tolist())"
    first, second = (run("-W", "error", "-c", program, environment=without_posix) for _ in range(2))
    assert first.stdout.startswith("["), first.stderr
    assert first.stdout == second.stdout
    assert list(Path(without_posix["XPGRAD_CACHE"]).glob("*.o"))


@pytest.mark.slow
def test_the_suite_runs_without_fork(without_posix: dict[str, str]) -> None:
    """Law: if processes cannot fork and have no groups, pytest runs the suite, and reports the same results."""
    program = """
import json
from xpgrad import registry
from xpgrad_conformance.fork_server import available
from xpgrad_conformance.contract import contracts
from xpgrad_conformance.session import Request, run

assert not available()
chosen = [contracts()[name] for name in ("BWD-01", "BWD-02")]
outcome = run(Request("numpy", "numpy", chosen, "quick"))
print(json.dumps([(row.id, row.status) for row in outcome.rows]), outcome.cause)
"""
    done = run("-c", program, environment=without_posix)
    assert done.stdout.strip() == json.dumps([["BWD-01", "passed"], ["BWD-02", "passed"]]), done.stdout + done.stderr


def test_a_process_is_killed_without_process_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "killpg", raising=False)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        fork_server.kill(process)
        assert process.wait(timeout=30) != 0


def test_what_needs_fork_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork", raising=False)
    with pytest.raises(reaching.ReachError, match="forked processes, which this system does not have"):
        reaching.reach("numpy")


@pytest.mark.parametrize("plugin", ["dask", "cubed"])
def test_examples_measure_memory_where_the_system_tells_it(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(f"xpgrad_{plugin}")
    peak = runpy.run_path(str(ROOT / "plugins" / f"xpgrad-{plugin}" / "examples" / "larger_than_memory.py"))["peak"]
    if os.name == "posix":
        assert peak() > 10_000_000
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak() is None


# -- the command line ------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(
    ("words", "code", "phrase"),
    [
        (["audit", "lossy:f"], 2, r"\u2717"),  # the sign of an error
        (["conformance", "list"], 0, r"\u2202L/\u2202x"),
        (["conformance", "explain", "CPX-01"], 0, r"\u2202L/\u2202x"),
    ],
)
def test_commands_write_to_a_file_in_a_code_page(words: list[str], code: int, phrase: str, tmp_path: Path) -> None:
    """Law: a character that the encoding of the output lacks is escaped. Python encodes in a code page what Windows redirects to a file."""
    (tmp_path / "lossy.py").write_text(
        "import numpy as np\nimport xpgrad as xp\n\n\ndef f(x=None):\n"
        "    if x is None:\n        return f, xp.tensor([1.0, 2.0])\n    return xp.sum(xp.asarray(np.asarray(x.detach())) * x)\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": search_path(), "PYTHONIOENCODING": "cp1252"}
    done = run("-m", "xpgrad", *words, environment=environment, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert phrase in done.stdout


# -- the platform --------------------------------------------------------------------------------------------------------------------------


def test_the_cache_is_in_the_folder_of_each_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XPGRAD_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    found = {}
    for system in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", system)
        found[system] = cache.folder().relative_to(tmp_path).as_posix()
    assert found == {"linux": ".cache/xpgrad", "darwin": "Library/Caches/xpgrad", "win32": "AppData/Local/xpgrad"}
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache.folder() == tmp_path / "local" / "xpgrad"


@pytest.mark.parametrize(
    ("system", "given", "words"),
    [
        ("linux", None, ["cc"]),
        ("linux", "ccache gcc", ["ccache", "gcc"]),
        ("darwin", "'/opt/my tools/clang' -O1", ["/opt/my tools/clang", "-O1"]),
        ("win32", None, ["gcc"]),
        ("win32", r"C:\msys64\ucrt64\bin\gcc.exe -O1", [r"C:\msys64\ucrt64\bin\gcc.exe", "-O1"]),
        ("win32", r'"C:\Program Files\LLVM\bin\clang.exe"', [r"C:\Program Files\LLVM\bin\clang.exe"]),
    ],
)
def test_the_command_of_the_compiler(system: str, given: str | None, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    if given is not None:
        monkeypatch.setenv("CC", given)
    monkeypatch.setattr(sys, "platform", system)
    assert compiler.find_command() == words


def test_machine_code_is_the_default_only_where_it_was_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite")
    asked = _backend._is_native_default.__wrapped__
    for system, machine, expected in (
        ("linux", "x86_64", True),
        ("linux", "aarch64", False),
        ("darwin", "x86_64", False),
        ("win32", "AMD64", False),
    ):
        monkeypatch.setattr(sys, "platform", system)
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        assert asked() is expected, (system, machine)


@pytest.mark.parametrize("emitter", [None, "numpy", "array-api", "native"])
@pytest.mark.parametrize("kind", [np.longlong, np.ulonglong, np.intc, np.uintc, np.long, np.ulong])
def test_integers_may_be_of_any_type_of_c(kind: Any, emitter: str | None) -> None:
    """Law: dtypes are told by their kind and size: int64 is C's `long` on Linux and macOS, and `long long` on Windows."""
    if emitter == "native":
        pytest.importorskip("llvmlite")
    raw = np.arange(12, dtype=kind)
    n = xp.asarray(raw)
    assert n.dtype == raw.dtype
    assert n.dtype.name == f"{'u' * (raw.dtype.kind == 'u')}int{8 * raw.itemsize}"

    def function(x: Any, n: Any) -> Any:
        return xp.sum(x[n % 12] * n)

    x = xp.tensor(np.arange(12.0), requires_grad=True)
    called = function if emitter is None else xp.compile(function, emitter=emitter)
    (slope,) = xp.autograd.grad(called(x, n), x)
    assert slope.tolist() == list(range(12))
    assert (n + 1).dtype == raw.dtype
