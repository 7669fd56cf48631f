/* bragg.c - see bragg.h. */
#include "testing/bragg/bragg.h"

#include <math.h>

static void *array(int64_t n, size_t bytes)
{
    void *v = calloc((size_t)n, bytes);
    if (!v) FAIL("no memory for a test array");
    return v;
}

void tb_detector(tb_case *c, int64_t pixels, double pixel_mm, double distance_mm)
{
    br_scene *s = &c->s;
    s->fast = s->slow = pixels;
    s->roi[0] = s->roi[2] = 0;
    s->roi[1] = s->roi[3] = pixels - 1;
    s->pixel = pixel_mm / 1000;
    s->detsize[0] = s->detsize[1] = s->pixel * (double)pixels;
    c->param[BR_XB] = c->param[BR_YB] = (s->detsize[0] + s->pixel) / 2;
    c->param[BR_DIST] = distance_mm / 1000;
}

static void vector(double *v, double x, double y, double z)
{
    v[0] = x, v[1] = y, v[2] = z;
}

void tb_make(tb_case *c)
{
    memset(c, 0, sizeof *c);
    br_scene *s = &c->s;
    tb_detector(c, 64, 0.4, 61.3);
    vector(s->beam, 1, 0, 0);
    vector(s->fdet, 0, 0, 1);
    vector(s->sdet, 0, -1, 0);
    vector(s->odet, 1, 0, 0);
    vector(s->polar, 0, 0, 1);
    vector(s->vertical, 0, -1, 0);
    vector(s->spindle, 0, 0, 1);
    vector(s->twotheta_axis, 0, 0, -1);
    s->convention = BR_MOSFLM;
    s->layers = s->oversample = s->phis = s->sources = s->mosaics = 1;
    s->fudge = s->weight_sum = 1;
    s->default_F = 100;
    s->cell_given = s->misset_given = 1;
    s->quirks = BR_QUIRKS_C;
    s->chain_start = -1;
    for (int k = 0; k < 3; k++) s->cells[k] = 4;
    const double cell[6] = {40, 45, 50, 90, 90, 90}, misset[3] = {10, 20, 30};
    for (int k = 0; k < 6; k++) c->param[BR_A + k] = k < 3 ? cell[k] : br_radians(cell[k]);
    for (int k = 0; k < 3; k++) c->param[BR_MX + k] = br_radians(misset[k]);
    c->param[BR_LAM] = 1e-10;
    c->param[BR_FLU] = BR_FLUENCE;
    c->table = array(1, sizeof(double));
    c->source = array(1, sizeof(double) * BR_SRC_COLUMNS);
    vector(c->source, -1, 0, 0);
    c->source[BR_SRC_PART] = c->source[BR_SRC_WEIGHT] = 1;
    c->mosaic_rotation = array(9, sizeof(double));
    c->mosaic_rotation[0] = c->mosaic_rotation[4] = c->mosaic_rotation[8] = 1;
}

void tb_free(tb_case *c)
{
    free(c->table);
    free(c->source);
    free(c->mosaic_rotation);
    free(c->mask);
    memset(c, 0, sizeof *c);
}

void tb_oversample(tb_case *c)
{
    double size = 0;
    for (int k = 0; k < 3; k++) size = fmax(size, c->param[BR_A + k] * 1e-10 * c->s.cells[k]);
    const double pixel = c->param[BR_LAM] * c->param[BR_DIST] / c->s.pixel;
    c->s.oversample = (int64_t)fmax(1, ceil(3 * size / pixel));
}

/* The table without its last planes, all default_F, as the reference has it. */
static void make_table(tb_case *c, const int64_t *lo, const int64_t *hi)
{
    br_scene *s = &c->s;
    s->h_min = lo[0], s->k_min = lo[1], s->l_min = lo[2];
    s->h_max = hi[0], s->k_max = hi[1], s->l_max = hi[2];
    free(c->table);
    const int64_t nh = hi[0] - lo[0] + 2, nk = hi[1] - lo[1] + 2, nl = hi[2] - lo[2] + 2;
    c->table = array(nh * nk * nl, sizeof(double));
    for (int64_t h = 0; h + 1 < nh; h++)
        for (int64_t k = 0; k + 1 < nk; k++)
            for (int64_t l = 0; l + 1 < nl; l++) c->table[(h * nk + k) * nl + l] = s->default_F;
}

static double *entry(tb_case *c, int64_t h, int64_t k, int64_t l)
{
    const br_scene *s = &c->s;
    const int64_t nk = s->k_max - s->k_min + 2, nl = s->l_max - s->l_min + 2;
    return &c->table[((h - s->h_min) * nk + k - s->k_min) * nl + l - s->l_min];
}

void tb_table(tb_case *c, const char *hkl_file)
{
    int64_t lo[3] = {INT32_MAX, INT32_MAX, INT32_MAX}, hi[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
    for (int pass = 0; pass < 2; pass++) {
        FILE *f = fopen(hkl_file, "r");
        if (!f) FAIL("cannot open %s", hkl_file);
        int64_t n = 0;
        int v[3];
        for (double F; fscanf(f, "%d %d %d %lf", &v[0], &v[1], &v[2], &F) == 4; n++) {
            for (int k = 0; k < 3; k++) {
                if (v[k] < lo[k]) lo[k] = v[k];
                if (v[k] > hi[k]) hi[k] = v[k];
            }
            if (pass) *entry(c, v[0], v[1], v[2]) = F;
        }
        fclose(f);
        if (pass == 0) make_table(c, lo, hi);
        c->s.hkls = n;
    }
}

void tb_table_random(tb_case *c, t_random *r, int64_t reach)
{
    const int64_t lo[3] = {-reach, -reach - 1, -reach}, hi[3] = {reach + 1, reach, reach};
    make_table(c, lo, hi);
    for (int64_t h = lo[0]; h <= hi[0]; h++)
        for (int64_t k = lo[1]; k <= hi[1]; k++)
            for (int64_t l = lo[2]; l <= hi[2]; l++, c->s.hkls++)
                *entry(c, h, k, l) = 300 * t_random_f64(r);
}

void tb_wavelengths(tb_case *c, double dispersion, int64_t n)
{
    free(c->source);
    c->source = array(n, sizeof(double) * BR_SRC_COLUMNS);
    c->s.sources = n;
    c->s.weight_sum = (double)n;
    for (int64_t j = 0; j < n; j++) {
        double *src = c->source + j * BR_SRC_COLUMNS;
        for (int k = 0; k < 3; k++) src[k] = -c->s.beam[k];
        src[BR_SRC_WEIGHT] = 1;
        src[BR_SRC_PART] =
            n < 2 ? 1 : 1 + dispersion / (double)(n - 1) * (double)j - dispersion / 2;
    }
}

void tb_domains(tb_case *c, t_random *r, double spread, int64_t n)
{
    free(c->mosaic_rotation);
    c->mosaic_rotation = array(n, 9 * sizeof(double));
    c->s.mosaics = n;
    c->s.mosaic_given = spread > 0;
    for (int64_t m = 0; m < n; m++) {
        double axis[3], e[3];
        for (int k = 0; k < 3; k++) axis[k] = t_random_normal(r);
        br_unit(axis, axis);
        const double angle = m ? spread * (t_random_f64(r) - 0.5) : 0;
        for (int k = 0; k < 3; k++) {
            vector(e, k == 0, k == 1, k == 2);
            br_rotate_axis(e, axis, angle, e);
            for (int i = 0; i < 3; i++) c->mosaic_rotation[9 * m + 3 * i + k] = e[i];
        }
    }
}

void tb_spindle(tb_case *c, double phi_deg, double osc_deg, int64_t n)
{
    c->param[BR_PHI] = br_radians(phi_deg);
    c->s.phis = n;
    c->s.phi_step = br_radians(osc_deg) / (double)n;
}

void tb_founding(tb_case *c, int64_t domains, int64_t rows)
{
    t_random r = t_random_make(4);
    tb_make(c);
    tb_detector(c, 2463, 0.172, 200);
    c->s.slow = 2527;
    c->s.roi[2] = (c->s.slow - rows) / 2;
    c->s.roi[3] = c->s.roi[2] + rows - 1;
    for (int k = 0; k < 3; k++) c->s.cells[k] = 5;
    tb_table(c, "tests/golden/bragg/inputs/P1_full.hkl");
    tb_domains(c, &r, br_radians(0.5), domains);
    tb_spindle(c, 0, 1, 10);
    tb_ready(c);
}

static fth_status read_mask(void *self, const int64_t *lo, const int64_t *n, void *dst,
                            fth_err *err)
{
    (void)err;
    const tb_case *c = self;
    for (int64_t i = 0; i < n[0]; i++)
        memcpy((uint16_t *)dst + i * n[1], c->mask + (lo[0] + i) * c->s.fast + lo[1],
               sizeof(uint16_t) * (size_t)n[1]);
    return FTH_OK;
}

static fth_source mask_source(tb_case *c)
{
    return (fth_source){.kind = "test",
                        .self = c,
                        .dtype = FTH_U16,
                        .n_axes = 2,
                        .size = {c->s.slow, c->s.fast},
                        .read = read_mask};
}

void tb_ready(tb_case *c)
{
    br_scene *s = &c->s;
    s->masked = c->mask != NULL;
    s->steps = (double)(s->sources * s->mosaics * s->phis * s->oversample * s->oversample);
    fth_mem *mem = NULL;
    fth_err err = {0};
    OKE(fth_mem_create(&mem, NULL, &err), &err);
    const fth_source mask = mask_source(c);
    OKE(br_chain_start(s, c->param, c->source, &mask, mem, &s->chain_start, &err), &err);
    OKE(fth_mem_destroy(mem, &err), &err);
}

/* ---- through the engine ---- */

typedef struct rows {
    char *data;
    int64_t row_bytes, seen;
} rows;

static fth_status write_rows(void *self, const int64_t *lo, const int64_t *n, const void *src,
                             fth_err *err)
{
    (void)err;
    rows *r = self;
    memcpy(r->data + lo[0] * r->row_bytes, src, (size_t)(n[0] * r->row_bytes));
    r->seen += n[0];
    return FTH_OK;
}

static fth_source memory(const void *data, fth_dtype dtype, int n_axes, int64_t a, int64_t b,
                         int64_t c)
{
    union {
        const void *in;
        void *out;
    } u = {.in = data};
    return (fth_source){
        .kind = "memory", .dtype = dtype, .n_axes = n_axes, .size = {a, b, c}, .data = u.out};
}

br_inputs tb_inputs(fth_graph *g, tb_case *c)
{
    const br_scene *s = &c->s;
    const int64_t nh = s->hkls ? s->h_max - s->h_min + 2 : 1;
    const int64_t nk = s->hkls ? s->k_max - s->k_min + 2 : 1;
    const int64_t nl = s->hkls ? s->l_max - s->l_min + 2 : 1;
    const char *const name[] = {"slow", "fast",          "param",  "h",    "k",
                                "l",    "source_column", "source", "nine", "mosaic"};
    const int64_t size[] = {s->slow, s->fast,        BR_PARAMS,  nh, nk,
                            nl,      BR_SRC_COLUMNS, s->sources, 9,  s->mosaics};
    for (int i = 0; i < 10; i++) fth_axis(g, name[i], size[i]);
    br_inputs in = {
        .param =
            fth_input(g, "param", FTH_F64, "param", memory(c->param, FTH_F64, 1, BR_PARAMS, 0, 0)),
        .table = fth_input(g, "table", FTH_F64, "h k l", memory(c->table, FTH_F64, 3, nh, nk, nl)),
        .source = fth_input(g, "source", FTH_F64, "source source_column",
                            memory(c->source, FTH_F64, 2, s->sources, BR_SRC_COLUMNS, 0)),
        .mosaic_rotation = fth_input(g, "mosaic_rotation", FTH_F64, "mosaic nine",
                                     memory(c->mosaic_rotation, FTH_F64, 2, s->mosaics, 9, 0))};
    if (c->mask) in.mask = fth_input(g, "mask", FTH_U16, "slow fast", mask_source(c));
    return in;
}

static void plan_and_run(fth_graph *g, const tb_case *c, const fth_val *out, int n, tb_run *run)
{
    fth_err err = {0};
    const int64_t size = fth_dtype_size(run->dtype);
    rows r[3] = {{.data = run->image, .row_bytes = c->s.fast * size},
                 {.data = (char *)run->omega, .row_bytes = 8},
                 {.data = (char *)run->outside, .row_bytes = 8}};
    fth_sink sink[3] = {{.kind = "test",
                         .self = &r[0],
                         .dtype = run->dtype,
                         .n_axes = 2,
                         .size = {c->s.slow, c->s.fast},
                         .write = write_rows,
                         .data = run->through_a_file ? NULL : run->image}};
    for (int i = 1; i < 3; i++)
        sink[i] = (fth_sink){.kind = "test",
                             .self = &r[i],
                             .dtype = i == 1 ? FTH_F64 : FTH_I64,
                             .n_axes = 1,
                             .size = {c->s.slow},
                             .write = write_rows};
    fth_sink used[4] = {sink[0]};
    int m = 1;
    if (run->omega) used[m++] = sink[1];
    if (run->outside) used[m++] = sink[2];
    used[m] = fth_scalar_sink(FTH_I64, &run->latch);
    const fth_limits limits = {.memory_bytes = run->memory_bytes, .sinks = used};
    fth_plan *p = fth_plan_make(g, out, n, &limits, &err);
    run->refused = !p && err.status == FTH_E_NO_FIT && run->may_not_fit;
    if (run->refused) return;
    if (!p) OKE(err.status, &err);
    fth_plan_get_info(p, &run->info);
    if (run->image) OKE(fth_run(p, used, NULL, &run->report, &err), &err);
    fth_plan_destroy(p);
}

void tb_render(const tb_case *c, tb_run *run)
{
    fth_err err = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = run->threads ? run->threads : 1;
    if (run->budget_bytes) opt.mem.budget_bytes = run->budget_bytes;
    if (run->backend || run->backend_path) opt.device = "cuda";
    opt.backend = run->backend;
    opt.backend_path = run->backend_path;
    opt.device_memory_bytes = run->device_bytes;
    fth_context *ctx = NULL;
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fth_graph *g = fth_graph_create(ctx);
    tb_case copy = *c;
    br_inputs in = tb_inputs(g, &copy);
    in.latch = br_latch(&c->s, &in);
    const fth_val image = br_render(&c->s, &in, run->dtype);
    fth_val out[4] = {image};
    int n = 1;
    if (run->omega) out[n++] = fth_out(image, 1);
    if (run->outside) out[n++] = fth_out(image, 2);
    out[n++] = in.latch;
    plan_and_run(g, c, out, n, run);
    fth_graph_destroy(g);
    OKE(fth_context_destroy(ctx, &err), &err);
}

int64_t tb_loops(const tb_case *c, const br_loops *loops, double *image, double *omega)
{
    const br_scene *s = &c->s;
    double *work = array((int64_t)(br_view_bytes(s) / sizeof(double)), sizeof(double));
    const int64_t nk = s->k_max - s->k_min + 2, nl = s->l_max - s->l_min + 2;
    const br_arrays a = {.param = c->param,
                         .table = c->table,
                         .source = c->source,
                         .mosaic_rotation = c->mosaic_rotation,
                         .table_step = {nk * nl, nl, 1},
                         .latch = INT64_MAX};
    br_view v;
    br_view_make(&v, s, &a, work);
    int64_t outside = 0;
    for (int pass = v.interpolate && v.latched ? 0 : 1; pass < 2; pass++)
        for (int64_t y = 0; y < s->slow; y++) {
            br_row row = {.slow = y,
                          .n = s->fast,
                          .mask = c->mask ? c->mask + y * s->fast : NULL,
                          .mask_step = 1,
                          .value = image + y * s->fast,
                          .omega = omega + y * s->fast};
            if (pass == 0) {
                const int64_t n = loops->latch(&v, &row);
                if (n < v.latch) v.latch = n;
            } else {
                loops->render(&v, &row);
                outside += row.outside;
            }
        }
    free(work);
    return outside;
}

int64_t tb_plain(const tb_case *c, double *image, double *omega)
{
    const br_loops plain = {br_render_plain, br_latch_plain};
    return tb_loops(c, &plain, image, omega);
}
