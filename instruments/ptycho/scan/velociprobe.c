/* velociprobe.c - Eiger files of the APS Velociprobe: frames behind links, positions in a table.
 *
 * The table (positions.file) has 8 columns in nm: samz, samx, samy, zpx, zpy, encoder y, encoder x
 * and the number of the trigger; a pattern is at the mean of its trigger's lines.
 */
#include "hdf5.h"

#include <fathom/reader.h>
#include <math.h>
#include <string.h>

#define DETECTOR "/entry/instrument/detector"
enum { COLUMNS = 8, COLUMN_X = 1, COLUMN_Y = 5, COLUMN_TRIGGER = 7, MOST_PARTS = 100000 };

/* ---- positions ---- */

typedef struct table {
    double *x, *y;          /* [most] sums, then means, in nm */
    int64_t most, n, lines; /* triggers so far, and lines of the last */
    double trigger;
} table;

static void end_trigger(table *t)
{
    if (t->n == 0) return;
    t->x[t->n - 1] /= (double)t->lines;
    t->y[t->n - 1] /= (double)t->lines;
}

static fth_status add_line(const pt_draft *d, table *t, const double v[COLUMNS], fth_err *err)
{
    if (t->n == 0 || v[COLUMN_TRIGGER] != t->trigger) {
        end_trigger(t);
        if (t->n == t->most)
            return FTH_FAIL(
                err, FTH_E_FILE_SHAPE, "%s: more than %lld triggers, and %s has %lld frames",
                d->opt->position_file, (long long)t->most, d->scan->path, (long long)t->most);
        t->x[t->n] = t->y[t->n] = 0;
        t->n++;
        t->lines = 0;
        t->trigger = v[COLUMN_TRIGGER];
    }
    t->x[t->n - 1] += v[COLUMN_X];
    t->y[t->n - 1] += v[COLUMN_Y];
    t->lines++;
    return FTH_OK;
}

static fth_status read_lines(const pt_draft *d, fth_reader *r, table *t, fth_err *err)
{
    fth_text_line line;
    fth_text_field f;
    for (;;) {
        double v[COLUMNS];
        int n = 0;
        FTH_TRY(fth_reader_next(r, &line, err));
        if (!line.text) break;
        if (line.n == 0) continue;
        for (; n < COLUMNS && fth_text_column_next(&line, ',', &f); n++)
            FTH_TRY(fth_reader_real(r, &f, -1e15, 1e15, &v[n], err));
        if (n < COLUMNS)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s:%lld: %d columns, expected %d",
                            d->opt->position_file, (long long)line.number, n, COLUMNS);
        FTH_TRY(add_line(d, t, v, err));
    }
    end_trigger(t);
    return FTH_OK;
}

static fth_status read_positions(pt_draft *d, int64_t count, fth_err *err)
{
    pt_scan *scan = d->scan;
    fth_reader r;
    void *x = NULL, *y = NULL;
    if (!d->opt->position_file[0]) {
        FTH_FAIL(err, FTH_E_FILE_KEY, "%s: an Eiger file has no positions", scan->path);
        fth_err_hint(err, "give their table with --positions.file FILE.csv");
        return FTH_E_FILE_KEY;
    }
    FTH_TRY(pt_scan_hold(scan, (uint64_t)count * sizeof(double), "x", &x, err));
    FTH_TRY(pt_scan_hold(scan, (uint64_t)count * sizeof(double), "y", &y, err));
    table t = {.x = x, .y = y, .most = count};
    FTH_TRY(fth_reader_open(&r, scan->mem, d->opt->position_file, NULL, err));
    const fth_status s = read_lines(d, &r, &t, err);
    fth_reader_close(&r);
    FTH_TRY(s);
    scan->x = scan->start_x = t.x;
    scan->y = scan->start_y = t.y;
    d->unit_m = 1e-9;
    if (t.n == count) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s has %lld triggers, and %s has %lld frames",
                    d->opt->position_file, (long long)t.n, scan->path, (long long)count);
}

/* ---- frames ---- */

static fth_status open_parts(pt_draft *d, fth_h5 *h5, const fth_texts *names, fth_source *part,
                             int64_t *n, fth_err *err)
{
    char place[200];
    for (int64_t i = 0; i < fth_texts_count(names); i++) {
        const char *name = fth_texts_get(names, i);
        if (strncmp(name, "data_", 5) != 0) continue;
        snprintf(place, sizeof place, "/entry/data/%.100s", name);
        if (fth_h5_kind_of(h5, place) != FTH_H5_DATASET) {
            FTH_TRY(pt_scan_warn(d->scan, err, "'%s' is a broken link and is ignored", place));
            continue;
        }
        FTH_TRY(fth_h5_source(h5, place, &part[*n], err));
        (*n)++;
    }
    if (*n > 0) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: no dataset '/entry/data/data_...' can be opened",
                    d->scan->path);
}

static fth_status join(pt_draft *d, fth_h5 *h5, fth_source *out, fth_err *err)
{
    fth_texts *names = NULL;
    void *block = NULL;
    int64_t n = 0;
    FTH_TRY(fth_h5_list(h5, "/entry/data", &names, err));
    const int64_t most = fth_texts_count(names);
    fth_status s = most > MOST_PARTS ? FTH_FAIL(err, FTH_E_FILE_FEATURE, "%s: %lld parts",
                                                d->scan->path, (long long)most)
                                     : FTH_OK;
    if (s == FTH_OK)
        s = fth_mem_take(d->scan->mem, FTH_MEM_META, (uint64_t)(most + 1) * sizeof(fth_source),
                         "parts", &block, err);
    fth_source *part = block;
    if (s == FTH_OK) s = open_parts(d, h5, names, part, &n, err);
    if (s == FTH_OK)
        s = pt_concat_view(d->scan, part, n, out, err);
    else
        while (n-- > 0) fth_source_close(&part[n]);
    fth_mem_release(d->scan->mem, block, NULL);
    fth_texts_free(names);
    return s;
}

fth_status pt_read_velociprobe(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    pt_meta *m = &d->scan->meta;
    fth_source frames;
    FTH_TRY(join(d, h5, &frames, err));
    FTH_TRY(read_positions(d, frames.size[0], err));
    FTH_TRY(pt_h5_number(d, h5, DETECTOR "/detectorSpecific/photon_energy", PT_PLAIN, &m->energy_eV,
                         err));
    FTH_TRY(pt_h5_number(d, h5, DETECTOR "/detector_distance", PT_LENGTH, &m->distance_m, err));
    FTH_TRY(pt_h5_number(d, h5, DETECTOR "/x_pixel_size", PT_LENGTH, &m->detector_pixel_m, err));
    FTH_TRY(pt_h5_number(d, h5, DETECTOR "/beam_center_x", PT_PLAIN, &d->centre_x, err));
    FTH_TRY(pt_h5_number(d, h5, DETECTOR "/beam_center_y", PT_PLAIN, &d->centre_y, err));
    d->slow = true;
    FTH_TRY(pt_set_patterns_of(d, &frames, "/entry/data", frames.size[0], err));
    return pt_h5_mask(d, h5, DETECTOR "/detectorSpecific/pixel_mask " DETECTOR "/pixel_mask", err);
}
