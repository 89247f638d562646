/* SPDX-License-Identifier: MIT */
/*
 * A handle is 0x70000000, the kind of object, how often its place was used (modulo 16), and its place. So no handle
 * equals one of the ABI's predefined ones, and most uses of a freed handle are detected.
 */
#include "mpi/spc_mpi.h"

enum {
    PLACE_BITS = 20,
    PLACES = 1 << PLACE_BITS,
    LAP_SHIFT = PLACE_BITS,
    KIND_SHIFT = 24,
    MARK = 0x70000000,
    CHUNK = 1024,
    CHUNKS = PLACES / CHUNK,
};

typedef struct place {
    _Atomic(void *) object; /* NULL: free. Release by create, acquire by find: it sees the whole object */
    _Atomic uint32_t lap;   /* relaxed: read after the object */
    uint32_t next_free;     /* with the table's lock */
} place_t;

typedef struct table {
    _Atomic(place_t *) chunk[CHUNKS]; /* never moved or freed; release by create, acquire by find */
    uint32_t used;
    uint32_t first_free; /* the place + 1; 0: none */
    pthread_mutex_t lock;
} table_t;

static table_t tables[SPC_MPI_KINDS] = {
    [0 ... SPC_MPI_KINDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static place_t *place_at(table_t *table, uint32_t index) {
    place_t *chunk = atomic_load_explicit(&table->chunk[index / CHUNK], memory_order_acquire);
    return chunk != NULL ? &chunk[index % CHUNK] : NULL;
}

/* With the lock. */
static bool add_chunk(table_t *table) {
    place_t *chunk = table->used < PLACES ? calloc(CHUNK, sizeof(*chunk)) : NULL;
    if (chunk == NULL) {
        return false;
    }
    for (uint32_t i = CHUNK; i-- > 0;) {
        chunk[i].next_free = table->first_free;
        table->first_free = table->used + i + 1;
    }
    atomic_store_explicit(&table->chunk[table->used / CHUNK], chunk, memory_order_release);
    table->used += CHUNK;
    return true;
}

intptr_t spc_mpi_handle_create(spc_mpi_kind_t kind, void *object) {
    table_t *table = &tables[kind];
    intptr_t handle = 0;
    pthread_mutex_lock(&table->lock);
    if (table->first_free != 0 || add_chunk(table)) {
        const uint32_t index = table->first_free - 1;
        place_t *place = place_at(table, index);
        table->first_free = place->next_free;
        const uint32_t lap = atomic_load_explicit(&place->lap, memory_order_relaxed);
        atomic_store_explicit(&place->object, object, memory_order_release);
        handle = MARK | kind << KIND_SHIFT | (lap & 15) << LAP_SHIFT | index;
    }
    pthread_mutex_unlock(&table->lock);
    return handle;
}

static place_t *find(spc_mpi_kind_t kind, intptr_t handle) {
    const uint32_t marks = (uint32_t)handle & ~(uint32_t)((1 << KIND_SHIFT) - 1);
    if (marks != (MARK | (uint32_t)kind << KIND_SHIFT) || handle != (intptr_t)(int)handle) {
        return NULL;
    }
    place_t *place = place_at(&tables[kind], (uint32_t)handle & (PLACES - 1));
    if (place == NULL) {
        return NULL;
    }
    const uint32_t lap = atomic_load_explicit(&place->lap, memory_order_relaxed);
    return (lap & 15) == ((uint32_t)handle >> LAP_SHIFT & 15) ? place : NULL;
}

void *spc_mpi_handle_find(spc_mpi_kind_t kind, intptr_t handle) {
    const place_t *place = find(kind, handle);
    return place != NULL ? atomic_load_explicit(&place->object, memory_order_acquire) : NULL;
}

/* With the lock. Relaxed: the thread that frees a handle is the last to use it. */
static void give_back(table_t *table, uint32_t index, place_t *place) {
    atomic_store_explicit(&place->object, NULL, memory_order_relaxed);
    atomic_fetch_add_explicit(&place->lap, 1, memory_order_relaxed);
    place->next_free = table->first_free;
    table->first_free = index + 1;
}

void spc_mpi_handle_free(spc_mpi_kind_t kind, intptr_t handle) {
    table_t *table = &tables[kind];
    pthread_mutex_lock(&table->lock);
    place_t *place = find(kind, handle);
    if (place != NULL && atomic_load_explicit(&place->object, memory_order_relaxed) != NULL) {
        give_back(table, (uint32_t)handle & (PLACES - 1), place);
    }
    pthread_mutex_unlock(&table->lock);
}

void *spc_mpi_handle_free_any(spc_mpi_kind_t kind) {
    table_t *table = &tables[kind];
    void *object = NULL;
    pthread_mutex_lock(&table->lock);
    for (uint32_t index = 0; object == NULL && index < table->used; index++) {
        place_t *found = place_at(table, index);
        object = atomic_load_explicit(&found->object, memory_order_relaxed);
        if (object != NULL) {
            give_back(table, index, found);
        }
    }
    pthread_mutex_unlock(&table->lock);
    return object;
}
