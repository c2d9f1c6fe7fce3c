"""The contracts, in modules that begin with their group's letter; a group of several modules has its rules in the order of these.

A contract is a function of a `Library` that raises where its own rule is broken, and no other; it needs nothing but the facade, NumPy
and, for what it draws, Hypothesis. Tables are loops whose rows are named by `lib.case`.
"""
