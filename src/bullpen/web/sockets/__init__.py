"""WebSocket routes: sessions, terminals, the dashboard and the relay."""
