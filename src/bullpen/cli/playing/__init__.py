"""A recording played on a person's own terminal."""
