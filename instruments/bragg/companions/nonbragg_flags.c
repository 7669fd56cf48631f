/* nonbragg_flags.c - the flags of nonbragg: its own are taken out, the rest are flags of the
 * render, with a placeholder crystal.
 *
 * The program of that name has the axes of MOSFLM, but takes -Xbeam along fast and -Ybeam along
 * slow, with a default half a pixel off the middle, to either side. That is the convention CUSTOM
 * with its defaults; an explicit convention is used as in a render.
 */
#include "nonbragg_flags.h"
#include "../experiment/resolve.h"

#include <math.h>
#include <string.h>

const char br_nonbragg_doc[] =
    "Photons that a sample without a lattice scatters into each pixel, from a table of its "
    "amplitude F, in electrons, over sin(theta)/lambda in 1/A: two columns of text. Beam, "
    "detector, "
    "sampling and output have the flags of a render ('fathom bragg --flags'); oversampling, "
    "sources "
    "with their weights, sensor layers, polarisation and solid angle are all used.\n\n"
    "Table: -stol FILE; -4stol FILE and -Q FILE with other first columns. Sample: -samplesize MM "
    "(0.1), -thick MM along the beam, -width MM, -height MM (both cut to -beamsize), -density "
    "G/CM3 "
    "(1), -MW G/MOL (18); or -molecules N. -Fmap writes F instead of photons.\n\n"
    "The beam centre is -Xbeam along fast and -Ybeam along slow, unless a convention is typed.\n\n"
    "With -img FILE and -stolout FILE it inverts an image: each pixel of an SMV image gives an F; "
    "they "
    "are "
    "pooled by the rows of the table (0.0025/A apart where there is none), and rows with more than "
    "100 pixels are written as 'stol mean rmsd median mad n'. -adc ADU (40) and -gain X (1) make "
    "photons of pixels; -ignore VALUE (any number of times) drops pixels; means leave out values "
    "further from the median than 7.4 mad, unless -noreject is given.";

#define AT(member) offsetof(br_nonbragg, member)
#define PATH .kind = BR_WORD_TEXT, .scale = FTH_PATH

static const br_word table[] = {
    {.name = "-stol", PATH, .at = AT(stol), .exact = true},
    {.name = "-4stol", PATH, .at = AT(stol4), .exact = true},
    {.name = "-Q", PATH, .at = AT(q), .exact = true},
    {.name = "-stolout", PATH, .at = AT(stolout), .exact = true},
    {.name = "-img", PATH, .at = AT(img), .exact = true},
    {.name = "-samplesize", .at = AT(sample[0]), .scale = 1e-3},
    {.name = "-samplesize", .at = AT(sample[1]), .scale = 1e-3},
    {.name = "-samplesize", .at = AT(sample[2]), .scale = 1e-3},
    {.name = "-sample_size", .at = AT(sample[0]), .scale = 1e-3},
    {.name = "-sample_size", .at = AT(sample[1]), .scale = 1e-3},
    {.name = "-sample_size", .at = AT(sample[2]), .scale = 1e-3},
    {.name = "-sample_thick", .at = AT(sample[0]), .scale = 1e-3},
    {.name = "-sample_x", .at = AT(sample[0]), .scale = 1e-3},
    {.name = "-thick", .at = AT(sample[0]), .scale = 1e-3, .exact = true},
    {.name = "-sample_width", .at = AT(sample[1]), .scale = 1e-3},
    {.name = "-sample_y", .at = AT(sample[1]), .scale = 1e-3},
    {.name = "-width", .at = AT(sample[1]), .scale = 1e-3},
    {.name = "-sample_heigh", .at = AT(sample[2]), .scale = 1e-3, .lenient = true},
    {.name = "-sample_height", .at = AT(sample[2]), .scale = 1e-3},
    {.name = "-sample_z", .at = AT(sample[2]), .scale = 1e-3},
    {.name = "-heigh", .at = AT(sample[2]), .scale = 1e-3, .lenient = true},
    {.name = "-height", .at = AT(sample[2]), .scale = 1e-3},
    {.name = "-density", .at = AT(density), .scale = 1e6},
    {.name = "-sample_density", .at = AT(density), .scale = 1e6},
    {.name = "-sample_den", .at = AT(density), .scale = 1e6, .lenient = true},
    {.name = "-MW", .at = AT(weight), .exact = true},
    {.name = "-molecular_weight", .at = AT(weight)},
    {.name = "-molecules", .at = AT(molecules), .exact = true},
    {.name = "-gain", .at = AT(gain)},
    {.name = "-ignore", .kind = BR_WORD_LIST, .at = AT(ignore)},
    {.name = "-noreject", .kind = BR_WORD_PUT, .at = AT(keep_all), .scale = 1},
    {.name = "-Fmap", .kind = BR_WORD_PUT, .at = AT(amplitude), .scale = 1},
};

static void set_defaults(br_nonbragg *n)
{
    memset(n, 0, sizeof *n);
    for (int k = 0; k < 3; k++) n->sample[k] = 1e-4;
    n->density = 1e6;
    n->weight = 18;
    n->molecules = (double)NAN;
    n->gain = 1;
}

/* The beam centre of the original where none was typed. */
static void set_centre(br_flags *f)
{
    const double pixel = f->pixel > 0 ? f->pixel : 1e-4;
    for (int k = 0; k < 2; k++) {
        double size = f->detsize[k] > 0 ? f->detsize[k] : 0.1024;
        if (f->pixels[k] > 0) size = pixel * f->pixels[k];
        if (isnan(f->beam_centre[k]) && isnan(f->close_point[k]) && isnan(f->org[k]))
            f->beam_centre[k] = (size + (k ? pixel : -pixel)) / 2;
    }
}

/* The crystal is ignored; these values pass the render's checks. */
static void drop_crystal(br_flags *f)
{
    static const double right_angle = 1.57079632679489661923;
    const double cell[6] = {1, 1, 1, right_angle, right_angle, right_angle};
    f->hkl = f->mat = f->fdump = NULL;
    f->quirks &= ~(1u << BR_QUIRK_AUTO_FDUMP);
    memcpy(f->cell, cell, sizeof f->cell);
    f->cell_given = true;
    f->default_F = 1;
    f->misset_kind = 0;
    f->water = 0;
    f->interpolate = 0;
    f->mosaic_spread = -1;
    f->mosaic_domains = -1;
    f->phi_steps = -1;
    f->osc = f->phi_step = -1;
    for (int k = 0; k < 3; k++) {
        f->cells[k] = 1;
        f->sample[k] = 0;
    }
}

static bool has_convention(const br_flags *f)
{
    return f->given[BR_FLAG_MOSFLM] || f->given[BR_FLAG_XDS] || f->given[BR_FLAG_ADXV] ||
           f->given[BR_FLAG_DENZO] || f->given[BR_FLAG_DIALS];
}

/* Other words are flags of the render. */
static fth_status read_rest(br_nonbragg *n, br_flags *f, const br_call *call, bool *used,
                            char **rest, fth_err *err)
{
    const fth_direct_call direct = br_call_direct(call, 0, rest);
    fth_direct_call with = direct;
    FTH_TRY(br_flags_of_call(f, &direct, err)); /* the mode of reading comes first */
    const bool lenient = f->quirks >> BR_QUIRK_SUBSTRING_FLAGS & 1;
    FTH_TRY(br_words_read(table, sizeof table / sizeof table[0], n, lenient, call->n_words,
                          call->word, used, err));
    for (int i = 0; i < call->n_words; i++)
        if (!used[i]) rest[with.n_words++] = call->word[i];
    FTH_TRY(br_flags_of_call(f, &with, err));
    if (*n->img) f->img = n->img;
    n->n_read = br_flags_reads(f, n->read);
    if (!has_convention(f)) {
        f->convention = BR_CUSTOM;
        if (!f->img && !f->mask) set_centre(f);
    }
    drop_crystal(f);
    return FTH_OK;
}

static fth_status read_table(br_nonbragg *n, fth_mem *mem, bool strict, fth_err *err)
{
    static const double pi = 3.14159265358979323846;
    const double lambda = n->e.param[BR_LAM];
    const int given = !!*n->stol + !!*n->stol4 + !!*n->q;
    if (given > 1) return FTH_FAIL(err, FTH_E_COMMAND, "one of -stol, -4stol and -Q is expected");
    if (*n->stol) return br_stol_read(&n->table, mem, n->stol, 1e10, strict, err);
    if (*n->stol4) return br_stol_read(&n->table, mem, n->stol4, 1e10 / 4, strict, err);
    if (*n->q) return br_stol_read(&n->table, mem, n->q, 1e10 / (4 * pi), strict, err);
    if (!*n->stolout) {
        FTH_FAIL(err, FTH_E_COMMAND, "a table of F is expected: -stol FILE");
        fth_err_hint(err, "its two columns are sin(theta)/lambda in 1/A, and F in electrons");
        return FTH_E_COMMAND;
    }
    /* rows 0.0025/A apart, up to backscattering */
    return br_stol_make(&n->table, mem, (int64_t)(1 / (lambda * 0.0025e10)) + 2, 0.0025e10, 1e10,
                        err);
}

static fth_status check(br_nonbragg *n, fth_err *err)
{
    const double beam = n->e.beamsize;
    double volume = n->sample[0];
    for (int k = 1; k < 3; k++) volume *= beam >= 0 && beam < n->sample[k] ? beam : n->sample[k];
    if (isnan(n->molecules)) n->molecules = volume * n->density * BR_AVOGADRO / n->weight;
    if (!isfinite(n->molecules) || n->molecules < 0)
        return FTH_FAIL(err, FTH_E_COMMAND, "the number of molecules is %g", n->molecules);
    if (!(n->gain > 0) || !isfinite(n->gain))
        return FTH_FAIL(err, FTH_E_COMMAND, "-gain is %g: expected a number above 0", n->gain);
    if (!*n->stolout || *n->img) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "-stolout needs an image: -img FILE");
    fth_err_hint(err, "leave -stolout out to compute an image from the table");
    return FTH_E_COMMAND;
}

static fth_status resolve(br_nonbragg *n, const br_call *call, bool *used, char **rest,
                          fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->ctx);
    br_flags f;
    br_flags_default(&f, true);
    FTH_TRY(read_rest(n, &f, call, used, rest, err));
    FTH_TRY(br_experiment_resolve(&n->e, mem, &f, err));
    FTH_TRY(check(n, err));
    return read_table(n, mem, f.spec, err);
}

fth_status br_nonbragg_resolve(br_nonbragg *n, const br_call *call, fth_err *err)
{
    fth_mem *mem = fth_context_mem(call->ctx);
    const uint64_t words = (uint64_t)call->n_words + 1;
    void *block = NULL;
    set_defaults(n);
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, words * (sizeof(char *) + sizeof(bool)), "words",
                         &block, err));
    char **rest = block;
    bool *used = (bool *)(rest + words);
    memset(used, 0, words * sizeof *used);
    const fth_status s = resolve(n, call, used, rest, err);
    fth_mem_release(mem, block, NULL);
    return s;
}

void br_nonbragg_clear(br_nonbragg *n)
{
    br_stol_clear(&n->table);
    br_experiment_clear(&n->e);
}
