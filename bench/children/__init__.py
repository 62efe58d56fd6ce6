"""Programs that run inside the terminals under test."""
