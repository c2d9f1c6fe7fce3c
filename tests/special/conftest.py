"""A test that meets a function that a device lacks, or no double precision, is a skip that says so."""

from __future__ import annotations

from support.lacking import pytest_pyfunc_call as pytest_pyfunc_call
