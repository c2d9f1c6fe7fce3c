"""From a row to what runs."""
