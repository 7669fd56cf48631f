/* examine.c - see examine.h. */
#include "examine.h"

#include "../process/work.h"
#include "../run/outlook.h"

#include <inttypes.h>
#include <string.h>

typedef struct look {
    const fth_examination *x;
    const char *microscope;
} look;

static void tell(const look *l, fth_finding finding, const char *about, const char *advice,
                 const char *fmt, ...) FTH_PRINTF(5, 6);
static void tell(const look *l, fth_finding finding, const char *about, const char *advice,
                 const char *fmt, ...)
{
    char text[1000];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    l->x->tell(l->x->user, finding, about, advice, text);
}

/* What options of `run` would be. */
static const char *value_of(void *user, const char *flag)
{
    const look *l = user;
    if (strcmp(flag, "data-root") == 0) return l->x->data_root;
    if (strcmp(flag, "exp") == 0) return l->x->exp;
    return strcmp(flag, "microscope") == 0 ? l->microscope : NULL;
}

/* The microscope whose folder has the experiment; the first, so that errors name a folder. */
static const char *find_microscope(const fth_examination *x)
{
    if (x->microscope[0]) return x->microscope;
    for (int i = 0; i < FO_MICROSCOPES; i++) {
        char folder[FTH_PATH];
        const int n = snprintf(folder, sizeof folder, "%s/raw_image_data/%s/%s", x->data_root,
                               fo_microscope_names[i], x->exp);
        if (n > 0 && n < FTH_PATH && fth_path_kind_of(folder) == FTH_PATH_FOLDER)
            return fo_microscope_names[i];
    }
    return fo_microscope_names[0];
}

/* ---- findings ---- */

static double raw_bytes(const fo_input *in)
{
    return (double)(in->n_stacks * in->planes * in->rows * in->columns) *
           (double)fth_dtype_size(in->dtype);
}

static void tell_input(const look *l, const fo_job *e)
{
    const fo_input *in = &e->in;
    const int64_t frames = in->n_stacks * in->planes;
    tell(l, FTH_FOUND_GOOD, "input", "",
         "%s of %s: %" PRId64 " stacks, t=%" PRId64 " p=%" PRId64 " z=%" PRId64 " y=%" PRId64
         " x=%" PRId64 " %s, %.4g GB",
         fth_path_name(e->place.raw), l->microscope, in->n_stacks, e->n_times, e->map.mapped,
         in->planes, in->rows, in->columns, fth_dtype_name(in->dtype), 1e-9 * raw_bytes(in));
    if (in->missing_frames > 0)
        tell(l, FTH_FOUND_WARNING, "frames",
             "run.json will list them; missing planes are never selected",
             "%" PRId64 " of %" PRId64 " frames are missing", in->missing_frames, frames);
    else
        tell(l, FTH_FOUND_GOOD, "frames", "", "all %" PRId64 " frames are present", frames);
}

static void tell_times(const look *l, const fo_job *e)
{
    const fo_times_report *c = &e->clock;
    if (c->jumps > 0)
        tell(l, FTH_FOUND_WARNING, "times", "--fix-time-jumps removes them",
             "the clock jumps at %" PRId64 " of %" PRId64 " time points, first before t=%" PRId64,
             c->jumps, e->n_times, c->first_jump);
    else if (c->imputed > 0)
        tell(l, FTH_FOUND_WARNING, "times", "they are filled in from their neighbours",
             "%" PRId64 " of %" PRId64 " time points have no time", c->imputed, e->n_times);
    else
        tell(l, FTH_FOUND_GOOD, "times", "", "%" PRId64 " time points without gaps", e->n_times);
}

static void tell_plate(const look *l, const fo_job *e)
{
    tell(l, FTH_FOUND_GOOD, "plate", "", "%s: %" PRId64 " wells mapped by %s",
         fth_path_name(e->place.plate), e->map.mapped, fo_map_method_name(e->map.method));
    for (int64_t i = 0; i < fth_texts_count(e->notes); i++)
        tell(l, FTH_FOUND_WARNING, "plate", "", "%s", fth_texts_get(e->notes, i));
}

static void tell_outputs(const look *l, const fo_work *w)
{
    const double jpeg = 0.35; /* bytes of a pixel, at quality 75 */
    const fo_format *f = &w->e.format;
    const bool packed = strcmp(f->ending, "jpg") == 0;
    const double each = packed ? jpeg : (double)fth_dtype_size(f->dtype),
                 bytes = each * (double)(fo_work_total(w) * w->e.in.rows * w->e.in.columns);
    tell(l, FTH_FOUND_GOOD, "outputs", "",
         "%" PRId64 " images to make, %" PRId64 " exist; about %.3g GB of %s in %s",
         fo_work_count(w, FO_WAITING), fo_work_count(w, FO_SKIPPED), 1e-9 * bytes, f->name,
         w->e.place.images);
}

static void tell_time(const look *l, const fo_work *w)
{
    const int64_t stacks = fo_results_count(&w->results, FO_WAITING);
    const fo_input *in = &w->e.in;
    char text[300];
    if (stacks == 0) return;
    const char *file = in->n_files > 0 ? in->file[0].path : w->e.place.raw;
    const double rate = l->x->measure ? l->x->measure(l->x->user, file) : 0;
    const fo_outlook o = fo_outlook_find(&w->pipeline, stacks, rate > 0 ? "" : file, rate);
    fo_outlook_format(&o, text, sizeof text);
    const bool storage = strcmp(o.bound, "storage") == 0;
    tell(l, storage ? FTH_FOUND_WARNING : FTH_FOUND_GOOD, "time",
         storage ? "copy the raw file to a faster disk; a faster device would not help" : "", "%s",
         text);
}

static fth_status examine(const look *l, const fth_config *cfg, fth_err *err)
{
    fo_work w = {.ctx = l->x->context, .cfg = cfg, .force_config = true};
    FTH_TRY(fo_work_open(&w, err));
    tell_input(l, &w.e);
    tell_times(l, &w.e);
    tell_plate(l, &w.e);
    tell_outputs(l, &w);
    tell_time(l, &w);
    fo_work_close(&w);
    return FTH_OK;
}

fth_status fo_examine(const fth_examination *x, fth_err *err)
{
    look l = {x, find_microscope(x)};
    fth_config *cfg = NULL;
    fth_err own = {0};
    if (!err) err = &own;
    fth_status s =
        fo_settings_from_flags(&cfg, fth_context_mem(x->context), false, value_of, &l, err);
    if (s == FTH_OK) s = examine(&l, cfg, err);
    if (s != FTH_OK) tell(&l, FTH_FOUND_FAULT, "input", err->hint, "%s", err->text);
    const fth_status closed = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}
