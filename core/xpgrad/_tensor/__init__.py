"""The objects that users hold."""
