# SPDX-License-Identifier: MIT
"""The text of `spcomm run --help`. Imported when it is asked for."""

HELP = r"""usage: spcomm run [options] program [arguments] [: [options] program [arguments]]...
       spcomm run [options] -m module [arguments]

Runs one program as N cooperating nodes, or several programs together. A program is a Python script
(its name ends in .py) or an executable. What follows its name are its own arguments.

Options of one program:
  -n N, -np N          number of nodes (default: the cores this process may use; needed with several
                       programs)
  --group ID           the group its nodes belong to (default: 0). Programs of one group share its
                       ranks, in the order of the command line; groups know nothing of each other
  -m MODULE            run a module, as python -m does
  --start fork|exec    fork: all nodes from one process that has imported NumPy and spcomm once
                       (default for Python on Linux); exec: each node starts by itself (default for
                       executables)
  --preload MODULES    what that process imports before it forks, separated by commas
  -x VAR[=VALUE]       set a variable for its nodes; without a value: the one it has here
  --env all|none       all: nodes also get the variables that are set here (default); none: only
                       those of -x
  --wdir FOLDER        as if it had been started in that folder

Options of the whole run, given with any of its programs. RANKS are numbers and ranges such as
0,2-5, or all, or none; with several groups 1:0-3 means nodes 0 to 3 of group 1:
  --boxes B            divide the nodes among B boxes: on this machine they share no memory, as if
                       each were a machine of its own, and reach each other over the network
                       (default: 1)
  --map block|cyclic|BOX,BOX,…
                       which node is in which box. block: neighbours share one (default); cyclic: a
                       box after the other; or the box of each node, as in 0,0,1,0,1
  --host HOST:N,…      run N nodes on each host, reached by ssh (default: one); each is a box. The
                       program has to be there, at the same place; localhost needs no ssh
  --hostfile FILE      the same from a file, with a line such as `alpha slots=4` for each
  --ssh COMMAND        what reaches a host (default: ssh -o BatchMode=yes, and timeouts)
  --tunnel ssh|none    messages between boxes go through ssh (default); none: boxes connect to this
                       machine, encrypted, too
  --listen ADDRESS     without tunnel: at which address of this machine (default: the one that
                       reaches the first host); also with --boxes
  --room HOST[:PORT]   run on the members of a room (spcomm serve --room, spcomm join), to whom the
                       folder of the program is sent; -n is divided among them (default: what all
                       are good for). The code is asked for, or taken from $SPCOMM_CODE
  --members N          with --room: wait until so many have joined (default: 1)
  --server HOST[:PORT] with --boxes: boxes reach each other through a spcomm serve that runs
                       already; at a time it has one run of each --group
  --route relay|direct messages between boxes go through the server (default), or from box to box,
                       where they can
  --link-timeout SECONDS
                       how long a box may be out of reach before the run fails (default: 30)
  -l, --no-label       put [3] before each line that node 3 prints, or do not (default: at a
                       terminal); with several groups [1:3] for node 3 of group 1
  --color, --no-color  labels in a colour for each node (implies -l), or not (default: at a
                       terminal, unless NO_COLOR is set)
  --show RANKS         whose output is shown (default: all that have no window); tracebacks always
                       are
  --output FOLDER      also keep what each node prints, in FOLDER/node-3.txt for node 3
  --window RANKS       show the output of these nodes in windows of their own (needs tmux)
  --stdin RANKS        who gets the standard input, each of them all of it (default: 0); others are
                       at its end
  --bind-to core|none  bind each node to one core, in turn (default: none)
  --report-bindings    print which node is on which core
  --timeout SECONDS    end the run after this time, say where each node was, exit with 124
  --grace SECONDS      how long nodes that are told to end may take before they are killed
                       (default: 3)
  --stall SECONDS      when to warn of nodes that wait for one that does not come (default: 5;
                       0: never)
  --close-timeout SECONDS
                       how long a Python node goes on sending at its end (default: 10; 0: until all
                       is taken)
  --strict             messages that nobody received, and barriers left open at the end, are errors:
                       exit code 1
  --stats              print a table at the end: time, messages, bytes and collectives of each node,
                       and, with several boxes, frames between them
  --watch              show at the terminal what each node does while the program runs: state, call,
                       line, messages a second (needs rich)
  --trace FILE         record calls, messages and waits of all nodes; FILE opens in Perfetto, and
                       with spcomm trace
  --virtual            print at the end how long the run takes where only comm.work(cost) takes
                       time; not if it fails
  --trace-events N     how many events each node keeps, the last ones (default: 65536)
  --debug              run node 0 in a debugger: pdb, or gdb for an executable
  --debug=[TOOL:]RANKS the same for other nodes and with another TOOL: pdb, gdb (one node, it has
                       the standard input) or debugpy (many: each prints the port at which it
                       waits). No space before RANKS
  --perturb            delay calls at random, and change the order in which messages of different
                       nodes arrive: programs that rely on luck fail now, not later
  --seed NUMBER        the seed of --perturb (default: another one each time); the same one, the
                       same choices
  --rendezvous SIZE    sends of this size or more wait until they have been received (0: every send)
  --slots N  --ring SIZE  --arena SIZE  --queue-limit SIZE  --fanin N
                       buffers and tree; sizes are in bytes or end in K, M or G. A send waits
                       while --queue-limit is reached by what its node has sent and nobody has
                       received, beyond the share (limit / nodes) that receivers keep for it
  --prefault           have all rings and arenas in memory before the program begins: a slower
                       start, and no slow first messages
  --oversubscribe, --allow-run-as-root, --use-hwthread-cpus, --tag-output
                       accepted as in other launchers; only the last has an effect (-l)

A lone : separates programs; where a program is to have it as an argument write '\:'.

Exit codes: of the first node that failed; 99 deadlock, 124 timeout, 125 spcomm itself, 126 not
executable, 127 not found, 128 + signal number, 130 Ctrl-C. The last line on stderr says which.
"""
