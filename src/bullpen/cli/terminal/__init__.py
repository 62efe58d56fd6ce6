"""Connect the user's terminal to a worker's terminal on the server."""
