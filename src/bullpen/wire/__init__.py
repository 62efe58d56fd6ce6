"""Encode and decode protocols and file formats, without I/O."""
