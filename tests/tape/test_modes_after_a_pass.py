"""Law: whatever a hook enters and does not leave ends with the pass, also if it raises or a warning is an error."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import xpgrad as xp
from xpgrad import autograd
from xpgrad._modes import state
from xpgrad._modes.batch_levels import active_levels
from xpgrad.autograd import Function, forward_ad as fwd, graph
from xpgrad.utils.checkpoint import checkpoint

#: Makers of context managers that change how operations run.
CONTEXTS: dict[str, Callable[[], Any]] = {
    "no_grad": xp.no_grad,
    "enable_grad": xp.enable_grad,
    "set_grad_enabled": lambda: autograd.set_grad_enabled(False),
    "inference_mode": xp.inference_mode,
    "normal mode": lambda: xp.inference_mode(False),
    "saved_tensors_hooks": lambda: graph.saved_tensors_hooks(lambda v: v, lambda v: v),
    "save_on_cpu": graph.save_on_cpu,
    "disable_saved_tensors_hooks": lambda: graph.disable_saved_tensors_hooks("no hooks here"),
    "allow_mutation_on_saved_tensors": graph.allow_mutation_on_saved_tensors,
    "detect_anomaly": autograd.detect_anomaly,
    "set_detect_anomaly": lambda: autograd.set_detect_anomaly(True),
    "dual_level": fwd.dual_level,
    "profile": autograd.profiler.profile,
}


class Stop(Exception):
    """What a hook raises."""


class Twice(Function):
    """``2 * x`` with a backward that calls `hook`."""

    hook: Any = None

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        Twice.hook()
        return 2 * g


def _backward(hook: Callable[..., Any], x: Any) -> Any:
    Twice.hook = hook
    return Twice.apply(x)


def _checkpointed(hook: Callable[..., Any], x: Any, reentrant: bool) -> Any:
    runs = itertools.count()

    def function(v: Any) -> Any:
        if next(runs):  # only when it is computed again
            hook()
        return xp.exp(v)

    return checkpoint(function, x, use_reentrant=reentrant)


def _unpacked(hook: Callable[..., Any], x: Any) -> Any:
    def unpack(value: Any) -> Any:
        hook()
        return value

    with graph.saved_tensors_hooks(lambda v: v, unpack):
        return xp.exp(x)


def _with(register: Callable[[Any, Any, Callable[..., Any]], Any]) -> Callable[[Callable[..., Any], Any], Any]:
    def build(hook: Callable[..., Any], x: Any) -> Any:
        y = xp.exp(x)
        register(x, y, hook)
        return y

    return build


#: What calls the hook during a pass: functions of the hook and a leaf that build the graph.
PLACES: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "tensor hook": _with(lambda x, y, hook: y.register_hook(hook)),
    "hook of a leaf": _with(lambda x, y, hook: x.register_hook(hook)),
    "post-accumulate hook": _with(lambda x, y, hook: x.register_post_accumulate_grad_hook(hook)),
    "prehook of a node": _with(lambda x, y, hook: y.grad_fn.register_prehook(hook)),
    "post-hook of a node": _with(lambda x, y, hook: y.grad_fn.register_hook(hook)),
    "post-hook of AccumulateGrad": _with(lambda x, y, hook: graph.get_gradient_edge(x).node.register_hook(hook)),
    "hook of several Tensors, all": _with(lambda x, y, hook: graph.register_multi_grad_hook([x, y], hook)),
    "hook of several Tensors, any": _with(lambda x, y, hook: graph.register_multi_grad_hook([x, y], hook, mode="any")),
    "unpack hook": _unpacked,
    "backward of a Function": _backward,
    "checkpoint": lambda hook, x: _checkpointed(hook, x, False),
    "reentrant checkpoint": lambda hook, x: _checkpointed(hook, x, True),
}
ENDS = ("returns", "raises", "warns")


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("create_graph", [False, True], ids=["first", "create_graph"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", CONTEXTS)
def test_no_mode_outlives_a_pass(name: str, place: str, create_graph: bool, end: str) -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    called = []
    entered = []  # which keeps the context managers alive, so that nothing is left by their destruction

    def hook(*_: Any) -> None:
        called.append(None)
        entered.append(CONTEXTS[name]())
        entered[-1].__enter__()
        if end == "raises":
            raise Stop
        if end == "warns":
            warnings.warn("from a hook", UserWarning, stacklevel=1)

    out = xp.sum(PLACES[place](hook, x))
    before = state.current(), active_levels()
    raised = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error" if end == "warns" else "ignore", "from a hook")
        try:
            out.backward(create_graph=create_graph)
        except (Stop, UserWarning, RuntimeError):
            raised = True
    assert called, "the hook did not run"
    found = state.current(), active_levels()
    if name == "profile":  # otherwise its observers stay on the operations
        entered[-1].__exit__(None, None, None)
        state.put(before[0])
    refused = name in ("disable_saved_tensors_hooks", "inference_mode", "dual_level", "profile") or place.endswith("checkpoint")
    assert raised == (end != "returns") or refused  # a pass may refuse what a hook has entered
    assert found == before
    assert (x * x).requires_grad
    assert xp.is_grad_enabled()
    assert not xp.is_inference_mode_enabled()
