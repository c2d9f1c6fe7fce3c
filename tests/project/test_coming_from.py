"""Law: the pages for users of another library are true: the names exist, the programs agree, and the listed differences exist.

The tests run the pages `docs/coming-from-*.md` themselves: the names in the tables are resolved in both libraries, each pair of programs
runs in this process and its two `answer`s are compared, and each difference is a pair of expressions with their results.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import re
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
#: The import name of the library that each page is about.
LIBRARIES = {"pytorch": "torch", "jax": "jax", "autograd": "autograd", "mygrad": "mygrad"}
#: Modules of which a page lists every public name (`__all__`, or else all that the module defines).
WHOLE = {
    "pytorch": (
        "torch.autograd",
        "torch.autograd.anomaly_mode",
        "torch.autograd.forward_ad",
        "torch.autograd.function",
        "torch.autograd.functional",
        "torch.autograd.grad_mode",
        "torch.autograd.graph",
        "torch.autograd.profiler",
        "torch.func",
        "torch.utils.checkpoint",
    ),
    "jax": ("jax.ad_checkpoint", "jax.checkpoint_policies", "jax.flatten_util", "jax.test_util", "jax.tree"),
    "autograd": ("autograd", "autograd.extend"),
    "mygrad": (
        "mygrad",
        "mygrad.linalg",
        "mygrad.nnet.activations",
        "mygrad.nnet.initializers",
        "mygrad.nnet.losses",
        "mygrad.operation_base",
        "mygrad.random",
    ),
}
#: Further documented names for differentiation: methods, and functions in modules that are mostly about other things.
DOCUMENTED = {
    "pytorch": """torch.Tensor.grad torch.Tensor.requires_grad torch.Tensor.is_leaf torch.Tensor.backward torch.Tensor.detach
        torch.Tensor.detach_
        torch.Tensor.register_hook torch.Tensor.register_post_accumulate_grad_hook torch.Tensor.retain_grad torch.Tensor.retains_grad
        torch.Tensor.requires_grad_ torch.Tensor.grad_fn torch.Tensor.is_inference torch.Tensor.data torch.Tensor.output_nr
        torch.Tensor.grad_dtype
        torch.is_grad_enabled torch.is_inference_mode_enabled torch.is_inference torch.autograd.gradcheck.GradcheckError
        torch.autograd.Function.forward torch.autograd.Function.setup_context torch.autograd.Function.backward torch.autograd.Function.jvp
        torch.autograd.Function.vmap torch.autograd.Function.apply torch.autograd.function.FunctionCtx.mark_dirty
        torch.autograd.function.FunctionCtx.mark_non_differentiable torch.autograd.function.FunctionCtx.save_for_backward
        torch.autograd.function.FunctionCtx.save_for_forward torch.autograd.function.FunctionCtx.set_materialize_grads
        torch.autograd.graph.Node.name torch.autograd.graph.Node.metadata torch.autograd.graph.Node.next_functions
        torch.autograd.graph.Node.register_hook torch.autograd.graph.Node.register_prehook torch.vmap torch.compile""",
    "jax": """jax.grad jax.value_and_grad jax.jacobian jax.jacfwd jax.jacrev jax.hessian jax.jvp jax.linearize jax.linear_transpose jax.vjp
        jax.fwd_and_bwd jax.custom_jvp jax.custom_jvp.defjvp jax.custom_jvp.defjvps jax.custom_vjp jax.custom_vjp.defvjp jax.custom_gradient
        jax.closure_convert jax.checkpoint jax.remat jax.vmap jax.numpy.vectorize jax.jit jax.disable_jit jax.make_jaxpr jax.eval_shape
        jax.custom_batching.custom_vmap jax.custom_batching.sequential_vmap jax.lax.stop_gradient jax.lax.custom_root
        jax.lax.custom_linear_solve jax.lax.scan jax.lax.cond jax.lax.switch jax.lax.while_loop jax.lax.fori_loop jax.lax.map
        jax.lax.associative_scan jax.debug_nans jax.pure_callback jax.experimental.ode.odeint jax.scipy.optimize.minimize""",
    "autograd": """autograd.differential_operators.make_jvp_reversemode autograd.differential_operators.unary_to_nary
        autograd.test_util.check_grads autograd.test_util.check_vjp autograd.test_util.check_jvp autograd.test_util.check_equivalent
        autograd.test_util.combo_check autograd.tracer.getval autograd.tracer.isbox autograd.scipy.special autograd.scipy.stats
        autograd.scipy.linalg autograd.scipy.signal autograd.scipy.integrate.odeint autograd.numpy autograd.numpy.linalg
        autograd.numpy.fft autograd.numpy.random autograd.misc.tracers autograd.builtins.isinstance
        autograd.misc.flatten.flatten autograd.misc.optimizers.sgd autograd.misc.optimizers.rmsprop autograd.misc.optimizers.adam
        autograd.misc.fixed_points.fixed_point""",
    "mygrad": """mygrad.Tensor.backward mygrad.Tensor.grad mygrad.Tensor.null_grad mygrad.Tensor.null_gradients mygrad.Tensor.clear_graph
        mygrad.Tensor.constant mygrad.Tensor.creator mygrad.Tensor.base mygrad.Tensor.copy mygrad.Tensor.item
        mygrad.Tensor.astype mygrad.nnet.layers.batchnorm mygrad.nnet.layers.conv_nd mygrad.nnet.layers.max_pool
        mygrad.computational_graph.build_graph""",
}


def text_of(page: str) -> str:
    return (ROOT / f"docs/coming-from-{page}.md").read_text(encoding="utf-8")


def require_library(page: str) -> None:
    """Skip if the library is missing, or if its version is not the one that the page compares."""
    library = LIBRARIES[page]
    pytest.importorskip(library, reason="half of the page runs in it")
    (told,) = re.findall(r"This page was checked against\s+[\w ]+ (\d+\.\d+)\.$", text_of(page), re.MULTILINE)
    here = importlib.metadata.version(library)
    if not here.startswith(f"{told}."):
        pytest.skip(f"the page compares {library} {told}, here is {here}")


def section(page: str, title: str) -> str:
    """Return the text below a heading of the second level."""
    (found,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", text_of(page), re.DOTALL | re.MULTILINE)
    return found


def rows(text: str) -> list[list[str]]:
    """Return the rows of all tables in a text, without the header rows."""
    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    return [(line + [""])[:3] if len(line) == 2 else line for line in lines if set(line[0]) - set("-: ")]


def tables(page: str, title: str) -> list[list[str]]:
    """Return the rows of the tables below a heading, without the header rows."""
    body = re.sub(r"^\|.*\n(?=\|-)", "", section(page, title), flags=re.MULTILINE)
    return rows(body)


def pair(text: str, library: str) -> tuple[str, str]:
    """Return the other library's block and xpgrad's; assert that there are only these two, in this order."""
    found = re.findall(r"^```python(?: needs=(\w+))?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert [needs for needs, _ in found] == [library, ""], f"first a block for {library}, then one for xpgrad: {found}"
    return found[0][1], found[1][1]


def shared_lines(page: str) -> tuple[str, str]:
    """Return the lines with which all programs and expressions of a page begin, for the other library and for xpgrad."""
    return pair(section(page, "Ten programs").partition("\n### ")[0], LIBRARIES[page])


def programs(page: str) -> dict[str, tuple[str, str]]:
    """Return the pairs of programs of a page by title, each with the shared lines in front."""
    found = {}
    for part in re.split(r"^### (?=\d)", section(page, "Ten programs"), flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        theirs, ours = pair(text, LIBRARIES[page])
        found[title] = (shared_lines(page)[0] + theirs, shared_lines(page)[1] + ours)
    return found


@contextlib.contextmanager
def default_settings(page: str) -> Any:
    """Context manager that ignores their programs' warnings and gives JAX its default precision, whatever another test has set."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if page == "jax":
            import jax

            with jax.enable_x64(False) if hasattr(jax, "enable_x64") else jax.experimental.disable_x64():
                yield
        else:
            yield


def run(code: str, name: str) -> dict[str, Any]:
    """Run a program and return its global names."""
    space: dict[str, Any] = {"__name__": name}
    exec(compile(code, f"<{name}>", "exec"), space)  # noqa: S102 - a program of the documentation
    return space


def plain(x: Any) -> Any:
    """Convert numbers and arrays of any of the libraries to NumPy's, in the same containers."""
    if isinstance(x, dict):
        return {key: plain(value) for key, value in sorted(x.items())}
    if isinstance(x, (list, tuple)):
        return [plain(value) for value in x]
    if x is None or isinstance(x, (str, bool)):
        return x
    if hasattr(x, "detach"):
        return x.detach().numpy()
    return np.asarray(x)


def assert_agree(theirs: Any, ours: Any) -> None:
    """Assert equal containers, shapes and kinds of numbers, and values that differ only by rounding in the lower precision."""
    assert type(theirs) is type(ours)
    if isinstance(theirs, (dict, list)):
        assert len(theirs) == len(ours)
        if isinstance(theirs, dict):
            assert list(theirs) == list(ours)
            theirs, ours = list(theirs.values()), list(ours.values())
        for a, b in zip(theirs, ours, strict=True):
            assert_agree(a, b)
    elif isinstance(theirs, np.ndarray):
        assert theirs.shape == ours.shape
        assert theirs.dtype.kind == ours.dtype.kind
        coarse = max((np.finfo(x.dtype).eps for x in (theirs, ours) if x.dtype.kind in "fc"), default=0.0)
        scale = max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=float(64 * coarse * scale))
    else:
        assert theirs == ours


def resolve(name: str) -> Any:
    """Return the object that a dotted name refers to, importing modules if needed."""
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for at, part in enumerate(parts[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(parts[:at]))
            except ModuleNotFoundError:
                # A function may hide the module of the same name, as `torch.autograd.gradcheck` does.
                found = getattr(importlib.import_module(".".join(parts[: at - 1])), part)
    return found


def names(cell: str) -> list[str]:
    """Return the full names in a cell; names after "`module`:" belong to that module, up to the next semicolon."""
    found = []
    for group in cell.split(";"):
        home, colon, rest = group.partition("`:")
        if colon:
            found += [f"{home.strip(' `')}.{name}" for name in re.findall(r"`([^`]+)`", rest)]
        else:
            found += re.findall(r"`([^`]+)`", group)
    return [name.partition("(")[0] for name in found]


def name_pairs(page: str) -> list[tuple[list[str], list[str]]]:
    """Return the other library's names and xpgrad's for each row of the tables of names."""
    found = []
    for theirs, ours, *_ in tables(page, "Names"):
        mine = names(theirs)
        if same := re.fullmatch(r"the same in `([\w.]+)`", ours):
            found.append((mine, [f"{same[1]}.{name.rpartition('.')[2]}" for name in mine]))
        else:
            assert ours == "none" or names(ours), f"{theirs}: {ours!r} has neither a name nor says 'none'"
            found.append((mine, names(ours)))
    return found


def public(module: str) -> dict[str, Any]:
    """Return the public names of a module or class: its `__all__`, or else the functions and classes that its package defines there."""
    home = resolve(module)
    listed = getattr(home, "__all__", None)
    if listed is None:
        package = module.partition(".")[0]
        listed = [
            name
            for name, value in vars(home).items()
            if not name.startswith("_")
            and callable(value)
            and not isinstance(value, types.ModuleType)
            and str(getattr(value, "__module__", package)).startswith(package)
        ]
    return {f"{module}.{name}": getattr(home, name) for name in listed}


@pytest.mark.parametrize("page", LIBRARIES)
def test_a_page_has_three_parts(page: str) -> None:
    assert re.findall(r"^## (.+)$", text_of(page), re.MULTILINE) == ["Names", "Ten programs", "Differences"]
    assert [int(title.partition(".")[0]) for title in programs(page)] == list(range(1, 11))


@pytest.mark.parametrize("page", LIBRARIES)
def test_our_names_exist(page: str) -> None:
    """Law: every full name of xpgrad that a page mentions exists, whether in its tables, its code or its sentences."""
    listed = [name for _, ours in name_pairs(page) for name in ours]
    said = re.findall(r"\bxp(?:grad)?\.([\w.]*\w)", text_of(page).replace("xpgrad.md", ""))
    missing = []
    for name in {*listed, *(f"xpgrad.{name}" for name in said)}:
        try:
            resolve(name)
        except (AttributeError, ImportError):
            missing.append(name)
    assert not missing
    assert len(listed) > 50


@pytest.mark.parametrize("page", LIBRARIES)
def test_their_names_exist(page: str) -> None:
    require_library(page)
    missing = []
    with default_settings(page):
        for name in {name for theirs, _ in name_pairs(page) for name in theirs}:
            try:
                resolve(name)
            except (AttributeError, ImportError):
                missing.append(name)
    assert not missing


@pytest.mark.parametrize("page", LIBRARIES)
def test_the_tables_are_complete(page: str) -> None:
    """Law: every name that the library documents for differentiation is in the table, or is another name of an object that is."""
    require_library(page)
    with default_settings(page):
        listed = {name for theirs, _ in name_pairs(page) for name in theirs}
        objects = {id(resolve(name)) for name in listed}
        wanted = {name: resolve(name) for name in DOCUMENTED[page].split()}
        for module in WHOLE[page]:
            wanted |= public(module)
    assert not [name for name, value in wanted.items() if name not in listed and id(value) not in objects]


@pytest.mark.parametrize(("page", "title"), [(page, title) for page in LIBRARIES for title in programs(page)])
def test_our_program_runs(page: str, title: str) -> None:
    """Law: xpgrad's half of a pair runs alone and without a warning if the other library is not installed."""
    assert "answer" in run(programs(page)[title][1], title)


@pytest.mark.parametrize(("page", "title"), [(page, title) for page in LIBRARIES for title in programs(page)])
def test_the_programs_agree(page: str, title: str) -> None:
    require_library(page)
    theirs, ours = programs(page)[title]
    with default_settings(page):
        expected = plain(run(theirs, title)["answer"])
    assert_agree(expected, plain(run(ours, title)["answer"]))


@pytest.mark.parametrize("title", programs("autograd"))
def test_programs_for_autograd_run_in_the_dialect(title: str) -> None:
    """Law: the programs for HIPS autograd give the same results in the dialect if only their imports are changed."""
    require_library("autograd")
    pytest.importorskip("scipy", reason="the dialect's `scipy` needs it")
    theirs = programs("autograd")[title][0]
    changed = re.sub(r"^(from|import) autograd\b", r"\1 xpgrad.dialects.hips", theirs, flags=re.MULTILINE)
    assert changed != theirs
    with default_settings("autograd"):
        expected = plain(run(theirs, title)["answer"])
    assert_agree(expected, plain(run(changed, title)["answer"]))


def test_the_dialect_has_the_names_of_autograd() -> None:
    """Law: the dialect has each name of HIPS autograd in the same place."""
    pytest.importorskip("scipy", reason="the dialect's `scipy` needs it")
    missing = set()
    for theirs, _, _ in tables("autograd", "Names"):
        for name in names(theirs):
            try:
                resolve(f"xpgrad.dialects.hips.{name.removeprefix('autograd.')}" if name != "autograd" else "xpgrad.dialects.hips")
            except (AttributeError, ImportError):
                missing.add(name)
    assert not missing


def differences(page: str) -> list[tuple[str, str, str]]:
    return [(said, theirs, ours) for said, theirs, ours in tables(page, "Differences")]


def outcome(cell: str, space: dict[str, Any]) -> tuple[str, str]:
    """Return the result that a cell states for its expression, and the actual one."""
    found = re.fullmatch(r"`([^`]+)` (gives|raises) `([^`]+)`", cell)
    assert found, f"not '`expression` gives `value`' nor '`expression` raises `Error`': {cell}"
    try:
        value = eval(found[1], space)
    except Exception as error:  # noqa: BLE001 - which one is what is asked
        return f"raises {found[3]}" if found[2] == "raises" else found[3], f"raises {type(error).__name__}"
    return f"raises {found[3]}" if found[2] == "raises" else found[3], " ".join(str(value).split())


@pytest.mark.parametrize(("page", "said"), [(page, said) for page in LIBRARIES for said, *_ in differences(page)])
def test_what_differs_differs(page: str, said: str) -> None:
    """Law: each expression gives or raises what the page says; the two libraries agree only in rows that begin with "The same"."""
    ((theirs, ours),) = [row[1:] for row in differences(page) if row[0] == said]
    first, below = shared_lines(page), pair(section(page, "Differences"), LIBRARIES[page])
    expected, got = outcome(ours, run(first[1] + below[1], page))
    assert got == expected
    require_library(page)
    with default_settings(page):
        expected, other = outcome(theirs, run(first[0] + below[0], page))
    assert other == expected
    assert (other == got) == said.startswith("The same: ")


@pytest.mark.parametrize("page", LIBRARIES)
def test_the_page_that_offers_the_choice_leads_there(page: str) -> None:
    assert f"(coming-from-{page}.md)" in (ROOT / "docs/coming-from.md").read_text(encoding="utf-8")
