/* SPDX-License-Identifier: MIT */
/*
 * engine: the module spcomm.model.engine, a discrete-event simulation of many nodes and servers.
 *
 * Every message is at least one event: it reaches a node, or a server on its way. A node or server is a processor,
 * which does one thing after another, and two ports, through which one message passes at a time.
 * docs/internals/simulate.md has the rules; tests/model/slow_simulator.py is a second implementation, which must agree
 * event for event.
 *
 * A node runs ahead: when a message lets it go on, it does its actions up to the next receive without a message, at
 * times of its own processor, which may lie in the future. That is exact: its processor and its sending port serve
 * nobody else, and what it sends arrives later than the event, because every latency is at least a nanosecond.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>
#include <time.h>

#include "engine_program.h"
#include "engine_queue.h"

enum { LEVELS_MOST = 34, EVENTS_BETWEEN_SIGNALS = 1 << 20 };
static const int64_t TIME_MOST_NS = INT64_MAX / 4;

typedef struct {
    int64_t send_ns, receive_ns, latency_ns, gap_ns; /* of nodes; latency and gap of all links */
    int64_t server_receive_ns, server_send_ns;       /* of a server: for each message in, and out */
    int64_t byte_ps, combine_ps,
        server_byte_ps;     /* for each byte: of a link; to combine; of a server, in and out */
} costs_t;

typedef struct {
    int64_t free_ns;             /* its processor is busy until then, */
    int64_t out_ns, in_ns;       /* and so are its ports */
    uint32_t sent, drawn;        /* messages so far; draws of noise so far */
    uint32_t done;               /* node: actions of its program; server: arrivals of this round */
    uint32_t waits;              /* node: the channel of its receive */
} place_t;

enum { NOT_WAITING = UINT32_MAX };

typedef struct {
    int64_t time_ns;
    uint32_t at, sender, number;
    bool waited;
} logged_t;

typedef struct {
    engine_plan_t plan;
    costs_t costs;
    uint32_t radix; /* nodes of a server, servers of a server above; 0: direct links */
    uint32_t levels,
        first[LEVELS_MOST + 1]; /* servers of level i: first[i] to first[i + 1] - 1, the lowest at 0 */
    uint32_t places_count, channels;
    place_t *places;
    uint32_t *there; /* messages of each channel of each node that it has not received */
    const int32_t *noise_ns;
    uint32_t noise_series, noise_length; /* so many series of that length; 0: no noise */
    engine_queue_t queue;
    bool is_logging;
    logged_t *log;
    size_t logged, log_room;
    uint64_t messages, events;
    uint32_t finished;
    int64_t last_ns, *busy_ns; /* when the last node was done; by server */
    double sum_ns;             /* of the times at which nodes were done */
    enum { FINE, NO_MEMORY, TOO_LONG } trouble;
} simulation_t;

static int64_t per_byte(int64_t ps, uint32_t bytes) {
    return (ps * bytes + 500) / 1000;
}

/* The time that the operating system adds to one piece of work of this processor. */
static int64_t noise(simulation_t *sim, uint32_t at) {
    if (sim->noise_length == 0) {
        return 0;
    }
    const uint32_t place = engine_draw(sim->plan.seed, at, sim->places[at].drawn++, sim->noise_length);
    return sim->noise_ns[(size_t)(at % sim->noise_series) * sim->noise_length + place];
}

static void push(simulation_t *sim, engine_event_t event) {
    if (event.time_ns > TIME_MOST_NS) {
        sim->trouble = TOO_LONG;
    } else if (!engine_queue_push(&sim->queue, event)) {
        sim->trouble = NO_MEMORY;
    }
}

/* A message leaves through the port of `from`, not before `ready_ns`. */
static void transmit(simulation_t *sim, uint32_t from, int64_t ready_ns, engine_event_t message) {
    place_t *place = &sim->places[from];
    const int64_t transfer = per_byte(sim->costs.byte_ps, message.bytes);
    const int64_t leaves = ready_ns > place->out_ns ? ready_ns : place->out_ns;
    place->out_ns = leaves + sim->costs.gap_ns + transfer;
    message.time_ns = leaves + sim->costs.latency_ns + transfer;
    message.order = (uint64_t)from << 32 | place->sent++;
    message.waited = false;
    sim->messages++;
    push(sim, message);
}

/* ---- nodes */

static uint32_t server_of(const simulation_t *sim, uint32_t node) {
    return sim->first[0] + node / sim->radix;
}

static void send_from_node(simulation_t *sim, uint32_t node, const engine_action_t *action) {
    place_t *place = &sim->places[node];
    place->free_ns += sim->costs.send_ns + noise(sim, node);
    const bool is_direct = sim->radix == 0;
    engine_event_t message = {
        .at = is_direct ? action->peer : server_of(sim, node),
        .dest = action->peer == UINT32_MAX ? node : action->peer,
        .bytes = action->bytes,
        .kind = action->message,
        .channel = action->channel,
    };
    transmit(sim, node, place->free_ns, message);
}

/* Lets a node go on until a receive for which there is no message, or to its end. */
static void run_node(simulation_t *sim, uint32_t node) {
    place_t *place = &sim->places[node];
    uint32_t *there = &sim->there[(size_t)node * sim->channels];
    for (; sim->trouble == FINE; place->done++) {
        const engine_action_t action = engine_next(&sim->plan, node, place->done);
        if (action.kind == ENGINE_END) {
            sim->finished++;
            sim->sum_ns += (double)place->free_ns;
            sim->last_ns = place->free_ns > sim->last_ns ? place->free_ns : sim->last_ns;
            place->waits = NOT_WAITING;
            return;
        }
        if (action.kind == ENGINE_SEND) {
            send_from_node(sim, node, &action);
            continue;
        }
        if (there[action.channel] == 0) {
            place->waits = action.channel;
            return;
        }
        there[action.channel]--;
        place->free_ns += sim->costs.receive_ns + noise(sim, node);
        place->free_ns += action.combines ? per_byte(sim->costs.combine_ps, action.bytes) : 0;
    }
}

static void at_node(simulation_t *sim, const engine_event_t *event) {
    place_t *place = &sim->places[event->at];
    sim->there[(size_t)event->at * sim->channels + event->channel]++;
    if (place->waits == event->channel) {
        place->waits = NOT_WAITING;
        place->free_ns = event->time_ns > place->free_ns ? event->time_ns : place->free_ns;
        run_node(sim, event->at);
    }
}

/* ---- servers */

typedef struct {
    uint32_t level, index;
    uint32_t parent;              /* UINT32_MAX: it is the root */
    uint32_t child, children_end; /* those below it: nodes, or servers */
} server_t;

static server_t find_server(const simulation_t *sim, uint32_t at) {
    server_t found = {.parent = UINT32_MAX};
    while (at >= sim->first[found.level + 1]) {
        found.level++;
    }
    found.index = at - sim->first[found.level];
    if (found.level + 1 < sim->levels) {
        found.parent = sim->first[found.level + 1] + found.index / sim->radix;
    }
    const uint64_t base = found.level ? sim->first[found.level - 1] : 0;
    const uint64_t end = found.level ? sim->first[found.level] : sim->plan.nodes;
    const uint64_t child = base + (uint64_t)found.index * sim->radix;
    found.child = (uint32_t)child;
    found.children_end = (uint32_t)(child + sim->radix < end ? child + sim->radix : end);
    return found;
}

/* The neighbor of a server on the way to a node: one of its children, or the server above. */
static uint32_t towards(const simulation_t *sim, const server_t *server, uint32_t dest) {
    uint32_t below = dest, index = dest / sim->radix; /* at this level; and which child leads there */
    for (uint32_t level = 0; level < server->level; level++) {
        below = sim->first[level] + index;
        index /= sim->radix;
    }
    return index == server->index ? below : server->parent;
}

static void send_from_server(simulation_t *sim, uint32_t from, uint32_t to, engine_event_t message) {
    place_t *place = &sim->places[from];
    const int64_t work =
        sim->costs.server_send_ns + per_byte(sim->costs.server_byte_ps, message.bytes) + noise(sim, from);
    place->free_ns += work;
    sim->busy_ns[from - sim->first[0]] += work;
    message.at = to;
    transmit(sim, from, place->free_ns, message);
}

/* To all neighbors but one: down to the children, and up, if the message came from below. */
static void send_copies(simulation_t *sim, const server_t *server, engine_event_t message, uint32_t except) {
    const uint32_t from = message.at;
    if (message.kind == ENGINE_COPY && server->parent != UINT32_MAX && server->parent != except) {
        send_from_server(sim, from, server->parent, message);
    }
    for (uint32_t child = server->child; child < server->children_end; child++) {
        if (child != except) {
            send_from_server(sim, from, child, message);
        }
    }
}

static void at_server(simulation_t *sim, const engine_event_t *event) {
    place_t *place = &sim->places[event->at];
    const server_t server = find_server(sim, event->at);
    place->free_ns = event->time_ns > place->free_ns ? event->time_ns : place->free_ns;
    int64_t work = sim->costs.server_receive_ns + per_byte(sim->costs.server_byte_ps, event->bytes)
                   + noise(sim, event->at);
    work += event->kind == ENGINE_ARRIVE ? per_byte(sim->costs.combine_ps, event->bytes) : 0;
    place->free_ns += work;
    sim->busy_ns[event->at - sim->first[0]] += work;
    engine_event_t message = *event;
    const uint32_t sender = (uint32_t)(event->order >> 32);
    if (event->kind == ENGINE_TO_NODE) {
        send_from_server(sim, event->at, towards(sim, &server, event->dest), message);
    } else if (event->kind != ENGINE_ARRIVE) {
        send_copies(sim, &server, message, sender);
    } else if (++place->done == server.children_end - server.child) {
        place->done = 0;
        if (server.parent != UINT32_MAX) {
            send_from_server(sim, event->at, server.parent, message);
        } else {
            message.kind = ENGINE_RELEASE;
            send_copies(sim, &server, message, UINT32_MAX);
        }
    }
}

/* ---- the simulation */

static void log_event(simulation_t *sim, const engine_event_t *event) {
    if (sim->logged == sim->log_room) {
        const size_t room = sim->log_room ? 2 * sim->log_room : 1024;
        logged_t *log = realloc(sim->log, room * sizeof *log);
        if (log == NULL) {
            sim->trouble = NO_MEMORY;
            return;
        }
        sim->log = log;
        sim->log_room = room;
    }
    sim->log[sim->logged++] = (logged_t){event->time_ns, event->at, (uint32_t)(event->order >> 32),
                                         (uint32_t)event->order, event->waited};
}

static void handle(simulation_t *sim, engine_event_t *event) {
    place_t *place = &sim->places[event->at];
    sim->events++;
    if (sim->is_logging) {
        log_event(sim, event);
    }
    if (!event->waited) {
        const int64_t begins = event->time_ns > place->in_ns ? event->time_ns : place->in_ns;
        place->in_ns = begins + sim->costs.gap_ns + per_byte(sim->costs.byte_ps, event->bytes);
        if (begins > event->time_ns) {
            event->time_ns = begins;
            event->waited = true;
            push(sim, *event);
            return;
        }
    }
    if (event->at < sim->plan.nodes) {
        at_node(sim, event);
    } else {
        at_server(sim, event);
    }
}

/* So many events, or all; false: no more are left. */
static bool run_some(simulation_t *sim) {
    for (int i = 0; i < EVENTS_BETWEEN_SIGNALS && sim->queue.count > 0 && sim->trouble == FINE; i++) {
        engine_event_t event = engine_queue_pop(&sim->queue);
        handle(sim, &event);
    }
    return sim->queue.count > 0 && sim->trouble == FINE;
}

/* Numbers the servers, level by level; false: there are too many places. */
static bool build_servers(simulation_t *sim) {
    uint64_t below = sim->plan.nodes, place = below;
    sim->first[0] = (uint32_t)below;
    while (sim->radix != 0 && (below > 1 || sim->levels == 0)) {
        below = (below + sim->radix - 1) / sim->radix;
        place += below;
        if (place >= UINT32_MAX || sim->levels == LEVELS_MOST) {
            return false;
        }
        sim->first[++sim->levels] = (uint32_t)place;
    }
    sim->places_count = (uint32_t)place;
    return true;
}

static bool allocate(simulation_t *sim) {
    const size_t nodes = sim->plan.nodes, places = sim->places_count, servers = places - nodes;
    sim->channels = engine_channels(&sim->plan);
    sim->places = calloc(places, sizeof *sim->places);
    sim->there = calloc(nodes * sim->channels, sizeof *sim->there);
    sim->busy_ns = calloc(servers + 1, sizeof *sim->busy_ns);
    bool is_fine = sim->places != NULL && sim->there != NULL && sim->busy_ns != NULL;
    if (is_fine && sim->plan.program == ENGINE_UNBALANCED) {
        sim->plan.expected = calloc(nodes, sizeof *sim->plan.expected);
        is_fine = sim->plan.expected != NULL;
        for (uint32_t node = 0; is_fine && node < nodes; node++) {
            for (uint32_t i = 0; i < sim->plan.rounds; i++) {
                sim->plan.expected[engine_unbalanced_dest(&sim->plan, node, i)]++;
            }
        }
    }
    return is_fine;
}

static void release(simulation_t *sim) {
    free(sim->places);
    free(sim->there);
    free(sim->busy_ns);
    free(sim->plan.expected);
    free(sim->queue.events);
    free(sim->log);
}

static PyObject *log_of(const simulation_t *sim) {
    PyObject *list = PyList_New((Py_ssize_t)sim->logged);
    for (size_t i = 0; list != NULL && i < sim->logged; i++) {
        const logged_t *one = &sim->log[i];
        PyObject *item = Py_BuildValue("(LIIIO)", (long long)one->time_ns, one->at, one->sender, one->number,
                                       one->waited ? Py_True : Py_False);
        if (item == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
        }
    }
    return list;
}

static PyObject *result_of(const simulation_t *sim) {
    if (sim->trouble == NO_MEMORY) {
        return PyErr_NoMemory();
    }
    if (sim->trouble == TOO_LONG) {
        PyErr_SetString(PyExc_OverflowError, "the simulated time exceeds 73 years");
        return NULL;
    }
    if (sim->finished != sim->plan.nodes) {
        return PyErr_Format(PyExc_RuntimeError, "%u of %u nodes wait for ever",
                            sim->plan.nodes - sim->finished, sim->plan.nodes);
    }
    int64_t busiest = 0;
    for (uint32_t i = 0; i < sim->places_count - sim->plan.nodes; i++) {
        busiest = sim->busy_ns[i] > busiest ? sim->busy_ns[i] : busiest;
    }
    PyObject *log = sim->is_logging ? log_of(sim) : Py_NewRef(Py_None);
    return log == NULL ? NULL
                       : Py_BuildValue("(LdKKILN)", (long long)sim->last_ns, sim->sum_ns / sim->plan.nodes,
                                       (unsigned long long)sim->messages, (unsigned long long)sim->events,
                                       sim->places_count - sim->plan.nodes, (long long)busiest, log);
}

static PyObject *run_all(simulation_t *sim) {
    bool is_left = true;
    Py_BEGIN_ALLOW_THREADS for (uint32_t node = 0; node < sim->plan.nodes && sim->trouble == FINE; node++) {
        sim->places[node].waits = NOT_WAITING;
        run_node(sim, node);
    }
    Py_END_ALLOW_THREADS while (is_left) {
        Py_BEGIN_ALLOW_THREADS is_left = run_some(sim);
        Py_END_ALLOW_THREADS if (PyErr_CheckSignals() < 0) {
            return NULL;
        }
    }
    return result_of(sim);
}

/* Rank r + 1 is the next one along the last dimension, as in MPI. False: the torus has another number of nodes. */
static bool set_torus(engine_plan_t *plan, const uint32_t *torus) {
    uint32_t stride = 1;
    for (int at = ENGINE_DIMENSIONS_MOST - 1; at >= 0; at--) {
        if (torus[at] == 0 || torus[at] > plan->nodes / stride) {
            return false;
        }
        if (torus[at] > 1) {
            plan->length[plan->dimensions] = torus[at];
            plan->stride[plan->dimensions++] = stride;
        }
        stride *= torus[at];
    }
    return stride == plan->nodes;
}

PyDoc_STRVAR(run_text,
             "run(program, nodes, radix, rounds, bytes, fanout, hot_percent, seed, torus, costs, noise, "
             "noise_series, is_logging)\n\nSimulates; simulate.py checks the arguments.");

static PyObject *run(PyObject *module, PyObject *args) {
    (void)module;
    simulation_t sim = {0};
    engine_plan_t *plan = &sim.plan;
    costs_t *costs = &sim.costs;
    Py_buffer noise_buffer;
    unsigned long long seed;
    long long ns[9];
    uint32_t torus[ENGINE_DIMENSIONS_MOST];
    int is_logging;
    if (!PyArg_ParseTuple(args, "iIIIIIIK(IIII)(LLLLLLLLL)y*Ip", &plan->program, &plan->nodes, &sim.radix,
                          &plan->rounds, &plan->bytes, &plan->fanout, &plan->hot_percent, &seed, &torus[0],
                          &torus[1], &torus[2], &torus[3], &ns[0], &ns[1], &ns[2], &ns[3], &ns[4], &ns[5],
                          &ns[6], &ns[7], &ns[8], &noise_buffer, &sim.noise_series, &is_logging)) {
        return NULL;
    }
    *costs = (costs_t){ns[0], ns[1], ns[2], ns[3], ns[4], ns[5], ns[6], ns[7], ns[8]};
    plan->seed = seed;
    sim.is_logging = is_logging;
    sim.noise_ns = noise_buffer.buf;
    if (sim.noise_series) {
        sim.noise_length = (uint32_t)((size_t)noise_buffer.len / sizeof(int32_t) / sim.noise_series);
    }
    while ((1ull << plan->log2) < plan->nodes) {
        plan->log2++;
    }
    while (plan->nodes >> (plan->pairs + 1)) {
        plan->pairs++;
    }
    const bool is_possible = plan->nodes > 0 && plan->program >= 0 && plan->program < ENGINE_PROGRAMS
                             && sim.radix != 1 && costs->latency_ns > 0 && set_torus(plan, torus)
                             && build_servers(&sim);
    PyObject *result = NULL;
    if (!is_possible) {
        PyErr_SetString(PyExc_ValueError, "no such simulation");
    } else {
        result = allocate(&sim) ? run_all(&sim) : PyErr_NoMemory();
    }
    release(&sim);
    PyBuffer_Release(&noise_buffer);
    return result;
}

/* ---- noise of this machine */

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int64_t time_work(uint64_t steps) {
    volatile uint64_t state = 1;
    const int64_t begin = now_ns();
    for (uint64_t i = 0; i < steps; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
    }
    return now_ns() - begin;
}

PyDoc_STRVAR(noise_text,
             "measure_noise(work_ns, count)\n\nTimes equal pieces of work of about work_ns; returns what "
             "each took beyond the shortest, as int32 nanoseconds.");

static PyObject *measure_noise(PyObject *module, PyObject *args) {
    (void)module;
    long long work_ns;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "Ln", &work_ns, &count)) {
        return NULL;
    }
    PyObject *found = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(int32_t));
    if (found == NULL) {
        return NULL;
    }
    int32_t *times = (int32_t *)(void *)PyBytes_AS_STRING(found);
    Py_BEGIN_ALLOW_THREADS uint64_t steps = 1;
    while (time_work(steps) < work_ns && steps < UINT64_C(1) << 40) {
        steps += 1 + steps / 8;
    }
    int32_t least = INT32_MAX;
    for (Py_ssize_t i = 0; i < count; i++) {
        const int64_t took = time_work(steps);
        times[i] = took < INT32_MAX ? (int32_t)took : INT32_MAX;
        least = times[i] < least ? times[i] : least;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        times[i] -= least;
    }
    Py_END_ALLOW_THREADS return found;
}

static PyMethodDef methods[] = {
    {"run", run, METH_VARARGS, run_text},
    {"measure_noise", measure_noise, METH_VARARGS, noise_text},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "engine", .m_doc = "Discrete-event simulation, in C.",
    .m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit_engine(void) {
    return PyModuleDef_Init(&definition);
}
