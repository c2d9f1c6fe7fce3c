"""Law: a function written into its chapter is known everywhere. The page CONTRIBUTING.md adds three, which are tried here.

Each is written into a copy of the core. Other processes then use that copy to call the function and to run the laws over all rows.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: A block of CONTRIBUTING.md: a line that names the chapter, and the code to append to it.
BLOCK = re.compile(r"```python\n# (core/xpgrad/rules/\w+\.py)\n(.*?)```", re.DOTALL)

USES = '''
import sys
import numpy as np
import xpgrad as xp
from support import plugin_backends
from xpgrad.dialects.hips import grad, numpy as anp

plugin_backends.register('strict')
data = np.asarray([[0.7, -1.9, 2.3], [1.1, 0.4, -0.6]])


def differences(f, x, step=1e-6):
    out = np.zeros_like(x)
    for k in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[k] += step
        down[k] -= step
        out[k] = (f(up) - f(down)) / (2 * step)
    return out


def check(name, theirs, method, *args):
    """Value and gradients to second order, of every spelling, mode and transform."""
    ours = getattr(xp, name)
    weights = np.cos(np.arange(float(theirs(data).size))).reshape(theirs(data).shape)
    expected = differences(lambda x: float(np.sum(weights * theirs(x))), data)
    for function in (lambda x: ours(x, *args), lambda x: getattr(x, method)(*args), lambda x: theirs(x)):
        loss = lambda x: xp.sum(xp.asarray(weights) * function(x))
        for way in (loss, xp.compile(loss)):
            x = xp.tensor(data, requires_grad=True)
            way(x).backward()
            np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6, atol=1e-8)
        direction = np.sin(np.arange(6.0)).reshape(2, 3)
        slope = xp.func.jvp(loss, (xp.asarray(data),), (xp.asarray(direction),))[1]
        np.testing.assert_allclose(slope.item(), np.sum(expected * direction), rtol=1e-6)
        assert xp.autograd.gradgradcheck(loss, xp.tensor(data, requires_grad=True))
        each = xp.func.vmap(xp.func.grad(loss))(xp.stack([xp.asarray(data)] * 2))
        np.testing.assert_allclose(each.numpy(), np.stack([expected] * 2), rtol=1e-6, atol=1e-8)
    assert name in xp.__all__ and name in dir(xp)
    assert ours.__doc__


def check_patterns(name, *args):
    prepared = xp.func.sparse_jacobian(lambda x: xp.reshape(getattr(xp, name)(x, *args), (-1,))).prepare(xp.asarray(data))
    assert prepared.unresolved == [], prepared.unresolved
    return prepared.pattern.toarray()


# -- element by element
check("cbrt", np.cbrt, "cbrt")
y = xp.tensor(data)
y.cbrt_()
np.testing.assert_allclose(y.numpy(), np.cbrt(data))
np.testing.assert_allclose(grad(lambda x: anp.sum(anp.cbrt(x)))(np.abs(data)), np.abs(data) ** (-2 / 3) / 3)
for device in ("numpy", "strict"):
    np.testing.assert_allclose(xp.cbrt(xp.asarray(data, device=device)).numpy(), np.cbrt(data))
    try:
        xp.cbrt(xp.asarray([1j], device=device))
    except TypeError as exc:
        assert "`cbrt` is not defined for complex" in str(exc), exc
    else:
        raise AssertionError("complex operands are taken")
large = xp.asarray(np.linspace(-1, 1, 1 << 17))
text = xp.compile(lambda x: xp.cbrt(x) * 2.0 + 1.0).source(large)
assert "np.cbrt(" in text and "for start in range(" in text, text
assert (check_patterns("cbrt") == np.eye(6, dtype=bool)).all()
report = xp.audit(lambda x: xp.sum(xp.cbrt(x)), xp.tensor([0.0, 1.0], requires_grad=True))
assert any(f.kind == "kink" and "`cbrt` at 0" in f.message for f in report.findings), report

# -- over axes
check("ptp", np.ptp, "ptp")
check("ptp", lambda x: np.ptp(x, axis=1), "ptp", 1)
assert (check_patterns("ptp", 1) == np.kron(np.eye(2), np.ones((1, 3))).astype(bool)).all()
report = xp.audit(lambda x: xp.ptp(x), xp.tensor([1.0, 1.0, 0.0], requires_grad=True))
assert any(f.kind == "tie" and "`ptp` of equal" in f.message for f in report.findings), report

# -- a view
check("swapaxes", lambda x: np.swapaxes(x, 0, 1), "swapaxes", 0, 1)
x = xp.asarray(data)
xp.swapaxes(x, 0, 1)[0, 0] = 9.0
assert x[0, 0].item() == 9.0 and x._version == 1
assert (check_patterns("swapaxes", 0, 1).sum(axis=0) == 1).all()
print("all of them")
'''


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the core that has the three functions of CONTRIBUTING.md."""
    core = tmp_path_factory.mktemp("copied") / "core"
    shutil.copytree(ROOT / "core", core, ignore=shutil.ignore_patterns("__pycache__"))
    blocks = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(blocks) == 3
    for place, text in blocks:
        chapter = core.parent / place
        (name,) = re.findall(r"^__all__ \+= \[\"(\w+)\"\]", text, re.MULTILINE)
        assert f"def {name}(" in text
        chapter.write_text(f"{chapter.read_text(encoding='utf-8')}\n\n{text}", encoding="utf-8")
    return core


def run(core: Path, *command: str) -> str:
    roots = [core, *(ROOT / part for part in ("backends", "conformance", "tests", "docs/_ext"))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XPGRAD_TEST_")}  # no sampling of tests
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, roots)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-8000:]
    return done.stdout


@pytest.mark.slow
def test_what_is_written_into_a_chapter_is_known_everywhere(copied: Path) -> None:
    assert "all of them" in run(copied, "-c", USES)


@pytest.mark.slow
def test_the_reference_lacks_nothing(copied: Path) -> None:
    for name in ("cbrt", "ptp", "swapaxes"):
        assert "0 names lack something" in run(copied, "-m", "xpgrad_reference", f"xpgrad.{name}")


#: The tests that cover each kind of function. Tests that a table is complete cover all three.
LAWS = {
    "cbrt": ("rules/test_elementwise", "rules/test_kernel_facts", "numpy_protocols/test_rows"),
    "ptp": ("rules/test_statistics", "rules/test_kernel_facts"),
    "swapaxes": ("rules/test_shapes",),
}
EVERY = (
    "rules/test_bad_input", "tape/test_constants", "tape/test_declared_methods", "transforms/test_vmap", "transforms/test_func",
    "transforms/test_forward_mode", "programs/test_every_function", "sparsity/test_every_function",
)  # fmt: skip
COMPLETE = ("every_rule_of", "every_row", "every_elementwise_rule", "every_public_function", "public_functions_with_names", "exactly_one")


@pytest.mark.slow
def test_the_laws_go_over_it(copied: Path) -> None:
    files = [f"tests/{file}.py" for file in sorted({*EVERY, *(file for some in LAWS.values() for file in some)})]
    # One test declares a `cbrt` for itself, so it would pass for another reason.
    chosen = f"({' or '.join((*LAWS, *COMPLETE))}) and not computed_by_the_library"
    text = run(copied, "-m", "pytest", "--all", "-v", "-n", "0", "-p", "no:cacheprovider", "-k", chosen, *files)
    passed = [line for line in text.splitlines() if " PASSED" in line]
    for name, some in LAWS.items():
        for file in (*some, *EVERY):
            assert any(f"{file}.py" in line and name in line for line in passed), (name, file)


CONTRACTS = """
import numpy as np
from xpgrad_conformance import functions
from xpgrad_conformance.contract import contracts
from xpgrad_conformance.facade import open_library

names = {"cbrt", "ptp, all", "ptp, an axis", "ptp, kept", "ptp, axes", "swapaxes"}
chosen = {name: case for name, case in functions.all_cases().items() if name.split(",")[0] in ("cbrt", "ptp", "swapaxes")}
assert set(chosen) == names, chosen
assert [name for name, case in chosen.items() if case.complex] == ["swapaxes"]
functions.all_cases = lambda: chosen
for target in sys.argv[1:]:
    lib = open_library(target)
    found = {name for name, _ in functions.cases(lib)}
    assert found == ({"swapaxes"} if lib.oracle else names), found  # PyTorch lacks the others
    with lib.running():
        for number in range(1, 10):
            contracts()[f"DER-0{number}"].function(lib)
"""


def test_the_contracts_go_over_it(copied: Path) -> None:
    targets = ["numpy", *(["pytorch"] if importlib.util.find_spec("torch") else [])]
    run(copied, "-c", f"import sys\n{CONTRACTS}", *targets)
