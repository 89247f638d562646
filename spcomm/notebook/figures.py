# SPDX-License-Identifier: MIT
"""matplotlib's backend in the nodes of a Cluster: figures go to the caller as PNG.

`MPLBACKEND` names it, so it is imported by matplotlib, and only if the program draws. `pyplot.show()` sends all open
figures, and so does the end of a cell.
"""

import io

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase as FigureManager
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

from spcomm.notebook import node_main

__all__ = ["FigureCanvas", "FigureManager", "show"]


def show(*_arguments: object, **_options: object) -> None:
    """Send all open figures to the caller, and close them, as a notebook's own backend does."""
    for manager in Gcf.get_all_fig_managers():
        file = io.BytesIO()
        manager.canvas.figure.savefig(file, format="png", bbox_inches="tight")
        node_main.current.send_figure(file.getvalue())
    forget()


def forget() -> None:
    """Close all figures."""
    Gcf.destroy_all()
