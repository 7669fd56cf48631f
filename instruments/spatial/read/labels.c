/* labels.c - columns of labels: the name of each row, as codes. */
#include "anndata.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void sp_labels_free(sp_labels *l)
{
    fth_texts_free(l->names);
    if (l->mem) (void)fth_mem_release(l->mem, l->code, NULL);
    *l = (sp_labels){0};
}

bool sp_name_is_missing(const char *name)
{
    return name[0] == '\0' || strcasecmp(name, "nan") == 0;
}

static fth_status start(sp_labels *l, fth_mem *mem, int64_t n, fth_err *err)
{
    *l = (sp_labels){.mem = mem, .n = n};
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * 4, "labels", &block, err));
    l->code = block;
    return fth_texts_create(&l->names, mem, err);
}

/* ---- labels that are not categories yet ---- */

typedef struct item {
    const char *text;
    double value;
    int64_t row;
} item;

/* Bytes of UTF-8 are in the order of code points. */
static int by_text(const void *a, const void *b)
{
    return strcmp(((const item *)a)->text, ((const item *)b)->text);
}

static int by_value(const void *a, const void *b)
{
    const double x = ((const item *)a)->value, y = ((const item *)b)->value;
    return (x > y) - (x < y);
}

/* Sorted items become names and codes; each knows its row. */
static fth_status number_items(sp_labels *l, item *v, int64_t n,
                               int (*order)(const void *, const void *), fth_dtype dtype,
                               fth_err *err)
{
    qsort(v, (size_t)n, sizeof *v, order);
    int64_t names = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || order(&v[i - 1], &v[i]) != 0) {
            char text[SP_NUMBER] = "";
            if (!v[i].text) sp_number_text(dtype, v[i].value, text);
            const char *name = v[i].text ? v[i].text : text;
            FTH_TRY(fth_texts_add(l->names, name, strlen(name), err));
            names++;
        }
        l->code[v[i].row] = (int32_t)(names - 1);
    }
    return FTH_OK;
}

static fth_status take_items(fth_mem *mem, int64_t n, item **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)n * sizeof(item), "labels to be sorted",
                         &block, err));
    *out = block;
    return FTH_OK;
}

/* Whether all are whole numbers; they go into `value`. */
static bool are_numbers(item *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        char *end = NULL;
        v[i].value = (double)strtoll(v[i].text, &end, 10);
        if (end == v[i].text || *end) return false;
    }
    return true;
}

fth_status sp_labels_of(sp_labels *out, fth_mem *mem, const fth_texts *texts, const bool *missing,
                        bool numbers, fth_err *err)
{
    const int64_t n = fth_texts_count(texts);
    item *v = NULL;
    int64_t m = 0;
    fth_status s = start(out, mem, n, err);
    if (s == FTH_OK) s = take_items(mem, n, &v, err);
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        out->code[i] = -1;
        if (!missing || !missing[i]) v[m++] = (item){.text = fth_texts_get(texts, i), .row = i};
    }
    if (s == FTH_OK)
        s = number_items(out, v, m, numbers && are_numbers(v, m) ? by_value : by_text, FTH_F64,
                         err);
    (void)fth_mem_release(mem, v, NULL);
    if (s != FTH_OK) sp_labels_free(out);
    return s;
}

static fth_status labels_of_numbers(sp_labels *out, const sp_anndata *a, const sp_column *c,
                                    int64_t n, const bool *missing, fth_err *err)
{
    void *block = NULL;
    item *v = NULL;
    int64_t m = 0;
    fth_dtype dtype = FTH_F64;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, (uint64_t)n * 8, "numbers of a column", &block, err));
    const double *value = block;
    fth_status s = start(out, a->mem, n, err);
    if (s == FTH_OK) s = sp_column_numbers(a, c, n, block, &dtype, err);
    if (s == FTH_OK) s = take_items(a->mem, n, &v, err);
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        out->code[i] = -1;
        if (!isnan(value[i]) && (!missing || !missing[i]))
            v[m++] = (item){.value = value[i], .row = i};
    }
    if (s == FTH_OK) s = number_items(out, v, m, by_value, dtype, err);
    (void)fth_mem_release(a->mem, v, NULL);
    (void)fth_mem_release(a->mem, block, NULL);
    if (s != FTH_OK) sp_labels_free(out);
    return s;
}

/* ---- categories ---- */

/* Codes at one place, their names at another. */
static fth_status labels_of_codes(sp_labels *out, const sp_anndata *a, const sp_column *codes,
                                  const sp_column *names, int64_t n, fth_err *err)
{
    void *block = NULL;
    fth_dtype dtype;
    FTH_TRY(fth_mem_take(a->mem, FTH_MEM_ANY, (uint64_t)n * 8, "codes of a column", &block, err));
    const double *code = block;
    fth_status s = start(out, a->mem, n, err);
    fth_texts_free(out->names);
    out->names = NULL;
    if (s == FTH_OK) s = sp_column_texts(a, names, &out->names, err);
    if (s == FTH_OK) s = sp_column_numbers(a, codes, n, block, &dtype, err);
    const int64_t many = s == FTH_OK ? fth_texts_count(out->names) : 0;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        if (!(code[i] >= -1 && code[i] < (double)many))
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                         "%s, %s: row %" PRId64 " has the code %g; there are %" PRId64
                         " categories",
                         a->path, codes->object, i, code[i], many);
        else
            out->code[i] = (int32_t)code[i];
    }
    (void)fth_mem_release(a->mem, block, NULL);
    if (s != FTH_OK) sp_labels_free(out);
    return s;
}

static fth_status child(const sp_column *c, const char *name, sp_column *out, fth_err *err)
{
    out->field[0] = '\0';
    if (snprintf(out->object, FTH_PATH, "%.*s/%s", FTH_PATH - 64, c->object, name) < FTH_PATH)
        return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_KEY, "the name %.60s... is too long", c->object);
}

static bool is_there(const sp_anndata *a, const sp_column *c)
{
    return sp_store_kind(&a->store, c->object) != FTH_H5_NONE;
}

/* Where older versions keep the names of a column of codes: 0.7 refers to them, versions before
 * have them in uns. False: the column is not of codes. */
static fth_status find_old_names(const sp_anndata *a, const sp_column *c, const char *column,
                                 sp_column *names, bool *found, fth_err *err)
{
    names->field[0] = '\0';
    *found = true;
    if (!c->field[0] && sp_store_attr_exists(&a->store, c->object, "categories"))
        return sp_store_attr_reference(&a->store, c->object, "categories", names->object, FTH_PATH,
                                       err);
    snprintf(names->object, sizeof names->object, "/uns/%.200s_categories", column);
    *found = c->field[0] && is_there(a, names);
    return FTH_OK;
}

static fth_status read_mask(const sp_anndata *a, const sp_column *mask, int64_t n, bool **out,
                            fth_err *err)
{
    fth_source s = {0};
    void *block = NULL;
    const int64_t zero = 0;
    FTH_TRY(sp_store_source(&a->store, mask->object, NULL, &s, err));
    fth_status status = FTH_OK;
    if (s.n_axes != 1 || s.size[0] != n || s.dtype != FTH_BOOL)
        status = FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s, %s: a mask has a boolean for each row",
                          a->path, mask->object);
    if (status == FTH_OK)
        status = fth_mem_take(a->mem, FTH_MEM_ANY, (uint64_t)n, "mask of a column", &block, err);
    if (status == FTH_OK) status = s.read(s.self, &zero, &n, block, err);
    fth_source_close(&s);
    if (status == FTH_OK)
        *out = block;
    else
        (void)fth_mem_release(a->mem, block, NULL);
    return status;
}

/* A plain column, or one whose values may be missing. */
static fth_status labels_of_values(sp_labels *out, const sp_anndata *a, const sp_column *c,
                                   int64_t n, fth_err *err)
{
    bool *missing = NULL;
    sp_column mask;
    fth_texts *texts = NULL;
    fth_err why = {0};
    FTH_TRY(child(c, "mask", &mask, err));
    if (!c->field[0] && is_there(a, &mask)) FTH_TRY(read_mask(a, &mask, n, &missing, err));
    /* texts when it has such, else numbers, which are sorted as numbers */
    fth_status s = labels_of_numbers(out, a, c, n, missing, &why);
    if (s == FTH_E_FILE_SHAPE) {
        s = sp_column_texts(a, c, &texts, err);
        if (s == FTH_OK && fth_texts_count(texts) != n)
            s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                         "%s, %s: it has %" PRId64 " rows where the counts have %" PRId64, a->path,
                         c->object, fth_texts_count(texts), n);
        if (s == FTH_OK) s = sp_labels_of(out, a->mem, texts, missing, false, err);
    } else if (s != FTH_OK && err)
        *err = why;
    fth_texts_free(texts);
    (void)fth_mem_release(a->mem, missing, NULL);
    return s;
}

fth_status sp_anndata_labels(const sp_anndata *a, const char *frame, const char *column, int64_t n,
                             sp_labels *out, fth_err *err)
{
    *out = (sp_labels){0};
    sp_column c, codes, names;
    bool found = false;
    FTH_TRY(sp_anndata_column(a, frame, column, &c, err));
    FTH_TRY(child(&c, "codes", &codes, err));
    if (!c.field[0] && is_there(a, &codes)) {
        FTH_TRY(child(&c, "categories", &names, err));
        return labels_of_codes(out, a, &codes, &names, n, err);
    }
    FTH_TRY(find_old_names(a, &c, column, &names, &found, err));
    return found ? labels_of_codes(out, a, &c, &names, n, err)
                 : labels_of_values(out, a, &c, n, err);
}

static fth_status is_category(const sp_anndata *a, const char *frame, const char *column, bool *yes,
                              fth_err *err)
{
    sp_column c, codes, names;
    FTH_TRY(sp_anndata_column(a, frame, column, &c, err));
    FTH_TRY(child(&c, "codes", &codes, err));
    *yes = !c.field[0] && is_there(a, &codes);
    return *yes ? FTH_OK : find_old_names(a, &c, column, &names, yes, err);
}

fth_status sp_category_numbers(const sp_anndata *a, const char *frame, const char *column,
                               int64_t n, double *to, bool *found, fth_err *err)
{
    sp_labels l;
    FTH_TRY(is_category(a, frame, column, found, err));
    if (!*found) return FTH_OK;
    FTH_TRY(sp_anndata_labels(a, frame, column, n, &l, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < n; i++) {
        const char *name = l.code[i] >= 0 ? fth_texts_get(l.names, l.code[i]) : "nan";
        if (!fth_real_parse(name, &to[i]))
            s = FTH_FAIL(err, FTH_E_FILE_FEATURE,
                         "%s, %s/%s: a column of numbers was expected, and '%.60s' is one of its "
                         "categories",
                         a->path, frame, column, name);
    }
    sp_labels_free(&l);
    return s;
}

/* ---- names without doubles ---- */

/* Names by hash, open addressing: how often each was met, beside what was made of it. */
typedef struct entry {
    const char *name;
    int64_t met;
} entry;
typedef struct name_set {
    entry *at;
    uint64_t size; /* a power of two */
} name_set;

static entry *look_up(const name_set *set, const char *name)
{
    uint64_t i = fth_hash_bytes(name, strlen(name), 0) & (set->size - 1);
    while (set->at[i].name && strcmp(set->at[i].name, name) != 0) i = (i + 1) & (set->size - 1);
    return &set->at[i];
}

/* The next free of "name-1", "name-2"...; written into `text`. */
static const char *next_free(const name_set *set, entry *of, char *text, size_t bytes)
{
    do {
        of->met++;
        snprintf(text, bytes, "%s-%" PRId64, of->name, of->met);
    } while (look_up(set, text)->name);
    return text;
}

/* `made` owns the new names; duplicates are counted first, then named. */
static fth_status rename_doubles(const fth_texts *names, name_set *set, char *made, size_t room,
                                 fth_texts *out, int64_t *changed, fth_err *err)
{
    const int64_t n = fth_texts_count(names);
    for (int64_t i = 0; i < n; i++) {
        entry *e = look_up(set, fth_texts_get(names, i));
        if (!e->name) *e = (entry){.name = fth_texts_get(names, i), .met = -1};
    }
    for (int64_t i = 0; i < n; i++) {
        const char *name = fth_texts_get(names, i);
        entry *e = look_up(set, name);
        if (e->met < 0) {
            e->met = 0;
        } else {
            next_free(set, e, made, room);
            *look_up(set, made) = (entry){.name = made};
            name = made;
            made += strlen(made) + 1;
            room -= strlen(name) + 1;
            (*changed)++;
        }
        FTH_TRY(fth_texts_add(out, name, strlen(name), err));
    }
    return FTH_OK;
}

/* Slots of the table: every name that is there or made has one, at most n of them. */
static uint64_t slots_of(int64_t n)
{
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)n) slots *= 2;
    return slots;
}

uint64_t sp_names_unique_bytes(int64_t n)
{
    enum { SUFFIX = 24, STARTS = 2 * 8 }; /* of a list, which doubles as it grows */
    return slots_of(n) * sizeof(entry) + (uint64_t)n * (SUFFIX + STARTS);
}

fth_status sp_names_unique(fth_texts **names, fth_mem *mem, int64_t *changed, fth_err *err)
{
    const int64_t n = fth_texts_count(*names);
    name_set set = {.size = slots_of(n)};
    size_t room = 1;
    *changed = 0;
    for (int64_t i = 0; i < n; i++) room += strlen(fth_texts_get(*names, i)) + 24;
    void *table = NULL, *made = NULL;
    fth_texts *out = NULL;
    fth_status s =
        fth_mem_take(mem, FTH_MEM_ANY, set.size * sizeof(entry), "names by hash", &table, err);
    if (s == FTH_OK) s = fth_mem_take(mem, FTH_MEM_ANY, room, "names made", &made, err);
    if (s == FTH_OK) s = fth_texts_create(&out, mem, err);
    if (s == FTH_OK) {
        set.at = memset(table, 0, set.size * sizeof(entry));
        s = rename_doubles(*names, &set, made, room, out, changed, err);
    }
    (void)fth_mem_release(mem, made, NULL);
    (void)fth_mem_release(mem, table, NULL);
    if (s == FTH_OK) {
        fth_texts_free(*names);
        *names = out;
    } else
        fth_texts_free(out);
    return s;
}
