/* test_bragg_container.c - what the files of a job tell other programs: geometry, beam, crystal and
 * times of the container and of the CBF images, against numbers worked out here. seconds: 3 */
#include "instruments/bragg/image/cbf.h"

#include "testing/io/files.h"
#include "testing/test.h"

#include <fathom/fathom.h>

#include <limits.h>
#include <math.h>

extern const fth_instrument fth_instrument_bragg;

#define DEGREE (3.14159265358979323846 / 180)
#define SERIES_WITH(beam)                                                                          \
    "instrument: bragg\nname: container\nsampling: {oversample: 1}\n"                              \
    "crystal: {cell: [28, 33, 38, 90, 95, 90], misset: [10, 20, 30], default_F: 10, N: 2}\n"       \
    "scan: {phi: 5, osc: 0.5, steps: 2, frames: 3}\noutput: {cbf: true}\n"                         \
    "beam:\n  lambda: 0.97918\n  fluence: 2e24\n  exposure: 0.25\n  size: 0.05\n" beam
#define SERIES SERIES_WITH("")
#define DETECTOR "distance: 123.456, pixel: 0.8, pixels: [24, 20], beam: [8.1, 11.23]"

/* ---- a job, run here ---- */

typedef struct job {
    fth_mem *mem;
    fth_config *cfg;
    char dir[PATH_MAX];
    fth_h5 *file;
} job;

static char said[4000]; /* by the stage that ran last */

static void hear(void *user, const char *line)
{
    (void)user;
    const size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", line);
}

static job run(const char *name, const char *config)
{
    job j = {.mem = t_mem(1 << 26)};
    fth_err err = {0};
    if (!realpath(t_temp_dir(), j.dir)) FAIL("no folder");
    strcat(j.dir, "/");
    strcat(j.dir, name);
    OK(fth_config_create(&j.cfg, j.mem, NULL));
    OKE(fth_config_parse(j.cfg, "c.yaml", config, strlen(config), &err), &err);
    OKE(fth_config_check(j.cfg, fth_instrument_bragg.schema, NULL, &err), &err);
    const fth_job made = {.name = name,
                          .dir_name = name,
                          .instrument = &fth_instrument_bragg,
                          .model = "series",
                          .output_dir = j.dir,
                          .config_path = "c.yaml",
                          .config = j.cfg};
    fth_stage_options opt = {.job = &made, .stage = &fth_instrument_bragg.stage[0]};
    fth_options_default(&opt.engine);
    opt.engine.mem.budget_bytes = 1 << 26;
    opt.engine.threads = 1;
    opt.say = hear;
    said[0] = 0;
    OKE(fth_stage_execute(&opt, NULL, &err), &err);
    char path[PATH_MAX + 40];
    snprintf(path, sizeof path, "%s/series/frames.h5", j.dir);
    OKE(fth_h5_open(&j.file, j.mem, path, &err), &err);
    return j;
}

static void end(job *j)
{
    fth_err err = {0};
    fth_h5_close(j->file);
    OK(fth_config_destroy(j->cfg, NULL));
    OKE(fth_mem_destroy(j->mem, &err), &err);
}

static void numbers(const job *j, const char *name, int64_t n, double *out)
{
    fth_source s;
    fth_err err = {0};
    fth_tensor *t;
    OKE(fth_h5_source(j->file, name, &s, &err), &err);
    OKE(fth_source_load(&s, j->mem, "numbers", &t, &err), &err);
    EQ_U64(fth_tensor_bytes(t), (uint64_t)n * sizeof(double));
    memcpy(out, fth_tensor_data(t), (size_t)n * sizeof(double));
    fth_tensor_release(t);
    fth_source_close(&s);
}

static double number(const job *j, const char *name)
{
    double v;
    numbers(j, name, 1, &v);
    return v;
}

static void is_text(const job *j, const char *name, const char *want)
{
    fth_texts *t;
    fth_err err = {0};
    OKE(fth_h5_strings(j->file, name, &t, &err), &err);
    EQ_I64(fth_texts_count(t), 1);
    EQ_STR(fth_texts_get(t, 0), want);
    fth_texts_free(t);
}

static void step(const job *j, const char *name, double *out3)
{
    int64_t n = 0;
    fth_err err = {0};
    double v[3];
    OKE(fth_h5_attr_f64(j->file, name, "vector", v, 3, &n, &err), &err);
    EQ_I64(n, 3);
    const double length = number(j, name);
    for (int i = 0; i < 3; i++) out3[i] = length * v[i];
}

/* The header of the CBF of a frame, to be freed. */
static char *header_of(const job *j, int frame)
{
    char path[PATH_MAX + 40];
    size_t bytes;
    snprintf(path, sizeof path, "%s/series/image_%05d.cbf", j->dir, frame);
    char *text = (char *)t_file_read(path, &bytes);
    char *data = strstr(text, "--CIF-BINARY");
    IS_TRUE(data != NULL);
    *data = 0;
    return text;
}

/* ---- beam and detector ---- */

TEST(flux_is_that_of_the_fluence)
{
    job j = run("flux", SERIES "detector: {" DETECTOR "}\n");
    /* 2e24 photons/m2 in 0.25 s on 0.05 mm x 0.05 mm */
    NEAR(number(&j, "/entry/instrument/beam/total_flux"), 2e16, 1e4);
    char *text = header_of(&j, 1);
    HAS(text, "\n# Flux 2e+16\r\n");
    HAS(text, "\n# Exposure_time 0.25 s\r\n");
    HAS(text, "\n# Wavelength 0.97918 A\r\n");
    HAS(text, "\n# Detector_distance 0.123456 m\r\n");
    HAS(text, "\n_array_data.header_convention \"GENERIC_MINI\"\r\n"); /* no real detector's */
    HAS_NOT(said, "NOTICE");
    free(text);
    end(&j);
}

/* MOSFLM: X along slow, Y along fast, both half a pixel further. */
TEST(beam_centre_and_distance_are_those_of_the_convention)
{
    job j = run("centre", SERIES "detector: {" DETECTOR "}\n");
    NEAR(number(&j, "/entry/instrument/detector/beam_center_x"), (11.23 + 0.4) / 0.8, 1e-9);
    NEAR(number(&j, "/entry/instrument/detector/beam_center_y"), (8.1 + 0.4) / 0.8, 1e-9);
    NEAR(number(&j, "/entry/instrument/detector/distance"), 0.123456, 1e-12);
    char *text = header_of(&j, 2);
    HAS(text, "\n# Beam_xy (14.5375, 10.6250) pixels\r\n");
    HAS(text, "\n# Start_angle 5.500000 deg.\r\n");
    free(text);
    end(&j);
}

/* From the corner of the image to the beam centre: that point is on the beam, at the distance. */
TEST(a_turned_detector_is_hit_at_its_beam_centre)
{
    static const char *const convention[] = {"mosflm", "xds", "dials", "adxv", "denzo"};
    for (int k = 0; k < 5; k++) {
        char config[1500];
        snprintf(config, sizeof config,
                 SERIES "detector: {convention: %s, " DETECTOR ", rot: [3, -4, 5], twotheta: 7}\n",
                 convention[k]);
        job j = run(convention[k], config);
        double at[3], fast[3], slow[3];
#define DET "/entry/instrument/detector/"
        step(&j, DET "transformations/translation", at);
        step(&j, DET "module/fast_pixel_direction", fast);
        step(&j, DET "module/slow_pixel_direction", slow);
        const double x = number(&j, DET "beam_center_x"), y = number(&j, DET "beam_center_y");
        for (int i = 0; i < 3; i++) at[i] += x * fast[i] + y * slow[i];
        NEAR(at[0], 0, 1e-12);
        NEAR(at[1], 0, 1e-12);
        NEAR(at[2], number(&j, DET "distance"), 1e-12);
        NEAR(at[2], 0.12, 0.012);
#undef DET
        end(&j);
    }
}

/* Vectors of one's own need not be perpendicular to each other, nor to the beam. */
TEST(an_oblique_detector_is_hit_at_its_beam_centre)
{
    static br_experiment e;
    const double fast[3] = {0.1, 0, 1}, slow[3] = {0, -0.8, 0.6}, distance = 0.1, pixel = 1e-4;
    e.scene.pixel = pixel;
    e.scene.beam[0] = 1;
    for (int i = 0; i < 3; i++) {
        e.placed.fdet[i].v = fast[i];
        e.placed.sdet[i].v = slow[i];
        e.placed.pix0[i].v = (i == 0 ? distance : 0) - pixel * (30 * fast[i] + 50 * slow[i]);
    }
    const br_hit hit = br_beam_hit(&e);
    NEAR(hit.distance, distance, 1e-12);
    NEAR(hit.fast, 30, 1e-9);
    NEAR(hit.slow, 50, 1e-9);
}

/* I Q U V: x of NeXus is the direction of the electric field, and the factor is Q. */
TEST(polarisation_is_there_where_it_is_known)
{
    static const struct {
        const char *name, *words;
        double q;
    } t[] = {{"unpolarised", "", 0}, {"polarised", "  polar: 0.9\n", 0.9}};
    double stokes[4];
    for (int k = 0; k < 2; k++) {
        char config[1500];
        snprintf(config, sizeof config, SERIES_WITH("%s") "detector: {" DETECTOR "}\n", t[k].words);
        job j = run(t[k].name, config);
        numbers(&j, "/entry/instrument/beam/incident_polarization_stokes", 4, stokes);
        EQ_F64(stokes[0], 1);
        EQ_F64(stokes[1], t[k].q);
        EQ_F64(stokes[2], 0);
        EQ_F64(stokes[3], 0);
        end(&j);
    }
    job j = run("nopolar", SERIES_WITH("  nopolar: true\n") "detector: {" DETECTOR "}\n");
    EQ_I64(fth_h5_kind_of(j.file, "/entry/instrument/beam/incident_polarization_stokes"),
           FTH_H5_NONE);
    end(&j);
}

/* ---- what the files cannot tell ---- */

TEST(a_curved_detector_is_not_passed_off_as_a_flat_one)
{
    job j = run("curved", SERIES "detector: {" DETECTOR ", curved: true}\n");
    HAS(said, "NOTICE: the detector is curved");
    EQ_I64(fth_h5_kind_of(j.file, "/entry/definition"), FTH_H5_NONE);
    fth_texts *t;
    fth_err err = {0};
    OKE(fth_h5_strings(j.file, "/entry/instrument/detector/description", &t, &err), &err);
    HAS(fth_texts_get(t, 0), "the detector is curved");
    fth_texts_free(t);
    char *text = header_of(&j, 1);
    HAS(text, "header_convention \"FATHOM_CURVED\"\r\n");
    HAS(text, "\n# Fathom_note the detector is curved");
    free(text);
    end(&j);
}

TEST(what_is_lost_is_said)
{
    job j = run("tilted", SERIES "detector: {" DETECTOR ", twotheta: 3}\n");
    HAS(said, "NOTICE: a CBF header cannot express that the detector is tilted");
    end(&j);
    j = run("xds", SERIES "detector: {convention: xds, " DETECTOR "}\n");
    HAS(said, "NOTICE: -Xbeam and -Ybeam (detector.beam) are not used");
    end(&j);
}

/* ---- crystal ---- */

static void turn(double *v, int axis, double angle)
{
    const int a = (axis + 1) % 3, b = (axis + 2) % 3;
    const double x = v[a], y = v[b];
    v[a] = x * cos(angle) - y * sin(angle);
    v[b] = x * sin(angle) + y * cos(angle);
}

/* Monoclinic: a* along x, b* along y, c* in their plane with z; turned about x, y and z; then the
 * axes of NeXus, which for MOSFLM are z, -y and x of the laboratory. */
TEST(ub_matrix_is_that_of_cell_and_misset)
{
    job j = run("ub", SERIES "detector: {" DETECTOR "}\n");
    const double beta = 95 * DEGREE, a = 1 / (28 * sin(beta)), b = 1 / 33.0;
    double star[3][3] = {{a, 0, 0}, {0, b, 0}, {-cos(beta) / (38 * sin(beta)), 0, 1 / 38.0}};
    double ub[27], u[27], cell[6];
    for (int k = 0; k < 3; k++)
        for (int axis = 0; axis < 3; axis++) turn(star[k], axis, (10 + 10 * axis) * DEGREE);
    numbers(&j, "/entry/sample/ub_matrix", 27, ub);
    numbers(&j, "/entry/sample/orientation_matrix", 27, u);
    for (int frame = 0; frame < 3; frame++)
        for (int k = 0; k < 3; k++) {
            const double *m = ub + 9 * frame + k, *r = u + 9 * frame;
            NEAR(m[0], star[k][2], 1e-12);
            NEAR(m[3], -star[k][1], 1e-12);
            NEAR(m[6], star[k][0], 1e-12);
            /* U turns, and takes a* of the cell to that of the crystal */
            NEAR(r[3 * k], ub[9 * frame + 3 * k] / a, 1e-9);
            double square = 0;
            for (int c = 0; c < 3; c++) square += r[3 * k + c] * r[3 * k + c];
            NEAR(square, 1, 1e-9);
        }
    numbers(&j, "/entry/sample/unit_cell", 6, cell);
    const double want[6] = {28, 33, 38, 90, 95, 90};
    for (int i = 0; i < 6; i++) NEAR(cell[i], want[i], 1e-9);
    end(&j);
}

/* ---- what NXmx asks for ---- */

TEST(names_and_times_are_there_and_always_the_same)
{
    job j = run("names", SERIES "detector: {" DETECTOR "}\n");
    is_text(&j, "/entry/definition", "NXmx");
    is_text(&j, "/entry/start_time", "2000-01-01T00:00:00Z");
    is_text(&j, "/entry/end_time_estimated", "2000-01-01T00:00:01Z"); /* 3 times 0.25 s */
    is_text(&j, "/entry/instrument/name", "Fathom bragg");
    is_text(&j, "/entry/instrument/detector/sensor_material", "Si");
    IS_TRUE(number(&j, "/entry/instrument/detector/sensor_thickness") > 0);
    NEAR(number(&j, "/entry/instrument/detector/frame_time"), 0.25, 0);
    char *text = header_of(&j, 1);
    HAS_NOT(text, "thickness");
    free(text);
    end(&j);
}

static void counts(const job *j, const char *name, int64_t n, int64_t *out)
{
    double bits[8]; /* as wide */
    numbers(j, name, n, bits);
    memcpy(out, bits, (size_t)n * sizeof *out);
}

/* What a reader takes without a word of doubt: units, sizes, and which way things turn. */
TEST(units_sizes_and_axes_are_those_of_nexus)
{
    job j = run("units", SERIES "detector: {" DETECTOR ", twotheta: 7}\n");
    double start[3], end_[3], vector[3], turn_[9];
    int64_t size[2], n = 0;
    NEAR(number(&j, "/entry/instrument/beam/incident_wavelength"), 0.97918, 1e-12);
    numbers(&j, "/entry/sample/transformations/omega", 3, start);
    numbers(&j, "/entry/sample/transformations/omega_end", 3, end_);
    for (int i = 0; i < 3; i++) {
        NEAR(start[i], 5 + 0.5 * i, 1e-12);
        NEAR(end_[i], 5.5 + 0.5 * i, 1e-12);
    }
    counts(&j, "/entry/instrument/detector/module/data_size", 2, size);
    EQ_I64(size[0], 20); /* slow first, as the data have it */
    EQ_I64(size[1], 24);
    NEAR(number(&j, "/entry/instrument/detector/x_pixel_size"), 8e-4, 1e-15);
    /* right-handed, and the spindle of MOSFLM, z of the laboratory, is x of NeXus */
    numbers(&j, "/entry/fathom/lab_to_nexus", 9, turn_);
    for (int i = 0; i < 3; i++) {
        const int a = (i + 1) % 3, b = (i + 2) % 3;
        NEAR(turn_[i], turn_[3 + a] * turn_[6 + b] - turn_[3 + b] * turn_[6 + a], 1e-12);
    }
    OK(fth_h5_attr_f64(j.file, "/entry/sample/transformations/omega", "vector", vector, 3, &n,
                       NULL));
    NEAR(vector[0], 1, 1e-12);
    NEAR(vector[1], 0, 1e-12);
    NEAR(vector[2], 0, 1e-12);
    char *text = header_of(&j, 1);
    HAS(text, "\n# Angle_increment 0.500000 deg.\r\n");
    HAS(text, "\n# Detector_2theta 7.000000 deg.\r\n");
    HAS(text, "\n# Pixel_size 0.0008 m x 0.0008 m\r\n");
    HAS(text, "\n# Count_cutoff 2147483646 counts\r\n");
    free(text);
    end(&j);
}

/* Only counts that are cut off have a largest value; it is that of the type. */
TEST(saturation_is_that_of_the_pixels)
{
    static const char *const dtype[2] = {"u16", "i32"};
    static const int64_t most[2] = {65535, 2147483647};
    for (int k = 0; k < 2; k++) {
        char config[1500];
        int64_t found = 0;
        snprintf(config, sizeof config, SERIES "detector: {" DETECTOR "}\n");
        char *at = strstr(config, "output: {cbf: true}");
        char rest[1500];
        snprintf(rest, sizeof rest, "%s", at + strlen("output: {cbf: true}"));
        snprintf(at, sizeof config - (size_t)(at - config), "output: {counts: true, dtype: %s}%s",
                 dtype[k], rest);
        job j = run(dtype[k], config);
        counts(&j, "/entry/instrument/detector/saturation_value", 1, &found);
        EQ_I64(found, most[k]);
        end(&j);
    }
}

/* The largest step of one and of two bytes, and those just beyond: 0x80 and 0x8000 say that more
 * follows, so they are no steps. */
TEST(steps_of_every_width_are_packed)
{
    static const int32_t step[] = {127,    -127,  128,    -128,  129,    -129,       32767,
                                   -32767, 32768, -32768, 32769, -32769, 2147483000, -2147483000,
                                   0,      1,     -1,     255,   -65536, 65535};
    enum { N = sizeof step / sizeof step[0] };
    const int64_t size[2] = {2, N / 2};
    static br_experiment e;
    fth_mem *mem = t_mem(1 << 20);
    fth_err err = {0};
    fth_tensor *t = NULL;
    OKE(fth_tensor_create(&t, mem, "pixels", FTH_I32, 2, size, &err), &err);
    int32_t *pixel = fth_tensor_data(t), last = 0;
    for (int i = 0; i < N; i++) pixel[i] = last += step[i];
    e.mem = mem;
    e.scene.slow = size[0];
    e.scene.fast = size[1];
    e.scene.pixel = 1e-4;
    fth_sink sink;
    const fth_source pixels = fth_tensor_source(t);
    OKE(br_cbf_write(&sink, t_temp_path("steps.cbf"), &e, &pixels, &err), &err);
    OKE(sink.commit(sink.self, &err), &err);
    fth_sink_close(&sink);
    size_t bytes;
    unsigned char *file = t_file_read(t_temp_path("steps.cbf"), &bytes);
    const unsigned char *at = memmem(file, bytes, "\x0c\x1a\x04\xd5", 4);
    IS_TRUE(at != NULL);
    at += 4;
    for (int i = 0; i < N; i++) {
        int8_t one;
        int16_t two;
        int32_t four;
        memcpy(&one, at, 1);
        memcpy(&two, at + 1, 2);
        memcpy(&four, at + 3, 4);
        EQ_I64(one != -0x80 ? one : two != -0x8000 ? two : four, step[i]);
        at += one != -0x80 ? 1 : two != -0x8000 ? 3 : 7;
    }
    free(file);
    fth_tensor_release(t);
    OKE(fth_mem_destroy(mem, &err), &err);
}

TEST(sensors_are_of_the_material_that_is_given)
{
    static const char *const material[3] = {"Si", "CdTe", "GaAs"},
                             *const line[3] = {"\n# Silicon sensor, thickness 0.00045 m\r\n",
                                               "\n# CdTe sensor, thickness 0.00045 m\r\n",
                                               "\n# GaAs sensor, thickness 0.00045 m\r\n"};
    for (int k = 0; k < 3; k++) {
        char config[1500];
        snprintf(config, sizeof config,
                 SERIES "detector: {" DETECTOR ", thick: 450, abs: 300, material: %s}\n",
                 material[k]);
        job j = run(material[k], config);
        is_text(&j, "/entry/instrument/detector/sensor_material", material[k]);
        NEAR(number(&j, "/entry/instrument/detector/sensor_thickness"), 450e-6, 1e-15);
        char *text = header_of(&j, 3);
        HAS(text, line[k]);
        free(text);
        end(&j);
    }
}

TEST_MAIN()
