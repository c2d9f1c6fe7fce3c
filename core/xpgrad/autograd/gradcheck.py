"""`xpgrad.autograd.gradcheck`: compare the gradients of a function with finite differences.

This module has the public functions and their options; `_gradcheck`, which loads at first use, has the numerics.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from xpgrad._basics.arguments import as_flags, as_real, check_callable
from xpgrad._basics.faces import public_names
from xpgrad.errors import GradcheckError as GradcheckError

__all__ = ["GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "gradcheck", "gradgradcheck"]


def __dir__() -> list[str]:
    return public_names(__name__)


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:  # fmt: skip
    """Check the gradients of a function against central differences.

    Parameters
    ----------
    func : callable
        A function of the inputs that returns a Tensor or a tuple of Tensors, real or complex.
    inputs : Tensor or sequence
        The arguments. Tensors that require grad are checked, and should have double precision.
    eps : float
        The step of the differences.
    atol, rtol : float
        ``|numerical - analytical| <= atol + rtol * |analytical|`` must hold everywhere.
    raise_exception : bool
        If false, return False where a `GradcheckError` would be raised; other exceptions are still raised.
    nondet_tol : float
        By how much two backward passes may differ.
    check_undefined_grad : bool
        Also check that backward handles outputs whose gradient is undefined.
    check_grad_dtypes : bool
        Also check that each gradient has the dtype of its input.
    check_batched_grad : bool
        Also check that the gradients for a batch of cotangents are those of its elements.
    check_batched_forward_grad : bool
        Also check that forward mode under `xpgrad.func.vmap` gives the same tangents. Requires `check_forward_ad`.
    check_forward_ad, check_backward_ad : bool
        Check forward mode, and reverse mode. At least one must be True.
    fast_mode : bool
        Compare one random projection of each Jacobian instead of all its entries.
    masked : bool, optional
        Ignored: it concerns sparse Tensors, which xpgrad does not have.

    Returns
    -------
    bool
        True if all checks pass. False is returned only with ``raise_exception=False``.

    Raises
    ------
    GradcheckError
        A check fails.
    ValueError
        No input requires grad, or `eps` is not positive.
    TypeError
        `func` is not callable, or an argument has the wrong type.
    RuntimeError
        An input has a stride of 0.
    AssertionError
        Neither mode is to be checked, or a batched check is requested without the check that it extends.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.5, 1.0], dtype=xp.float64, requires_grad=True)
    >>> xp.autograd.gradcheck(xp.sin, x)
    True
    >>> xp.autograd.gradcheck(lambda x: x * x.detach(), x, raise_exception=False)
    False
    """
    check_callable(func, "gradcheck")
    eps, atol, rtol, nondet_tol = (
        as_real(v, "gradcheck", w) for w, v in (("eps", eps), ("atol", atol), ("rtol", rtol), ("nondet_tol", nondet_tol))
    )
    if not (math.isfinite(eps) and eps > 0):
        msg = f"gradcheck: `eps` must be positive and finite, but got {eps!r}"
        raise ValueError(msg)
    raise_exception, check_undefined_grad, check_grad_dtypes, check_batched_grad, check_batched_forward_grad = as_flags(
        "gradcheck", raise_exception=raise_exception, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_batched_forward_grad=check_batched_forward_grad,
    )  # fmt: skip
    check_forward_ad, check_backward_ad, fast_mode = as_flags(
        "gradcheck", check_forward_ad=check_forward_ad, check_backward_ad=check_backward_ad, fast_mode=fast_mode
    )
    if not (check_forward_ad or check_backward_ad):
        msg = "Expected at least one of check_forward_ad or check_backward_ad to be True"
        raise AssertionError(msg)
    for batched, mode, option in (
        (check_batched_grad, check_backward_ad, "check_batched_grad=True requires check_backward_ad to be True"),
        (check_batched_forward_grad, check_forward_ad, "check_batched_forward_grad=True requires check_forward_ad to be True"),
    ):
        if batched and not mode:
            msg = f"Setting {option}"
            raise AssertionError(msg)
    from xpgrad.autograd._gradcheck import Options, check  # loads late: a check for tests, with forward mode and batches

    options = Options(
        eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode, check_forward_ad, check_backward_ad,
        check_batched_grad, check_batched_forward_grad,
    )  # fmt: skip
    try:
        check(func, inputs, options)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
    fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """Check the second derivatives of a function against central differences.

    Parameters
    ----------
    func, inputs, eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode, masked
        As for `gradcheck`.
    grad_outputs : Tensor or sequence, optional
        The cotangents with which the gradient is computed; they are checked as inputs. Default: random, the same ones at each call.
    gen_non_contig_grad_outputs : bool
        Make the random cotangents non-contiguous.
    check_batched_grad : bool
        As for `gradcheck`.
    check_fwd_over_rev, check_rev_over_rev : bool
        Differentiate the gradient in forward mode, and in reverse mode. At least one must be True.

    Returns
    -------
    bool
        As for `gradcheck`.

    Raises
    ------
    GradcheckError, ValueError, RuntimeError, AssertionError
        As for `gradcheck`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.5, 1.0], dtype=xp.float64, requires_grad=True)
    >>> xp.autograd.gradgradcheck(xp.sin, x)
    True
    """
    check_callable(func, "gradgradcheck")
    gen_non_contig_grad_outputs, check_fwd_over_rev, check_rev_over_rev = as_flags(
        "gradgradcheck", gen_non_contig_grad_outputs=gen_non_contig_grad_outputs, check_fwd_over_rev=check_fwd_over_rev,
        check_rev_over_rev=check_rev_over_rev,
    )  # fmt: skip
    if not (check_fwd_over_rev or check_rev_over_rev):
        msg = "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        raise AssertionError(msg)
    function, arguments = _numerics().second_order(func, inputs, grad_outputs, gen_non_contig_grad_outputs)
    return gradcheck(
        function, arguments, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, fast_mode=fast_mode,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
    )  # fmt: skip


def get_numerical_jacobian(fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0) -> Any:
    """Compute the Jacobians of the first output of a function by central differences. Deprecated in PyTorch.

    Parameters
    ----------
    fn : callable
        A function of one argument, the tuple of inputs.
    inputs : Tensor or tuple
        The argument of `fn`.
    target : Tensor or tuple, optional
        The Tensors that are varied, in place. Only those that require grad count. Default: `inputs`.
    eps : float
        The step of the differences.
    grad_out : float
        Must be 1.

    Returns
    -------
    tuple of Tensor
        For each input a matrix with a row per element of the input and a column per element of the output.

    Raises
    ------
    ValueError
        `grad_out` is not 1.
    NotImplementedError
        A Tensor is complex; `gradcheck` handles complex Tensors.

    Warns
    -----
    FutureWarning
        Always. Use `xpgrad.func.jacrev` or `gradcheck` instead.
    """
    _warn_deprecated("get_numerical_jacobian", grad_out)
    check_callable(fn, "get_numerical_jacobian", "fn")
    return _numerics().numerical_jacobians(fn, inputs, inputs if target is None else target, as_real(eps, "get_numerical_jacobian", "eps"))


def get_analytical_jacobian(inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0) -> Any:
    """Compute the Jacobians of an output by backward passes. Deprecated in PyTorch.

    Parameters
    ----------
    inputs : Tensor or tuple
        The inputs; only Tensors that require grad count.
    output : Tensor
        A real result that was computed from the inputs.
    nondet_tol : float
        By how much two backward passes may differ.
    grad_out : float
        Must be 1.

    Returns
    -------
    jacobians : tuple of Tensor
        For each input a matrix with a row per element of the input and a column per element of the output.
    reentrant, sizes_ok, types_ok : bool
        Whether two passes agree, and whether the gradients have the shapes and the dtypes of the inputs.

    Raises
    ------
    ValueError
        `grad_out` is not 1, or `output` is complex.
    NotImplementedError
        An input is complex; `gradcheck` handles complex Tensors.

    Warns
    -----
    FutureWarning
        Always. Use `xpgrad.func.jacrev` or `gradcheck` instead.
    """
    _warn_deprecated("get_analytical_jacobian", grad_out)
    return _numerics().analytical_jacobians(inputs, output, as_real(nondet_tol, "get_analytical_jacobian", "nondet_tol"))


def _numerics() -> Any:
    from xpgrad.autograd import _gradcheck  # loads late: as above

    return _gradcheck


def _warn_deprecated(name: str, grad_out: Any) -> None:
    msg = f"`{name}` is deprecated in PyTorch; use `xpgrad.func.jacrev`, or `gradcheck` to compare"
    warnings.warn(msg, FutureWarning, stacklevel=3)
    if grad_out != 1.0:
        msg = f"{name}: Expected grad_out to be 1.0, but got {grad_out!r}; scale the result"
        raise ValueError(msg)
