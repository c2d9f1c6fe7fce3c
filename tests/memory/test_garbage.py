"""Law: no call leaves garbage that only the cyclic collector finds: memory is freed when the last reference goes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import xpgrad as xp
from support.functions import Cube
from xpgrad import func
from xpgrad.autograd import forward_ad, functional, graph
from xpgrad.utils.checkpoint import checkpoint

X = xp.tensor([1.0, 2.0, 3.0])
M = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
W = xp.tensor([1.0, 2.0], requires_grad=True)


def _cube_sum(v: Any) -> Any:
    return xp.sum(v * v * v)


def _dual() -> Any:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(X, X)
        return forward_ad.unpack_dual(d * d).tangent


def _write() -> None:
    y = W * 1
    v = y[:1]
    y[0] = 3.0
    v.mul_(2.0)
    xp.sum(y).backward()


def _packed() -> None:
    with graph.saved_tensors_hooks(lambda t: t.numpy() if not t.requires_grad else t.detach().numpy(), xp.asarray):
        loss = xp.sum(W * W)
    loss.backward()


CALLS: dict[str, Callable[[], Any]] = {
    "vmap": lambda: func.vmap(lambda x: xp.sin(x) * x)(X),
    "vmap of trees": lambda: func.vmap(lambda a, b: (a * b, {"k": a}), in_dims=(0, None), out_dims=0)(M, X[:2]),
    "grad": lambda: func.grad(_cube_sum)(X),
    "grad of grad": lambda: func.grad(lambda u: xp.sum(func.grad(_cube_sum)(u)))(X),
    "hessian": lambda: func.hessian(_cube_sum)(X),
    "jacrev": lambda: func.jacrev(lambda v: v * v)(X),
    "jacfwd": lambda: func.jacfwd(lambda v: v * v)(X),
    "jvp": lambda: func.jvp(lambda v: v * v, (X,), (X,)),
    "vjp": lambda: func.vjp(lambda v: v * v, X)[1](X),
    "linearize": lambda: func.linearize(lambda v: v * v, X)[1](X),
    "vmap of grad": lambda: func.vmap(func.grad(_cube_sum))(M),
    "vmap of vmap of grad": lambda: func.vmap(func.vmap(func.grad(lambda v: v * v)))(M),
    "checkpoint": lambda: xp.sum(checkpoint(lambda v: v * v, W)).backward(),
    "functional": lambda: functional.hessian(_cube_sum, X),
    "dual": _dual,
    "backward": lambda: xp.sum(W * W).backward(),
    "batched": lambda: xp.autograd.grad(W * W, W, xp.eye(2), is_grads_batched=True),
    "write": _write,
    "packed": _packed,
    "function": lambda: xp.sum(Cube.apply(W)).backward(),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_no_cycles(name: str) -> None:
    call = CALLS[name]
    for _ in range(2):  # the first call creates classes, which are kept
        call()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            call()
        assert gc.collect() == 0
    finally:
        gc.enable()
