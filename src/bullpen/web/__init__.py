"""The web server: HTTP and WebSocket protocols, authentication, REST routes and sockets."""
