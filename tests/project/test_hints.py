"""Law: a name of PyTorch, NumPy or JAX that xpgrad lacks raises an error that says how to write it here, or why it is missing."""

from __future__ import annotations

import ast
import copy
import importlib.util
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
from xpgrad._hints import hint, missing_name, reasons, texts

NAMES = re.compile(r"xpgrad((?:\.[a-z_0-9A-Z]+)+)")
METHODS = re.compile(r"\bx\.([a-zA-Z_]+)")
HINTS = texts()


@pytest.mark.parametrize("name", HINTS)
def test_a_hint_names_what_exists(name: str) -> None:
    module, _, last = name.rpartition(".")
    with pytest.raises(AttributeError) as caught:
        getattr(pkgutil.resolve_name(f"xpgrad.{module}".rstrip(".")), last)
    assert str(caught.value) == f"module {f'xpgrad.{module}'.rstrip('.')!r} has no attribute {last!r}; use {HINTS[name]}"
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
    owner = pkgutil.resolve_name(f"xpgrad.{module}".rstrip("."))
    assert not hasattr(owner, last)
    assert last not in dir(owner)
    assert last not in owner.__all__


def test_every_name_of_the_other_libraries_has_a_hint() -> None:
    """Run in a new process, because other tests import submodules of the libraries, which adds names to them."""
    pytest.importorskip("torch")  # and JAX's names, if it is installed
    script = Path(__file__).with_name("hint_names.py")
    done = subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert len(answer["found"]) > 1000
    assert not [
        what
        for what, text in answer["found"].items()
        if not re.search(r" has no attribute '\w+'; (use |not part of xpgrad, because )", text)
    ]
    assert not answer["shown"]


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
