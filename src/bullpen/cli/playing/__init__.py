"""Play a recording in the user's terminal."""
