/* image.c - from an experiment to its files and the text about it.
 *
 * Everything is checked first: files that cannot be written, plans that do not fit. Then the passes
 * run, with the lines of the reference between them; the files are renamed into place at the very
 * end.
 */
#include "image.h"
#include "../console/meter.h"
#include "../console/printout.h"
#include "../preview/preview.h"
#include "cbf.h"

#include <string.h>

typedef struct work {
    const br_image_job *job;
    const br_experiment *e;
    FILE *out;
    br_passes *passes;
    br_files files;
    fth_source image;
    br_statistics stats;
    br_meter meter;
    br_latch_note note;
    int64_t latch;
    fth_run_report report;
    br_checkpoint *checkpoint; /* NULL: none */
} work;

/* ---- passes ---- */

static bool on_progress(void *user, const fth_progress *p)
{
    work *w = user;
    br_meter_tell(&w->meter, p->fraction);
    return !w->job->progress || w->job->progress(w->job->progress_user, p);
}

static fth_status find_latch(work *w, const fth_run_options *opt, fth_err *err)
{
    br_checkpoint *c = w->checkpoint;
    if (c && br_checkpoint_latch(c, &w->latch)) {
        br_passes_set_latch(w->passes, w->latch);
        return FTH_OK;
    }
    FTH_TRY(br_passes_latch(w->passes, opt, &w->latch, err));
    return c ? br_checkpoint_set_latch(c, w->latch, err) : FTH_OK;
}

/* The rows that are still missing, then the image out of the checkpoint. */
static fth_status render_rows(work *w, const fth_run_options *opt, fth_err *err)
{
    br_checkpoint *c = w->checkpoint;
    const br_row_sinks sinks = br_checkpoint_sinks(c);
    if (br_checkpoint_rows(c) < w->e->scene.slow)
        FTH_TRY(br_passes_render_rows(w->passes, &sinks, opt, &w->report, err));
    fth_sink sink;
    fth_source image;
    FTH_TRY(br_files_image(&w->files, w->e, &sink, err));
    FTH_TRY(br_checkpoint_image(c, &image, err));
    fth_status s = fth_source_copy(&image, &sink, w->e->mem, NULL, NULL, err);
    if (s == FTH_OK)
        s = br_passes_sum(w->passes, image, br_checkpoint_omega(c), br_checkpoint_outside(c),
                          &w->stats, err);
    fth_source_close(&image);
    return s;
}

static fth_status render(work *w, fth_err *err)
{
    const br_experiment *e = w->e;
    const fth_run_options quiet = {w->job->progress, w->job->progress_user},
                          told = {on_progress, w};
    FTH_TRY(find_latch(w, &quiet, err));
    FTH_TRY(br_latch_note_make(&w->note, e, w->latch, err));
    if (!e->out.printout)
        FTH_TRY(
            br_meter_start(&w->meter, w->out, e, e->compat_c && e->out.progress, &w->note, err));
    if (w->checkpoint) {
        FTH_TRY(render_rows(w, &told, err));
    } else {
        fth_sink sink;
        FTH_TRY(br_files_image(&w->files, e, &sink, err));
        FTH_TRY(br_passes_render(w->passes, &sink, &told, &w->report, &w->stats, err));
    }
    br_meter_tell(&w->meter, 1);
    if (e->out.printout) FTH_TRY(br_print_pixels(w->out, e, w->latch, &w->note, err));
    fprintf(w->out, "\n");
    br_print_solid_angle(w->out, e, &w->stats);
    if (!e->compat_c && w->stats.out_of_range > 0)
        fprintf(w->out, "%lld samples were out of range for interpolation\n",
                (long long)w->stats.out_of_range);
    if (e->out.float_file[0])
        fprintf(w->out, "writing %s as %lld 4-byte floats\n", e->out.float_file,
                (long long)(e->scene.fast * e->scene.slow));
    br_print_maximum(w->out, &w->stats);
    return FTH_OK;
}

static fth_status store(work *w, fth_err *err)
{
    const br_experiment *e = w->e;
    const br_outputs *o = &e->out;
    br_statistics *s = &w->stats;
    br_pixel_sinks sinks;
    FTH_TRY(br_files_source(&w->files, e, &w->image, err));
    FTH_TRY(br_passes_measure(w->passes, w->image, s, err));
    FTH_TRY(br_files_pixels(&w->files, e, s, &sinks, err));
    FTH_TRY(br_passes_store(w->passes, w->image, &sinks, s, err));
    FTH_TRY(br_files_pack(&w->files, e, err));
    br_print_mean(w->out, s);
    if (o->int_file[0])
        fprintf(w->out, "intfile_scale = %g\nwriting %s as 2-byte integers\n", s->int_scale,
                o->int_file);
    if (o->pgm_file[0])
        fprintf(w->out, "pgm_scale = %g\nwriting %s as 1-byte integers\n", s->pgm_scale,
                o->pgm_file);
    if (o->noise_file[0])
        fprintf(w->out,
                "%.0f photons on noise image (%lld overloads)\nwriting %s as 2-byte integers\n",
                s->photons, (long long)s->overloads, o->noise_file);
    if (o->smv32_file[0]) fprintf(w->out, "writing %s as 4-byte integers\n", o->smv32_file);
    if (o->cbf_file[0]) fprintf(w->out, "writing %s as packed integers\n", o->cbf_file);
    return FTH_OK;
}

static br_preview preview_of(const br_image_job *job, const br_statistics *s)
{
    return (br_preview){
        .path = job->preview, .linear = job->preview_linear, .rms = s->rms, .max = (double)s->max};
}

static fth_status preview(work *w, fth_err *err)
{
    const br_preview p = preview_of(w->job, &w->stats);
    return p.path ? br_preview_draw(&p, w->e, &w->image, err) : FTH_OK;
}

/* What is taken between and after the passes, beside all that is held from here on: small things,
 * like one row of a mask, find room in what the plans leave to libraries. */
static fth_status check_room(work *w, fth_err *err)
{
    const br_experiment *e = w->e;
    const br_preview p = preview_of(w->job, &(br_statistics){0});
    if (e->out.printout || br_passes_plan(w->passes, 0)) /* the latch has a note */
        FTH_TRY(fth_mem_check_room(e->mem, br_printout_bytes(e), "printing pixels", err));
    if (br_output_is_file(e->out.cbf_file))
        FTH_TRY(fth_mem_check_room(e->mem, br_cbf_bytes(e), "packing a CBF", err));
    return p.path ? br_preview_check(&p, e, err) : FTH_OK;
}

static fth_status make(work *w, fth_err *err)
{
    br_wanted want = br_outputs_wanted(&w->e->out);
    if (w->checkpoint) {
        want.by_rows = true;
        want.first_row = br_checkpoint_rows(w->checkpoint);
        want.rows_each = w->job->checkpoint;
    }
    FTH_TRY(br_files_hold(&w->files, w->e, err));
    FTH_TRY(br_passes_create(&w->passes, w->job->context, w->e, want, err));
    FTH_TRY(check_room(w, err));
    if (want.first_row == 0)
        FTH_TRY(br_passes_check_ranks(w->passes, err)); /* else few may be left */
    if (w->job->ready) FTH_TRY(w->job->ready(w->job->ready_user, err));
    FTH_TRY(render(w, err));
    FTH_TRY(store(w, err));
    FTH_TRY(preview(w, err));
    FTH_TRY(br_files_commit(&w->files, err));
    if (w->checkpoint) br_checkpoint_remove(w->checkpoint);
    if (!w->e->compat_c) {
        char text[1000];
        fth_run_report_format(&w->report, text, sizeof text);
        fputs(text, w->out);
    }
    return FTH_OK;
}

static fth_status open_checkpoint(work *w, fth_err *err)
{
    char path[FTH_PATH + 32];
    if (w->job->checkpoint <= 0) return FTH_OK;
    snprintf(path, sizeof path, "%s.checkpoint", w->e->out.float_file);
    FTH_TRY(br_checkpoint_open(&w->checkpoint, w->e, path, w->job->checkpoint, err));
    const int64_t rows = br_checkpoint_rows(w->checkpoint);
    if (rows > 0 && !w->e->compat_c)
        fprintf(w->out, "NOTICE: resuming after %lld of %lld rows: %s\n", (long long)rows,
                (long long)w->e->scene.slow, path);
    return FTH_OK;
}

/* Checks the files before anything is computed. */
static fth_status check(const br_image_job *job, fth_err *err)
{
    const br_experiment *e = job->experiment;
    fth_mem *mem = fth_context_mem(job->context);
    if (job->preview) FTH_TRY(br_output_check(job->preview, mem, err));
    if (job->checkpoint > 0 && !br_output_is_file(e->out.float_file)) {
        FTH_FAIL(err, FTH_E_COMMAND, "--checkpoint needs a float image, and none is written");
        fth_err_hint(err, "give a file with -floatfile, or leave --checkpoint out");
        return FTH_E_COMMAND;
    }
    return br_outputs_check(&e->out, mem, err);
}

fth_status br_image_make(const br_image_job *job, br_statistics *out, fth_err *err)
{
    fth_mem *mem = fth_context_mem(job->context);
    void *block = NULL;
    FTH_TRY(check(job, err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(work), "bragg image", &block, err));
    work *w = memset(block, 0, sizeof *w);
    w->job = job;
    w->e = job->experiment;
    w->out = job->out;
    w->files.mem = mem;
    fth_status s = open_checkpoint(w, err);
    if (s == FTH_OK) s = make(w, err);
    if (s != FTH_OK && w->checkpoint && br_checkpoint_rows(w->checkpoint) == 0)
        br_checkpoint_remove(w->checkpoint); /* no rows to resume from */
    br_checkpoint_close(w->checkpoint);
    if (out) *out = w->stats;
    br_passes_destroy(w->passes);
    if (!w->files.held) fth_source_close(&w->image);
    br_files_close(&w->files);
    (void)fth_mem_release(mem, w, NULL);
    return s;
}
