"""Law: audits of random programs end, report no operation of the package, and report values that leave the graph only if some do."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import xpgrad as xp
from support.programs import count

pytest.importorskip("torch", reason="the programs are written for PyTorch, too")

from random_programs.test_compiled import from_expression, from_graph  # after the check above

COUNT = count(60)
#: Texts in programs in which a value leaves the graph, including `F.grad` and similar calls under `no_grad`.
LEAVES = ("no_grad", "nograd", "detach", "checkpoint", "F.", "pull", "push")


@pytest.mark.parametrize("make", [from_expression, from_graph], ids=["functions", "graphs"])
def test_audits_of_random_programs(make: Any) -> None:
    for seed in range(COUNT):
        function, args, text = make(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = xp.audit(function, *args)
        where = f"{make.__name__}({seed}):\n{text}\n{report}"
        for finding in report.findings:
            # The generators' `custom` has no `jvp`.
            without = "jvp" in text or "You must implement the jvp function" in finding.message
            assert finding.kind not in ("raised", "backward-raised", "not-deterministic", "random") or without, where
            if finding.kind == "wrong-gradient":  # the generators' custom Functions have handwritten rules
                assert "`Custom`" in finding.message or "`WithJvp`" in finding.message, where
            if finding.kind in ("detached", "no-grad", "left-as-number", "left-as-array"):
                assert any(word in text for word in LEAVES), where
