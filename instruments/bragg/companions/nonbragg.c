/* nonbragg.c - `fathom bragg nonbragg`: images of samples without a lattice, such as air, water and
 * ice, and the table of F recovered from an image.
 *
 * Forward it is a render with an operation of its own and the output files of any image. Inverted,
 * every pixel gives one F, and those of one table row are pooled. A median needs all its values, so
 * they are kept in memory, twice four bytes per pixel, and counted in the plan.
 */
#include "nonbragg.h"
#include "../image/image.h"
#include "../read/read.h"
#include "nonbragg_flags.h"

#include <math.h>
#include <string.h>

/* ---- inputs of both directions ---- */

br_diffuse br_diffuse_inputs(fth_graph *g, const br_experiment *e, const br_stol *stol)
{
    br_diffuse in = {0};
    fth_axis(g, "slow", e->scene.slow);
    fth_axis(g, "fast", e->scene.fast);
    fth_axis(g, "param", BR_PARAMS);
    fth_axis(g, "source", e->scene.sources);
    fth_axis(g, "source_column", BR_SRC_COLUMNS);
    fth_axis(g, "stol_row", fth_tensor_size(stol->table, 0));
    fth_axis(g, "stol_column", BR_STOL_COLUMNS);
    in.param = fth_input(g, "param", FTH_F64, "param",
                         ((fth_source){.kind = "parameters",
                                       .dtype = FTH_F64,
                                       .n_axes = 1,
                                       .size = {BR_PARAMS},
                                       .self = (void *)(uintptr_t)e->param,
                                       .data = (void *)(uintptr_t)e->param}));
    in.source =
        fth_input(g, "source", FTH_F64, "source source_column", fth_tensor_source(e->source));
    in.stol = fth_input(g, "stol", FTH_F64, "stol_row stol_column", fth_tensor_source(stol->table));
    if (e->scene.masked) in.mask = fth_input(g, "mask", FTH_U16, "slow fast", e->mask);
    return in;
}

/* ---- forward ---- */

typedef struct forward {
    const br_call *call;
    const br_nonbragg *n;
    fth_answer *show; /* --plan */
    br_files files;
    fth_source image;
    br_statistics stats;
    int64_t at; /* of the largest pixel */
} forward;

static fth_status render(forward *f, fth_err *err)
{
    const br_experiment *e = &f->n->e;
    br_statistics *st = &f->stats;
    br_sweep sweep = {.ctx = f->call->ctx, .graph = fth_graph_create(f->call->ctx)};
    const br_diffuse in = br_diffuse_inputs(sweep.graph, e, &f->n->table);
    const fth_val image = fth_label(
        br_diffuse_render(&e->scene, &in, f->n->molecules, f->n->amplitude != 0), "image");
    const fth_val wide = fth_cast(image, FTH_F64);
    fth_axis(sweep.graph, "pixel", e->scene.slow * e->scene.fast);
    fth_sink sink = {0};
    if (!f->show) {
        const fth_status s = br_files_image(&f->files, e, &sink, err);
        if (s != FTH_OK) {
            br_sweep_drop(&sweep);
            return s;
        }
    }
    br_sweep_add(&sweep, image, sink, false);
    br_sweep_add(&sweep, fth_sum(wide, "slow fast"), fth_scalar_sink(FTH_F64, &st->sum), false);
    br_sweep_add(&sweep, fth_sum(fth_sqr(wide), "slow fast"),
                 fth_scalar_sink(FTH_F64, &st->sum_sqr), false);
    br_sweep_add(&sweep, fth_rmax(image, "slow fast"), fth_scalar_sink(FTH_F32, &st->max), false);
    br_sweep_add(&sweep, fth_argmax(fth_merge(image, "slow fast", "pixel"), "pixel"),
                 fth_scalar_sink(FTH_I64, &f->at), false);
    return br_sweep_end(&sweep, "image", f->show, err);
}

static void finish(forward *f)
{
    const br_scene *s = &f->n->e.scene;
    br_statistics *st = &f->stats;
    const int64_t wide = s->roi[1] - s->roi[0] + 1, high = s->roi[3] - s->roi[2] + 1;
    st->pixels = st->roi_pixels = wide > 0 && high > 0 ? wide * high : 0;
    st->max_fast = f->at % s->fast;
    st->max_slow = f->at / s->fast;
    br_statistics_finish(st, s);
}

static fth_status spread(forward *f, fth_err *err)
{
    const br_experiment *e = &f->n->e;
    br_sweep sweep = {.ctx = f->call->ctx, .graph = fth_graph_create(f->call->ctx)};
    double squares = 0;
    fth_axis(sweep.graph, "slow", e->scene.slow);
    fth_axis(sweep.graph, "fast", e->scene.fast);
    const fth_val image = fth_input(sweep.graph, "image", FTH_F32, "slow fast", f->image);
    const fth_val off =
        fth_sub(fth_cast(image, FTH_F64), fth_const(sweep.graph, FTH_F64, f->stats.average));
    const fth_val in = br_within(&e->scene, fth_sqr(off), fth_const(sweep.graph, FTH_F64, 0));
    br_sweep_add(&sweep, fth_sum(in, "slow fast"), fth_scalar_sink(FTH_F64, &squares), false);
    FTH_TRY(br_sweep_end(&sweep, "spread", NULL, err));
    f->stats.rmsd = sqrt(squares / (double)(f->stats.pixels > 1 ? f->stats.pixels - 1 : 1));
    br_statistics_scales(&f->stats, &e->out);
    return FTH_OK;
}

static fth_status store(forward *f, fth_err *err)
{
    const br_experiment *e = &f->n->e;
    const br_outputs *o = &e->out;
    br_pixel_sinks sinks = {0};
    FTH_TRY(br_files_pixels(&f->files, e, &f->stats, &sinks, err));
    br_sweep sweep = {.ctx = f->call->ctx, .graph = fth_graph_create(f->call->ctx)};
    fth_graph *g = sweep.graph;
    fth_axis(g, "slow", e->scene.slow);
    fth_axis(g, "fast", e->scene.fast);
    const fth_val image = fth_input(g, "image", FTH_F32, "slow fast", f->image);
    if (o->int_file[0])
        br_sweep_add(
            &sweep,
            br_int_pixels(&e->scene, image, fth_const(g, FTH_F64, f->stats.int_scale), o->adc),
            sinks.ints, false);
    if (o->pgm_file[0])
        br_sweep_add(&sweep, br_pgm_pixels(image, fth_const(g, FTH_F64, f->stats.pgm_scale)),
                     sinks.pgm, false);
    if (o->noise_file[0]) {
        const br_noise noise = br_noise_pixels(&e->scene, image, &e->random, e->noise_seed, o->adc);
        br_sweep_add(&sweep, noise.pixels, sinks.noise, false);
        br_sweep_add(&sweep, noise.photons, fth_scalar_sink(FTH_F64, &f->stats.photons), false);
        br_sweep_add(&sweep, noise.overloads, fth_scalar_sink(FTH_I64, &f->stats.overloads), false);
    }
    if (sweep.n) return br_sweep_end(&sweep, "pixels", NULL, err);
    br_sweep_drop(&sweep);
    return FTH_OK;
}

static void tell(const forward *f)
{
    const br_outputs *o = &f->n->e.out;
    const br_statistics *st = &f->stats;
    FILE *out = f->call->out;
    br_print_maximum(out, st);
    br_print_mean(out, st);
    if (o->float_file[0])
        fprintf(out, "writing %s as %lld 4-byte floats\n", o->float_file,
                (long long)(f->n->e.scene.fast * f->n->e.scene.slow));
    if (o->int_file[0])
        fprintf(out, "intfile_scale = %g\nwriting %s as 2-byte integers\n", st->int_scale,
                o->int_file);
    if (o->pgm_file[0])
        fprintf(out, "pgm_scale = %g\nwriting %s as 1-byte integers\n", st->pgm_scale, o->pgm_file);
    if (o->noise_file[0])
        fprintf(out,
                "%.0f photons on noise image (%lld overloads)\nwriting %s as 2-byte integers\n",
                st->photons, (long long)st->overloads, o->noise_file);
}

/* ---- the answer ---- */

static void tell_inputs(const br_call *call, const br_nonbragg *n)
{
    const char *const table[3] = {n->stol, n->stol4, n->q};
    for (int i = 0; i < 3; i++)
        if (*table[i]) fth_answer_file(call->answer, FTH_FILE_INPUT, table[i], -1, "table of F");
    if (*n->img) fth_answer_file(call->answer, FTH_FILE_INPUT, n->img, -1, "image");
}

static void tell_image(const forward *f)
{
    fth_answer *a = f->call->answer;
    tell_inputs(f->call, f->n);
    br_outputs_tell(&f->n->e, a);
    if (!a->json || a->plan) return;
    fth_json_writer *w = fth_answer_facts(a);
    fth_json_int(w, "fast", f->n->e.scene.fast);
    fth_json_int(w, "slow", f->n->e.scene.slow);
    fth_json_real(w, "max", (double)f->stats.max);
    fth_json_real(w, "mean", f->stats.average);
    fth_json_real(w, "rms", f->stats.rms);
    fth_json_real(w, "rmsd", f->stats.rmsd);
    if (!f->n->e.out.noise_file[0]) return;
    fth_json_real(w, "photons", f->stats.photons);
    fth_json_int(w, "overloads", f->stats.overloads);
}

static fth_status make_image(forward *f, fth_err *err)
{
    if (f->show) tell_image(f);
    FTH_TRY(render(f, err));
    if (f->show) {
        fth_answer_memory(f->show, 0, "planned");
        return FTH_OK;
    }
    finish(f);
    FTH_TRY(br_files_source(&f->files, &f->n->e, &f->image, err));
    FTH_TRY(spread(f, err));
    FTH_TRY(store(f, err));
    FTH_TRY(br_files_commit(&f->files, err));
    tell(f);
    tell_image(f);
    return FTH_OK;
}

static fth_status go_forward(const br_call *call, const br_nonbragg *n, fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->ctx);
    forward f = {.call = call, .n = n, .files = {.mem = mem}};
    f.show = call->answer->plan ? call->answer : NULL;
    FTH_TRY(br_outputs_check(&n->e.out, mem, err));
    const fth_status s = make_image(&f, err);
    if (!f.files.held) fth_source_close(&f.image);
    br_files_close(&f.files);
    return s;
}

/* ---- inverse ---- */

typedef struct backward {
    const br_call *call;
    const br_nonbragg *n;
    fth_answer *show;
    fth_source image;
    int64_t pooled;      /* pixels */
    fth_tensor *F, *row; /* f32, i32 [slow fast] */
} backward;

/* Photons f64 of the pixels of a file; NaN where the value is to be ignored. */
static fth_val photons_of(fth_graph *g, const backward *b)
{
    const br_nonbragg *n = b->n;
    fth_val v = fth_cast(fth_input(g, "img", b->image.dtype, "slow fast", b->image), FTH_F64);
    const fth_val none = fth_const(g, FTH_F64, (double)NAN);
    fth_val photons =
        fth_div(fth_sub(v, fth_const(g, FTH_F64, n->e.out.adc)), fth_const(g, FTH_F64, n->gain));
    for (int64_t i = 0; i < n->ignore.n; i++)
        photons = fth_select(fth_eq(v, fth_const(g, FTH_F64, n->ignore.v[i])), none, photons);
    return photons;
}

static fth_status find_amplitudes(backward *b, fth_err *err)
{
    const br_experiment *e = &b->n->e;
    br_sweep sweep = {.ctx = b->call->ctx, .graph = fth_graph_create(b->call->ctx)};
    const br_diffuse in = br_diffuse_inputs(sweep.graph, e, &b->n->table);
    const fth_val F =
        br_diffuse_amplitude(&e->scene, &in, photons_of(sweep.graph, b), b->n->molecules);
    br_sweep_add(&sweep, fth_label(F, "F"), fth_tensor_sink(b->F), false);
    br_sweep_add(&sweep, fth_label(fth_out(F, 1), "row"), fth_tensor_sink(b->row), false);
    return br_sweep_end(&sweep, "amplitudes", b->show, err);
}

/* Counts the pixels of each table row, then turns counts into start offsets. */
static int64_t count_rows(const backward *b, int64_t *start)
{
    const int64_t rows = b->n->table.rows,
                  pixels = fth_tensor_size(b->row, 0) * fth_tensor_size(b->row, 1);
    const int32_t *row = fth_tensor_data(b->row);
    int64_t total = 0;
    memset(start, 0, sizeof *start * (size_t)(rows + 1));
    for (int64_t i = 0; i < pixels; i++)
        if (row[i] >= 0) start[row[i]]++;
    for (int64_t r = 0; r <= rows; r++) {
        const int64_t n = start[r];
        start[r] = total;
        total += n;
    }
    return total;
}

/* Amplitudes, row by row of the table: start[r] moves to the end of row r. */
static void sort_rows(const backward *b, int64_t *start, float *sorted)
{
    const int64_t pixels = fth_tensor_size(b->row, 0) * fth_tensor_size(b->row, 1);
    const int32_t *row = fth_tensor_data(b->row);
    const float *F = fth_tensor_data(b->F);
    for (int64_t i = 0; i < pixels; i++)
        if (row[i] >= 0) sorted[start[row[i]]++] = F[i];
}

enum { LINE = 120, FEWEST = 100 };

/* One line for each row with enough pixels. */
static size_t write_lines(const backward *b, const int64_t *end, float *sorted, char *text)
{
    const br_stol *t = &b->n->table;
    const double *table = fth_tensor_data(t->table);
    size_t used = 0;
    for (int64_t r = 0; r < t->rows; r++) {
        const int64_t first = r > 0 ? end[r - 1] : 0, n = end[r] - first;
        if (n <= FEWEST) continue;
        const br_pool p = br_pool_of(sorted + first, n, !b->n->keep_all);
        used += (size_t)snprintf(text + used, LINE, "%g %g %g %g %g %lld\n",
                                 table[BR_STOL_COLUMNS * (r + BR_STOL_GUARD)] / t->unit, p.mean,
                                 p.rmsd, p.median, p.mad, (long long)n);
    }
    return used;
}

static fth_status store_bytes(fth_mem *mem, const char *path, fth_dtype dtype, int n_axes,
                              const int64_t *size, const void *data, fth_err *err)
{
    static const int64_t first[2] = {0, 0};
    fth_raw_layout layout = {.dtype = dtype, .n_axes = n_axes};
    fth_sink sink;
    memcpy(layout.size, size, sizeof *size * (size_t)n_axes);
    FTH_TRY(br_output_create(&sink, mem, path, &layout, NULL, err));
    fth_status s = sink.write(sink.self, first, size, data, err);
    if (s == FTH_OK && sink.commit) s = sink.commit(sink.self, err);
    fth_sink_close(&sink);
    return s;
}

static fth_status pool_rows(backward *b, int64_t *start, char *text, fth_err *err)
{
    fth_mem *mem = fth_context_mem(b->call->ctx);
    const int64_t total = count_rows(b, start);
    void *sorted = NULL;
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, sizeof(float) * (uint64_t)total, "F by row", &sorted, err));
    sort_rows(b, start, sorted);
    const int64_t bytes = (int64_t)write_lines(b, start, sorted, text);
    fth_mem_release(mem, sorted, NULL);
    FTH_TRY(store_bytes(mem, b->n->stolout, FTH_U8, 1, &bytes, text, err));
    b->pooled = total;
    fprintf(b->call->out, "%lld pixels pooled, writing %s\n", (long long)total, b->n->stolout);
    return FTH_OK;
}

static fth_status write_table(backward *b, fth_err *err)
{
    fth_mem *mem = fth_context_mem(b->call->ctx);
    const br_outputs *o = &b->n->e.out;
    const uint64_t rows = (uint64_t)b->n->table.rows + 1;
    const int64_t size[2] = {b->n->e.scene.slow, b->n->e.scene.fast};
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, rows * (sizeof(int64_t) + LINE), "rows", &block, err));
    int64_t *start = block;
    fth_status s = pool_rows(b, start, (char *)(start + rows), err);
    fth_mem_release(mem, block, NULL);
    if (s != FTH_OK || !b->n->amplitude || !o->float_file[0]) return s;
    s = store_bytes(mem, o->float_file, FTH_F32, 2, size, fth_tensor_data(b->F), err);
    if (s == FTH_OK) fprintf(b->call->out, "writing %s as 4-byte floats\n", o->float_file);
    return s;
}

static fth_status open_image(backward *b, fth_err *err)
{
    const br_nonbragg *n = b->n;
    fth_mem *mem = fth_context_mem(b->call->ctx);
    const int64_t size[2] = {n->e.scene.slow, n->e.scene.fast};
    br_image_header h;
    FTH_TRY(
        br_image_header_read(&h, mem, n->img, br_has(&n->e.scene, BR_QUIRK_HEADER_SUBSTRING), err));
    if (h.fast != size[1] || h.slow != size[0]) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s has %lld x %lld pixels, the detector %lld x %lld",
                 n->img, (long long)h.fast, (long long)h.slow, (long long)size[1],
                 (long long)size[0]);
        fth_err_hint(err, "leave -detpixels out: the image says its size");
        return FTH_E_FILE_SHAPE;
    }
    const fth_raw_layout wide = {.dtype = FTH_I32,
                                 .n_axes = 2,
                                 .size = {h.slow, h.fast},
                                 .offset = (uint64_t)h.bytes,
                                 .big_endian = h.big_endian};
    FTH_TRY(h.is_u32 ? fth_raw_open(&b->image, mem, n->img, &wide, err)
                     : br_image_open(&b->image, mem, n->img, &h, err));
    FTH_TRY(fth_tensor_create(&b->F, mem, "F", FTH_F32, 2, size, err));
    return fth_tensor_create(&b->row, mem, "row", FTH_I32, 2, size, err);
}

static void tell_table(const backward *b)
{
    fth_answer *a = b->call->answer;
    const br_scene *s = &b->n->e.scene;
    tell_inputs(b->call, b->n);
    fth_answer_file(a, FTH_FILE_OUTPUT, b->n->stolout, -1, "stol, mean, rmsd, median, mad, pixels");
    if (b->n->amplitude && br_output_is_file(b->n->e.out.float_file))
        fth_answer_file(a, FTH_FILE_OUTPUT, b->n->e.out.float_file, 4 * s->fast * s->slow,
                        "f32 %lld x %lld", (long long)s->slow, (long long)s->fast);
    if (a->json && !a->plan) fth_json_int(fth_answer_facts(a), "pixels", b->pooled);
}

static fth_status go_back(const br_call *call, const br_nonbragg *n, fth_err *err)
{
    backward b = {.call = call, .n = n};
    b.show = call->answer->plan ? call->answer : NULL;
    fth_status s = open_image(&b, err);
    if (s == FTH_OK && b.show) tell_table(&b);
    if (s == FTH_OK) s = find_amplitudes(&b, err);
    if (s == FTH_OK && b.show) fth_answer_memory(b.show, 0, "planned");
    if (s == FTH_OK && !b.show) s = write_table(&b, err);
    if (s == FTH_OK && !b.show) tell_table(&b);
    fth_tensor_release(b.F);
    fth_tensor_release(b.row);
    fth_source_close(&b.image);
    return s;
}

/* ---- the verb ---- */

static void say_settings(const br_nonbragg *n, FILE *out)
{
    const br_scene *s = &n->e.scene;
    fprintf(out,
            "%lld x %lld pixels of %g mm at %g mm, %lld sources, %lld layers, %lld x %lld "
            "subpixels\n",
            (long long)s->fast, (long long)s->slow, s->pixel * 1000, n->e.placed.distance.v * 1000,
            (long long)s->sources, (long long)s->layers, (long long)s->oversample,
            (long long)s->oversample);
    fprintf(out, "beam centre: %g %g mm along fast and slow\n", n->e.placed.fbeam * 1000,
            n->e.placed.sbeam * 1000);
    fprintf(out, "table of F: %lld rows; %g molecules; fluence %g photons/m^2\n",
            (long long)n->table.rows, n->molecules, n->e.placed.fluence.v);
}

/* In either direction "" means that a file is not written. */
static fth_status check_files(const br_nonbragg *n, fth_mem *mem, fth_err *err)
{
    const fth_path_use own[] = {{FTH_FILE_INPUT, "-stol", n->stol},
                                {FTH_FILE_INPUT, "-4stol", n->stol4},
                                {FTH_FILE_INPUT, "-Q", n->q},
                                {FTH_FILE_INPUT, "-img", *n->stolout ? n->img : NULL},
                                {FTH_FILE_OUTPUT, "-stolout", n->stolout}};
    enum { OWN = sizeof own / sizeof own[0] };
    fth_path_use use[OWN + BR_FLAGS_READS];
    memcpy(use, own, sizeof own);
    memcpy(use + OWN, n->read, (size_t)n->n_read * sizeof *use);
    return br_outputs_distinct(&n->e.out, use, OWN + n->n_read, mem, err);
}

static fth_status go(const br_call *call, fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->ctx);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(br_nonbragg), "nonbragg", &block, err));
    br_nonbragg *n = block;
    fth_status s = br_nonbragg_resolve(n, call, err);
    if (s == FTH_OK) s = check_files(n, mem, err);
    if (s == FTH_OK) {
        say_settings(n, call->out);
        s = *n->stolout ? go_back(call, n, err) : go_forward(call, n, err);
    }
    br_nonbragg_clear(n);
    fth_mem_release(mem, n, NULL);
    return s;
}

fth_status br_nonbragg_run(fth_context *ctx, int n_args, char *const *arg,
                           const char *(*value)(void *user, const char *flag), void *user,
                           FILE *out, fth_err *err)
{
    return br_call_run(go, ctx, n_args, arg, value, user, out, err);
}
