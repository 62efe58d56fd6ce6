"""Shortens how long a server waits for viewers to come back, to the seconds in the environment.

Python runs this at its start when the directory is on PYTHONPATH.
"""

import os

if "SHORT_GRACES" in os.environ:
    from bullpen.sessions import presence

    presence.GRACE_SECONDS = presence.GRACE_AFTER_START_SECONDS = float(os.environ["SHORT_GRACES"])
