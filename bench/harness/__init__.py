"""Code that the benchmarks share: a WebSocket client, measures of processes, and tables."""
