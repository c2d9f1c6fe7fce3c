"""Say what the reference lacks below the names given, and run their examples: ``python -m xpgrad_reference xpgrad.linalg``."""

from __future__ import annotations

import sys

from xpgrad_reference.facts import all_facts
from xpgrad_reference.names import public
from xpgrad_reference.sections import failure, missing


def main(prefixes: list[str]) -> int:
    """Print a line for each name that lacks something; the number of such lines."""
    known = {name.full: name for name in public()}
    wrong = 0
    for name in known.values():
        if any(name.full == p or name.full.startswith(f"{p}.") for p in prefixes or ["xpgrad"]):
            said = missing(name, known)
            if report := failure(name):
                said.append("its example fails:\n" + report)
            if said:
                wrong += 1
                print(f"{name.full} ({name.kind}): {'; '.join(said)}")
    for stranger in sorted(all_facts().keys() - known.keys()):
        wrong += 1
        print(f"{stranger}: no such public name, or an alias of another")
    print(f"{wrong} names lack something")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
