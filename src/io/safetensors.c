/* safetensors.c - reading: a JSON header, then tensors without a gap.
 *
 * Everything the header says is checked when the file is opened: each tensor's
 * bytes follow from its shape, tensors touch without overlap or hole, and the
 * last one ends the file. A dtype we do not have is refused only when asked for.
 */
#include "io/safetensors.h"

#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 256 << 10 }; /* bytes hashed at a time: they stay in a core's cache; not tuned */

typedef struct tensor {
    char *name;
    char dtype_text[16];
    bool known;  /* dtype is one of ours */
    bool is_u64; /* read as i64 */
    fth_dtype dtype;
    int n_axes;
    int64_t size[FTH_MAX_AXES];
    uint64_t begin, end; /* from the first byte after the header */
} tensor;

typedef struct pair {
    char *key, *value;
} pair;

struct fth_safetensors {
    fth_mem *mem;
    fth_file *file;
    uint64_t start; /* of the data */
    tensor *tensor; /* in file order */
    int64_t n;
    pair *meta; /* by key */
    int64_t n_meta;
};

static const char *const dtype_names[FTH_DTYPE_COUNT] = {
    [FTH_BOOL] = "BOOL", [FTH_U8] = "U8",   [FTH_U16] = "U16",   [FTH_I32] = "I32",
    [FTH_I64] = "I64",   [FTH_F16] = "F16", [FTH_BF16] = "BF16", [FTH_F32] = "F32",
    [FTH_F64] = "F64",   [FTH_C64] = "C64", [FTH_C128] = NULL,   [FTH_U32] = "U32",
    [FTH_I16] = "I16",   [FTH_I8] = "I8",
};

const char *fth__st_dtype_name(fth_dtype t)
{
    return dtype_names[t];
}

/* ---- the header ---- */

static fth_status bad_tensor(const fth_safetensors *f, const tensor *t, const char *what,
                             fth_err *err)
{
    return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, f->file->path, f->start + t->begin,
                          "tensor '%s': %s", t->name, what);
}

/* A list of whole numbers that are not negative; -1 when it is none, or longer than `max`. */
static int take_numbers(const json_t *list, int64_t *out, int max)
{
    if (!json_is_array(list) || json_array_size(list) > (size_t)max) return -1;
    const int n = (int)json_array_size(list);
    for (int i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        if (!json_is_integer(v) || json_integer_value(v) < 0) return -1;
        out[i] = json_integer_value(v);
    }
    return n;
}

static fth_status take_tensor(const fth_safetensors *f, const char *name, const json_t *entry,
                              tensor *t, fth_err *err)
{
    t->name = fth__heap_strdup(f->mem, name);
    if (!t->name)
        return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the header of %s", f->file->path);
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype || json_object_size(entry) != 3)
        return bad_tensor(f, t, "an entry has exactly dtype, shape and data_offsets", err);
    snprintf(t->dtype_text, sizeof t->dtype_text, "%s", dtype);
    for (int d = 0; d < FTH_DTYPE_COUNT; d++)
        if (dtype_names[d] && strcmp(dtype, dtype_names[d]) == 0) {
            t->dtype = (fth_dtype)d;
            t->known = true;
        }
    if (strcmp(dtype, "U64") == 0) {
        t->dtype = FTH_I64;
        t->known = t->is_u64 = true;
    }
    const json_t *shape = json_object_get(entry, "shape");
    t->n_axes = take_numbers(shape, t->size, FTH_MAX_AXES);
    if (t->n_axes < 0)
        return bad_tensor(f, t, "its shape should be a list of at most 8 sizes, none negative",
                          err);
    int64_t offsets[2];
    if (take_numbers(json_object_get(entry, "data_offsets"), offsets, 2) != 2 ||
        offsets[0] > offsets[1])
        return bad_tensor(f, t, "its data_offsets should be [begin, end]", err);
    t->begin = (uint64_t)offsets[0];
    t->end = (uint64_t)offsets[1];

    uint64_t bytes = t->end - t->begin;
    char text[300], sizes[200];
    if (t->known && fth__shape_check(t->dtype, t->n_axes, t->size, NULL, &bytes, NULL) != FTH_OK)
        return bad_tensor(f, t, "its shape has more bytes than 63 bits can count", err);
    if (bytes == t->end - t->begin) return FTH_OK;
    snprintf(text, sizeof text, "%s has %" PRIu64 " bytes, its data_offsets say %" PRIu64,
             fth__shape_text(t->dtype, t->n_axes, t->size, sizes, sizeof sizes), bytes,
             t->end - t->begin);
    return bad_tensor(f, t, text, err);
}

static int by_place(const void *a, const void *b)
{
    const tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const pair *)a)->key, ((const pair *)b)->key);
}

static fth_status take_meta(fth_safetensors *f, json_t *entry, fth_err *err)
{
    if (!json_is_object(entry))
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, f->file->path, 8,
                              "__metadata__ should be an object of strings");
    void *block = NULL;
    FTH_TRY(fth__heap_take(f->mem, (int64_t)json_object_size(entry), sizeof(pair), &block, err));
    f->meta = block;
    const char *key;
    json_t *value;
    json_object_foreach(entry, key, value)
    {
        if (!json_is_string(value))
            return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, f->file->path, 8,
                                  "metadata '%s' should be a string", key);
        pair *p = &f->meta[f->n_meta++];
        p->key = fth__heap_strdup(f->mem, key);
        p->value = fth__heap_strdup(f->mem, json_string_value(value));
        if (!p->key || !p->value)
            return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the header of %s", f->file->path);
    }
    FTH_ASSERT((size_t)f->n_meta == json_object_size(entry));
    qsort(f->meta, (size_t)f->n_meta, sizeof(pair), by_key);
    return FTH_OK;
}

static fth_status take_entries(fth_safetensors *f, json_t *root, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth__heap_take(f->mem, (int64_t)json_object_size(root), sizeof(tensor), &block, err));
    f->tensor = block;
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, FTH__ST_META) == 0)
            FTH_TRY(take_meta(f, value, err));
        else
            FTH_TRY(take_tensor(f, key, value, &f->tensor[f->n++], err));
    }
    qsort(f->tensor, (size_t)f->n, sizeof(tensor), by_place);
    uint64_t at = 0;
    FTH_ASSERT(f->start <= f->file->bytes);
    const uint64_t data = f->file->bytes - f->start;
    for (int64_t i = 0; i < f->n; at = f->tensor[i++].end) {
        const tensor *t = &f->tensor[i];
        if (t->begin < at) return bad_tensor(f, t, "it overlaps the tensor before it", err);
        if (t->begin > at) return bad_tensor(f, t, "there is a hole before it", err);
        if (t->end > data)
            return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, f->file->path, f->start + t->begin,
                                  "tensor '%s' should end at byte %" PRIu64
                                  ", the file ends at %" PRIu64,
                                  t->name, f->start + t->end, f->file->bytes);
    }
    if (at != data)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, f->file->path, f->start + at,
                              "%" PRIu64 " bytes follow the last tensor", data - at);
    return FTH_OK;
}

static fth_status take_header(fth_safetensors *f, fth_err *err)
{
    const char *path = f->file->path;
    unsigned char prefix[8];
    FTH_TRY(fth_file_read(f->file, 0, 8, prefix, "the header's length", err));
    uint64_t length = 0;
    for (int i = 8; i-- > 0;) length = length << 8 | prefix[i];
    if (length > FTH__ST_LONGEST)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, path, 0,
                              "the header would have %" PRIu64
                              " bytes; this is no safetensors file, or a damaged one",
                              length);
    f->start = 8 + length;
    if (f->start > f->file->bytes)
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, path, 8,
                              "the header should have %" PRIu64 " bytes, only %" PRIu64 " follow",
                              length, f->file->bytes - 8);
    void *text = NULL;
    FTH_TRY(fth__heap_take(f->mem, 1, length, &text, err));
    fth_status s = fth_file_read(f->file, 8, length, text, "the header", err);
    if (s == FTH_OK && (length == 0 || *(const char *)text != '{'))
        s = FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, path, 8, "the header should start with '{'");
    if (s == FTH_OK) {
        json_error_t why;
        json_t *root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &why);
        if (!root)
            s = FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, path, 8 + (uint64_t)why.position,
                               "the header is not JSON: %s", why.text);
        else
            s = take_entries(f, root, err);
        json_decref(root);
    }
    fth__heap_free(f->mem, text);
    return s;
}

/* ---- public ---- */

fth_status fth_safetensors_open(fth_safetensors **out, fth_mem *mem, const char *path, fth_err *err)
{
    *out = NULL;
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory to be opened");
    void *block = NULL;
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_safetensors), &block, err));
    fth_safetensors *f = block;
    f->mem = mem;
    fth_status s = fth_file_open(&f->file, mem, path, err);
    if (s == FTH_OK) s = take_header(f, err);
    if (s != FTH_OK) {
        fth_safetensors_close(f);
        return s;
    }
    *out = f;
    return FTH_OK;
}

void fth_safetensors_close(fth_safetensors *f)
{
    if (!f) return;
    for (int64_t i = 0; i < f->n; i++) fth__heap_free(f->mem, f->tensor[i].name);
    for (int64_t i = 0; i < f->n_meta; i++) {
        fth__heap_free(f->mem, f->meta[i].key);
        fth__heap_free(f->mem, f->meta[i].value);
    }
    fth__heap_free(f->mem, f->tensor);
    fth__heap_free(f->mem, f->meta);
    fth_file_close(f->file);
    fth__heap_free(f->mem, f);
}

int64_t fth_safetensors_count(const fth_safetensors *f)
{
    return f->n;
}

const char *fth_safetensors_name(const fth_safetensors *f, int64_t i)
{
    return i >= 0 && i < f->n ? f->tensor[i].name : NULL;
}

int64_t fth_safetensors_meta_count(const fth_safetensors *f)
{
    return f->n_meta;
}

const char *fth_safetensors_meta_at(const fth_safetensors *f, int64_t i, const char **key)
{
    const bool there = i >= 0 && i < f->n_meta;
    if (key) *key = there ? f->meta[i].key : NULL;
    return there ? f->meta[i].value : NULL;
}

/* "<prefix><name>" without building it: `key` is compared in two parts. */
static const char *find_meta(const fth_safetensors *f, const char *prefix, const char *name)
{
    const size_t skip = strlen(prefix);
    int64_t lo = 0, hi = f->n_meta;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        const char *key = f->meta[mid].key;
        int order = strncmp(key, prefix, skip);
        if (order == 0) order = strcmp(key + skip, name);
        if (order == 0) return f->meta[mid].value;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const char *fth_safetensors_meta(const fth_safetensors *f, const char *key)
{
    return key ? find_meta(f, "", key) : NULL;
}

static bool is_c128(const fth_safetensors *f, const tensor *t)
{
    if (t->dtype != FTH_F64 || t->n_axes < 1 || t->size[t->n_axes - 1] != 2) return false;
    const char *axes = find_meta(f, FTH__ST_AXES, t->name);
    const char *last = axes ? strrchr(axes, ' ') : NULL;
    return axes && strcmp(last ? last + 1 : axes, FTH__ST_PARTS) == 0;
}

static const tensor *find_tensor(const fth_safetensors *f, const char *name, fth_err *err)
{
    char have[400] = "";
    size_t used = 0;
    for (int64_t i = 0; name && i < f->n; i++) {
        if (strcmp(f->tensor[i].name, name) == 0) return &f->tensor[i];
        if (used < sizeof have) /* what does not fit is left out: the list is only a help */
            used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "",
                                     f->tensor[i].name);
    }
    (void)FTH_FAIL(err, FTH_E_FILE_KEY, "%s: no tensor '%s'; it holds: %s", f->file->path,
                   name ? name : "", have);
    return NULL;
}

fth_status fth_safetensors_source(fth_safetensors *f, const char *name, fth_source *out,
                                  fth_err *err)
{
    *out = (fth_source){0};
    const tensor *t = find_tensor(f, name, err);
    if (!t) return FTH_E_FILE_KEY;
    if (!t->known)
        return FTH__FILE_FAIL(err, FTH_E_FILE_FEATURE, f->file->path, f->start + t->begin,
                              "tensor '%s' has the dtype %s, which is not read", name,
                              t->dtype_text);
    fth__layout l = {
        .dtype = t->dtype, .n_axes = t->n_axes, .offset = f->start + t->begin, .is_u64 = t->is_u64};
    memcpy(l.size, t->size, sizeof l.size);
    if (is_c128(f, t)) {
        l.dtype = FTH_C128;
        l.size[--l.n_axes] = 0;
    }
    fth__bytes bytes = {0};
    fth_file *file = fth__file_retain(f->file);
    fth_status s = fth__bytes_of_file(&bytes, file, 0, err);
    if (s != FTH_OK) {
        fth_file_close(file);
        return s;
    }
    s = fth__dense_open(out, "safetensors", f->mem, &bytes, &l, err);
    if (s != FTH_OK) bytes.close(bytes.self);
    return s;
}

static fth_status verify_one(fth_safetensors *f, const tensor *t, const char *wanted, char *piece,
                             fth_err *err)
{
    fth__hash h;
    fth__hash_init(&h, 0);
    FTH_ASSERT(t->begin <= t->end && f->start + t->end <= f->file->bytes);
    for (uint64_t at = t->begin; at < t->end;) {
        const uint64_t m = fth__min_u64(PIECE, t->end - at);
        FTH_TRY(fth_file_read(f->file, f->start + at, m, piece, t->name, err));
        fth__hash_add(&h, piece, (size_t)m);
        at += m;
    }
    char found[17];
    fth__hash_hex(fth__hash_get(&h), found);
    if (strcmp(found, wanted) == 0) return FTH_OK;
    return FTH__FILE_FAIL(err, FTH_E_FILE_FORMAT, f->file->path, f->start + t->begin,
                          "tensor '%s' is damaged: its xxh64 is %s, the header says %s", t->name,
                          found, wanted);
}

fth_status fth_safetensors_verify(fth_safetensors *f, int64_t *n_checked, fth_err *err)
{
    if (n_checked) *n_checked = 0;
    void *piece = NULL;
    FTH_TRY(fth__heap_take(f->mem, 1, PIECE, &piece, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < f->n; i++) {
        const char *wanted = find_meta(f, FTH__ST_HASH, f->tensor[i].name);
        if (!wanted) continue;
        s = verify_one(f, &f->tensor[i], wanted, piece, err);
        if (s == FTH_OK && n_checked) ++*n_checked;
    }
    fth__heap_free(f->mem, piece);
    return s;
}
