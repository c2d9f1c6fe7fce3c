"""How long graphs live and what they hold: saved values, the hooks on them, checkpoints."""
