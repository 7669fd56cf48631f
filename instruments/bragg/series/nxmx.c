/* nxmx.c - the container of a job: all frames and their metadata, as NeXus NXmx in HDF5.
 *
 * Vectors are rotated into the axes of NeXus: z along the beam, y along beam x polarisation, x so
 * that they are right-handed. The group /entry/fathom holds what NeXus has no name for, so that a
 * file documents how it was made. Hosts, budgets, threads and the time of the run are left out:
 * equal jobs give equal bytes.
 */
#include "jobs.h"

#include "../console/notices.h"
#include "../geometry/cell.h"

#include <string.h>
#include <time.h>

enum { PIECE = 256 }; /* frames whose matrices are computed at a time */

/* Thickness of a sensor without a known one: readers need a value above 0, and correct for the
 * depth of absorption. With 1 um that correction is far below a pixel. */
static const double SURFACE = 1e-6;

/* ---- pixels ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t br_check_add(uint64_t check, fth_dtype dtype, int64_t first, int64_t n, const void *v)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    if (dtype == FTH_U16) {
        const uint16_t *p = v;
        for (int64_t i = 0; i < n; i++) check += mix((uint64_t)(first + i + 1) * golden ^ p[i]);
    } else {
        const uint32_t *p = v; /* the bits of i32 and f32 */
        for (int64_t i = 0; i < n; i++) check += mix((uint64_t)(first + i + 1) * golden ^ p[i]);
    }
    return check;
}

/* One frame, or less of a large one, is a chunk: about 1 MiB. */
fth_h5_dataset br_nxmx_layout(const br_job *job)
{
    const br_scene *s = &job->base.scene;
    const int64_t row = s->fast * fth_dtype_size(job->series.dtype), want = (1 << 20) / row,
                  rows = want < 1         ? 1
                         : want > s->slow ? s->slow
                                          : want;
    return (fth_h5_dataset){.name = "/entry/data/data",
                            .dtype = job->series.dtype,
                            .n_axes = 3,
                            .size = {job->series.frames, s->slow, s->fast},
                            .chunk = {1, rows, s->fast},
                            .gzip = job->series.gzip};
}

static fth_status write_frame(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    br_nxmx *x = self;
    const int64_t fast = x->data.size[2], lo3[3] = {x->frame, lo[0], lo[1]},
                  n3[3] = {1, n[0], n[1]};
    const char *from = src;
    for (int64_t r = 0; r < n[0]; r++)
        x->check = br_check_add(x->check, x->data.dtype, (lo[0] + r) * fast + lo[1], n[1],
                                from + r * n[1] * fth_dtype_size(x->data.dtype));
    return x->data.write(x->data.self, lo3, n3, src, err);
}

fth_sink br_nxmx_frame(br_nxmx *x, int64_t frame)
{
    x->frame = frame;
    x->check = 0;
    return (fth_sink){.kind = "hdf5",
                      .self = x,
                      .dtype = x->data.dtype,
                      .n_axes = 2,
                      .size = {x->data.size[1], x->data.size[2]},
                      .write = write_frame,
                      .libraries = x->data.libraries,
                      .billed_bytes = x->data.billed_bytes};
}

fth_status br_nxmx_create(br_nxmx *x, const br_job *job, const char *path, fth_err *err)
{
    *x = (br_nxmx){.job = job};
    const fth_h5_dataset layout = br_nxmx_layout(job);
    FTH_TRY(fth_h5_create(&x->w, fth_context_mem(job->call->context), path, err));
    const fth_status s = fth_h5_sink(x->w, &layout, &x->data, err);
    if (s != FTH_OK) br_nxmx_abandon(x);
    return s;
}

void br_nxmx_abandon(br_nxmx *x)
{
    fth_h5_abandon(x->w);
    *x = (br_nxmx){0};
}

/* ---- small items of a file: after the first failure nothing is written ---- */

typedef struct out {
    fth_h5_writer *w;
    fth_status status;
    fth_err *err;
} out;

static void put(out *o, const char *name, fth_dtype dtype, int n_axes, const int64_t *size,
                const void *v)
{
    fth_sink sink;
    fth_h5_dataset want = {.name = name, .dtype = dtype, .n_axes = n_axes};
    for (int a = 0; a < n_axes; a++) want.size[a] = size[a];
    if (o->status == FTH_OK) o->status = fth_h5_sink(o->w, &want, &sink, o->err);
    if (o->status == FTH_OK) o->status = fth_sink_put(&sink, v, o->err);
}

static void put_text(out *o, const char *name, const char *text)
{
    if (o->status == FTH_OK) o->status = fth_h5_put_text(o->w, name, text, o->err);
}

static void note(out *o, const char *object, const char *name, const char *text)
{
    if (o->status == FTH_OK) o->status = fth_h5_put_attr_text(o->w, object, name, text, o->err);
}

static void put_number(out *o, const char *name, double v, const char *units)
{
    put(o, name, FTH_F64, 0, NULL, &v);
    if (units) note(o, name, "units", units);
}

static void put_count(out *o, const char *name, int64_t v)
{
    put(o, name, FTH_I64, 0, NULL, &v);
}

/* One step of a chain of transformations (NXtransformations). */
static void axis(out *o, const char *name, const char *type, const double *vector,
                 const char *depends_on, const char *units)
{
    note(o, name, "transformation_type", type);
    note(o, name, "depends_on", depends_on);
    note(o, name, "units", units);
    if (o->status == FTH_OK)
        o->status = fth_h5_put_attr_f64(o->w, name, "vector", vector, 3, o->err);
}

/* ---- vectors in the axes of NeXus ---- */

typedef struct rotation {
    double row[3][3];
} rotation;

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double *a, const double *b, double *r)
{
    for (int i = 0; i < 3; i++)
        r[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

static void scale_to_unit(double *v)
{
    const double n = sqrt(dot(v, v));
    for (int i = 0; i < 3; i++) v[i] = n > 0 ? v[i] / n : 0;
}

static rotation to_nexus(const br_scene *s)
{
    rotation t;
    memcpy(t.row[2], s->beam, sizeof t.row[2]);
    memcpy(t.row[1], s->vertical, sizeof t.row[1]);
    cross(t.row[1], t.row[2], t.row[0]);
    for (int i = 0; i < 3; i++) scale_to_unit(t.row[i]);
    return t;
}

static void apply(const rotation *t, const double *v, double *out3)
{
    for (int i = 0; i < 3; i++) out3[i] = dot(t->row[i], v);
}

static void values(const br_dual *v, double *out3)
{
    for (int i = 0; i < 3; i++) out3[i] = v[i].v;
}

/* ---- groups ---- */

static void put_detector(out *o, const br_job *job, const rotation *t)
{
    static const char group[] = "/entry/instrument/detector";
    const br_experiment *e = &job->base;
    const br_scene *s = &e->scene;
    double v[3], pix0[3], fast[3], slow[3], along[3];
    values(e->placed.pix0, v);
    apply(t, v, pix0);
    values(e->placed.fdet, v);
    apply(t, v, fast);
    values(e->placed.sdet, v);
    apply(t, v, slow);
    memcpy(along, pix0, sizeof along);
    scale_to_unit(along);
#define IN_DETECTOR(name) "/entry/instrument/detector/" name
    const br_hit hit = br_beam_hit(e);
    put_number(o, IN_DETECTOR("distance"), hit.distance, "m");
    put_number(o, IN_DETECTOR("beam_center_x"), hit.fast, "pixel");
    put_number(o, IN_DETECTOR("beam_center_y"), hit.slow, "pixel");
    put_number(o, IN_DETECTOR("x_pixel_size"), s->pixel, "m");
    put_number(o, IN_DETECTOR("y_pixel_size"), s->pixel, "m");
    put_number(o, IN_DETECTOR("sensor_thickness"), s->thickness > 0 ? s->thickness : SURFACE, "m");
    if (!(s->thickness > 0))
        note(o, IN_DETECTOR("sensor_thickness"), "comment",
             "no thickness was given: photons are absorbed at the surface");
    put_number(o, IN_DETECTOR("count_time"), e->exposure, "s");
    put_number(o, IN_DETECTOR("frame_time"), e->exposure, "s");
    put_text(o, IN_DETECTOR("description"), s->curved ? "simulated; " BR_CURVED_NOTE : "simulated");
    put_text(o, IN_DETECTOR("sensor_material"), e->material);
    if (job->series.counts && job->series.dtype != FTH_F32)
        put_count(o, IN_DETECTOR("saturation_value"),
                  job->series.dtype == FTH_U16 ? UINT16_MAX : INT32_MAX);
    put_text(o, IN_DETECTOR("depends_on"), IN_DETECTOR("transformations/translation"));
    put_number(o, IN_DETECTOR("transformations/translation"), sqrt(dot(pix0, pix0)), NULL);
    axis(o, IN_DETECTOR("transformations/translation"), "translation", along, ".", "m");
    const int64_t origin[2] = {0, 0}, size[2] = {s->slow, s->fast}, two = 2;
    put(o, IN_DETECTOR("module/data_origin"), FTH_I64, 1, &two, origin);
    put(o, IN_DETECTOR("module/data_size"), FTH_I64, 1, &two, size);
    put_number(o, IN_DETECTOR("module/module_offset"), 0, NULL);
    axis(o, IN_DETECTOR("module/module_offset"), "translation", along,
         IN_DETECTOR("transformations/translation"), "m");
    put_number(o, IN_DETECTOR("module/fast_pixel_direction"), s->pixel, NULL);
    axis(o, IN_DETECTOR("module/fast_pixel_direction"), "translation", fast,
         IN_DETECTOR("module/module_offset"), "m");
    put_number(o, IN_DETECTOR("module/slow_pixel_direction"), s->pixel, NULL);
    axis(o, IN_DETECTOR("module/slow_pixel_direction"), "translation", slow,
         IN_DETECTOR("module/module_offset"), "m");
    note(o, group, "NX_class", "NXdetector");
    note(o, IN_DETECTOR("transformations"), "NX_class", "NXtransformations");
    note(o, IN_DETECTOR("module"), "NX_class", "NXdetector_module");
#undef IN_DETECTOR
}

static void put_beam(out *o, const br_job *job)
{
    const br_experiment *e = &job->base;
    const int64_t two = 2;
    const double size[2] = {e->beamsize, e->beamsize};
    put_number(o, "/entry/instrument/beam/incident_wavelength", e->param[BR_LAM] * 1e10,
               "angstrom");
    put_number(o, "/entry/instrument/beam/incident_wavelength_spread",
               e->param[BR_LAM] * e->dispersion * 1e10, "angstrom");
    put_number(o, "/entry/instrument/beam/total_flux", e->flux, "Hz");
    put(o, "/entry/instrument/beam/incident_beam_size", FTH_F64, 1, &two, size);
    note(o, "/entry/instrument/beam/incident_beam_size", "units", "m");
    if (!e->scene.nopolar) { /* x of NeXus is the direction of the electric field */
        const int64_t one_four[2] = {1, 4};
        const double stokes[4] = {1, e->scene.kahn, 0, 0};
        put(o, "/entry/instrument/beam/incident_polarization_stokes", FTH_F64, 2, one_four, stokes);
    }
    note(o, "/entry/instrument/beam", "NX_class", "NXbeam");
    note(o, "/entry/instrument", "NX_class", "NXinstrument");
    put_text(o, "/entry/source/name", "simulated");
    note(o, "/entry/source", "NX_class", "NXsource");
}

/* B of Busing and Levy from the cell: UB = U B. */
static void reciprocal(const double *edge, const double *angle, double b[3][3])
{
    const double ca = cos(angle[0]), cb = cos(angle[1]), cg = cos(angle[2]), sa = sin(angle[0]),
                 sb = sin(angle[1]), sg = sin(angle[2]);
    const double v = sqrt(1 - ca * ca - cb * cb - cg * cg + 2 * ca * cb * cg);
    const double as = sa / (edge[0] * v), bs = sb / (edge[1] * v), cs = sg / (edge[2] * v);
    const double cbs = (ca * cg - cb) / (sa * sg), cgs = (ca * cb - cg) / (sa * sb),
                 sbs = sqrt(1 - cbs * cbs), sgs = sqrt(1 - cgs * cgs);
    memset(b, 0, 9 * sizeof(double));
    b[0][0] = as;
    b[0][1] = bs * cgs;
    b[1][1] = bs * sgs;
    b[0][2] = cs * cbs;
    b[1][2] = -cs * sbs * ca;
    b[2][2] = 1 / edge[2];
}

/* U = UB B^-1, where B is upper triangular; UB has a*, b*, c* as columns. */
static void orientation(const double ub[3][3], const double b[3][3], double *u)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double r = ub[i][j];
            for (int k = 0; k < j; k++) r -= u[3 * i + k] * b[k][j];
            u[3 * i + j] = r / b[j][j];
        }
}

typedef struct placed {
    double ub[9], u[9];
} placed;

static void place_frame(const br_job *job, const rotation *t, int64_t i, placed *p)
{
    br_experiment e;
    double abc[3][3], edge[3], angle[3], star[3][3], column[3], ub[3][3], b[3][3];
    br_job_place(job, i, &e);
    for (int k = 0; k < 3; k++) values(e.placed.abc[k], abc[k]);
    br_cell_of((const double(*)[3])abc, edge, angle);
    for (int k = 0; k < 3; k++) edge[k] *= 1e10;
    reciprocal(edge, angle, b);
    for (int k = 0; k < 3; k++) { /* from a, b, c themselves: they are what is rendered */
        cross(abc[(k + 1) % 3], abc[(k + 2) % 3], star[k]);
        const double volume = dot(abc[k], star[k]);
        for (int c = 0; c < 3; c++) star[k][c] *= 1e-10 / volume;
        apply(t, star[k], column);
        for (int c = 0; c < 3; c++) ub[c][k] = column[c];
    }
    memcpy(p->ub, ub, sizeof p->ub);
    orientation((const double(*)[3])ub, (const double(*)[3])b, p->u);
}

/* [frame 3 3], a piece at a time. */
static void put_matrices(out *o, const br_job *job, const rotation *t, const char *name, bool pure)
{
    const int64_t frames = job->series.frames;
    const fth_h5_dataset want = {
        .name = name, .dtype = FTH_F64, .n_axes = 3, .size = {frames, 3, 3}};
    fth_sink sink;
    if (o->status == FTH_OK) o->status = fth_h5_sink(o->w, &want, &sink, o->err);
    for (int64_t i = 0; o->status == FTH_OK && i < frames; i += PIECE) {
        double m[PIECE][9];
        const int64_t n = frames - i < PIECE ? frames - i : PIECE;
        for (int64_t k = 0; k < n; k++) {
            placed p;
            place_frame(job, t, i + k, &p);
            memcpy(m[k], pure ? p.u : p.ub, sizeof m[k]);
        }
        const int64_t lo[3] = {i, 0, 0}, size[3] = {n, 3, 3};
        o->status = sink.write(sink.self, lo, size, m, o->err);
    }
    if (o->status == FTH_OK) o->status = sink.commit(sink.self, o->err);
}

/* One number of eight bytes for each frame. */
typedef union number {
    double f64;
    int64_t i64;
} number;
typedef number number_of(const br_job *job, int64_t i);

static void put_list(out *o, const br_job *job, const char *name, fth_dtype dtype,
                     const char *units, number_of *get)
{
    const int64_t frames = job->series.frames;
    const fth_h5_dataset want = {.name = name, .dtype = dtype, .n_axes = 1, .size = {frames}};
    fth_sink sink;
    if (o->status == FTH_OK) o->status = fth_h5_sink(o->w, &want, &sink, o->err);
    for (int64_t i = 0; o->status == FTH_OK && i < frames; i += PIECE) {
        number v[PIECE];
        const int64_t n = frames - i < PIECE ? frames - i : PIECE;
        for (int64_t k = 0; k < n; k++) v[k] = get(job, i + k);
        o->status = sink.write(sink.self, &i, &n, v, o->err);
    }
    if (o->status == FTH_OK) o->status = sink.commit(sink.self, o->err);
    if (units) note(o, name, "units", units);
}

static number get_omega(const br_job *job, int64_t i)
{
    return (number){.f64 = br_series_shot(&job->series, &job->base, i).phi};
}
static number get_omega_end(const br_job *job, int64_t i)
{
    return (number){.f64 = get_omega(job, i).f64 + job->base.osc * BR_RTD};
}
static number get_fluence(const br_job *job, int64_t i)
{
    return (number){.f64 = br_series_shot(&job->series, &job->base, i).fluence};
}
static number get_photons(const br_job *job, int64_t i)
{
    return (number){.f64 = job->fact[i].photons};
}
static number get_largest(const br_job *job, int64_t i)
{
    return (number){.f64 = job->fact[i].largest};
}
static number get_tie(const br_job *job, int64_t i)
{
    return (number){.i64 = (int64_t)job->fact[i].fingerprint};
}
static number get_check(const br_job *job, int64_t i)
{
    return (number){.i64 = (int64_t)job->fact[i].check};
}

static void put_sample(out *o, const br_job *job, const rotation *t)
{
    static const char omega[] = "/entry/sample/transformations/omega",
                      end[] = "/entry/sample/transformations/omega_end";
    const br_experiment *e = &job->base;
    double abc[3][3], edge[3], angle[3], spindle[3];
    for (int k = 0; k < 3; k++) values(e->placed.abc[k], abc[k]);
    br_cell_of((const double(*)[3])abc, edge, angle);
    const int64_t six = 6;
    const double cell[6] = {edge[0] * 1e10,    edge[1] * 1e10,    edge[2] * 1e10,
                            angle[0] * BR_RTD, angle[1] * BR_RTD, angle[2] * BR_RTD};
    put_text(o, "/entry/sample/name", "crystal");
    put_text(o, "/entry/sample/depends_on", omega);
    put(o, "/entry/sample/unit_cell", FTH_F64, 1, &six, cell);
    note(o, "/entry/sample/unit_cell", "units", "angstrom, degree");
    put_number(o, "/entry/sample/unit_cell_volume", e->placed.volume, "angstrom^3");
    put_matrices(o, job, t, "/entry/sample/orientation_matrix", true);
    put_matrices(o, job, t, "/entry/sample/ub_matrix", false);
    note(o, "/entry/sample/ub_matrix", "units", "1/angstrom");
    put_list(o, job, omega, FTH_F64, NULL, get_omega);
    put_list(o, job, end, FTH_F64, "degree", get_omega_end);
    apply(t, e->scene.spindle, spindle);
    axis(o, omega, "rotation", spindle, ".", "degree");
    note(o, "/entry/sample/transformations", "NX_class", "NXtransformations");
    note(o, "/entry/sample", "NX_class", "NXsample");
    put_list(o, job, "/entry/data/omega", FTH_F64, "degree", get_omega);
}

/* ---- /entry/fathom: provenance ---- */

static bool is_path(const fth_schema *schema, const char *line)
{
    const size_t n = strcspn(line, ":");
    for (int64_t i = 0; i < schema->n_keys; i++)
        if (strlen(schema->key[i].name) == n && strncmp(schema->key[i].name, line, n) == 0)
            return schema->key[i].type == FTH_CONFIG_PATH;
    return false;
}

/* Paths of input files are not part of a result: hashes identify their contents. */
static void remove_paths(char *text, const fth_schema *schema)
{
    char *to = text;
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n"), all = n + (line[n] == '\n');
        if (!is_path(schema, line)) {
            memmove(to, line, all);
            to += all;
        }
        line += all;
    }
    *to = '\0';
}

static void put_settings(out *o, const br_job *job)
{
    fth_mem *mem = fth_context_mem(job->call->context);
    const size_t n = fth_config_canonical(job->call->config, NULL, 0) + 1;
    void *text = NULL;
    if (o->status == FTH_OK)
        o->status = fth_mem_take(mem, FTH_MEM_META, n, "settings", &text, o->err);
    if (o->status != FTH_OK) return;
    fth_config_canonical(job->call->config, text, n);
    remove_paths(text, job->call->instrument->schema);
    put_text(o, "/entry/fathom/settings", text);
    const fth_status s = fth_mem_release(mem, text, o->err);
    if (o->status == FTH_OK) o->status = s;
}

static void put_parameters(out *o, const br_job *job)
{
    const br_experiment *e = &job->base;
    char name[80];
    for (int p = 0; p < BR_PARAMS; p++) {
        snprintf(name, sizeof name, "/entry/fathom/parameters/%s", br_params[p].name);
        put_number(o, name, e->param[p] / br_params[p].scale, br_params[p].unit);
        note(o, name, "meaning", br_params[p].doc);
    }
    const struct {
        const char *name;
        double v;
    } count[] = {
        {"oversample", (double)e->scene.oversample},
        {"phi_steps", (double)e->scene.phis},
        {"sources", (double)e->scene.sources},
        {"mosaic_domains", (double)e->scene.mosaics},
        {"layers", (double)e->scene.layers},
        {"cells_a", e->scene.cells[0]},
        {"cells_b", e->scene.cells[1]},
        {"cells_c", e->scene.cells[2]},
        {"polarisation", e->scene.kahn},
        {"default_F", e->scene.default_F},
        {"reflections", (double)e->scene.hkls},
        {"mosaic_spread_deg", e->mosaic_spread * BR_RTD},
    };
    for (size_t i = 0; i < sizeof count / sizeof count[0]; i++) {
        snprintf(name, sizeof name, "/entry/fathom/resolved/%s", count[i].name);
        put_number(o, name, count[i].v, NULL);
    }
}

static void put_quirks(out *o, const br_job *job)
{
    const char *on[BR_QUIRKS];
    int n = 0;
    put_count(o, "/entry/fathom/quirks", (int64_t)job->base.scene.quirks);
    for (int q = 0; q < BR_QUIRKS; q++)
        if (br_has(&job->base.scene, (br_quirk)q)) on[n++] = br_quirks[q].name;
    if (o->status == FTH_OK)
        o->status = fth_h5_put_strings(o->w, "/entry/fathom/quirk_names", on, n, o->err);
}

static void put_inputs(out *o, const br_job *job)
{
    for (int i = 0; i < job->n_inputs; i++) {
        char name[80], hex[20];
        snprintf(name, sizeof name, "/entry/fathom/inputs/%s", job->input[i].key);
        snprintf(hex, sizeof hex, "%016llx", (unsigned long long)job->input[i].hash);
        const char *path = job->input[i].written ? job->input[i].written : job->input[i].path;
        const char *slash = strrchr(path, '/');
        put_text(o, name, slash ? slash + 1 : path);
        note(o, name, "xxh64", hex);
    }
}

static void put_facts(out *o, const br_job *job)
{
    put_list(o, job, "/entry/fathom/frame_tie", FTH_I64, NULL, get_tie);
    put_list(o, job, "/entry/fathom/frame_checksum", FTH_I64, NULL, get_check);
    put_list(o, job, "/entry/fathom/photons", FTH_F64, "photons", get_photons);
    put_list(o, job, "/entry/fathom/largest", FTH_F64, "photons", get_largest);
    put_list(o, job, "/entry/fathom/fluence", FTH_F64, "photons/m2", get_fluence);
}

static void put_fathom(out *o, const br_job *job, const rotation *t)
{
    const int64_t nine[2] = {3, 3};
    put_text(o, "/entry/fathom/version", fth_version());
    put_text(o, "/entry/fathom/kind", job->series.stills ? "stills" : "rotation");
    put_text(o, "/entry/fathom/signal", job->series.counts ? "counts" : "photons");
    put_settings(o, job);
    put_parameters(o, job);
    put_quirks(o, job);
    put_count(o, "/entry/fathom/seeds/noise", -job->base.noise_seed);
    put_count(o, "/entry/fathom/seeds/mosaic", -job->base.mosaic_seed);
    put_count(o, "/entry/fathom/seeds/misset", -job->base.misset_seed);
    put_count(o, "/entry/fathom/seeds/stills", job->series.seed);
    put_inputs(o, job);
    put_facts(o, job);
    put(o, "/entry/fathom/lab_to_nexus", FTH_F64, 2, nine, t->row);
    note(o, "/entry/fathom", "NX_class", "NXcollection");
}

/* NXmx wants times. A simulation has none, and the time of the run would make equal jobs differ:
 * all start at the year 2000 and last as long as their exposures. */
static void put_times(out *o, const br_job *job)
{
    static const time_t start = 946684800;
    const double took = ceil(job->base.exposure * (double)job->series.frames), most = 1e9;
    const time_t end = start + (time_t)(took > most ? most : took > 0 ? took : 0);
    const struct {
        const char *name;
        time_t t;
    } row[2] = {{"/entry/start_time", start}, {"/entry/end_time_estimated", end}};
    for (int i = 0; i < 2; i++) {
        char text[40] = "";
        struct tm utc;
        if (gmtime_r(&row[i].t, &utc)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
        put_text(o, row[i].name, text);
    }
}

static fth_status put_all(br_nxmx *x, fth_err *err)
{
    out o = {x->w, FTH_OK, err};
    const br_job *job = x->job;
    const rotation t = to_nexus(&job->base.scene);
    if (!job->base.scene.curved) /* NXmx has no curved modules: the name keeps readers from taking
                                    them for flat */
        put_text(&o, "/entry/definition", "NXmx");
    put_text(&o, "/entry/title", fth_config_text(job->call->config, "name"));
    put_times(&o, job);
    put_text(&o, "/entry/instrument/name", "Fathom bragg");
    note(&o, "/entry/instrument/name", "short_name", "bragg");
    put_detector(&o, job, &t);
    put_beam(&o, job);
    put_sample(&o, job, &t);
    put_fathom(&o, job, &t);
    note(&o, "/entry/data/data", "units", job->series.counts ? "counts" : "photons");
    note(&o, "/entry/data/data", "long_name", "photons per pixel");
    note(&o, "/entry/data", "NX_class", "NXdata");
    note(&o, "/entry/data", "signal", "data");
    static const char *const axes[3] = {"omega", ".", "."};
    if (o.status == FTH_OK)
        o.status = fth_h5_put_attr_texts(o.w, "/entry/data", "axes", axes, 3, err);
    note(&o, "/entry", "NX_class", "NXentry");
    note(&o, "/entry", "default", "data");
    note(&o, "/", "NX_class", "NXroot");
    note(&o, "/", "default", "entry");
    return o.status;
}

fth_status br_nxmx_commit(br_nxmx *x, fth_err *err)
{
    fth_status s = x->data.commit(x->data.self, err);
    if (s == FTH_OK) s = put_all(x, err);
    if (s != FTH_OK) {
        br_nxmx_abandon(x);
        return s;
    }
    s = fth_h5_commit(x->w, err);
    *x = (br_nxmx){0};
    return s;
}
