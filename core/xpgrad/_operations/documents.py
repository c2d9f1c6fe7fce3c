"""Complete docstrings with facts from their rows, such as dtypes and shapes."""

from __future__ import annotations

from xpgrad._basics.docstrings import complete
from xpgrad._rows.row import Row

#: By `Domain.numbers`: the text about an operand's dtype, and the dtypes that are a TypeError.
_NUMBERS = {
    "complex": ("Any dtype", ""),
    "library": ("Any real dtype", ""),
    "real": ("Any real dtype", ", or is complex"),
    "integer": ("Integers or bools", ", or is neither integer nor bool"),
    "bool": ("bool; in other dtypes every nonzero element counts as True", ""),
}
#: The result of an in-place method, and why it raises an error.
IN_PLACE_RESULT = "Tensor\n    This Tensor, with its new values."
IN_PLACE_REFUSAL = "If recording is on and this Tensor is a leaf that requires grad, or a view of such a leaf"
IN_PLACE_ERROR = (
    f"RuntimeError\n    {IN_PLACE_REFUSAL};\n    or if the result has another shape, or a dtype that cannot be cast to that of this Tensor."
)


def document_elementwise(doc: str | None, row: Row) -> str:
    """Return the docstring of a public elementwise function, with the sections that follow from its row."""
    several = len(row.tensors) > 1
    names, domain = ", ".join(row.tensors), row.domains[0]
    numbers, refused = _NUMBERS[domain.numbers]
    if not domain.bools:
        numbers = "Any numeric dtype"
    shape = "the shape to which the operands broadcast" if several else f"the shape of `{names}`"
    if row.facts.dtype == "bool":
        dtype = "dtype bool"
    else:
        dtype = "the dtype to which they promote" if several else "its dtype"
        if domain.integers == "floating":
            dtype += "; integers and bools give a floating-point dtype"
        elif row.facts.dtype == "real":
            dtype += "; complex numbers give their real dtype"
    if all(formula is None for formula in row.formulas):
        dtype += ". It never requires grad"
    errors = f"TypeError\n    If an operand is not a Tensor, an array or a number{refused}."
    if several:
        errors += (
            "\nValueError\n    If the shapes do not broadcast."
            "\nDeviceMismatchError\n    If the operands are on different devices; 0-d Tensors on the host mix with all others."
        )
    sections = {
        "Parameters": f"{names} : Tensor, raw array or number\n    {numbers}; "
        + ("shapes that broadcast with each other." if several else "any shape."),
        "Returns": f"Tensor\n    Has {shape} and {dtype}.",
        "Raises": errors,
    }
    return complete(doc, sections.items())


def document_in_place(name: str, row: Row) -> str:
    """Return the docstring of an in-place method, which writes the result of an elementwise function into its first operand."""
    domain = row.domains[0]
    value = 0.5 if domain.low < 0.5 < domain.high else domain.low + 0.5
    several = len(row.tensors) > 1
    numbers = _NUMBERS[row.domains[-1].numbers][0]
    operand = f"other : Tensor, raw array or number\n    {numbers}; a shape that broadcasts to that of this Tensor."
    example = f""">>> import xpgrad as xp
>>> x = xp.asarray([{value}, {value}])
>>> x.{name}_({value if several else ""}) is x
True"""
    sections = {"Returns": IN_PLACE_RESULT, "Raises": IN_PLACE_ERROR, "See Also": f"xpgrad.{row.public[0]}", "Examples": example}
    return complete(
        f"Compute ``x.{name}({'other' if several else ''})`` in place, where ``x`` is this Tensor.",
        ({"Parameters": operand} | sections if several else sections).items(),
    )


def document_reduction(doc: str | None) -> str:
    """Return the docstring of a method over axes, which also takes PyTorch's names of the arguments."""
    before, heading, after = complete(doc, ()).partition("\n\nReturns\n")
    return f"{before}\ndim, keepdim : optional\n    Other names of `axis` and `keepdims`, as in PyTorch.{heading}{after}"
