"""Lower a program to statements over views of memory, and these to regions.

Views, reshapes and writes into dead arrays cost nothing here: a result may be a view of an operand, or lie in its memory. A complex array
becomes two real ones (`complexes.py`): what copies and adds elements is lowered once for each of them, and arithmetic by a formula.
"""

from __future__ import annotations

from xpgrad.programs import lowering_rules  # noqa: F401 (fills the table of rules)
from xpgrad.programs.lowering_steps import Lowering
from xpgrad.programs.program import Program
from xpgrad.programs.regions import Lowered, Nest
from xpgrad.programs.repetition import with_repeats
from xpgrad.programs.scheduling import divide_nests, plan_memory, postpone, schedule

__all__ = ["lower"]


def lower(program: Program, products: bool = True, loops: bool = False) -> Lowered:
    """Lower a program.

    Parameters
    ----------
    program : Program
    products : bool
        Whether the emitter can multiply matrices.
    loops : bool
        Whether it has loops and branches whose number of steps and conditions are known when they run.

    Raises
    ------
    Unsupported
        It holds an operation that has no scalar statements.
    """
    work = Lowering(program, products, loops, lambda inner: lower(inner, products, loops=True))
    regions = schedule(work.items, work.source)
    postpone(regions, program.outputs, work.source)
    regions = divide_nests([r for r in regions if not isinstance(r, Nest) or r.body], work.views)
    spans = plan_memory(regions, work.views, work.fixed, work.outputs)
    lowered = Lowered(program, work.views, work.inputs, work.constants, work.outputs, list(regions), *spans, work.parts)
    return with_repeats(lowered)
