/* image.h - one image from an experiment: rendered, measured, written.
 *
 * Pass by pass: the latch (where the reference stops to interpolate), the render with its sums,
 * the spread about the mean, and the pixels as they are stored in the int, PGM and noise files. The
 * last two read the float image back, so it is never whole in memory. All passes are planned before
 * the first one runs.
 */
#ifndef BRAGG_IMAGE_H
#define BRAGG_IMAGE_H

#include "../experiment/experiment.h"
#include "checkpoint.h"

#include <fathom/instrument.h>

/* v inside the ROI, `outside` elsewhere; v has axes "slow fast". */
fth_val br_within(const br_scene *scene, fth_val v, fth_val outside);

/* ---- pixels as they are stored (model 12.3 to 12.5): from image f32 [slow fast] ---- */

/* u16: image * scale + adc, clipped and rounded; 0 outside the ROI. `scale` is f64 []. */
fth_val br_int_pixels(const br_scene *scene, fth_val image, fth_val scale, double adc);
/* Integers as the reference's processor converts reals: the low bits of 32. */
fth_val br_low_bits(fth_val v, int64_t mask, fth_dtype to);
/* u8: image * scale, at most 255, truncated to integers. */
fth_val br_pgm_pixels(fth_val image, fth_val scale);
/* f64: a Poisson count for each pixel, 0 outside the ROI. With the quirk shared-ran1 the serial
 * stream of `random`, else a function of (seed, shot, pixel). */
fth_val br_counts(const br_scene *scene, fth_val image, const br_ran1 *random, int64_t seed,
                  int64_t shot);
typedef struct br_noise {
    fth_val counts;    /* f64 */
    fth_val pixels;    /* u16: counts + adc */
    fth_val photons;   /* f64 []: sum of the counts */
    fth_val overloads; /* i64 []: pixels that did not fit */
} br_noise;
br_noise br_noise_of(const br_scene *scene, fth_val counts, double adc);
/* The same of a single image, as shot 0. */
br_noise br_noise_pixels(const br_scene *scene, fth_val image, const br_ran1 *random, int64_t seed,
                         double adc);
/* i32: photons, f64 [slow fast], + adc from 0 up; `unseen` outside the ROI and, where there is a
 * mask (u16; graph NULL: none), where it is 0. */
fth_val br_photon_pixels(const br_scene *scene, fth_val photons, fth_val mask, double adc,
                         int64_t unseen);
/* The text in front of a PGM; returns its length, 0 when it does not fit. */
size_t br_pgm_header(char *text, size_t bytes, int64_t fast, int64_t slow, double scale);

/* ---- numbers of an image (model 12.1) ---- */

typedef struct br_statistics {
    double sum, sum_sqr;       /* over rendered pixels */
    int64_t pixels;            /* rendered */
    int64_t roi_pixels;        /* of the ROI, masked ones included */
    double average, rms, rmsd; /* rmsd about the average, over the ROI */
    float max;                 /* 0 when no pixel is above */
    int64_t max_fast, max_slow;
    double max_at[2];     /* m, along fast and slow: last subpixel of the first such pixel */
    double omega;         /* sum of solid angles of all layers and subpixels */
    int64_t out_of_range; /* samples that could not be interpolated */
    double int_scale, pgm_scale;
    double photons; /* on the noise image */
    int64_t overloads;
} br_statistics;

/* From sums to averages and position; then, with rmsd known, to scales. */
void br_statistics_finish(br_statistics *s, const br_scene *scene);
void br_statistics_scales(br_statistics *s, const br_outputs *out);
/* The lines of the console: solid angle; maximum; mean. */
void br_print_solid_angle(FILE *out, const br_experiment *e, const br_statistics *s);
void br_print_maximum(FILE *out, const br_statistics *s);
void br_print_mean(FILE *out, const br_statistics *s);

/* ---- passes ---- */

typedef struct br_passes br_passes;
/* Builds and plans all passes of an experiment, which outlives them. A plan that does not fit fails
 * here. `want` lists the wanted files. */
typedef struct br_wanted {
    bool ints, pgm, noise;
    bool smv32, cbf;   /* photons: counts, where noise or counts are wanted, else rounded */
    bool counts;       /* counting noise, even where there is no noise image */
    bool by_rows;      /* the render saves rows for a checkpoint, and sums them afterwards: */
    int64_t first_row; /* from this row on; earlier ones are saved; */
    int64_t rows_each; /* about so many at a time */
} br_wanted;
fth_status br_passes_create(br_passes **out, fth_context *ctx, const br_experiment *e,
                            br_wanted want, fth_err *err);
void br_passes_destroy(br_passes *p); /* NULL is allowed */
fth_status br_passes_print(const br_passes *p, FILE *file);
fth_status br_passes_print_json(const br_passes *p, FILE *file);
int br_passes_count(const br_passes *p);
const char *br_passes_name(int i);
/* Every rank has a part of some pass. */
fth_status br_passes_check_ranks(const br_passes *p, fth_err *err);
const fth_plan *br_passes_plan(const br_passes *p, int i); /* NULL: this pass is not needed */
/* Index of the first sample that the reference does not interpolate; INT64_MAX: there is none, or
 * it is not needed. Runs the latch pass. */
fth_status br_passes_latch(br_passes *p, const fth_run_options *opt, int64_t *latch, fth_err *err);
/* The image, f32 [slow fast], into `sink`, and its numbers. `report` may be NULL. */
fth_status br_passes_render(br_passes *p, const fth_sink *sink, const fth_run_options *opt,
                            fth_run_report *report, br_statistics *out, fth_err *err);
/* The same in two steps, with `by_rows`: rows into their sinks, then the numbers from all rows. */
void br_passes_set_latch(br_passes *p, int64_t latch);
fth_status br_passes_render_rows(br_passes *p, const br_row_sinks *sinks,
                                 const fth_run_options *opt, fth_run_report *report, fth_err *err);
fth_status br_passes_sum(br_passes *p, fth_source image, fth_source omega, fth_source outside,
                         br_statistics *out, fth_err *err);
/* rmsd and scales, from the image that was rendered. */
fth_status br_passes_measure(br_passes *p, fth_source image, br_statistics *s, fth_err *err);
/* Stores the wanted files; sinks of others are ignored. */
typedef struct br_pixel_sinks {
    fth_sink ints, pgm, noise, smv32, cbf;
} br_pixel_sinks;
fth_status br_passes_store(br_passes *p, fth_source image, const br_pixel_sinks *sinks,
                           br_statistics *s, fth_err *err);

/* ---- files ---- */

/* Which passes the outputs need. */
br_wanted br_outputs_wanted(const br_outputs *out);
bool br_output_is_file(const char *path); /* neither "" nor a device such as /dev/null */
/* Fails on a path that cannot be written, and on two outputs of one name. Writes nothing. */
fth_status br_output_check(const char *path, fth_mem *mem, fth_err *err);
/* A file of pixels after `header`; where the path is a device, a sink that discards. */
fth_status br_output_create(fth_sink *out, fth_mem *mem, const char *path,
                            const fth_raw_layout *layout, const void *header, fth_err *err);
/* Refuses outputs that are one file with each other or with one of n more, see br_flags_reads. */
enum { BR_MORE_FILES = 16 };
fth_status br_outputs_distinct(const br_outputs *out, const fth_path_use *more, int n, fth_mem *mem,
                               fth_err *err);
fth_status br_outputs_check(const br_outputs *out, fth_mem *mem, fth_err *err);
/* The files that will be, or are, written, with their sizes. */
void br_outputs_tell(const br_experiment *e, fth_answer *a);

/* The files of an image while they are written, under temporary names until br_files_commit. */
typedef struct br_files {
    fth_mem *mem;
    fth_file_set *set;         /* of those that are files; NULL: none yet */
    const char *part, *packed; /* the float image and the CBF, under their hidden names */
    char raw[FTH_PATH];        /* pixels of the CBF before they are packed, when `packed` is set */
    fth_tensor *held;          /* the float image, where it goes to no file */
    fth_sink image, ints, pgm, noise, smv32, unpacked, cbf;
} br_files;
/* Takes the memory of a float image that goes to no file: before passes are planned, so that they
 * are planned beside it. */
fth_status br_files_hold(br_files *f, const br_experiment *e, fth_err *err);
/* A sink for the float image; a source of it, once it was written. */
fth_status br_files_image(br_files *f, const br_experiment *e, fth_sink *out, fth_err *err);
fth_status br_files_source(br_files *f, const br_experiment *e, fth_source *out, fth_err *err);
/* Sinks of the other files, which need the scales. */
fth_status br_files_pixels(br_files *f, const br_experiment *e, const br_statistics *s,
                           br_pixel_sinks *out, fth_err *err);
/* After the pixels are stored: compresses the CBF. */
fth_status br_files_pack(br_files *f, const br_experiment *e, fth_err *err);
fth_status br_files_commit(br_files *f, fth_err *err);
void br_files_close(br_files *f); /* removes what was not committed */

/* ---- an image with all its files ---- */

typedef struct br_image_job {
    fth_context *context;
    const br_experiment *experiment;
    FILE *out;                 /* the text after that of the experiment */
    fth_progress_fn *progress; /* NULL: none */
    void *progress_user;
    /* Called when everything is checked and planned, before the first pass; NULL: none. */
    fth_status (*ready)(void *user, fth_err *err);
    void *ready_user;
    int64_t checkpoint;  /* rows between checkpoints; 0: none */
    const char *preview; /* a picture of the image: .png, .svg or .pdf; NULL: none */
    bool preview_linear;
} br_image_job;
fth_status br_image_make(const br_image_job *job, br_statistics *out, fth_err *err);

/* ---- the command ---- */

fth_status br_image_command(const fth_direct_call *call, fth_err *err);

#endif
