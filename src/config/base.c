/* base.c - configs that inherit: `base: common.yaml`, or a list of files.
 *
 * The files that a config names are layers below its own, in their order and with those that they
 * name themselves below them; so maps merge, a key that is given again wins, and a list is
 * replaced. `base` itself is taken out of the document: no table has it.
 */
#include "config/read.h"
#include "config/state.h"

#include "base/assert.h"
#include "io/file.h"
#include "mem/heap.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH = 16, FILES = 64 }; /* far more than anybody keeps apart */

/* A file that is being read, and the one that names it. */
typedef struct link {
    const char *name;   /* for messages */
    const char *path;   /* to open */
    const char *folder; /* of the file, seen from that of the first one; "": the same */
    dev_t device;
    ino_t inode;
    const struct link *up;
    int depth;
} link;

static fth_status fail_at(fth_place at, fth_err *err, const char *fmt, ...) FTH_PRINTF(3, 4);
static fth_status fail_at(fth_place at, fth_err *err, const char *fmt, ...)
{
    char text[600], place[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    FTH_FAIL(err, FTH_E_CONFIG_SYNTAX, "%s: base: %s", fth__place_format(at, place, sizeof place),
             text);
    fth_err_hint(err, "name a config, or a list of them, by paths from the folder of this file");
    return FTH_E_CONFIG_SYNTAX;
}

static fth_status no_memory(const char *name, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_NOMEM, "no memory to read %s", name);
}

/* ---- the key ---- */

/* Take `base` out of a document; NULL: it has none. */
static fth_status take_key(fth__config_node *root, fth__config_node **out, fth_err *err)
{
    *out = NULL;
    if (root->kind != FTH__NODE_MAP) return FTH_OK;
    fth__config_node *before = NULL, *last = NULL;
    for (fth__config_node *c = root->first; c; c = c->next) {
        if (strcmp(c->key, "base") != 0) {
            before = c;
            continue;
        }
        if (*out)
            return fail_at(c->key_at, err, "it is given twice, first in line %d",
                           (*out)->key_at.line);
        *out = c;
        last = before;
    }
    if (!*out) return FTH_OK;
    if (last)
        last->next = (*out)->next;
    else
        root->first = (*out)->next;
    if (root->last == *out) root->last = last;
    root->n--;
    return FTH_OK;
}

static fth_status check_path(const fth__config_node *n, fth_err *err)
{
    if (n->kind == FTH__NODE_SCALAR && !fth__node_is_null(n) && n->text[0]) return FTH_OK;
    return fail_at(n->at, err, "expected the path of a config, found %s",
                   n->kind == FTH__NODE_MAP    ? "a section"
                   : n->kind == FTH__NODE_LIST ? "a list in a list"
                                               : "nothing");
}

/* ---- files ---- */

/* Bytes of the folder before a file name, with its slash. */
static size_t folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static const char *beside(fth_config *cfg, const char *path, const char *text)
{
    const size_t n = text[0] == '/' ? 0 : folder_of(path);
    return fth__store_print(&cfg->store, "%.*s%s", (int)n, path, text);
}

/* "a.yaml -> b.yaml -> a.yaml" */
static void show_chain(const link *l, const link *top, fth__text *t)
{
    if (l != top) show_chain(l->up, top, t);
    fth__text_add(t, "%s -> ", l->name);
}

static fth_status check_cycle(fth_place at, const link *l, fth_err *err)
{
    for (const link *up = l->up; up; up = up->up) {
        if (up->device != l->device || up->inode != l->inode) continue;
        char text[500];
        fth__text t;
        fth__text_init(&t, text, sizeof text);
        show_chain(l->up, up, &t);
        fth__text_add(&t, "%s", l->name);
        fth__text_mark_cut(&t);
        return fail_at(at, err, "configs inherit from each other: %s", text);
    }
    if (l->depth <= DEPTH) return FTH_OK;
    return fail_at(at, err, "more than %d configs inherit from each other", (int)DEPTH);
}

fth_status fth__config_load(fth_mem *mem, const char *path, char **out, size_t *bytes, fth_err *err)
{
    fth_file *file = NULL;
    void *text = NULL;
    *out = NULL;
    FTH_TRY(fth_file_open(&file, mem, path, err));
    fth_status s = FTH_OK;
    if (file->bytes > FTH__CONFIG_BYTES)
        s = FTH_FAIL(err, FTH_E_CONFIG_SYNTAX,
                     "%s: it has %llu bytes, a config has at most %d; is it a data file?", path,
                     (unsigned long long)file->bytes, (int)FTH__CONFIG_BYTES);
    if (s == FTH_OK) s = fth__heap_take(mem, (int64_t)file->bytes + 1, 1, &text, err);
    if (s == FTH_OK) s = fth_file_read(file, 0, file->bytes, text, "the config", err);
    *bytes = (size_t)file->bytes;
    fth_file_close(file);
    if (s == FTH_OK)
        *out = text;
    else
        fth__heap_free(mem, text);
    return s;
}

static fth_status add_file(fth_config *cfg, const link *l, const char *text, size_t bytes,
                           fth_err *err);

/* One file that `up` names at `node`. */
static fth_status add_base(fth_config *cfg, const link *up, const fth__config_node *node,
                           fth_err *err)
{
    FTH_TRY(check_path(node, err));
    const char *from =
        fth__store_print(&cfg->store, "%s%s", node->text[0] == '/' ? "" : up->folder, node->text);
    link l = {.name = beside(cfg, up->name, node->text),
              .path = beside(cfg, up->path, node->text),
              .up = up,
              .depth = up->depth + 1};
    if (from) l.folder = fth__store_text(&cfg->store, from, folder_of(from));
    if (!l.name || !l.path || !l.folder) return no_memory(up->name, err);
    struct stat st;
    if (stat(l.path, &st) != 0)
        return fail_at(node->at, err, "%s: %s", l.name,
                       errno == ENOENT ? "there is no such file" : strerror(errno));
    if (!S_ISREG(st.st_mode)) return fail_at(node->at, err, "%s: it is not a file", l.name);
    l.device = st.st_dev;
    l.inode = st.st_ino;
    FTH_TRY(check_cycle(node->at, &l, err));
    if (cfg->n_bases == FILES)
        return fail_at(node->at, err, "more than %d files in all", (int)FILES);
    fth__config_base *b = fth__store_take(&cfg->store, sizeof *b);
    if (!b) return no_memory(l.name, err);
    *b = (fth__config_base){.path = l.path, .next = cfg->bases};
    cfg->bases = b;
    cfg->n_bases++;
    char *text = NULL;
    size_t bytes = 0;
    fth_status s = fth__config_load(cfg->mem, l.path, &text, &bytes, err);
    if (s == FTH_OK) s = add_file(cfg, &l, text, bytes, err);
    fth__heap_free(cfg->mem, text);
    return s;
}

/* The document of a file, behind those it inherits from. */
static fth_status add_file(fth_config *cfg, const link *l, const char *text, size_t bytes,
                           fth_err *err)
{
    fth__config_layer *layer = fth__store_take(&cfg->store, sizeof *layer);
    fth__config_node *root = NULL, *key = NULL;
    if (!layer) return no_memory(l->name, err);
    FTH_TRY(fth__node_parse(&cfg->store, l->name, text, bytes, &root, err));
    FTH_TRY(take_key(root, &key, err));
    if (key && key->kind == FTH__NODE_LIST)
        for (const fth__config_node *c = key->first; c; c = c->next)
            FTH_TRY(add_base(cfg, l, c, err));
    else if (key)
        FTH_TRY(add_base(cfg, l, key, err));
    *layer = (fth__config_layer){.name = l->name, .root = root, .folder = l->folder};
    fth__config_append(cfg, layer);
    return FTH_OK;
}

fth_status fth__config_parse_file(fth_config *cfg, const char *name, const char *path,
                                  const char *text, size_t bytes, fth_err *err)
{
    FTH_TRY(fth__config_check_open(cfg, err));
    fth__config_layer *const first = cfg->first_layer, *const last = cfg->last_layer;
    fth__config_base *const bases = cfg->bases;
    const int n_layers = cfg->n_layers, n_bases = cfg->n_bases;
    struct stat st = {0};
    link l = {.name = fth__store_text(&cfg->store, name, strlen(name)), .path = path, .folder = ""};
    if (!l.name) return no_memory(name, err);
    if (stat(path, &st) == 0) { /* else it is not written yet, and nothing can name it */
        l.device = st.st_dev;
        l.inode = st.st_ino;
    }
    const fth_status s = add_file(cfg, &l, text, bytes, err);
    if (s == FTH_OK) return FTH_OK;
    cfg->first_layer = first; /* nothing was added */
    cfg->last_layer = last;
    if (last) last->next = NULL;
    cfg->n_layers = n_layers;
    cfg->bases = bases;
    cfg->n_bases = n_bases;
    return s;
}

const char *fth__config_base_at(const fth_config *cfg, int i)
{
    const fth__config_base *b = cfg->bases;
    while (b && i-- > 0) b = b->next;
    return b ? b->path : NULL;
}
