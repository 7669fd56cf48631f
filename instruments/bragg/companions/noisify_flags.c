/* noisify_flags.c - the flags of noisify, and the settings derived from them and from the files. */
#include "../image/smv_header.h"
#include "noisify.h"
#include "words.h"

#include <math.h>
#include <string.h>
#include <time.h>

const char br_noisify_doc[] =
    "Takes an image of expected photons, float32 without a header as '-floatfile' of a render "
    "writes it, and the flags of the program noisify. Writes intimage.img without noise, "
    "noiseimage.img with it, and image.pgm.\n\n"
    "Image: -bin FILE (also -floatfile), -header FILE (an SMV image whose header supplies what "
    "flags leave out), "
    "-detpixels N, -detpixels_x N, -detpixels_y N, -detsize MM, -pixel MM (0.1), -distance MM "
    "(100), -lambda A (1), -Xbeam MM, -Ybeam MM, -phi DEG (0), -osc DEG (1).\n\n"
    "Photons: -scale X (1) times -fluence (1/r_e^2) times r_e^2 per unit of the image; -flicker X "
    "(0) and -calibration X (0.03), relative errors of source and pixels; -seed N, -calib_seed "
    "N.\n\n"
    "Detector: -psf gauss|fiber, -psf_fwhm UM (46), -psf_radius PIXELS (0: by the photons of each "
    "pixel), -gain X (1) ADU per photon, -adc ADU (40), -readout ADU (0; also -readnoise), -bits "
    "16|32.\n\n"
    "Output: -intfile FILE, -noisefile FILE, -pgmfile FILE, -pgmscale X, -nonoise, -nopgm.";

#define AT(member) offsetof(br_noisify, member)
#define MM .per = 1000
#define PATH .kind = BR_WORD_TEXT, .scale = BR_NOISIFY_PATH

static const br_word table[] = {
    {.name = "-bin", PATH, .at = AT(image)},
    {.name = "-floatfile", PATH, .at = AT(image)},
    {.name = "-floatimage", PATH, .at = AT(image)},
    {.name = "-header", PATH, .at = AT(header)},
    {.name = "-scale", .at = AT(scale)},
    {.name = "-fluence", .at = AT(fluence)},
    {.name = "-gain", .at = AT(gain)},
    {.name = "-adc", .at = AT(adc)},
    {.name = "-readout", .at = AT(readout)}, /* and whatever follows it, where lenient */
    {.name = "-readout_noise", .at = AT(readout), .exact = true},
    {.name = "-readnoi", .at = AT(readout), .lenient = true},
    {.name = "-readnoise", .at = AT(readout), .exact = true},
    {.name = "-flicker", .at = AT(flicker)},
    {.name = "-calibration", .at = AT(calibration)},
    {.name = "-seed", .kind = BR_WORD_NEGATED, .at = AT(seed), .also = AT(seed_given)},
    {.name = "-calib_seed", .kind = BR_WORD_NEGATED, .at = AT(calib_seed), .also = AT(calib_given)},
    {.name = "-badpix_seed", .kind = BR_WORD_INT, .at = AT(unused)},
    {.name = "-hotpix_seed", .kind = BR_WORD_INT, .at = AT(unused)},
    {.name = "-bits", .kind = BR_WORD_INT, .at = AT(bits)},
    {.name = "-psf", .kind = BR_WORD_TEXT, .at = AT(psf_name), .scale = 32, .exact = true},
    {.name = "-psf_fwhm", .at = AT(psf_fwhm), .per = 1e6},
    {.name = "-psf_fw", .at = AT(psf_fwhm), .per = 1e6, .lenient = true},
    {.name = "-psf_si", .at = AT(psf_fwhm), .per = 1e6, .lenient = true},
    {.name = "-psf_size", .at = AT(psf_fwhm), .per = 1e6},
    {.name = "-psf_wi", .at = AT(psf_fwhm), .per = 1e6, .lenient = true},
    {.name = "-psf_width", .at = AT(psf_fwhm), .per = 1e6},
    {.name = "-psf_radius", .kind = BR_WORD_INT, .at = AT(psf_radius)},
    {.name = "-psf_rad", .kind = BR_WORD_INT, .at = AT(psf_radius), .lenient = true},
    {.name = "-pixel", .at = AT(pixel), MM},
    {.name = "-detpixels", .kind = BR_WORD_INT, .at = AT(fast), .exact = true},
    {.name = "-detpixels", .kind = BR_WORD_INT, .at = AT(slow), .exact = true},
    {.name = "-detpixels_x", .kind = BR_WORD_INT, .at = AT(fast)},
    {.name = "-detpixels_f", .kind = BR_WORD_INT, .at = AT(fast)},
    {.name = "-detpixels_y", .kind = BR_WORD_INT, .at = AT(slow)},
    {.name = "-detpixels_s", .kind = BR_WORD_INT, .at = AT(slow)},
    {.name = "-detsize", .at = AT(detsize_f), MM, .exact = true},
    {.name = "-detsize", .at = AT(detsize_s), MM, .exact = true},
    {.name = "-detsize_f", .at = AT(detsize_f), MM},
    {.name = "-detsize_x", .at = AT(detsize_f), MM},
    {.name = "-detsize_s", .at = AT(detsize_s), MM},
    {.name = "-detsize_y", .at = AT(detsize_s), MM},
    {.name = "-distance", .at = AT(distance), MM},
    {.name = "-lambda", .at = AT(lambda), .scale = 1e-10},
    {.name = "-Xbeam", .at = AT(xbeam), MM},
    {.name = "-Ybeam", .at = AT(ybeam), MM},
    {.name = "-phi", .at = AT(phi)},
    {.name = "-osc", .at = AT(osc)},
    {.name = "-intfile", PATH, .at = AT(int_file)},
    {.name = "-intimage", PATH, .at = AT(int_file)},
    {.name = "-noisefile", PATH, .at = AT(noise_file), .also = AT(noise), .meant = true},
    {.name = "-noiseimage", PATH, .at = AT(noise_file), .also = AT(noise), .meant = true},
    {.name = "-pgmfile", PATH, .at = AT(pgm_file), .also = AT(pgm), .meant = true},
    {.name = "-pgmimage", PATH, .at = AT(pgm_file), .also = AT(pgm), .meant = true},
    {.name = "-pgmscale", .at = AT(pgm_scale), .also = AT(pgm), .meant = true},
    {.name = "-nopgm", .kind = BR_WORD_PUT, .at = AT(pgm)},
    {.name = "-nonoise", .kind = BR_WORD_PUT, .at = AT(noise)},
};

static void set_defaults(br_noisify *n)
{
    *n = (br_noisify){.int_file = "intimage.img",
                      .noise_file = "noiseimage.img",
                      .pgm_file = "image.pgm",
                      .noise = 1,
                      .pgm = 1,
                      .fluence = BR_FLUENCE,
                      .scale = 1,
                      .gain = 1,
                      .adc = 40,
                      .calibration = 0.03,
                      .psf_fwhm = 46e-6,
                      .bits = 16,
                      .calib_seed = 123456789,
                      .osc = (double)NAN,
                      .phi = (double)NAN};
    n->pixel = n->detsize_f = n->detsize_s = n->distance = n->lambda = n->xbeam = n->ybeam =
        (double)NAN;
}

static void set_if_missing(double *v, double other)
{
    if (isnan(*v)) *v = other;
}

/* Settings missing on the command line come from the header file. The original copies the header
 * verbatim and takes from it only sizes, which override the flags. */
static fth_status take_header(br_noisify *n, fth_mem *mem, bool substring, fth_err *err)
{
    br_image_header h;
    if (!*n->header) return FTH_OK;
    FTH_TRY(br_image_header_read(&h, mem, n->header, substring, err));
    n->header_bytes = h.said;
    if (n->original) {
        n->fast = h.fast;
        n->slow = h.slow;
        if (!isnan(h.pixel)) n->pixel = h.pixel;
        return FTH_OK;
    }
    set_if_missing(&n->pixel, h.pixel);
    set_if_missing(&n->distance, h.distance);
    set_if_missing(&n->lambda, h.lambda);
    set_if_missing(&n->xbeam, h.xbeam);
    set_if_missing(&n->ybeam, h.ybeam);
    set_if_missing(&n->phi, h.phi / BR_DEGREE);
    set_if_missing(&n->osc, h.osc / BR_DEGREE);
    if (n->fast <= 0 && isnan(n->detsize_f)) n->fast = h.fast;
    if (n->slow <= 0 && isnan(n->detsize_s)) n->slow = h.slow;
    return FTH_OK;
}

/* The pair of factors that is nearest to a square, the smaller one first. */
static void factor(int64_t pixels, int64_t *fast, int64_t *slow)
{
    *fast = (int64_t)sqrt((double)pixels);
    while (*fast > 1 && pixels % *fast) (*fast)--;
    *slow = *fast > 0 ? pixels / *fast : 0;
}

static fth_status find_size(br_noisify *n, fth_err *err)
{
    fth_path_info info;
    FTH_TRY(fth_path_stat(n->image, &info, err));
    const int64_t pixels = (int64_t)info.bytes / 4;
    set_if_missing(&n->pixel, 1e-4);
    if (n->fast <= 0 && !isnan(n->detsize_f))
        n->fast = (int64_t)ceil(n->detsize_f / n->pixel - 0.5);
    if (n->slow <= 0 && !isnan(n->detsize_s))
        n->slow = (int64_t)ceil(n->detsize_s / n->pixel - 0.5);
    if (n->fast > 0 && n->slow <= 0) n->slow = pixels / n->fast;
    if (n->slow > 0 && n->fast <= 0) n->fast = pixels / n->slow;
    if (n->fast <= 0 && n->slow <= 0) factor(pixels, &n->fast, &n->slow);
    const bool sane = n->fast > 0 && n->slow > 0 && n->fast <= INT32_MAX && n->slow <= INT32_MAX;
    if (sane && n->fast * n->slow * 4 == (int64_t)info.bytes) return FTH_OK;
    FTH_FAIL(err, FTH_E_FILE_SHAPE, "%s has %lld bytes, not the 4 x %lld x %lld of its pixels",
             n->image, (long long)info.bytes, (long long)n->fast, (long long)n->slow);
    fth_err_hint(err, "give the size with -detpixels_x and -detpixels_y");
    return FTH_E_FILE_SHAPE;
}

static fth_status set_psf(br_noisify *n, bool lenient, fth_err *err)
{
    static const char *const names[] = {"none", "gauss", "fiber"};
    const int64_t longer = n->fast > n->slow ? n->fast : n->slow;
    const double fwhm = n->original ? (double)(float)n->psf_fwhm : n->psf_fwhm;
    n->psf = (br_psf){.fwhm = fwhm / n->pixel, .radius = n->psf_radius, .most = longer};
    for (int k = 0; *n->psf_name && k < 3; k++)
        if (lenient ? strstr(n->psf_name, names[k]) != NULL : strcmp(n->psf_name, names[k]) == 0)
            n->psf.kind = k;
    const bool named = !*n->psf_name || n->psf.kind || strcmp(n->psf_name, "none") == 0 || lenient;
    if (!(n->psf.fwhm > 0)) n->psf.kind = BR_PSF_NONE;
    if (named) return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND, "-psf takes gauss, fiber or none, not '%s'", n->psf_name);
    fth_err_hint(err, "leave it out for a detector without point spread");
    return FTH_E_COMMAND;
}

static fth_status check(const br_noisify *n, fth_err *err)
{
    const struct {
        const char *flag;
        double value;
        bool good;
    } rows[] = {
        {"-scale", n->scale, isfinite(n->scale)},
        {"-fluence", n->fluence, isfinite(n->fluence) && n->fluence >= 0},
        {"-gain", n->gain, isfinite(n->gain)},
        {"-adc", n->adc, isfinite(n->adc)},
        {"-readout", n->readout, isfinite(n->readout)},
        {"-flicker", n->flicker, isfinite(n->flicker)},
        {"-calibration", n->calibration, isfinite(n->calibration)},
        {"-pixel", n->pixel, isfinite(n->pixel) && n->pixel > 0},
        {"-bits", (double)n->bits, n->bits == 16 || n->bits == 32},
        {"-psf_fwhm", n->psf_fwhm, isfinite(n->psf_fwhm)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!rows[i].good)
            return FTH_FAIL(err, FTH_E_COMMAND, "%s is %g: outside its range", rows[i].flag,
                            rows[i].value);
    return FTH_OK;
}

static fth_status set_seeds(br_noisify *n, const br_call *call, fth_err *err)
{
    int64_t all;
    FTH_TRY(br_call_int(call, "seed", 0, &all, err));
    int64_t clock = (int64_t)time(NULL);
    FTH_TRY(fth_ranks_agree(fth_context_ranks(call->ctx), &clock, err)); /* one seed for all */
    const bool given = call->value(call->user, "seed") != NULL;
    if (!n->seed_given) n->seed = given ? -all : n->serial ? -clock : -1;
    if (!n->calib_given && given) n->calib_seed = -all;
    return FTH_OK;
}

/* The original takes any word that contains this name for the flag; the last one wins. */
static void take_plain_name(br_noisify *n, const br_call *call)
{
    for (int i = 0; i < call->n_words; i++)
        if (strstr(call->word[i], "floatimage.bin") && strlen(call->word[i]) < BR_NOISIFY_PATH)
            memcpy(n->image, call->word[i], strlen(call->word[i]) + 1);
}

fth_status br_noisify_resolve(br_noisify *n, const br_call *call, fth_err *err)
{
    uint32_t quirks;
    set_defaults(n);
    FTH_TRY(br_call_quirks(call, &quirks, err));
    const bool lenient = quirks >> BR_QUIRK_SUBSTRING_FLAGS & 1;
    const char *compat = call->value(call->user, "compat");
    n->serial = quirks >> BR_QUIRK_SHARED_RAN1 & 1;
    n->original = compat && strcmp(compat, "c") == 0;
    FTH_TRY(br_words_read(table, sizeof table / sizeof table[0], n, lenient, call->n_words,
                          call->word, NULL, err));
    if (lenient) take_plain_name(n, call);
    if (!*n->image) {
        FTH_FAIL(err, FTH_E_COMMAND, "an image is expected: -bin FILE");
        fth_err_hint(err, "FILE holds float32 pixels, as -floatfile of bragg writes them");
        return FTH_E_COMMAND;
    }
    FTH_TRY(
        take_header(n, fth_context_mem(call->ctx), quirks >> BR_QUIRK_HEADER_SUBSTRING & 1, err));
    FTH_TRY(find_size(n, err));
    FTH_TRY(check(n, err));
    set_if_missing(&n->distance, 0.1);
    set_if_missing(&n->lambda, 1e-10);
    set_if_missing(&n->xbeam, (double)n->fast * n->pixel / 2);
    set_if_missing(&n->ybeam, (double)n->slow * n->pixel / 2);
    set_if_missing(&n->phi, 0);
    set_if_missing(&n->osc, 1);
    FTH_TRY(set_psf(n, lenient, err));
    return set_seeds(n, call, err);
}

/* ---- headers ---- */

enum { ROOM = 1024 };
static int write_header(const br_noisify *n, char *text)
{
    const bool little = *(const char *)&(const int){1}, ours = !n->original;
    char more[80] = "";
    if (ours && n->bits == 32) snprintf(more, sizeof more, "Data_type=long int;\n");
    if (ours) snprintf(more + strlen(more), sizeof more / 2, "ADC_OFFSET=%.15g;\n", round(n->adc));
    /* the original's Y runs the other way */
    const double height = n->pixel * (double)n->slow, y = ours ? n->ybeam : height - n->ybeam;
    return snprintf(text, ROOM,
                    "{\nHEADER_BYTES=512;\nDIM=2;\nBYTE_ORDER=%s_endian;\nTYPE=%s;\n"
                    "SIZE1=%lld;\nSIZE2=%lld;\nPIXEL_SIZE=%g;\nDISTANCE=%g;\nWAVELENGTH=%g;\n"
                    "BEAM_CENTER_X=%g;\nBEAM_CENTER_Y=%g;\nPHI=%g;\nOSC_START=%g;\nOSC_RANGE=%g;\n"
                    "%sDETECTOR_SN=000;\nBEAMLINE=fake;\n}\f",
                    little ? "little" : "big", n->bits == 32 ? "long_integer" : "unsigned_short",
                    (long long)n->fast, (long long)n->slow, n->pixel * 1000, n->distance * 1000,
                    n->lambda * 1e10, n->xbeam * 1000, y * 1000, n->phi, n->phi, n->osc, more);
}

static fth_status read_header(const br_noisify *n, fth_mem *mem, char *text, fth_err *err)
{
    const fth_raw_layout layout = {.dtype = FTH_U8, .n_axes = 1, .size = {n->header_bytes}};
    const int64_t first = 0;
    fth_source source;
    FTH_TRY(fth_raw_open(&source, mem, n->header, &layout, err));
    const fth_status s = source.read(source.self, &first, &n->header_bytes, text, err);
    fth_source_close(&source);
    return s;
}

/* Sixteen lines with a number in each are less than 512 bytes. */
fth_status br_noisify_header(const br_noisify *n, fth_mem *mem, void **text, int64_t *bytes,
                             fth_err *err)
{
    const bool repeated = n->original && n->header_bytes > 0;
    *bytes = repeated ? n->header_bytes : BR_HEADER;
    FTH_TRY(
        fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)(repeated ? *bytes : ROOM), "header", text, err));
    fth_status s = FTH_OK;
    if (repeated) {
        s = read_header(n, mem, *text, err);
    } else {
        memset(*text, ' ', ROOM);
        const int used = write_header(n, *text);
        ((char *)*text)[used] = ' ';
    }
    if (s != FTH_OK) (void)fth_mem_release(mem, *text, NULL);
    return s;
}
