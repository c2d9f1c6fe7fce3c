"""Law: a function of an extension can be declared missing, and checks of values need no `bool`, `int` or `float` of raw arrays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import array_api_compat.numpy
import numpy as np
import pytest

import xpgrad as xp
from support import kernels_only
from xpgrad.backend import BackendInfo
from xpgrad.registry import backend_for, backend_names, register_backend
from xpgrad_conformance.facade import missing_function


class Refusing(np.ndarray):
    """An array that refuses `bool`, `int` and `float`."""

    def _refuse(self) -> Any:
        msg = "call to_host instead"
        raise TypeError(msg)

    __bool__ = __int__ = __float__ = __index__ = _refuse


class Lacking(kernels_only.KernelsOnlyBackend):
    """NumPy arrays without `linalg.vector_norm`."""

    name = "lacking_norm"
    missing = frozenset(("linalg.vector_norm",))

    def __init__(self, variant: str | None) -> None:
        super().__init__(variant)
        self.device = xp.Device("lacking_norm")

    def kernel(self, name: str) -> Any:
        if name == "linalg":
            library = array_api_compat.numpy.linalg
            return SimpleNamespace(**{key: getattr(library, key) for key in library.__all__ if key != "vector_norm"})
        return super().kernel(name)


@pytest.fixture(autouse=True)
def lacking() -> None:
    if "lacking_norm" not in backend_names():
        register_backend(BackendInfo(name="lacking_norm", load=Lacking, install="part of the tests"))


def test_a_missing_function_of_an_extension_says_so() -> None:
    linalg = backend_for("lacking_norm").kernels.linalg
    with pytest.raises(xp.CapabilityError, match=r"backend 'lacking_norm' has no function `linalg\.vector_norm`"):
        linalg.vector_norm(np.ones(2))
    assert getattr(linalg, "vector_norm", None) is None
    assert linalg.trace(np.eye(2)) == 2.0


class Undeclared(Lacking):
    """The same arrays, in a backend that does not declare what is missing."""

    missing = frozenset()


def test_a_function_that_is_missing_without_a_declaration_says_so_too() -> None:
    linalg = Undeclared(None).kernels.linalg
    with pytest.raises(xp.CapabilityError, match=r"backend 'lacking_norm' has no function `linalg\.vector_norm`"):
        linalg.vector_norm(np.ones(2))
    assert linalg.trace(np.eye(2)) == 2.0


def test_contracts_report_it_as_not_run() -> None:
    kernels = backend_for("lacking_norm").kernels
    with pytest.raises(xp.CapabilityError) as missing:
        kernels.linalg.vector_norm(np.ones(2))
    assert missing_function(missing.value) == "linalg.vector_norm"
    with pytest.raises(xp.CapabilityError) as undeclared:
        kernels.frobnicate(np.ones(2))
    assert missing_function(undeclared.value) is None
    assert missing_function(RuntimeError(str(missing.value))) is None


class Watching(Lacking):
    """A backend whose reductions return arrays that refuse conversions, and which notes what `is_traced` is asked about."""

    def __init__(self) -> None:
        super().__init__(None)
        self.asked: list[Any] = []

    def is_traced(self, x: Any) -> bool:
        self.asked.append(x)
        return False

    def wrap_kernel(self, name: str, function: Any) -> Any:
        if name not in ("all", "any", "min", "max"):
            return function
        return lambda *args, **options: np.asarray(function(*args, **options)).view(Refusing)


def test_index_checks_read_through_to_host() -> None:
    indices = np.asarray([0, 2]).view(Refusing)
    watching = Watching()
    np.testing.assert_array_equal(watching.kernels.from_front(indices, 3, 0, np.ones(1)), [0, 2])
    assert watching.asked[0] is indices
    with pytest.raises(IndexError, match="index 2 is out of range"):
        watching.kernels.from_front(indices, 2, 0, np.ones(1))


def test_checks_of_gradients_read_through_to_host() -> None:
    kernels = Watching().kernels
    kernels.check_phase(np.zeros(2), np.ones(2), "eigenvectors")
    with pytest.raises(RuntimeError, match="the loss depends on them"):
        kernels.check_phase(np.ones(2), np.ones(2), "eigenvectors")
    kernels.check_regular(np.eye(2))
    with pytest.raises(RuntimeError, match="singular"):
        kernels.check_regular(np.zeros((2, 2)))


def test_matrix_exponentials_read_norms_through_to_host() -> None:
    from xpgrad.scipy.linalg._function_rows import _scale_and_square

    kernels = Watching().kernels
    for scale in (1.0, 1e3):
        found = _scale_and_square(kernels, np.diag(np.float32([0.0, -scale])), known=True)
        np.testing.assert_allclose(found, np.diag([1.0, np.exp(-scale)]), atol=1e-6)


def test_the_search_for_nan_and_comparisons_of_constants_read_through_to_host() -> None:
    from xpgrad._tape.anomaly import _has_nan
    from xpgrad.programs.recorder import same_values

    watching = Watching()
    assert _has_nan(np.float32([1.0, np.nan]), watching)
    assert not _has_nan(np.float32([1.0, np.inf]), watching)
    assert same_values(watching, np.ones(2), np.ones(2))
    assert not same_values(watching, np.ones(2), np.zeros(2))
