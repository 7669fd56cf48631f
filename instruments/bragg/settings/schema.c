/* schema.c - every setting of a job: one row with its type, range, default and unit.
 *
 * A key corresponds to one flag of the command line or to a few (see flags.def), with the same
 * meaning: angles in degrees, lengths in the unit beside it. An omitted key is an omitted flag.
 */
#include "settings.h"

#include <string.h>

static const fth_config_key keys[] = {
    FTH_INSTRUMENT_KEYS("1", "outputs/bragg"),
    FTH_KEY(TEXT, "model", "name of the job's folder in output_dir; not given: series or stills"),
    FTH_KEY(CHOICE, "compat", "the physics as intended, or as nanoBragg computes it",
            .choices = "spec c", .value = "spec"),

    FTH_KEY(SECTION, "crystal", "The crystal: cell, orientation, size and structure factors."),
    FTH_KEY(PATH, "crystal.hkl", "list of structure factors, h k l F in text, P1"),
    FTH_KEY(PATH, "crystal.fdump",
            "structure factors as a dump that nanoBragg or Fathom wrote; in place of hkl"),
    FTH_KEY(REAL, "crystal.default_F", "structure factor of reflections that are not in the list",
            .unit = "electrons"),
    FTH_KEY(REAL, "crystal.cell",
            "edges a b c, then angles alpha beta gamma; what is left out is a, a, 90, 90, 90",
            .list = true, .unit = "A, deg"),
    FTH_KEY(PATH, "crystal.mat", "MOSFLM matrix: orientation and cell"),
    FTH_KEY(REAL, "crystal.misset", "rotations of the crystal about lab x, then y, then z",
            .list = true, .unit = "deg"),
    FTH_KEY(BOOL, "crystal.random", "random orientation, drawn with seeds.misset"),
    FTH_KEY(INT, "crystal.N", "cells along a, b and c, or one number for all", .list = true,
            .range = "[1, 1e9]"),
    FTH_KEY(REAL, "crystal.size",
            "edges of the crystal along a, b and c, or one for all; in place of N", .list = true,
            .range = "(0, inf)", .unit = "mm"),
    FTH_KEY(CHOICE, "crystal.shape", "shape of the crystal, which is the shape of spots",
            .choices = "square round gauss tophat"),
    FTH_KEY(REAL, "crystal.fudge",
            "multiplies the squared radius of round, gauss and tophat spots"),
    FTH_KEY(CHOICE, "crystal.interpolate",
            "structure factors between reflections: tricubic, nearest, or tricubic when N is 2 or "
            "less",
            .choices = "auto on off"),
    FTH_KEY(REAL, "crystal.mosaic", "mosaic spread: radius of the cap of orientations",
            .range = "[0, inf)", .unit = "deg"),
    FTH_KEY(INT, "crystal.domains", "mosaic domains", .range = "[1, 1e9]"),
    FTH_KEY(REAL, "crystal.water", "edge of a cube of water whose scattering is added",
            .range = "[0, inf)", .unit = "um"),
    FTH_KEY(SECTION, "beam", "The beam."),
    FTH_KEY(REAL, "beam.lambda", "wavelength", .range = "(0, inf)", .unit = "A"),
    FTH_KEY(REAL, "beam.energy", "photon energy; in place of lambda", .range = "(0, inf)",
            .unit = "eV"),
    FTH_KEY(REAL, "beam.dispersion", "full width of the spectrum, of the wavelength",
            .range = "[0, inf)", .unit = "percent"),
    FTH_KEY(INT, "beam.dispsteps", "wavelengths across it", .range = "[1, 1e9]"),
    FTH_KEY(REAL, "beam.divergence", "full angular width, horizontal and vertical",
            .range = "[0, inf)", .unit = "mrad"),
    FTH_KEY(REAL, "beam.hdivrange", "the same, horizontal", .range = "[0, inf)", .unit = "mrad"),
    FTH_KEY(REAL, "beam.vdivrange", "the same, vertical", .range = "[0, inf)", .unit = "mrad"),
    FTH_KEY(REAL, "beam.hdivstep", "step across it, horizontal", .range = "(0, inf)",
            .unit = "mrad"),
    FTH_KEY(REAL, "beam.vdivstep", "step across it, vertical", .range = "(0, inf)", .unit = "mrad"),
    FTH_KEY(INT, "beam.hdivsteps", "steps across it, horizontal", .range = "[1, 1e9]"),
    FTH_KEY(INT, "beam.vdivsteps", "steps across it, vertical", .range = "[1, 1e9]"),
    FTH_KEY(INT, "beam.divsteps", "steps across it, horizontal and vertical", .range = "[1, 1e9]"),
    FTH_KEY(BOOL, "beam.square_div", "angles of the divergence fill a rectangle, not an ellipse"),
    FTH_KEY(PATH, "beam.sources", "list of sources: X Y Z weight wavelength (m) in text"),
    FTH_KEY(REAL, "beam.fluence", "photons per area in one frame", .range = "(0, inf)",
            .unit = "photons/m2"),
    FTH_KEY(REAL, "beam.flux", "photons per second; with exposure and size in place of fluence",
            .range = "[0, inf)", .unit = "photons/s"),
    FTH_KEY(REAL, "beam.exposure", "time of one frame", .range = "(0, inf)", .unit = "s"),
    FTH_KEY(REAL, "beam.size", "edge of the beam, which also limits the crystal",
            .range = "[0, inf)", .unit = "mm"),
    FTH_KEY(REAL, "beam.polar", "Kahn's polarisation factor", .range = "[-1, 1]"),
    FTH_KEY(REAL, "beam.vector", "direction of the beam, x y z; the convention becomes custom",
            .list = true),
    FTH_KEY(REAL, "beam.polar_vector",
            "direction of the electric field, x y z; the convention becomes custom", .list = true),
    FTH_KEY(BOOL, "beam.nopolar", "no polarisation factor at all"),
    FTH_KEY(SECTION, "detector", "The detector: size, position, sensor, and the pixels to render."),
    FTH_KEY(CHOICE, "detector.convention",
            "program whose convention of axes and beam centre applies",
            .choices = "mosflm xds adxv denzo dials"),
    FTH_KEY(REAL, "detector.pixel", "edge of a pixel", .range = "(0, inf)", .unit = "mm"),
    FTH_KEY(INT, "detector.pixels", "pixels along fast and slow, or one number for both",
            .list = true, .range = "[1, 100000]"),
    FTH_KEY(REAL, "detector.size", "edges along fast and slow, or one for both; in place of pixels",
            .list = true, .range = "(0, inf)", .unit = "mm"),
    FTH_KEY(REAL, "detector.distance", "along the beam", .range = "(0, inf)", .unit = "mm"),
    FTH_KEY(REAL, "detector.close_distance",
            "along the normal of the detector; in place of distance", .range = "(0, inf)",
            .unit = "mm"),
    FTH_KEY(REAL, "detector.beam", "beam centre X and Y of the convention", .list = true,
            .unit = "mm"),
    FTH_KEY(REAL, "detector.close", "near point X and Y of the convention", .list = true,
            .unit = "mm"),
    FTH_KEY(REAL, "detector.org", "near point along fast and slow as XDS counts: ORGX ORGY",
            .list = true, .unit = "pixel"),
    FTH_KEY(CHOICE, "detector.pivot", "point about which the detector is rotated",
            .choices = "beam sample"),
    FTH_KEY(REAL, "detector.rot", "rotations of the detector about lab x, then y, then z",
            .list = true, .unit = "deg"),
    FTH_KEY(REAL, "detector.twotheta", "angle of the detector about the two-theta axis",
            .unit = "deg"),
    FTH_KEY(REAL, "detector.fdet",
            "direction of fast in the laboratory, x y z; the convention becomes custom",
            .list = true),
    FTH_KEY(REAL, "detector.sdet",
            "direction of slow in the laboratory, x y z; the convention becomes custom",
            .list = true),
    FTH_KEY(REAL, "detector.odet",
            "normal of the detector in the laboratory, x y z; the convention becomes custom",
            .list = true),
    FTH_KEY(REAL, "detector.twotheta_axis",
            "axis of twotheta, x y z; the convention becomes custom", .list = true),
    FTH_KEY(REAL, "detector.pix0",
            "outer corner of the first pixel, x y z; the convention becomes custom", .list = true,
            .unit = "m"),
    FTH_KEY(REAL, "detector.pix0_mm", "the same", .list = true, .unit = "mm"),
    FTH_KEY(BOOL, "detector.curved", "all pixels at one distance from the crystal"),
    FTH_KEY(BOOL, "detector.point_pixel", "solid angle of a pixel without its obliquity"),
    FTH_KEY(REAL, "detector.thick", "thickness of the sensor", .range = "[0, inf)", .unit = "um"),
    {.name = "detector.material",
     .type = FTH_CONFIG_CHOICE,
     .choices = "Si CdTe GaAs",
     .value = "Si",
     .doc =
         "of the sensor, for the programs that read the container and CBF images; what it absorbs "
         "is detector.abs"},
    FTH_KEY(REAL, "detector.abs", "attenuation depth of the sensor, which 1/e of the photons pass",
            .range = "[0, inf)", .unit = "um"),
    FTH_KEY(INT, "detector.layers", "layers of the sensor", .range = "[1, 1e9]"),
    FTH_KEY(INT, "detector.roi", "first and last pixel along fast, first and last along slow",
            .list = true, .unit = "pixel"),
    FTH_KEY(PATH, "detector.mask",
            "SMV image: its zeros are not rendered, its header sets the geometry"),
    FTH_KEY(PATH, "detector.img", "SMV image whose header sets the geometry"),
    FTH_KEY(SECTION, "scan", "A rotation series: frame i starts at phi + i * osc."),
    FTH_KEY(REAL, "scan.phi", "start of the first frame", .value = "0", .unit = "deg"),
    FTH_KEY(REAL, "scan.osc", "rotation of one frame", .value = "0", .range = "[0, inf)",
            .unit = "deg"),
    FTH_KEY(INT, "scan.steps", "angles within a frame", .range = "[1, 1e9]"),
    FTH_KEY(REAL, "scan.step", "angle between them; in place of steps", .range = "(0, inf)",
            .unit = "deg"),
    FTH_KEY(REAL, "scan.axis", "axis of the spindle, x y z; the convention becomes custom",
            .list = true),
    FTH_KEY(INT, "scan.frames", "frames of the series", .value = "1", .range = "[1, 100000]"),
    FTH_KEY(SECTION, "stills",
            "Serial crystallography: every frame is another crystal. In place of scan.frames."),
    FTH_KEY(INT, "stills.count", "frames; 0: a rotation series", .value = "0",
            .range = "[0, 100000]"),
    FTH_KEY(INT, "stills.seed", "seed of orientations and pulses", .value = "1"),
    FTH_KEY(REAL, "stills.spread", "shot to shot standard deviation of the fluence, of its mean",
            .value = "0", .range = "[0, 10]"),
    FTH_KEY(SECTION, "sampling", "Sampling: subpixels, resolution, precision."),
    FTH_KEY(INT, "sampling.oversample",
            "subpixels along each edge; not given: chosen from the size of spots",
            .range = "[1, 1000]"),
    FTH_KEY(BOOL, "sampling.oversample_thick", "absorption for every subpixel"),
    FTH_KEY(BOOL, "sampling.oversample_polar", "polarisation for every subpixel"),
    FTH_KEY(BOOL, "sampling.oversample_omega", "solid angle for every subpixel"),
    FTH_KEY(REAL, "sampling.dmin", "no scattering beyond this resolution", .range = "[0, inf)",
            .unit = "A"),
    FTH_KEY(CHOICE, "sampling.precision", "arithmetic of the kernel; sums are f64 in either case",
            .value = "f64", .choices = "f64 f32"),
    FTH_KEY(SECTION, "output",
            "What is written beside the figures: a container with all frames, and files of each "
            "frame."),
    FTH_KEY(TEXT, "output.container", "name of the container, in the folder of the job",
            .value = "frames.h5"),
    FTH_KEY(BOOL, "output.counts", "the container holds counts with noise, not expected photons",
            .value = "false"),
    FTH_KEY(CHOICE, "output.dtype", "of the container: auto is f32, and i32 for counts",
            .value = "auto", .choices = "auto f32 i32 u16"),
    FTH_KEY(INT, "output.gzip", "compression level of the container; 0: none", .value = "0",
            .range = "[0, 9]"),
    FTH_KEY(BOOL, "output.float", "of each frame, the photons as f32 without a header",
            .value = "false"),
    FTH_KEY(BOOL, "output.int", "of each frame, an SMV image without noise", .value = "false",
            .aliases = "output.smv"),
    FTH_KEY(BOOL, "output.noise", "of each frame, an SMV image with noise", .value = "false"),
    FTH_KEY(BOOL, "output.pgm", "of each frame, a PGM picture", .value = "false"),
    FTH_KEY(BOOL, "output.cbf",
            "of each frame, a CBF image of photons, or of counts where output.counts or "
            "output.noise asks for them; -1 where nothing was rendered",
            .value = "false"),
    FTH_KEY(REAL, "output.adc", "offset of SMV images", .unit = "ADU"),
    FTH_KEY(REAL, "output.scale",
            "SMV counts per photon without noise; not given: chosen from the image",
            .range = "(0, inf)"),
    FTH_KEY(REAL, "output.pgm_scale", "grey levels per photon; not given: chosen from the image",
            .range = "(0, inf)"),
    FTH_KEY(SECTION, "figures", "Figures."),
    FTH_KEY(INT, "figures.frames", "most frames in the montage", .value = "12",
            .range = "[1, 100]"),
    FTH_KEY(INT, "figures.bins", "rings of the radial average", .value = "200",
            .range = "[2, 100000]"),
    FTH_KEY(REAL, "figures.dpi", "dots per inch", .value = "110", .range = "[30, 600]"),
    FTH_KEY(SECTION, "seeds", "Seeds of the streams of random numbers; not given: seed."),
    FTH_KEY(INT, "seeds.noise", "of the noise; frame i has one of its own"),
    FTH_KEY(INT, "seeds.mosaic", "of the mosaic domains"),
    FTH_KEY(INT, "seeds.misset", "of a random orientation"),

    FTH_KEY(SECTION, "quirks", "Individual defects of nanoBragg; not given: as compat says."),
#define BR_QUIRK(id, quirk, on, off)                                                               \
    {.name = "quirks." quirk, .type = FTH_CONFIG_BOOL, .doc = "true: " on},
#include "../geometry/quirks.def"
#undef BR_QUIRK
};

bool br_given(const fth_config *cfg, const char *key)
{
    return fth_config_is_given(cfg, key) && fth_config_has(cfg, key);
}

/* ---- checks across keys ---- */

/* Keys with a fixed number of elements: the least and the most. */
static const struct length {
    const char *key;
    int64_t least, most;
    const char *wanted;
} lengths[] = {
    {"crystal.cell", 1, 6, "one to six numbers"},
    {"crystal.misset", 3, 3, "three angles"},
    {"crystal.N", 1, 3, "one number or three"},
    {"crystal.size", 1, 3, "one number or three"},
    {"detector.pixels", 1, 2, "one number or two"},
    {"detector.size", 1, 2, "one number or two"},
    {"detector.beam", 2, 2, "two numbers"},
    {"detector.close", 2, 2, "two numbers"},
    {"detector.org", 2, 2, "two numbers"},
    {"detector.rot", 3, 3, "three angles"},
    {"detector.fdet", 3, 3, "three numbers"},
    {"detector.sdet", 3, 3, "three numbers"},
    {"detector.odet", 3, 3, "three numbers"},
    {"beam.vector", 3, 3, "three numbers"},
    {"beam.polar_vector", 3, 3, "three numbers"},
    {"scan.axis", 3, 3, "three numbers"},
    {"detector.twotheta_axis", 3, 3, "three numbers"},
    {"detector.pix0", 3, 3, "three numbers"},
    {"detector.pix0_mm", 3, 3, "three numbers"},
    {"detector.roi", 4, 4, "four numbers"},
};

/* Rejects configs that set both of two alternatives. */
static const struct pair {
    const char *a, *b;
} pairs[] = {
    {"beam.lambda", "beam.energy"},        {"crystal.N", "crystal.size"},
    {"crystal.hkl", "crystal.fdump"},      {"detector.pixels", "detector.size"},
    {"crystal.misset", "crystal.random"},  {"scan.steps", "scan.step"},
    {"detector.pix0", "detector.pix0_mm"}, {"detector.distance", "detector.close_distance"},
};

static void check_lengths(fth_config *cfg)
{
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const struct length *l = &lengths[i];
        const int64_t n = fth_config_count(cfg, l->key);
        if (!br_given(cfg, l->key)) continue;
        if (n < l->least || n > l->most || (l->least == 1 && l->most == 3 && n == 2))
            fth_config_complain(cfg, l->key, NULL, "%s is %s, not %lld", l->key, l->wanted,
                                (long long)n);
    }
}

static void check_pairs(fth_config *cfg)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char both[80];
        if (!br_given(cfg, pairs[i].a) || !br_given(cfg, pairs[i].b)) continue;
        snprintf(both, sizeof both, "%s %s", pairs[i].b, pairs[i].a);
        fth_config_complain(cfg, both, "leave one of them out",
                            "%s and %s are alternatives: set only one", pairs[i].a, pairs[i].b);
    }
}

static void check(fth_config *cfg, void *user)
{
    (void)user;
    check_lengths(cfg);
    check_pairs(cfg);
    const bool stills = fth_config_int(cfg, "stills.count") > 0;
    if (stills && fth_config_int(cfg, "scan.frames") > 1)
        fth_config_complain(cfg, "scan.frames stills.count", "leave one of them out",
                            "a job is a rotation series or a set of stills, not both");
    if (stills && (br_given(cfg, "crystal.misset") || br_given(cfg, "crystal.random")))
        fth_config_complain(cfg, "stills.count crystal.misset crystal.random", NULL,
                            "stills draw the orientation of every frame by stills.seed");
    if (!stills && fth_config_int(cfg, "scan.frames") > 1 && !br_given(cfg, "scan.osc"))
        fth_config_complain(cfg, "scan.frames",
                            "write scan.osc, the rotation of one frame in degrees",
                            "a series of %lld frames needs scan.osc",
                            (long long)fth_config_int(cfg, "scan.frames"));
    const char *dtype = fth_config_text(cfg, "output.dtype");
    if (!fth_config_bool(cfg, "output.counts") &&
        (strcmp(dtype, "i32") == 0 || strcmp(dtype, "u16") == 0))
        fth_config_complain(cfg, "output.dtype output.counts", "write output.counts: true, or f32",
                            "expected photons are not integers, so %s is only for counts", dtype);
    const char *file = fth_config_text(cfg, "output.container");
    if (!file[0] || file[0] == '.' || strchr(file, '/') || strcmp(file, BR_PARTS) == 0)
        fth_config_complain(cfg, "output.container", NULL,
                            "output.container is the name of a file, not '%s'", file);
    if (!br_given(cfg, "crystal.cell") && !br_given(cfg, "crystal.mat"))
        fth_config_complain(cfg, "crystal.cell crystal.mat", NULL,
                            "crystal.cell or crystal.mat is needed");
    if (!br_given(cfg, "crystal.hkl") && !br_given(cfg, "crystal.fdump") &&
        !br_given(cfg, "crystal.default_F"))
        fth_config_complain(cfg, "crystal.hkl crystal.fdump crystal.default_F", NULL,
                            "crystal.hkl, crystal.fdump or crystal.default_F is needed");
}

const fth_schema br_schema = {
    .name = "bragg",
    .brief = "Diffraction images of small crystals: rotation series and serial stills.",
    .key = keys,
    .n_keys = sizeof keys / sizeof keys[0],
    .check = check,
};

fth_status br_model_name(const fth_config *cfg, char *name, size_t bytes, fth_err *err)
{
    (void)err;
    const char *kind = fth_config_int(cfg, "stills.count") > 0 ? "stills" : "series";
    snprintf(name, bytes, "%s", fth_config_text_or(cfg, "model", kind));
    return FTH_OK;
}
