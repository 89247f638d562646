# SPDX-License-Identifier: MIT
"""The run that a supervisor takes over: its nodes are placed, and their fork servers started."""

from spcomm.launch.base.record import dataclass
from spcomm.launch.cmdline.options import Options
from spcomm.launch.local.display import Display
from spcomm.launch.local.run_processes import RunProcesses
from spcomm.launch.local.stdin import Stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.launch.remote.transport_contract import Transports
    from spcomm.launch.room.fetch import RoomFiles


@dataclass(frozen=True, eq=False)
class Run:
    """The last stage of a start, after the options, the programs and the place of each node."""

    options: Options
    processes: RunProcesses
    stdin: Stdin
    display: Display
    transports: "Transports | None"  # between boxes
    cpus: "list[tuple[int, ...]] | None"  # the processors of nodes, in turn
    at_prompt: "int | None"  # the node whose debugger has the standard input
    room_files: "RoomFiles | None"  # that nodes of a room wrote
