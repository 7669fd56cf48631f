/* safetensors_write.c - writing: the layout first, the header last.
 *
 * Tensors are ordered by item size, largest first, and the header is padded to
 * 64, so every tensor is aligned to its own items without a hole. The header
 * is built once with empty hashes to know its length and again with the real
 * ones, which are as long. Keys are sorted: equal runs give equal files.
 */
#include "io/safetensors.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/str.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, FLAGS = JSON_COMPACT | JSON_SORT_KEYS };
static const char no_hash[] = "0000000000000000";

struct fth_safetensors_writer {
    fth__members members;
    json_t *root, *meta; /* root owns meta */
    uint64_t start;      /* of the data */
    char *previous;      /* NULL: not kept */
};

static fth_status no_memory(const fth_safetensors_writer *w, fth_err *err)
{
    return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the header of %s", w->members.writer.path);
}

/* A string is refused only when it is not UTF-8, or when there is no memory. */
static fth_status put_meta(fth_safetensors_writer *w, const char *prefix, const char *name,
                           const char *value, fth_err *err)
{
    const size_t bytes = strlen(prefix) + strlen(name) + 1;
    char *key = fth__heap_alloc(w->members.mem, bytes);
    if (!key) return no_memory(w, err);
    snprintf(key, bytes, "%s%s", prefix, name);
    const bool ok = json_object_set_new(w->meta, key, json_string(value)) == 0;
    const fth_status s = ok ? FTH_OK
                            : FTH_FAIL(err, FTH_E_USAGE, "%s: metadata '%s' is not UTF-8 text",
                                       w->members.writer.path, key);
    fth__heap_free(w->members.mem, key);
    return s;
}

static int count_words(const char *text)
{
    int n = 0;
    for (const char *p = text; *p; p++) n += *p != ' ' && (p == text || p[-1] == ' ');
    return n;
}

static fth_status put_axes(fth_safetensors_writer *w, const fth_file_item *item, fth_err *err)
{
    const bool parts = item->dtype == FTH_C128;
    if (!item->axes && !parts) return FTH_OK;
    char text[1024];
    fth__text t;
    fth__text_init(&t, text, sizeof text);
    if (item->axes && count_words(item->axes) != item->n_axes)
        return FTH_FAIL(err, FTH_E_USAGE, "'%s' has %d axes, but they are named \"%s\"", item->name,
                        item->n_axes, item->axes);
    if (item->axes) fth__text_add(&t, "%s", item->axes);
    for (int a = 0; !item->axes && a < item->n_axes; a++)
        fth__text_add(&t, a ? " axis%d" : "axis%d", a);
    if (parts) fth__text_add(&t, item->n_axes > 0 ? " %s" : "%s", FTH__ST_PARTS);
    if (fth__text_is_cut(&t))
        return FTH_FAIL(err, FTH_E_USAGE, "the axes of '%s' have very long names", item->name);
    return put_meta(w, FTH__ST_AXES, item->name, text, err);
}

static fth_status put_tensor(fth_safetensors_writer *w, const fth_file_item *item, uint64_t begin,
                             uint64_t end, fth_err *err)
{
    const bool parts = item->dtype == FTH_C128;
    json_t *shape = json_array();
    bool ok = shape != NULL;
    for (int a = 0; a < item->n_axes; a++)
        ok = ok && json_array_append_new(shape, json_integer(item->size[a])) == 0;
    if (parts) ok = ok && json_array_append_new(shape, json_integer(2)) == 0;
    json_t *entry =
        json_pack("{s:s, s:o, s:[I, I]}", "dtype", parts ? "F64" : fth__st_dtype_name(item->dtype),
                  "shape", shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
    if (!ok || !entry) {
        json_decref(entry);
        return no_memory(w, err);
    }
    if (json_object_set_new(w->root, item->name, entry) != 0)
        return FTH_FAIL(err, FTH_E_USAGE, "%s: the name '%s' is not UTF-8 text",
                        w->members.writer.path, item->name);
    return put_meta(w, FTH__ST_HASH, item->name, no_hash, err);
}

typedef struct rank {
    int64_t item;
    const fth_file_item *of;
    int64_t index;
} rank;

static int by_item_then_name(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    if (x->item != y->item) return x->item > y->item ? -1 : 1;
    return strcmp(x->of->name, y->of->name);
}

/* Places in order, still counted from the first byte of data, and their header entries. */
static fth_status lay_out(fth_safetensors_writer *w, const fth_file_item *items, rank *order,
                          fth_err *err)
{
    fth__members *m = &w->members;
    for (int64_t i = 0; i < m->n; i++) {
        if (items[i].dtype == FTH_C128 && items[i].n_axes == FTH_MAX_AXES)
            return FTH_FAIL(err, FTH_E_AXIS_LIMIT,
                            "'%s': a c128 array needs one axis more in the file", items[i].name);
        if (strcmp(items[i].name, FTH__ST_META) == 0)
            return FTH_FAIL(err, FTH_E_USAGE, "no tensor may be named " FTH__ST_META);
        /* c128 is kept as f64: eight bytes are its item */
        order[i] = (rank){fth__min_i64(fth_dtype_size(items[i].dtype), 8), &items[i], i};
    }
    qsort(order, (size_t)m->n, sizeof *order, by_item_then_name);
    uint64_t at = 0;
    for (int64_t i = 0; i < m->n; i++) {
        const fth_file_item *item = order[i].of;
        FTH_ASSERT(at % (uint64_t)order[i].item == 0); /* the largest items come first */
        fth__dense_place *p = &m->member[order[i].index].place;
        FTH_TRY(fth__place_init(p, &m->writer, item->dtype, item->n_axes, item->size, at,
                                FTH__SUM_XXH64, 0, err));
        FTH_TRY(put_tensor(w, item, at, at + p->bytes, err));
        FTH_TRY(put_axes(w, item, err));
        at += p->bytes; /* init checked that this stays below 2^63 */
    }
    return FTH_OK;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static fth_status take_options(fth_safetensors_writer *w, const fth_safetensors_options *opt,
                               fth_err *err)
{
    for (int64_t i = 0; opt && i < opt->n_meta; i++) {
        const char *key = opt->meta[i].key, *value = opt->meta[i].value;
        if (!key || !value || starts_with(key, FTH__ST_AXES) || starts_with(key, FTH__ST_HASH))
            return FTH_FAIL(err, FTH_E_USAGE, "metadata '%s' cannot be given: it is empty, or ours",
                            key ? key : "");
        if (json_object_get(w->meta, key))
            return FTH_FAIL(err, FTH_E_USAGE, "metadata '%s' is given twice", key);
        FTH_TRY(put_meta(w, "", key, value, err));
    }
    if (!opt || !opt->keep_previous) return FTH_OK;
    const char *path = w->members.writer.path;
    const size_t bytes = strlen(path) + sizeof ".prev";
    w->previous = fth__heap_alloc(w->members.mem, bytes);
    if (!w->previous) return no_memory(w, err);
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const int stem = (int)(dot ? (size_t)(dot - path) : strlen(path));
    snprintf(w->previous, bytes, "%.*s.prev%s", stem, path, path + stem);
    return FTH_OK;
}

static void end_writer(fth_safetensors_writer *w)
{
    fth_mem *mem = w->members.mem;
    json_decref(w->root);
    fth__heap_free(mem, w->previous);
    fth__members_close(&w->members);
    fth__heap_free(mem, w);
}

static fth_status prepare(fth_safetensors_writer *w, const fth_file_item *items,
                          const fth_safetensors_options *opt, fth_err *err)
{
    w->root = json_object();
    w->meta = json_object();
    if (!w->root || json_object_set_new(w->root, FTH__ST_META, w->meta) != 0)
        return no_memory(w, err);
    FTH_TRY(take_options(w, opt, err));
    fth__members *m = &w->members;
    void *order = NULL;
    FTH_TRY(fth__heap_take(m->mem, m->n, sizeof(rank), &order, err));
    const fth_status s = lay_out(w, items, order, err);
    fth__heap_free(m->mem, order);
    FTH_TRY(s);
    const size_t length = json_dumpb(w->root, NULL, 0, FLAGS);
    if (length == 0) return no_memory(w, err);
    FTH_TRY(fth__round_up_u64(8 + length, ALIGN, &w->start) ? FTH_OK : FTH_E_INTERNAL);
    if (w->start - 8 > FTH__ST_LONGEST)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "%s: its header would have %zu bytes; at most %d are allowed",
                        m->writer.path, length, (int)FTH__ST_LONGEST);
    FTH_ASSERT(w->start % ALIGN == 0);
    uint64_t end = w->start;
    for (int64_t i = 0; i < m->n; i++) {
        m->member[i].place.offset += w->start;
        end += m->member[i].place.bytes;
    }
    return fth__writer_set_size(&m->writer, end, err);
}

fth_status fth_safetensors_create(fth_safetensors_writer **out, fth_mem *mem, const char *path,
                                  const fth_file_item *items, int64_t n_items,
                                  const fth_safetensors_options *opt, fth_err *err)
{
    *out = NULL;
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory to be created");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_safetensors_writer), &block, err));
    fth_safetensors_writer *w = block;
    fth_status s = fth__members_open(&w->members, mem, path, items, n_items, err);
    if (s == FTH_OK) s = prepare(w, items, opt, err);
    if (s != FTH_OK) {
        end_writer(w);
        return s;
    }
    *out = w;
    return FTH_OK;
}

fth_status fth_safetensors_sink(fth_safetensors_writer *w, const char *name, fth_sink *out,
                                fth_err *err)
{
    return fth__members_sink(&w->members, "safetensors", name, out, err);
}

static fth_status write_header(fth_safetensors_writer *w, fth_err *err)
{
    fth__members *m = &w->members;
    for (int64_t i = 0; i < m->n; i++) {
        char hex[17];
        fth__hash_hex(fth__hash_get(&m->member[i].place.xxh), hex);
        FTH_TRY(put_meta(w, FTH__ST_HASH, m->member[i].name, hex, err));
    }
    void *block = NULL;
    FTH_TRY(fth__heap_take(m->mem, 1, w->start, &block, err));
    char *head = block;
    memset(head, ' ', (size_t)w->start);
    uint64_t length = w->start - 8;
    for (int i = 0; i < 8; i++) head[i] = (char)(length >> (8 * i) & 0xff);
    const size_t used = json_dumpb(w->root, head + 8, (size_t)length, FLAGS);
    FTH_ASSERT(used <= length); /* hashes are as long as the zeros that stood for them */
    const fth_status s = used == 0 || used > length
                             ? no_memory(w, err)
                             : fth__writer_write(&m->writer, 0, w->start, head, err);
    fth__heap_free(m->mem, block);
    return s;
}

fth_status fth_safetensors_commit(fth_safetensors_writer *w, fth_err *err)
{
    fth_status s = fth__members_check(&w->members, err);
    if (s == FTH_OK) s = write_header(w, err);
    if (s == FTH_OK) s = fth__writer_commit(&w->members.writer, w->previous, err);
    end_writer(w);
    return s;
}

void fth_safetensors_abandon(fth_safetensors_writer *w)
{
    if (w) end_writer(w);
}
