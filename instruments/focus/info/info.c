/* info.c - axes, sizes, calibration, times, positions and damage of one file; see info.h. */
#include "info.h"

#include "../input/input.h"
#include "crc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SHOWN = 24 };
static const double unknown = (double)NAN;

static const char axis_names[] = "btpzcyx";
static const char *const json_names[FO_AXES] = {"b", "t", "p", "z", "c", "y", "x"};

/* What is asked for, and of which file. */
typedef struct question {
    fth_context *ctx;
    fo_file file;
    fth_answer *a;
    bool crc;
} question;

static const char *format_of(const fo_file *f)
{
    return f->images ? fth_images_get_info(f->images)->format : "npy";
}

static fth_images_frame frame_of(const fo_file *f, int64_t i)
{
    const int64_t z = i % f->size[FO_Z], p = i / f->size[FO_Z] % f->size[FO_P],
                  t = i / f->size[FO_Z] / f->size[FO_P];
    if (f->images) return fth_images_get_frame(f->images, t, p, z);
    return (fth_images_frame){
        .present = true, .time_ms = unknown, .x_um = unknown, .y_um = unknown};
}

static int64_t frame_count(const fo_file *f)
{
    return f->size[FO_B] * f->size[FO_T] * f->size[FO_P] * f->size[FO_Z];
}

static const char *channel_of(const fo_file *f, int64_t c)
{
    const char *name = f->images ? fth_images_channel(f->images, c) : "";
    return name ? name : "";
}

/* ---- for people ---- */

static void print_sizes(const fo_file *f, FILE *out)
{
    char bytes[24];
    uint64_t all = (uint64_t)fth_dtype_size(f->dtype);
    fprintf(out, "format    %s\naxes     ", format_of(f));
    for (int a = 0; a < FO_AXES; a++) {
        all *= (uint64_t)f->size[a];
        if (a != FO_B || f->size[a] > 1) fprintf(out, " %c=%" PRId64, axis_names[a], f->size[a]);
    }
    fprintf(out, " %s", fth_dtype_name(f->dtype));
    if (f->significant_bits != (int)fth_dtype_size(f->dtype) * 8)
        fprintf(out, ", %d bits", f->significant_bits);
    fprintf(out, "\npixels    %s in %" PRId64 " frames\n",
            fth_mem_format_size(all, bytes, sizeof bytes), frame_count(f));
    if (f->um_per_px > 0) fprintf(out, "pixel     %.6g um\n", f->um_per_px);
    if (f->z_step_um > 0) fprintf(out, "z step    %.6g um\n", f->z_step_um);
}

static void print_texts(const fo_file *f, FILE *out)
{
    const fth_images_info *info = fth_images_get_info(f->images);
    if (info->objective && info->objective[0]) fprintf(out, "objective %s\n", info->objective);
    fprintf(out, "channels ");
    for (int64_t c = 0; c < f->size[FO_C] && c < SHOWN; c++)
        fprintf(out, "%s %" PRId64 "%s%s", c ? "," : "", c, channel_of(f, c)[0] ? " " : "",
                channel_of(f, c));
    fprintf(out, "%s\n", f->rgb ? "; colours become grey" : "");
    fprintf(out, "frames    %" PRId64 " of %" PRId64 " present, %" PRId64 " repaired\n",
            info->frames_present, info->frames_expected, info->frames_repaired);
    if (info->damage && info->damage[0]) fprintf(out, "damage    %s\n", info->damage);
}

static void print_positions(const fo_file *f, FILE *out)
{
    if (f->size[FO_P] < 2) return;
    fprintf(out, "positions\n");
    for (int64_t p = 0; p < f->size[FO_P] && p < SHOWN; p++) {
        const fth_images_position at = fth_images_get_position(f->images, p);
        fprintf(out, "  %4" PRId64 "  %-12s", p, at.name ? at.name : "");
        if (!isnan(at.x_um)) fprintf(out, " x %.1f um, y %.1f um", at.x_um, at.y_um);
        fprintf(out, "\n");
    }
    if (f->size[FO_P] > SHOWN) fprintf(out, "  and %" PRId64 " more\n", f->size[FO_P] - SHOWN);
}

/* The first and the last time of a position's first plane, and what lies between. */
static void print_times(const fo_file *f, FILE *out)
{
    double first = unknown, last = unknown, longest = 0, before = unknown;
    int64_t gap = -1;
    for (int64_t t = 0; t < f->size[FO_T]; t++) {
        const double ms = fth_images_get_frame(f->images, t, 0, 0).time_ms;
        if (isnan(ms)) continue;
        if (isnan(first)) first = ms;
        if (!isnan(before) && ms - before > longest) {
            longest = ms - before;
            gap = t;
        }
        before = last = ms;
    }
    if (isnan(first) || f->size[FO_T] < 2) return;
    fprintf(out, "times     %.1f s to %.1f s", first / 1000, last / 1000);
    if (gap > 0)
        fprintf(out, "; the longest step is %.1f s, before t=%" PRId64, longest / 1000, gap);
    fprintf(out, "\n");
}

/* ---- for programs ---- */

static void add_axes(const fo_file *f, fth_json_writer *w)
{
    fth_json_text(w, "format", format_of(f));
    fth_json_open_row(w, "sizes", '{');
    for (int a = f->size[FO_B] > 1 ? FO_B : FO_T; a < FO_AXES; a++)
        fth_json_int(w, json_names[a], f->size[a]);
    fth_json_close(w);
    fth_json_text(w, "dtype", fth_dtype_name(f->dtype));
    fth_json_int(w, "significant_bits", f->significant_bits);
    fth_json_real(w, "um_per_px", f->um_per_px > 0 ? f->um_per_px : unknown);
    fth_json_real(w, "z_step_um", f->z_step_um > 0 ? f->z_step_um : unknown);
    fth_json_open(w, "channels", '[');
    for (int64_t c = 0; c < f->size[FO_C]; c++) fth_json_text(w, NULL, channel_of(f, c));
    fth_json_close(w);
    fth_json_open(w, "positions", '[');
    for (int64_t p = 0; f->images && p < f->size[FO_P]; p++) {
        const fth_images_position at = fth_images_get_position(f->images, p);
        fth_json_open(w, NULL, '{');
        fth_json_text(w, "name", at.name ? at.name : "");
        fth_json_real(w, "x_um", at.x_um);
        fth_json_real(w, "y_um", at.y_um);
        fth_json_close(w);
    }
    fth_json_close(w);
}

static void add_frames(const fo_file *f, fth_json_writer *w)
{
    const int64_t n = frame_count(f);
    int64_t present = 0, repaired = 0;
    for (int64_t i = 0; i < n; i++) {
        const fth_images_frame frame = frame_of(f, i);
        present += frame.present;
        repaired += frame.repaired;
    }
    fth_json_open_row(w, "frames", '{');
    fth_json_int(w, "expected", n);
    fth_json_int(w, "present", present);
    fth_json_int(w, "missing", n - present);
    fth_json_int(w, "repaired", repaired);
    fth_json_close(w);
    if (f->images) fth_json_text(w, "damage", fth_images_get_info(f->images)->damage);
    fth_json_open_row(w, "frame_time_ms", '[');
    for (int64_t i = 0; i < n; i++) fth_json_real(w, NULL, frame_of(f, i).time_ms);
    fth_json_close(w);
}

/* ---- checksums ---- */

/* Bytes of a frame as c, y, x, a channel at a time. */
static fth_status crc_of(const fo_file *f, int64_t i, void *plane, uint32_t *crc, fth_err *err)
{
    const uint64_t bytes = (uint64_t)(f->size[FO_Y] * f->size[FO_X] * fth_dtype_size(f->dtype));
    const int64_t z = i % f->size[FO_Z], p = i / f->size[FO_Z] % f->size[FO_P],
                  t = i / f->size[FO_Z] / f->size[FO_P] % f->size[FO_T],
                  b = i / f->size[FO_Z] / f->size[FO_P] / f->size[FO_T];
    *crc = 0;
    for (int64_t c = 0; c < f->size[FO_C]; c++) {
        const int64_t first[FO_AXES] = {b, t, p, z, c, 0, 0},
                      count[FO_AXES] = {1, 1, 1, 1, 1, f->size[FO_Y], f->size[FO_X]};
        int64_t lo[FTH_MAX_AXES] = {0}, n[FTH_MAX_AXES] = {1, 1, 1, 1, 1, 1, 1, 1};
        for (int a = 0; a < FO_AXES; a++)
            if (f->axis_of[a] >= 0) {
                lo[f->axis_of[a]] = first[a];
                n[f->axis_of[a]] = count[a];
            }
        FTH_TRY(f->source.read(f->source.self, lo, n, plane, err));
        *crc = fo_crc32(*crc, plane, bytes);
    }
    return FTH_OK;
}

static fth_status add_crcs(const question *q, fth_err *err)
{
    const fo_file *f = &q->file;
    fth_mem *mem = fth_context_mem(q->ctx);
    const uint64_t bytes = (uint64_t)(f->size[FO_Y] * f->size[FO_X] * fth_dtype_size(f->dtype));
    fth_json_writer *w = q->a->json ? fth_answer_facts(q->a) : NULL;
    void *plane = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes, "plane", &plane, err));
    fth_status s = FTH_OK;
    if (w) fth_json_open_row(w, "frame_crc32", '[');
    for (int64_t i = 0; s == FTH_OK && i < frame_count(f); i++) {
        uint32_t crc = 0;
        const bool present = frame_of(f, i).present;
        if (present) s = crc_of(f, i, plane, &crc, err);
        if (s != FTH_OK) break;
        if (w && present) fth_json_int(w, NULL, crc);
        if (w && !present) fth_json_null(w, NULL);
        if (present)
            fprintf(q->a->out, "frame %6" PRId64 "  crc32 %08" PRIx32 "\n", i, crc);
        else
            fprintf(q->a->out, "frame %6" PRId64 "  missing\n", i);
    }
    if (w && s == FTH_OK) fth_json_close(w);
    fth_mem_release(mem, plane, NULL);
    return s;
}

static fth_status describe(question *q, const char *path, fth_err *err)
{
    static const fo_selection all = {.channel = "", .wells = ""};
    FTH_TRY(fo_file_open(&q->file, fth_context_mem(q->ctx), path, &all, err));
    const fo_file *f = &q->file;
    FILE *out = q->a->out;
    fth_answer_file(q->a, FTH_FILE_INPUT, path, -1, "images");
    print_sizes(f, out);
    if (f->images) {
        print_texts(f, out);
        print_times(f, out);
        print_positions(f, out);
    }
    if (q->a->json) {
        add_axes(f, fth_answer_facts(q->a));
        add_frames(f, fth_answer_facts(q->a));
    }
    const fth_status s = q->crc ? add_crcs(q, err) : FTH_OK;
    fo_file_close(&q->file);
    return s;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    fth_answer a;
    (void)n_args;
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    question q = {.ctx = ctx, .a = &a, .crc = value(user, "crc") != NULL};
    return fth_answer_end(&a, describe(&q, arg[0], err), err);
}

static const fth_flag flags[] = {
    {.name = "crc",
     .doc = "also read every frame and print the CRC-32 of its bytes in the order c, y, x"},
    {0}};

const fth_verb fo_verb_info = {
    .name = "info",
    .args = "FILE",
    .brief = "show what an image file holds: axes, calibration, times, positions, damage",
    .doc =
        "Reads the headers of an ND2, TIFF, Zarr or picture file, or of a .npy array. Frames that "
        "are missing, and an index that had to be repaired, are reported.\n"
        "\n"
        "With --json: format, sizes, dtype, um_per_px, z_step_um, channels, positions, frames and "
        "frame_time_ms; frames are in the order t, p, z, and unknown values are null.",
    .min_args = 1,
    .max_args = 1,
    .flag = flags,
    .heeds = "json", /* it only reads headers: there is nothing to plan */
    .run = run};
