"""Law: wherever Ctrl-C arrives, in a pass or in a write, the state that the user goes on with is consistent.

Modes are restored, no lock is held, each `.grad` is entirely the old one or entirely the new one, and whatever is computed afterwards is
right or raises an error.
"""

from __future__ import annotations

import _thread
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import search_path
from support.functions import Cube
from support.interrupts import interrupted_at, points, run_until
from xpgrad._modes import batch_levels, running, state
from xpgrad._operations import watching
from xpgrad._rows.row import ROWS
from xpgrad._tape import engine, leaf as leaves, task
from xpgrad.autograd._profile_recording import Recording
from xpgrad.autograd.profiler import profile
from xpgrad.utils.checkpoint import checkpoint

START = np.asarray([1.0, 2.0, 3.0])

pytestmark = [
    pytest.mark.filterwarnings("ignore:Using backward:UserWarning"),
    # Python prints an exception in the callback of a weak reference and does not raise it.
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
]


class Scenario:
    """A graph, an action on it, and a check of the states that an interrupt may leave.

    Attributes
    ----------
    act : callable
        The action, which is interrupted.
    check : callable
        Asserts that the state after `act` is consistent.
    """

    act: Callable[[], Any]

    def check(self) -> None:
        raise NotImplementedError


def _array(x: Any) -> np.ndarray:
    return np.asarray(x.detach() if isinstance(x, xp.Tensor) else x)


def _assert_one_of(x: Any, *expected: Any) -> None:
    """Assert that `x` equals one of the `expected` arrays (None: no gradient)."""
    if x is None:
        assert any(e is None for e in expected)
        return
    assert any(e is not None and np.allclose(_array(x), e, rtol=1e-12) for e in expected), (x, expected)


def _refused_for_a_write(exc: RuntimeError) -> None:
    assert "modified by an inplace operation" in str(exc)


class Backward(Scenario):
    """A pass over leaves that already have a `.grad` and over one that has none."""

    def __init__(self, through: str) -> None:
        self.x = xp.tensor(START, requires_grad=True)
        self.w = xp.tensor(START, requires_grad=True)
        self.x.grad = xp.tensor([1.0, 1.0, 1.0])
        self.through = through
        if through == "hooks":
            self.w.register_hook(lambda g: g * 1)
        self.loss = self._loss()
        self.options: dict[str, Any] = {"create_graph": True} if through == "create_graph" else {}

    def _loss(self) -> Any:
        if self.through == "checkpoint":
            return checkpoint(lambda x, w: xp.sum(x * x * w), self.x, self.w)
        if self.through == "function":
            return xp.sum(Cube.apply(self.x) / self.x * self.w)
        if self.through == "several outputs":
            a, b, c = xp.unstack(self.x * self.x * self.w)
            return a + b + c
        return xp.sum(self.x * self.x * self.w)

    def act(self) -> None:
        if self.through == "reentrant":

            def inner(g: Any) -> None:
                with xp.enable_grad():
                    t = xp.tensor([2.0], requires_grad=True)
                    xp.sum(t * t).backward()
                assert t.grad is not None

            self.loss.register_hook(inner)
        self.loss.backward(**self.options)

    def check(self) -> None:
        x, w = START, START
        _assert_one_of(self.x.grad, np.ones(3), np.ones(3) + 2 * x * w)
        _assert_one_of(self.w.grad, None, x * x)
        if self.through != "create_graph":  # which makes a new `.grad`
            assert self.x.grad._version >= int(_array(self.x.grad)[0] != 1)  # an interrupted write may increment the version twice
        self.x.grad = self.w.grad = None
        self._loss().backward()
        np.testing.assert_allclose(_array(self.x.grad), 2 * x * w)
        np.testing.assert_allclose(_array(self.w.grad), x * x)


class Writing(Scenario):
    """A write into a result after a part of it was saved; then everything is differentiated."""

    def __init__(self, write: str) -> None:
        self.leaf = xp.tensor(START, requires_grad=True)
        self.y = self.leaf * 2
        self.view = self.y[1:]
        self.saved = xp.sum(self.y**2)  # a pass through it is right before the write and raises after it
        self.write = write
        self.old = 2 * START

    def act(self) -> None:
        WRITES[self.write](self.y, self.view, self.leaf)

    def check(self) -> None:
        y, d = _array(self.y), {"old": self.old}
        new, slope = EXPECTED[self.write]
        written = np.allclose(y, new(START)) and not np.allclose(y, self.old)
        _assert_one_of(self.y, *d.values(), new(START))
        np.testing.assert_array_equal(_array(self.view), y[1:])
        # The values of the Tensor and its view must agree with their histories.
        for t, part in ((self.y, slice(None)), (self.view, slice(1, None))):
            (g,) = xp.autograd.grad(xp.sum(t * 1.0), self.leaf, retain_graph=True)
            jacobian = slope(START) if written else 2 * np.eye(3)
            np.testing.assert_allclose(_array(g), jacobian[part].sum(axis=0))
        assert self.y._version >= int(written)
        try:
            (g,) = xp.autograd.grad(self.saved, self.leaf)
        except RuntimeError as exc:
            _refused_for_a_write(exc)
            assert self.y._version > 0
        else:
            assert not written
            np.testing.assert_allclose(_array(g), 8 * START)


def _set(y: Any, view: Any, leaf: Any) -> None:
    y[0] = leaf[1] * 5


def _set_constant(y: Any, view: Any, leaf: Any) -> None:
    y[0] = 7.0


def _through_view(y: Any, view: Any, leaf: Any) -> None:
    view.mul_(3.0)


def _augmented(y: Any, view: Any, leaf: Any) -> None:
    y += leaf


WRITES = {"item": _set, "constant": _set_constant, "view": _through_view, "augmented": _augmented, "exp_": lambda y, view, leaf: y.exp_()}
EXPECTED: dict[str, Any] = {
    "item": (lambda x: np.asarray([5 * x[1], 2 * x[1], 2 * x[2]]), lambda x: np.asarray([[0.0, 5, 0], [0, 2, 0], [0, 0, 2]])),
    "constant": (lambda x: np.asarray([7.0, 2 * x[1], 2 * x[2]]), lambda x: np.diag([0.0, 2, 2])),
    "view": (lambda x: 2 * x * [1, 3, 3], lambda x: np.diag([2.0, 6, 6])),
    "augmented": (lambda x: 3 * x, lambda x: 3 * np.eye(3)),
    "exp_": (lambda x: np.exp(2 * x), lambda x: np.diag(2 * np.exp(2 * x))),
}


class Step(Scenario):
    """An optimiser's step under `no_grad`, with a graph that saved the old values."""

    def __init__(self, step: str) -> None:
        self.w = xp.tensor(START, requires_grad=True)
        self.loss = xp.sum(self.w**2)
        self.g = xp.tensor([1.0, 1.0, 1.0])
        self.step = step

    def act(self) -> None:
        before = state.current()  # not `with`, whose exit would be the user's own code
        try:
            state.put(state.NO_GRAD)
            if self.step == "operator":
                self.w -= self.g
            elif self.step == "item":
                self.w[...] = self.w - self.g
            else:
                self.w.sub_(self.g, alpha=1.0) if self.step == "method" else self.w[1:].sub_(1.0)
        finally:
            state.put(before)

    def check(self) -> None:
        new = START - [0, 1, 1] if self.step == "view" else START - 1
        _assert_one_of(self.w, START, new)
        written = not np.allclose(_array(self.w), START)
        assert self.w._version >= int(written)
        try:
            self.loss.backward()
        except RuntimeError as exc:
            _refused_for_a_write(exc)
        else:
            assert not written
            np.testing.assert_allclose(_array(self.w.grad), 2 * START)


class Transforming(Scenario):
    """Functions that are differentiated inside other transforms."""

    def __init__(self, what: str) -> None:
        self.x = xp.tensor(START)
        self.what = what

    def act(self) -> Any:
        f = lambda v: xp.sum(v * v * v)  # noqa: E731
        if self.what == "grad of grad":
            return xp.func.grad(lambda u: xp.sum(xp.func.grad(f)(u)))(self.x)
        if self.what == "vmap of grad":
            return xp.func.vmap(xp.func.grad(lambda v: v * v * v))(self.x)
        return xp.func.jvp(f, (self.x,), (self.x,))

    def check(self) -> None:
        np.testing.assert_allclose(_array(xp.func.grad(lambda v: xp.sum(v * v))(self.x)), 2 * START)


class StaleView(Scenario):
    """The first use of a view after its base was overwritten, which gives the view its new history."""

    def __init__(self) -> None:
        self.leaf = xp.tensor(START, requires_grad=True)
        self.y = self.leaf * 2
        self.view = self.y[1:]
        self.y.mul_(3.0)

    def act(self) -> Any:
        return self.view * 1.0

    def check(self) -> None:
        (g,) = xp.autograd.grad(xp.sum(self.view * 1.0), self.leaf)
        np.testing.assert_allclose(_array(g), [0.0, 6.0, 6.0])


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "a stale view": StaleView,
    **{
        f"backward, {t}": (lambda t=t: Backward(t))
        for t in ("plain", "hooks", "checkpoint", "function", "several outputs", "reentrant", "create_graph")
    },
    **{f"write, {w}": (lambda w=w: Writing(w)) for w in WRITES},
    **{f"step, {s}": (lambda s=s: Step(s)) for s in ("operator", "item", "method", "view")},
    **{f"transform, {t}": (lambda t=t: Transforming(t)) for t in ("grad of grad", "vmap of grad", "jvp")},
}


def _assert_nothing_is_active() -> None:
    """Assert that no mode, pass or transform is active, and that no lock is held."""
    assert state.current() is None
    assert task.CURRENT.get() is None
    assert running.transforming() is None
    assert batch_levels.active_levels() == ()
    assert not engine._OWN
    assert leaves._LOCK.acquire(blocking=False)
    leaves._LOCK.release()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    state.put(None)
    task.CURRENT.set(None)
    running._RUNNING.set(None)
    batch_levels._LEVELS.set(())
    engine._OWN.clear()


@pytest.mark.slow(one_in=20)
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "first use"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_an_interrupt_leaves_everything_whole(name: str, warm: bool) -> None:
    make = SCENARIOS[name]
    if warm:
        make().act()
    total = points(make().act)
    assert total > 5  # newer Pythons have fewer such points
    chosen = range(total) if total <= 150 else sorted(random.Random(name).sample(range(total), 150))
    for k in chosen:
        scenario = make()
        if not warm:
            type(scenario.__dict__.get("x", scenario.__dict__.get("leaf", xp.tensor(1.0)))).backend.node_classes.clear()
        arrived = interrupted_at(k, scenario.act)
        try:
            _assert_nothing_is_active()
            scenario.check()
        except BaseException as exc:
            exc.add_note(f"interrupted at point {k} of {total}; the interrupt {'came out' if arrived else 'did not come out'}")
            raise


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@pytest.mark.filterwarnings("ignore:.*fork\\(\\):DeprecationWarning", "ignore:os.fork\\(\\) was called:RuntimeWarning")
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_child_that_is_forked_anywhere_goes_on(name: str) -> None:
    """Law: a process forked inside of a pass or a write finishes it, as its parent does, and can begin another."""
    make = SCENARIOS[name]
    make().act()
    total, forks = points(make().act), 0
    for k in sorted(random.Random(name).sample(range(total), min(total, 100))):
        scenario, child = make(), [-1]
        run_until(k, lambda child=child: child.append(os.fork()), scenario.act)
        if child[-1] < 0:
            continue  # later calls may have fewer points, because less is looked up
        forks += 1
        if child[-1] == 0:
            code = 1
            try:
                _assert_nothing_is_active()
                scenario.check()
                again = make()
                again.act()
                again.check()
                code = 0
            except BaseException:  # noqa: BLE001 (the child ends here)
                traceback.print_exc()
            finally:
                os._exit(code)
        scenario.check()
        assert os.waitstatus_to_exitcode(os.waitpid(child[-1], 0)[1]) == 0, f"forked at point {k} of {total}"
    assert forks > 0.5 * min(total, 100)


def test_a_profile_whose_beginning_is_interrupted_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Recording, "open", interrupted)
        with pytest.raises(KeyboardInterrupt):
            profile().__enter__()
    _assert_nothing_is_active()
    assert not any(watching._WATCHERS.values())
    with profile() as prof:
        xp.exp(xp.tensor(START))
    assert [e.name for e in prof.function_events] == ["exp"]


def _interrupt_by_signal(scenario: Scenario, delay: float) -> bool:
    """Run the scenario's action and interrupt it by a real signal after `delay` seconds; return whether the interrupt arrived in it."""
    armed = [True]

    def handler(*_: Any) -> None:
        if armed:
            armed.clear()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        scenario.act()
    except KeyboardInterrupt:
        return True
    finally:
        armed.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


@pytest.mark.slow(one_in=2)
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
@pytest.mark.skipif(
    sys.version_info[:2] == (3, 14), reason="an interrupt after `with lock:` leaves it locked there: CPython's issue 148874"
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_signal_leaves_everything_whole(name: str) -> None:
    make, draw = SCENARIOS[name], random.Random(name)
    lengths = []
    for _ in range(6):
        scenario = make()
        start = time.perf_counter()
        scenario.act()
        lengths.append(time.perf_counter() - start)
    arrived = 0
    for _ in range(2000):
        scenario = make()
        arrived += _interrupt_by_signal(scenario, draw.uniform(1e-6, min(lengths)))
        _assert_nothing_is_active()
        scenario.check()
        if arrived == 60:
            break
    assert arrived == 60


def test_an_interrupted_pass_leaves_none_running_on_another_thread() -> None:
    """Deeply nested passes continue in another thread, for which the caller waits even if an interrupt arrives during the wait."""
    done: list[str] = []

    def deeper(depth: int) -> None:
        with xp.enable_grad():
            t = xp.tensor([2.0], requires_grad=True)
            y = t * t
            if depth:
                y.register_hook(lambda g: deeper(depth - 1))
            xp.sum(y * y).backward()
        if not depth:
            _thread.interrupt_main()
            time.sleep(0.2)
            done.append(threading.current_thread().name)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore SIGINT
    try:
        with pytest.raises(KeyboardInterrupt):
            deeper(30)
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["xpgrad nested pass"]
    _assert_nothing_is_active()


# -- fork ---------------------------------------------------------------------------------------------------------------------------------


_FORK = """
    import os, signal, sys, threading, time
    import numpy as np
    import xpgrad as xp

    stop = threading.Event()
    slow = xp.tensor(np.ones(200_000), requires_grad=True)

    def work():
        while not stop.is_set():
            xp.sum(xp.exp(slow * 0.5) * slow).backward()

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 20
    shared = xp.tensor([1.0, 2.0], requires_grad=True)
    loss = xp.sum(shared * shared)
    failed = 0
    for _ in range(30):
        time.sleep(0.001)
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # a child that waits for ever is killed
            from xpgrad._tape import engine
            ok = "pass" not in engine._OWN
            xp.sum(xp.exp(shared) * shared).backward()
            ok = ok and np.allclose(np.asarray(shared.grad), np.exp([1.0, 2.0]) * [2.0, 3.0])
            slow.grad = None
            xp.sum(slow * 2).backward()
            ok = ok and float(slow.grad[0]) == 2.0 and not engine._OWN
            os._exit(0 if ok else 1)
        failed += os.waitpid(child, 0)[1] != 0
    stop.set()
    thread.join()
    print(failed)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.timeout(330)
def test_a_child_process_differentiates_whatever_other_threads_were_doing() -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(_FORK)],
        capture_output=True, text=True, timeout=320, env={**os.environ, "PYTHONPATH": search_path()}, check=False,
    )  # fmt: skip
    assert found.stdout == "0\n", found.stderr


_FORK_WHILE_LOADING = """
    import os, signal, threading
    from xpgrad._backends import loading
    import xpgrad as xp

    held, done = threading.Event(), threading.Event()

    def hold():
        with loading.LOCK:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        xp.ones(2, device="numpy+readonly")
        os._exit(0)
    print(os.waitpid(child, 0)[1])
    done.set()
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_process_loads_backends_whatever_other_threads_were_loading() -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(_FORK_WHILE_LOADING)],
        capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": search_path()}, check=False,
    )  # fmt: skip
    assert found.stdout == "0\n", found.stderr


def test_a_child_of_a_hook_goes_on_with_its_pass() -> None:
    """If a hook forks, the child keeps the hold of the running pass and can finish it."""
    seen = []
    x = xp.tensor([1.0], requires_grad=True)
    x.register_hook(lambda g: (engine._after_fork(), seen.append("pass" in engine._OWN), None)[2])
    xp.sum(x * 2).backward()
    assert seen == [True]
    assert not engine._OWN
    other = threading.Thread(target=engine._after_fork)
    x.register_hook(lambda g: (other.start(), other.join(), seen.append("pass" in engine._OWN), None)[3])
    xp.sum(x * 2).backward()
    assert seen[-1] is False


def test_an_interrupt_leaves_no_operation_watched() -> None:
    rows = [ROWS["exp"], ROWS["sin"]]
    x = xp.tensor(START)

    def act() -> None:
        with watching.Watching(rows):
            xp.exp(xp.sin(x))

    act()
    for k in range(points(act)):
        interrupted_at(k, act)
        assert not any(watching._WATCHERS.values()), k
        for pair in (watching._MADE[row][x.backend] for row in rows):
            assert all(vars(pair.cls)[name] is method for name, method in pair.plain.items()), k
