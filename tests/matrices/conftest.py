"""Skip tests, with a reason, on devices that lack a function or double precision."""

from __future__ import annotations

from support.lacking import pytest_pyfunc_call as pytest_pyfunc_call
