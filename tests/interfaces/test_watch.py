# SPDX-License-Identifier: MIT
"""`--watch` of programs in C: the call is shown, and no line, which nobody knows."""

from pathlib import Path

from terminal import Terminal

PROGRAM = """
#include <spcomm/spcomm.h>
int main(void) {
    spcomm_t *comm;
    spcomm_message_t message;
    if (spcomm_startup(0, 0, 0, NULL, &comm) != SPCOMM_OK) {
        return 1;
    }
    return spcomm_recv(comm, 1, 7, SPCOMM_FOREVER, &message);
}
"""


def test_a_c_program_has_a_call_and_no_line(compiler, launch):
    source = Path(launch.folder / "waits.c")
    source.write_text(PROGRAM)
    terminal = Terminal()
    python = launch.script("import signal, spcomm\nspcomm.startup()\nsignal.pause()")
    terminal.run(launch, "-n", 1, "--watch", compiler(source), ":", "-n", 1, python)
    line = terminal.until_shows("recv(source=1, tag=7)")
    assert line.split()[:2] == ["0", "waits"] and line.endswith("tag=7)")
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    terminal.check()
    terminal.close()
