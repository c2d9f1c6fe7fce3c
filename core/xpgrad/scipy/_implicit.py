"""The implicit function theorem as one node: the solution of ``residual(x) = 0`` as a function of the residual's dependencies.

The dependencies are found in the graph of the residual's value at the solution, which is cut at nodes that existed before, so that a
separate backward pass computes the gradients of the parameters. The backward pass of the node solves one linear system with the Jacobian.
For higher derivatives the residual is evaluated again at the solution with its history, and the linear system becomes another equation with
a differentiable solution.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable
from typing import Any

from xpgrad._basics.dtypes import finfo
from xpgrad._modes import state, switches
from xpgrad._modes.batch_levels import active_levels, at_levels
from xpgrad._tape.edges import GradientEdge
from xpgrad._tape.node import ListNode, freed_error
from xpgrad._tape.requests import grad
from xpgrad._tape.saved import with_history
from xpgrad._transforms.batch.batch import enter
from xpgrad.func import jacrev, jvp, vjp
from xpgrad.linalg import solve
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import arange
from xpgrad.rules.elementwise import cos
from xpgrad.rules.manipulation import stack
from xpgrad.scipy._cutting import Once, cut_graph

LINEAR_SOLVERS = ("auto", "dense", "cg", "gmres")
#: Maximum number of unknowns for which the Jacobian is computed and factorised; for more, only products with vectors are computed.
_DENSE = 512


def linear_solver_of(name: str, given: Any) -> Any:
    """Check the argument `linear_solver` of a public function, and return the solver.

    Raises
    ------
    ValueError
        `given` is neither a known name nor callable.
    """
    if callable(given) or (isinstance(given, str) and given in LINEAR_SOLVERS):
        return given
    msg = f"{name}: `linear_solver` must be one of {LINEAR_SOLVERS}, or a function of a product and a right-hand side, but got {given!r}"
    raise ValueError(msg)


def implicit(residual: Callable[[Any], Any], solution: Any, how: Any, *, symmetric: bool = False) -> Any:
    """Return a solution with the history that the implicit function theorem gives it.

    Parameters
    ----------
    residual : callable
        From a vector to a vector of the same length, whatever it closes over.
    solution : Tensor, shape (n,)
        Where it is zero; without history.
    how : str or callable
        How linear systems with its Jacobian are solved: see `LINEAR_SOLVERS`. ``"auto"`` makes the Jacobian of up to 512 unknowns, and
        multiplies with it beyond (by CG where it is symmetric, else by GMRES). A callable gets the function that multiplies a vector with
        the matrix, and the right-hand side, as vectors of NumPy's, and returns the solution.
    symmetric : bool
        The Jacobian is symmetric and positive definite, as at a minimum.

    Returns
    -------
    Tensor, shape (n,)

    Raises
    ------
    RuntimeError
        When it is differentiated: if the Jacobian is singular, or the linear solver does not converge.
    NotImplementedError
        When many tangents at once are differentiated.
    """
    solution = solution.detach()
    value, _, links = cut_graph(residual, solution)
    if value.shape != solution.shape:
        msg = f"the residual must have the shape of the unknowns, {solution.shape}, but has shape {value.shape}"
        raise ValueError(msg)
    out = solution.clone()
    if links and state.is_grad_enabled():
        node: Any = ImplicitNode.made_now()
        node.cls, node.e = type(out), tuple(link.inner for link in links)
        node.residual, node.how, node.symmetric = residual, how, symmetric
        node.solution, node.value, node.links = solution, value, links
        node.stream = (node.cls, node.cls.backend.current_stream(out.device)) if out.backend.capabilities.streams else None
        out._node = node
    _carry_tangents(residual, out, value, how, symmetric)
    return out


class ImplicitNode(ListNode):
    """The node of a solution.

    Attributes
    ----------
    residual : callable
    solution : Tensor
        Without history.
    value : Tensor or None
        The residual's value there, with its graph, which ends in `links`; None once it is freed.
    """

    __slots__ = ("cls", "how", "links", "residual", "solution", "symmetric", "value")

    title = "ImplicitBackward0"
    saves = True
    cls: Any
    residual: Any
    how: Any
    symmetric: bool
    solution: Any
    value: Any
    links: Any

    def grads(self, g: Any) -> list[Any]:
        if self.value is None:
            raise freed_error(self)
        self._check()
        return [None if v is None else v._array for v in self._once(self.cls.backend.wrap(g))]

    def _once(self, g: Any) -> list[Any]:
        """Compute the gradients of the parameters without history."""
        u = _solve_jacobian(self.residual, self.solution, self.value.depth, g, self.how, self.symmetric, transposed=True)
        return list(grad([self.value], [GradientEdge(link, 0) for link in self.links], [-u], retain_graph=True, allow_unused=True))

    def graph_grads(self, g: Any) -> list[Any]:
        if self.value is None:
            raise freed_error(self)
        residual, how, symmetric = self.residual, self.how, self.symmetric
        value, recording = self._check(), state.is_grad_enabled()
        if not (recording or value._has_tangent() or g._has_tangent()):  # many cotangents at once
            return self._once(g)
        x = with_history(self.cls.backend, self.solution._array, self) if recording else self.solution.clone()
        if g.depth and recording:
            return [None if v is None else Once.apply(v, _ONE_BY_ONE, x, g) for v in self._once(g)]
        _carry_tangents(residual, x, value, how, symmetric)
        u = _solve_jacobian(residual, x, value.depth, g, how, symmetric, transposed=True)
        u = implicit(lambda v: vjp(residual, x)[1](v)[0] - g, u, how, symmetric=symmetric)
        # Evaluate the residual again at the solution with its history, which stays cut off until the gradients of the parameters exist.
        value, own, links = cut_graph(residual, x)
        inner = {link.inner: link for link in links}
        parameters = [e.original for e in self.e]  # in a pass inside of another one a node's edges lead to its shadows
        if not inner.keys() >= set(parameters):
            msg = "evaluated again, for a derivative of higher order, the residual depended on other Tensors; make it a pure function"
            raise RuntimeError(msg)
        found = grad([value], [GradientEdge(inner[e], 0) for e in parameters], [-u], create_graph=recording, allow_unused=True)
        for link in (own, *inner.values()):
            link.open()
        return list(found)

    def _check(self) -> Any:
        """Return the residual at the solution; raise if a value on which it depends has changed: the Jacobian would be another one."""
        # Evaluate it as in the forward pass, because a recorded computation may round differently.
        with at_levels(active_levels()[: self.value.depth]):
            value, _, _ = cut_graph(self.residual, self.solution)
        moved = _norm(value.detach() - self.value.detach())
        if moved != 0.0:
            msg = (
                "the residual has another value at the solution than when it was solved: a Tensor that it depends on was modified by an "
                "inplace operation, or it is not a pure function. Solve again, or clone the Tensor before it is written to"
            )
            raise RuntimeError(msg)
        return value

    def held(self) -> list[Any]:
        return [] if self.value is None else [self.solution._array]

    def release(self) -> None:
        self.value = None

    def released(self) -> bool:
        return self.value is None


def _carry_tangents(residual: Any, x: Any, value: Any, how: Any, symmetric: bool) -> None:
    """Give a solution its tangents: at each level, minus the inverse of the Jacobian times the tangent of the residual.

    A tangent is itself the solution of an equation, which has a history, and the tangents of the levels outside.

    Parameters
    ----------
    residual : callable
    x : Tensor
        The solution, with its history.
    value : Tensor
        The residual at `x`, with the tangents that come from all else.
    how, symmetric
        As for `_solve_jacobian`.

    Raises
    ------
    NotImplementedError
        Many tangents at once, as in `jacfwd`, have tangents of an outer level.
    """
    mode = state.current()
    levels: Any = () if mode is None or not mode.levels or not mode.levels.running else mode.levels
    for i, level in enumerate(levels):
        if level.tangent(value) is None or level.tangent(x) is not None:  # the forward pass has set it
            continue
        before = state.current()
        try:
            state.put(state.mode_with(levels=levels.levels_outside(i + 1)))
            moved = level.tangent(residual(x))
            state.put(state.mode_with(levels=levels.levels_outside(i)))
            t = -_solve_jacobian(residual, x, value.depth, moved, how, symmetric, transposed=False)
            carries = x._has_tangent() or moved._has_tangent()
            if t.depth:
                if carries:
                    raise NotImplementedError(_ONE_BY_ONE)
                if state.is_grad_enabled():
                    t = Once.apply(t, _ONE_BY_ONE, x, moved)
            elif carries or (state.is_grad_enabled() and (x.requires_grad or moved.requires_grad)):
                t = implicit(_linearise(residual, x, moved), t, how, symmetric=symmetric)
        finally:
            state.put(before)
        level.set_tangent(x, t)


def _linearise(residual: Any, x: Any, moved: Any) -> Callable[[Any], Any]:
    """Return the equation of a tangent: the Jacobian at `x` times the tangent, plus how the residual moves for other reasons."""
    return lambda v: jvp(residual, (x,), (v,))[1] + moved


_ONE_BY_ONE = (
    "derivatives of higher order of a solution of equations are not taken for many cotangents or tangents at once, as `jacrev` of `jacrev` "
    "and `jacfwd` of `jacfwd` do; take `jacfwd` of `jacrev`, or take the inner ones one by one, e.g. with "
    "`xpgrad.autograd.functional.jacobian(f, x, create_graph=True)`"
)


def _solve_jacobian(residual: Any, x: Any, depth: int, b: Any, how: Any, symmetric: bool, *, transposed: bool) -> Any:
    """Solve ``J u = b``, or ``J.T u = b`` if `transposed`, without recording, where J is the residual's Jacobian at `x`.

    Parameters
    ----------
    residual : callable
    x, b : Tensor, shape (n,)
    depth : int
        Of the residual's value: it is an element of the outermost `depth` batches. `b` may be one of more, the batches of a pass.
    how : str or callable
        The option `linear_solver` of the public functions.
    symmetric, transposed : bool
    """
    x, b = x.detach(), b.detach()
    if not x.shape[0]:
        return b
    # For a whole batch of right-hand sides the factors are found once.
    dense = how == "dense" or depth > 0 or (how == "auto" and (x.shape[0] <= _DENSE or b.depth > 0))
    with switches.no_grad(), at_levels(active_levels()[:depth]):
        found = _by_factors(residual, x, b, transposed) if dense else _by_products(residual, x, b, how, symmetric, transposed)
        return found.detach()


def _by_factors(residual: Any, x: Any, b: Any, transposed: bool) -> Any:
    """Solve ``J u = b``, or ``J.T u = b`` if `transposed`, with the dense Jacobian; raise RuntimeError if it is numerically singular."""
    jacobian = jacrev(residual)(x).detach()
    matrix = jacobian.mT if transposed else jacobian
    probe = cos(arange(x.shape[0], dtype=x.dtype, device=x.device))  # a vector that structured matrices are unlikely to treat specially
    try:
        found, grown = solve(matrix, b), solve(matrix, probe)
    except (ValueError, RuntimeError, ArithmeticError) as exc:  # libraries raise different errors for a singular matrix
        raise _singular() from exc
    sizes = [_norm(v) for v in (jacobian, grown, probe)]
    if not math.isfinite(sizes[1]) or 10 * float(finfo(x.dtype).eps) * sizes[0] * sizes[1] > sizes[2]:
        raise _singular()
    return found


def _norm(v: Any) -> float:
    """Return the Euclidean norm if it is the same for all elements of a batch, else 0."""
    total = (v * v).sum()
    while total.depth and total._array.level is None:
        total = total._array.value
    return 0.0 if total.depth else float(total) ** 0.5


def _singular() -> RuntimeError:
    return RuntimeError(
        "the Jacobian of the residual is singular at the solution, which therefore is not a differentiable function of the parameters: "
        "solutions near it are not unique. Make the problem well posed, e.g. by a regularising term"
    )


def _by_products(residual: Any, x: Any, b: Any, how: Any, symmetric: bool, transposed: bool) -> Any:
    """Solve ``J u = b``, or ``J.T u = b``, with products only: by an iterative method of SciPy or by `how`; see `_solve_jacobian`."""
    if b.depth:  # a batch of cotangents, as in `jacrev`: each alone, because SciPy reads the numbers
        level, value, one = b._array.level, b._array.value, (how, symmetric, transposed)
        rows = _by_products(residual, x, value, *one) if level is None else stack([_by_products(residual, x, v, *one) for v in value])
        return enter(rows, level, type(b))
    sparse: Any = importlib.import_module("scipy.sparse.linalg")
    _, pull = vjp(residual, x)

    def into(v: Any) -> Any:
        return asarray(v, dtype=x.dtype, device=x.device, copy=True)

    def product(v: Any) -> Any:
        u = into(v).reshape(x.shape)
        out = pull(u)[0] if transposed or symmetric else jvp(residual, (x,), (u,))[1]
        return out.detach().numpy().astype("float64")

    right = b.numpy().astype("float64")
    if callable(how):
        return into(how(product, right)).reshape(x.shape)
    name = how if how != "auto" else ("cg" if symmetric else "gmres")
    n = x.shape[0]
    operator = sparse.LinearOperator((n, n), matvec=product, dtype="float64")
    rtol = max(1e-12, 4 * float(finfo(x.dtype).eps))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # divisions by zero, where the matrix is singular: seen below
        found, info = getattr(sparse, name)(operator, right, rtol=rtol, atol=0.0, maxiter=max(1000, 2 * n))
    if info or not all(map(math.isfinite, found)):
        msg = (
            f"{name} did not solve the linear system of the implicit function theorem ({n} unknowns) in its iterations: the Jacobian of "
            "the residual may be singular or ill-conditioned; give `linear_solver='dense'`, or a function that solves it"
        )
        raise RuntimeError(msg)
    return into(found)
