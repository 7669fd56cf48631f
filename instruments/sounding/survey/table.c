/* table.c - the soundings of a real survey: a CSV file of any length. Every error names file, line
 * and column. */
#include "survey.h"

#include <string.h>

enum { BATCH = 1024 }; /* rows that are written at once */

static const char heading[] = "x,y,depth";

typedef struct reading {
    const fth_stage_call *call;
    fth_sink sink;
    fth_reader reader;
    double low[SO_COLUMNS], high[SO_COLUMNS];
    float row[BATCH][SO_COLUMNS];
    int64_t written, n; /* rows in the array, and rows that wait */
} reading;

static fth_status write_rows(reading *g, fth_err *err)
{
    const int64_t lo[2] = {g->written, 0}, n[2] = {g->n, SO_COLUMNS};
    if (g->n > 0) FTH_TRY(g->sink.write(g->sink.self, lo, n, g->row, err));
    g->written += g->n;
    g->n = 0;
    return fth_stage_step(g->call, &(fth_stage_progress){.done = g->written, .what = "row"}, err);
}

static fth_status read_row(reading *g, fth_text_line *line, fth_err *err)
{
    double v[SO_COLUMNS];
    if (g->written + g->n == g->sink.size[0]) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s:%lld: only %lld soundings were expected",
                 g->reader.path, (long long)line->number, (long long)g->sink.size[0]);
        fth_err_hint(err, "raise survey.cells to at least the number of its rows");
        return FTH_E_FILE_SHAPE;
    }
    FTH_TRY(fth_reader_row(&g->reader, line, ',', SO_COLUMNS, g->low, g->high, v, heading, err));
    for (int i = 0; i < SO_COLUMNS; i++) g->row[g->n][i] = (float)v[i];
    return ++g->n == BATCH ? write_rows(g, err) : FTH_OK;
}

static fth_status read_rows(reading *g, fth_err *err)
{
    fth_text_line line;
    FTH_TRY(fth_reader_next(&g->reader, &line, err));
    const fth_text_field head = {line.text ? line.text : "", line.n, 1, 1};
    if (strcmp(head.text, heading) != 0)
        return fth_reader_fail(&g->reader, &head, "the heading x,y,depth", err);
    for (;;) {
        FTH_TRY(fth_reader_next(&g->reader, &line, err));
        if (!line.text) break;
        if (line.n > 0) FTH_TRY(read_row(g, &line, err));
    }
    FTH_TRY(write_rows(g, err));
    if (g->written > 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: it has no soundings, one or more are expected",
                    g->reader.path);
}

const char *so_table_path(const fth_config *cfg)
{
    return fth_config_has(cfg, "survey.file") ? fth_config_text(cfg, "survey.file") : NULL;
}

fth_status so_table_read(fth_scratch **rows, int64_t *n, const fth_stage_call *call, fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->context);
    const int64_t size[2] = {fth_config_int(call->config, "survey.cells"), SO_COLUMNS};
    const double side = fth_config_real(call->config, "survey.size");
    const char *dir = fth_context_scratch_dir(call->context);
    reading g = {.call = call, .high = {side, side, 1e5}, .low = {0, 0, -1e5}};
    FTH_TRY(fth_scratch_create(rows, mem, dir ? dir : call->output_dir, "soundings", FTH_F32, 2,
                               size, err));
    g.sink = fth_scratch_sink(*rows);
    fth_status s = fth_reader_open(&g.reader, mem, so_table_path(call->config), NULL, err);
    if (s == FTH_OK) s = read_rows(&g, err);
    fth_reader_close(&g.reader);
    if (s != FTH_OK) fth_scratch_destroy(*rows);
    *n = g.written;
    return s;
}
