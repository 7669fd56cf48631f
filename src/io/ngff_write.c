/* ngff_write.c - OME-NGFF images and plates as sinks; see fathom/zarr.h. */
#include "io/dense.h"
#include "io/ngff_out.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- an image alone ---- */

typedef struct created {
    fth__opened opened;
    fth_mem *mem;
    fth__zarr_folder folder;
    fth__ngff_spec spec;
    fth__ngff_out *out;
} created;

static fth_status write_image(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    const created *c = self;
    if (!c->out) return FTH_FAIL(err, FTH_E_STATE, "an image was written after it had ended");
    return fth__ngff_out_write(c->out, lo, n, src, err);
}

static void abandon_image(void *self)
{
    created *c = self;
    fth__ngff_out_close(c->out);
    c->out = NULL;
    fth__zarr_folder_abandon(&c->folder);
}

static fth_status commit_image(void *self, fth_err *err)
{
    created *c = self;
    if (!c->out) return FTH_FAIL(err, FTH_E_STATE, "an image was committed after it had ended");
    fth_status s = fth__ngff_out_check(c->out, err);
    if (s == FTH_OK) s = fth__zarr_folder_commit(&c->folder, err);
    abandon_image(c);
    return s;
}

static void close_image(void *self)
{
    created *c = self;
    abandon_image(c);
    fth__ngff_spec_close(&c->spec);
    fth__heap_free(c->mem, c);
}

fth_status fth_ngff_create(fth_sink *out, fth_mem *mem, const char *path,
                           const fth_ngff_image *image, fth_err *err)
{
    void *block = NULL;
    *out = (fth_sink){0};
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "an image needs memory");
    FTH_TRY(fth__heap_take(mem, 1, sizeof(created), &block, err));
    created *c = block;
    c->opened.close = close_image;
    c->mem = mem;
    fth_status s = fth__ngff_spec_open(&c->spec, mem, image, err);
    if (s == FTH_OK) s = fth__zarr_folder_open(&c->folder, mem, path, image->planned, err);
    if (s == FTH_OK) s = fth__ngff_out_open(&c->out, &c->spec, c->folder.temp, err);
    if (s != FTH_OK) {
        close_image(c);
        return s;
    }
    *out = fth__ngff_spec_sink(&c->spec);
    out->self = c;
    out->write = write_image;
    out->commit = commit_image;
    out->abandon = abandon_image;
    out->path = c->folder.path;
    return FTH_OK;
}

/* ---- a plate ---- */

enum { ROW = 4, MOST_COLUMN = 999 };

typedef struct field {
    fth__opened opened;
    fth_ngff_plate *plate;
    fth__ngff_out *out; /* NULL: not begun, or done */
    bool done;
} field;

typedef struct well {
    char row[ROW];
    int64_t column;
} well;

struct fth_ngff_plate {
    fth_mem *mem;
    fth__zarr_folder folder;
    fth__ngff_spec spec;
    well *well;
    int64_t n_wells, fields;
    field *field; /* fields of each well */
    pthread_mutex_t lock;
    bool abandoned;
};

/* "A01" to A and 1. */
static fth_status take_well(const char *name, well *w, fth_err *err)
{
    size_t letters = 0;
    while (name && name[letters] >= 'A' && name[letters] <= 'Z') letters++;
    if (letters == 0 || letters >= ROW || !fth_int_parse(name + letters, &w->column) ||
        w->column < 1 || w->column > MOST_COLUMN)
        return FTH_FAIL(err, FTH_E_USAGE, "'%s' is no well; they are named A01, B12, AA03",
                        name ? name : "");
    memcpy(w->row, name, letters);
    return FTH_OK;
}

static int by_row(const void *a, const void *b)
{
    const well *p = a, *q = b;
    const size_t n = strlen(p->row), m = strlen(q->row);
    return n != m ? (n < m ? -1 : 1) : strcmp(p->row, q->row);
}

static int by_column(const void *a, const void *b)
{
    const well *p = a, *q = b;
    return (p->column > q->column) - (p->column < q->column);
}

/* How many different rows or columns come before that of a well. */
static int64_t rank(const well *sorted, int64_t n, const well *w,
                    int (*order)(const void *, const void *))
{
    int64_t rank = 0;
    for (int64_t i = 0; i < n && order(&sorted[i], w) < 0; i++)
        rank += i == 0 || order(&sorted[i - 1], &sorted[i]) != 0;
    return rank;
}

static void put_names(fth_json_writer *w, const char *key, const well *sorted, int64_t n,
                      int (*order)(const void *, const void *))
{
    fth_json_open(w, key, '[');
    for (int64_t i = 0; i < n; i++) {
        char name[24];
        if (i > 0 && order(&sorted[i - 1], &sorted[i]) == 0) continue;
        snprintf(name, sizeof name, "%" PRId64, sorted[i].column);
        fth_json_open_row(w, NULL, '{');
        fth_json_text(w, "name", order == by_row ? sorted[i].row : name);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void well_path(const well *w, char path[40])
{
    snprintf(path, 40, "%s/%" PRId64, w->row, w->column);
}

/* `sorted` has room for all wells twice. */
static fth_status save_plate(fth_ngff_plate *p, well *sorted, fth_err *err)
{
    fth_json_writer w;
    const int64_t n = p->n_wells;
    well *rows = sorted, *columns = sorted + n;
    memcpy(rows, p->well, (size_t)n * sizeof *rows);
    memcpy(columns, p->well, (size_t)n * sizeof *columns);
    qsort(rows, (size_t)n, sizeof *rows, by_row);
    qsort(columns, (size_t)n, sizeof *columns, by_column);
    fth__ngff_group_begin(&w, p->mem, p->spec.version);
    fth_json_open(&w, "plate", '{');
    if (p->spec.version == 4) fth_json_text(&w, "version", "0.4");
    if (p->spec.name[0]) fth_json_text(&w, "name", p->spec.name);
    fth_json_int(&w, "field_count", p->fields);
    put_names(&w, "rows", rows, n, by_row);
    put_names(&w, "columns", columns, n, by_column);
    fth_json_open(&w, "wells", '[');
    for (int64_t i = 0; i < n; i++) {
        char path[40];
        well_path(&p->well[i], path);
        fth_json_open_row(&w, NULL, '{');
        fth_json_text(&w, "path", path);
        fth_json_int(&w, "rowIndex", rank(rows, n, &p->well[i], by_row));
        fth_json_int(&w, "columnIndex", rank(columns, n, &p->well[i], by_column));
        fth_json_close(&w);
    }
    fth_json_close(&w);
    fth_json_close(&w);
    FTH_TRY(fth__ngff_group_save(&w, p->mem, p->spec.version, p->folder.temp, err));
    for (int64_t i = 0; i < n; i++) {
        char path[FTH_PATH];
        if (i > 0 && by_row(&rows[i - 1], &rows[i]) == 0) continue;
        FTH_TRY(fth_path_join(path, p->folder.temp, rows[i].row, err));
        FTH_TRY(fth__ngff_group_plain(p->mem, p->spec.version, path, err));
    }
    return FTH_OK;
}

static fth_status save_well(fth_ngff_plate *p, const well *own, fth_err *err)
{
    fth_json_writer w;
    char path[FTH_PATH], name[40];
    well_path(own, name);
    FTH_TRY(fth_path_join(path, p->folder.temp, name, err));
    FTH_TRY(fth_folder_make_all(p->mem, path, err));
    fth__ngff_group_begin(&w, p->mem, p->spec.version);
    fth_json_open(&w, "well", '{');
    if (p->spec.version == 4) fth_json_text(&w, "version", "0.4");
    fth_json_open(&w, "images", '[');
    for (int64_t f = 0; f < p->fields; f++) {
        snprintf(name, sizeof name, "%" PRId64, f);
        fth_json_open_row(&w, NULL, '{');
        fth_json_text(&w, "path", name);
        fth_json_close(&w);
    }
    fth_json_close(&w);
    fth_json_close(&w);
    return fth__ngff_group_save(&w, p->mem, p->spec.version, path, err);
}

static fth_status take_wells(fth_ngff_plate *p, const char *const *wells, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth__heap_take(p->mem, 3 * p->n_wells, sizeof(well), &block, err));
    p->well = block;
    FTH_TRY(fth__heap_take(p->mem, p->n_wells * p->fields, sizeof(field), &block, err));
    p->field = block;
    for (int64_t i = 0; i < p->n_wells; i++) {
        FTH_TRY(take_well(wells[i], &p->well[i], err));
        for (int64_t k = 0; k < i; k++)
            if (by_row(&p->well[k], &p->well[i]) == 0 && by_column(&p->well[k], &p->well[i]) == 0)
                return FTH_FAIL(err, FTH_E_USAGE, "well %s is there twice", wells[i]);
    }
    return FTH_OK;
}

fth_status fth_ngff_plate_create(fth_ngff_plate **out, fth_mem *mem, const char *path,
                                 const fth_ngff_image *image, const char *const *wells,
                                 int64_t n_wells, int64_t fields, fth_err *err)
{
    void *block = NULL;
    *out = NULL;
    if (!mem || !wells || n_wells < 1 || n_wells > 100000 || fields < 1 || fields > 10000)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "a plate needs memory, at least one well and one field in each");
    FTH_TRY(fth__heap_take(mem, 1, sizeof(fth_ngff_plate), &block, err));
    fth_ngff_plate *p = block;
    p->mem = mem;
    p->n_wells = n_wells;
    p->fields = fields;
    pthread_mutex_init(&p->lock, NULL);
    fth_status s = take_wells(p, wells, err);
    if (s == FTH_OK) s = fth__ngff_spec_open(&p->spec, mem, image, err);
    if (s == FTH_OK) s = fth__zarr_folder_open(&p->folder, mem, path, image->planned, err);
    const bool saved = !image || !image->planned;
    if (s == FTH_OK && saved) s = save_plate(p, p->well + n_wells, err);
    for (int64_t i = 0; s == FTH_OK && saved && i < n_wells; i++)
        s = save_well(p, &p->well[i], err);
    if (s != FTH_OK) {
        fth_ngff_plate_abandon(p);
        return s;
    }
    *out = p;
    return FTH_OK;
}

void fth_ngff_plate_abandon(fth_ngff_plate *p)
{
    if (!p) return;
    for (int64_t i = 0; p->field && i < p->n_wells * p->fields; i++)
        fth__ngff_out_close(p->field[i].out);
    fth__zarr_folder_abandon(&p->folder);
    fth__ngff_spec_close(&p->spec);
    fth__heap_free(p->mem, p->field);
    fth__heap_free(p->mem, p->well);
    pthread_mutex_destroy(&p->lock);
    fth__heap_free(p->mem, p);
}

fth_status fth_ngff_plate_commit(fth_ngff_plate *p, fth_err *err)
{
    fth_status s = FTH_OK;
    const bool reader = fth__disk_is_reader(p->mem); /* runs write on rank 0 alone */
    for (int64_t i = 0; s == FTH_OK && !reader && i < p->n_wells * p->fields; i++)
        if (!p->field[i].done || p->abandoned)
            s = FTH_FAIL(err, FTH_E_STATE,
                         "%s: field %" PRId64 " of well %s%02" PRId64 " was not completed",
                         p->folder.path, i % p->fields, p->well[i / p->fields].row,
                         p->well[i / p->fields].column);
    if (s == FTH_OK) s = fth__zarr_folder_commit(&p->folder, err);
    fth_ngff_plate_abandon(p);
    return s;
}

/* ---- one field of it ---- */

static fth_status write_field(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    const field *f = self;
    if (!f->out) return FTH_FAIL(err, FTH_E_STATE, "a field was written after it had ended");
    return fth__ngff_out_write(f->out, lo, n, src, err);
}

static void abandon_field(void *self)
{
    field *f = self;
    fth__ngff_out_close(f->out);
    f->out = NULL;
    if (f->done) return;
    pthread_mutex_lock(&f->plate->lock);
    f->plate->abandoned = true;
    pthread_mutex_unlock(&f->plate->lock);
}

static fth_status commit_field(void *self, fth_err *err)
{
    field *f = self;
    if (!f->out) return FTH_FAIL(err, FTH_E_STATE, "a field was committed after it had ended");
    const fth_status s = fth__ngff_out_check(f->out, err);
    f->done = s == FTH_OK;
    abandon_field(f);
    return s;
}

fth_status fth_ngff_plate_sink(fth_ngff_plate *p, int64_t w, int64_t k, fth_sink *out, fth_err *err)
{
    char path[FTH_PATH], name[40 + 24];
    *out = (fth_sink){0};
    if (w < 0 || w >= p->n_wells || k < 0 || k >= p->fields)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "field %" PRId64 " of well %" PRId64 "; there are %" PRId64
                        " wells with %" PRId64 " fields",
                        k, w, p->n_wells, p->fields);
    field *f = &p->field[w * p->fields + k];
    if (f->out || f->done)
        return FTH_FAIL(err, FTH_E_STATE,
                        "field %" PRId64 " of well %s%02" PRId64 " was asked for twice", k,
                        p->well[w].row, p->well[w].column);
    well_path(&p->well[w], name);
    snprintf(name + strlen(name), 24, "/%" PRId64, k);
    FTH_TRY(fth_path_join(path, p->folder.temp, name, err));
    *f = (field){.opened = {abandon_field}, .plate = p};
    FTH_TRY(fth__ngff_out_open(&f->out, &p->spec, path, err));
    *out = fth__ngff_spec_sink(&p->spec);
    out->self = f;
    out->write = write_field;
    out->commit = commit_field;
    out->abandon = abandon_field;
    out->path = p->folder.path;
    out->writer = p;
    return FTH_OK;
}
