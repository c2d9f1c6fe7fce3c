"""Tests of programs: passes over them, the texts that are emitted, exported modules."""
