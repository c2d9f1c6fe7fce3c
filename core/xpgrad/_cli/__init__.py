"""The command line's parts: what is listed, what is checked, and what a new plugin begins with."""

from __future__ import annotations
