# SPDX-License-Identifier: MIT
from spcomm._core.arguments import Destination as Destination
from spcomm._core.collectives import FuzzyBarrier as FuzzyBarrier
from spcomm._core.comm import Comm as Comm
from spcomm._core.errors import AuthenticationError as AuthenticationError
from spcomm._core.errors import BufferInUseError as BufferInUseError
from spcomm._core.errors import ConfigError as ConfigError
from spcomm._core.errors import ConnectionLostError as ConnectionLostError
from spcomm._core.errors import CycleError as CycleError
from spcomm._core.errors import DeadlockError as DeadlockError
from spcomm._core.errors import MismatchError as MismatchError
from spcomm._core.errors import NodeLostError as NodeLostError
from spcomm._core.errors import RankError as RankError
from spcomm._core.errors import SpcommError as SpcommError
from spcomm._core.errors import TagError as TagError
from spcomm._core.errors import TruncationError as TruncationError
from spcomm._core.errors import VersionError as VersionError
from spcomm._core.errors import WaitTimeoutError as WaitTimeoutError
from spcomm._core.names import ALL as ALL
from spcomm._core.names import ANY as ANY
from spcomm._core.names import OTHERS as OTHERS
from spcomm._core.names import PROC_NULL as PROC_NULL
from spcomm._core.names import Message as Message
from spcomm._core.names import NodeLayout as NodeLayout
from spcomm._core.operators import BAND as BAND
from spcomm._core.operators import BOR as BOR
from spcomm._core.operators import BXOR as BXOR
from spcomm._core.operators import LAND as LAND
from spcomm._core.operators import LOR as LOR
from spcomm._core.operators import LXOR as LXOR
from spcomm._core.operators import MAX as MAX
from spcomm._core.operators import MAXLOC as MAXLOC
from spcomm._core.operators import MIN as MIN
from spcomm._core.operators import MINLOC as MINLOC
from spcomm._core.operators import PROD as PROD
from spcomm._core.operators import SUM as SUM
from spcomm._core.operators import Op as Op
from spcomm._core.operators import op as op
from spcomm._core.simtime import SimTime as SimTime
from spcomm.joining import startup as startup
from spcomm.net_types.net_types import NET_DOUBLE as NET_DOUBLE
from spcomm.net_types.net_types import NET_INT as NET_INT
from spcomm.net_types.net_types import NetDouble as NetDouble
from spcomm.net_types.net_types import NetInt as NetInt
from spcomm.net_types.net_types import foreign_count as foreign_count
from spcomm.net_types.net_types import localize as localize
from spcomm.notebook.cluster import Cluster as Cluster
from spcomm.notebook.errors import ClusterError as ClusterError

__all__ = [
    "ALL",
    "ANY",
    "BAND",
    "BOR",
    "BXOR",
    "LAND",
    "LOR",
    "LXOR",
    "MAX",
    "MAXLOC",
    "MIN",
    "MINLOC",
    "NET_DOUBLE",
    "NET_INT",
    "OTHERS",
    "PROC_NULL",
    "PROD",
    "SUM",
    "AuthenticationError",
    "BufferInUseError",
    "Cluster",
    "ClusterError",
    "Comm",
    "ConfigError",
    "ConnectionLostError",
    "CycleError",
    "DeadlockError",
    "Destination",
    "FuzzyBarrier",
    "Message",
    "MismatchError",
    "NetDouble",
    "NetInt",
    "NodeLayout",
    "NodeLostError",
    "Op",
    "RankError",
    "SimTime",
    "SpcommError",
    "TagError",
    "TruncationError",
    "VersionError",
    "WaitTimeoutError",
    "foreign_count",
    "localize",
    "op",
    "startup",
]

__version__: str
