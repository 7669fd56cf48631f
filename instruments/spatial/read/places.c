/* places.c - tables of positions: Parquet by columns, CSV by lines, each with little memory. */
#include "tenx.h"

#include <fathom/parquet.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NAME, X, Y, INSIDE, FOV, LABEL, COLUMNS = LABEL + SP_PLACE_LABELS };

typedef struct wanted {
    const char *kind;
    const char *column[COLUMNS]; /* NULL: not there */
    int place[COLUMNS];          /* without a header; -1: there is always one */
    bool first;                  /* the first column has the names where none is called so */
} wanted;

static const wanted kinds[] = {
    {"visium",
     {"barcode", "pxl_col_in_fullres", "pxl_row_in_fullres", "in_tissue", NULL, NULL},
     {0, 5, 4, 1, -1, -1, -1}, /* tissue_positions_list.csv */
     false},
    {"xenium",
     {"cell_id", "x_centroid", "y_centroid", NULL, NULL, NULL},
     {-1, -1, -1, -1, -1, -1, -1},
     false},
    {"merscope",
     {"EntityID", "center_x", "center_y", NULL, NULL, NULL},
     {-1, -1, -1, -1, -1, -1, -1},
     true},
    {"cosmx",
     {"cell_ID", "CenterX_global_px", "CenterY_global_px", NULL, "fov", NULL},
     {-1, -1, -1, -1, -1, -1, -1},
     false}};

typedef struct walk {
    fth_mem *mem;
    const char *path;
    const wanted *want;
    sp_place_fn *fn;
    void *user;
} walk;

static bool is_text(int column)
{
    return column == NAME || column >= FOV;
}

/* "17_2": cell 17 of field of view 2. */
enum { WHOLE = 200 };
static void join_names(sp_place *p, const char *fov, size_t bytes, char whole[WHOLE])
{
    p->bytes = (size_t)snprintf(whole, WHOLE, "%.*s_%.*s", p->bytes < 90 ? (int)p->bytes : 90,
                                p->name, bytes < 90 ? (int)bytes : 90, fov);
    p->name = whole;
}

static fth_status no_column(const walk *w, const char *name, const char *first, fth_err *err)
{
    const fth_status s =
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s: there is no column '%s'", w->path, name);
    fth_err_hint(err,
                 "its first column is '%.80s'; name another table with "
                 "preprocessing.positions_path",
                 first);
    return s;
}

/* ---- Parquet ---- */

typedef struct cursor {
    fth_parquet_column *column;
    fth_parquet_block block;
    int64_t at;
} cursor;

static bool is_null(const cursor *c)
{
    return c->block.present && !c->block.present[c->at];
}

static double number_of(const cursor *c)
{
    const fth_parquet_block *b = &c->block;
    if (is_null(c)) return (double)NAN;
    return b->f64     ? b->f64[c->at]
           : b->f32   ? (double)b->f32[c->at]
           : b->i64   ? (double)b->i64[c->at]
           : b->i32   ? (double)b->i32[c->at]
           : b->bools ? (double)b->bools[c->at]
                      : (double)NAN;
}

/* Names of cells were numbers once. */
static const char *name_of(const cursor *c, size_t *bytes, char text[32])
{
    const fth_parquet_block *b = &c->block;
    if (b->text) {
        *bytes = (size_t)b->text[c->at].bytes;
        return b->text[c->at].chars;
    }
    *bytes = (size_t)snprintf(text, 32, "%" PRId64, b->i64 ? b->i64[c->at] : b->i32[c->at]);
    return text;
}

static fth_status open_cursors(const walk *w, fth_parquet *file, cursor c[COLUMNS], fth_err *err)
{
    for (int k = 0; k < COLUMNS; k++) {
        const char *name = w->want->column[k];
        if (!name) continue;
        int64_t at = fth_parquet_find(file, name);
        if (at < 0 && k == NAME && w->want->first) at = 0;
        const char *first = fth_parquet_name(file, 0);
        if (at < 0) return no_column(w, name, first ? first : "", err);
        FTH_TRY(fth_parquet_column_open(&c[k].column, file, at, err));
        const fth_parquet_type type = fth_parquet_type_of(file, at);
        const bool text = type == FTH_PARQUET_TEXT,
                   whole = type == FTH_PARQUET_I32 || type == FTH_PARQUET_I64;
        if (is_text(k) ? text || whole : !text) continue;
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: column '%s' should hold %s, it holds %s",
                        w->path, name, is_text(k) ? "names" : "numbers", text ? "texts" : "others");
    }
    return FTH_OK;
}

/* One row of every column; pages of different columns end at different rows. */
static fth_status next_row(cursor c[COLUMNS], bool *more, fth_err *err)
{
    for (int k = 0; k < COLUMNS; k++) {
        if (!c[k].column) continue;
        if (c[k].at + 1 < c[k].block.n)
            c[k].at++;
        else {
            FTH_TRY(fth_parquet_next(c[k].column, &c[k].block, err));
            c[k].at = 0;
            *more = *more && c[k].block.n > 0;
        }
    }
    return FTH_OK;
}

static fth_status walk_columns(const walk *w, cursor c[COLUMNS], fth_err *err)
{
    char text[2 + SP_PLACE_LABELS][32], whole[WHOLE];
    bool more = true;
    for (int64_t row = 1;; row++) {
        sp_place p = {.inside = true};
        size_t bytes = 0;
        FTH_TRY(next_row(c, &more, err));
        if (!more) return FTH_OK;
        if (is_null(&c[NAME]))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: row %" PRId64 " has no name", w->path,
                            row);
        p.name = name_of(&c[NAME], &p.bytes, text[0]);
        if (c[FOV].column) {
            const char *fov = name_of(&c[FOV], &bytes, text[1]);
            join_names(&p, fov, bytes, whole);
        }
        for (int k = 0; k < SP_PLACE_LABELS; k++) {
            p.label[k].text = "";
            if (c[LABEL + k].column && !is_null(&c[LABEL + k]))
                p.label[k].text = name_of(&c[LABEL + k], &p.label[k].bytes, text[2 + k]);
        }
        p.x = number_of(&c[X]);
        p.y = number_of(&c[Y]);
        if (c[INSIDE].column) p.inside = !is_null(&c[INSIDE]) && number_of(&c[INSIDE]) != 0;
        FTH_TRY(w->fn(w->user, &p, row, err));
    }
}

static fth_status walk_parquet(const walk *w, fth_err *err)
{
    fth_parquet *file = NULL;
    cursor c[COLUMNS] = {{0}};
    FTH_TRY(fth_parquet_open(&file, w->mem, w->path, err));
    fth_status s = open_cursors(w, file, c, err);
    if (s == FTH_OK) s = walk_columns(w, c, err);
    for (int k = 0; k < COLUMNS; k++) fth_parquet_column_close(c[k].column);
    fth_parquet_close(file);
    return s;
}

/* ---- CSV ---- */

static bool field_is(const fth_text_field *f, const char *name)
{
    return name && f->n == strlen(name) && memcmp(f->text, name, f->n) == 0;
}

/* Which columns there are; *header: they are named, and the line is no row. */
static fth_status find_columns(const walk *w, fth_text_line line, int place[COLUMNS], bool *header,
                               fth_err *err)
{
    const wanted *want = w->want;
    fth_text_field f = {0};
    char first[81] = "";
    for (int k = 0; k < COLUMNS; k++) place[k] = -1;
    for (int i = 0; fth_text_column_next(&line, ',', &f); i++) {
        if (i == 0) snprintf(first, sizeof first, "%.*s", f.n < 80 ? (int)f.n : 80, f.text);
        for (int k = 0; k < COLUMNS; k++)
            if (field_is(&f, want->column[k])) place[k] = i;
    }
    if (place[NAME] < 0 && want->first) place[NAME] = 0;
    *header = place[NAME] >= 0 || want->place[NAME] < 0;
    for (int k = 0; k < COLUMNS; k++) {
        if (!*header) place[k] = want->place[k];
        if (want->column[k] && place[k] < 0) return no_column(w, want->column[k], first, err);
    }
    return FTH_OK;
}

static fth_status take_line(const walk *w, const fth_reader *r, fth_text_line *line,
                            const int place[COLUMNS], int64_t row, fth_err *err)
{
    sp_place p = {.inside = true};
    char whole[WHOLE];
    fth_text_field f = {0}, field[COLUMNS] = {{0}};
    double number[COLUMNS] = {0};
    const int64_t line_number = line->number;
    for (int i = 0; fth_text_column_next(line, ',', &f); i++)
        for (int k = 0; k < COLUMNS; k++)
            if (place[k] == i) field[k] = f;
    for (int k = 0; k < COLUMNS; k++) {
        if (place[k] < 0) continue;
        if (!field[k].text)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s:%" PRId64 ": expected at least %d columns, found fewer", w->path,
                            line_number, place[k] + 1);
        if (is_text(k)) continue;
        if (field[k].n == 0)
            number[k] = (double)NAN; /* missing */
        else if (!fth_text_real(&field[k], &number[k]))
            return fth_reader_fail(r, &field[k], "a number", err);
    }
    p.name = field[NAME].text;
    p.bytes = field[NAME].n;
    if (place[FOV] >= 0) join_names(&p, field[FOV].text, field[FOV].n, whole);
    for (int k = 0; k < SP_PLACE_LABELS; k++) {
        const bool has = place[LABEL + k] >= 0;
        p.label[k].text = has ? field[LABEL + k].text : "";
        p.label[k].bytes = has ? field[LABEL + k].n : 0;
    }
    p.x = number[X];
    p.y = number[Y];
    if (place[INSIDE] >= 0) p.inside = number[INSIDE] == number[INSIDE] && number[INSIDE] != 0;
    return w->fn(w->user, &p, row, err);
}

static fth_status walk_lines(const walk *w, fth_reader *r, fth_err *err)
{
    fth_text_line line;
    int place[COLUMNS];
    bool header = false;
    char copy[16384];
    FTH_TRY(fth_reader_next(r, &line, err));
    if (!line.text || line.n >= sizeof copy)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected a table of positions, found %s",
                        w->path, line.text ? "a line that is too long" : "an empty file");
    memcpy(copy, line.text, line.n + 1); /* fields are cut in place */
    fth_text_line names = line;
    names.text = names.at = copy;
    FTH_TRY(find_columns(w, names, place, &header, err));
    int64_t row = 1;
    if (!header) FTH_TRY(take_line(w, r, &line, place, row++, err));
    for (;;) {
        FTH_TRY(fth_reader_next(r, &line, err));
        if (!line.text) return FTH_OK;
        if (line.n > 0) FTH_TRY(take_line(w, r, &line, place, row++, err));
    }
}

static fth_status walk_csv(const walk *w, fth_err *err)
{
    const fth_reader_options unpack = {.unpack = true};
    fth_reader r;
    FTH_TRY(fth_reader_open(&r, w->mem, w->path, &unpack, err));
    const fth_status s = walk_lines(w, &r, err);
    fth_reader_close(&r);
    return s;
}

fth_status sp_places_read(fth_mem *mem, const char *path, const sp_places_how *how, sp_place_fn *fn,
                          void *user, fth_err *err)
{
    static const char ending[] = ".parquet";
    const size_t n = strlen(path), m = sizeof ending - 1;
    wanted want = kinds[0];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, how->kind) == 0) want = kinds[i];
    for (int k = 0; k < SP_PLACE_LABELS; k++) want.column[LABEL + k] = how->label[k];
    const walk w = {.mem = mem, .path = path, .want = &want, .fn = fn, .user = user};
    return n > m && strcmp(path + n - m, ending) == 0 ? walk_parquet(&w, err) : walk_csv(&w, err);
}
