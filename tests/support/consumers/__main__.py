"""Print what `xpgrad.testing` finds for each call, or for the named ones, on one device: one line of JSON for each.

The arrays are on that device, which is not the default one, and the libraries are told neither about xpgrad nor about the device.
"""

from __future__ import annotations

import json
import sys
import warnings

from support import plugin_backends
from support.consumers import NEWER, table_of, tables
from support.consumers.supported import supported
from xpgrad.testing import examine


def coverage(*starts: str) -> None:
    """Print the functions that the libraries declare to support the standard, the names of the rows, and the names left out."""
    rows, left_out = tables(*starts)
    print(json.dumps([sorted(supported()), list(rows), left_out]))


def main(device: str, names: list[str]) -> None:
    """Print the findings for each call on a device; the name of the table of newer functions stands for all of its calls."""
    warnings.simplefilter("ignore")
    plugin_backends.register("strict")
    if names[:1] == [NEWER]:
        rows, names = tables(NEWER)[0], names[1:]
    else:
        rows, _ = tables(*dict.fromkeys(map(table_of, names)))
    for name in names or rows:
        found = examine(rows[name].function, *rows[name].args, backends=[device], mutation=True, name=name)
        print(json.dumps([name, found.to_list()]), flush=True)


if __name__ == "__main__":
    coverage(*sys.argv[2:]) if sys.argv[1] == "--coverage" else main(sys.argv[1], sys.argv[2:])
