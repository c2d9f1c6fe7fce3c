"""The configurations in which the suite runs: those whose results are published, and the installed backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from xpgrad import registry

__all__ = ["PUBLISHED", "Configuration", "installed"]


class Configuration(NamedTuple):
    """A target of the suite: its label in reports, its device, and variables to add to its process's environment."""

    label: str
    device: str
    environment: Mapping[str, str] = {}


#: The columns of the published matrix.
PUBLISHED = (
    Configuration("numpy", "numpy"),
    Configuration("numpy+readonly", "numpy+readonly"),
    Configuration("jax, x64 on", "jax", {"JAX_ENABLE_X64": "1"}),
    Configuration("jax, x64 off", "jax", {"JAX_ENABLE_X64": "0"}),
    Configuration("strict", "strict"),
    Configuration("torch", "torch"),
    Configuration("dask", "dask", {"DASK_SCHEDULER": "synchronous"}),
    Configuration("simstream", "simstream"),
    Configuration("mlx", "mlx"),
    Configuration("mlx+float64", "mlx+float64"),
    Configuration("cupy", "cupy"),
    Configuration("pytorch", "pytorch"),
)


def installed() -> list[Configuration]:
    """Return a configuration for every registered backend that can be used here; `--all` runs these."""
    return [Configuration(row["name"], row["name"]) for row in registry.survey() if row["status"] == "ready"]
