"""Complete the docstrings of declared functions with the sections that their rows already say: operands, result and errors."""

from __future__ import annotations

from collections.abc import Iterable

from xpgrad._rows.row import Row

#: The sections of a docstring, as numpydoc orders them.
ORDER = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References", "Examples")
#: What `Domain.numbers` says of an operand, and of what is refused.
_NUMBERS = {
    "complex": ("numeric", ""),
    "library": ("real", ""),
    "real": ("real", ", or is complex"),
    "integer": ("integer or bool", ", or is neither integer nor bool"),
    "bool": ("bool; in other dtypes nonzero elements are True", ""),
}


def complete(doc: str | None, sections: Iterable[tuple[str, str]]) -> str:
    """Return a docstring with further sections in numpydoc's order; a section that it has already stays.

    Parameters
    ----------
    doc : str or None
        A docstring as it stands in the source, where all lines but the first are indented.
    sections : iterable of (str, str)
        Headings and texts.
    """
    first, *rest = (doc or "").rstrip().splitlines() or [""]
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    lines = [first.strip(), *(line[margin:].rstrip() for line in rest)]
    starts = [i - 1 for i, line in enumerate(lines) if i and line and not line.strip("-")]
    pieces = ["\n".join(lines[a:b]).strip() for a, b in zip([0, *starts], [*starts, len(lines)])]
    found = {heading: f"{heading}\n{'-' * len(heading)}\n{text}" for heading, text in sections}
    found |= {piece.partition("\n")[0]: piece for piece in pieces[1:]}
    return "\n\n".join([pieces[0], *(found[heading] for heading in ORDER if heading in found)])


def document_elementwise(doc: str | None, row: Row) -> str:
    """Complete the docstring of a public elementwise function."""
    several = len(row.tensors) > 1
    names, domain = ", ".join(row.tensors), row.domains[0]
    numbers, refused = _NUMBERS[domain.numbers]
    operand = "Shapes that broadcast with each other" if several else "Any shape"
    shape = "The shape to which the operands broadcast" if several else f"The shape of `{names}`"
    if row.facts.dtype == "bool":
        dtype = "dtype bool"
    else:
        dtype = "the dtype to which they promote" if several else f"the dtype of `{names}`"
        if domain.integers == "floating":
            dtype += "; the default floating-point dtype for integers and bools"
        elif row.facts.dtype == "real":
            dtype += "; the real dtype for complex numbers"
    errors = f"TypeError\n    An operand is not a Tensor, an array or a number{refused}."
    if several:
        errors += (
            "\nValueError\n    The shapes do not broadcast."
            "\nDeviceMismatchError\n    The operands are on devices of different backends, and none of them is 0-d on the host."
        )
    sections = {
        "Parameters": f"{names} : Tensor, array or number\n    {operand}; {numbers}.",
        "Returns": f"Tensor\n    {shape}, {dtype}.",
        "Raises": errors,
    }
    return complete(doc, sections.items())


def document_in_place(name: str, row: Row) -> str:
    """Return the docstring of the method that writes the result of an elementwise function into its first operand."""
    domain = row.domains[0]
    value = 0.5 if domain.low < 0.5 < domain.high else domain.low + 0.5
    several = len(row.tensors) > 1
    operand = (
        f"other : Tensor, array or number\n    A shape that broadcasts to that of this Tensor; {_NUMBERS[row.domains[-1].numbers][0]}."
    )
    errors = (
        "RuntimeError\n    This Tensor is a leaf that requires grad, or a view of one, and recording is on;"
        "\n    or the result has another shape, or a dtype that cannot be cast to that of this Tensor."
    )
    example = f""">>> import xpgrad as xp
>>> x = xp.asarray([{value}, {value}])
>>> x.{name}_({value if several else ""}) is x
True"""
    sections = {"Returns": "Tensor\n    This Tensor.", "Raises": errors, "See Also": f"xpgrad.{row.public[0]}", "Examples": example}
    return complete(
        f"Write ``x.{name}({'other' if several else ''})`` into this Tensor, and return it.",
        ({"Parameters": operand} | sections if several else sections).items(),
    )


def document_reduction(doc: str | None) -> str:
    """Return the docstring of the method of a function over axes: it takes PyTorch's names of the arguments as well."""
    before, heading, after = complete(doc, ()).partition("\n\nReturns\n")
    return f"{before}\ndim, keepdim : optional\n    PyTorch's names of `axis` and `keepdims`.{heading}{after}"
