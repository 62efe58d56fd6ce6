"""What every benchmark here shares: one client, one way to watch processes, one table."""
