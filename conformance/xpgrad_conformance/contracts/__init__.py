"""The contracts, one module for each group of rules, named after the group's letter.

A contract is a function of a `Library` that raises where its rule is broken, for any reason but another rule; it needs nothing but the
facade, NumPy and, for what it draws, Hypothesis. Tables are loops whose rows are named by `lib.case`.
"""
