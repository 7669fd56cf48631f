/* colmap_text.c - cameras.txt, images.txt and points3D.txt: lines, read once to count and once to
 * fill. A line of images.txt is as long as its points are many, so points are passed over byte by
 * byte. */
#include "parts.h"

#include <fathom/reader.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHERE = FTH_PATH + 40, LINE = 1 << 20 };

/* The next line that is no comment; line->text is NULL at the end. Empty lines count where `empty`.
 */
static fth_status next_line(fth_reader *r, bool empty, fth_text_line *line, fth_err *err)
{
    do {
        FTH_TRY(fth_reader_next(r, line, err));
        if (!line->text) return FTH_OK;
    } while (line->text[0] == '#' || (!empty && line->text[strspn(line->text, " \t\r")] == '\0'));
    return FTH_OK;
}

static fth_status field(const fth_reader *r, fth_text_line *line, fth_text_field *f,
                        const char *what, fth_err *err)
{
    if (fth_text_field_next(line, " \t\r", f)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                    "%s:%" PRId64 ": expected %s, found the end of the line", r->path, line->number,
                    what);
}

static fth_status number(const fth_reader *r, fth_text_line *line, const char *what, double *out,
                         fth_err *err)
{
    fth_text_field f;
    FTH_TRY(field(r, line, &f, what, err));
    if (fth_text_real(&f, out)) return FTH_OK;
    return fth_reader_fail(r, &f, what, err);
}

static fth_status whole(const fth_reader *r, fth_text_line *line, const char *what, int64_t most,
                        int64_t *out, fth_err *err)
{
    fth_text_field f;
    FTH_TRY(field(r, line, &f, what, err));
    return fth_reader_int(r, &f, 0, most, out, err);
}

static const char *where(const fth_reader *r, int64_t line, char text[WHERE])
{
    snprintf(text, WHERE, "%s:%" PRId64, r->path, line);
    return text;
}

/* Pass over what is left of a line, however long: points of an image. */
static fth_status skip_line(fth_reader *r, fth_err *err)
{
    for (;;) {
        FTH_TRY(fth_reader_fill(r, 1, err));
        if (r->at >= r->n) return FTH_OK;
        const char *end = memchr(r->buffer + r->at, '\n', r->n - r->at);
        r->at = end ? (size_t)(end - r->buffer) + 1 : r->n;
        if (!end) continue;
        r->line++;
        return FTH_OK;
    }
}

/* ---- cameras ---- */

static fth_status read_camera(const fth_reader *r, fth_text_line *line, gs_camera *c, fth_err *err)
{
    char text[WHERE];
    fth_text_field f;
    int64_t id = 0;
    FTH_TRY(whole(r, line, "the number of a camera", UINT32_MAX, &id, err));
    c->id = (uint32_t)id;
    FTH_TRY(field(r, line, &f, "a camera model", err));
    c->model = gs_camera_model_named(f.text, f.n);
    if (!c->model) {
        const fth_status s = fth_reader_fail(r, &f, "a camera model of COLMAP", err);
        gs_camera_model_hint(err);
        return s;
    }
    FTH_TRY(whole(r, line, "a width", INT32_MAX, &c->width, err));
    FTH_TRY(whole(r, line, "a height", INT32_MAX, &c->height, err));
    for (int i = 0; i < gs_camera_parameters(c->model); i++)
        FTH_TRY(number(r, line, "a parameter of the camera", &c->parameter[i], err));
    return gs_camera_check(c, where(r, line->number, text), err);
}

static fth_status count_lines(fth_reader *r, int64_t *n, fth_err *err)
{
    fth_text_line line;
    *n = 0;
    for (;;) {
        FTH_TRY(next_line(r, false, &line, err));
        if (!line.text) break;
        ++*n;
    }
    return fth_reader_rewind(r, err);
}

static fth_status read_cameras(fth_reader *r, gs_cameras *c, fth_err *err)
{
    fth_text_line line;
    int64_t n = 0;
    FTH_TRY(count_lines(r, &n, err));
    FTH_TRY(gs_cameras_create(c, r->mem, n, err));
    for (int64_t i = 0; i < n; i++) {
        FTH_TRY(next_line(r, false, &line, err));
        FTH_TRY(read_camera(r, &line, &c->camera[i], err));
    }
    return FTH_OK;
}

/* ---- images: two lines each, the second of which is passed over ---- */

static fth_status count_images(fth_reader *r, int64_t *n, fth_err *err)
{
    fth_text_line line;
    *n = 0;
    for (;;) {
        FTH_TRY(next_line(r, false, &line, err));
        if (!line.text) break;
        FTH_TRY(skip_line(r, err));
        ++*n;
    }
    return fth_reader_rewind(r, err);
}

static fth_status read_image(fth_reader *r, fth_text_line *line, gs_scene *s, int64_t i,
                             const gs_cameras *cameras, fth_err *err)
{
    char text[WHERE];
    int64_t id = 0, camera = 0;
    gs_pose pose;
    FTH_TRY(whole(r, line, "the number of an image", UINT32_MAX, &id, err));
    for (int k = 0; k < 4; k++)
        FTH_TRY(number(r, line, "a quaternion of four numbers", &pose.q[k], err));
    for (int k = 0; k < 3; k++)
        FTH_TRY(number(r, line, "a translation of three numbers", &pose.t[k], err));
    FTH_TRY(whole(r, line, "the number of a camera", UINT32_MAX, &camera, err));
    char *name = line->at ? line->at + strspn(line->at, " \t") : NULL;
    size_t n = name ? strlen(name) : 0; /* a name may have blanks inside */
    while (n > 0 && strchr(" \t\r", name[n - 1])) name[--n] = '\0';
    FTH_TRY(gs_scene_set(s, i, cameras, camera, &pose, name ? name : "",
                         where(r, line->number, text), err));
    return skip_line(r, err);
}

static fth_status read_images(fth_reader *r, gs_scene *s, const gs_cameras *cameras, fth_err *err)
{
    fth_text_line line;
    int64_t n = 0;
    FTH_TRY(count_images(r, &n, err));
    FTH_TRY(gs_scene_views(s, n, err));
    for (int64_t i = 0; i < n; i++) {
        FTH_TRY(next_line(r, false, &line, err));
        FTH_TRY(read_image(r, &line, s, i, cameras, err));
    }
    return FTH_OK;
}

/* ---- points ---- */

static fth_status read_points(fth_reader *r, gs_scene *s, fth_err *err)
{
    fth_text_line line;
    int64_t n = 0, id = 0, colour = 0;
    FTH_TRY(count_lines(r, &n, err));
    FTH_TRY(gs_scene_points(s, n, err));
    for (int64_t i = 0; i < n; i++) {
        double v = 0;
        FTH_TRY(next_line(r, false, &line, err));
        FTH_TRY(whole(r, &line, "the number of a point", INT64_MAX, &id, err));
        for (int k = 0; k < 3; k++) {
            FTH_TRY(number(r, &line, "a position of three numbers", &v, err));
            s->point[i][k] = (float)v;
            if (!isfinite(s->point[i][k]))
                return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                "%s:%" PRId64 ": point %" PRId64
                                ": expected a finite position, found %g",
                                r->path, line.number, id, v);
        }
        for (int k = 0; k < 3; k++) {
            FTH_TRY(whole(r, &line, "a colour from 0 to 255", 255, &colour, err));
            s->colour[i][k] = (uint8_t)colour;
        }
    }
    return FTH_OK;
}

static fth_status open_text(fth_reader *r, gs_scene *s, const char *folder, const char *name,
                            char path[FTH_PATH], fth_err *err)
{
    FTH_TRY(gs_colmap_find(s->mem, folder, name, path, err));
    return fth_reader_open(r, s->mem, path, &(fth_reader_options){.room = LINE}, err);
}

fth_status gs_colmap_read_text(gs_scene *s, const char *folder, fth_err *err)
{
    char path[FTH_PATH];
    gs_cameras cameras = {0};
    fth_reader r;
    FTH_TRY(open_text(&r, s, folder, "cameras.txt", path, err));
    fth_status st = read_cameras(&r, &cameras, err);
    fth_reader_close(&r);
    if (st == FTH_OK) st = open_text(&r, s, folder, "images.txt", path, err);
    if (st == FTH_OK) {
        st = read_images(&r, s, &cameras, err);
        fth_reader_close(&r);
    }
    gs_cameras_free(&cameras);
    FTH_TRY(st);
    FTH_TRY(open_text(&r, s, folder, "points3D.txt", path, err));
    st = read_points(&r, s, err);
    fth_reader_close(&r);
    return st;
}
