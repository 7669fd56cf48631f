/* config/node.h - a config file as a tree in which everything knows where it stands.
 *
 * YAML and JSON give the same tree: JSON is read as the YAML it is. A scalar keeps its text and
 * whether it was quoted; what it means is decided by the row of the table, never by its looks.
 */
#ifndef FTH_CONFIG_NODE_H
#define FTH_CONFIG_NODE_H

#include "config/store.h"

#include <fathom/config.h>

/* What a file may have at most. A config that a person wrote has less than a tenth; the limits
 * bound time and memory for files that are no configs. */
enum {
    FTH__CONFIG_BYTES = 1 << 20,
    FTH__CONFIG_DEPTH = 32,
    FTH__CONFIG_NODES = 100000,
    FTH__CONFIG_KEYS = 4096, /* of one map */
    FTH__CONFIG_NAME = 256   /* bytes of a key, with the sections before it */
};

typedef enum fth__node_kind { FTH__NODE_SCALAR, FTH__NODE_LIST, FTH__NODE_MAP } fth__node_kind;

typedef struct fth__config_node {
    fth__node_kind kind;
    bool quoted;          /* SCALAR: never a number, a bool or null */
    const char *text;     /* SCALAR */
    const char *key;      /* of an entry of a map */
    fth_place at, key_at; /* where the value starts, and its key */
    int64_t n;            /* children of a list or map */
    struct fth__config_node *first, *last, *next;
} fth__config_node;

/* `~`, null, Null, NULL or nothing at all, not quoted. */
bool fth__node_is_null(const fth__config_node *n);

/* Read a whole document; `name` stands in every place and must outlive the tree. An empty one is
 * an empty map. FTH_E_CONFIG_SYNTAX with its place when it is damaged, too large, or uses what is
 * not read here (anchors, aliases, tags, a second document). */
fth_status fth__node_parse(fth__store *store, const char *name, const char *text, size_t bytes,
                           fth__config_node **out, fth_err *err);
/* The same for one value in a single line of text, whose place is `at`. */
fth_status fth__node_parse_value(fth__store *store, fth_place at, const char *text,
                                 fth__config_node **out, fth_err *err);

/* "run.yaml:3:7", "--set #2". */
const char *fth__place_format(fth_place at, char *text, size_t bytes);

#endif
