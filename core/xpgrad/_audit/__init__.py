"""`xpgrad.audit`: runs a function watched, and reports where gradients are lost, wrong, not a number, or expensive.

Data flows one way: `tracing` notes a run, `running` repeats it at other points with chosen values held still, the checks (`paths`, `kinks`,
`nonfinite`, `accuracy`, `ranges`, `cost`) read what was noted and give findings, and `report` and `page` show them.
"""
