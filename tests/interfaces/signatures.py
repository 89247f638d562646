# SPDX-License-Identifier: MIT
"""The signatures that the SpeedesComm paper prints (sections 2.1 to 2.3, 3.3 to 3.5), for whoever implements them.

The paper speaks of 25 functions and prints 24, under 14 names. The 25th, which any program needs, is SpComm_ShutDown.
"""

from typing import NamedTuple


class Signature(NamedTuple):
    """One function of the paper, as C++ has it."""

    name: str
    returns: str  # the C++ type
    parameters: tuple[tuple[str, str], ...]  # (C++ type, the paper's name for it)
    section: str
    meaning: str  # of what is returned; "" for void

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(kind for kind, _ in self.parameters)

    @property
    def pointer(self) -> str:
        """The type of a pointer to exactly this function."""
        return f"{self.returns} (*)({', '.join(self.types)})"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what goes in: without `int &nbytes`, through which a length comes out."""
        return tuple(name for kind, name in self.parameters if not kind.endswith("&"))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.types)})"


def _parameters(text: str) -> tuple[tuple[str, str], ...]:
    """`int dest, void *buff`, as the paper writes it."""
    found = []
    for part in filter(None, text.split(", ")):
        kind, name = part.rsplit(" ", 1)
        mark = name[: len(name) - len(name.lstrip("*&"))]
        found.append((f"{kind} {mark}".strip(), name.lstrip("*&")))
    return tuple(found)


_PRINTED = [
    ("2.1", "void", "SpComm_StartUp", "int localNodes, int totalNodes, int groupID, char *infile", ""),
    ("2.1", "int", "SpComm_GetNumNodes", "", "the total number of nodes"),
    ("2.1", "int", "SpComm_GetNodeId", "", "0 to the number of nodes - 1"),
    ("2.2", "void", "SpComm_BarrierSync", "", ""),
    ("2.2", "int", "SpComm_GlobalMin", "int ival", "the least of all nodes' values"),
    ("2.2", "int", "SpComm_GlobalMax", "int ival", "the greatest of all nodes' values"),
    ("2.2", "int", "SpComm_GlobalSum", "int ival", "the sum of all nodes' values"),
    ("2.2", "double", "SpComm_GlobalMin", "double dval", "the least of all nodes' values"),
    ("2.2", "double", "SpComm_GlobalMax", "double dval", "the greatest of all nodes' values"),
    ("2.2", "double", "SpComm_GlobalSum", "double dval", "the sum of all nodes' values"),
    ("2.2", "SpSimTime", "SpComm_GlobalMin", "SpSimTime simTime", "the earliest time"),
    ("2.2", "SpSimTime", "SpComm_GlobalMax", "SpSimTime simTime", "the latest time"),
    ("2.2", "void", "SpComm_EnterFuzzyBarrier", "", ""),
    ("2.2", "int", "SpComm_ExitFuzzyBarrier", "", "1: all nodes have entered; 0: not yet"),
    ("2.3", "void", "SpComm_Send", "int dest, int type, int nbytes, void *buff", ""),
    ("2.3", "void", "SpComm_Send", "SpDestination *dest, int type, int nbytes, void *buff", ""),
    ("2.3", "void", "SpComm_Send", "int type, int nbytes, void *buff", ""),
    ("2.3", "void", "SpComm_Receive", "", ""),
    ("2.3", "void *", "SpComm_Receive", "int type, int &nbytes", "the message; NULL: none has come"),
    (
        "2.3",
        "void *",
        "SpComm_GetPendingMessage",
        "int type, int &nbytes",
        "the message; NULL: none is queued",
    ),
    ("2.3", "void", "SpComm_CoordinatedSend", "int dest, int nbytes, void *buff", ""),
    ("2.3", "void", "SpComm_CoordinatedSend", "SpDestination *dest, int nbytes, void *buff", ""),
    ("2.3", "void", "SpComm_CoordinatedSend", "int nbytes, void *buff", ""),
    ("2.3", "void *", "SpComm_CoordinatedReceive", "int &nbytes", "a message; NULL: all have been received"),
]

PAPER = [
    Signature(name, returns, _parameters(parameters), section, meaning)
    for section, returns, name, parameters, meaning in _PRINTED
]
# The network's calls (3.3 to 3.5) that C++ has.
NET = [
    Signature(name, returns, _parameters(parameters), section, "")
    for section, returns, name, parameters in [
        (
            "3.3",
            "void",
            "SpComm_Post_Fork_Net_GetIDs",
            "int **localNodeIds, int &numBoxes, int **nodeBoxNumber, int &boxNumber",
        ),
        ("3.4", "void", "SpComm_Net_Enter_nbRedop", ""),
        ("3.4", "int", "SpComm_Net_nbRedop", ""),
        ("3.4", "void", "SpComm_Net_Redop", ""),
        *(
            ("3.4", "void", name, "int *ival, double *dval, SpSimTime *simTime, int comPath")
            for name in ("SpComm_Net_Sum", "SpComm_Net_Max", "SpComm_Net_Min")
        ),
        ("3.5", "void", "SpComm_Net_Send", "int dest, int type, int nbytes, void *buff"),
        ("3.5", "void", "SpComm_Net_Send", "SpDestination *dest, int type, int nbytes, void *buff"),
        ("3.5", "void", "SpComm_Net_Send", "int *dest, int type, int nbytes, void *buff"),
        ("3.5", "void", "SpComm_Net_Send", "int type, int nbytes, void *buff"),
        ("3.5", "void", "SpComm_Net_Receive", ""),
    ]
]
SHUT_DOWN = Signature("SpComm_ShutDown", "void", (), "2", "")
ALL = [*PAPER, SHUT_DOWN]
