/* table.c - the soundings of a real survey: a CSV file of any length. Every error names file, line
 * and column. */
#include "survey.h"

#include <string.h>

static const char heading[] = "x,y,depth";

static fth_status read_rows(fth_reader *r, const fth_sink *sink, int64_t *n,
                            const fth_stage_call *call, fth_err *err)
{
    const double side = fth_config_real(call->config, "survey.size");
    const double low[SO_COLUMNS] = {0, 0, -1e5}, high[SO_COLUMNS] = {side, side, 1e5};
    fth_text_line line;
    FTH_TRY(fth_reader_next(r, &line, err));
    const fth_text_field head = {line.text ? line.text : "", line.n, 1, 1};
    if (strcmp(head.text, heading) != 0)
        return fth_reader_fail(r, &head, "the heading x,y,depth", err);
    const fth_status s = fth_stage_read_rows(call, r, ',', low, high, heading, sink, n, err);
    if (s == FTH_E_FILE_SHAPE)
        fth_err_hint(err, "raise survey.cells to at least the number of its rows");
    if (s != FTH_OK || *n > 0) return s;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: no soundings; at least one is needed", r->path);
}

fth_status so_table_read(fth_scratch **table, fth_source *rows, const fth_stage_call *call,
                         fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->context);
    const int64_t size[2] = {fth_config_int(call->config, "survey.cells"), SO_COLUMNS};
    const char *dir = fth_context_scratch_dir(call->context);
    fth_reader reader;
    FTH_TRY(fth_scratch_create(table, mem, dir ? dir : call->output_dir, "soundings", FTH_F32, 2,
                               size, err));
    const fth_sink sink = fth_scratch_sink(*table);
    *rows = fth_scratch_source(*table);
    const char *path = fth_config_text(call->config, "survey.file");
    fth_status s = fth_reader_open(&reader, mem, path, NULL, err);
    if (s == FTH_OK) s = read_rows(&reader, &sink, &rows->size[0], call, err);
    fth_reader_close(&reader);
    if (s != FTH_OK) fth_scratch_destroy(*table);
    return s;
}
