"""`xpgrad.testing`: check that a library's functions for the Array API are differentiable on every backend, with or without pytest.

`check_differentiable` raises all failures, `examine` returns all outcomes, and `parametrize_with_checks` makes a test of each check of each
function in a table. The pytest plugin (``pip install 'xpgrad[testing]'``) has the marker `differentiable`, a summary and reports.
"""

from __future__ import annotations

from xpgrad._basics.faces import public_names
from xpgrad.testing._checking import check_differentiable as check_differentiable, examine as examine
from xpgrad.testing._pages import html_page as html_page, json_page as json_page, markdown_page as markdown_page
from xpgrad.testing._results import CHECKS as CHECKS, NotDifferentiable as NotDifferentiable, Result as Result, Row as Row
from xpgrad.testing._tables import Case as Case, case as case, parametrize_with_checks as parametrize_with_checks

__all__ = [
    "CHECKS", "Case", "NotDifferentiable", "Result", "Row", "case", "check_differentiable", "examine", "html_page", "json_page",
    "markdown_page", "parametrize_with_checks",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)
