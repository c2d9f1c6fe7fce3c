"""Generate the code of operations from their rows: functions, implementations per backend, node classes and methods."""
