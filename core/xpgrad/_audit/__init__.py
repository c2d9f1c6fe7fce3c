"""`xpgrad.audit`: run a function under observation, and report where gradients are lost, wrong, NaN or expensive.

Data flows one way: `tracing` records a run, `running` repeats it at other points with chosen values frozen, the checks (`paths`, `kinks`,
`nonfinite`, `accuracy`, `ranges`, `cost`) turn records into findings, and `report` and `page` show them.
"""
