/* scene.c - a capture of any format: where it lies, what it holds, its scale. */
#include "parts.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static fth_status take(gs_scene *s, uint64_t bytes, const char *label, void **out, fth_err *err)
{
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, bytes, label, out, err));
    memset(*out, 0, (size_t)bytes);
    return FTH_OK;
}

fth_status gs_scene_views(gs_scene *s, int64_t n, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(take(s, (uint64_t)n * sizeof(gs_view), "views", &block, err));
    s->view = block;
    s->views = n;
    return FTH_OK;
}

fth_status gs_scene_points(gs_scene *s, int64_t n, fth_err *err)
{
    void *point = NULL, *colour = NULL;
    FTH_TRY(take(s, (uint64_t)n * sizeof *s->point, "points", &point, err));
    s->point = point;
    FTH_TRY(take(s, (uint64_t)n * sizeof *s->colour, "colours of points", &colour, err));
    s->colour = colour;
    s->points = n;
    return FTH_OK;
}

void gs_scene_close(gs_scene *s)
{
    void *const block[] = {s->view, s->point, s->colour};
    for (int i = 0; i < 3; i++)
        if (block[i]) (void)fth_mem_release(s->mem, block[i], NULL);
    fth_texts_free(s->name);
    fth_texts_free(s->mask);
    fth_texts_free(s->notes);
    *s = (gs_scene){0};
}

void gs_view_find_centre(gs_view *v)
{
    for (int k = 0; k < 3; k++) {
        v->centre[k] = 0;
        for (int r = 0; r < 3; r++) v->centre[k] -= (double)v->w2c[r][k] * (double)v->w2c[r][3];
    }
}

fth_status gs_scene_note(gs_scene *s, fth_err *err, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return fth_texts_add(s->notes, text, strlen(text), err);
}

/* ---- finding the files ---- */

static const char *const colmap_folders[] = {"sparse/0", "sparse", ""};
static const char *const colmap_files[] = {"cameras", "images", "points3D"};
static const char *const json_files[] = {"transforms_train.json", "transforms.json"};

static bool has_set(fth_mem *mem, const char *folder, const char *ending)
{
    char path[FTH_PATH], name[40];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", colmap_files[i], ending);
        if (gs_colmap_find(mem, folder, name, path, NULL) != FTH_OK) return false;
    }
    return true;
}

/* The folder of a set of COLMAP files; binary is taken before text, in each folder. */
static bool find_colmap(fth_mem *mem, const char *base, char folder[FTH_PATH], bool *binary)
{
    for (size_t i = 0; i < sizeof colmap_folders / sizeof colmap_folders[0]; i++) {
        if (fth_path_join(folder, base, colmap_folders[i], NULL) != FTH_OK) return false;
        if (fth_path_kind_of(folder) != FTH_PATH_FOLDER) continue;
        *binary = has_set(mem, folder, ".bin");
        if (*binary || has_set(mem, folder, ".txt")) return true;
    }
    return false;
}

static bool find_json(const char *path, char json[FTH_PATH])
{
    const size_t n = strlen(path);
    if (fth_path_kind_of(path) == FTH_PATH_FILE && n > 5 && strcmp(path + n - 5, ".json") == 0)
        return snprintf(json, FTH_PATH, "%s", path) < FTH_PATH;
    for (int i = 0; i < 2; i++)
        if (fth_path_join(json, path, json_files[i], NULL) == FTH_OK &&
            fth_path_kind_of(json) == FTH_PATH_FILE)
            return true;
    return false;
}

bool gs_scene_is(fth_mem *mem, const char *path)
{
    char found[FTH_PATH];
    bool binary;
    return find_json(path, found) ||
           (fth_path_kind_of(path) == FTH_PATH_FOLDER && find_colmap(mem, path, found, &binary));
}

/* `images_4`: pictures that are 4 times smaller than the cameras say. */
static int64_t divisor_of(const char *folder)
{
    const char *digits = strrchr(folder, '_');
    int64_t n = 0;
    return digits && fth_int_parse(digits + 1, &n) && n > 0 && n <= 16 ? n : 1;
}

static void divide(gs_scene *s, int64_t by)
{
    for (int64_t i = 0; i < s->views; i++) {
        gs_view *v = &s->view[i];
        v->width = v->width / by > 0 ? v->width / by : 1;
        v->height = v->height / by > 0 ? v->height / by : 1;
        v->fx /= (double)by;
        v->fy /= (double)by;
        v->cx /= (double)by;
        v->cy /= (double)by;
    }
}

static fth_status open_colmap(gs_scene *s, const char *base, const char *folder, bool binary,
                              const gs_scene_options *opt, fth_err *err)
{
    const char *images = opt->images ? opt->images : "images";
    s->format = binary ? "colmap binary" : "colmap text";
    FTH_TRY(fth_path_join(s->images, base, images, err));
    FTH_TRY((binary ? gs_colmap_read_binary : gs_colmap_read_text)(s, folder, err));
    if (divisor_of(images) > 1) divide(s, divisor_of(images));
    for (int64_t i = 0; i < s->views; i++)
        for (int k = 0; k < 3; k++) s->centre[k] += s->view[i].centre[k] / (double)s->views;
    return FTH_OK;
}

/* Whether the capture can be used. */
static fth_status check(gs_scene *s, const char *path, const gs_scene_options *opt, fth_err *err)
{
    if (s->views == 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s: expected images, found none", path);
    FTH_TRY(gs_scene_check_names(s, false, err));
    if (s->distorted == 0 || (opt->allow_distortion && !opt->ignore_distortion)) return FTH_OK;
    if (opt->ignore_distortion) {
        FTH_TRY(
            gs_scene_note(s, err, "the distortion of %" PRId64 " views is ignored", s->distorted));
        for (int64_t i = 0; i < s->views; i++) gs_view_unbend(&s->view[i]);
        s->distorted = 0;
        return FTH_OK;
    }
    FTH_FAIL(err, FTH_E_FILE_FEATURE,
             "%s: expected cameras without distortion, found %" PRId64 " of %" PRId64
             " views with it",
             path, s->distorted, s->views);
    fth_err_hint(err, "use --gut, or undistort the images (colmap image_undistorter), or give "
                      "--ignore-distortion where they are undistorted already");
    return FTH_E_FILE_FEATURE;
}

static fth_status nothing_there(const char *path, fth_err *err)
{
    FTH_FAIL(err, FTH_E_FILE_OPEN,
             "%s: expected a capture, found neither transforms_train.json nor transforms.json nor "
             "cameras, images and points3D (.bin or .txt) in sparse/0, sparse or the folder itself",
             path);
    fth_err_hint(err, "give the folder written by COLMAP or nerfstudio");
    return FTH_E_FILE_OPEN;
}

fth_status gs_scene_open(gs_scene *s, fth_mem *mem, const char *path, const gs_scene_options *opt,
                         fth_err *err)
{
    char found[FTH_PATH];
    bool binary = false;
    *s = (gs_scene){.mem = mem};
    fth_path_info info;
    FTH_TRY(fth_path_stat(path, &info, err));
    fth_status st = fth_texts_create(&s->name, mem, err);
    if (st == FTH_OK) st = fth_texts_create(&s->notes, mem, err);
    if (st != FTH_OK)
        ;
    else if (find_json(path, found))
        st = gs_transforms_read(s, found, opt, err);
    else if (info.kind == FTH_PATH_FOLDER && find_colmap(mem, path, found, &binary))
        st = open_colmap(s, path, found, binary, opt, err);
    else
        st = nothing_there(path, err);
    if (st == FTH_OK && opt->by_name) st = gs_scene_sort(s, err);
    if (st == FTH_OK) st = check(s, path, opt, err);
    if (st != FTH_OK) gs_scene_close(s);
    return st;
}

/* ---- scale ---- */

const char *const gs_profile_names[GS_PROFILES] = {"classic", "lichtfeld"};

fth_status gs_profile_parse(const char *text, gs_profile *out, fth_err *err)
{
    for (int i = 0; i < GS_PROFILES; i++)
        if (text && strcmp(text, gs_profile_names[i]) == 0) {
            *out = (gs_profile)i;
            return FTH_OK;
        }
    return FTH_FAIL(err, FTH_E_COMMAND, "--profile: expected classic or lichtfeld, found '%s'",
                    text ? text : "");
}

static double distance(const double a[3], const double b[3])
{
    const double x = a[0] - b[0], y = a[1] - b[1], z = a[2] - b[2];
    return sqrt(x * x + y * y + z * z);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower median of the distances of the points from the centre. */
static fth_status median_of_points(const gs_scene *s, double *scale, fth_err *err)
{
    void *block = NULL;
    *scale = 1;
    if (s->points == 0) return FTH_OK;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->points * sizeof(double), "distances",
                         &block, err));
    double *d = block;
    for (int64_t i = 0; i < s->points; i++) {
        const double p[3] = {(double)s->point[i][0], (double)s->point[i][1],
                             (double)s->point[i][2]};
        d[i] = distance(p, s->centre);
    }
    qsort(d, (size_t)s->points, sizeof *d, by_size);
    *scale = d[(s->points - 1) / 2];
    return fth_mem_release(s->mem, block, err);
}

fth_status gs_scene_scale(const gs_scene *s, gs_profile profile, double *scale, fth_err *err)
{
    if (profile == GS_LICHTFELD) return median_of_points(s, scale, err);
    double mean[3] = {0}, most = 0;
    for (int64_t i = 0; i < s->views; i++)
        for (int k = 0; k < 3; k++) mean[k] += s->view[i].centre[k] / (double)s->views;
    for (int64_t i = 0; i < s->views; i++) {
        const double d = distance(s->view[i].centre, mean);
        if (d > most) most = d;
    }
    *scale = most > 0 ? 1.1 * most : 1;
    return FTH_OK;
}
