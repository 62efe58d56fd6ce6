"""REST routes: one module for each resource, with the JSON shapes of requests and answers."""
