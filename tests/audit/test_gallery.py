"""Law: each mistake of the gallery is reported by its name and line; without the mistake nothing is reported."""

from __future__ import annotations

import numpy as np
import pytest

import xpgrad as xp
from audit.gallery import MISTAKES
from xpgrad._audit.findings import KINDS

HAS_CURE = [name for name, m in MISTAKES.items() if m.right is not None]


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_by_its_name(name: str) -> None:
    m = MISTAKES[name]
    report = xp.audit(m.function, *m.args)
    found = [f for f in report.findings if f.kind == m.kind]
    assert found, f"found {report.kinds()} instead of {m.kind}:\n{report}"
    if m.line:
        assert any(f.place is not None and m.line in f.place.text for f in found), report
    assert m.kind in str(report)


@pytest.mark.parametrize("name", HAS_CURE)
def test_without_the_mistake_there_is_no_alarm(name: str) -> None:
    m = MISTAKES[name]
    assert m.right is not None
    report = xp.audit(m.right, *m.args)
    assert not report.kinds("warning"), report


def test_every_kind_of_finding_has_a_mistake() -> None:
    assert {m.kind for m in MISTAKES.values()} == set(KINDS)


def test_the_callers_arrays_stay_as_they_are() -> None:
    for m in MISTAKES.values():
        before = [np.asarray(a.detach() if isinstance(a, xp.Tensor) else a).copy() for a in m.args]
        xp.audit(m.function, *m.args, checks=("paths",))
        for a, b in zip(m.args, before):
            np.testing.assert_array_equal(np.asarray(a.detach() if isinstance(a, xp.Tensor) else a), b)
