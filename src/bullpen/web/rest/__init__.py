"""The REST routes, one file per noun."""
