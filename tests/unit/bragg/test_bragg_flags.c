/* test_bragg_flags.c - every flag of nanoBragg in both ways of reading, and what follows from
 * matching by substring. seconds: 1 */
#include "testing/test.h"

#include "instruments/bragg/flags/flags.h"

#include <math.h>

static br_flags f;
static char text[2000];
static char *word[128];

static int split(const char *line)
{
    int n = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) word[n++] = w;
    return n;
}

static fth_status parse(const char *line, bool spec, fth_err *err)
{
    const int n = split(line);
    fth_err_clear(err);
    br_flags_default(&f, spec);
    return br_flags_parse(&f, n, word, err);
}

static void c_mode(const char *line)
{
    fth_err err = {0};
    OKE(parse(line, false, &err), &err);
}

static void spec_mode(const char *line)
{
    fth_err err = {0};
    OKE(parse(line, true, &err), &err);
}

/* ---- every row ---- */

/* One setting of the struct as a number or a text. */
typedef enum kind { REAL, INT, FLAG, TEXT } kind;
typedef struct row {
    const char *line;
    kind kind;
    size_t offset;
    double number;
    const char *word;
} row;
#define AT(field) offsetof(br_flags, field)
#define R(line, field, v)                                                                          \
    {                                                                                              \
        line, REAL, AT(field), v, NULL                                                             \
    }
#define N(line, field, v)                                                                          \
    {                                                                                              \
        line, INT, AT(field), v, NULL                                                              \
    }
#define B(line, field, v)                                                                          \
    {                                                                                              \
        line, FLAG, AT(field), v, NULL                                                             \
    }
#define T(line, field, v)                                                                          \
    {                                                                                              \
        line, TEXT, AT(field), 0, v                                                                \
    }

static const row rows[] = {
    N("-Na 3", cells[0], 3),
    N("-Nb 4", cells[1], 4),
    N("-Nc 5", cells[2], 5),
    N("-N 6", cells[2], 6),
    R("-cell 40 50 60 70 80 95", cell[2], 60),
    R("-cell 40 50 60 70 80 95", cell[5], 95 / (180.0 * M_1_PI)),
    R("-cell 40 50", cell[1], 50),
    R("-misset 10 -20 30", misset[1], -20 / (180.0 * M_1_PI)),
    N("-misset 10 -20 30", misset_kind, 1),
    N("-misset random", misset_kind, -1),
    R("-xtalsize 0.2", sample[2], 0.2 / 1000),
    R("-xtal_size 0.2", sample[0], 0.2 / 1000),
    R("-samplesize 0.2", sample[1], 0.2 / 1000),
    R("-sample_size 0.2", sample[1], 0.2 / 1000),
    R("-xtal_thick 0.3", sample[0], 0.3 / 1000),
    R("-sample_x 0.3", sample[0], 0.3 / 1000),
    R("-xtal_width 0.3", sample[1], 0.3 / 1000),
    R("-width 0.3", sample[1], 0.3 / 1000),
    R("-sample_height 0.3", sample[2], 0.3 / 1000),
    R("-height 0.3", sample[2], 0.3 / 1000),
    R("-xtal_z 0.3", sample[2], 0.3 / 1000),
    R("-density 1.3", fudge, 1),
    R("-MW 20", fudge, 1),
    R("-Xbeam 12.5", beam_centre[0], 12.5 / 1000),
    N("-twotheta 1 -Xbeam 12.5", pivot, BR_PIVOT_BEAM),
    R("-Ybeam 12.5", beam_centre[1], 12.5 / 1000),
    R("-Xclose 12.5", close_point[0], 12.5 / 1000),
    N("-Xclose 12.5", pivot, BR_PIVOT_SAMPLE),
    R("-Yclose 12.5", close_point[1], 12.5 / 1000),
    R("-ORGX 33.5", org[0], 33.5),
    N("-ORGX 33.5", pivot, BR_PIVOT_SAMPLE),
    R("-ORGY 33.5", org[1], 33.5),
    N("-pivot sample", pivot, BR_PIVOT_SAMPLE),
    N("-pivot sample -pivot beam", pivot, BR_PIVOT_BEAM),
    N("-xds -mosflm", convention, BR_MOSFLM),
    N("-xds -mosflm", pivot, BR_PIVOT_BEAM),
    N("-xds", convention, BR_XDS),
    N("-xds", pivot, BR_PIVOT_SAMPLE),
    N("-adxv", convention, BR_ADXV),
    N("-denzo", convention, BR_DENZO),
    N("-dials", convention, BR_DIALS),
    N("-xds -dials", pivot, BR_PIVOT_BEAM),
    R("-fdet_vector 1 2 -3", fdet[2], -3),
    N("-fdet_vector 1 2 -3", convention, BR_CUSTOM),
    R("-sdet_vector 1 2 3", sdet[0], 1),
    R("-odet_vector 1 2 3", odet[1], 2),
    R("-beam_vector 1 2 3", beam[1], 2),
    R("-polar_vector 1 2 3", polar[1], 2),
    R("-spindle_axis 1 2 3", spindle[1], 2),
    R("-twotheta_axis 0 2 3", twotheta_axis[1], 2),
    R("-pix0_vector 0.1 0.2 0.3", pix0[1], 0.2),
    N("-pix0_vector 0.1 0.2 0.3", convention, BR_CUSTOM),
    R("-distance 120", distance, 120 / 1000.0),
    N("-xds -distance 120", pivot, BR_PIVOT_BEAM),
    R("-close_distance 120", close_distance, 120 / 1000.0),
    N("-close_distance 120", pivot, BR_PIVOT_SAMPLE),
    R("-close_distance 120", distance, 0.1),
    R("-detector_abs 500", mu, 1.0 / (500 * 1e-6)),
    R("-detector_thick 450 -detector_abs inf", thickness, 0),
    R("-detector_thick 450 -detector_abs 0", mu, 0),
    R("-detector_abs inf -detector_thick 450", thickness, 450 * 1e-6),
    R("-detector_thick 450", thickness, 450 * 1e-6),
    N("-detector_thicksteps 4", layers, 4),
    N("-thicksteps 4", layers, 4),
    R("-twotheta 20", twotheta, 20 / (180.0 * M_1_PI)),
    N("-twotheta 20", pivot, BR_PIVOT_SAMPLE),
    R("-detector_rotx 5", rot[0], 5 / (180.0 * M_1_PI)),
    R("-detector_roty 5", rot[1], 5 / (180.0 * M_1_PI)),
    R("-detector_rotz 5", rot[2], 5 / (180.0 * M_1_PI)),
    R("-detsize 60", detsize[1], 60 / 1000.0),
    R("-detsize_f 60", detsize[0], 60 / 1000.0),
    R("-detsize_f 60", detsize[1], 102.4e-3),
    R("-detsize_s 60", detsize[1], 60 / 1000.0),
    N("-detpixels 64", pixels[1], 64),
    N("-detpixels_f 64", pixels[0], 64),
    N("-detpixels_x 64", pixels[1], 0),
    N("-detpixels_s 64", pixels[1], 64),
    N("-detpixels_y 64", pixels[1], 64),
    B("-curved_det -nopgm", curved, 1),
    R("-pixel 0.4", pixel, 0.4 / 1000),
    R("-point_pixel -pixel 0.4", pixel, 0.4 / 1000),
    B("-point_pixel", point_pixel, 1),
    R("-polar 0.9", kahn, 0.9),
    B("-nopolar", nopolar, 1),
    B("-nopolar -polar 0.9", nopolar, 0),
    B("-polar 0.9 -nopolar", nopolar, 1),
    B("-oversample_thick", oversample_thick, 1),
    N("-oversample_thick", oversample, -1),
    B("-oversample_polar", oversample_polar, 1),
    B("-oversample_omega", oversample_omega, 1),
    N("-oversample 3", oversample, 3),
    N("-roi 1 20 -1 40", roi[1], 20),
    N("-roi 1 20 -1 40", roi[3], 40),
    R("-lambda 1.5", lambda, 1.5 / 1e10),
    R("-wave 1.5", lambda, 1.5 / 1e10),
    R("-wavelength 1.5", lambda, 1.5 / 1e10),
    R("-energy 12398.42", lambda, 1e-10),
    R("-fluence 1e24", fluence, 1e24),
    R("-flux 1e12", flux, 1e12),
    R("-exposure 0.5", exposure, 0.5),
    R("-beamsize 0.05", beamsize, 0.05 / 1000),
    R("-mosaic 0.5", mosaic_spread, 0.5 / (180.0 * M_1_PI)),
    R("-mosaicity 0.5", mosaic_spread, 0.5 / (180.0 * M_1_PI)),
    R("-mosaic_spread 0.5", mosaic_spread, 0.5 / (180.0 * M_1_PI)),
    N("-mosaic_domains 7", mosaic_domains, 7),
    N("-mosaic_dom 7", mosaic_domains, 7),
    R("-mosaic_dom 7", mosaic_spread, -1),
    R("-dispersion 3", dispersion, 3 / 100.0),
    N("-dispsteps 4", dispsteps, 4),
    R("-divergence 2", div_range[1], 2 / 1000.0),
    R("-hdivrange 2", div_range[0], 2 / 1000.0),
    R("-vdivrange 2", div_range[1], 2 / 1000.0),
    R("-hdivstep 0.2", div_step[0], 0.2 / 1000.0),
    N("-hdivsteps 3", div_steps[0], 3),
    R("-hdivsteps 3", div_step[0], -1),
    R("-vdivstep 0.2", div_step[1], 0.2 / 1000.0),
    N("-vdivsteps 3", div_steps[1], 3),
    N("-divsteps 3", div_steps[0], 3),
    B("-square_div -round_div", square_div, 0),
    B("-square_div", square_div, 1),
    R("-adc 10", adc, 10),
    R("-phi 20", phi, 20 / (180.0 * M_1_PI)),
    R("-osc 2", osc, 2 / (180.0 * M_1_PI)),
    R("-phistep 0.5", phi_step, 0.5 / (180.0 * M_1_PI)),
    N("-phisteps 5", phi_steps, 5),
    R("-phisteps 5", phi_step, -1),
    R("-dmin 2.5", dmin, 2.5 * 1e-10),
    T("-mat A.mat", mat, "A.mat"),
    T("-matrix A.mat", mat, "A.mat"),
    T("-hkl a.hkl", hkl, "a.hkl"),
    R("-default_F 25", default_F, 25),
    T("-dump d.bin", dump, "d.bin"),
    T("-img a.img", img, "a.img"),
    T("-mask a.img", mask, "a.img"),
    T("-stolout a.stol", stol, NULL),
    T("-stol a.stol", stol, "a.stol"),
    T("-4stol a.stol", stol, "a.stol"),
    T("-Q a.stol", stol, "a.stol"),
    T("-sourcefile s.txt", sources, "s.txt"),
    T("-floatfile a.bin", float_file, "a.bin"),
    T("-floatimage a.bin", float_file, "a.bin"),
    T("-intfile a.img", int_file, "a.img"),
    T("-intimage a.img", int_file, "a.img"),
    T("-pgmfile a.pgm", pgm_file, "a.pgm"),
    B("-nopgm -pgmimage a.pgm", write_pgm, 1),
    T("-noisefile a.img", noise_file, "a.img"),
    B("-nonoise -noiseimage a.img", write_noise, 1),
    B("-noisefile a.img -nonoise", write_noise, 0),
    B("-nopgm", write_pgm, 0),
    B("-pgmscale 3 -nopgm", write_pgm, 0),
    R("-scale 50", int_scale, 50),
    R("-pgmscale 3", pgm_scale, 3),
    R("-pgmscale 3", int_scale, 0),
    B("-nopgm -pgmscale 3", write_pgm, 1),
    R("-coherent", fudge, 1),
    B("-printout", printout, 1),
    B("-noprogress", progress, 0),
    B("-noprogress -progress", progress, 1),
    N("-interpolate", interpolate, 1),
    N("-nointerpolate", interpolate, 0),
    N("-round_xtal", shape, BR_ROUND),
    N("-round_xtal -square_xtal", shape, BR_SQUARE),
    N("-gauss_xtal", shape, BR_GAUSS),
    N("-tophat_spots", shape, BR_TOPHAT),
    N("-binary_spots", shape, BR_TOPHAT),
    R("-fudge 0.7", fudge, 0.7),
    N("-printout_pixel 20 40", printout_pixel[1], 40),
    B("-printout_pixel 20 40", printout, 1),
    N("-seed 17", seed, 17),
    N("-mosaic_seed 42", mosaic_seed, 42),
    N("-mosaic_seed 42", seed, 1),
    N("-misset_seed 99", misset_seed, 99),
    N("-misset_seed 99", seed, 1),
    R("-water 5", water, 5 / 1e6),
};

static void check_row(const row *r, const char *mode)
{
    const char *at = (const char *)&f + r->offset;
    if (r->kind == TEXT) {
        const char *got = *(const char *const *)(const void *)at;
        const bool same = got && r->word ? strcmp(got, r->word) == 0 : got == r->word;
        if (!same) FAIL("%s in %s mode: '%s'", r->line, mode, got ? got : "none");
        return;
    }
    const double got = r->kind == REAL  ? *(const double *)(const void *)at
                       : r->kind == INT ? *(const int *)(const void *)at
                                        : *(const bool *)(const void *)at;
    if (!(got == r->number)) FAIL("%s in %s mode: %.17g, not %.17g", r->line, mode, got, r->number);
}

TEST(every_flag_sets_what_it_says_in_both_modes)
{
    bool seen[BR_FLAG_COUNT] = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        c_mode(rows[i].line);
        check_row(&rows[i], "c");
        spec_mode(rows[i].line);
        check_row(&rows[i], "spec");
        for (int id = 0; id < BR_FLAG_COUNT; id++) seen[id] |= f.given[id];
    }
    spec_mode("-pix0_vector_mm 100 200 300");
    EQ_F64(f.pix0[1], 0.2);
    seen[BR_FLAG_PIX0_MM] |= f.given[BR_FLAG_PIX0_MM];
    for (int id = 0; id < BR_FLAG_COUNT; id++)
        if (!seen[id]) FAIL("no line gives %s", br_flag_get_info((br_flag_id)id)->names);
}

TEST(every_name_is_found_and_unique)
{
    for (int id = 0; id < BR_FLAG_COUNT; id++) {
        const br_flag_info *info = br_flag_get_info((br_flag_id)id);
        IS_TRUE(info->names[0] == '-' && info->doc[0] && info->args && info->unit);
        char names[200];
        snprintf(names, sizeof names, "%s", info->names);
        for (char *w = strtok(names, " "); w; w = strtok(NULL, " "))
            for (int other = 0; other < BR_FLAG_COUNT; other++) {
                const char *at = strstr(br_flag_get_info((br_flag_id)other)->names, w);
                const size_t n = strlen(w);
                if (other != id && at && (at[n] == ' ' || !at[n])) FAIL("%s is there twice", w);
            }
    }
}

/* ---- substring-flags ---- */

TEST(a_misset_seed_is_also_a_misset)
{
    c_mode("-misset_seed 7 10 20");
    EQ_I64(f.misset_seed, 7);
    EQ_I64(f.misset_kind, 1);
    EQ_F64(f.misset[0], 7 / (180.0 * M_1_PI));
    EQ_F64(f.misset[2], 20 / (180.0 * M_1_PI));
    c_mode("-misset_seed 7 -N 5"); /* three tokens follow, and -N reads as 0 */
    EQ_I64(f.misset_kind, 1);
    EQ_F64(f.misset[1], 0);
    EQ_F64(f.misset[2], 5 / (180.0 * M_1_PI));
    c_mode("-cell 40 -misset_seed 7"); /* fewer follow: harmless */
    EQ_I64(f.misset_kind, 0);
    EQ_I64(f.misset_seed, 7);
    c_mode("-misset_seed 7 -misset 1 2 3"); /* the later one counts */
    EQ_F64(f.misset[0], 1 / (180.0 * M_1_PI));
    c_mode("-misset_seed 99 -misset random -hkl a");
    EQ_I64(f.misset_kind, -1);
    EQ_I64(f.misset_seed, 99);
    spec_mode("-misset_seed 7 -N 5");
    EQ_I64(f.misset_kind, 0);
}

TEST(a_twotheta_axis_is_also_a_twotheta)
{
    c_mode("-twotheta_axis 3 4 5");
    EQ_F64(f.twotheta, 3 / (180.0 * M_1_PI));
    EQ_I64(f.pivot, BR_PIVOT_SAMPLE);
    EQ_I64(f.convention, BR_CUSTOM);
    c_mode("-twotheta_axis 3 4 5 -twotheta 20");
    EQ_F64(f.twotheta, 20 / (180.0 * M_1_PI));
    c_mode("-twotheta 20 -twotheta_axis 3 4 5");
    EQ_F64(f.twotheta, 3 / (180.0 * M_1_PI));
    spec_mode("-twotheta 20 -twotheta_axis 3 4 5");
    EQ_F64(f.twotheta, 20 / (180.0 * M_1_PI));
}

TEST(other_tokens_that_are_more_or_less_than_they_look)
{
    c_mode("-pix0_vector_mm 1 2 3");
    EQ_I64(f.convention, BR_CUSTOM);
    IS_TRUE(f.given[BR_FLAG_PIX0]);
    c_mode("-printout_pixel"); /* no pixel follows, and still */
    IS_TRUE(f.printout);
    EQ_I64(f.printout_pixel[0], -1);
    c_mode("-nopgm -curved_det");
    IS_TRUE(!f.curved);
    c_mode("-curved_det -nopgm");
    IS_TRUE(f.curved);
    spec_mode("-nopgm -curved_det");
    IS_TRUE(f.curved);
    c_mode("-dispstep 3 -hdiv 2 -vdiv 2 -detector_thickness 450 -nonsense 4");
    EQ_I64(f.dispsteps, -1);
    EQ_F64(f.div_range[0], -1);
    EQ_F64(f.div_step[0], -1);
    EQ_F64(f.thickness, 0);
    c_mode("-oversample_thick 0");
    IS_TRUE(f.oversample_thick);
    EQ_I64(f.oversample, -1);
    c_mode("-my-lambda-energy 6.2"); /* two flags in one token: the later row wins */
    EQ_F64(f.lambda, (12398.42 / 6.2) / 1e10);
    c_mode("-xds-mosflm"); /* by the order of the reference, not of the token */
    EQ_I64(f.convention, BR_XDS);
    c_mode("-Nabc-lambda 5"); /* -Na ends the token */
    EQ_I64(f.cells[0], 5);
    EQ_F64(f.lambda, 1e-10);
    c_mode("lambda 5 xds");
    EQ_I64(f.convention, BR_MOSFLM);
}

/* Flags of programs that followed: understood, or answered; never another flag. */
TEST(flags_of_other_programs_are_known_in_both_modes)
{
    for (int spec = 0; spec < 2; spec++) {
        fth_err err = {0};
        OKE(parse("-pixel 0.4 -pixel_batch_size 128 -show_config -N 3", spec, &err), &err);
        EQ_F64(f.pixel, 0.4 / 1000); /* not 128 */
        EQ_I64(f.cells[0], 3);
        EQ_I64(f.n_answers, 2);
        EQ_STR(f.answer[0].word, "-pixel_batch_size");
        HAS(f.answer[0].text, "--memory");
        HAS(f.answer[1].text, "--json");
        OKE(parse("--pixel-batch-size=64 -echo_config", spec, &err), &err);
        EQ_F64(f.pixel, 0.1 / 1000);
        EQ_I64(f.n_answers, 2);
        OKE(parse("-dtype float32", spec, &err), &err);
        EQ_I64(f.precision, BR_F32);
        OKE(parse("-dtype float32 -precision double", spec, &err), &err);
        EQ_I64(f.precision, BR_F64);
        OKE(parse("-precision=single -device cpu", spec, &err), &err);
        EQ_I64(f.precision, BR_F32);
        EQ_I64(f.n_answers, 0);
        OKE(parse("-trace_pixel 3 5", spec, &err), &err); /* slow, fast */
        IS_TRUE(f.printout);
        EQ_I64(f.printout_pixel[0], 5);
        EQ_I64(f.printout_pixel[1], 3);
        static const char *const wrong[][2] = {
            {"-dtype float16", "-dtype takes float32|float64, not 'float16'"},
            {"-dtype", "-dtype takes float32|float64, not nothing"},
            {"-dtype -N 3", "not '-N'"},
            {"-trace_pixel 3", "-trace_pixel takes slow fast, not '3'"},
            {"-pixel_batch_size", "-pixel_batch_size takes rows, not nothing"},
            {"-show_config=1", "-show_config takes no value, not '1'"}};
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            err = (fth_err){0};
            IS(parse(wrong[i][0], spec, &err), FTH_E_COMMAND);
            HAS(err.text, wrong[i][1]);
        }
    }
}

TEST(a_cell_ends_at_a_dash)
{
    c_mode("-cell 40 45 -N 6 90 90");
    EQ_F64(f.cell[0], 40);
    EQ_F64(f.cell[1], 45);
    EQ_F64(f.cell[2], 0);
    EQ_I64(f.cells[0], 6);
    c_mode("-cell 40 x 50");
    EQ_F64(f.cell[1], 0);
    EQ_F64(f.cell[2], 50);
    c_mode("-cell -N 6");
    IS_TRUE(f.cell_given && f.cell[0] == 0);
    c_mode("-N 6 -cell"); /* nothing follows */
    IS_TRUE(!f.cell_given);
}

TEST(values_are_whatever_follows)
{
    c_mode("-lambda abc -N 3.9 -phi 1e1x -oversample two");
    EQ_F64(f.lambda, 0);
    EQ_I64(f.cells[1], 3);
    EQ_F64(f.phi, 10 / (180.0 * M_1_PI));
    EQ_I64(f.oversample, 0);
    c_mode("-lambda 1 -lambda 2"); /* the later one counts */
    EQ_F64(f.lambda, 2 / 1e10);
    c_mode("-xds -fdet_vector 1 0"); /* too few follow */
    EQ_I64(f.convention, BR_XDS);
    c_mode("-roi 1 2 3");
    EQ_I64(f.roi[0], -1);
    c_mode("-hkl -mat a.mat"); /* a file of that name */
    EQ_STR(f.hkl, "-mat");
    EQ_STR(f.mat, "a.mat");
    c_mode("-seed -5");
    EQ_I64(f.seed, -5);
}

TEST(missing_values_that_crash_the_reference_are_errors)
{
    static const char *const lines[] = {"-N 3 -detector_abs", "-N 3 -detector_thick",
                                        "-N 3 -thicksteps"};
    for (int i = 0; i < 3; i++) {
        fth_err err = {0};
        IS(parse(lines[i], false, &err), FTH_E_COMMAND);
        HAS(err.text, "has no value");
        IS(parse(lines[i], true, &err), FTH_E_COMMAND);
    }
}

/* ---- exactly ---- */

TEST(mistakes_name_the_word_and_the_nearest_flag)
{
    static const struct {
        const char *line, *text, *hint;
    } all[] = {
        {"-lamda 1", "'-lamda' is not a flag", "did you mean -lambda?"},
        {"-dispstep 3", "'-dispstep' is not a flag", "-dispsteps"},
        {"-detector_thickness 4", "'-detector_thickness' is not a flag", "-detector_thick"},
        {"-lambda 1 2", "'2' belongs to no flag", "--flags"},
        {"-lambda", "-lambda takes 1 value", "wavelength"},
        {"-lambda -N 3", "-lambda takes 1 value", "wavelength"},
        {"-lambda 1x", "takes a number, not '1x'", "in A"},
        {"-lambda nan", "takes a number, not 'nan'", "in A"},
        {"-N 3.5", "takes a whole number, not '3.5'", "cells"},
        {"-roi 1 2 3", "-roi takes 4 values", "render"},
        {"-misset 1 2", "-misset takes 3 values", "rotate"},
        {"-pivot middle", "takes sample or beam, not 'middle'", "-pivot"},
        {"-oversample_thick 0", "'0' belongs to no flag", "--flags"},
        {"-cell", "-cell takes 1 value", "unit cell"},
        {"-fdet_vector 1 0", "-fdet_vector takes 3 values", "fast"},
        {"-hkl -mat a.mat", "-hkl takes 1 value", "list"},
        {"P1.hkl", "'P1.hkl' belongs to no flag", "--flags"},
        {"-5", "'-5' belongs to no flag", "--flags"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        fth_err err = {0};
        IS(parse(all[i].line, true, &err), FTH_E_COMMAND);
        HAS(err.text, all[i].text);
        HAS(err.hint, all[i].hint);
    }
}

TEST(quirks_are_switched_one_by_one)
{
    fth_err err = {0};
    br_flags_default(&f, true);
    EQ_U64(f.quirks, 0);
    for (int q = 0; q < BR_QUIRKS; q++) {
        char setting[64];
        snprintf(setting, sizeof setting, "%s=on", br_quirks[q].name);
        OKE(br_flags_quirk(&f, setting, &err), &err);
        EQ_U64(f.quirks, (2u << q) - 1);
    }
    EQ_U64(f.quirks, BR_QUIRKS_C);
    OK(br_flags_quirk(&f, "phi-carryover=off", NULL));
    EQ_U64(f.quirks, BR_QUIRKS_C - 1);
    IS(br_flags_quirk(&f, "phi-carryover=maybe", &err), FTH_E_COMMAND);
    HAS(err.hint, "phi-carryover");
    IS(br_flags_quirk(&f, "phi=on", NULL), FTH_E_COMMAND);
    br_flags_default(&f, false);
    EQ_U64(f.quirks, BR_QUIRKS_C);
    /* the way words are read is a quirk like the others */
    OK(br_flags_quirk(&f, "substring-flags=off", NULL));
    IS(br_flags_parse(&f, split("-lamda 1"), word, NULL), FTH_E_COMMAND);
}

TEST(flags_are_set_by_name)
{
    fth_err err = {0};
    br_flags_default(&f, true);
    OKE(br_flags_set(&f, "lambda", (const char *const[]){"1.5"}, 1, &err), &err);
    EQ_F64(f.lambda, 1.5 / 1e10);
    OKE(br_flags_set(&f, "-cell", (const char *const[]){"40", "45", "50"}, 3, &err), &err);
    EQ_F64(f.cell[2], 50);
    OKE(br_flags_set(&f, "xds", NULL, 0, &err), &err);
    EQ_I64(f.convention, BR_XDS);
    OKE(br_flags_set(&f, "nopgm", (const char *const[]){"true"}, 1, &err), &err);
    IS_TRUE(!f.write_pgm);
    OKE(br_flags_set(&f, "nonoise", (const char *const[]){"false"}, 1, &err), &err);
    IS_TRUE(f.write_noise && !f.given[BR_FLAG_NONOISE]);
    IS(br_flags_set(&f, "lamda", (const char *const[]){"1"}, 1, &err), FTH_E_COMMAND);
    HAS(err.hint, "-lambda");
    fth_err_clear(&err);
    IS(br_flags_set(&f, "N", (const char *const[]){"x"}, 1, &err), FTH_E_COMMAND);
    HAS(err.text, "whole number");
    IS(br_flags_set(&f, "misset", (const char *const[]){"1", "2"}, 2, NULL), FTH_E_COMMAND);
    IS(br_flags_set(&f, "curved_det", (const char *const[]){"perhaps"}, 1, NULL), FTH_E_COMMAND);
}

/* Every row and every quirk is in the table for people. */
TEST(the_table_shows_everything)
{
    char *page = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&page, &bytes);
    br_flags_markdown(out);
    fclose(out);
    for (int id = 0; id < BR_FLAG_COUNT; id++) {
        char first[80];
        const char *names = br_flag_get_info((br_flag_id)id)->names;
        snprintf(first, sizeof first, "| `%.*s", (int)strcspn(names, " "), names);
        HAS(page, first);
    }
    for (int q = 0; q < BR_QUIRKS; q++) HAS(page, br_quirks[q].name);
    free(page);
}

TEST_MAIN()
