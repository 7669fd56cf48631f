/* source.c - the pixels of a list of stacks, as one source [stack z y x].
 *
 * A rectangle is read stack by stack, and within a stack all its planes with one read of the file
 * where they lie in one file. Planes that do not exist read as zeros.
 */
#include "input.h"

#include "reopen.h"

#include <math.h>
#include <string.h>

/* Rows and columns of a rectangle. */
typedef struct window {
    int64_t y, rows, x, columns;
} window;

static int64_t plane_bytes(const fo_input *in, const window *w)
{
    return w->rows * w->columns * fth_dtype_size(in->dtype);
}

/* Planes [z, z + n) of a stack in a file; z counts those of the file. */
static fth_status read_planes(const fo_file *f, const fth_source *source, const fo_stack *s,
                              int64_t c, int64_t z, int64_t n, const window *w, void *dst,
                              fth_err *err)
{
    const int64_t first[FO_AXES] = {s->b, s->t, s->p, z, c, w->y, w->x};
    const int64_t count[FO_AXES] = {1, 1, 1, n, 1, w->rows, w->columns};
    int64_t lo[FTH_MAX_AXES] = {0}, extent[FTH_MAX_AXES];
    for (int a = 0; a < FTH_MAX_AXES; a++) extent[a] = 1;
    for (int a = 0; a < FO_AXES; a++)
        if (f->axis_of[a] >= 0) {
            lo[f->axis_of[a]] = first[a];
            extent[f->axis_of[a]] = count[a];
        }
    return source->read(source->self, lo, extent, dst, err);
}

/* Luminance of linear RGB, weights of ITU-R 709 as scikit-image has them. */
static double grey_of(double r, double g, double b)
{
    return 0.2125 * r + 0.7154 * g + 0.0721 * b;
}

static void mix(const void *rgb, int64_t n, fth_dtype dtype, void *dst)
{
    if (dtype == FTH_U8) {
        const uint8_t *v = rgb;
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = (uint8_t)(grey_of(v[i], v[i + n], v[i + 2 * n]) + 0.5);
    } else if (dtype == FTH_U16) {
        const uint16_t *v = rgb;
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)dst)[i] = (uint16_t)(grey_of(v[i], v[i + n], v[i + 2 * n]) + 0.5);
    } else {
        const float *v = rgb;
        for (int64_t i = 0; i < n; i++)
            ((float *)dst)[i] =
                (float)grey_of((double)v[i], (double)v[i + n], (double)v[i + 2 * n]);
    }
}

/* Colour planes become grey one after the other, through the one buffer of the input. */
static fth_status read_grey(fo_input *in, const fo_file *f, const fth_source *source,
                            const fo_stack *s, int64_t z, int64_t n, const window *w, char *dst,
                            fth_err *err)
{
    const int64_t bytes = plane_bytes(in, w);
    for (int64_t i = 0; i < n; i++, dst += bytes) {
        for (int c = 0; c < 3; c++)
            FTH_TRY(read_planes(f, source, s, c, z + i, 1, w, (char *)in->grey + c * bytes, err));
        mix(in->grey, w->rows * w->columns, in->dtype, dst);
    }
    return FTH_OK;
}

static fth_status read_file(fo_input *in, const fo_file *f, const fo_stack *s, int64_t z, int64_t n,
                            const window *w, void *dst, fth_err *err)
{
    fth_source again = {0};
    const fth_source *source = &f->source;
    if (!in->keep_open) {
        FTH_TRY(fo_reopener_open(in->reopener, f, in->selection, &again, err));
        source = &again;
    }
    const fth_status status = f->rgb ? read_grey(in, f, source, s, z, n, w, dst, err)
                                     : read_planes(f, source, s, s->c, z, n, w, dst, err);
    if (!in->keep_open) fo_reopener_close(in->reopener, &again);
    return status;
}

/* The same of a grid: every plane is a file of its own, or there is none. */
static fth_status read_grid(fo_input *in, int64_t number, int64_t z, int64_t n, const window *w,
                            char *dst, fth_err *err)
{
    const int64_t bytes = plane_bytes(in, w);
    const fo_stack first = {.c = (int32_t)in->file[0].channel};
    for (int64_t i = 0; i < n; i++, dst += bytes) {
        const int32_t name = in->plane[number * in->file_planes + z + i + in->first_plane];
        fo_file f = in->file[0];
        memset(dst, 0, (size_t)bytes);
        if (name < 0) continue;
        f.path = fth_texts_get(in->names, name);
        FTH_TRY(read_file(in, &f, &first, 0, 1, w, dst, err));
    }
    return FTH_OK;
}

/* Planes [z, z + n) of a stack, counted from the first that is used. */
static fth_status read_stack(fo_input *in, const fo_stack *s, int64_t z, int64_t n, const window *w,
                             char *dst, fth_err *err)
{
    const int64_t bytes = plane_bytes(in, w);
    const int64_t have = z >= s->planes ? 0 : (s->planes - z < n ? s->planes - z : n);
    memset(dst + have * bytes, 0, (size_t)((n - have) * bytes));
    if (have == 0) return FTH_OK;
    if (!in->of_planes)
        return read_file(in, &in->file[s->file], s, z + in->first_plane, have, w, dst, err);
    for (int64_t i = 0; i < have; i++, dst += bytes) {
        const fo_file *f = &in->file[z + i + in->first_plane];
        fo_stack of_file = *s;
        if (s->c == in->stack[0].c) of_file.c = (int32_t)f->channel;
        FTH_TRY(read_file(in, f, &of_file, 0, 1, w, dst, err));
    }
    return FTH_OK;
}

/* NaN would win or lose every comparison. */
static fth_status check_finite(const fo_input *in, const fo_stack *s, int64_t z, int64_t n,
                               const window *w, const float *v, fth_err *err)
{
    const int64_t plane = w->rows * w->columns;
    for (int64_t i = 0; i < n * plane; i++) {
        if (isfinite(v[i])) continue;
        const int64_t at = z + i / plane, place = i % plane;
        const fo_file *f = &in->file[in->of_planes ? at + in->first_plane : s->file];
        FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: plane %lld has %s at y=%lld x=%lld", f->path,
                 (long long)(at + in->first_plane), isnan(v[i]) ? "NaN" : "infinity",
                 (long long)(w->y + place / w->columns), (long long)(w->x + place % w->columns));
        fth_err_hint(err, "replace such values before, or leave the plane out with --z-range");
        return FTH_E_FILE_FORMAT;
    }
    return FTH_OK;
}

static fth_status read_view(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    fo_input_view *view = self;
    fo_input *in = view->input;
    const window w = {lo[2], n[2], lo[3], n[3]};
    char *at = dst;
    for (int64_t i = lo[0]; i < lo[0] + n[0]; i++, at += n[1] * plane_bytes(in, &w)) {
        const int64_t number = view->chosen ? view->chosen[i] : i;
        fo_stack stack = in->stack[number];
        if (view->other > 0) stack.c = (int32_t)(view->other - (view->other <= stack.c));
        fth_status s = in->plane ? read_grid(in, number, lo[1], n[1], &w, at, err)
                                 : read_stack(in, &stack, lo[1], n[1], &w, at, err);
        if (s == FTH_OK && in->dtype == FTH_F32)
            s = check_finite(in, &stack, lo[1], n[1], &w, (const float *)(const void *)at, err);
        if (s == FTH_OK) continue;
        view->failed = number;
        return s;
    }
    return FTH_OK;
}

fth_source fo_input_source(fo_input_view *view)
{
    const fo_input *in = view->input;
    view->failed = -1;
    fth_source out = {.kind = "stacks",
                      .self = view,
                      .dtype = in->dtype,
                      .n_axes = 4,
                      .size = {view->chosen ? view->n : in->n_stacks,
                               view->planes ? view->planes : in->planes, in->rows, in->columns},
                      .read = read_view,
                      .concurrent = in->grey == NULL};
    for (int64_t i = 0; i < in->n_files; i++) {
        const fth_source *f = &in->file[i].source;
        out.libraries |= f->libraries;
        if (f->n_axes > 1 && f->part[f->n_axes - 2] > out.part[2])
            out.part[2] = f->part[f->n_axes - 2]; /* rows that are decoded together */
        if (in->keep_open && !f->concurrent) out.concurrent = false;
        if (f->billed_bytes > out.billed_bytes) out.billed_bytes = f->billed_bytes;
    }
    if (in->reopener) out.thread_bytes = fo_reopener_bytes(in->reopener);
    return out;
}
