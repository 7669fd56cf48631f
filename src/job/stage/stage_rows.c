/* stage_rows.c - stream a text table of any length into an array, some rows at a time: neither is
 * ever whole in memory. */
#include "base/assert.h"

#include <fathom/stage.h>

/* COLUMNS: most numbers in a row. BATCH: numbers that are written at once, 16 KiB. */
enum { COLUMNS = 64, BATCH = 4096 };

typedef struct rows {
    const fth_stage_call *call;
    const fth_sink *sink;
    float number[BATCH];
    int64_t written, n; /* rows in the array, and rows that wait */
} rows;

static fth_status write_batch(rows *g, fth_err *err)
{
    const int64_t lo[2] = {g->written, 0}, n[2] = {g->n, g->sink->size[1]};
    FTH_ASSERT(g->n * n[1] <= BATCH && g->written + g->n <= g->sink->size[0]);
    if (g->n > 0) FTH_TRY(g->sink->write(g->sink->self, lo, n, g->number, err));
    g->written += g->n;
    g->n = 0;
    return fth_stage_step(g->call, &(fth_stage_progress){.done = g->written, .what = "row"}, err);
}

fth_status fth_stage_read_rows(const fth_stage_call *call, fth_reader *reader, char separator,
                               const double *low, const double *high, const char *expected,
                               const fth_sink *sink, int64_t *n_rows, fth_err *err)
{
    rows g = {.call = call, .sink = sink};
    fth_text_line line;
    double v[COLUMNS];
    const int columns = sink->n_axes == 2 ? (int)sink->size[1] : 0;
    if (columns < 1 || columns > COLUMNS || sink->dtype != FTH_F32)
        return FTH_FAIL(err, FTH_E_USAGE, "rows of numbers go to f32 [rows, 1 to %d columns]",
                        (int)COLUMNS);
    for (;;) {
        FTH_TRY(fth_reader_next(reader, &line, err));
        if (!line.text) break;
        if (line.n == 0) continue;
        if (g.written + g.n == sink->size[0])
            return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s:%lld: only %lld rows were expected",
                            reader->path, (long long)line.number, (long long)sink->size[0]);
        FTH_TRY(fth_reader_row(reader, &line, separator, columns, low, high, v, expected, err));
        for (int i = 0; i < columns; i++) g.number[g.n * columns + i] = (float)v[i];
        if ((++g.n + 1) * columns > BATCH) FTH_TRY(write_batch(&g, err));
    }
    FTH_TRY(write_batch(&g, err));
    *n_rows = g.written;
    return FTH_OK;
}
