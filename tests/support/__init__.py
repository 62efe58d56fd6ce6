"""Clients, servers, data and programs that tests of several folders share."""
