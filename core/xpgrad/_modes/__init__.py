"""What this thread is set to."""
