/* config/state.h - what a config is made of; only for the files of src/config.
 *
 * Layers are trees that were read; values are what the check made of them, one per row of the
 * table. A row whose value has a mistake is `broken`: it holds the default, so that the checks
 * across keys can go on, and nothing further is said about it.
 */
#ifndef FTH_CONFIG_STATE_H
#define FTH_CONFIG_STATE_H

#include "base/str.h"
#include "config/node.h"

#include <stdatomic.h>

typedef struct fth__config_layer {
    const char *name;             /* of the file, or "--set #2" */
    const char *set;              /* the key that is set; NULL: root is a whole document */
    const char *given;            /* the user's own --set as it was written; NULL: none */
    const fth__config_node *root; /* a document, or the value that is set */
    const char *folder;           /* of a file that others inherit from: seen from theirs, "../" */
    struct fth__config_layer *next;
    int number;
} fth__config_layer;

/* A file that was inherited from. */
typedef struct fth__config_base {
    const char *path;
    struct fth__config_base *next;
} fth__config_base;

typedef struct fth__scalar {
    const char *text; /* TEXT, CHOICE, PATH: as written            */
    const char *path; /* PATH: with variables and folder           */
    int64_t integer;  /* INT; CHOICE: its number                   */
    double real;      /* REAL                                      */
    uint64_t size;    /* SIZE: bytes, or millionths of a per cent  */
    bool truth, is_share;
} fth__scalar;

typedef struct fth__config_value {
    const fth__config_node *given;  /* NULL: the default holds */
    const fth__config_layer *layer; /* that gave it            */
    bool broken, has;
    int64_t n;
    fth__scalar *item;
} fth__config_value;

typedef struct fth__finding {
    fth_config_mistake m;
    int layer;
} fth__finding;

/* The first question that the table has no answer to. */
typedef struct fth__misuse {
    atomic_int state; /* 0 none, 1 being written, 2 there */
    fth_site site;
    char key[80];
    const char *why;
} fth__misuse;

/* Mistakes, and as many notices, that are kept; more are only counted. Nobody reads more at once,
 * and a file of another program has thousands. */
enum { FTH__FINDINGS = 100 };

struct fth_config {
    fth_mem *mem;
    fth__store store;
    fth__config_layer *first_layer, *last_layer;
    int n_layers, n_sets;
    fth__config_base *bases; /* the last one first */
    int n_bases;
    int sets_from, sets_to;   /* of the layers "--set #N" those of the user: N in (from, to] */
    const fth_schema *schema; /* NULL until checked */
    fth_config_options opt;
    fth__config_value *value; /* one per row */
    fth__finding *finding;
    int64_t n_findings, cap_findings;
    int64_t n_mistakes, n_notices;   /* all of them, also those not kept */
    bool no_memory;                  /* something could not be noted */
    fth__misuse *misuse, own_misuse; /* through a pointer: getters have a const config */
};

/* ---- mistakes (mistakes.c) ---- */
/* False when one more would only be counted: finding words for it is no use. */
bool fth__config_has_room(const fth_config *cfg, bool notice);
/* Note one; its texts are copied. */
void fth__config_note(fth_config *cfg, const fth__config_layer *layer, const fth_config_mistake *m);
/* Into the order of layers, lines and columns. */
void fth__config_sort(fth_config *cfg);
/* FTH_OK, or the error that sums the mistakes up. */
fth_status fth__config_verdict(const fth_config *cfg, fth_err *err);

/* ---- reading (read.c) ---- */
/* FTH_E_USAGE when there is no config, or it was checked. */
fth_status fth__config_check_open(const fth_config *cfg, fth_err *err);
/* Only what was read without an error becomes a layer. */
void fth__config_append(fth_config *cfg, fth__config_layer *layer);
/* The entry of a document by its full name, through sections or dotted; NULL: none. */
const fth__config_node *fth__node_find(const fth__config_node *root, const char *name);
/* The last layer that is a document; NULL: none. */
const fth__config_layer *fth__config_document(const fth_config *cfg);

/* ---- values (value.c, path.c) ---- */
/* Make a value of a node by its row: has, n and item. Mistakes are noted and give false; then
 * nothing changed. */
bool fth__value_read(fth_config *cfg, const fth_config_key *row, const fth__config_node *node,
                     const fth__config_layer *layer, fth__config_value *out);
/* Whether relative paths of files start at the folders of these. */
bool fth__config_starts_at_files(const fth_config *cfg);
/* Fill in `path` of every path, by the row "paths". */
void fth__config_resolve_paths(fth_config *cfg);

#endif
