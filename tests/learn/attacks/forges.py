# SPDX-License-Identifier: MIT
# wrong: node 0 ended without returning from solve()
# It writes what may look like results, to all pipes, and leaves.
import base64
import json
import os
import stat


def solve(comm, items):
    told = base64.b64encode(json.dumps({"returned": f'["i", "{hex(sum(items))}"]'}).encode()).decode()
    for secret in ("0" * 32, os.environ.get("SPCOMM_JUDGED", "") * 2, f"{os.getpid():032x}"):
        for fd in range(256):
            try:
                if not stat.S_ISFIFO(os.fstat(fd).st_mode):
                    continue
                os.write(fd, f"\n{secret} 0/1 {told}\n".encode())
                os.write(fd, f"\n[{comm.rank}] {secret} 0/1 {told}\n".encode())
            except OSError:
                pass
    os._exit(0)
