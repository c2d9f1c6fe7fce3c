"""Law: the rules' tests are strong. Each fault planted here, in a copy of the sources, is found by the tests that are named next to it.

The conformance suite has separate planted faults for the contracts.

The tests run without ``--all``, unless a row says so, so that the table also shows what such a run notices.

A fault is one replacement of text in one file. It counts as found only if a test fails, and not if pytest cannot collect the tests. A
replacement whose text no longer exists fails, so that the table follows the code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from xpgrad_conformance import mutants
from xpgrad_conformance.fork_server import Server, available

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
LOOPS = "core/xpgrad/func/"
EXPORTS = "tests/programs/test_exported_loops.py"
PROGRAMS, NATIVE, REPETITION = "core/xpgrad/programs/", "tests/programs/test_native.py", "tests/programs/test_repetition.py"

FAULTS = [
    Fault("the product rule multiplies by the wrong factor", ELEMENTWISE, '@elementwise("g * x2", "g * x1",', '@elementwise("g * x1", "g * x1",', "tests/rules/test_elementwise.py -k multiply"),
    Fault("the derivative of the cosine has the wrong sign", ELEMENTWISE, "lambda g, x, xp: -g * xp.sin(x)", "lambda g, x, xp: g * xp.sin(x)",
          "tests/rules/test_elementwise.py -k cos"),
    Fault("a gradient that is passed on counts as newly allocated", ELEMENTWISE, 'op="+", fresh=False', 'op="+", fresh=True',
          "tests/rules/test_elementwise.py tests/rules/test_shapes.py -k fresh"),
    Fault("saved values are never freed", ENGINE, "node.step(g, empty, retain)", "node.step(g, empty, True)", "tests/memory/test_memory.py"),
    Fault("complex gradients are not conjugated", NODECLASS, 't("_complex = _is_complex(g)")', 't("_complex = False")',
          "tests/rules/test_elementwise.py -k complex"),
    Fault("of repeated indices only one contributes to the gradient", KERNELS, "np.add.at(out.reshape(-1), key.reshape(-1), values.reshape(-1))",
          "out.reshape(-1)[key.reshape(-1)] = values.reshape(-1)", "tests/rules/test_shapes.py"),
    Fault("an overwritten duplicate of an index gets a gradient", "core/xpgrad/rules/writing.py", "    return xp.where(xp.wins(out, key, tuple(x.shape)), out, xp.zeros_like(out))",
          "    return out", "tests/tape/test_tensor.py"),
    Fault("a cast's gradient keeps the wrong dtype", "core/xpgrad/rules/creation.py", "    lambda g, x_dtype, xp: xp.cast(g, x_dtype),",
          "    lambda g, xp: xp.copy(g),", "tests/rules/test_shapes.py"),
    Fault("the gradient of a mean is not divided by the count", "core/xpgrad/rules/statistical.py", "xp.expand_reduced(g / count, x_shape, axes, keepdims)", "xp.expand_reduced(g, x_shape, axes, keepdims)",
          "tests/rules/test_statistics.py"),
    Fault("erfcx loses digits for large arguments", SPECIAL + "_error_functions.py", "_FAR, _TERMS = 20.0", "_FAR, _TERMS = 1e300", "tests/special/test_derivatives.py -k erfcx"),
    Fault("the derivative of gammainc outside the domain is finite", SPECIAL + "_incomplete.py", "return g * valid(_gamma_density(a, x, xp), out, xp)",
          "return g * _gamma_density(a, x, xp)", "tests/special/test_derivatives.py -k lie"),
    Fault("the order of a Bessel function has the derivative 0", SPECIAL + "_bessel_functions.py", '@special(no_derivative("jv", "v")', '@special(lambda g, xp: xp.zeros_like(g)',
          "tests/special/test_derivatives.py -k refused"),
    Fault("a quadrature has too few points", SPECIAL + "_incomplete.py", "for k in range(131)", "for k in range(60)", "tests/special/test_derivatives.py -k gammaincc"),
    Fault("the derivative of betainc with respect to b has the wrong sign", SPECIAL + "_incomplete.py", "return g * -valid(xp.special_betainc_by_a(b, a, 1.0 - x, x), out, xp)",
          "return g * valid(xp.special_betainc_by_a(b, a, 1.0 - x, x), out, xp)", "tests/special/test_derivatives.py -k betainc"),
    Fault("the difference of two digammas loses digits to cancellation", SPECIAL + "_gamma_functions.py", "    return xp.where(near, -total, plain)", "    return plain", "tests/special/test_derivatives.py -k betaln"),
    Fault("1 / gamma has no derivative at the poles", SPECIAL + "_gamma_functions.py", "    left = x < 0.5", "    left = x < -1e300", "tests/special/test_derivatives.py -k rgamma"),
    Fault("complex polygamma uses the first order for all elements", SPECIAL + "_gamma_functions.py", "        out = xp.where(n == order, value, out)", "        return value",
          "tests/special/test_derivatives.py -k polygamma"),
    Fault("the gradient of softmax ignores the normalisation", SPECIAL + "_elementary.py", "return (g - xp.reduce_sum(g * out, axes, True)) * out", "return g * out",
          "tests/special/test_functions.py -k softmax"),
    Fault("the derivative of expit loses digits in the tail", SPECIAL + "_elementary.py", "lambda g, x, out, xp: g * (out * xp.special_expit(-x))", "lambda g, x, out, xp: g * (out * (1.0 - out))",
          "tests/special/test_derivatives.py -k expit"),
    Fault("the series of j1(x) / x near 0 has the wrong signs", SPECIAL + "_bessel_functions.py", "t = small * small * (0.25 * sign)", "t = small * small * 0.25", "tests/special/test_derivatives.py -k j1"),
    Fault("a mean of two Bessel orders is computed as their difference", SPECIAL + "_bessel_functions.py", "(xp.special_iv(v - 1.0, z) + xp.special_iv(v + 1.0, z))", "(xp.special_iv(v - 1.0, z) - xp.special_iv(v + 1.0, z))",
          "tests/special/test_derivatives.py -k iv"),
    Fault("the derivative of rel_entr outside its domain is finite", SPECIAL + "_elementary.py", "-nan_unless((x >= 0) & (y >= 0), ", "-nan_unless(x == x, ",
          "tests/special/test_derivatives.py -k lie"),
    Fault("a missing derivative counts as 0", TESTING + "_checks.py", "if not abs(slope) <= noise +", "if abs(slope) < noise +", "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("a central difference is divided by one step instead of two", "core/xpgrad/_basics/differences.py", "at(-step), 2 * step)", "at(-step), step)", "tests/testing/test_check_differentiable.py -k sound and numpy"),
    Fault("forward mode is not compared with differences", TESTING + "_checks.py", "if not close(value, expected, rtol, allowed):", "if False:",
          "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("second derivatives are compared with themselves", TESTING + "_checks.py", "value = project([found[j] for j in places], directions)", "value = expected",
          "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("a write into the caller's array is not noticed", TESTING + "_checks.py", "if not np.array_equal(on_host(after), to_precision_of(before, self.device), equal_nan=after.dtype.differentiable):", "if False:",
          "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("derivatives of tests that differ are right", TESTING + "_suite_derivatives.py", 'else "wrong", reason', 'else "right", reason',
          "tests/testing/test_suites.py -k derivatives_are_compared"),
    Fault("a limit before which a method stops has no multiplier", SPECIAL + "_constraints.py", "            if self._holds(k, places, slope, jacobian):",
          "            if False:", "tests/solvers/test_constraints.py -k stop_before"),
    Fault("a pseudoinverse without small singular values counts as one of constant rank", "core/xpgrad/rules/matrices.py",
          "    if truncates(rtol, x, xp):", "    if truncates(None, x, xp):", "tests/rules/test_linalg.py -k small_singular"),
    Fault("the gradient of a pseudoinverse has the rounding errors of a projection", "core/xpgrad/rules/matrices.py",
          "left, right = left - x @ (out @ left), right - (right @ out) @ x", "pass", "tests/rules/test_linalg.py -k keeps_its_digits"),
    Fault("a tolerance is 10 %", TESTING + "_options.py", '"gradient": (1e-5, 2.0**14)', '"gradient": (1e-1, 2.0**14)', "tests/testing/test_check_differentiable.py -k noticed_by_its_check"),
    Fault("an expected failure that passes is not reported", TESTING + "_checking.py", "if row.outcome in (PASSED, WRITES, CONSTANT) and key[1] is not None:", "if False:", "tests/testing/test_check_differentiable.py -k known"),
    Fault("results from another process are lost", "core/xpgrad_pytest.py", "        report.xpgrad_differentiability = rows", "        pass", "tests/testing/test_plugin.py -k ends_with_a_table"),
    Fault("two masks always count as the same", PROGRAMS + "selections.py", "    if one is other:\n        return True\n    recorder =", "    if True:\n        return True\n    recorder =",
          "tests/programs/test_selections.py -k refused"),
    Fault("what a mask leaves out is summed", PROGRAMS + "selected_kernels.py", "return xp.where(_align_mask(backend, x.mask, x.behind), x.full, xp.full_like(x.full, value))", "return x.full",
          "tests/programs/test_selections.py -k random"),
    Fault("the mean of a selection is divided by all", PROGRAMS + "selections.py", "out = xp.reduce_sum(xp.astype(self.mask, dtype), None, False)", "out = xp.reduce_sum(xp.ones_like(xp.astype(self.mask, dtype)), None, False)",
          "tests/programs/test_selections.py -k random"),
    Fault("a reduced axis before the selected one is not counted", PROGRAMS + "selected_kernels.py", "x.axis - sum(a < x.axis for a in axes)", "x.axis",
          "tests/programs/test_selections.py -k columns"),
    Fault("functions see what a mask leaves out", PROGRAMS + "selected_kernels.py", "out.full = xp.where(_align_mask(backend, mask, out.behind), full, other)", "pass",
          "tests/programs/test_selections.py -k left_out"),
    Fault("positions of another array are taken for a mask", PROGRAMS + "selections.py", "and tuple(shape[axis : axis + mask.ndim]) == mask.shape", "", "tests/programs/test_selections.py -k crossings"),
    Fault("the adjoint equation has the wrong sign", SPECIAL + "integrate/_adjoint.py", "return v * 0.0 if found is None else -problem.to_array(found)",
          "return v * 0.0 if found is None else problem.to_array(found)", "tests/equations/test_integrate.py -k many_parameters"),
    Fault("the derivative with respect to the first time is missing", SPECIAL + "integrate/_adjoint.py", "            by_t[0] = -float(a @ problem.rhs(times[0], ys[0]))", "            pass",
          "tests/equations/test_integrate.py -k span"),
    Fault("a parameter that the equation uses only later is left out", SPECIAL + "integrate/_adjoint.py", "if not all(e in known for e in inner):", "if False:", "tests/equations/test_integrate.py -k silent"),
    Fault("the Jacobian of sensitivities has its diagonals in the wrong order", SPECIAL + "integrate/_sensitivities.py", "out[i - j + n - 1, j::n]", "out[j - i + n - 1, j::n]",
          "tests/equations/test_sensitivities.py -k steps_long"),
    Fault("the error of sensitivities is not controlled", SPECIAL + "integrate/_sensitivities.py", "(tolerance / max(1.0, scale)", "(1e9 * tolerance / max(1.0, scale)", "tests/equations/test_sensitivities.py -k is_controlled"),
    Fault("sensitivities are used where reverse mode is cut", SPECIAL + "integrate/_way.py", "return compiled is not None and _call_plainly(joint.agrees, times[-1], ys[-1], self.tensors)",
          "return compiled is not None", "tests/equations/test_sensitivities.py -k by_the_adjoint"),
    Fault("what was compiled serves a function with other defaults", SPECIAL + "_closures.py", "self.read(x.__defaults__)", "self.read(None)", "tests/equations/test_sensitivities.py -k counts_at_once"),
    Fault("a fit is constant though a bound is not", SPECIAL + "_bounds.py", "any(isinstance(v, Tensor) for side in (low, high) if side is not None for v in side)", "False", "tests/solvers/test_optimize.py -k nothing_moves_it"),
    Fault("a backward pass does not stop at a cut in the graph", "core/xpgrad/_tape/links.py", "return not self.e", "return False", "tests/solvers/test_optimize.py -k ends_at_a_cut"),
    Fault("a parameter computed before the solve does not get a separate node", SPECIAL + "_cutting.py", "            value = value.clone()", "            pass", "tests/equations/test_integrate.py -k already"),
    Fault("the derivative with respect to loc assumes a scalar scale", SPECIAL + "stats/_normal.py", "loc_shape == () == scale.shape", "loc_shape == ()", "tests/special/test_distributions.py -k normal_density"),
    Fault("each of several equal medians gets the whole gradient", "core/xpgrad/_tensor/torch_reductions.py", " / reduction.sum(chosen.to(wide.dtype))", "", "tests/rules/test_statistics.py -k equal_medians"),
    Fault("an open link counts as a separate parameter", "core/xpgrad/_tape/links.py", "while isinstance(inner, Link) and inner.e:", "while False:", "tests/transforms/test_loops.py -k twice"),
    Fault("a stage of the interpolation is left out", SPECIAL + "integrate/_steps.py", "for column in columns[-2::-1]:", "for column in columns[-2:0:-1]:",
          "tests/equations/test_integrate.py -k scipys"),
    Fault("the second derivative with respect to a bound is twice too large", SPECIAL + "integrate/_quadrature.py", "values = [f(here + step * s) for s, _ in _ENDS]", "values = [f(bound) for _ in _ENDS]",
          "tests/equations/test_quadrature.py -k bounds"),
    Fault("Simpson's rule leaves out the last of an odd number of intervals", SPECIAL + "integrate/_quadrature.py", "    if count % 2:\n        return total", "    if count:\n        return total",
          "tests/equations/test_quadrature.py -k samples"),
    Fault("the matrix exponential is squared once too few", MATRICES + "_function_rows.py", "xp.where(count > k, out @ out, out)", "xp.where(count > k + 1, out @ out, out)", "tests/matrices/test_accuracy.py -k expm"),
    Fault("the scale of a block matrix is not undone", MATRICES + "_function_rows.py", "[..., :n, n:] / scale", "[..., :n, n:]", "tests/matrices/test_laws.py -k derivatives_are and expm"),
    Fault("the triangle that is not read gets a gradient", MATRICES + "_equation_rows.py", "return xp.sum_to(-_read_triangle(product, lower, unit, xp), a_shape)", "return xp.sum_to(-product, a_shape)",
          "tests/matrices/test_edges.py -k triangle"),
    Fault("the diagonals of the transpose are off by one", MATRICES + "_equation_rows.py", "max(-n, min(n, upper - k))", "max(-n, min(n, upper - k + 1))", "tests/matrices/test_laws.py -k derivatives_are and banded"),
    Fault("the gradient of least squares ignores the residual", MATRICES + "_equation_rows.py", "part = (b - a @ x) @ adjoint(inverse @ back, xp) - back", "part = -back", "tests/matrices/test_laws.py -k derivatives_are and lstsq"),
    Fault("the gradient of a tall matrix's polar factor stays in its column space", "core/xpgrad/rules/factorisations.py", "if u.shape[-2] > u.shape[-1]:", "if u.shape[-2] < 0:",
          "tests/matrices/test_laws.py -k derivatives_are and polar"),
    Fault("the gradient of a Sylvester equation uses the matrix instead of its transpose", MATRICES + "_equation_rows.py", "xp.special_linalg_solve_sylvester(xp.swap_last(a), xp.swap_last(b), g)",
          "xp.special_linalg_solve_sylvester(a, xp.swap_last(b), g)", "tests/matrices/test_laws.py -k derivatives_are and solve_sylvester"),
    Fault("a matrix without a real logarithm gets one", "backends/xpgrad_numpy/_matrix_functions.py", "        if _has_negative_eigenvalue(t):\n            return np.nan\n        t, z", "        t, z",
          "tests/matrices/test_edges.py -k not_real"),
    Fault("a singular Sylvester equation is not reported", "backends/xpgrad_numpy/_matrix_functions.py", "    if info:", "    if info < 0:", "tests/matrices/test_edges.py -k singular"),
    Fault("a composed triangular solver ignores the transpose", MATRICES + "_equation_rows.py", "        a = xp.matrix_transpose(a)", "        a = a * 1.0", "tests/matrices/test_edges.py -k compositions"),
    Fault("the adjoint of a recursive filter runs forwards", SPECIAL + "_convolutions.py", "return xp.reverse(xp.special_recursion(a, xp.reverse(g, last)), last)",
          "return xp.special_recursion(a, g)", "tests/signals/test_filters.py -k differences"),
    Fault("the coefficients of a recursion have the wrong sign", SPECIAL + "_convolutions.py", "return xp.sum_to(-xp.special_sliding_product(longer, out, 1, False), a_shape)",
          "return xp.sum_to(xp.special_sliding_product(longer, out, 1, False), a_shape)", "tests/signals/test_filters.py -k differences"),
    Fault("a Fourier convolution is too short, so it wraps around", SPECIAL + "_convolutions.py", "        lengths = [fast_length(n) for n in sizes]", "        lengths = [fast_length(n - 1) for n in sizes]",
          "tests/signals/test_filters.py -k values"),
    Fault("the gradient of a convolution uses the reversed kernel", SPECIAL + "_convolutions.py", "    return xp.sum_to(xp.special_full_convolution(g, other, rank, fourier), shape)",
          "    return xp.sum_to(xp.special_full_convolution(g, xp.reverse(other, (len(other.shape) - 1,)), rank, fourier), shape)", "tests/signals/test_filters.py -k differences"),
    Fault("a filter computed in blocks ignores the previous block", SPECIAL + "_convolutions.py", "parts.append(alone[..., k, :] + xp.matmul(state[..., None, :], free)[..., 0, :])",
          "parts.append(alone[..., k, :])", "tests/signals/test_filters.py -k blocks"),
    Fault("the final state of a filter ignores the outputs", SPECIAL + "signal.py", "for c, t, sign in ((b, x, 1.0), (a, y, -1.0)):", "for c, t, sign in ((b, x, 1.0),):", "tests/signals/test_filters.py -k states"),
    Fault("the cosine transform of type 2 counts as its own transpose", SPECIAL + "_cosines.py", "_TRANSPOSE = {1: 1, 2: 3, 3: 2, 4: 4}", "_TRANSPOSE = {1: 1, 2: 2, 3: 3, 4: 4}", "tests/signals/test_transforms.py -k differences"),
    Fault("an orthogonal cosine transform scales the last element wrongly", SPECIAL + "fft.py", "        before[sine] = root / 2", "        before[sine] = 0.5", "tests/signals/test_transforms.py -k values"),
    Fault("a tridiagonal system is not transposed", SPECIAL + "_splines.py", "    u = xp.special_tridiagonal(_transpose_bands(bands, xp), g)", "    u = xp.special_tridiagonal(bands, g)", "tests/signals/test_interpolants.py -k differences"),
    Fault("the spline's condition at the right end has the wrong sign", SPECIAL + "_splines.py", "_end_equation(right, ops.flip(dx), ops.flip(slope, axis=0), -1.0)", "_end_equation(right, ops.flip(dx), ops.flip(slope, axis=0), 1.0)",
          "tests/signals/test_interpolants.py -k ends"),
    Fault("nan in one column changes another", SPECIAL + "_splines.py", "ops.max(ops.where(known, total, ops.zeros_like(total)))", "ops.max(total)", "tests/signals/test_interpolants.py -k nan"),
    Fault("a traced union forgets its second operand", SPARSE + "dependence.py", "a.sets[left] + b.sets[right])", "a.sets[left] + a.sets[left])", "tests/sparsity/test_patterns.py -k differences"),
    Fault("a factor that is not known counts as 0", SPARSE + "layout_rules.py", "(value := walk.value(x)) is not None and not np.all(kept := nonzero(value))",
          "not np.all(kept := nonzero(walk.value(x) if walk.value(x) is not None else 0.0))", "tests/sparsity/test_patterns.py -k elementwise"),
    Fault("the pattern of a known matrix is that of its transpose", SPARSE + "contraction_rules.py", "_through(x, x.which.ndim - 2, kept.T)", "_through(x, x.which.ndim - 2, kept)",
          "tests/sparsity/test_patterns.py -k matrix"),
    Fault("arguments that are not differentiated are constants", SPARSE + "propagation.py", "self._raw = {**program.constants, **known}",
          "self._raw = {**program.constants, **{v: np.zeros(v.shape) for v in program.inputs}, **known}", "tests/sparsity -k used_again"),
    Fault("a pattern by rows is traced by columns", SPARSE + "prepared.py", 'found = jacobian_pattern(call, local, options.by == "rows")', "found = jacobian_pattern(call, local, False)",
          "tests/sparsity/test_patterns.py -k own_products"),
    Fault("two columns that share a row get the same colour", SPARSE + "colouring.py", "            taken |= seen[i]", "            taken = seen[i]", "tests/sparsity/test_colouring.py -k tridiagonal"),
    Fault("the star colouring allows a path of four with two colours", SPARSE + "colouring.py", "taken |= danger[w]", "pass", "tests/sparsity/test_colouring.py -k stars_of_bands"),
    Fault("entries are read without a check of the colouring", SPARSE + "colouring.py", "    if not np.all(first | second):", "    if False:", "tests/sparsity/test_colouring.py -k refused"),
    Fault("a pattern given by the user is not checked", SPARSE + "prepared.py", '    if given or options.by == "symmetric":', '    if options.by == "none":', "tests/sparsity/test_refusals.py -k lacks"),
    Fault("a number that a prepared derivative depends on may change", SPARSE + "likeness.py", "isinstance(number, (float, complex)) and not self.fixed", "isinstance(number, (float, complex))", "tests/sparsity/test_refusals.py -k has_to_be"),
    Fault("a detached value is not frozen in the audit's differences", AUDIT + "tracing.py", "        self.breaks.append(before)\n        return before.value", "        self.breaks.append(before)\n        return None",
          "tests/audit/test_gallery.py -k detached"),
    Fault("the audit perturbs inputs by small steps only", AUDIT + "paths.py", "FINITE = (0.05, -0.05, 0.7, -0.7, 3.0, -3.0)", "FINITE = (1e-6, -1e-6)", "tests/audit/test_gallery.py -k whole_numbers"),
    Fault("the audit adds the shares of earlier lines to a line's share", AUDIT + "paths.py", "        before = now\n        if now.agrees", "        if now.agrees", "tests/audit/test_audit.py -k shares"),
    Fault("the audit ignores nan hidden by a where", AUDIT + "nonfinite.py", "        if hidden is not None and zero:", "        if False:", "tests/audit/test_gallery.py -k logarithm"),
    Fault("the audit reports kinks that receive no gradient", AUDIT + "kinks.py", "        where = where & (g != 0)", "        where = where & (g == g)", "tests/audit/test_audit.py -k kink"),
    Fault("the audit does not notice detach", "core/xpgrad/_tensor/tensor.py", 'return self._leaves("detach()", out)', "return out", "tests/audit/test_gallery.py -k detached_mean"),
    Fault("the audit does not notice conversions to numbers", "core/xpgrad/_tensor/methods.py", "return self._leaves(call, host.reshape(()).item())", "return host.reshape(()).item()", "tests/audit/test_gallery.py -k an_item"),
    Fault("the audit records operations of an inner pass", "core/xpgrad/_tape/requests.py", "state.put(state.mode_with(auditing=None))", "pass", "tests/audit/test_audit.py --all -k penalty"),
    Fault("memory saved by several nodes is counted twice", AUDIT + "cost.py", "            if id(raw) in seen:", "            if raw is None:", "tests/audit/test_audit.py -k cost"),
    Fault("the audit does not notice writes that no version counts", AUDIT + "accuracy.py", "unseen = version ==", "unseen = version <", "tests/audit/test_gallery.py -k behind"),
    Fault("the command always succeeds", "core/xpgrad/_cli/auditing.py", "return level if level", "return 0 if level", "tests/audit/test_audit.py -k command"),
    Fault("arrays in rows have the strides of other lengths", "core/xpgrad/_basics/shapes.py", "out[i + 1] * shape[i + 1]", "out[i + 1] * shape[i]",
          "tests/programs/test_views.py"),
    Fault("the last elements of a divided loop are dropped", PROGRAMS + "native/llvm_text.py", "length * (k + 1) // count", "length // count * (k + 1)",
          f"{NATIVE} -k large"),
    Fault("a workspace is used again too early", PROGRAMS + "scheduling.py", "used[0][0] < first", "used[0][0] <= first", f"{NATIVE} -k workspace"),
    Fault("the first index out of bounds is taken for good", PROGRAMS + "native/llvm_text.py", "w.compare('ge', 'int64', index, length)", "w.compare('gt', 'int64', index, length)",
          f"{NATIVE} -k just_beyond"),
    Fault("chunks of a sum overlap", PROGRAMS + "nests.py", "dialect.chunk_end(start, chunk, end)", "dialect.chunk_end(start, 2 * chunk, end)", f"{NATIVE} -k large"),
    Fault("an array that is read again is overwritten", PROGRAMS + "lowering_steps.py", "return self.readers.get(v) == 1 and", "return self.readers.get(v, 0) <= 2 and", f"{NATIVE} -k read_again"),
    Fault("a loop reads a sum before it is complete", PROGRAMS + "scheduling.py", "if not local[token] or token not in s.args or", "if token not in s.args or", f"{NATIVE} -k complete"),
    Fault("a maximum loses nan", PROGRAMS + "native/llvm_text.py", "first = w.emit(f\"or i1 {first}, {w.is_nan(kind, a[0])}\")", "pass", f"{NATIVE} -k special"),
    Fault("arrays in columns are read as if in rows", "backends/xpgrad_numpy/_native_calls.py", "ARGUMENT_FLAGS, RESULT_FLAGS = 0x101, 0x501", "ARGUMENT_FLAGS, RESULT_FLAGS = 0x100, 0x501", f"{NATIVE} -k order"),
    Fault("threads add to one sum at the same time", PROGRAMS + "scheduling.py", "parts, parts, out.size", "parts, parts, 0", f"{NATIVE} -k large"),
    Fault("a loop in machine code loses its last step", "backends/xpgrad_numpy/_native_function.py", "_Group(r.count,", "_Group(r.count - 1,", f"{REPETITION} -k threads_share or out_of_bounds"),
    Fault("the last carry of a scan in C lies in spare memory", PROGRAMS + "c/control_text.py", 'f"({length} - step) % 2"', '"step % 2"', f"{EXPORTS} -k sources_compute"),
    Fault("the way back through a loop in C goes forward", PROGRAMS + "c/control_text.py", "'(count - 1 - visit)' if passes.reverse[k] else 'visit'", "'visit'",
          f"{EXPORTS} -k sources_compute"),
    Fault("a pass through a loop in C that ran no step has no result", PROGRAMS + "c/control_text.py", "        if results:", "        if False:",
          f"{EXPORTS} -k sources_compute"),
    Fault("a loop gets the imaginary parts of a complex operand first", PROGRAMS + "lowering_steps.py", "return views[0].buffer, views[0].offset", "return views[0].buffer, views[-1].offset",
          f"{EXPORTS} -k in_every_dtype"),
    Fault("a loop in C loses its last step", PROGRAMS + "c/c_text.py", "step < {region.count};", "step < {region.count - 1};", f"{REPETITION} -k few_parts or numbers_differ"),
    Fault("addresses in a loop do not advance", PROGRAMS + "repetition.py", "(places[1][1] - places[0][1]) // buffer.itemsize", "0", f"{REPETITION} -k replace"),
    Fault("addresses that advance unevenly are taken for even ones", PROGRAMS + "repetition.py", "if _breaks(places, 1):", "if places[0][0] is not places[1][0]:", f"{REPETITION} -k replace"),
    Fault("numbers that differ between the steps of a loop are taken for equal", PROGRAMS + "repetition.py", "if len(set(map(_literal, values))) > 1:", "if False:", f"{REPETITION} -k numbers_differ"),
    Fault("lengths that change unevenly are taken for even ones", PROGRAMS + "repetition.py", "if any(b - a != c - b for", "if any(b - a > 1e9 for", f"{REPETITION} -k uneven_lengths"),
    Fault("machine code is kept where others can write", PROGRAMS + "native/cache.py", "not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)", "True", f"{NATIVE} -k others"),
    Fault("a compiled function forgets that an argument requires grad", PROGRAMS + "compiled.py", "is {'' if need else 'not '}None\"", "is {'' if need else 'not '}None\" if need else 'False'",
          f"{NATIVE} -k turns"),
    Fault("the backward pass of a scan goes forward", LOOPS + "_scans.py", "back.run, not body.reverse", "back.run, body.reverse", "tests/transforms/test_loops.py -k test_gradients_reach"),
    Fault("a pass through a scan goes on behind what its steps close over", LOOPS + "_loop_nodes.py", "cut_below([out._node for out, _ in pairs], own, start, type(pairs[0][0]))", "[]",
          "tests/transforms/test_loops.py -k test_gradients_reach"),
    Fault("a NumPy program writes to the caller's arguments", "core/xpgrad/_numpy/code.py", "func(*tree_map(own, args), **tree_map(own, options))", "func(*args, **options)",
          "tests/numpy_protocols/test_numpy_code.py -k numpys"),
    Fault("what a NumPy program overwrites is not kept", "core/xpgrad/_modes/state.py", "copies=True, ", "", "tests/numpy_protocols/test_numpy_code.py -k differences"),
    Fault("elements are views in a NumPy program", "core/xpgrad/_numpy/semantics.py", "return out.clone() if single else out", "return out", "tests/numpy_protocols/test_numpy_code.py -k numpys"),
    Fault("arrays are transposed as in PyTorch in a NumPy program", "core/xpgrad/_tensor/torch_methods.py", "    @as_in_numpy_code\n    @_document_axes\n    def transpose(", "    @_document_axes\n    def transpose(",
          "tests/numpy_protocols/test_array_methods.py -k numpys"),
    Fault("scalars change in place in a NumPy program", "core/xpgrad/_tensor/writing.py", "if is_operator and mode", "if not is_operator and mode", "tests/numpy_protocols/test_numpy_code.py -k numpys"),
    Fault("the gradient of a written value is a view of what is overwritten", "core/xpgrad/_operations/backward.py", 't("_grad = _kernels.copy(_grad)")', 't("pass")',
          "tests/tape/test_writes_in_loops.py"),
    Fault("a gradient that others refer to is overwritten", "core/xpgrad/_operations/backward.py", "_reuses = _self.owned and ", "_reuses = ", "tests/tape/test_writes_in_loops.py"),
    Fault("an element is written into what all elements share", "core/xpgrad/_tensor/batching.py", "if has_tangent or not was_made_within(base, cls.depth) or", "if has_tangent or",
          "tests/transforms/test_vmap_writes.py -k outside"),
    Fault("an element is written into what an outer batch made", "core/xpgrad/_modes/batch_levels.py", "_LEVELS.get()[depth - 1 :]", "_LEVELS.get()",
          "tests/transforms/test_vmap_writes.py -k outside"),
    Fault("the tangent of what becomes an element is lost", "core/xpgrad/_tensor/batching.py", "if has_tangent or not", "if not", "tests/transforms/test_vmap_writes.py -k derivatives"),
    Fault("elements of a batch that are done go on changing", "core/xpgrad/func/_loops.py", "where(held, x, old) for x, old in zip(guarded(values), values)", "x for x, old in zip(guarded(values), values)",
          "tests/transforms/test_loops.py -k while_loop_of_a_batch"),
    Fault("two scans of the same arrays count as one", PROGRAMS + "simplify.py", "return (Inner, id(x))", "return (Inner, len(x.programs))", "tests/programs/test_scans.py -k twice"),
    Fault("a loop that runs no step returns the memory of its arguments", PROGRAMS + "numpy_text.py", "({', '.join([f'{x}.copy()' for x in init])},)", "({', '.join(init)},)", "tests/programs/test_scans.py -k memory"),
    Fault("the way back through a loop goes forward", "core/xpgrad/programs/passes_text.py", "{f'reversed({rows})' if reverse else rows}", "{rows}",
          "tests/programs/test_scans.py -k on_values_on"),
    Fault("a pass through passes drops what later ones gave", LOOPS + "_loop_passes.py", "_sum(c, grads.get(width + k), totals.get(width + k))", "_sum(c, grads.get(width + k))",
          "tests/programs/test_while_derivatives.py -k newton and third"),
    Fault("tangents are dropped that functions need which run again", "core/xpgrad/_transforms/forward/levels.py", "        if self.keeps:", "        if False:",
          "tests/memory/test_checkpoint.py -k modes_nest"),
    Fault("values saved in a graph that is cut have no tangents", "core/xpgrad/_transforms/forward/levels.py", "while isinstance(node, (Link, Unpacked)):", "while False:",
          "tests/programs/test_while_derivatives.py --all -k products"),
    Fault("a loop that runs again reads new values of free variables", "core/xpgrad/func/_loops.py", "test, body = _with_present_values(test), _with_present_values(body)", "pass",
          "tests/programs/test_scans.py -k free_variables"),
    Fault("a step is tried out on the values of the first one", LOOPS + "_loop_nodes.py", "if scan is None or not tensors:", "if True:",
          "tests/transforms/test_loops.py -k differ_from_step"),
    Fault("a step that is computed again drops what it closes over", LOOPS + "_recomputed.py", "edges = edges_outside(results, own, first)", "edges = []",
          "tests/transforms/test_loops.py -k differ_from_step"),
    Fault("tangents of constants are lost in compiled functions", "core/xpgrad/_transforms/forward/levels.py", "x, tangent = as_captured(x), as_captured(tangent)", "pass",
          "tests/programs/test_compile.py --all -k take_constants"),
    Fault("a batch of constants is of another class than captured values", LOOPS + "_vmap.py", "as_captured(_move_to_front(x, d))", "_move_to_front(x, d)",
          "tests/programs/test_compile.py --all -k take_constants"),
    Fault("sparse systems solve their adjoint with the matrix itself", SPECIAL + "sparse/_rows.py", "xp.special_sparse_solution(entries, g, key[::-1], lengths)", "xp.special_sparse_solution(entries, g, key, lengths)",
          "tests/matrices/test_laws.py -k sparse"),
    Fault("factors of other entries are used again", "backends/xpgrad_numpy/_sparse.py", "or not np.array_equal(known[0], entries)", "", "tests/matrices/test_sparse.py -k factorised_once"),
    Fault("a sparse matrix that has changed is not converted again", SPECIAL + "sparse/_array.py", "return known[2] if all(map(np.array_equal, parts, known[1])) else None", "return known[2]",
          "tests/matrices/test_sparse.py -k changes"),
    Fault("compressed entries stay in their order", "backends/xpgrad_numpy/_sparse.py", "entries if self.order is None else entries[self.order]", "entries", "tests/matrices/test_laws.py -k sparse"),
    Fault("the entries of a sparse product do not count in patterns", SPARSE + "contraction_rules.py", "    if entries in walk.tracked:", "    if False:", "tests/matrices/test_sparse.py -k patterns"),
    Fault("the test of a loop gets what the step reads", PROGRAMS + "capture.py", "return (tested, program), found, (read, shared)", "return (tested, program), found, (shared, shared)", "tests/programs/test_scans.py -k on_values_on"),
    Fault("a jvp gets an argument instead of its missing tangent", "core/xpgrad/_transforms/forward/levels.py", "zeros_like(a) if t is None and ctx._materialize", "a if t is None and ctx._materialize",
          "tests/random_programs/test_functions.py"),
    Fault("a carry of constants has tangents of 0 in a compiled loop", LOOPS + "_scans.py", "[lowering.fitting_count(c) for c in init]", "[lowering.count(c) for c in init]",
          "tests/programs/test_scans.py -k infinite"),
    Fault("a variable that gets a tangent in the second step has none", LOOPS + "_loop_lowering.py", "if larger != counts:", "if not is_known:", "tests/programs/test_scans.py -k infinite"),
    Fault("a branch writes to what it closes over", LOOPS + "_loops.py", '"cond", "true_fun", lambda: branch(true_fun, "true_fun"), [true_fun], given', '"cond", "true_fun", lambda: branch(true_fun, "true_fun"), [], given',
          "tests/transforms/test_loops.py -k refused"),
    Fault("stacked results that nobody needs are kept", PROGRAMS + "simplify.py", "if k < count or operation.results[k] in needed", "if True", "tests/programs/test_scans.py -k left_out"),
    Fault("a rule's value without the level of its run loses the outer derivatives", "core/xpgrad/dialects/hips/_records.py", "            RUNS.set((*runs, self))\n        try:\n            self._mark",
          "            pass\n        try:\n            self._mark", "tests/dialects/test_hips_extended.py -k level_in_a_rule"),
    Fault("ufuncs ask a program's own class of arrays before a Tensor", "core/xpgrad/dialects/hips/_arrays.py", "            cls.__array_ufunc__ = __array_ufunc__", "            pass",
          "tests/dialects/test_hips_extended.py -k programs_own_class"),
    Fault("an audit freezes an inner gradient without its tangent", "core/xpgrad/_audit/tracing.py", "if tangent is not None and (inside := _inside(tangent))._node is None:", "if False:",
          "tests/audit/test_audit.py -k tangent_has_left"),
    Fault("an empty batch counts as expanded", "core/xpgrad/_transforms/batch/batch.py", "        if not x.level.size:", "        if False:", "tests/transforms/test_vmap_writes.py -k without_elements"),
]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Server | None]:
    """A server that runs the tests, as far as processes can fork here."""
    server = Server(*mutants.LIBRARIES) if available() else None
    yield server
    if server is not None:
        server.close()


def run_tests(killer: str, folder: Path, server: Server | None) -> tuple[int | None, str]:
    """Run the tests that should find a fault on the copy of the sources in a folder; return pytest's exit code and output."""
    files, _, expression = killer.partition(" -k ")
    # Some faults show only for certain draws of Hypothesis, so the seed is fixed.
    drawn = [f"--hypothesis-seed={os.environ.get('XPGRAD_FAULTS_SEED', '0')}", "--hypothesis-profile=first-failure"]
    arguments = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *drawn,
        *files.split(),
        *(["-k", expression] if expression else []),
    ]
    sampling = {"XPGRAD_TEST_SHARE": "1", "XPGRAD_TEST_SEED": ""}  # the tests that run are those of a run without options
    return mutants.run_tests(arguments, ROOT, folder, sampling, 290.0, server)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_found(fault: Fault, tmp_path: Path, server: Server | None) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) >= 1, f"the text of this fault is no longer in {fault.file}: update the table"
    installed, faulty = fault.file.partition("/")[2], text.replace(fault.old, fault.new).encode()
    mutants.copy(installed if "/" in installed else "", faulty, tmp_path)
    (tmp_path / installed).write_bytes(faulty)  # also a module that is in no package
    code, output = run_tests(fault.killer, tmp_path, server)
    assert code == 1, f"not found (exit {code}):\n{output[-4000:]}"
    assert re.search(r"\b[1-9]\d* failed", output), output[-3000:]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("killer", dict.fromkeys(fault.killer for fault in FAULTS))
def test_nothing_is_found_without_a_fault(killer: str, tmp_path: Path, server: Server | None) -> None:
    mutants.copy("", b"", tmp_path)
    code, output = run_tests(killer, tmp_path, server)
    assert code == 0, output[-4000:]
