"""The generators of `numpy.random` in code that was written for NumPy: what they draw are Tensors, and parameters may be Tensors.

A draw from a distribution that is moved and scaled depends on the location and the scale, so it has their derivatives; it has the value
that NumPy draws. So do elements that are drawn from a Tensor. Derivatives with respect to other parameters are refused.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from xpgrad._modes import state
from xpgrad._modes.setting import Setting
from xpgrad._numpy.operands import can_read_values
from xpgrad._numpy.semantics import first_tensor, is_followed, is_running
from xpgrad._numpy.table import FUNCTIONS
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import flatten, tree_map

__all__ = ["is_generator_class", "make_generator_class", "make_global_draw", "share_generator"]

#: NumPy: `chapters` loaded it.
_np: Any = sys.modules["numpy"]


def _size_of(size: Any, *parameters: Any) -> Any:
    """Return the shape of a draw with parameters of some shapes; None for a number."""
    shape = _np.broadcast_shapes(*map(_np.shape, parameters))
    if size is None:
        return shape or None
    size = (size,) if hasattr(size, "__index__") else tuple(size)
    if len(shape) > len(size) or any(n not in (1, m) for n, m in zip(shape[::-1], size[::-1])):
        msg = f"the parameters have the shape {shape}, which does not fit the size {size}"
        raise ValueError(msg)
    return size


def _move(draw: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    if isinstance(scale, Tensor) and can_read_values(scale) and bool((scale.detach() < 0).any()):
        msg = "scale < 0"
        raise ValueError(msg)
    return loc + scale * draw(size=_size_of(size, loc, scale))


def _stretch(draw: Any, scale: Any = 1.0, size: Any = None) -> Any:
    return _move(draw, 0.0, scale, size)


def _lognormal(draw: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
    return _np.exp(_move(lambda size: _np.log(draw(size=size)), mean, sigma, size))


def _uniform(draw: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    return low + (high - low) * draw(size=_size_of(size, low, high))


def _gamma(draw: Any, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
    return _stretch(lambda size: draw(shape, size=size), scale, _size_of(size, shape, scale))


def _multivariate_normal(draw: Any, mean: Any, cov: Any, size: Any = None, *args: Any, **options: Any) -> Any:
    return mean + draw(_np.zeros(_np.shape(mean)), cov, size, *args, **options)


def _choice(draw: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True) -> Any:
    options = {} if shuffle else {"shuffle": False}  # a `RandomState` has neither
    if isinstance(a, Tensor) and a.ndim:
        return FUNCTIONS["take"].call(a, draw(a.shape[axis], size, replace, p, **options), axis)
    return draw(a, size, replace, p, **options)


def _permutation(draw: Any, x: Any, axis: int = 0) -> Any:
    return FUNCTIONS["take"].call(x, draw(x.shape[axis]), axis) if isinstance(x, Tensor) and x.ndim else draw(x)


def _shuffle(draw: Any, x: Any, axis: int = 0) -> None:
    x[...] = _permutation(draw, x, axis)


#: Functions that get the drawing function and its arguments, of which some are Tensors, by the name of the method.
_DRAWS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("gumbel", "laplace", "logistic", "normal"), _move),
    **dict.fromkeys(("exponential", "rayleigh"), _stretch),
    "choice": _choice,
    "gamma": _gamma,
    "lognormal": _lognormal,
    "multivariate_normal": _multivariate_normal,
    "permutation": _permutation,
    "shuffle": _shuffle,
    "uniform": _uniform,
}


def _draw(name: str, generator: Any, numpys: Any, convert: Callable[[Any], Any], args: Any, options: Any) -> Any:
    """Call a method of a generator with arguments that may be Tensors."""
    draw = functools.partial(getattr(numpys, "permutation" if name == "shuffle" else name), generator)
    if not is_running():
        return getattr(numpys, name)(generator, *args, **options)
    if first_tensor((args, options)) is None:
        return _draw_arrays(functools.partial(getattr(numpys, name), generator), convert, args, options)
    constants = functools.partial(_draw_constants, name, draw, convert)
    return _DRAWS[name](constants, *args, **options) if name in _DRAWS else constants(*args, **options)


def _draw_arrays(draw: Any, convert: Callable[[Any], Any], args: Any, options: Any) -> Any:
    """Draw arrays, and convert them."""
    with Setting(state.VARIABLE, state.mode_with(numpy=None)):  # methods that the method calls get arrays
        out = draw(*args, **options)
    return tree_map(convert, out)


def _draw_constants(name: str, draw: Any, convert: Callable[[Any], Any], *args: Any, **options: Any) -> Any:
    """Draw with parameters that have no derivatives."""
    if any(isinstance(x, Tensor) and is_followed(x) for x in flatten((args, options))[0]):
        msg = (
            f"`{name}` of `numpy.random` got a parameter that has a gradient, or whose value is not known yet, and xpgrad has no "
            "derivative with respect to it. Give it `x.detach()` if a constant is meant, and make it outside of a compiled function"
        )
        raise TypeError(msg)
    args, options = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, options))
    return _draw_arrays(draw, convert, args, options)


def is_generator_class(cls: Any) -> bool:
    """Return whether a class is one of NumPy's random generators."""
    random = sys.modules.get("numpy.random")
    return random is not None and (cls is random.Generator or cls is random.RandomState)


class _GeneratorClass(type):
    """The class of the classes of random generators whose arrays are Tensors."""

    numpys: Any

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.numpys)


@functools.cache
def make_generator_class(numpys: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a class like one of NumPy's random generators, which draws Tensors.

    Parameters
    ----------
    numpys : type
        The class of NumPy's.
    convert : callable
        It turns NumPy's arrays into Tensors while code for NumPy runs.
    """
    draws = {name: _make_method(name, draw, convert) for name, draw in vars(numpys).items() if not name.startswith("_") and callable(draw)}
    return _GeneratorClass(numpys.__name__, (numpys,), {"numpys": numpys, **draws})


def _make_method(name: str, draw: Any, convert: Callable[[Any], Any]) -> Any:
    @functools.wraps(draw)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return _draw(name, getattr(self, "shared", self), type(self).numpys, convert, args, options)

    return method


def share_generator(x: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a generator that draws Tensors from one of NumPy's, whose state it shares."""
    bits = x.bit_generator if hasattr(x, "bit_generator") else x._bit_generator
    cls: Any = type(x)
    own = make_generator_class(cls, convert)(bits)
    own.shared = x  # a `RandomState` keeps numbers besides its bit generator
    return own


def make_global_draw(draw: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a function like a function of `numpy.random`, which is a method of a generator."""
    generator = draw.__self__

    @functools.wraps(draw)
    def compute(*args: Any, **options: Any) -> Any:
        return _draw(draw.__name__, generator, type(generator), convert, args, options)

    return compute
