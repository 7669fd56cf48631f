/* zarr.c - arrays that others ask for: opened, described, as a source; see fathom/zarr.h. */
#include "io/zarr.h"

#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "io/dense.h"
#include "mem/heap.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PACKING = 64 }; /* bytes: the names of all codecs of an array */

struct fth_zarr {
    fth_mem *mem;
    fth__zarr_meta meta;
    fth_zarr_info info;
    fth_json *doc, *attributes;
    char packing[PACKING];
    char *folder;
};

/* ---- metadata ---- */

fth__zarr_node fth__zarr_node_of(const char *folder)
{
    static const struct {
        const char *name;
        fth__zarr_node node;
    } files[] = {{"zarr.json", FTH__ZARR_V3},
                 {".zarray", FTH__ZARR_V2_ARRAY},
                 {".zgroup", FTH__ZARR_V2_GROUP},
                 {".zattrs", FTH__ZARR_V2_GROUP}};
    char path[FTH_PATH];
    for (int i = 0; i < (int)(sizeof files / sizeof files[0]); i++)
        if (fth_path_join(path, folder, files[i].name, NULL) == FTH_OK &&
            fth_path_kind_of(path) == FTH_PATH_FILE)
            return files[i].node;
    return FTH__ZARR_NONE;
}

fth_status fth__zarr_doc(fth_json **out, fth_mem *mem, const char *folder, const char *name,
                         fth_err *err)
{
    char path[FTH_PATH], *text = NULL;
    uint64_t bytes = 0;
    *out = NULL;
    FTH_TRY(fth_path_join(path, folder, name, err));
    FTH_TRY(fth_file_load(mem, path, FTH__ZARR_DOC, &text, &bytes, err));
    const fth_status s = fth_json_parse(out, mem, path, text, bytes, err);
    (void)fth_mem_release(mem, text, NULL);
    return s;
}

/* xarray names the axes of version 2 in an attribute. */
static void take_dimensions(fth__zarr_meta *m, const fth_json_value *attributes)
{
    const fth_json_value *names = fth_json_get(attributes, "_ARRAY_DIMENSIONS");
    for (int a = 0; a < m->n_axes; a++)
        if (!m->axis[a][0])
            fth__str_copy(m->axis[a], sizeof m->axis[a],
                          fth_json_get_text(fth_json_at(names, a), NULL, ""));
}

static fth_status load(fth__zarr_meta *m, fth_mem *mem, const char *folder, fth__zarr_node node,
                       fth_json **doc, fth_json **attributes, fth_err *err)
{
    const bool v3 = node == FTH__ZARR_V3;
    const char *name = v3 ? "zarr.json" : ".zarray";
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, folder, name, err));
    FTH_TRY(fth__zarr_doc(doc, mem, folder, name, err));
    FTH_TRY(fth__zarr_meta_take(m, fth_json_root(*doc), path, err));
    if ((m->format == 3) != v3)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: 'zarr_format' is %d, the file's name is that "
                        "of another version",
                        path, m->format);
    FTH_TRY(fth_path_join(path, folder, ".zattrs", err));
    if (!v3 && fth_path_kind_of(path) == FTH_PATH_FILE)
        FTH_TRY(fth__zarr_doc(attributes, mem, folder, ".zattrs", err));
    if (v3)
        take_dimensions(m, fth_json_get(fth_json_root(*doc), "attributes"));
    else if (*attributes)
        take_dimensions(m, fth_json_root(*attributes));
    return FTH_OK;
}

fth_status fth__zarr_load_any(fth__zarr_meta *m, fth_mem *mem, const char *folder, fth_json **doc,
                              fth_json **attributes, fth_err *err)
{
    const fth__zarr_node node = fth__zarr_node_of(folder);
    *doc = *attributes = NULL;
    if (node != FTH__ZARR_V3 && node != FTH__ZARR_V2_ARRAY)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: %s", folder,
                        node == FTH__ZARR_NONE
                            ? "no Zarr array: the folder has no zarr.json and no .zarray"
                            : "it is a group of Zarr arrays; name one of those in it");
    const fth_status s = load(m, mem, folder, node, doc, attributes, err);
    if (s == FTH_OK) return s;
    fth_json_destroy(*doc);
    fth_json_destroy(*attributes);
    *doc = *attributes = NULL;
    return s;
}

fth_status fth__zarr_load(fth__zarr_meta *m, fth_mem *mem, const char *folder, fth_json **doc,
                          fth_json **attributes, fth_err *err)
{
    FTH_TRY(fth__zarr_load_any(m, mem, folder, doc, attributes, err));
    if (!m->text && !m->is_u64) return FTH_OK;
    fth_json_destroy(*doc);
    fth_json_destroy(*attributes);
    *doc = *attributes = NULL;
    return FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: images of %s are not read", folder,
                    m->text ? "strings" : "uint64");
}

/* ---- groups ---- */

/* A text of JSON, byte by byte: the value of the key "node_type" of its outermost object. */
typedef struct node_scan {
    int depth;
    bool in_text, escaped, is_value; /* is_value: of the key */
    char text[16];                   /* the last one, as far as it fits */
    size_t n;
    fth_zarr_kind kind;
} node_scan;

static void end_text(node_scan *s)
{
    if (s->is_value && s->depth == 1)
        s->kind = s->n == 5 && memcmp(s->text, "array", 5) == 0   ? FTH_ZARR_ARRAY
                  : s->n == 5 && memcmp(s->text, "group", 5) == 0 ? FTH_ZARR_GROUP
                                                                  : s->kind;
    s->in_text = s->is_value = false;
}

static void scan_byte(node_scan *s, char c)
{
    if (s->in_text) {
        if (c == '"' && !s->escaped) {
            end_text(s);
            return;
        }
        s->escaped = c == '\\' && !s->escaped;
        if (s->n < sizeof s->text) s->text[s->n] = c;
        s->n++;
    } else if (c == '"') {
        s->in_text = true;
        s->n = 0;
    } else if (c == ':') {
        s->is_value = s->depth == 1 && s->n == 9 && memcmp(s->text, "node_type", 9) == 0;
    } else if (c == '{' || c == '[') {
        s->depth++;
    } else if (c == '}' || c == ']') {
        s->depth--;
    }
}

/* Takes no memory, so that a kind is never wrong for the lack of it. */
static fth_zarr_kind scan_node(const char *folder)
{
    char path[FTH_PATH], buffer[4096];
    node_scan s = {.kind = FTH_ZARR_NONE};
    if (fth_path_join(path, folder, "zarr.json", NULL) != FTH_OK) return FTH_ZARR_NONE;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return FTH_ZARR_NONE;
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
        for (ssize_t i = 0; i < n; i++) scan_byte(&s, buffer[i]);
    close(fd);
    return s.kind;
}

fth_zarr_kind fth_zarr_kind_of(const char *path)
{
    const fth__zarr_node node = fth__zarr_node_of(path);
    return node == FTH__ZARR_V3         ? scan_node(path)
           : node == FTH__ZARR_V2_ARRAY ? FTH_ZARR_ARRAY
           : node == FTH__ZARR_V2_GROUP ? FTH_ZARR_GROUP
                                        : FTH_ZARR_NONE;
}

fth_status fth_zarr_attributes_of(fth_json **out, const fth_json_value **attributes, fth_mem *mem,
                                  const char *path, fth_err *err)
{
    char file[FTH_PATH];
    const fth__zarr_node node = fth__zarr_node_of(path);
    *out = NULL;
    *attributes = NULL;
    if (node == FTH__ZARR_NONE)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no Zarr array or group", path);
    FTH_TRY(fth_path_join(file, path, ".zattrs", err));
    if (node != FTH__ZARR_V3 && fth_path_kind_of(file) != FTH_PATH_FILE) return FTH_OK;
    FTH_TRY(fth__zarr_doc(out, mem, path, node == FTH__ZARR_V3 ? "zarr.json" : ".zattrs", err));
    *attributes = node == FTH__ZARR_V3 ? fth_json_get(fth_json_root(*out), "attributes")
                                       : fth_json_root(*out);
    return FTH_OK;
}

/* ---- open ---- */

static void describe(fth_zarr *z)
{
    const fth__zarr_meta *m = &z->meta;
    fth__text t;
    fth__text_init(&t, z->packing, sizeof z->packing);
    for (int i = 0; i < m->codecs.n; i++)
        fth__text_add(&t, "%s%s", i ? " " : "", fth__codec_get(m->codecs.codec[i].kind)->name);
    FTH_ASSERT(!fth__text_is_cut(&t));
    z->info = (fth_zarr_info){
        .format = m->format, .dtype = m->dtype, .n_axes = m->n_axes, .packing = z->packing};
    for (int a = 0; a < m->n_axes; a++) {
        z->info.size[a] = m->size[a];
        z->info.chunk[a] = m->chunk[a];
        z->info.shard[a] = m->file[a];
        z->info.axis[a] = m->axis[a];
    }
}

fth_status fth_zarr_open(fth_zarr **out, fth_mem *mem, const char *path, fth_err *err)
{
    *out = NULL;
    if (!mem || !path) return FTH_FAIL(err, FTH_E_USAGE, "an array needs memory and a path");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_zarr), &block, err));
    fth_zarr *z = block;
    z->mem = mem;
    z->folder = fth__heap_strdup(mem, path);
    fth_status s = z->folder ? fth__zarr_load_any(&z->meta, mem, path, &z->doc, &z->attributes, err)
                             : FTH_FAIL(err, FTH_E_NOMEM, "no memory to open %s", path);
    if (s == FTH_OK && z->meta.text)
        s = FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: numbers were wanted, it holds text", path);
    if (s != FTH_OK) {
        fth_zarr_close(z);
        return s;
    }
    describe(z);
    *out = z;
    return FTH_OK;
}

void fth_zarr_close(fth_zarr *z)
{
    if (!z) return;
    fth_json_destroy(z->doc);
    fth_json_destroy(z->attributes);
    fth__heap_free(z->mem, z->folder);
    fth__heap_free(z->mem, z);
}

const fth_zarr_info *fth_zarr_get_info(const fth_zarr *z)
{
    return &z->info;
}

const fth_json_value *fth_zarr_attributes(const fth_zarr *z)
{
    if (z->meta.format == 3) return fth_json_get(fth_json_root(z->doc), "attributes");
    return z->attributes ? fth_json_root(z->attributes) : NULL;
}

/* ---- the source ---- */

typedef struct opened {
    fth__opened opened;
    fth_mem *mem;
    fth__zarr_meta meta;
    fth__zarr_rooms rooms;
    char folder[]; /* its path */
} opened;

static fth_status read_rect(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    opened *o = self;
    const fth__zarr_meta *m = &o->meta;
    int64_t step[FTH_MAX_AXES];
    FTH_TRY(fth__rect_check("zarr", m->n_axes, m->size, lo, n, err));
    const int64_t count = fth__rect_count(m->n_axes, n);
    fth__zarr_steps(m->n_axes, n, (uint64_t)fth_dtype_size(m->dtype), step);
    FTH_TRY(fth__zarr_read(m, o->folder, &o->rooms, lo, n, dst, step, err));
    return m->is_u64 ? fth__u64_check(o->folder, count, dst, err) : FTH_OK;
}

static fth_status read_rows(void *self, const int64_t *index, int64_t n, void *dst, fth_err *err)
{
    const opened *o = self;
    return fth__rows_by_read("zarr", read_rect, self, o->meta.dtype, o->meta.n_axes, o->meta.size,
                             index, n, dst, err);
}

static void close_source(void *self)
{
    opened *o = self;
    fth__zarr_rooms_close(&o->rooms);
    fth__heap_free(o->mem, o);
}

fth_status fth_zarr_source(fth_zarr *z, fth_source *out, fth_err *err)
{
    const size_t length = strlen(z->folder) + 1;
    const fth__zarr_meta *m = &z->meta;
    fth__zarr_needs needs = {0};
    void *block = NULL;
    *out = (fth_source){0};
    FTH_TRY(fth__heap_take(z->mem, 1, sizeof(opened) + length, &block, err));
    opened *o = block;
    *o = (opened){.opened = {close_source}, .mem = z->mem, .meta = *m};
    memcpy(o->folder, z->folder, length);
    fth__zarr_needs_add(&needs, m, false);
    const fth_status s = fth__zarr_rooms_open(&o->rooms, z->mem, &needs, err);
    if (s != FTH_OK) {
        fth__heap_free(z->mem, o);
        return fth_err_note(err, FTH_HERE, s, "a chunk of %s", z->folder);
    }
    *out = (fth_source){.kind = "zarr",
                        .self = o,
                        .dtype = m->dtype,
                        .n_axes = m->n_axes,
                        .read = read_rect,
                        .read_rows = m->n_axes > 0 ? read_rows : NULL,
                        .libraries = fth__codecs_libraries(&m->codecs),
                        .billed_bytes = o->rooms.bytes,
                        .concurrent = true};
    memcpy(out->size, m->size, sizeof out->size);
    if (!fth__zarr_is_straight(m)) memcpy(out->part, m->chunk, sizeof out->part);
    return FTH_OK;
}
