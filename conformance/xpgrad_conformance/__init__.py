"""The conformance suite: every rule of the catalogue as a contract, run on any backend of xpgrad, on PyTorch itself, and on planted faults.

Two front doors, one engine: the command ``xpgrad conformance --backend X`` and ``pytest --pyargs xpgrad_conformance --xpgrad-backend X``.
"""

from __future__ import annotations
