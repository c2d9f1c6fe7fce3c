"""Law: the rules' tests are strong. Each fault planted here, in a copy of the sources, is found by the tests that are named next to it.

The conformance suite has separate planted faults for the contracts.

A fault is one replacement of text in one file. It counts as found only if a test fails, and not if pytest cannot collect the tests. A
replacement whose text no longer exists fails, so that the table follows the code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Fault(NamedTuple):
    """A fault: ``old`` becomes ``new`` in ``file``; pytest with the arguments ``killer`` must find it."""

    name: str
    file: str
    old: str
    new: str
    killer: str


ENGINE, NODECLASS, ELEMENTWISE = "core/xpgrad/_tape/engine.py", "core/xpgrad/_operations/backward.py", "core/xpgrad/rules/elementwise.py"
KERNELS = "backends/xpgrad_numpy/_kernels.py"
SPECIAL = "core/xpgrad/scipy/"
AUDIT = "core/xpgrad/_audit/"
MATRICES = SPECIAL + "linalg/"
TESTING = "core/xpgrad/testing/"
SPARSE = "core/xpgrad/func/_sparse/"

FAULTS = [
    Fault("product rule takes the wrong factor", ELEMENTWISE, '@elementwise("g * x2", "g * x1",', '@elementwise("g * x1", "g * x1",', "tests/rules/test_elementwise.py -k multiply"),
    Fault("sine's derivative loses its sign's partner", ELEMENTWISE, "lambda g, x, xp: -g * xp.sin(x)", "lambda g, x, xp: g * xp.sin(x)",
          "tests/rules/test_elementwise.py -k cos"),
    Fault("a passed-on gradient counts as owned", ELEMENTWISE, 'op="+", fresh=False', 'op="+", fresh=True',
          "tests/rules/test_elementwise.py tests/rules/test_shapes.py -k fresh"),
    Fault("saved values are never freed", ENGINE, "node.step(g, empty, retain)", "node.step(g, empty, True)", "tests/memory/test_memory.py"),
    Fault("complex gradients are not conjugated", NODECLASS, 't("_complex = _is_complex(g)")', 't("_complex = False")',
          "tests/rules/test_elementwise.py -k complex"),
    Fault("duplicates of an index are lost", KERNELS, "np.add.at(out.reshape(-1), key.reshape(-1), values.reshape(-1))",
          "out.reshape(-1)[key.reshape(-1)] = values.reshape(-1)", "tests/rules/test_shapes.py"),
    Fault("the loser of a double write gets the gradient", "core/xpgrad/rules/writing.py", "    return xp.where(xp.wins(out, key, tuple(x.shape)), out, xp.zeros_like(out))",
          "    return out", "tests/tape/test_tensor.py"),
    Fault("a cast's gradient keeps the wrong dtype", "core/xpgrad/rules/creation.py", "    lambda g, x_dtype, xp: xp.cast(g, x_dtype),",
          "    lambda g, xp: xp.copy(g),", "tests/rules/test_shapes.py"),
    Fault("a reduction's gradient is spread wrongly", "core/xpgrad/rules/statistical.py", "xp.expand_reduced(g / count, x_shape, axes, keepdims)", "xp.expand_reduced(g, x_shape, axes, keepdims)",
          "tests/rules/test_statistics.py"),
    Fault("erfcx loses its digits far out", SPECIAL + "_error_functions.py", "_FAR = 20.0", "_FAR = 1e300", "tests/special/test_derivatives.py -k erfcx"),
    Fault("the density beyond the domain is finite", SPECIAL + "_incomplete.py", "return g * valid(_gamma_density(a, x, xp), out, xp)",
          "return g * _gamma_density(a, x, xp)", "tests/special/test_derivatives.py -k lie"),
    Fault("the order of a Bessel function has the derivative 0", SPECIAL + "_bessel_functions.py", '@special(no_derivative("jv", "v")', '@special(lambda g, xp: xp.zeros_like(g)',
          "tests/special/test_derivatives.py -k refused"),
    Fault("a quadrature is too coarse", SPECIAL + "_incomplete.py", "for k in range(131)", "for k in range(60)", "tests/special/test_derivatives.py -k gammainc"),
    Fault("the second shape of betainc has the wrong sign", SPECIAL + "_incomplete.py", "return g * -valid(xp.special_betainc_by_a(b, a, 1.0 - x, x), out, xp)",
          "return g * valid(xp.special_betainc_by_a(b, a, 1.0 - x, x), out, xp)", "tests/special/test_derivatives.py -k betainc"),
    Fault("digamma's difference cancels", SPECIAL + "_gamma_functions.py", "    return xp.where(near, -total, plain)", "    return plain", "tests/special/test_derivatives.py -k betaln"),
    Fault("1 / gamma has no derivative at the poles", SPECIAL + "_gamma_functions.py", "    left = x < 0.5", "    left = x < -1e300", "tests/special/test_derivatives.py -k rgamma"),
    Fault("complex polygamma takes the first order for all", SPECIAL + "_gamma_functions.py", "        out = xp.where(n == order, value, out)", "        return value",
          "tests/special/test_derivatives.py -k polygamma"),
    Fault("softmax forgets that its sum moves", SPECIAL + "_elementary.py", "return (g - xp.reduce_sum(g * out, axes, True)) * out", "return g * out",
          "tests/special/test_functions.py -k softmax"),
    Fault("expit's tail is rounded away", SPECIAL + "_elementary.py", "lambda g, x, out, xp: g * (out * xp.special_expit(-x))", "lambda g, x, out, xp: g * (out * (1.0 - out))",
          "tests/special/test_derivatives.py -k expit"),
    Fault("j1's quotient near 0", SPECIAL + "_bessel_functions.py", "t = small * small * (0.25 * sign)", "t = small * small * 0.25", "tests/special/test_derivatives.py -k j1"),
    Fault("a mean of orders is a difference", SPECIAL + "_bessel_functions.py", "(xp.special_iv(v - 1.0, z) + xp.special_iv(v + 1.0, z))", "(xp.special_iv(v - 1.0, z) - xp.special_iv(v + 1.0, z))",
          "tests/special/test_derivatives.py -k iv"),
    Fault("rel_entr is finite where it is infinite", SPECIAL + "_elementary.py", "    inside = (x >= 0) & (y >= 0)\n    return g * -", "    inside = x == x\n    return g * -",
          "tests/special/test_derivatives.py -k lie"),
    Fault("a broken path is taken for a derivative of 0", TESTING + "_checks.py", "if not abs(slope) <= noise +", "if abs(slope) < noise +", "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("a difference of one step counts twice", "core/xpgrad/_basics/differences.py", "at(-step), 2 * step)", "at(-step), step)", "tests/testing/test_check_differentiable.py -k sound and numpy"),
    Fault("forward mode is compared with nothing", TESTING + "_checks.py", "if not close(value, expected, rtol, atol + rtol * size):", "if False:",
          "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("second derivatives are compared with themselves", TESTING + "_checks.py", "value = projected([found[j] for j in places], directions)", "value = expected",
          "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("a write into the caller's array goes unseen", TESTING + "_checks.py", "if not np.array_equal(on_host(after), to_precision_of(before, self.device), equal_nan=after.dtype.differentiable):", "if False:",
          "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("a tolerance forgives a tenth", TESTING + "_options.py", '"gradient": (1e-5, 2.0**14)', '"gradient": (1e-1, 2.0**14)', "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("an expected failure may pass", TESTING + "_checking.py", "if row.outcome in (PASSED, WRITES, CONSTANT) and key[1] is not None:", "if False:", "tests/testing/test_check_differentiable.py -k known"),
    Fault("what another process found is lost", "core/xpgrad_pytest.py", "        report.xpgrad_differentiability = rows", "        pass", "tests/testing/test_plugin.py -k ends_with_a_table"),
    Fault("the adjoint goes the wrong way", SPECIAL + "integrate/_adjoint.py", "return v * 0.0 if found is None else -problem.outside(found)",
          "return v * 0.0 if found is None else problem.outside(found)", "tests/equations/test_integrate.py -k many_parameters"),
    Fault("the start's own time moves nothing", SPECIAL + "integrate/_adjoint.py", "            by_t[0] = -float(a @ problem.rhs(times[0], ys[0]))", "            pass",
          "tests/equations/test_integrate.py -k span"),
    Fault("a new dependence is left out", SPECIAL + "integrate/_adjoint.py", "if not all(e in known for e in inner):", "if False:", "tests/equations/test_integrate.py -k silent"),
    Fault("a graph that was cut goes on", SPECIAL + "_cutting.py", "return not self.e", "return False", "tests/solvers/test_optimize.py -k ends_at_a_cut"),
    Fault("what was there before has no node of its own", SPECIAL + "_cutting.py", "            value = value.clone()", "            pass", "tests/equations/test_integrate.py -k already"),
    Fault("a density's place forgets that scales differ", SPECIAL + "stats/_normal.py", "loc_shape == () == scale.shape", "loc_shape == ()", "tests/special/test_distributions.py -k normal_density"),
    Fault("a tie for the middle has all of the gradient", "core/xpgrad/_tensor/torch_functions.py", " / reduction.sum(chosen.to(wide.dtype))", "", "tests/tape/test_torch_methods.py -k median"),
    Fault("an open link is a parameter of its own", SPECIAL + "_cutting.py", "while isinstance(inner, Link):", "while False:", "tests/equations/test_integrate.py -k second_derivatives"),
    Fault("a stage of the interpolation is left out", SPECIAL + "integrate/_steps.py", "for column in columns[-2::-1]:", "for column in columns[-2:0:-1]:",
          "tests/equations/test_integrate.py -k scipys"),
    Fault("a bound's second derivative counts twice", SPECIAL + "integrate/_quadrature.py", "values = [f(here + step * s) for s, _ in _ENDS]", "values = [f(bound) for _ in _ENDS]",
          "tests/equations/test_quadrature.py -k bounds"),
    Fault("a parabola's last interval is forgotten", SPECIAL + "integrate/_quadrature.py", "    if count % 2:\n        return total", "    if count:\n        return total",
          "tests/equations/test_quadrature.py -k samples"),
    Fault("the exponential is squared once too little", MATRICES + "_function_rows.py", "xp.where(count > k, out @ out, out)", "xp.where(count > k + 1, out @ out, out)", "tests/matrices/test_accuracy.py -k expm"),
    Fault("a block's scale is not undone", MATRICES + "_function_rows.py", "[..., :n, n:] / scale", "[..., :n, n:]", "tests/matrices/test_laws.py -k derivatives_are and expm"),
    Fault("the triangle that is not read gets a gradient", MATRICES + "_equation_rows.py", "return xp.sum_to(-_read_triangle(product, lower, unit, xp), a_shape)", "return xp.sum_to(-product, a_shape)",
          "tests/matrices/test_edges.py -k triangle"),
    Fault("the diagonals of the transpose are off by one", MATRICES + "_equation_rows.py", "max(-n, min(n, upper - k))", "max(-n, min(n, upper - k + 1))", "tests/matrices/test_laws.py -k derivatives_are and banded"),
    Fault("least squares forget what the residual says", MATRICES + "_equation_rows.py", "part = (b - a @ x) @ adjoint(inverse @ back, xp) - back", "part = -back", "tests/matrices/test_laws.py -k derivatives_are and lstsq"),
    Fault("the polar factor of a tall matrix moves within its columns only", MATRICES + "_function_rows.py", "if x.shape[-2] > x.shape[-1]:", "if x.shape[-2] < 0:",
          "tests/matrices/test_laws.py -k derivatives_are and polar"),
    Fault("Sylvester's equation is solved with the transpose forgotten", MATRICES + "_equation_rows.py", "xp.special_linalg_solve_sylvester(xp.swap_last(a), xp.swap_last(b), g)",
          "xp.special_linalg_solve_sylvester(a, xp.swap_last(b), g)", "tests/matrices/test_laws.py -k derivatives_are and solve_sylvester"),
    Fault("a real logarithm of a matrix that has none", "backends/xpgrad_numpy/_matrix_functions.py", "        if _has_negative_eigenvalue(t):\n            return np.nan\n        t, z", "        t, z",
          "tests/matrices/test_edges.py -k not_real"),
    Fault("a singular Sylvester equation has a solution", "backends/xpgrad_numpy/_matrix_functions.py", "    if info:", "    if info < 0:", "tests/matrices/test_edges.py -k singular"),
    Fault("a composed triangular solver forgets the transpose", MATRICES + "_equation_rows.py", "        a = xp.matrix_transpose(a)", "        a = a * 1.0", "tests/matrices/test_edges.py -k compositions"),
    Fault("an adjoint filter runs forwards", SPECIAL + "_convolutions.py", "return xp.reverse(xp.special_recursion(a, xp.reverse(g, last)), last)",
          "return xp.special_recursion(a, g)", "tests/signals/test_filters.py -k differences"),
    Fault("the coefficients of a recursion have the wrong sign", SPECIAL + "_convolutions.py", "return xp.sum_to(-xp.special_sliding_product(longer, out, 1, False), a_shape)",
          "return xp.sum_to(xp.special_sliding_product(longer, out, 1, False), a_shape)", "tests/signals/test_filters.py -k differences"),
    Fault("what wraps around a circle is kept", SPECIAL + "_convolutions.py", "        lengths = [fast_length(n) for n in sizes]", "        lengths = [fast_length(n - 1) for n in sizes]",
          "tests/signals/test_filters.py -k values"),
    Fault("windows are those of the reversed kernel", SPECIAL + "_convolutions.py", "    return xp.sum_to(xp.special_full_convolution(g, other, rank, fourier), shape)",
          "    return xp.sum_to(xp.special_full_convolution(g, xp.reverse(other, (len(other.shape) - 1,)), rank, fourier), shape)", "tests/signals/test_filters.py -k differences"),
    Fault("blocks forget their neighbours", SPECIAL + "_convolutions.py", "parts.append(alone[..., k, :] + xp.matmul(state[..., None, :], free)[..., 0, :])",
          "parts.append(alone[..., k, :])", "tests/signals/test_filters.py -k blocks"),
    Fault("states after a filter forget the outputs", SPECIAL + "signal.py", "for c, t, sign in ((b, x, 1.0), (a, y, -1.0)):", "for c, t, sign in ((b, x, 1.0),):", "tests/signals/test_filters.py -k states"),
    Fault("the second kind of cosines is its own transpose", SPECIAL + "_cosines.py", "_TRANSPOSE = {1: 1, 2: 3, 3: 2, 4: 4}", "_TRANSPOSE = {1: 1, 2: 2, 3: 3, 4: 4}", "tests/signals/test_transforms.py -k differences"),
    Fault("orthogonal cosines keep their end", SPECIAL + "fft.py", "        before[sine] = root / 2", "        before[sine] = 0.5", "tests/signals/test_transforms.py -k values"),
    Fault("a tridiagonal system is not transposed", SPECIAL + "_splines.py", "    u = xp.special_tridiagonal(_transpose_bands(bands, xp), g)", "    u = xp.special_tridiagonal(bands, g)", "tests/signals/test_interpolants.py -k differences"),
    Fault("the second derivative at the right end is seen from the left", SPECIAL + "_splines.py", "_end_equation(right, ops.flip(dx), ops.flip(slope, axis=0), -1.0)", "_end_equation(right, ops.flip(dx), ops.flip(slope, axis=0), 1.0)",
          "tests/signals/test_interpolants.py -k ends"),
    Fault("nan in one column changes another", SPECIAL + "_splines.py", "ops.max(ops.where(known, total, ops.zeros_like(total)))", "ops.max(total)", "tests/signals/test_interpolants.py -k nan"),
    Fault("a traced union forgets its second operand", SPARSE + "dependence.py", "a.sets[left] + b.sets[right])", "a.sets[left] + a.sets[left])", "tests/sparsity/test_patterns.py -k differences"),
    Fault("a factor that is not known counts as 0", SPARSE + "layout_rules.py", "(value := walk.value(x)) is not None and not np.all(kept := nonzero(value))",
          "not np.all(kept := nonzero(walk.value(x) if walk.value(x) is not None else 0.0))", "tests/sparsity/test_patterns.py -k elementwise"),
    Fault("a known matrix has the pattern of its transpose", SPARSE + "contraction_rules.py", "_through(x, x.which.ndim - 2, kept.T)", "_through(x, x.which.ndim - 2, kept)",
          "tests/sparsity/test_patterns.py -k matrix"),
    Fault("arguments that are not differentiated are constants", SPARSE + "propagation.py", "self._raw = {**program.constants, **known}",
          "self._raw = {**program.constants, **{v: np.zeros(v.shape) for v in program.inputs}, **known}", "tests/sparsity -k used_again"),
    Fault("rows are traced from the right", SPARSE + "prepared.py", 'found = jacobian_pattern(call, local, options.by == "rows")', "found = jacobian_pattern(call, local, False)",
          "tests/sparsity/test_patterns.py -k own_products"),
    Fault("a colour is used twice in a row", SPARSE + "colouring.py", "            taken |= seen[i]", "            taken = seen[i]", "tests/sparsity/test_colouring.py -k tridiagonal"),
    Fault("a path of four has two colours", SPARSE + "colouring.py", "taken |= danger[w]", "pass", "tests/sparsity/test_colouring.py -k stars_of_bands"),
    Fault("entries are read without proof", SPARSE + "colouring.py", "    if not np.all(first | second):", "    if False:", "tests/sparsity/test_colouring.py -k refused"),
    Fault("a pattern of one's own is trusted", SPARSE + "prepared.py", '    if given or options.by == "symmetric":', '    if options.by == "none":', "tests/sparsity/test_refusals.py -k lacks"),
    Fault("a prepared number may change", SPARSE + "likeness.py", "isinstance(number, (float, complex)) and not self.fixed", "isinstance(number, (float, complex))", "tests/sparsity/test_refusals.py -k has_to_be"),
    Fault("what is held still is not", AUDIT + "tracing.py", "        self.breaks.append(before)\n        return before.value", "        self.breaks.append(before)\n        return None",
          "tests/audit/test_gallery.py -k detached"),
    Fault("inputs are moved by small steps only", AUDIT + "paths.py", "FINITE = (0.05, -0.05, 0.7, -0.7, 3.0, -3.0)", "FINITE = (1e-6, -1e-6)", "tests/audit/test_gallery.py -k whole_numbers"),
    Fault("shares are those of one line alone", AUDIT + "paths.py", "        before = now\n        if now.agrees", "        if now.agrees", "tests/audit/test_audit.py -k shares"),
    Fault("a where hides nothing", AUDIT + "nonfinite.py", "        if hidden is not None and zero:", "        if False:", "tests/audit/test_gallery.py -k logarithm"),
    Fault("kinks at which no gradient arrives count", AUDIT + "kinks.py", "        where = where & (g != 0)", "        where = where & (g == g)", "tests/audit/test_audit.py -k kink"),
    Fault("detach is not seen", "core/xpgrad/_tensor/tensor.py", 'return self._leaves("detach()", out)', "return out", "tests/audit/test_gallery.py -k detached_mean"),
    Fault("numbers are not seen", "core/xpgrad/_tensor/methods.py", "return self._leaves(call, host.reshape(()).item())", "return host.reshape(()).item()", "tests/audit/test_gallery.py -k an_item"),
    Fault("an inner pass is watched", "core/xpgrad/_tape/requests.py", "state.put(state.mode_with(auditing=None))", "pass", "tests/audit/test_audit.py -k penalty"),
    Fault("memory that several nodes keep counts twice", AUDIT + "cost.py", "            if id(raw) in seen:", "            if raw is None:", "tests/audit/test_audit.py -k cost"),
    Fault("writes behind the back are not seen", AUDIT + "accuracy.py", "unseen = version ==", "unseen = version <", "tests/audit/test_gallery.py -k behind"),
    Fault("the command always succeeds", "core/xpgrad/_cli/auditing.py", "return level if level", "return 0 if level", "tests/audit/test_audit.py -k command"),
]  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_found(fault: Fault, tmp_path: Path) -> None:
    for folder in ("core", "backends"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path / fault.file
    text = target.read_text()
    assert text.count(fault.old) >= 1, f"the text of this fault is no longer in {fault.file}: update the table"
    target.write_text(text.replace(fault.old, fault.new))
    files, _, expression = fault.killer.partition(" -k ")
    # Some faults show only for certain draws of Hypothesis, so the seed is fixed.
    drawn = f"--hypothesis-seed={os.environ.get('XPGRAD_FAULTS_SEED', '0')}"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", drawn, *files.split()]
    path = os.pathsep.join(str(tmp_path / folder) for folder in ("core", "backends"))
    drawn_tests = ("XPGRAD_TEST_SHARE", "XPGRAD_TEST_REPEATS")  # no test may be left out by sampling
    kept = {name: value for name, value in os.environ.items() if name not in drawn_tests}
    environment = {**kept, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        command + (["-k", expression] if expression else []), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1, f"not found (exit {run.returncode}):\n{run.stdout[-3000:]}{run.stderr[-1000:]}"
    assert re.search(r"\b[1-9]\d* failed", run.stdout), run.stdout[-3000:]
