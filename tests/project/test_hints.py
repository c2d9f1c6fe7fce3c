"""Law: a name of PyTorch, NumPy or JAX that xpgrad lacks raises an error that says how to write it here, or why it is missing."""

from __future__ import annotations

import ast
import copy
import importlib.util
import inspect
import json
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad._hints import hint, keywords, missing_name, reasons, texts
from xpgrad._tensor.missing import MISSING

pytestmark = pytest.mark.slow(one_in=8)

NAMES = re.compile(r"xpgrad((?:\.[a-z_0-9A-Z]+)+)")
METHODS = re.compile(r"\bx\.([a-zA-Z_]+)")
HINTS = texts()


def place_of(module: str) -> Any:
    """Return a module of the package by its name, or a Tensor for ``"Tensor"``."""
    return xp.ones((2, 2)) if module == "Tensor" else pkgutil.resolve_name(f"xpgrad.{module}".rstrip("."))


@pytest.mark.parametrize("name", HINTS)
def test_a_hint_names_what_exists(name: str) -> None:
    module, _, last = name.rpartition(".")
    owner = "'Tensor' object" if module == "Tensor" else f"module {f'xpgrad.{module}'.rstrip('.')!r}"
    with pytest.raises(AttributeError) as caught:
        getattr(place_of(module), last)
    assert str(caught.value) == f"{owner} has no attribute {last!r}; use {HINTS[name]}"
    for path in NAMES.findall(HINTS[name]):
        pkgutil.resolve_name(f"xpgrad{path}")  # which imports modules
    assert all(hasattr(xp.ones(2), method) or method in ("T", "mT") for method in METHODS.findall(HINTS[name]))


@pytest.mark.parametrize("name", HINTS)
def test_the_code_in_a_hint_is_code(name: str) -> None:
    for code in re.findall(r"`([^`]+)`", HINTS[name]):
        if code not in ("+", "if", "x[...] = "):
            ast.parse(code.removesuffix("="))


@pytest.mark.parametrize("name", HINTS)
def test_the_name_stays_unknown(name: str) -> None:
    module, _, last = name.rpartition(".")
    owner = place_of(module)
    assert not hasattr(owner, last)
    assert last not in dir(owner)
    assert module == "Tensor" or last not in owner.__all__


def test_every_name_of_the_other_libraries_has_a_hint() -> None:
    """Run in a new process, because other tests import submodules of the libraries, which adds names to them."""
    pytest.importorskip("torch")  # and JAX's names, if it is installed
    script = Path(__file__).with_name("hint_names.py")
    done = subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert len(answer["found"]) > 1000
    assert sum(what.startswith("Tensor ") for what in answer["found"]) > 400
    assert not [
        what
        for what, text in answer["found"].items()
        if not re.search(r" has no attribute '\w+'; (use |not part of xpgrad, because )", text)
    ]
    assert not answer["shown"]


def test_missing_attributes_are_those_of_other_libraries() -> None:
    """Law: no Tensor has a missing attribute, and PyTorch's, NumPy's or JAX's arrays have each."""
    libraries = [
        importlib.import_module(name) for name in ("torch", "numpy", "jax.numpy") if importlib.util.find_spec(name.partition(".")[0])
    ]
    for name in MISSING:
        assert not hasattr(xp.Tensor, name)
    if len(libraries) == 3:
        known = {name for library in libraries for name in dir(type(library.ones(2)))}
        assert not MISSING.keys() - known


@pytest.mark.parametrize("name", ["cpu", "H", "addcdiv_", "is_cuda"])
def test_every_tensor_has_the_hints(name: str, xpgrad_device: str) -> None:
    """Law: Tensors of all devices and kinds say what to write, and no Tensor lists the names."""
    expected = rf"^'Tensor' object has no attribute '{name}'; (use `|not part of xpgrad, because )"

    def read(x: Any) -> Any:
        with pytest.raises(AttributeError, match=expected) as caught:
            getattr(x, name)
        assert caught.value.name == name
        assert caught.value.obj is x
        assert not hasattr(x, name)
        assert name not in dir(x)
        return x

    x = xp.ones((2, 2), device=xpgrad_device)
    read(x)
    read(x.clone().requires_grad_())
    xp.func.vmap(read)(x)
    xp.func.grad(lambda v: read(v).sum())(x)
    xp.compile(read)(x)
    with xp.inference_mode():
        read(xp.ones(2, device=xpgrad_device))
    assert name not in dir(xp.Tensor)
    assert not hasattr(xp.Tensor, name)


#: Methods of PyTorch's whose hint computes the same from `x`, or from `x` and `y`.
SAME_METHODS = {
    "bool": 0, "int": 0, "short": 0, "byte": 0, "char": 0, "bfloat16": 0, "cfloat": 0, "cdouble": 0, "equal": 1, "absolute": 0,
    "nelement": 0, "ndimension": 0, "frac": 0, "rsqrt": 0, "exp2": 0, "sgn": 0, "fix": 0, "xlogy": 1, "copysign": 1, "arctan2": 1,
    "logaddexp2": 1, "reshape_as": 1, "H": 0, "adjoint": 0, "inverse": 0, "det": 0, "argwhere": 0, "flipud": 0,
    "rad2deg": 0, "hypot": 1, "igamma": 1, "fmax": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_METHODS)
def test_a_method_computes_what_its_hint_does(name: str) -> None:
    torch = pytest.importorskip("torch")
    x, y = xp.asarray(A), xp.asarray(A.T * 0.3 + 0.1)
    code = re.match(r"`([^`]+)`", str(hint(name, "Tensor")).removeprefix("use "))
    assert code
    ours = eval(code[1], {"xpgrad": xp, "x": x, "y": y})
    if re.fullmatch(r"xpgrad[.\w]+", code[1]):  # a function
        ours = ours(x, y) if SAME_METHODS[name] else ours(x)
    method = getattr(torch.asarray(A), name)
    theirs: Any = method if not callable(method) else method(torch.asarray(y.numpy())) if SAME_METHODS[name] else method()
    if isinstance(ours, xp.Tensor):
        assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2] or name == "argwhere"
        ours, theirs = ours.to(xp.complex128).numpy(), theirs.to(torch.complex128).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_reason_is_for_names_that_have_no_other_hint() -> None:
    assert missing_name("module 'xpgrad'", "sin_p").startswith(
        "module 'xpgrad' has no attribute 'sin_p'; not part of xpgrad, because xpgrad does"
    )
    assert hint("conv2d") == f"not part of xpgrad, because {next(reason for pattern, reason in reasons() if pattern.fullmatch('conv2d'))}"


X, Y = np.asarray([0.3, 0.9, 0.5]), np.asarray([0.2, 0.7, 0.4])
OTHERS = ("torch", "torch.nn.functional", "numpy", "jax.nn")


def expressions() -> list[tuple[str, str]]:
    """Return the hints whose first code computes a number or an array from `x` and `y` alone, and the names they are for."""
    found = []
    for name, text in HINTS.items():
        code = re.match(r"`([^`]+)`$", text)
        if code and "." not in name:
            tree = ast.parse(code[1])
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"xpgrad"}
            if used and used <= {"x", "y"} and "(" in code[1]:
                found.append((name, code[1]))
    return found


#: How to call the function of a name whose arguments are not `x`, or `x` and `y`: the call, and the value of `x` in the hint.
A, Z = np.asarray([[2.0, 0.5], [0.3, 1.0]]), np.asarray([1.0 + 0j, 2.0 - 1j])
CALLS: dict[str, tuple[str, Any]] = {
    "adjoint": ("torch.adjoint(torch.asarray(x)).resolve_conj()", A),
    "H": ("torch.asarray(x).H.resolve_conj()", A),
    "mH": ("torch.asarray(x).mH.resolve_conj()", A),
    "cumsum": ("np.cumsum(x, axis=0)", X),
    "cumprod": ("np.cumprod(x, axis=0)", X),
    "logcumsumexp": ("torch.logcumsumexp(torch.asarray(x), 0)", X),
    "cumlogsumexp": ("torch.logcumsumexp(torch.asarray(x), 0)", X),
    "normalize": ("torch.nn.functional.normalize(torch.asarray(x))", A),
    "cosine_similarity": ("torch.cosine_similarity(torch.asarray(x), torch.asarray(y), dim=0)", X),
    "fliplr": ("np.fliplr(x)", A), "rot90": ("np.rot90(x)", A),
    "isreal": ("np.isreal(x)", Z), "iscomplex": ("np.iscomplex(x)", Z),
    "ldexp": ("torch.ldexp(torch.asarray(x), torch.asarray(y))", X),
    "msort": ("torch.msort(torch.asarray(x))", X),
    "view_as_real": ("torch.view_as_real(torch.asarray(x))", Z),
    "intersect1d": ("np.intersect1d(x, y)", np.asarray([0.7, 0.4, 0.1])),
    "setdiff1d": ("np.setdiff1d(x, y)", np.asarray([0.9, 0.4, 0.1])),
    "setxor1d": ("np.setxor1d(x, y)", np.asarray([0.9, 0.4, 0.1])),
    "cdist": ("torch.cdist(torch.asarray(x), torch.asarray(y))", A),
    "binary_cross_entropy_with_logits": (
        "torch.nn.functional.binary_cross_entropy_with_logits(torch.asarray(x), torch.asarray(y))", X,
    ),
}  # fmt: skip
#: Hints whose values are not compared, and the reason.
UNLIKE = {
    "nuclear_norm": "PyTorch warns that it is deprecated", "iscomplexobj": "a bool", "is_signed": "a bool",
    "isrealobj": "a bool", "isscalar": "a bool",
    "pairwise_distance": "PyTorch adds 1e-6 to the difference", "array_equiv": "a bool", "array_equal": "a bool",
    "unique_consecutive": "the order", "copyto": "it writes in place",
}  # fmt: skip


@pytest.mark.parametrize(("name", "code"), [pair for pair in expressions() if pair[0] not in UNLIKE])
def test_an_expression_computes_what_the_name_does(name: str, code: str) -> None:
    torch = pytest.importorskip("torch")
    call, x = CALLS.get(name, ("", X))
    y = x + 1.0 if x is A else Y
    ours = eval(code, {"xpgrad": xp, "x": xp.asarray(x), "y": xp.asarray(y)})
    if call:
        theirs = eval(call, {"torch": torch, "np": np, "x": x, "y": y})
    else:
        arguments = [x, Y] if re.search(r"\by\b", code) else [x]
        installed = [library for library in OTHERS if importlib.util.find_spec(library.partition(".")[0])]
        library = next((library for library in installed if callable(getattr(pkgutil.resolve_name(library), name, None))), None)
        if library is None:
            pytest.skip("only JAX or a Tensor has it")
        convert = torch.asarray if "torch" in library else np.asarray
        theirs = getattr(pkgutil.resolve_name(library), name)(*(convert(value) for value in arguments))
    np.testing.assert_allclose(ours.numpy(), np.asarray(theirs), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("module", ["xpgrad", "xpgrad.linalg", "xpgrad.autograd", "xpgrad.scipy.special"])
def test_a_name_without_a_hint_is_reported_plainly(module: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module '{module}' has no attribute 'sine'$"):
        pkgutil.resolve_name(f"{module}:sine")


def test_a_name_is_found_in_another_place() -> None:
    for owner, name, place in (
        (xp.linalg, "stack", "`xpgrad.stack`"), (xp, "qr", "`xpgrad.linalg.qr`"), (xp.autograd, "vmap", "`xpgrad.func.vmap`"),
        (xp, "masked_fill_", "the method `x.masked_fill_(...)`"),
        (pkgutil.resolve_name("xpgrad.scipy.special"), "lgamma", "`xpgrad.scipy.special.gammaln`"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; use {re.escape(place)}$"):
            getattr(owner, name)


def test_the_namespace_of_a_device_has_the_hints() -> None:
    other = xp.namespace("numpy+readonly")
    with pytest.raises(AttributeError, match=r"has no attribute 'concatenate'; use `xpgrad.concat`"):
        other.concatenate
    with pytest.raises(AttributeError, match=r"has no attribute 'norm'; use `xpgrad.linalg.vector_norm`"):
        other.linalg.norm
    assert not hasattr(other, "array")


def test_what_asks_for_names_is_not_disturbed() -> None:
    """Copying, pickling and array-api-compat, which ask the module for missing names, still work."""
    x = xp.asarray([1.0, 2.0])
    assert pickle.loads(pickle.dumps(xp.sin)) is xp.sin
    assert pickle.loads(pickle.dumps(x)).tolist() == [1.0, 2.0]
    assert copy.deepcopy(x).tolist() == [1.0, 2.0]
    helpers = pytest.importorskip("array_api_compat")
    assert helpers.array_namespace(x) is xp
    assert helpers.is_array_api_obj(x)
    assert not helpers.is_numpy_namespace(xp)
    assert not helpers.is_torch_namespace(xp)


TRANSFORMS = (
    "elementwise_grad", "grad", "grad_and_value", "hessian", "hessian_vector_product", "jacfwd", "jacrev", "sparse_hessian",
    "sparse_jacobian", "value_and_grad", "vmap",
)  # fmt: skip


def other_keywords() -> list[tuple[str, str]]:
    """Return pairs of a transform and a keyword that it does not have."""
    names = [*keywords(), "no_such_keyword"]
    return [(t, k) for t in TRANSFORMS for k in names if k not in inspect.signature(getattr(xp.func, t)).parameters]


@pytest.mark.parametrize(("name", "keyword"), other_keywords())
def test_a_transform_says_what_a_keyword_is_called(name: str, keyword: str) -> None:
    """Law: the error for an unknown keyword names a keyword that exists, gives a reason, or lists those that exist."""
    transform = getattr(xp.func, name)
    known = inspect.signature(transform).parameters
    start = rf"^{name}\(\) got an unexpected keyword argument '{keyword}'; "
    with pytest.raises(TypeError, match=start) as caught:
        transform(xp.sum, **{keyword: 0})
    if found := re.search(r"; use `(\w+)`$", str(caught.value)):
        assert found[1] in known
    elif "; it has " in str(caught.value):
        assert re.findall(r"`(\w+)`", str(caught.value)) == list(known)
        assert keyword == "no_such_keyword" or keywords()[keyword].strip("`") not in known
    else:
        assert str(caught.value).endswith(f"; leave it out: {keywords()[keyword]}")


def test_keywords_of_transforms_in_jax_are_known() -> None:
    """Law: no keyword of JAX's or PyTorch's transform of the same name is unknown without a hint."""
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    for name in TRANSFORMS:
        for library in (jax, torch.func):
            if hasattr(library, name):
                theirs = {k for k in inspect.signature(getattr(library, name)).parameters if k not in ("args", "kwargs") and k[0] != "_"}
                assert not theirs - set(inspect.signature(getattr(xp.func, name)).parameters) - set(keywords()), (name, library)
    with pytest.raises(TypeError, match=r"^vmap\(\) got an unexpected keyword argument 'in_axes'; use `in_dims`$"):
        xp.func.vmap(xp.sin, in_axes=0)  # type: ignore[call-arg]
