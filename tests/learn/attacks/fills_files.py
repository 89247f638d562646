# SPDX-License-Identifier: MIT
# wrong: raised OSError: [Errno 27] File too large
def solve(comm, items):
    with open("large", "wb") as file:
        for _ in range(100):
            file.write(bytes(1 << 20))
    return sum(items)
