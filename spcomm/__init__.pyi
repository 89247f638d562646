# SPDX-License-Identifier: MIT
from spcomm._core.collectives import FuzzyBarrier as FuzzyBarrier
from spcomm._core.comm import Comm as Comm
from spcomm._core.destination import Destination as Destination
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
from spcomm._core.simtime import SimTime as SimTime
from spcomm.joining import startup as startup

__all__ = [
    "ALL",
    "ANY",
    "OTHERS",
    "PROC_NULL",
    "AuthenticationError",
    "BufferInUseError",
    "Comm",
    "ConfigError",
    "ConnectionLostError",
    "CycleError",
    "DeadlockError",
    "Destination",
    "FuzzyBarrier",
    "Message",
    "MismatchError",
    "NodeLayout",
    "NodeLostError",
    "RankError",
    "SimTime",
    "SpcommError",
    "TagError",
    "TruncationError",
    "VersionError",
    "WaitTimeoutError",
    "startup",
]

__version__: str
