"""`xpgrad.autograd`: `backward`, `grad`, `Function`, `graph` and the modes, with the names of `torch.autograd`.

A facade: `_tape.requests` implements `backward` and `grad`, and modules that are used less often load at first use.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from xpgrad._basics.arguments import as_flag
from xpgrad._basics.faces import public_names, refuse
from xpgrad._tape import requests
from xpgrad._tape.requests import backward as backward
from xpgrad._tensor.tensor import Tensor

# NB: not lazily: the submodule of the same name would take the function's place on the package.
from xpgrad.autograd.gradcheck import gradcheck as gradcheck, gradgradcheck as gradgradcheck

if TYPE_CHECKING:  # shows editors the names that load at first use
    from xpgrad.autograd import (
        anomaly_mode as anomaly_mode,
        forward_ad as forward_ad,
        function as function,
        functional as functional,
        grad_mode as grad_mode,
        graph as graph,
        interop as interop,
        profiler as profiler,
    )
    from xpgrad.autograd._rule import custom_rule as custom_rule
    from xpgrad.autograd.anomaly_mode import detect_anomaly as detect_anomaly, set_detect_anomaly as set_detect_anomaly
    from xpgrad.autograd.function import Function as Function
    from xpgrad.autograd.grad_mode import (
        enable_grad as enable_grad,
        inference_mode as inference_mode,
        is_multithreading_enabled as is_multithreading_enabled,
        no_grad as no_grad,
        set_grad_enabled as set_grad_enabled,
        set_multithreading_enabled as set_multithreading_enabled,
    )

__all__ = ["Function", "backward", "custom_rule", "detect_anomaly", "enable_grad", "forward_ad", "functional", "grad", "grad_mode",
           "gradcheck", "gradgradcheck", "graph", "inference_mode", "interop", "no_grad", "profiler", "set_detect_anomaly",
           "set_grad_enabled"]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__, "anomaly_mode", "function")


K = TypeVar("K")
_Edge: TypeAlias = "Tensor | graph.GradientEdge"
_Edges: TypeAlias = "_Edge | Iterable[_Edge]"
_Gradients: TypeAlias = "Tensor | Iterable[Tensor | None] | None"


@overload
def grad(
    outputs: _Edges, inputs: Mapping[K, _Edge], grad_outputs: _Gradients = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: Literal[False] | None = None, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> dict[K, Tensor]: ...  # fmt: skip
@overload
def grad(
    outputs: _Edges, inputs: _Edge | Sequence[_Edge], grad_outputs: _Gradients = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: Literal[False] | None = None, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...  # fmt: skip
@overload
def grad(
    outputs: _Edges, inputs: Mapping[K, _Edge], grad_outputs: _Gradients = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, *, allow_unused: Literal[True], is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> dict[K, Tensor | None]: ...  # fmt: skip
@overload
def grad(
    outputs: _Edges, inputs: _Edge | Sequence[_Edge], grad_outputs: _Gradients = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]: ...  # fmt: skip
def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False,
) -> Any:  # fmt: skip
    """Return the gradients of `outputs` with respect to `inputs`, without changing any ``.grad``.

    Parameters
    ----------
    outputs : Tensor, GradientEdge, or iterable of them
        What is differentiated; the contributions of several outputs are summed.
    inputs : Tensor, GradientEdge, or sequence or dict of them
        Leaves or intermediate results of the graph.
    grad_outputs : Tensor, None, or iterable of them
        The cotangent of each output, with its shape. None stands for 1, for outputs with one element.
    retain_graph : bool, optional
        Whether the graph can be differentiated again. Default: `create_graph`.
    create_graph : bool
        Record the computation of the gradients, so that they can be differentiated.
    only_inputs : bool
        Deprecated and ignored.
    allow_unused : bool, optional
        Return None, instead of raising, for inputs on which the outputs do not depend. Default: `materialize_grads`.
    is_grads_batched : bool
        Axis 0 of each of `grad_outputs` is a batch: the result stacks one gradient per element.
    materialize_grads : bool
        Return zeros instead of None for inputs on which the outputs do not depend.

    Returns
    -------
    tuple of Tensor or None
        One gradient per input, with its shape and dtype; a dict if `inputs` is a dict.

    Raises
    ------
    RuntimeError
        An output does not require grad, an output with several elements has no cotangent, the graph was freed, a saved value was
        overwritten, or an input is unused and `allow_unused` is False.
    TypeError
        An argument is not of the type above.
    ValueError
        ``materialize_grads=True`` with ``allow_unused=False``.

    See Also
    --------
    xpgrad.autograd.backward : accumulate into ``.grad``
    xpgrad.func.grad : the gradient of a function

    Examples
    --------
    >>> import xpgrad as xp
    >>> x, y = xp.tensor(3.0, requires_grad=True), xp.tensor(5.0, requires_grad=True)
    >>> (g,) = xp.autograd.grad(x * x * y, x, create_graph=True)
    >>> g.item()
    30.0
    >>> xp.autograd.grad(g, [x, y])
    (tensor(10.), tensor(6.))
    >>> xp.autograd.grad(x * x, [x, y], allow_unused=True)
    (tensor(6.), None)
    """
    if materialize_grads is not False:
        materialize_grads = as_flag(materialize_grads, "grad", "materialize_grads")
    if allow_unused is not None:
        allow_unused = as_flag(allow_unused, "grad", "allow_unused")
    if materialize_grads and allow_unused is False:
        msg = "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        raise ValueError(msg)
    if allow_unused is None:
        allow_unused = materialize_grads
    if only_inputs is not True and not as_flag(only_inputs, "grad", "only_inputs"):
        msg = "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate, use `xpgrad.autograd.backward`"
        warnings.warn(msg, FutureWarning, stacklevel=2)
    batched: Any = None
    if is_grads_batched is not False and as_flag(is_grads_batched, "grad", "is_grads_batched"):
        from xpgrad._transforms.batch.passes import batched_grads  # loads late: what batches need

        batched = batched_grads
    return requests.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads, batched)


def Variable(data: Any, requires_grad: bool = False) -> Tensor:  # noqa: N802 (PyTorch's name)
    """Return a Tensor that shares the memory of `data`. Deprecated, since Tensors have replaced Variables (ACC-40).

    Parameters
    ----------
    data : Tensor
    requires_grad : bool
    """
    if not isinstance(data, Tensor):
        msg = f"Variable needs a Tensor, but got {type(data).__name__}; make one with `xpgrad.tensor(data, requires_grad=True)`"
        raise TypeError(msg)
    out = data.detach()
    return out.requires_grad_() if requires_grad else out


def variable(*args: Any, **kwargs: Any) -> None:
    """Raise an error: PyTorch has removed this function (ACC-40)."""
    msg = "xpgrad.autograd.variable(...) is deprecated, use xpgrad.tensor(...) instead"
    raise RuntimeError(msg)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name

    def __getattr__(name: str) -> Any:
        # Modules that are used less often load at first use.
        where = {
            "Function": "function", "custom_rule": "_rule", "detect_anomaly": "anomaly_mode",
            "set_detect_anomaly": "anomaly_mode", "no_grad": "grad_mode", "enable_grad": "grad_mode", "set_grad_enabled": "grad_mode",
            "inference_mode": "grad_mode", "set_multithreading_enabled": "grad_mode", "is_multithreading_enabled": "grad_mode",
        }  # fmt: skip
        if name in ("graph", "function", "functional", "anomaly_mode", "forward_ad", "grad_mode", "interop", "profiler"):
            return importlib.import_module(f"xpgrad.autograd.{name}")
        if name in where:
            module = importlib.import_module(f"xpgrad.autograd.{where[name]}")
            found = getattr(module, name)
            globals()[name] = found
            return found
        return refuse(__name__, name)
