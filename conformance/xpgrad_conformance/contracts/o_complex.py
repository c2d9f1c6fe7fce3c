"""Group O: the gradients of complex Tensors, and of real Tensors in complex programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpgrad_conformance.contract import contract

#: Points away from zero and from the branch cuts of the logarithm and the square root.
points = st.lists(st.tuples(st.floats(0.3, 1.5), st.sampled_from([-1, 1]), st.floats(0.3, 1.2)), min_size=3, max_size=3)
W = 0.7 - 1.3j

# Each function uses only names that NumPy and the library share, so that NumPy computes the differences in double precision.
REAL_VALUED: dict[str, Callable[[Any, Any], Any]] = {
    "|z|²": lambda xp, z: xp.sum(xp.real(z * xp.conj(z))),
    "Re": lambda xp, z: xp.sum(xp.real(z)),
    "Im": lambda xp, z: xp.sum(xp.imag(z)),
    "Re of a multiple": lambda xp, z: xp.sum(xp.real(z * W)),
    "Im of a quotient": lambda xp, z: xp.sum(xp.imag(W / z + z / W)),
    "power": lambda xp, z: xp.sum(xp.real(z**3)),
    "exp": lambda xp, z: xp.sum(xp.imag(xp.exp(z))),
    "log and sqrt": lambda xp, z: xp.sum(xp.real(xp.log(z) * xp.sqrt(z))),
    "sin and cosh": lambda xp, z: xp.sum(xp.imag(xp.sin(z) * xp.cosh(z))),
    "abs": lambda xp, z: xp.sum(xp.abs(z) ** 3),
    "not holomorphic inside": lambda xp, z: xp.sum(xp.real(xp.exp(xp.conj(z) * z * 1j) * z)),
    "sum, then abs": lambda xp, z: xp.abs(xp.sum(z * z)),
    "mean and product": lambda xp, z: xp.real(xp.mean(z) * xp.prod(z)),
    "slices": lambda xp, z: xp.sum(xp.real(z[:-1] * xp.conj(z[1:]))),
    "matmul": lambda xp, z: xp.imag(xp.sum(xp.matmul(z[:, None], xp.conj(z[None, :]) * W)) * z[0]),
}


def numbers(drawn: Any) -> np.ndarray[Any, Any]:
    """Convert the drawn points to complex numbers."""
    return np.asarray([complex(x, s * y) for x, s, y in drawn])


def gradient(f: Callable[[Any], Any], at: np.ndarray[Any, Any], eps: float = 1e-5) -> np.ndarray[Any, Any]:
    """Return ``dL/dx + i dL/dy`` of a real function, by central differences."""
    found = np.zeros(at.shape, complex)
    for k in np.ndindex(at.shape):
        for direction in (1, 1j):
            step = np.zeros(at.shape, complex)
            step[k] = eps * direction
            found[k] += direction * (f(at + step) - f(at - step)) / (2 * eps)
    return found


def assert_close(lib: Any, x: Any, expected: Any) -> None:
    """Assert equality up to the error of differences or of single precision."""
    size = float(np.max(np.abs(expected), initial=1.0))
    tolerance = 1e-6 if lib.capabilities["float64"] else 1e-4
    lib.equal(x, expected, rtol=tolerance, atol=tolerance * size)


@contract("CPX-01", requires="complex", draw={"drawn": points})
def gradient_of_a_real_function(lib: Any, drawn: Any) -> None:
    at = numbers(drawn)
    for name, program in REAL_VALUED.items():
        with lib.case(name):
            z = lib.tensor(at, dtype=lib.complex)
            program(lib.xp, z).backward()
            assert z.grad.dtype == lib.dtype(lib.complex)
            assert_close(lib, z.grad, gradient(partial(program, np), at))
    # Known gradients: twice those of the definition in PyTorch's note, and the conjugates of JAX's.
    z = lib.tensor(at, dtype=lib.complex)
    for name, expected in [("|z|²", 2 * at), ("Re", np.ones_like(at)), ("Im", np.full_like(at, 1j))]:
        with lib.case(name):
            lib.equal(lib.grad(REAL_VALUED[name](lib.xp, z), z)[0], expected)


#: A function s, and its partial derivatives ∂s/∂z and ∂s/∂z*.
WIRTINGER: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "z w": (lambda xp, z: z * W, lambda z: W + 0 * z, lambda z: 0 * z),
    "exp z": (lambda xp, z: xp.exp(z), np.exp, lambda z: 0 * z),
    "z³": (lambda xp, z: z * z * z, lambda z: 3 * z * z, lambda z: 0 * z),
    "1/z": (lambda xp, z: 1 / z, lambda z: -1 / z**2, lambda z: 0 * z),
    "z*": (lambda xp, z: xp.conj(z), lambda z: 0 * z, lambda z: 1 + 0 * z),
    "z z*": (lambda xp, z: z * xp.conj(z), np.conj, lambda z: z),
    "z² z*": (lambda xp, z: z * z * xp.conj(z), lambda z: 2 * z * np.conj(z), lambda z: z * z),
    "exp(z*) z": (lambda xp, z: xp.exp(xp.conj(z)) * z, lambda z: np.exp(np.conj(z)), lambda z: np.exp(np.conj(z)) * z),
}


@contract("CPX-02", requires="complex", draw={"drawn": points, "turn": st.floats(0.2, 3.0)})
def the_chain_rule(lib: Any, drawn: Any, turn: float) -> None:
    at = numbers(drawn)
    seed = np.exp(1j * turn) * (1 + np.arange(len(at)))
    for name, (s, holomorphic, other) in WIRTINGER.items():
        with lib.case(name):
            z = lib.tensor(at, dtype=lib.complex)
            expected = np.conj(seed) * other(at) + seed * np.conj(holomorphic(at))
            (g,) = lib.grad(s(lib.xp, z), z, lib.constant(seed, lib.complex))
            assert_close(lib, g, expected)


@contract("CPX-03", requires="complex", draw={"drawn": points, "factor": st.floats(0.5, 2.0)})
def from_complex_to_real(lib: Any, drawn: Any, factor: float) -> None:
    at = numbers(drawn)
    seed = factor * (1 + np.arange(len(at)))
    table: list[tuple[str, Callable[[Any, Any], Any], Any]] = [  # s, ∂s/∂z*
        ("abs", lambda xp, z: xp.abs(z), at / (2 * np.abs(at))),
        ("angle", lambda xp, z: xp.atan2(xp.imag(z), xp.real(z)), 1j / (2 * np.conj(at))),
        ("real", lambda xp, z: xp.real(z), np.full_like(at, 0.5)),
        ("imag", lambda xp, z: xp.imag(z), np.full_like(at, 0.5j)),
        ("|z|²", lambda xp, z: xp.real(z * xp.conj(z)), at),
    ]
    for name, s, conjugate in table:
        with lib.case(name):
            z = lib.tensor(at, dtype=lib.complex)
            y = s(lib.xp, z)
            assert y.dtype == lib.dtype(lib.real)
            y.backward(lib.constant(seed))
            assert_close(lib, z.grad, 2 * seed * conjugate)
    z = lib.tensor(3 + 4j, dtype=lib.complex)
    lib.xp.abs(z).backward()
    lib.equal(z.grad, 0.6 + 0.8j)


@contract("CPX-04", requires="complex", draw={"drawn": points, "turn": st.floats(0.2, 3.0)})
def real_inputs(lib: Any, drawn: Any, turn: float) -> None:
    w = numbers(drawn)
    at = 0.5 + np.arange(len(w))
    seed = np.exp(1j * turn) * (1 + np.arange(len(w)))
    table: list[tuple[str, Callable[[Any, Any], Any], Any]] = [  # s(x), ds/dx
        ("x w", lambda x, w: x * w, w),
        ("w x", lambda x, w: w * x, w),
        ("x + w", lambda x, w: x + w, np.ones_like(w)),
        ("w - x", lambda x, w: w - x, -np.ones_like(w)),
        ("x / w", lambda x, w: x / w, 1 / w),
        ("w / x", lambda x, w: w / x, -w / at**2),
        ("by a Python number", lambda x, w: x * (2 - 3j), np.full_like(w, 2 - 3j)),
    ]
    for name, s, slope in table:
        with lib.case(name):
            x = lib.tensor(at)
            y = s(x, lib.constant(w, lib.complex))
            assert y.dtype == lib.dtype(lib.complex)
            y.backward(lib.constant(seed, lib.complex))
            assert x.grad.dtype == lib.dtype(lib.real)
            assert_close(lib, x.grad, np.real(seed * np.conj(slope)))
    # A real input that is broadcast: its gradient is summed as well.
    x = lib.tensor(2.0)
    (x * lib.constant(w, lib.complex)).backward(lib.constant(seed, lib.complex))
    assert x.grad.dtype == lib.dtype(lib.real)
    assert_close(lib, x.grad, np.sum(np.real(seed * np.conj(w))))


@contract("CPX-05", requires="complex", draw={"drawn": points})
def real_functions_through_complex_numbers(lib: Any, drawn: Any) -> None:
    xp, parts = lib.xp, numbers(drawn)
    table: list[tuple[str, Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = [
        ("Re exp(ix)", lambda x, y: xp.real(xp.exp(lib.cast(x, lib.complex) * 1j)) * y, lambda x, y: xp.cos(x) * y),
        ("|x + iy|", lambda x, y: xp.abs(x + 1j * y), lambda x, y: xp.sqrt(x * x + y * y)),
        ("(x + iy)(x - iy)", lambda x, y: xp.real((x + 1j * y) * (x - 1j * y)), lambda x, y: x * x + y * y),
        ("Im (x + iy)²", lambda x, y: xp.imag((x + 1j * y) ** 2), lambda x, y: 2 * x * y),
        ("Re log(x + iy)", lambda x, y: xp.real(xp.log(x + 1j * y)), lambda x, y: xp.log(x * x + y * y) / 2),
    ]
    for name, around, straight in table:
        with lib.case(name):
            grads = []
            for f in (around, straight):
                x, y = lib.tensor(parts.real), lib.tensor(parts.imag)
                out = f(x, y)
                assert out.dtype == lib.dtype(lib.real)
                xp.sum(out * out).backward()
                assert x.grad.dtype == y.grad.dtype == lib.dtype(lib.real)
                grads.append((x.grad, y.grad))
            for g, h in zip(*grads, strict=True):
                assert_close(lib, g, lib.value(h))


@contract("CPX-06", requires="complex", draw={"drawn": points})
def conjugates_parts_and_casts(lib: Any, drawn: Any) -> None:
    xp, at = lib.xp, numbers(drawn)
    seed = np.conj(at) * (2 + 1j)
    z, seeds = lib.tensor(at, dtype=lib.complex), lib.constant(seed, lib.complex)
    lib.equal(lib.grad(xp.conj(z), z, seeds)[0], np.conj(seed))
    # Real and imaginary parts, and complex numbers made of parts.
    for part, factor in [(xp.real, 1), (xp.imag, 1j)]:
        lib.equal(lib.grad(part(z), z, lib.constant(seed.real))[0], factor * seed.real)
    x, y = lib.tensor(at.real), lib.tensor(at.imag)
    for g, part in zip(lib.grad(x + 1j * y, (x, y), seeds), (seed.real, seed.imag), strict=True):
        lib.equal(g, part)
    if hasattr(lib.ns, "view_as_real"):
        pairs = np.stack([seed.real, seed.imag], axis=-1)
        lib.equal(lib.grad(lib.ns.view_as_real(z), z, lib.constant(pairs))[0], seed)
        for g, part in zip(lib.grad(lib.ns.complex(x, y), (x, y), seeds), (seed.real, seed.imag), strict=True):
            lib.equal(g, part)
    # Writes into the parts, and into parts of them.
    for part, factor in [(xp.real, 1), (xp.imag, 1j)]:
        w = z * 1
        part(w)[1:][0:] = lib.constant(seed.imag[1:]) * 2
        part(w[:1])[...] = y[:1] * 3
        value = np.concatenate([3 * at.imag[:1], 2 * seed.imag[1:]])
        lib.equal(w, at.imag * 1j + value if factor == 1 else at.real + value * 1j)
        for g, expected in zip(
            lib.grad(w, (z, y), seeds),
            (1j * seed.imag if factor == 1 else seed.real, np.where(np.arange(len(at)) == 0, 3 * np.real(seed / factor), 0.0)),
            strict=True,
        ):
            lib.equal(g, expected)
    # Casts in both directions.
    (g,) = lib.grad(lib.cast(x, lib.complex), x, seeds)
    assert g.dtype == lib.dtype(lib.real)
    lib.equal(g, seed.real)
    for cast in (lib.cast, lambda v, dtype: xp.asarray(v, dtype=lib.dtype(dtype))):
        (g,) = lib.grad(cast(z, lib.real), z, lib.constant(seed.real))
        assert g.dtype == lib.dtype(lib.complex)
        lib.equal(g, seed.real + 0j)
        with lib.warns(UserWarning, "Casting complex values to real discards the imaginary part"):
            cast(z, lib.real)


@contract("CPX-07", requires="complex", draw={"drawn": points})
def abs_sign_and_angle(lib: Any, drawn: Any) -> None:
    xp, at = lib.xp, numbers(drawn)
    zero = lib.tensor(np.asarray([0j, 3 + 4j, 0j]), dtype=lib.complex)
    xp.sum(xp.abs(zero)).backward()
    lib.equal(zero.grad, [0, 0.6 + 0.8j, 0])
    for name, f in [
        ("sign", lambda xp, z: xp.sum(xp.real(xp.sign(z) * W))),
        ("angle", lambda xp, z: xp.sum(xp.atan2(xp.imag(z), xp.real(z)))),
    ]:
        with lib.case(name):
            z = lib.tensor(at, dtype=lib.complex)
            f(xp, z).backward()
            assert_close(lib, z.grad, gradient(partial(f, _Numpy), at))


class _Numpy:
    """NumPy's functions with the names and meanings of the standard: the sign of a complex number is z/|z|."""

    sum, real, imag, atan2 = staticmethod(np.sum), staticmethod(np.real), staticmethod(np.imag), staticmethod(np.arctan2)
    sign = staticmethod(lambda z: z / np.abs(z))


@contract("CPX-08", requires="complex", draw={"drawn": points})
def descent(lib: Any, drawn: Any) -> None:
    """Check that gradient descent on a complex Tensor equals gradient descent on its two real parts."""
    xp, at = lib.xp, numbers(drawn)
    goal = lib.constant(np.full(at.shape, -1 + 2j), lib.complex)
    z = lib.tensor(at, dtype=lib.complex)
    x, y = lib.tensor(at.real), lib.tensor(at.imag)
    losses = []
    for _ in range(10):
        d = z - goal
        loss = xp.sum(xp.real(d * xp.conj(d)))
        loss.backward()
        xp.sum((x + 1) * (x + 1) + (y - 2) * (y - 2)).backward()
        losses.append(float(loss.item()))
        with lib.ns.no_grad():
            # NB: not in place, so that it also runs on immutable arrays. The gradient is 2 ∂L/∂z*: a step of 0.45 is one of 0.9 by ∂L/∂z*.
            z, x, y = (t.detach() - 0.45 * t.grad for t in (z, x, y))
        for t in (z, x, y):
            t.requires_grad_()
        assert_close(lib, xp.real(z), lib.value(x))
        assert_close(lib, xp.imag(z), lib.value(y))
    assert losses[1:3] < losses[:2]
    assert_close(lib, z, lib.value(goal))


@contract("CPX-09", requires="complex")
def gradients_are_given_in_the_owners_dtype(lib: Any) -> None:
    z = lib.tensor([1 + 2j, 3j], dtype=lib.complex)
    for wrong in (lib.real, "int32", *(["complex64"] if lib.complex == "complex128" else [])):
        with lib.case(wrong), lib.raises(RuntimeError, "attempting to assign a gradient with dtype"):
            z.grad = lib.constant([1, 2], wrong)
        assert z.grad is None
    z.grad = lib.constant([1j, 2], lib.complex)
    lib.equal(z.grad, [1j, 2])
    # The result is complex even if its imaginary part is 0.
    for at in (1 + 2j, 2 + 0j):
        z = lib.tensor(at, dtype=lib.complex)
        with lib.case(at), lib.raises(RuntimeError, "only for real scalar outputs"):
            (z * lib.xp.conj(z)).backward()
        assert z.grad is None


@contract("CPX-10", requires="complex float64")
def gradcheck(lib: Any) -> None:
    xp = lib.xp
    z, x = lib.tensor([1 + 2j, 0.7 - 1.1j], dtype="complex128"), lib.tensor([0.3, 0.4])
    right: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
        ("complex to complex", lambda z: z * z * xp.conj(z), (z,)),
        ("complex to real", lambda z: xp.abs(z) + xp.imag(z * z), (z,)),
        ("real to complex", lambda x: x * W, (x,)),
        ("all together", lambda z, x: (z * x, xp.abs(z), xp.imag(x * 1j * xp.conj(z))), (z, x)),
    ]
    for name, f, inputs in right:
        with lib.case(name):
            assert lib.ag.gradcheck(f, inputs) is True
    # Gradients that are wrong in the imaginary part, or in the real part, only.
    wrong: list[tuple[str, Any, Any, tuple[Any, ...]]] = [
        ("forgotten conjugate", lambda ctx, z: z * W, lambda ctx, g: g * W, (z,)),
        ("an imaginary part lost", lambda ctx, z: z * 2, lambda ctx, g: xp.real(g) * 2 + 0j, (z,)),
        ("a real part lost", lambda ctx, z: z * 2, lambda ctx, g: xp.imag(g) * 2j, (z,)),
        ("half of Im", lambda ctx, z: xp.imag(z), lambda ctx, g: g * 0.5j, (z,)),
        ("the real part of the factor only", lambda ctx, x: x * W, lambda ctx, g: xp.real(g) * W.real, (x,)),
    ]
    for name, forward, backward, inputs in wrong:
        with lib.case(name), lib.raises(RuntimeError, "Jacobian mismatch"):
            lib.ag.gradcheck(lib.fn(forward, backward).apply, inputs)


@contract("CPX-11", requires="complex")
def tangents_through_writes_into_parts(lib: Any) -> None:
    fw = lib.module("autograd.forward_ad")
    a, s = np.asarray([0.5, 1.5]), np.asarray([1.0, -2.0])
    for part, other in (("real", "imag"), ("imag", "real")):
        for name, write, written in [
            ("copy", lambda z, d: z.copy_(d * d * d), lambda p, x: x**3),
            ("multiply", lambda z, d: z.mul_(d), lambda p, x: p * x),
        ]:

            def loss(x: Any, part: str = part, other: str = other, written: Any = written) -> Any:
                z = x * x * (1 + 2j)
                return np.sum(written(getattr(z, part), x) ** 2 + getattr(z, other) ** 2)

            with lib.case((part, name)), fw.dual_level():
                x = lib.tensor(a)
                d = fw.make_dual(x, lib.constant(s))
                z = lib.cast(d * d, lib.complex) * (1 + 2j)
                write(getattr(z, part), d)
                out = lib.xp.sum(lib.xp.real(z * lib.xp.conj(z)))
                primal, tangent = fw.unpack_dual(out)
                h = 1e-4
                lib.equal(primal, loss(a), rtol=1e-4)
                lib.equal(tangent, (loss(a + h * s) - loss(a - h * s)) / (2 * h), rtol=1e-4)
                (found,) = lib.grad(tangent, x)
                units = np.eye(2) * h
                bends = [
                    (loss(a + h * s + u) - loss(a + h * s - u) - loss(a - h * s + u) + loss(a - h * s - u)) / (4 * h * h) for u in units
                ]
                lib.equal(found, bends, rtol=1e-3)
