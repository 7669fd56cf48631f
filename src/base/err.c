/* err.c - the error object: the first cause is kept, callers add frames.
 *
 * Formatting is fixed, because people search for it and tests compare it:
 *   error FTH-AXIS-002: an axis has two lengths
 *     what was wanted and what was found
 *     at       program.c:12
 *     hint     what to do next
 *     from     src/graph/build.c:80 fth_add_: note
 */
#include <fathom/base.h>

#include "base/str.h"

#include <string.h>

void fth_err_clear(fth_err *err)
{
    if (!err) return;
    /* Not the whole struct: it is 3 KB and this runs at the start of many calls. */
    err->status = FTH_OK;
    err->n_frames = 0;
    err->origin = (fth_site){0};
    err->need = 0;
    err->text[0] = err->hint[0] = '\0';
}

static void fill(char *to, size_t bytes, const char *fmt, va_list args) FTH_PRINTF(3, 0);
static void fill(char *to, size_t bytes, const char *fmt, va_list args)
{
    fth__text t;
    fth__text_init(&t, to, bytes);
    fth__text_addv(&t, fmt, args);
    fth__text_mark_cut(&t);
    if (t.used > 0) fth__str_make_plain(to); /* names and texts of files end up on terminals */
}

/* A new frame to write a note into, or NULL when there is no room. */
static fth_err_frame *push_frame(fth_err *err, fth_site where)
{
    if (err->n_frames < 0 || err->n_frames >= FTH_ERR_FRAMES) return NULL;
    fth_err_frame *frame = &err->frame[err->n_frames++];
    frame->site = where;
    frame->note[0] = '\0';
    return frame;
}

fth_status fth_err_set(fth_err *err, fth_site where, fth_status status, const char *fmt, ...)
{
    if (status == FTH_OK)
        status = FTH_E_INTERNAL; /* failing with "no error" is a mistake of ours */
    if (!err) return status;
    const bool first = err->status == FTH_OK;
    if (first) {
        fth_err_clear(err);
        err->status = status;
    }
    fth_err_frame *frame = push_frame(err, where);
    va_list args;
    va_start(args, fmt);
    if (first)
        fill(err->text, sizeof err->text, fmt, args);
    else if (frame)
        fill(frame->note, sizeof frame->note, fmt, args);
    va_end(args);
    return status;
}

fth_status fth_err_capacity(fth_err *err, fth_site where, int64_t need, const char *fmt, ...)
{
    char text[FTH_ERR_TEXT / 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const bool first = err && err->status == FTH_OK;
    fth_err_set(err, where, FTH_E_CAPACITY, "%s", text);
    if (first) err->need = need;
    return FTH_E_CAPACITY;
}

fth_status fth_err_note(fth_err *err, fth_site where, fth_status status, const char *fmt, ...)
{
    if (!err) return status;
    if (err->status == FTH_OK) {
        if (status == FTH_OK) return status;
        fth_err_clear(err); /* the callee failed without a message: keep at least its status */
        err->status = status;
    }
    fth_err_frame *frame = push_frame(err, where);
    if (frame) {
        va_list args;
        va_start(args, fmt);
        fill(frame->note, sizeof frame->note, fmt, args);
        va_end(args);
    }
    return status;
}

void fth_err_hint(fth_err *err, const char *fmt, ...)
{
    if (!err || err->status == FTH_OK) return;
    va_list args;
    va_start(args, fmt);
    fill(err->hint, sizeof err->hint, fmt, args);
    va_end(args);
}

void fth_err_origin(fth_err *err, fth_site origin)
{
    /* The innermost caller that knows the line knows it best. */
    if (!err || err->status == FTH_OK || err->origin.file) return;
    err->origin = origin;
}

size_t fth_err_format(const fth_err *err, char *text, size_t bytes)
{
    fth__text t;
    fth__text_init(&t, text, bytes);
    if (!err || err->status == FTH_OK) {
        fth__text_add(&t, "no error\n");
        return t.wanted;
    }
    const fth_status_info *info = fth_status_get_info(err->status);
    fth__text_add(&t, "error %s: %s\n", info->code, info->brief);
    if (err->text[0]) {
        fth__text_add(&t, "  ");
        fth__text_add_indented(&t, err->text, 2);
        fth__text_add(&t, "\n");
    }
    if (err->origin.file)
        fth__text_add(&t, "  at       %s:%d\n", err->origin.file, err->origin.line);
    const char *hint = err->hint[0] ? err->hint : info->hint;
    if (hint[0]) {
        fth__text_add(&t, "  hint     ");
        fth__text_add_indented(&t, hint, 11);
        fth__text_add(&t, "\n");
    }
    for (int i = 0; i < err->n_frames && i < FTH_ERR_FRAMES; i++) {
        const fth_err_frame *f = &err->frame[i];
        fth__text_add(&t, "  from     %s:%d %s", f->site.file ? f->site.file : "?", f->site.line,
                      f->site.func ? f->site.func : "?");
        if (f->note[0]) {
            fth__text_add(&t, ": ");
            fth__text_add_indented(&t, f->note, 11);
        }
        fth__text_add(&t, "\n");
    }
    return t.wanted;
}
