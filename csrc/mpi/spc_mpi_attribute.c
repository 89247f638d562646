/* SPDX-License-Identifier: MIT */
/*
 * Attributes of communicators, datatypes and windows; info objects.
 *
 * A key value names the program's functions; here key values of all kinds of objects are alike. A freed one stays as
 * long as the process: objects that have its attribute still call its functions.
 */
#include "mpi/spc_mpi.h"
#include "mpi/type/spc_mpi_type.h"

enum {
    KEYS_MAX = 1 << 16,
    KEY_MARK = 0x7f000000,
};

typedef struct key_value {
    MPI_Comm_copy_attr_function *copy; /* those of types and windows differ only in their handle's type */
    MPI_Comm_delete_attr_function *delete;
    void *extra_state;
} key_value_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static key_value_t *keys[KEYS_MAX];
static _Atomic int key_count = 1; /* release by create, acquire by find: it sees the whole key value */

/* ---- key values ---- */

static int create_key(void *copy, void *delete, int *key, void *extra_state) {
    key_value_t *made = malloc(sizeof(*made));
    pthread_mutex_lock(&lock);
    const int number = atomic_load_explicit(&key_count, memory_order_relaxed);
    const bool has_room = made != NULL && number < KEYS_MAX;
    if (has_room) {
        *made = (key_value_t){.extra_state = extra_state};
        *(void **)&made->copy = copy;
        *(void **)&made->delete = delete;
        keys[number] = made;
        atomic_store_explicit(&key_count, number + 1, memory_order_release);
        *key = KEY_MARK | number;
    }
    pthread_mutex_unlock(&lock);
    if (!has_room) {
        free(made);
        return spc_mpi_fail(NULL, MPI_ERR_OTHER, "there is no room for a key value; %d were made",
                            number - 1);
    }
    return MPI_SUCCESS;
}

static const key_value_t *find_key(int key) {
    const int number = key & ~KEY_MARK;
    const bool is_known = (key & KEY_MARK) == KEY_MARK && number > 0
                          && number < atomic_load_explicit(&key_count, memory_order_acquire);
    return is_known ? keys[number] : NULL;
}

static int refuse_key(int key) {
    return spc_mpi_fail(NULL, MPI_ERR_KEYVAL, "keyval=%d: this program has made no such key value", key);
}

static int free_key(int *key) {
    if (find_key(*key) == NULL) {
        return refuse_key(*key);
    }
    *key = MPI_KEYVAL_INVALID;
    return MPI_SUCCESS;
}

/* ---- lists of attributes ---- */

static int call_delete(intptr_t owner, const spc_mpi_attribute_t *attribute) {
    const key_value_t *key = find_key(attribute->key);
    return key->delete != NULL
               ? key->delete((MPI_Comm)owner, attribute->key, attribute->value, key->extra_state)
               : MPI_SUCCESS;
}

static spc_mpi_attribute_t **find(spc_mpi_attribute_t **list, int key) {
    while (*list != NULL && (*list)->key != key) {
        list = &(*list)->next;
    }
    return list;
}

int spc_mpi_attribute_set(intptr_t owner, spc_mpi_attribute_t **list, int key, void *value) {
    if (find_key(key) == NULL) {
        return refuse_key(key);
    }
    spc_mpi_attribute_t *old = *find(list, key);
    if (old != NULL) {
        SPC_MPI_TRY(call_delete(owner, old));
        old->value = value;
        return MPI_SUCCESS;
    }
    spc_mpi_attribute_t *made = malloc(sizeof(*made));
    if (made == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for an attribute");
    }
    *made = (spc_mpi_attribute_t){.key = key, .value = value, .next = *list};
    *list = made;
    return MPI_SUCCESS;
}

int spc_mpi_attribute_get(const spc_mpi_attribute_t *list, int key, void *value, int *flag) {
    if (find_key(key) == NULL) {
        return refuse_key(key);
    }
    const spc_mpi_attribute_t *found = *find((spc_mpi_attribute_t **)&list, key);
    *flag = found != NULL;
    if (found != NULL) {
        *(void **)value = found->value;
    }
    return MPI_SUCCESS;
}

int spc_mpi_attribute_delete(intptr_t owner, spc_mpi_attribute_t **list, int key) {
    if (find_key(key) == NULL) {
        return refuse_key(key);
    }
    spc_mpi_attribute_t *found = *find(list, key);
    if (found == NULL) {
        return MPI_SUCCESS;
    }
    SPC_MPI_TRY(call_delete(owner, found));
    spc_mpi_attribute_t **link = find(list, key); /* the function may have changed the list */
    if (*link == found) {
        *link = found->next;
        free(found);
    }
    return MPI_SUCCESS;
}

/* The newest first, as MPI_Finalize must. */
int spc_mpi_attributes_free(intptr_t owner, spc_mpi_attribute_t **list) {
    while (*list != NULL) {
        SPC_MPI_TRY(spc_mpi_attribute_delete(owner, list, (*list)->key));
    }
    return MPI_SUCCESS;
}

static bool duplicates(const key_value_t *key) {
#ifdef SPC_MPI_STANDARD_ABI
    return key->copy == MPI_COMM_DUP_FN; /* a number there, not a function */
#else
    (void)key;
    return false;
#endif
}

int spc_mpi_attributes_copy(intptr_t owner, const spc_mpi_attribute_t *from, spc_mpi_attribute_t **to) {
    for (; from != NULL; from = from->next) {
        const key_value_t *key = find_key(from->key);
        void *value = from->value;
        int flag = 0;
        if (duplicates(key)) {
            flag = 1;
        } else if (key->copy != NULL) {
            SPC_MPI_TRY(key->copy((MPI_Comm)owner, from->key, key->extra_state, from->value, &value, &flag));
        }
        if (flag != 0) {
            SPC_MPI_TRY(spc_mpi_attribute_set(0, to, from->key, value));
        }
    }
    return MPI_SUCCESS;
}

#ifndef SPC_MPI_STANDARD_ABI
__attribute__((visibility("default"))) int MPIR_Dup_fn(MPI_Comm comm, int key, void *extra_state, void *value,
                                                       void *copy, int *flag) {
    (void)comm;
    (void)key;
    (void)extra_state;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}
#endif

/* ---- of communicators ---- */

int spc_mpi_comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete,
                               int *key, void *extra_state) {
    return create_key(*(void **)&copy, *(void **)&delete, key, extra_state);
}

int spc_mpi_comm_free_keyval(int *comm_keyval) {
    return free_key(comm_keyval);
}

int spc_mpi_comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_attribute_set((intptr_t)comm, &found->attributes, comm_keyval, attribute_val);
}

int spc_mpi_comm_delete_attr(MPI_Comm comm, int comm_keyval) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_attribute_delete((intptr_t)comm, &found->attributes, comm_keyval);
}

/* An attribute that MPI itself defines, as a pointer to a static value. NULL: no such key. */
static int *predefined(int key) {
    static int tag_ub = INT32_MAX, yes = 1, number = 0, any = MPI_ANY_SOURCE, null = MPI_PROC_NULL;
    static int last = MPI_ERR_LASTCODE, universe;
    switch (key) {
    case MPI_TAG_UB:
        return &tag_ub;
    case MPI_WTIME_IS_GLOBAL:
        return &yes;
    case MPI_APPNUM:
        return &number;
    case MPI_IO:
        return &any;
    case MPI_HOST:
        return &null;
    case MPI_LASTUSEDCODE:
        last = spc_mpi_last_code();
        return &last;
    case MPI_UNIVERSE_SIZE:
        universe = spc_mpi.world->size;
        return &universe;
    default:
        return NULL;
    }
}

int spc_mpi_comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    int *value = predefined(comm_keyval);
    if (value != NULL) {
        *(int **)attribute_val = value;
        *flag = 1;
        return MPI_SUCCESS;
    }
    return spc_mpi_attribute_get(found->attributes, comm_keyval, attribute_val, flag);
}

/* The names of MPI-1. */
int spc_mpi_attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag) {
    return spc_mpi_comm_get_attr(comm, keyval, attribute_val, flag);
}

int spc_mpi_attr_put(MPI_Comm comm, int keyval, void *attribute_val) {
    return spc_mpi_comm_set_attr(comm, keyval, attribute_val);
}

int spc_mpi_attr_delete(MPI_Comm comm, int keyval) {
    return spc_mpi_comm_delete_attr(comm, keyval);
}

int spc_mpi_keyval_create(MPI_Copy_function *copy_fn, MPI_Delete_function *delete_fn, int *keyval,
                          void *extra_state) {
    return create_key(*(void **)&copy_fn, *(void **)&delete_fn, keyval, extra_state);
}

int spc_mpi_keyval_free(int *keyval) {
    return free_key(keyval);
}

/* ---- of datatypes ---- */

int spc_mpi_type_create_keyval(MPI_Type_copy_attr_function *copy, MPI_Type_delete_attr_function *delete,
                               int *key, void *extra_state) {
    return create_key(*(void **)&copy, *(void **)&delete, key, extra_state);
}

int spc_mpi_type_free_keyval(int *type_keyval) {
    return free_key(type_keyval);
}

int spc_mpi_type_set_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val) {
    spc_mpi_type_t *found;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &found));
    return spc_mpi_attribute_set((intptr_t)datatype, &found->attributes, type_keyval, attribute_val);
}

int spc_mpi_type_get_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val, int *flag) {
    spc_mpi_type_t *found;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &found));
    return spc_mpi_attribute_get(found->attributes, type_keyval, attribute_val, flag);
}

int spc_mpi_type_delete_attr(MPI_Datatype datatype, int type_keyval) {
    spc_mpi_type_t *found;
    SPC_MPI_TRY(spc_mpi_get_type(NULL, datatype, &found));
    return spc_mpi_attribute_delete((intptr_t)datatype, &found->attributes, type_keyval);
}

/* ---- of windows: spc_mpi_window.c gives what MPI tells of them itself ---- */

int spc_mpi_win_create_keyval(MPI_Win_copy_attr_function *copy, MPI_Win_delete_attr_function *delete,
                              int *key, void *extra_state) {
    return create_key(*(void **)&copy, *(void **)&delete, key, extra_state);
}

int spc_mpi_win_free_keyval(int *win_keyval) {
    return free_key(win_keyval);
}

/* ---- info ---- */

typedef struct pair {
    char *key;
    char *value;
    struct pair *next;
} pair_t;

typedef struct info {
    pair_t *first; /* in the order in which the keys were set */
} info_t;

/* MPI_INFO_ENV is empty: only the launcher knows the command that started the program. */
static info_t environment;

static int get_info(MPI_Info handle, info_t **info) {
    *info = handle == MPI_INFO_ENV ? &environment : spc_mpi_handle_find(SPC_MPI_INFO, (intptr_t)handle);
    return *info != NULL ? MPI_SUCCESS
                         : spc_mpi_fail(NULL, MPI_ERR_INFO,
                                        handle == MPI_INFO_NULL ? "info is MPI_INFO_NULL"
                                                                : "info is not a valid handle, or was freed");
}

bool spc_mpi_is_info(MPI_Info info) {
    return info == MPI_INFO_ENV || spc_mpi_handle_find(SPC_MPI_INFO, (intptr_t)info) != NULL;
}

static int get_own_info(MPI_Info handle, info_t **info) {
    SPC_MPI_TRY(get_info(handle, info));
    return *info != &environment
               ? MPI_SUCCESS
               : spc_mpi_fail(NULL, MPI_ERR_INFO,
                              "MPI_INFO_ENV cannot be changed or freed; MPI_Info_dup makes a "
                              "copy that can");
}

static pair_t **find_pair(info_t *info, const char *key) {
    pair_t **link = &info->first;
    while (*link != NULL && strcmp((*link)->key, key) != 0) {
        link = &(*link)->next;
    }
    return link;
}

int spc_mpi_info_create(MPI_Info *info) {
    info_t *made = calloc(1, sizeof(*made));
    *info = made != NULL ? (MPI_Info)spc_mpi_handle_create(SPC_MPI_INFO, made) : MPI_INFO_NULL;
    return made != NULL ? MPI_SUCCESS : spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for an info");
}

/* Empty: only the launcher knows the command that started the program. */
int spc_mpi_info_create_env(int argc, char *argv[], MPI_Info *info) {
    (void)argc;
    (void)argv;
    return spc_mpi_info_create(info);
}

static void remove_pair(pair_t **link) {
    pair_t *gone = *link;
    *link = gone->next;
    free(gone->key);
    free(gone->value);
    free(gone);
}

int spc_mpi_info_free(MPI_Info *info) {
    info_t *found;
    SPC_MPI_TRY(get_own_info(*info, &found));
    while (found->first != NULL) {
        remove_pair(&found->first);
    }
    spc_mpi_handle_free(SPC_MPI_INFO, (intptr_t)*info);
    free(found);
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}

static int check_text(const char *role, const char *text, size_t max, int error_class) {
    if (text != NULL && text[0] != '\0' && strlen(text) <= max) {
        return MPI_SUCCESS;
    }
    return spc_mpi_fail(NULL, error_class, "the %s has %zu characters; 1 to %zu are allowed", role,
                        text != NULL ? strlen(text) : 0, max);
}

int spc_mpi_info_set(MPI_Info info, const char *key, const char *value) {
    info_t *found;
    SPC_MPI_TRY(get_own_info(info, &found));
    SPC_MPI_TRY(check_text("key", key, MPI_MAX_INFO_KEY, MPI_ERR_INFO_KEY));
    if (value == NULL || strlen(value) > MPI_MAX_INFO_VAL) {
        return spc_mpi_fail(NULL, MPI_ERR_INFO_VALUE, "the value of %s has more than %d characters", key,
                            MPI_MAX_INFO_VAL);
    }
    pair_t **link = find_pair(found, key);
    char *copy = strdup(value);
    if (*link == NULL && copy != NULL) {
        *link = calloc(1, sizeof(**link));
        if (*link != NULL) {
            (*link)->key = strdup(key);
        }
    }
    if (*link == NULL || copy == NULL || (*link)->key == NULL) {
        free(copy);
        return spc_mpi_fail(NULL, MPI_ERR_NO_MEM, "there is no memory for the value of %s", key);
    }
    free((*link)->value);
    (*link)->value = copy;
    return MPI_SUCCESS;
}

int spc_mpi_info_delete(MPI_Info info, const char *key) {
    info_t *found;
    SPC_MPI_TRY(get_own_info(info, &found));
    SPC_MPI_TRY(check_text("key", key, MPI_MAX_INFO_KEY, MPI_ERR_INFO_KEY));
    pair_t **link = find_pair(found, key);
    if (*link == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_INFO_NOKEY, "this info has no key '%s'", key);
    }
    remove_pair(link);
    return MPI_SUCCESS;
}

/* The value of the key, or NULL. */
static int look_up(MPI_Info info, const char *key, const char **value) {
    info_t *found;
    SPC_MPI_TRY(get_info(info, &found));
    SPC_MPI_TRY(check_text("key", key, MPI_MAX_INFO_KEY, MPI_ERR_INFO_KEY));
    const pair_t *pair = *find_pair(found, key);
    *value = pair != NULL ? pair->value : NULL;
    return MPI_SUCCESS;
}

int spc_mpi_info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag) {
    const char *found;
    SPC_MPI_TRY(look_up(info, key, &found));
    *flag = found != NULL;
    if (found != NULL) {
        (void)snprintf(value, (size_t)(valuelen > 0 ? valuelen : 0) + 1, "%s", found);
    }
    return MPI_SUCCESS;
}

int spc_mpi_info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag) {
    const char *found;
    SPC_MPI_TRY(look_up(info, key, &found));
    *flag = found != NULL;
    if (found != NULL) {
        if (*buflen > 0) {
            (void)snprintf(value, (size_t)*buflen, "%s", found);
        }
        *buflen = (int)strlen(found) + 1;
    }
    return MPI_SUCCESS;
}

int spc_mpi_info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag) {
    const char *found;
    SPC_MPI_TRY(look_up(info, key, &found));
    *flag = found != NULL;
    *valuelen = found != NULL ? (int)strlen(found) : *valuelen;
    return MPI_SUCCESS;
}

int spc_mpi_info_get_nkeys(MPI_Info info, int *nkeys) {
    info_t *found;
    SPC_MPI_TRY(get_info(info, &found));
    *nkeys = 0;
    for (const pair_t *pair = found->first; pair != NULL; pair = pair->next) {
        ++*nkeys;
    }
    return MPI_SUCCESS;
}

int spc_mpi_info_get_nthkey(MPI_Info info, int n, char *key) {
    info_t *found;
    SPC_MPI_TRY(get_info(info, &found));
    const pair_t *pair = found->first;
    for (int i = 0; i < n && pair != NULL; i++) {
        pair = pair->next;
    }
    if (n < 0 || pair == NULL) {
        return spc_mpi_fail(NULL, MPI_ERR_ARG, "n=%d: this info has no key of that number", n);
    }
    memcpy(key, pair->key, strlen(pair->key) + 1);
    return MPI_SUCCESS;
}

int spc_mpi_info_dup(MPI_Info info, MPI_Info *newinfo) {
    info_t *found;
    SPC_MPI_TRY(get_info(info, &found));
    SPC_MPI_TRY(spc_mpi_info_create(newinfo));
    for (const pair_t *pair = found->first; pair != NULL; pair = pair->next) {
        SPC_MPI_TRY(spc_mpi_info_set(*newinfo, pair->key, pair->value));
    }
    return MPI_SUCCESS;
}

/* A copy of an object's info, which may be MPI_INFO_NULL. */
int spc_mpi_info_copy(MPI_Info info, MPI_Info *copy) {
    return info == MPI_INFO_NULL ? spc_mpi_info_create(copy) : spc_mpi_info_dup(info, copy);
}

/* ---- hints ---- */

const spc_mpi_hint_t spc_mpi_comm_hints[] = {{"mpi_assert_no_any_tag", "false"},
                                             {"mpi_assert_no_any_source", "false"},
                                             {"mpi_assert_exact_length", "false"},
                                             {"mpi_assert_allow_overtaking", "false"},
                                             {"mpi_assert_strict_persistent_collective_ordering", "false"},
                                             {NULL, NULL}};
const spc_mpi_hint_t spc_mpi_window_hints[] = {{"no_locks", "false"},
                                               {"accumulate_ordering", "rar,raw,war,waw"},
                                               {"accumulate_ops", "same_op_no_op"},
                                               {"mpi_accumulate_granularity", "0"},
                                               {"same_size", "false"},
                                               {"same_disp_unit", "false"},
                                               {"alloc_shared_noncontig", "false"},
                                               {NULL, NULL}};
const spc_mpi_hint_t spc_mpi_file_hints[] = {{"access_style", NULL},  {"collective_buffering", NULL},
                                             {"cb_block_size", NULL}, {"cb_buffer_size", NULL},
                                             {"cb_nodes", NULL},      {"chunked", NULL},
                                             {"chunked_item", NULL},  {"chunked_size", NULL},
                                             {"filename", NULL},      {"file_perm", NULL},
                                             {"io_node_list", NULL},  {"nb_proc", NULL},
                                             {"num_io_nodes", NULL},  {"striping_factor", NULL},
                                             {"striping_unit", NULL}, {NULL, NULL}};

static bool is_flag(const char *text) {
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
}

int spc_mpi_hints_set(const spc_mpi_hint_t *hints, MPI_Info info, MPI_Info *own) {
    if (info == MPI_INFO_NULL) {
        return MPI_SUCCESS;
    }
    if (*own == MPI_INFO_NULL) {
        SPC_MPI_TRY(spc_mpi_info_create(own));
    }
    for (; hints->key != NULL; hints++) {
        const char *value;
        SPC_MPI_TRY(look_up(info, hints->key, &value));
        if (value != NULL && (hints->preset == NULL || !is_flag(hints->preset) || is_flag(value))) {
            SPC_MPI_TRY(spc_mpi_info_set(*own, hints->key, value));
        }
    }
    return MPI_SUCCESS;
}

int spc_mpi_hints_get(const spc_mpi_hint_t *hints, MPI_Info own, MPI_Info *info_used) {
    SPC_MPI_TRY(spc_mpi_info_create(info_used));
    for (const spc_mpi_hint_t *hint = hints; hint->key != NULL; hint++) {
        if (hint->preset != NULL) {
            SPC_MPI_TRY(spc_mpi_info_set(*info_used, hint->key, hint->preset));
        }
    }
    return spc_mpi_hints_set(hints, own, info_used);
}

int spc_mpi_comm_set_info(MPI_Comm comm, MPI_Info info) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_hints_set(spc_mpi_comm_hints, info, &found->info);
}

int spc_mpi_comm_get_info(MPI_Comm comm, MPI_Info *info_used) {
    spc_mpi_comm_t *found;
    SPC_MPI_TRY(spc_mpi_get_comm(comm, &found));
    return spc_mpi_hints_get(spc_mpi_comm_hints, found->info, info_used);
}
