"""Implement the commands of `xpgrad`: list and check backends, start a plugin project, audit and export functions."""

from __future__ import annotations
