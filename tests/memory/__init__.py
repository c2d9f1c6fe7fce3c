"""The lifetime of graphs and what they hold: saved values, the hooks on them, checkpoints."""
