# SPDX-License-Identifier: MIT
"""A process of a run gets a signal while messages and collectives go on, wherever runs are supervised.

Each run has a number, from which its place, process, signal and moment follow. `CHECK_SCALE` multiplies the number of
runs; `REPLAY=17` repeats run 17 alone.
"""

import os
import random
import re
import shlex
import signal
import subprocess
import sys

import pytest

from launching import stand_in_for_ssh
from netting import stop
from processes import children, name, parent, read_lines, read_until
from rooming import Room

PART = 50
RUNS = round(100 * float(os.environ.get("CHECK_SCALE", "1")))
REPLAY = os.environ.get("REPLAY")
NUMBERS = {name: signal.Signals[f"SIG{name}"] for name in "KILL STOP TERM INT HUP".split()}
NODES = 4
LINK_S = 20  # after so long a link is dead: nothing here waits for that
CALLER, LOCAL = ("node", "launcher", "fork server"), ("node", "launcher", "fork server", "server", "gateway")
# The processes of each place. In a program without a launcher node 0 and the supervisor are launcher and fork server.
PLACES = {
    "run": CALLER,
    "boxes": LOCAL,
    "hosts": (*LOCAL, "box", "relay"),
    "room": (*LOCAL, "box", "relay", "member"),
    "cluster": CALLER,
    "cluster of boxes": (*LOCAL, "box"),
    "startup": CALLER,
    "startup in C": CALLER,
    "meet": (*LOCAL, "box"),
}
LIKE = {"startup in C": "startup", "cluster of boxes": "cluster", "room": "hosts"}
# The end after a signal, by place, process and signal, where these matter: the exit code, or those of its own shell and
# of the other, and a pattern for the last line (of a Cluster: for the error of the call). None: the run goes on. CODE
# is 128 + the signal's number, and SIGNAL that of a process that it has killed.
CODE, SIGNAL = "as of a shell", "as of a killed process"
INTERRUPTED = r"interrupted by Ctrl-C \(exit code 130\); the nodes were stopped"
TOLD = r"told to end by {signal} \(exit code {code}\); the nodes were stopped"
UNCAUGHT = r"node {rank} ended with an uncaught KeyboardInterrupt \(exit code 130\)"
NEW = "the nodes are new, and their variables are gone"
# Ctrl-C is for the launcher, and the end of a connection for boxes; a supervisor lets its nodes answer.
GOES_ON = """
server INT, gateway INT, hosts gateway INT, hosts box INT, hosts box HUP, cluster server INT, cluster gateway INT,
cluster box INT, startup fork server INT, startup fork server HUP, meet fork server INT, meet fork server HUP,
meet gateway INT, meet box TERM, meet box INT, meet box HUP
"""
VERDICTS = dict.fromkeys(map(str.strip, GOES_ON.split(","))) | {
    "node": (CODE, r"node {rank} was killed by {signal} \(exit code {code}\)"),
    "node INT": (130, UNCAUGHT),
    "launcher": (CODE, TOLD),
    "launcher INT": (130, INTERRUPTED),
    "launcher KILL": (SIGNAL, None),
    "fork server": (125, "the process that starts the nodes was killed by {signal} while it ran the nodes"),
    "server": (125, "the server was killed by {signal}; the nodes were stopped"),
    "gateway": (125, "the gateway of box . was killed by {signal}; the nodes were stopped"),
    "hosts fork server": (125, "{host}: the process that starts the nodes there was killed by {signal}"),
    "hosts gateway": (125, "{host}: the gateway there was killed by {signal}; the nodes were stopped"),
    "hosts relay": (125, "{host}: the process here that reaches it was killed by {signal}"),
    "hosts box": (125, "{host}: the connection to it has ended, with its nodes"),
    "hosts box TERM": (143, r"{host}: the box there was told to end by SIGTERM \(exit code 143\)"),
    "room server": (125, "the server was ended; the nodes were stopped"),
    "room server KILL": (125, "the server at .* has ended.*; the nodes were stopped"),
    "room member": (125, "{host}: the connection to it has ended, with its nodes"),
    "cluster node": (0, r"NodeLostError: node {rank} was killed \({signal}\)( in box .)?: " + NEW),
    "cluster node INT": (0, "ClusterError: node {rank} raised KeyboardInterrupt"),
    "cluster launcher": (SIGNAL, None),
    "cluster launcher INT": (0, "KeyboardInterrupt: "),
    "cluster fork server": (0, f"NodeLostError: .* together with the process that starts the nodes: {NEW}"),
    "cluster server": (0, "ConnectionLostError: .*the server was killed by {signal}"),
    "cluster gateway": (0, "ConnectionLostError: .*the gateway of box . was killed by {signal}"),
    "cluster box": (0, "ConnectionLostError: .*the process that starts the gateways has ended"),
    "startup launcher": (SIGNAL, "node 0 died"),
    "startup launcher INT": (SIGNAL, INTERRUPTED),
    "startup in C launcher INT": (SIGNAL, "node 0 died"),
    "startup node INT": (SIGNAL, UNCAUGHT),
    "startup in C node INT": (SIGNAL, r"node {rank} was killed by SIGINT \(exit code 130\)"),
    "startup fork server": (125, "the process that watches over the nodes was killed by SIGKILL; "),
    "startup fork server TERM": (143, TOLD),
    "meet node INT": ((SIGNAL, 130), UNCAUGHT),
    "meet launcher": ((SIGNAL, 1), "node 0 died"),
    "meet launcher INT": ((SIGNAL, 130), INTERRUPTED),
    "meet fork server": (125, "the process that watches .* by SIGKILL|has ended, or the network to it has"),
    "meet fork server TERM": (143, TOLD),
    "meet server": (125, "the server was ended; the nodes were stopped"),
    "meet server KILL": (125, "the server at .* has ended: nothing listens at its port any more"),
    "meet gateway": (125, "its gateway was killed by {signal}; the nodes were stopped"),
    "meet box": (125, "the process that connects this box was killed|has ended, or the network to it has"),
}
CASES = [(place, who, number) for place in PLACES for who in PLACES[place] for number in NUMBERS]
TRAFFIC = """
import itertools, os
def traffic(comm, rounds, enough):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for count in itertools.count():
        over = comm.bcast(os.path.exists(enough) if comm.rank == 0 else None)
        size = (8, 3000, 200_000)[count % 3]
        assert len(comm.sendrecv(bytes(size), right, source=left)) == size
        assert comm.allreduce(comm.rank) == sum(range(comm.size))
        comm.barrier()
        if count == rounds:
            print(comm.rank, os.getpid(), flush=True)
        if over and count >= rounds:
            break
"""
PYTHON = TRAFFIC + "import sys, spcomm\ntraffic(spcomm.startup({how}), int(sys.argv[1]), sys.argv[2])\n"
CLUSTER = """
import sys, spcomm
with spcomm.Cluster({nodes}, boxes={boxes}) as cluster:
    try:
        cluster.execute({text!r} + f"traffic(comm, {{sys.argv[1]}}, {{sys.argv[2]!r}})")
    except BaseException as error:
        print(type(error).__name__, error, sep=": ", file=sys.stderr)
    assert cluster.execute("comm.allreduce(1)") == [{nodes}] * {nodes}
"""
C = r"""
#include <spcomm/spcomm.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void check(int status) {
    if (status != 0) {
        fprintf(stderr, "%s\n", spcomm_last_error());
        exit(1);
    }
}
int main(int argc, char **argv) {
    static const int64_t sizes[] = {8, 3000, 200000};
    static char block[200000];
    spcomm_t *comm;
    check(argc != 3 || spcomm_startup(4, 0, 0, NULL, &comm));
    int32_t rank = spcomm_rank(comm), size = spcomm_size(comm);
    int64_t over = 0;
    for (int count = 0; count <= atoi(argv[1]) || over == 0; count++) {
        spcomm_message_t message;
        spcomm_data_t data = spcomm_raw(block, sizes[count % 3]);
        check(spcomm_global_max_int64(comm, rank == 0 && access(argv[2], F_OK) == 0, SPCOMM_FOREVER, &over));
        check(spcomm_sendrecv(comm, (rank + 1) % size, 0, data, (rank + size - 1) % size, 0, SPCOMM_FOREVER, &message));
        spcomm_message_free(&message);
        check(spcomm_barrier(comm, SPCOMM_FOREVER));
        if (count == atoi(argv[1])) {
            printf("%d %d\n", rank, (int)getpid());
            fflush(stdout);
        }
    }
    return 0;
}
"""


class Site(Room):
    """A run of some place, all of whose processes can be found."""

    def begin(self, place, rounds):
        """Start the run, and wait until its nodes have had so many rounds of traffic."""
        self.enough = self.folder.parent / "enough"
        self.runs = getattr(self, "_begin_" + place.replace(" ", "_"))(str(rounds), str(self.enough))
        lines = [line for run in self.runs for line in read_lines(run, NODES // len(self.runs))]
        self.nodes = dict(map(int, line.split()[-2:]) for line in lines)

    def _begin_run(self, *words, options=("-n", NODES)):
        return [self.start("run", *options, self.script(PYTHON.format(how="")), *words)]

    def _begin_boxes(self, *words):
        return self._begin_run(*words, options=("-n", NODES, "--boxes", 2))

    def _begin_hosts(self, *words):
        ssh = stand_in_for_ssh(self.folder.parent)
        options = ("--host", "a:2,b:2", "--ssh", ssh, "--link-timeout", LINK_S)
        return self._begin_run(*words, options=options)

    def _begin_room(self, *words):
        self.serve("--room", "--link-timeout", LINK_S)
        self.join("ann")
        self.join("bob")
        return self._begin_run(*words, options=("--room", self.place, "-n", NODES))

    def _begin_cluster(self, *words, boxes=1):
        owner = self.script(CLUSTER.format(nodes=NODES, boxes=boxes, text=TRAFFIC))
        return [self._alone(sys.executable, "-u", owner, *words)]

    def _begin_cluster_of_boxes(self, *words):
        return self._begin_cluster(*words, boxes=2)

    def _begin_startup(self, *words):
        return [self._alone(sys.executable, self.script(PYTHON.format(how=f"local_nodes={NODES}")), *words)]

    def _begin_startup_in_C(self, *words):
        told = [
            shlex.split(subprocess.run(self.command("config", part), capture_output=True, text=True).stdout)
            for part in ("--cflags", "--libs")
        ]
        made = self.folder / "traffic"
        compiler = shlex.split(os.environ.get("CC", "cc"))
        subprocess.run([*compiler, *told[0], self.script(C, "traffic.c"), "-o", made, *told[1]], check=True)
        return [self._alone(made, *words)]

    def _begin_meet(self, *words):
        self.serve("--link-timeout", LINK_S)
        program = self.script(PYTHON.format(how="infile=sys.argv[-1]"))
        infile = f"local_nodes={NODES // 2}\ntotal_nodes={NODES}"
        first = self.box(sys.executable, program, *words, infile=infile, name="0.toml")
        read_until(first.stderr, "waiting for nodes: ")
        return [first, self.box(sys.executable, program, *words, infile=infile, name="1.toml")]

    def _alone(self, *command):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=self.folder,
            env=self.environment(),
            bufsize=0,
            process_group=0,
            **pipes,
        )
        self.running.append(process)
        return process

    def processes(self, who):
        """The processes of this kind."""
        callers = [run.pid for run in self.runs]
        if who == "launcher":
            return callers[:1]
        nodes = [pid for pid in self.nodes.values() if pid not in callers]
        if who == "node":
            return nodes
        forks = sorted({parent(pid) for pid in nodes})
        if who == "fork server":
            return forks
        if who == "member":
            return [member.pid for member in self.members]
        found = {pid: name(pid) for pid in self.alive()}
        gateways = [pid for pid in found if found[pid].startswith("spcomm gw")]
        if who == "gateway":
            return gateways
        if who == "server":
            return (
                [self.server.pid] if self.server else [pid for pid in found if found[pid] == "spcomm server"]
            )
        boxes = sorted({parent(pid) for pid in gateways})
        if who == "box":
            return boxes
        return [pid for pid in children(callers[0]) if found[pid] != "spcomm server"]

    def end(self):
        """The results of the run, or of both of its shells; all else ends, too."""
        results = [self.finish(run) for run in self.runs]
        if self.server and self.server.poll() is None:
            self.server.send_signal(signal.SIGINT)
        for process in filter(None, (self.server, *self.members)):
            self.finish(process)
        self.wait_until_nothing_is_left()
        assert not self.left()
        return results


def verdict(place, who, number):
    """The exit codes and the last line, as a pattern; None: the run goes on."""
    if number == "STOP":
        return None
    places = (f"{place} ", f"{LIKE.get(place)} ", "")
    return next(
        VERDICTS[key] for one in places for key in (f"{one}{who} {number}", f"{one}{who}") if key in VERDICTS
    )


def attack(folder, run):
    """One run: a process of it gets a signal, and the run ends as it should."""
    chance = random.Random(run)
    case = place, who, number = CASES[run % len(CASES)]
    rounds = chance.choice((0, 1, 5, 20))
    expected = verdict(place, who, number)
    folder.mkdir()
    site = Site(folder)
    try:
        site.begin(place, rounds)
        victim = chance.choice(site.processes(who))
        if number == "STOP":
            stop(victim)
            with pytest.raises(subprocess.TimeoutExpired):
                site.runs[0].wait(chance.random() * 0.5)
            os.kill(victim, signal.SIGCONT)
        else:
            os.kill(victim, NUMBERS[number])
        if expected is None:
            site.enough.touch()
        results = site.end()
    finally:
        site.close()
    check(site, case, victim, expected, results)


def check(site, case, victim, expected, results):
    place, _who, number = case
    if expected is None:
        assert [(result.code, result.last) for result in results] == [(0, "")] * len(results), (case, results)
        return
    codes, pattern = expected
    meant = {CODE: 128 + NUMBERS[number], SIGNAL: -NUMBERS[number]}
    codes = codes if isinstance(codes, tuple) else (codes,) * len(results)
    rank = next((rank for rank, pid in site.nodes.items() if pid == victim), "")
    if rank and rank >= NODES // len(results):  # of the second shell
        codes = codes[::-1]
    assert [result.code for result in results] == [meant.get(code, code) for code in codes], (case, results)
    if pattern is None:
        return
    pattern = pattern.format(
        rank=rank,
        signal=f"SIG{number}",
        code=128 + NUMBERS[number],
        host="host [ab]" if place == "hosts" else "member (ann|bob)",
    )
    if place.startswith("cluster"):
        assert all(re.search(f"^({pattern})", result.err, re.M) for result in results), (
            case,
            pattern,
            results,
        )
        return
    where = r"spcomm: (box . \(.*\): )?"
    assert all(re.match(f"{where}({pattern})", result.last) for result in results), (case, pattern, results)


@pytest.mark.slow
@pytest.mark.linux("reads /proc")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", PLACES)
def test_each_process_of_each_place(tmp_path, place):
    chance = random.Random(place)
    for who in PLACES[place]:
        for number in ("KILL", chance.choice(list(NUMBERS)[1:])):
            attack(tmp_path / f"{who.replace(' ', '_')}_{number}", CASES.index((place, who, number)))


@pytest.mark.stress
@pytest.mark.linux("reads /proc")
@pytest.mark.timeout(6000)
@pytest.mark.parametrize("part", range(-(-RUNS // PART)))
def test_random_signals(tmp_path, part):
    runs = [int(REPLAY)] if REPLAY else range(part * PART, min((part + 1) * PART, RUNS))
    for run in runs:
        print(f"REPLAY={run}:", *CASES[run % len(CASES)])
        attack(tmp_path / str(run), run)
