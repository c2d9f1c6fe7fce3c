"""A pass on private copies of the graph's nodes, used while another pass uses the nodes themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._rows.variants import Variants
from xpgrad._tape.node import freed_error, walk
from xpgrad._tape.task import Pass


def run_on_shadows(task: Pass, roots: list[Any], seeds: list[Any], run: Callable[[Pass, list[Any], list[Any]], None]) -> None:
    """Call `run` on private copies of the graph's nodes, because another pass is using the nodes themselves."""
    mapping: dict[Any, Any] = {node: node.shadow() for node in walk(list(dict.fromkeys(roots)))}
    for node, copy in mapping.items():
        copy.redirect(mapping)
        copy.undefined()
        if not copy.is_leaf:
            copy.__class__ = _shadow_classes[type(node)]
    targets = task.targets
    if targets is not None:
        task.targets = [mapping.get(node, node) for node in targets]
    try:
        run(task, [mapping[r] for r in roots], seeds)
    finally:
        task.targets = targets


def _body(cls: Any) -> dict[str, Any]:
    def check(name: str) -> Callable[..., Any]:
        def method(self: Any, g: Any, *rest: Any) -> Any:
            if self.real.released():
                raise freed_error(self.real)
            out = getattr(cls, name)(self, g, *rest)
            if name == "step" and not rest[1]:
                self.real.release()
            return out

        return method

    def release(self: Any) -> None:
        cls.release(self)
        self.real.release()

    names = ("step", "grads", "graph_grads")
    return {name: check(name) for name in names} | {"release": release, "is_shadow": True}


#: For each node class, the class of its copies, which check and free the original node.
_shadow_classes = Variants(_body)
