/* resolve.c - from flags to an experiment, in the order of the reference.
 *
 * Later numbers depend on earlier ones: the oversampling on the distance after the detector was
 * placed, the shuffle table of the noise on the mosaic domains drawn before it. Everything is
 * checked here, before anything is written.
 */
#include "resolve.h"
#include "../flags/flag_row.h"
#include "../geometry/cell.h"
#include "mosaic.h"

#include <string.h>

/* ---- non-finite numbers ---- */

/* Given ones are named by their flag; derived ones are checked after placement. */
static fth_status check_typed(const br_flags *f, fth_err *err)
{
    for (int id = 0; id < BR_FLAG_COUNT; id++) {
        const br_flag_row *row = &br_flag_rows[id];
        if (row->kind != BR_KIND_REAL || !f->given[id]) continue;
        const double *v = (const double *)(const void *)((const char *)f + row->offset);
        for (int i = 0; i < row->values * row->copies; i++)
            if (!isfinite(v[i])) {
                FTH_FAIL(err, FTH_E_COMMAND, "%.*s is %g", (int)strcspn(row->info.names, " "),
                         row->info.names, v[i]);
                fth_err_hint(err, "set it with %s%s%s", row->info.args,
                             row->info.unit[0] ? " in " : "", row->info.unit);
                return FTH_E_COMMAND;
            }
    }
    if (f->given[BR_FLAG_OVERSAMPLE] && f->oversample < 0) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "-oversample is %d: the number of subpixels cannot be negative", f->oversample);
        fth_err_hint(err, "0 chooses it from the size of the crystal");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

/* The reference reads it and does not use it: only check that it can be read. */
static fth_status check_stol(const br_experiment *e, const br_flags *f, fth_err *err)
{
    br_columns c = {0};
    if (!f->stol) return FTH_OK;
    FTH_TRY_CTX(br_columns_read(&c, e->mem, f->stol, 2, false, err), err, "reading -stol");
    fth_tensor_release(c.table);
    return FTH_OK;
}

static fth_status check_frame(const br_experiment *e, fth_err *err)
{
    const br_placed *f = &e->placed;
    double detector = f->close.v + f->distance.v + f->fbeam + f->sbeam, crystal = f->volume;
    for (int i = 0; i < 3; i++) {
        detector += f->pix0[i].v + f->fdet[i].v + f->sdet[i].v + f->odet[i].v;
        for (int k = 0; k < 3; k++) crystal += f->abc[i][k].v;
    }
    if (!isfinite(detector)) {
        FTH_FAIL(err, FTH_E_COMMAND,
                 "the detector cannot be placed: distance %g m, nearest point %g m away",
                 f->distance.v, f->close.v);
        fth_err_hint(err, "check the distance, the vectors and the angles of the detector");
        return FTH_E_COMMAND;
    }
    if (!isfinite(crystal)) {
        FTH_FAIL(err, FTH_E_COMMAND, "the unit cell is impossible: its volume is %g A^3",
                 f->volume);
        fth_err_hint(err, "check -cell, -mat and the wavelength");
        return FTH_E_COMMAND;
    }
    for (int p = 0; p < BR_PARAMS; p++)
        if (!isfinite(e->param[p]))
            return FTH_FAIL(err, FTH_E_COMMAND, "%s is %g", br_params[p].doc, e->param[p]);
    if (!isfinite(e->scene.mu))
        return FTH_FAIL(err, FTH_E_COMMAND, "absorption of the sensor is %g per m", e->scene.mu);
    return FTH_OK;
}

/* ---- whether there is anything to simulate ---- */

/* The dump file to read in the place of a text list; NULL: none. */
static const char *dump_to_read(const br_flags *f)
{
    if (f->hkl) return NULL;
    if (f->fdump) return f->fdump;
    return f->quirks >> BR_QUIRK_AUTO_FDUMP & 1 && f->dump && fth_path_is_readable(f->dump)
               ? f->dump
               : NULL;
}

bool br_flags_enough(const br_flags *f)
{
    const bool factors = f->hkl || f->default_F != 0 || dump_to_read(f);
    const bool lattice = f->mat || f->cell[0] != 0;
    return factors && lattice;
}

static fth_status check_enough(const br_flags *f, fth_err *err)
{
    if (br_flags_enough(f)) return FTH_OK;
    const bool lattice = f->mat || f->cell[0] != 0;
    FTH_FAIL(err, FTH_E_COMMAND,
             lattice ? "there are no structure factors to diffract" : "there is no unit cell");
    fth_err_hint(err, lattice ? "give -hkl FILE, -default_F x or --fdump FILE"
                              : "give -cell a b c al be ga, or -mat FILE");
    return FTH_E_COMMAND;
}

/* ---- beam ---- */

static fth_status resolve_beam(br_experiment *e, const br_flags *f, fth_err *err)
{
    double fluence = f->fluence;
    if (f->flux != 0 && f->exposure > 0 && f->beamsize >= 0)
        fluence = f->flux * f->exposure / f->beamsize / f->beamsize;
    memcpy(e->sample_typed, f->sample, sizeof e->sample_typed);
    memcpy(e->sample, f->sample, sizeof e->sample);
    for (int i = 1; i < 3 && f->beamsize >= 0; i++)
        if (f->beamsize < e->sample[i]) e->sample[i] = f->beamsize;
    e->flux = f->exposure > 0 ? fluence / f->exposure * f->beamsize * f->beamsize : f->flux;
    e->exposure = f->exposure;
    e->beamsize = f->beamsize;
    e->lambda0 = f->lambda;
    e->param[BR_FLU] = fluence;
    e->param[BR_LAM] = f->lambda;
    e->scene.kahn = f->kahn;
    e->scene.nopolar = f->nopolar;
    e->scene.water = f->water;
    e->scene.dmin = f->dmin;
    if (f->lambda > 0) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "the wavelength is %g A", f->lambda * 1e10);
    fth_err_hint(err, "set -lambda in Angstrom or -energy in eV");
    return FTH_E_COMMAND;
}

/* ---- steps ---- */

static fth_status refuse_count(const char *count, int n, const char *range, fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "count without range: %s %d, but no %s", count, n, range);
    fth_err_hint(err, "give %s as well", range);
    return FTH_E_COMMAND;
}

/* In spec mode a count needs a range; a count of 1 needs none. */
static fth_status check_counts(const br_flags *f, fth_err *err)
{
    if (!f->spec) return FTH_OK;
    for (int i = 0; i < 2; i++)
        if (f->div_steps[i] > 1 && f->div_range[i] < 0 && f->div_step[i] <= 0)
            return refuse_count(i ? "-vdivsteps" : "-hdivsteps", f->div_steps[i],
                                i ? "-vdivrange" : "-hdivrange", err);
    if (f->dispsteps > 1 && !f->given[BR_FLAG_DISPERSION])
        return refuse_count("-dispsteps", f->dispsteps, "-dispersion", err);
    if (f->layers > 1 && f->thickness < 0)
        return refuse_count("-detector_thicksteps", f->layers, "-detector_thick", err);
    return FTH_OK;
}

static void resolve_fan(br_experiment *e, const br_flags *f)
{
    br_steps div[2], disp = {f->dispersion, -1, f->dispsteps};
    for (int i = 0; i < 2; i++) {
        const bool one = f->spec && f->div_steps[i] == 1 && f->div_range[i] < 0;
        div[i] = (br_steps){f->div_range[i], f->div_step[i], one ? -1 : f->div_steps[i]};
        br_resolve_range(&div[i]);
    }
    br_resolve_range(&disp);
    e->fan = (br_fan){.h_range = div[0].range,
                      .h_step = div[0].step,
                      .v_range = div[1].range,
                      .v_step = div[1].step,
                      .dispersion = disp.range,
                      .dispersion_step = disp.step,
                      .hs = div[0].n,
                      .vs = div[1].n,
                      .wavelengths = disp.n,
                      .round = !f->square_div};
    e->dispersion = disp.range;
    e->dispsteps = disp.n;
    e->hdiv_range = div[0].range, e->hdiv_step = div[0].step, e->hdivs = div[0].n;
    e->vdiv_range = div[1].range, e->vdiv_step = div[1].step, e->vdivs = div[1].n;
}

static fth_status resolve_steps(br_experiment *e, const br_flags *f, fth_err *err)
{
    br_scene *s = &e->scene;
    FTH_TRY(check_counts(f, err));
    br_steps phi = {f->osc, f->phi_step, f->phi_steps}, layer = {f->thickness, -1, f->layers};
    br_resolve_spindle(&phi);
    if (phi.n <= 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "-osc %g with -phistep %g has no step", f->osc * BR_RTD,
                 f->phi_step * BR_RTD);
        fth_err_hint(err, "leave -phistep out, or widen -osc");
        return FTH_E_COMMAND;
    }
    e->osc = phi.range;
    s->phis = phi.n;
    s->phi_step = phi.step;
    e->param[BR_PHI] = f->phi;
    resolve_fan(e, f);
    br_resolve_layers(&layer, br_has(s, BR_QUIRK_LAYER_STEP));
    s->mu = f->mu;
    if (f->thickness > 0 && f->mu < 0) s->mu = 1.0 / f->thickness;
    s->thickness = layer.range;
    s->layer_step = layer.step;
    s->layers = layer.n;
    e->mosaic_spread = f->mosaic_spread;
    s->mosaics = f->mosaic_domains;
    br_resolve_mosaic(&e->mosaic_spread, &s->mosaics);
    s->mosaic_given = e->mosaic_spread > 0;
    return FTH_OK;
}

/* ---- seeds ---- */

static int64_t pick_seed(const br_flags *f, br_flag_id id, int typed, int64_t otherwise)
{
    if (f->given[id]) return -(int64_t)typed;
    return f->seed_all >= 0 ? -f->seed_all : otherwise;
}

static void resolve_seeds(br_experiment *e, const br_flags *f)
{
    const int64_t start = f->spec ? -1 : -f->clock;
    e->noise_seed = pick_seed(f, BR_FLAG_SEED, f->seed, start);
    e->mosaic_seed = pick_seed(f, BR_FLAG_MOSAIC_SEED, f->mosaic_seed, -12345678);
    e->misset_seed =
        pick_seed(f, BR_FLAG_MISSET_SEED, f->misset_seed, f->spec ? e->noise_seed : start);
    br_ran1_clear(&e->random);
}

/* Independent streams each start with an empty shuffle table. */
static void next_stream(br_experiment *e)
{
    if (!br_has(&e->scene, BR_QUIRK_SHARED_RAN1)) br_ran1_clear(&e->random);
}

/* ---- crystal ---- */

static void resolve_cell(br_experiment *e, const br_flags *f)
{
    if (!f->cell_given) return;
    e->scene.cell_given = 1;
    for (int i = 0; i < 3; i++) {
        e->param[BR_A + i] = f->cell[i] > 0 ? f->cell[i] : f->cell[0];
        e->param[BR_AL + i] = f->cell[3 + i] > 0 ? f->cell[3 + i] : acos(-1.0) / 2;
    }
}

static fth_status resolve_orientation(br_experiment *e, const br_flags *f, fth_err *err)
{
    br_scene *s = &e->scene;
    resolve_cell(e, f);
    if (f->mat) {
        FTH_TRY_CTX(br_matrix_read(f->mat, e->mem, s->mat, err), err, "reading -mat");
        s->mat_given = 1;
    }
    double angle[3] = {f->misset[0], f->misset[1], f->misset[2]};
    int64_t seed = e->misset_seed;
    if (f->misset_kind < 0) {
        br_random_misset(&e->random, &seed, br_has(s, BR_QUIRK_MISSET_90RAD), angle);
        next_stream(e);
    }
    s->misset_given = f->misset_kind != 0;
    for (int i = 0; i < 3; i++) e->param[BR_MX + i] = s->misset_given ? angle[i] : 0;
    return FTH_OK;
}

static double length(const br_dual *v)
{
    return sqrt(v[0].v * v[0].v + v[1].v * v[1].v + v[2].v * v[2].v);
}

/* The cell of a matrix, for users of the parameters. */
static void cell_of_matrix(br_experiment *e)
{
    double v[3][3], edge[3], angle[3];
    if (e->scene.cell_given) return;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) v[i][k] = e->placed.abc[i][k].v * 1e10;
    br_cell_of((const double(*)[3])v, edge, angle);
    for (int i = 0; i < 3; i++) {
        e->param[BR_A + i] = edge[i];
        e->param[BR_AL + i] = angle[i];
    }
}

/* Cells from the size of the crystal, subpixels from its size in reciprocal space (model 3.8). */
static fth_status resolve_size(br_experiment *e, const br_flags *f, fth_err *err)
{
    br_scene *s = &e->scene;
    double largest = 0;
    for (int i = 0; i < 3; i++) {
        const double edge = length(e->placed.abc[i]);
        s->cells[i] = e->sample[i] > 0 ? ceil(e->sample[i] / edge) : (double)f->cells[i];
        if (s->cells[i] <= 1) s->cells[i] = 1;
        e->sample[i] = edge * s->cells[i];
        if (i == 0 || largest < e->sample[i]) largest = e->sample[i];
    }
    const double pixel = e->lambda0 * e->placed.distance.v / s->pixel;
    e->oversample_wanted = 3.0 * largest / pixel;
    const double whole = ceil(e->oversample_wanted);
    e->recommended = whole >= 1 ? whole < 1e6 ? (int64_t)whole : 1000000 : 1;
    s->oversample = f->oversample > 0 ? f->oversample : e->recommended;
    if (f->oversample > 0 || whole < 1e6) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "the crystal of %g um would need %g subpixels along each edge",
             largest * 1e6, whole);
    fth_err_hint(err, "choose -oversample yourself, or check -xtalsize, -distance and -pixel");
    return FTH_E_COMMAND;
}

/* ---- arrays ---- */

static fth_status resolve_factors(br_experiment *e, const br_flags *f, fth_err *err)
{
    br_scene *s = &e->scene;
    br_reflections r = {0};
    const char *dump = dump_to_read(f);
    if (f->hkl && f->fdump) {
        FTH_FAIL(err, FTH_E_COMMAND, "-hkl and --fdump both give structure factors");
        fth_err_hint(err, "keep one of them");
        return FTH_E_COMMAND;
    }
    s->default_F = f->default_F;
    if (f->hkl)
        FTH_TRY_CTX(br_hkl_read(&r, e->mem, f->hkl, f->default_F, f->spec, err), err,
                    "reading -hkl");
    else if (dump)
        FTH_TRY_CTX(br_dump_read(&r, e->mem, dump, err), err, "reading the dump file");
    e->table = r.table;
    e->from_dump = dump != NULL;
    e->fractional = r.fractional;
    s->hkls = r.hkls;
    s->h_min = r.h_min, s->h_max = r.h_max;
    s->k_min = r.k_min, s->k_max = r.k_max;
    s->l_min = r.l_min, s->l_max = r.l_max;
    bool small = false;
    for (int i = 0; i < 3; i++) small = small || f->cells[i] <= 2; /* as given, whatever the size */
    s->interpolate = s->hkls > 0 && (f->interpolate == 2 ? small : f->interpolate != 0);
    return FTH_OK;
}

/* The whole grid is visited before it is trimmed. */
static fth_status check_fan(const br_fan *fan, fth_err *err)
{
    const double n = (double)fan->hs * (double)fan->vs * (double)fan->wavelengths;
    if (n <= 1e8) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND,
             "%lld x %lld directions with %lld wavelengths are too many sources",
             (long long)fan->hs, (long long)fan->vs, (long long)fan->wavelengths);
    fth_err_hint(err, "lower -hdivsteps, -vdivsteps or -dispsteps");
    return FTH_E_COMMAND;
}

static void count_deviation(void *user, double h, double v)
{
    (void)h;
    (void)v;
    ++*(int64_t *)user;
}

static fth_status resolve_sources(br_experiment *e, const br_flags *f, fth_err *err)
{
    br_scene *s = &e->scene;
    if (f->sources) {
        e->divergence_steps = -1;
        FTH_TRY_CTX(br_sources_read(&e->source, e->mem, f->sources, s->beam, f->spec, err), err,
                    "reading -sourcefile");
    } else {
        FTH_TRY(check_fan(&e->fan, err));
        FTH_TRY(br_sources_make(&e->source, e->mem, s, &e->fan, count_deviation,
                                &e->divergence_steps, err));
    }
    s->sources = fth_tensor_size(e->source, 0);
    const double *row = fth_tensor_data(e->source);
    for (int64_t i = 0; i < s->sources; i++)
        s->weight_sum += row[i * BR_SRC_COLUMNS + BR_SRC_WEIGHT];
    if (!br_has(s, BR_QUIRK_EQUAL_WEIGHTS) && !(s->weight_sum != 0 && isfinite(s->weight_sum))) {
        FTH_FAIL(err, FTH_E_COMMAND, "the weights of %lld sources sum to %g", (long long)s->sources,
                 s->weight_sum);
        fth_err_hint(err, "give one of them a weight above 0");
        return FTH_E_COMMAND;
    }
    s->steps = (double)s->sources * (double)s->mosaics * (double)s->phis * (double)s->oversample *
               (double)s->oversample;
    return FTH_OK;
}

static fth_status resolve_mask(br_experiment *e, const br_flags *f, const br_image_header *mask,
                               fth_err *err)
{
    const br_scene *s = &e->scene;
    if (!f->mask) return FTH_OK;
    if (mask->fast != s->fast || mask->slow != s->slow) {
        FTH_FAIL(err, FTH_E_FILE_SHAPE,
                 "mask %.300s has %lld x %lld pixels, the detector %lld x %lld", f->mask,
                 (long long)mask->fast, (long long)mask->slow, (long long)s->fast,
                 (long long)s->slow);
        fth_err_hint(err, "leave -detpixels and -pixel out: the mask sets them");
        return FTH_E_FILE_SHAPE;
    }
    FTH_TRY_CTX(br_image_open(&e->mask, e->mem, f->mask, mask, err), err, "reading -mask");
    e->scene.masked = 1;
    return FTH_OK;
}

static fth_status copy_path(char *to, const char *from, fth_err *err)
{
    const int n = snprintf(to, FTH_PATH, "%s", from ? from : "");
    if (n >= 0 && n < FTH_PATH) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "a file name of %d bytes is too long: %.100s...", n, from);
}

static fth_status resolve_outputs(br_experiment *e, const br_flags *f, fth_err *err)
{
    br_outputs *o = &e->out;
    FTH_TRY(copy_path(o->float_file, f->float_file, err));
    FTH_TRY(copy_path(o->int_file, f->int_file, err));
    FTH_TRY(copy_path(o->noise_file, f->write_noise ? f->noise_file : "", err));
    FTH_TRY(copy_path(o->pgm_file, f->write_pgm ? f->pgm_file : "", err));
    /* A cache for the next run: a failure to write it does not stop the image.
     */
    if (f->hkl && f->dump && fth_path_is_writable(f->dump))
        FTH_TRY(copy_path(o->dump_file, f->dump, err));
    FTH_TRY(copy_path(o->list_file, f->spec && o->dump_file[0] ? f->hkl : "", err));
    o->int_scale = f->int_scale;
    o->pgm_scale = f->pgm_scale;
    o->adc = f->adc;
    o->progress = f->progress;
    o->printout = f->printout;
    o->printout_pixel[0] = f->printout_pixel[0];
    o->printout_pixel[1] = f->printout_pixel[1];
    return FTH_OK;
}

/* ---- all of it ---- */

/* With -oversample_polar the factor would be applied after all, as in the reference: kernels have
 * only the two switches. */
static bool keeps_nopolar(const br_flags *f)
{
    return f->nopolar && !(f->quirks >> BR_QUIRK_NOPOLAR_UNDONE & 1);
}

static fth_status resolve_scene(br_experiment *e, const br_flags *f, fth_err *err)
{
    br_scene *s = &e->scene;
    s->quirks = f->quirks;
    s->precision = (int32_t)f->precision;
    s->shape = (int32_t)f->shape;
    s->fudge = f->fudge;
    s->oversample_thick = f->oversample_thick;
    s->oversample_polar = f->oversample_polar && !keeps_nopolar(f);
    s->oversample_omega = f->oversample_omega;
    s->chain_start = -1;
    e->compat_c = !f->spec;
    e->material = "Si";
    FTH_TRY(br_resolve_detector(e, f, err));
    FTH_TRY(resolve_beam(e, f, err));
    FTH_TRY(resolve_steps(e, f, err));
    /* Without a thickness all photons are captured; only the reference recomputes a capture of
     * 0. */
    if (s->thickness == 0 && !br_has(s, BR_QUIRK_LAST_LAYER)) s->oversample_thick = 0;
    resolve_seeds(e, f);
    FTH_TRY(resolve_orientation(e, f, err));
    br_place(s, e->param, &e->placed);
    FTH_TRY(check_frame(e, err));
    cell_of_matrix(e);
    return resolve_size(e, f, err);
}

static fth_status resolve(br_experiment *e, br_flags *f, fth_err *err)
{
    br_image_header mask = {0};
    FTH_TRY(check_typed(f, err));
    FTH_TRY(br_resolve_headers(f, &mask, e->mem, err));
    FTH_TRY(check_enough(f, err));
    FTH_TRY(resolve_scene(e, f, err));
    FTH_TRY(resolve_mask(e, f, &mask, err));
    FTH_TRY(resolve_outputs(e, f, err));
    FTH_TRY(resolve_factors(e, f, err));
    FTH_TRY(check_stol(e, f, err));
    FTH_TRY(resolve_sources(e, f, err));
    int64_t seed = e->mosaic_seed;
    FTH_TRY(br_mosaic_make(&e->mosaic_rotation, e->mem, e->scene.mosaics, e->mosaic_spread,
                           &e->random, &seed, err));
    next_stream(e);
    e->random.seed = e->noise_seed;
    return br_chain_start(&e->scene, e->param, fth_tensor_data(e->source), &e->mask, e->mem,
                          &e->scene.chain_start, err);
}

fth_status br_experiment_resolve(br_experiment *out, fth_mem *mem, const br_flags *f, fth_err *err)
{
    br_flags copy = *f; /* headers supply what was not given */
    memset(out, 0, sizeof *out);
    out->mem = mem;
    const fth_status s = resolve(out, &copy, err);
    if (s != FTH_OK) br_experiment_clear(out);
    return s;
}

fth_status br_experiment_dump(const br_experiment *e, fth_err *err)
{
    const br_scene *s = &e->scene;
    if (!e->out.dump_file[0] || !e->table) return FTH_OK;
    const br_reflections r = {.table = e->table,
                              .h_min = s->h_min,
                              .h_max = s->h_max,
                              .k_min = s->k_min,
                              .k_max = s->k_max,
                              .l_min = s->l_min,
                              .l_max = s->l_max,
                              .hkls = s->hkls};
    FTH_TRY(br_dump_write(&r, e->mem, e->out.dump_file, err));
    if (!e->out.list_file[0]) return FTH_OK;
    return br_dump_note(e->out.dump_file, e->out.list_file, e->mem, err);
}
