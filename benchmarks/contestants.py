"""The contestants: for each library, its functions under NumPy's names, and how its users compute a gradient."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from benchmarks.workloads import Step, Workload

__all__ = ["CONTESTANTS", "Contestant", "Hand", "Missing", "installed"]

RATE = 0.1  # the step size of gradient descent


class Missing(Exception):
    """A library cannot do a workload."""


class Contestant:
    """A library. `step` returns the function that is timed; `numbers` converts its results to NumPy arrays."""

    key: ClassVar[str]
    title: ClassVar[str]
    distribution: ClassVar[str]
    traced: ClassVar[bool] = True  # whether tracemalloc sees its arrays

    @classmethod
    def version(cls) -> str:
        return importlib.metadata.version(cls.distribution)

    def step(self, workload: Workload, leaves: tuple[Any, ...], constants: tuple[Any, ...]) -> Step:
        """Return the step of a workload on copies of the data.

        Raises
        ------
        Missing
            If the library does not take part.
        """
        if self.key in workload.without:
            raise Missing(workload.without[self.key])
        leaves = tuple(np.array(x) for x in leaves)
        make: Callable[..., Step] = getattr(self, workload.kind)
        return make(workload.loss, leaves, constants)

    def numbers(self, results: tuple[Any, ...]) -> list[Any]:
        return [np.asarray(r) for r in results]

    def gradient(self, loss: Any, leaves: Any, constants: Any) -> Step:
        raise NotImplementedError

    def descent(self, loss: Any, leaves: Any, constants: Any) -> Step:
        raise NotImplementedError

    def hvp(self, loss: Any, leaves: Any, constants: Any) -> Step:
        raise NotImplementedError


class Hand(Contestant):
    """The handwritten NumPy code, which is the baseline."""

    key = "numpy"
    title = "NumPy by hand"
    distribution = "numpy"

    def step(self, workload: Workload, leaves: tuple[Any, ...], constants: tuple[Any, ...]) -> Step:
        return workload.hand(tuple(np.array(x) for x in leaves), constants)


class Plain(Contestant):
    """The simple handwritten derivative: a new array for each operation, whereas `Hand` reuses arrays."""

    key = "plain"
    title = "simple version by hand"
    distribution = "numpy"

    def step(self, workload: Workload, leaves: tuple[Any, ...], constants: tuple[Any, ...]) -> Step:
        if workload.plain is None:
            reason = "it has one form by hand"
            raise Missing(reason)
        return workload.plain(tuple(np.array(x) for x in leaves), constants)


class XPGrad(Contestant):
    key = "xpgrad"
    title = "xpgrad"
    distribution = "xpgrad"

    def __init__(self) -> None:
        import xpgrad as xp

        self.xp = xp
        self.m = SimpleNamespace(
            sin=xp.sin, exp=xp.exp, log=xp.log, tanh=xp.tanh, sqrt=xp.sqrt, sum=xp.sum, mean=xp.mean, above=xp.maximum,
            row_max=lambda x: xp.max(x.detach(), axis=1, keepdims=True), rows=lambda x, i: xp.take(x, i, axis=0),
        )  # fmt: skip

    def _enter(self, leaves: Any, constants: Any) -> tuple[Any, Any]:
        xp = self.xp
        wrapped = [xp.asarray(c) if isinstance(c, np.ndarray) else c for c in constants]
        return [xp.tensor(x, requires_grad=True) for x in leaves], wrapped

    def numbers(self, results: tuple[Any, ...]) -> list[Any]:
        return [r.detach().numpy() for r in results]

    def gradient(self, loss: Any, leaves: Any, constants: Any) -> Step:
        leaves, constants = self._enter(leaves, constants)
        m = self.m

        def step() -> tuple[Any, ...]:
            for x in leaves:
                x.grad = None
            value = loss(m, *leaves, *constants)
            value.backward()
            return value, *[x.grad for x in leaves]

        return step

    def descent(self, loss: Any, leaves: Any, constants: Any) -> Step:
        leaves, constants = self._enter(leaves, constants)
        m, no_grad = self.m, self.xp.no_grad

        def step() -> tuple[Any, ...]:
            value = loss(m, *leaves, *constants)
            value.backward()
            grads = [x.grad for x in leaves]
            with no_grad():
                for x, g in zip(leaves, grads):
                    x -= RATE * g
                    x.grad = None
            return value, *grads

        return step

    def hvp(self, loss: Any, leaves: Any, constants: Any) -> Step:
        (x,), (v,) = self._enter(leaves, constants)
        m, grad = self.m, self.xp.autograd.grad

        def step() -> tuple[Any, ...]:
            (g,) = grad(loss(m, x), x, create_graph=True)
            return grad(g, x, v)  # type: ignore[no-any-return]

        return step


class Compiled(XPGrad):
    """xpgrad with the compiled loss or product; compilation is not timed."""

    key = "compiled"
    title = "xpgrad.compile"
    emitter = "numpy"

    def _compile(self, function: Any) -> Any:
        return self.xp.compile(function, emitter=self.emitter)

    def gradient(self, loss: Any, leaves: Any, constants: Any) -> Step:
        return super().gradient(*self._compiled(loss, leaves, constants))

    def descent(self, loss: Any, leaves: Any, constants: Any) -> Step:
        """Return the whole step as one function, as for JAX."""
        count, function = len(leaves), self._function(loss, len(leaves), constants)
        value_and_grad = self.xp.func.value_and_grad

        def update(*tensors: Any) -> Any:
            value, grads = value_and_grad(function, argnums=tuple(range(count)))(*tensors)
            return value, grads, tuple(x - RATE * g for x, g in zip(tensors, grads))

        run = self._compile(update)
        leaves, others = self._enter(leaves, tuple(c for c in constants if isinstance(c, np.ndarray)))
        leaves = [x.detach() for x in leaves]
        run(*leaves, *others)  # neither its time nor its memory is that of a step

        def step() -> tuple[Any, ...]:
            nonlocal leaves
            value, grads, leaves = run(*leaves, *others)
            return value, *grads

        return step

    def _function(self, loss: Any, count: int, constants: Any) -> Any:
        """Return the loss as a function of Tensors only, with its numbers bound."""
        m = self.m
        places = [i for i, c in enumerate(constants) if isinstance(c, np.ndarray)]

        def function(*tensors: Any) -> Any:
            given = list(constants)
            for i, t in zip(places, tensors[count:]):
                given[i] = t
            return loss(m, *tensors[:count], *given)

        return function

    def _compiled(self, loss: Any, leaves: Any, constants: Any) -> tuple[Any, Any, Any]:
        """Return the compiled loss, with its leaves and its array constants."""
        run = self._compile(self._function(loss, len(leaves), constants))
        arrays = tuple(c for c in constants if isinstance(c, np.ndarray))
        like, others = self._enter(leaves, arrays)
        run(*like, *others)  # neither its time nor its memory is that of a step
        return lambda _, *tensors: run(*tensors), leaves, arrays

    def hvp(self, loss: Any, leaves: Any, constants: Any) -> Step:
        (x,), (v,) = self._enter(leaves, constants)
        m, xp = self.m, self.xp
        gradient = xp.func.grad(lambda x: loss(m, x))
        run = self._compile(lambda x, v: xp.func.vjp(gradient, x)[1](v)[0])
        x = x.detach()
        return lambda: (run(x, v),)


class Whole(Compiled):
    """The loss and its gradients as one compiled function, as in JAX: no graph and no `backward()`."""

    key = "whole"
    title = "compile(value_and_grad)"

    def gradient(self, loss: Any, leaves: Any, constants: Any) -> Step:
        count, xp = len(leaves), self.xp
        run = self._compile(xp.func.value_and_grad(self._function(loss, count, constants), argnums=tuple(range(count))))
        tensors, others = self._enter(leaves, tuple(c for c in constants if isinstance(c, np.ndarray)))
        tensors = [x.detach() for x in tensors]
        run(*tensors, *others)  # neither its time nor its memory is that of a step

        def step() -> tuple[Any, ...]:
            value, grads = run(*tensors, *others)
            return value, *grads

        return step


class Native(Whole):
    """The same as machine code."""

    key = "native"
    title = "as machine code"
    emitter = "native"


class PyTorch(XPGrad):
    """Eager PyTorch, with the same user code as xpgrad."""

    key = "torch"
    title = "PyTorch"
    distribution = "torch"
    traced = False

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.xp = torch
        self.m = SimpleNamespace(
            sin=torch.sin, exp=torch.exp, log=torch.log, tanh=torch.tanh, sqrt=torch.sqrt, sum=torch.sum, mean=torch.mean,
            above=lambda x, low: torch.clamp(x, min=low),  # NB: this is faster than `torch.maximum`, which takes no scalars
            row_max=lambda x: torch.amax(x.detach(), 1, keepdim=True), rows=lambda x, i: torch.index_select(x, 0, i),
        )  # fmt: skip

    def _enter(self, leaves: Any, constants: Any) -> tuple[Any, Any]:
        torch = self.xp
        wrapped = [torch.from_numpy(c) if isinstance(c, np.ndarray) else c for c in constants]
        return [torch.tensor(x, requires_grad=True) for x in leaves], wrapped


class Autograd(Contestant):
    """HIPS autograd."""

    key = "autograd"
    title = "autograd"
    distribution = "autograd"

    def __init__(self) -> None:
        import autograd
        import autograd.numpy as anp
        from autograd.tracer import getval

        self.autograd = autograd
        self.m = SimpleNamespace(
            sin=anp.sin, exp=anp.exp, log=anp.log, tanh=anp.tanh, sqrt=anp.sqrt, sum=anp.sum, mean=anp.mean, above=anp.maximum,
            row_max=lambda x: getval(x).max(axis=1, keepdims=True), rows=lambda x, i: x[i],
        )  # fmt: skip

    def gradient(self, loss: Any, leaves: Any, constants: Any) -> Step:
        m = self.m
        run = self.autograd.value_and_grad(lambda *xs: loss(m, *xs, *constants), argnum=tuple(range(len(leaves))))

        def step() -> tuple[Any, ...]:
            value, grads = run(*leaves)
            return value, *grads

        return step

    def descent(self, loss: Any, leaves: Any, constants: Any) -> Step:
        compute = self.gradient(loss, leaves, constants)

        def step() -> tuple[Any, ...]:
            value, *grads = compute()
            for x, g in zip(leaves, grads):
                x -= RATE * g
            return value, *grads

        return step

    def hvp(self, loss: Any, leaves: Any, constants: Any) -> Step:
        m = self.m
        product = self.autograd.hessian_vector_product(lambda x: loss(m, x))
        return lambda: (product(leaves[0], constants[0]),)


class MyGrad(Contestant):
    key = "mygrad"
    title = "MyGrad"
    distribution = "mygrad"

    def __init__(self) -> None:
        import mygrad as mg

        mg.turn_memory_guarding_off()  # as its documentation advises if speed matters
        self.mg = mg
        self.m = SimpleNamespace(
            sin=mg.sin, exp=mg.exp, log=mg.log, tanh=mg.tanh, sqrt=mg.sqrt, sum=mg.sum, mean=mg.mean, above=mg.maximum,
            row_max=lambda x: x.data.max(axis=1, keepdims=True), rows=lambda x, i: x[i],
        )  # fmt: skip

    def numbers(self, results: tuple[Any, ...]) -> list[Any]:
        return [np.asarray(getattr(r, "data", r)) for r in results]

    def gradient(self, loss: Any, leaves: Any, constants: Any) -> Step:
        leaves = [self.mg.tensor(x) for x in leaves]
        m = self.m

        def step() -> tuple[Any, ...]:
            value = loss(m, *leaves, *constants)
            value.backward()
            grads = [x.grad for x in leaves]
            for x in leaves:
                x.null_grad()
            return value, *grads

        return step

    def descent(self, loss: Any, leaves: Any, constants: Any) -> Step:
        leaves = [self.mg.tensor(x) for x in leaves]
        m = self.m

        def step() -> tuple[Any, ...]:
            value = loss(m, *leaves, *constants)
            value.backward()
            grads = [x.grad for x in leaves]
            for x, g in zip(leaves, grads):
                x.data[...] -= RATE * g
                x.null_grad()
            return value, *grads

        return step


class JAX(Contestant):
    """Compiled JAX; compilation is not timed."""

    key = "jax"
    title = "JAX (jit)"
    distribution = "jax"
    traced = False

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        jnp = jax.numpy
        self.jax = jax
        self.m = SimpleNamespace(
            sin=jnp.sin, exp=jnp.exp, log=jnp.log, tanh=jnp.tanh, sqrt=jnp.sqrt, sum=jnp.sum, mean=jnp.mean, above=jnp.maximum,
            row_max=lambda x: jnp.max(jax.lax.stop_gradient(x), axis=1, keepdims=True), rows=lambda x, i: x[i],
        )  # fmt: skip

    def _compile(self, loss: Any, leaves: Any, constants: Any) -> tuple[Any, Any, Any]:
        jnp = self.jax.numpy
        arrays = [jnp.array(c) for c in constants if isinstance(c, np.ndarray)]
        numbers = [c for c in constants if not isinstance(c, np.ndarray)]  # numbers come after arrays
        m, count = self.m, len(leaves)

        def value_and_grads(leaves: Any, arrays: Any) -> Any:
            run = self.jax.value_and_grad(lambda *xs: loss(m, *xs, *arrays, *numbers), argnums=tuple(range(count)))
            return run(*leaves)

        return value_and_grads, [jnp.array(x) for x in leaves], arrays

    def gradient(self, loss: Any, leaves: Any, constants: Any) -> Step:
        function, leaves, arrays = self._compile(loss, leaves, constants)
        run, ready = self.jax.jit(function), self.jax.block_until_ready

        def step() -> tuple[Any, ...]:
            value, grads = ready(run(leaves, arrays))
            return value, *grads

        return step

    def descent(self, loss: Any, leaves: Any, constants: Any) -> Step:
        function, leaves, arrays = self._compile(loss, leaves, constants)
        ready = self.jax.block_until_ready

        def update(leaves: Any, arrays: Any) -> Any:
            value, grads = function(leaves, arrays)
            return [x - RATE * g for x, g in zip(leaves, grads)], value, grads

        run = self.jax.jit(update)

        def step() -> tuple[Any, ...]:
            nonlocal leaves
            leaves, value, grads = ready(run(leaves, arrays))
            return value, *grads

        return step

    def hvp(self, loss: Any, leaves: Any, constants: Any) -> Step:
        jax, m = self.jax, self.m
        run = jax.jit(lambda x, v: jax.jvp(jax.grad(lambda x: loss(m, x)), (x,), (v,))[1])
        x, v = jax.numpy.array(leaves[0]), jax.numpy.array(constants[0])
        return lambda: (jax.block_until_ready(run(x, v)),)


#: In the order of the table's columns; the baseline first.
CONTESTANTS: dict[str, type[Contestant]] = {
    c.key: c for c in (Hand, Plain, XPGrad, Compiled, Whole, Native, PyTorch, Autograd, MyGrad, JAX)
}


def installed() -> dict[str, type[Contestant]]:
    """Return the contestants whose library can be imported."""
    return {key: c for key, c in CONTESTANTS.items() if importlib.util.find_spec(c.distribution) is not None}
