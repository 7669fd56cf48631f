/* ply.c - models as PLY, as every trainer writes them: a float per column, rotations as units.
 *
 * Read with columns in any order and of any type, binary or ASCII, and packed (ply_packed.h);
 * f_rest is channel after channel in the file and coefficient after coefficient in memory. What is
 * written has always the same bytes.
 */
#include "formats.h"
#include "ply_packed.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    PLAIN = 17,
    MOST_COLUMNS = PLAIN + 3 * GS_COEFFICIENTS,
    ROWS = 1024,
    PIECE = 1 << 14,
    HEADER = 4096
};

static bool is(const uint8_t *head, uint64_t n, uint64_t size, const char *path)
{
    (void)size, (void)path;
    return n >= 4 && memcmp(head, "ply", 3) == 0 && (head[3] == '\n' || head[3] == '\r');
}

/* Columns of a file for each column of a row in memory; -1: it has none. */
typedef struct layout {
    int degree;
    int means[3], sh0[3], rest[3 * GS_COEFFICIENTS], opacity, scaling[3], rotation[4];
} layout;

static fth_status lay_out(const gs_ply *p, layout *l, fth_err *err)
{
    static const char *const xyz[3] = {"x", "y", "z"};
    int rest = 0;
    while (rest < GS_PLY_COLUMNS && gs_ply_numbered(p, "f_rest_", rest) >= 0) rest++;
    for (l->degree = 0; l->degree < GS_DEGREES; l->degree++)
        if (3 * gs_coefficients(l->degree) == rest) break;
    if (l->degree == GS_DEGREES)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: expected 0, 9, 24 or 45 columns f_rest_, of degree 0 to 3, found %d",
                        p->bytes.path, rest);
    const int k = (int)gs_coefficients(l->degree);
    for (int i = 0; i < rest; i++) l->rest[i] = gs_ply_numbered(p, "f_rest_", i % 3 * k + i / 3);
    for (int i = 0; i < 3; i++) {
        l->means[i] = gs_ply_find(p, xyz[i]);
        l->sh0[i] = gs_ply_numbered(p, "f_dc_", i);
        l->scaling[i] = gs_ply_numbered(p, "scale_", i);
        if (l->means[i] < 0 || l->sh0[i] < 0) {
            FTH_FAIL(err, FTH_E_FILE_KEY,
                     "%s: expected columns x y z f_dc_0 f_dc_1 f_dc_2, found no %s", p->bytes.path,
                     l->means[i] < 0 ? xyz[i] : "f_dc_0 to f_dc_2");
            fth_err_hint(err, "a PLY of points is no model: give one that a trainer wrote");
            return FTH_E_FILE_KEY;
        }
    }
    for (int i = 0; i < 4; i++) l->rotation[i] = gs_ply_numbered(p, "rot_", i);
    l->opacity = gs_ply_find(p, "opacity");
    return FTH_OK;
}

static fth_status look(fth_mem *mem, const char *path, gs_model_info *info, fth_err *err)
{
    gs_ply p;
    layout l;
    FTH_TRY(gs_ply_open(&p, mem, path, err));
    const fth_status s =
        gs_ply_is_packed(&p) ? gs_ply_packed_degree(&p, &l.degree, err) : lay_out(&p, &l, err);
    info->n = p.rows;
    info->degree = l.degree;
    gs_ply_close(&p);
    return s;
}

/* ---- reading ---- */

static void put(const gs_ply *p, const int *column, int n, float otherwise, float *to)
{
    for (int i = 0; i < n; i++)
        to[i] = column[i] < 0 ? otherwise : (float)gs_ply_real(p, column[i]);
}

static fth_status read_rows(gs_model *m, gs_ply *p, const layout *l, fth_err *err)
{
    const int k = (int)gs_coefficients(l->degree);
    for (int64_t g = 0; g < m->n; g++) {
        FTH_TRY(gs_ply_next(p, err));
        put(p, l->means, 3, 0, m->at[GS_MEANS] + 3 * g);
        put(p, l->sh0, 3, 0, m->at[GS_SH_0] + 3 * g);
        put(p, l->rest, 3 * k, 0, m->at[GS_SH_N] + 3 * k * g);
        put(p, l->scaling, 3, -5, m->at[GS_SCALING] + 3 * g);
        put(p, l->rotation, 4, 0, m->at[GS_ROTATION] + 4 * g);
        put(p, &l->opacity, 1, 0, m->at[GS_OPACITY] + g);
        if (l->rotation[0] < 0) m->at[GS_ROTATION][4 * g] = 1;
    }
    return FTH_OK;
}

static fth_status load(gs_model *m, fth_mem *mem, const char *path, fth_err *err)
{
    gs_ply p;
    layout l;
    FTH_TRY(gs_ply_open(&p, mem, path, err));
    const bool packed = gs_ply_is_packed(&p);
    fth_status s = packed ? gs_ply_packed_load(m, mem, &p, err) : lay_out(&p, &l, err);
    if (s == FTH_OK && !packed) s = gs_model_create(m, mem, p.rows, l.degree, err);
    if (s == FTH_OK && !packed) s = read_rows(m, &p, &l, err);
    gs_ply_close(&p);
    return s;
}

/* ---- writing ---- */

static size_t make_header(char text[HEADER], int64_t n, int degree)
{
    static const char *const before[] = {"x",  "y",      "z",      "nx",    "ny",
                                         "nz", "f_dc_0", "f_dc_1", "f_dc_2"};
    static const char *const after[] = {"opacity", "scale_0", "scale_1", "scale_2",
                                        "rot_0",   "rot_1",   "rot_2",   "rot_3"};
    int used = snprintf(text, HEADER,
                        "ply\nformat binary_little_endian 1.0\nelement vertex %" PRId64 "\n", n);
#define ADD(...) used += snprintf(text + used, HEADER - (size_t)used, "property float " __VA_ARGS__)
    for (int i = 0; i < 9; i++) ADD("%s\n", before[i]);
    for (int i = 0; i < 3 * (int)gs_coefficients(degree); i++) ADD("f_rest_%d\n", i);
    for (int i = 0; i < 8; i++) ADD("%s\n", after[i]);
#undef ADD
    used += snprintf(text + used, HEADER - (size_t)used, "end_header\n");
    return (size_t)used;
}

/* A unit to 1e-6 stays as it is, so that a file goes through unchanged; so does zero. */
static void put_rotation(const float *q, float *to)
{
    double square = 0;
    for (int i = 0; i < 4; i++) square += (double)q[i] * (double)q[i];
    const double norm = sqrt(square);
    const bool keep = !(norm > 0) || fabs(norm - 1) <= 1e-6;
    for (int i = 0; i < 4; i++) to[i] = keep ? q[i] : q[i] / (float)norm;
}

static void put_row(const gs_model *m, int64_t g, float *to)
{
    const int k = (int)gs_coefficients(m->degree);
    const float *rest = m->at[GS_SH_N] + 3 * k * g;
    memcpy(to, m->at[GS_MEANS] + 3 * g, 3 * sizeof *to);
    memset(to + 3, 0, 3 * sizeof *to);
    memcpy(to + 6, m->at[GS_SH_0] + 3 * g, 3 * sizeof *to);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < k; i++) to[9 + c * k + i] = rest[3 * i + c];
    to += 9 + 3 * k;
    to[0] = m->at[GS_OPACITY][g];
    memcpy(to + 1, m->at[GS_SCALING] + 3 * g, 3 * sizeof *to);
    put_rotation(m->at[GS_ROTATION] + 4 * g, to + 4);
}

typedef struct writer {
    fth_mem *mem;
    fth_sink sink;
    void *block; /* ROWS rows of the file */
    int64_t columns;
} writer;

static fth_status open_writer(writer *w, fth_mem *mem, const char *path, int64_t n, int degree,
                              fth_err *err)
{
    char header[HEADER];
    const size_t bytes = make_header(header, n, degree);
    *w = (writer){.mem = mem, .columns = PLAIN + 3 * gs_coefficients(degree)};
    const fth_raw_layout rows = {
        .dtype = FTH_F32, .n_axes = 2, .size = {n, w->columns}, .offset = bytes};
    FTH_TRY(fth_raw_create(&w->sink, mem, path, &rows, header, err));
    const fth_status s = fth_mem_take(mem, FTH_MEM_ANY, ROWS * MOST_COLUMNS * sizeof(float),
                                      "rows of a PLY", &w->block, err);
    if (s != FTH_OK) fth_sink_close(&w->sink);
    return s;
}

/* The first n rows of a model as rows of the file from `to` on. */
static fth_status write_rows(const writer *w, const gs_model *m, int64_t n, int64_t to,
                             fth_err *err)
{
    for (int64_t from = 0; from < n; from += ROWS) {
        const int64_t some = n - from < ROWS ? n - from : ROWS;
        for (int64_t i = 0; i < some; i++) put_row(m, from + i, (float *)w->block + i * w->columns);
        FTH_TRY(w->sink.write(w->sink.self, (int64_t[]){to + from, 0},
                              (int64_t[]){some, w->columns}, w->block, err));
    }
    return FTH_OK;
}

/* What is not committed leaves no file. */
static fth_status close_writer(writer *w, fth_status s, fth_err *err)
{
    if (s == FTH_OK) s = w->sink.commit(w->sink.self, err);
    (void)fth_mem_release(w->mem, w->block, NULL);
    fth_sink_close(&w->sink);
    return s;
}

static fth_status save(const gs_model *m, const char *path, fth_err *err)
{
    writer w;
    FTH_TRY(open_writer(&w, m->mem, path, m->n, m->degree, err));
    return close_writer(&w, write_rows(&w, m, m->n, 0, err), err);
}

fth_status gs_ply_save_pieces(fth_mem *mem, const char *path, int64_t n, int degree,
                              gs_bring_fn *bring, void *self, fth_err *err)
{
    const int64_t most = n < PIECE ? n : PIECE;
    gs_model piece;
    writer w;
    FTH_TRY(gs_model_create(&piece, mem, most, degree, err));
    fth_status s = open_writer(&w, mem, path, n, degree, err);
    if (s == FTH_OK) {
        for (int64_t from = 0; s == FTH_OK && from < n; from += PIECE) {
            const int64_t some = n - from < PIECE ? n - from : PIECE;
            s = bring(self, from, some, &piece, err);
            if (s == FTH_OK) s = write_rows(&w, &piece, some, from, err);
        }
        s = close_writer(&w, s, err);
    }
    gs_model_free(&piece);
    return s;
}

const gs_format_row gs_ply_format = {"PLY", ".ply", is, look, load, save};
