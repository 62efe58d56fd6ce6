"""The checks of `bullpen doctor`; each returns findings with advice."""
