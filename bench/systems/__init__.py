"""The systems under test, in the order their columns are printed."""

from systems.bullpen import Bullpen
from systems.node_pty import NodePty, NodePtyJoined
from systems.system import System, Terminal
from systems.terminado import Terminado
from systems.ttyd import Ttyd

SYSTEMS: list[type[System]] = [Bullpen, NodePty, NodePtyJoined, Terminado, Ttyd]

__all__ = ["SYSTEMS", "Bullpen", "System", "Terminal"]
