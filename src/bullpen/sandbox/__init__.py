"""The wall round a workspace."""
