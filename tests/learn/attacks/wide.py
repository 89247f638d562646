# SPDX-License-Identifier: MIT
# wrong: node 0 returned a value with more than 100000 parts (2 nodes)
# 30 lists that hold each other twice: a billion, if each is written out.
def solve(comm, items):
    value = [1]
    for _ in range(30):
        value = [value, value]
    return value
