"""Law: the tests are strong. Each fault planted here, in a copy of the sources, is found by the tests that are named beside it.

A fault is one replacement of text in one file. A test run that finds nothing, or that cannot even collect, does not count; a
replacement whose text is no longer there fails, so that the table follows the code.
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

ROOT = Path(__file__).resolve().parents[1]


class Fault(NamedTuple):
    """What is broken: ``old`` becomes ``new`` in ``file``; ``killer`` is what pytest is given to find it."""

    name: str
    file: str
    old: str
    new: str
    killer: str


ENGINE, NODECLASS, ELEMENTWISE = "core/xpgrad/_engine.py", "core/xpgrad/_nodeclass.py", "core/xpgrad/rules/elementwise.py"
KERNELS, ACCUMULATE, HOOKS = "backends/xpgrad_numpy/_kernels.py", "core/xpgrad/_accumulate.py", "core/xpgrad/_hooks.py"
INPLACE, STALE = "core/xpgrad/_inplace.py", "core/xpgrad/_stale.py"

FAULTS = [
    Fault("product rule takes the wrong factor", ELEMENTWISE, '@elementwise("g * x2", "g * x1",', '@elementwise("g * x1", "g * x1",', "tests/test_rules_elementwise.py -k multiply"),
    Fault("sine's derivative loses its sign's partner", ELEMENTWISE, "lambda g, x, xp: -g * xp.sin(x)", "lambda g, x, xp: g * xp.sin(x)",
          "tests/test_rules_elementwise.py -k cos"),
    Fault("ties are not shared", ELEMENTWISE, "xp.where(mine == other, g / 2, g)", "g", "tests/test_contracts_p_subgradients.py"),
    Fault("the power's derivative at 0 is nan", ELEMENTWISE, "        if x2 == 0:\n            return xp.zeros_like(g)\n", "",
          "tests/test_contracts_p_subgradients.py"),
    Fault("a passed-on gradient counts as owned", ELEMENTWISE, 'op="+", fresh=False', 'op="+", fresh=True',
          "tests/test_rules_elementwise.py tests/test_rules_shapes.py -k fresh"),
    Fault("broadcasting is not undone", NODECLASS, "                    if broadcast:\n                        t(f\"v = sum_to(v, self.b_{name})\")\n", "",
          "tests/test_contracts_a_backward.py"),
    Fault("freed values are not noticed", NODECLASS, '                t("raise freed(self)")', '                t("{name} = 0.0 * g")'.replace("{{", "{").replace("}}", "}"),
          "tests/test_contracts_e_graphs.py"),
    Fault("saved values are never freed", ENGINE, "node.step(g, empty, retain)", "node.step(g, empty, True)", "tests/test_memory.py"),
    Fault("overwritten values are not noticed", "core/xpgrad/_saved.py", "if cell is None or cell.last_write <= node.seq:", "if True:", "tests/test_contracts_j_versions.py"),
    Fault("complex gradients are not conjugated", NODECLASS, 't("z = is_complex(g)" if xp == "K" else', 't("z = False" if xp == "K" else',
          "tests/test_contracts_o_complex.py tests/test_rules_elementwise.py -k complex"),
    Fault("a tensor hook's replacement is dropped", HOOKS, "            g = _as_raw(task, grad)\n    if hooks.retain", "    if hooks.retain",
          "tests/test_contracts_h_hooks.py"),
    Fault("pre-hooks run before tensor hooks", ENGINE, "    if hooks is not None and not node.slotted:\n        g = run_tensor_hooks(task, node, g)\n",
          "    if hooks is not None and hooks.pre and not node.slotted:\n        g = run_pre_hooks(task, node, g)\n"
          "    if hooks is not None and not node.slotted:\n        g = run_tensor_hooks(task, node, g)\n", "tests/test_contracts_h_hooks.py"),
    Fault("leaves wait until the end", NODECLASS, '                    t("e.seq = s - 0.5")', '                    t("e.seq = 0.5")',
          "tests/test_contracts_h_hooks.py"),
    Fault("the seed keeps its own dtype", "core/xpgrad/autograd/__init__.py", "return g._array if g.dtype is dtype else g.detach()._cast(dtype)._array",
          "return g._array", "tests/test_contracts_a_backward.py"),
    Fault("inputs= is ignored", ENGINE, "        if task.targets is not None:\n            order = _only_needed", "        if task.targets is not None and task.capture:\n            order = _only_needed",
          "tests/test_contracts_g_inputs.py"),
    Fault("the caller's gradient becomes .grad", ACCUMULATE, "if not (node.owned and (backend.same_layout(g, real.array) or not _modes.layout_policy())):", "if False:",
          "tests/test_contracts_a_backward.py tests/test_contracts_c_leaves.py"),
    Fault(".grad is overwritten instead of added to", ACCUMULATE, "            add_in_place(old, g)", "            old._array = g",
          "tests/test_contracts_c_leaves.py"),
    Fault("duplicates of an index are lost", KERNELS, "np.add.at(out.reshape(-1), key.reshape(-1), values.reshape(-1))",
          "out.reshape(-1)[key.reshape(-1)] = values.reshape(-1)", "tests/test_rules_shapes.py tests/test_contracts_a_backward.py"),
    Fault("the loser of a double write gets the gradient", "core/xpgrad/rules/inplace.py", "    return xp.where(xp.wins(out, key, tuple(x.shape)), out, xp.zeros_like(out))",
          "    return out", "tests/test_tensor.py"),
    Fault("no_grad is not left", "core/xpgrad/_modes.py", "        self._tokens = tuple(rest)\n        _STATE.set(before)", "        self._tokens = tuple(rest)",
          "tests/test_contracts_i_modes.py"),
    Fault("a second pass uses the first one's fields", ENGINE, "        if exclusive:\n            _run(task, roots, seeds)\n        else:\n            _run_on_shadows(task, roots, seeds)",
          "        _run(task, roots, seeds)", "tests/test_contracts_q_threads.py"),
    Fault("detach counts its versions alone", "core/xpgrad/_tensor.py", "out._alias = Alias(alias.cell, alias.path, alias.memory)", "alias_of(out)",
          "tests/test_contracts_j_versions.py"),
    Fault("a cast's gradient keeps the wrong dtype", "core/xpgrad/rules/creation.py", "@rule(lambda g, x_dtype, xp: xp.cast(g, x_dtype), conj=False, fresh=True, node=\"ToCopyBackward0\")",
          "@rule(lambda g: g, conj=False, node=\"ToCopyBackward0\")", "tests/test_rules_shapes.py tests/test_contracts_a_backward.py"),
    Fault("a reduction's gradient is spread wrongly", "core/xpgrad/rules/statistical.py", "g / (_count(x_shape, axes) or 1)", "g",
          "tests/test_rules_statistics.py"),
    Fault("views do not follow unrecorded writes", INPLACE, "        if len(cell.views) > 1:\n            outdate(x, recorded=False)\n", "",
          "tests/test_contracts_j_views.py"),
    Fault("views do not follow recorded writes", INPLACE, "    outdate(x, recorded=True)\n", "", "tests/test_contracts_j_views.py"),
    Fault("a retained gradient stays with the old node", STALE, "old.hooks.retain:", "old.hooks.retain and False:", "tests/test_contracts_j_views.py"),
    Fault("views of several at once may be written to", "core/xpgrad/_specialise.py", 't("v.forbidden = a.forbidden")', 't("v.forbidden = None")',
          "tests/test_contracts_j_views.py"),
    Fault("a detached leaf is not watched", "core/xpgrad/_tensor.py", "                    alias_of(self)  # those who saved this leaf will ask its node whether it was written to\n",
          "                    pass\n", "tests/test_contracts_j_views.py"),
    Fault("a write to a view does not reach its base", INPLACE, "        take_over(base, put_through(base, written, chain_of(x))._node)\n", "        take_over(base, base._node)\n",
          "tests/test_contracts_j_views.py"),
    Fault("what a write keeps gets no gradient", "core/xpgrad/rules/inplace.py", "lambda g, chain, xp: xp.zero_through(g, chain), lambda g, chain, xp: follow", "lambda g, chain, xp: g, lambda g, chain, xp: follow",
          "tests/test_contracts_j_views.py"),
    Fault("writes to leaves are allowed", INPLACE, "    if recording and x._node is not None and x._node.__class__ is AccumulateGrad:\n        msg = (\n", "    if False:\n        msg = (\n",
          "tests/test_contracts_j_versions.py"),
    Fault("an immutable write forgets the aliases", INPLACE, "        sharing += [(t, follow(root, t._alias.path, kernels)) for t in others]\n", "",
          "tests/test_tensor.py tests/test_contracts_j_views.py"),
]  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_found(fault: Fault, tmp_path: Path) -> None:
    for folder in ("core", "backends"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path / fault.file
    text = target.read_text()
    assert text.count(fault.old) >= 1, f"the text of this fault is not in {fault.file} any more: update the table"
    target.write_text(text.replace(fault.old, fault.new))
    files, _, expression = fault.killer.partition(" -k ")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *files.split()]
    path = os.pathsep.join(str(tmp_path / folder) for folder in ("core", "backends"))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        command + (["-k", expression] if expression else []), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1, f"not found (exit {run.returncode}):\n{run.stdout[-3000:]}{run.stderr[-1000:]}"
    assert re.search(r"\b[1-9]\d* failed", run.stdout), run.stdout[-3000:]
