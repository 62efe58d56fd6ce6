"""The WebSockets: events out, orders in."""
