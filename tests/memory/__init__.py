"""Tests of the lifetime of graphs and of what they hold: saved values, the hooks on them, checkpoints."""
