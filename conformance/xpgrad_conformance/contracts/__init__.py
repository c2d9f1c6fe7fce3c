"""The contracts. A module's name begins with the letter of its group; a group's rules are in the order of its modules.

A contract is a function of a `Library` that raises if its own rule is broken, and only then. It depends on nothing but the facade,
NumPy and, for drawn arguments, Hypothesis. A table is a loop that names its rows with `lib.case`.
"""
