/* dotsplat.c - models as .splat: 32 bytes a row, colours without a direction, largest first. */
#include "../file/bytes.h"
#include "formats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct record {
    float mean[3], scale[3];
    uint8_t rgba[4], rotation[4]; /* 128 q + 128, w first */
} record;
enum { RECORD = 32 };

/* The format has no magic bytes: the extension identifies it. */
static bool is(const uint8_t *head, uint64_t n, uint64_t size, const char *path)
{
    (void)head, (void)n, (void)size;
    return gs_path_ends(path, ".splat");
}

static fth_status look(fth_mem *mem, const char *path, gs_model_info *info, fth_err *err)
{
    fth_path_info file;
    (void)mem;
    FTH_TRY(fth_path_stat(path, &file, err));
    if (file.bytes % RECORD != 0) {
        FTH_FAIL(err, FTH_E_FILE_SHORT,
                 "%s, byte %" PRIu64 ": expected rows of 32 bytes, found %" PRIu64 " at the end",
                 path, file.bytes - file.bytes % RECORD, file.bytes % RECORD);
        fth_err_hint(err, "the file was cut short: copy it or export it again");
        return FTH_E_FILE_SHORT;
    }
    info->n = (int64_t)(file.bytes / RECORD);
    return FTH_OK;
}

/* ---- reading ---- */

static fth_status read_row(gs_model *m, int64_t g, const record *r, const gs_bytes *b, fth_err *err)
{
    for (int k = 0; k < 3; k++) {
        if (!(r->scale[k] > 0) || !isfinite(r->scale[k]))
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s, byte %" PRIu64 ": expected a scale above 0, found %g", b->path,
                            b->at - RECORD + 12 + 4 * (uint64_t)k, (double)r->scale[k]);
        m->at[GS_MEANS][3 * g + k] = r->mean[k];
        m->at[GS_SCALING][3 * g + k] = logf(r->scale[k]);
        m->at[GS_SH_0][3 * g + k] = (float)((r->rgba[k] / 255.0 - 0.5) / GS_SH0);
    }
    m->at[GS_OPACITY][g] = gs_logit(r->rgba[3] / 255.0);
    for (int k = 0; k < 4; k++)
        m->at[GS_ROTATION][4 * g + k] = (float)(r->rotation[k] - 128) / 128.0f;
    return FTH_OK;
}

static fth_status load(gs_model *m, fth_mem *mem, const char *path, fth_err *err)
{
    gs_model_info info = {0};
    gs_bytes b;
    FTH_TRY(look(mem, path, &info, err));
    FTH_TRY(gs_bytes_open(&b, mem, path, err));
    fth_status s = gs_model_create(m, mem, info.n, 0, err);
    for (int64_t g = 0; s == FTH_OK && g < info.n; g++) {
        record r;
        s = gs_bytes_take(&b, &r, RECORD, "a row", err);
        if (s == FTH_OK) s = read_row(m, g, &r, &b, err);
    }
    gs_bytes_close(&b);
    return s;
}

/* ---- writing ---- */

typedef struct rank {
    double size;
    int64_t row;
} rank;

static int larger_first(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row; /* ties by row: qsort is not stable */
}

static uint8_t to_byte(double v)
{
    return v >= 255 ? 255 : v > 0 ? (uint8_t)(v + 0.5) : 0;
}

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

static void make_row(const gs_model *m, int64_t g, record *r)
{
    const float *q = m->at[GS_ROTATION] + 4 * g;
    double norm = 0;
    for (int k = 0; k < 4; k++) norm += (double)q[k] * (double)q[k];
    norm = norm > 0 ? sqrt(norm) : 1;
    for (int k = 0; k < 3; k++) {
        r->mean[k] = m->at[GS_MEANS][3 * g + k];
        r->scale[k] = expf(m->at[GS_SCALING][3 * g + k]);
        r->rgba[k] = to_byte(255 * (0.5 + GS_SH0 * (double)m->at[GS_SH_0][3 * g + k]));
    }
    r->rgba[3] = to_byte(255 * sigmoid((double)m->at[GS_OPACITY][g]));
    for (int k = 0; k < 4; k++) r->rotation[k] = to_byte(128 * (double)q[k] / norm + 128);
}

static void order(const gs_model *m, rank *ranks)
{
    for (int64_t g = 0; g < m->n; g++) {
        const float *s = m->at[GS_SCALING] + 3 * g;
        ranks[g].size =
            exp((double)s[0] + (double)s[1] + (double)s[2]) * sigmoid((double)m->at[GS_OPACITY][g]);
        ranks[g].row = g;
        if (!(ranks[g].size >= 0)) ranks[g].size = -1; /* NaN is last */
    }
    qsort(ranks, (size_t)m->n, sizeof *ranks, larger_first);
}

fth_status gs_dotsplat_write(const gs_model *m, gs_put_rows *put, void *self, fth_err *err)
{
    enum { ROWS = 1024 };
    record rows[ROWS];
    void *block = NULL;
    FTH_TRY(fth_mem_take(m->mem, FTH_MEM_ANY, (uint64_t)m->n * sizeof(rank), "the order of rows",
                         &block, err));
    rank *ranks = block;
    fth_status s = FTH_OK;
    order(m, ranks);
    for (int64_t from = 0; s == FTH_OK && from < m->n; from += ROWS) {
        const int64_t n = m->n - from < ROWS ? m->n - from : ROWS;
        for (int64_t i = 0; i < n; i++) make_row(m, ranks[from + i].row, &rows[i]);
        s = put(self, from, n, rows, err);
    }
    (void)fth_mem_release(m->mem, block, NULL);
    return s;
}

static fth_status put_rows(void *self, int64_t from, int64_t n, const void *rows, fth_err *err)
{
    fth_sink *sink = self;
    return sink->write(sink->self, (int64_t[]){from, 0}, (int64_t[]){n, RECORD}, rows, err);
}

static fth_status save(const gs_model *m, const char *path, fth_err *err)
{
    const fth_raw_layout layout = {.dtype = FTH_U8, .n_axes = 2, .size = {m->n, RECORD}};
    fth_sink sink;
    FTH_TRY(fth_raw_create(&sink, m->mem, path, &layout, NULL, err));
    fth_status s = gs_dotsplat_write(m, put_rows, &sink, err);
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    return s;
}

const gs_format_row gs_dotsplat_format = {"splat", ".splat", is, look, load, save};
