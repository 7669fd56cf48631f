/* ptyd.c - files of ptypy: chunks of frames with positions (y, x) in metres. */
#include "hdf5.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHUNKS = 100000 };

typedef struct chunks {
    fth_texts *names;
    int64_t n;
    int64_t *order; /* by number: "10" comes after "9" */
} chunks;

static int64_t number_of(const char *name)
{
    return strtoll(name, NULL, 10);
}

static fth_status list_chunks(pt_draft *d, fth_h5 *h5, chunks *c, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_h5_list(h5, "/chunks", &c->names, err));
    c->n = fth_texts_count(c->names);
    if (c->n < 1 || c->n > MOST_CHUNKS)
        return FTH_FAIL(err, FTH_E_FILE_KEY, "%s: '/chunks' has %lld chunks; expected 1 to %d",
                        d->scan->path, (long long)c->n, MOST_CHUNKS);
    FTH_TRY(pt_scan_hold(d->scan, (uint64_t)c->n * sizeof(int64_t), "chunks", &block, err));
    c->order = block;
    for (int64_t i = 0; i < c->n; i++) {
        int64_t j = i;
        for (; j > 0 && number_of(fth_texts_get(c->names, c->order[j - 1])) >
                            number_of(fth_texts_get(c->names, i));
             j--)
            c->order[j] = c->order[j - 1];
        c->order[j] = i;
    }
    return FTH_OK;
}

static void place_of(const chunks *c, int64_t i, const char *leaf, char *place, size_t bytes)
{
    snprintf(place, bytes, "/chunks/%.100s/%s", fth_texts_get(c->names, c->order[i]), leaf);
}

/* Frames, or weights, of all chunks as one source. */
static fth_status join(pt_draft *d, fth_h5 *h5, const chunks *c, const char *leaf, fth_source *out,
                       fth_err *err)
{
    char place[200];
    void *block = NULL;
    FTH_TRY(fth_mem_take(d->scan->mem, FTH_MEM_META, (uint64_t)c->n * sizeof(fth_source), "chunks",
                         &block, err));
    fth_source *part = block;
    fth_status s = FTH_OK;
    int64_t n = 0;
    for (; s == FTH_OK && n < c->n; n++) {
        place_of(c, n, leaf, place, sizeof place);
        s = fth_h5_source(h5, place, &part[n], err);
        if (s != FTH_OK) break;
    }
    if (s == FTH_OK)
        s = pt_concat_view(d->scan, part, n, out, err);
    else
        while (n-- > 0) fth_source_close(&part[n]);
    fth_mem_release(d->scan->mem, block, NULL);
    return s;
}

static fth_status read_positions(pt_draft *d, fth_h5 *h5, const chunks *c, int64_t count,
                                 fth_err *err)
{
    pt_scan *scan = d->scan;
    char place[200];
    void *x = NULL, *y = NULL;
    int64_t at = 0;
    FTH_TRY(pt_scan_hold(scan, (uint64_t)count * sizeof(double), "x", &x, err));
    FTH_TRY(pt_scan_hold(scan, (uint64_t)count * sizeof(double), "y", &y, err));
    scan->x = scan->start_x = x;
    scan->y = scan->start_y = y;
    for (int64_t i = 0; i < c->n; i++) {
        double *v = NULL, *u = NULL;
        int64_t n = 0, m = 0;
        place_of(c, i, "positions", place, sizeof place);
        FTH_TRY(pt_h5_column(d, h5, place, 0, &v, &n, err));
        FTH_TRY(pt_h5_column(d, h5, place, 1, &u, &m, err));
        if (n > count - at)
            return FTH_FAIL(err, FTH_E_FILE_SHAPE,
                            "%s: up to '%s' there are %lld positions for %lld "
                            "frames",
                            scan->path, place, (long long)(at + n), (long long)count);
        memcpy(scan->y + at, v, (size_t)n * sizeof *v);
        memcpy(scan->x + at, u, (size_t)n * sizeof *u);
        at += n;
    }
    if (at == count) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s: there are %lld positions for %lld frames",
                    scan->path, (long long)at, (long long)count);
}

/* Weights of chunks are as large as their frames, or empty. */
static bool has_weights(fth_h5 *h5, const chunks *c)
{
    char place[200];
    fth_source s;
    place_of(c, 0, "weights", place, sizeof place);
    if (fth_h5_kind_of(h5, place) != FTH_H5_DATASET) return false;
    if (fth_h5_source(h5, place, &s, NULL) != FTH_OK) return false;
    bool any = s.n_axes == 3;
    for (int a = 0; a < s.n_axes; a++) any = any && s.size[a] > 0;
    fth_source_close(&s);
    return any;
}

static fth_status read_chunks(pt_draft *d, fth_h5 *h5, const chunks *c, fth_err *err)
{
    pt_scan *scan = d->scan;
    pt_meta *m = &scan->meta;
    double keV = (double)NAN;
    fth_source frames;
    FTH_TRY(join(d, h5, c, "data", &frames, err));
    FTH_TRY(read_positions(d, h5, c, frames.size[0], err));
    d->unit_m = 1;
    d->own_rule = PT_MASK_GOOD; /* weights: 0 is not used */
    FTH_TRY(pt_h5_number(d, h5, "/meta/energy /info/energy", PT_PLAIN, &keV, err));
    FTH_TRY(pt_h5_number(d, h5, "/meta/distance /info/distance", PT_PLAIN, &m->distance_m, err));
    FTH_TRY(pt_h5_number(d, h5, "/meta/psize /info/psize", PT_PLAIN, &m->detector_pixel_m, err));
    m->energy_eV = 1e3 * keV;
    const int64_t count = frames.size[0];
    fth_source held = frames; /* of the scan already: nothing to close */
    FTH_TRY(pt_set_patterns_of(d, &held, "/chunks/data", count, err));
    if (!has_weights(h5, c)) /* one for all frames, or none */
        return pt_h5_mask(d, h5, "/common/weight2d /meta/weight2d", err);
    FTH_TRY(join(d, h5, c, "weights", &frames, err));
    return pt_set_masks_of(d, &frames, "/chunks/weights", err);
}

fth_status pt_read_ptyd(pt_draft *d, fth_h5 *h5, fth_err *err)
{
    chunks c = {0};
    fth_status s = list_chunks(d, h5, &c, err);
    if (s == FTH_OK) s = read_chunks(d, h5, &c, err);
    fth_texts_free(c.names);
    return s;
}
