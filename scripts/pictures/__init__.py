"""Example data for `screenshots.py`: a server with repositories, sessions and agents in each state."""
