"""A house as a person would have it after a morning's work, to be photographed by `screenshots.py`."""
