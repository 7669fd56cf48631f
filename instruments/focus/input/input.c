/* input.c - opens all files, collects all their problems, and lists their stacks. */
#include "input.h"

#include "channel.h"
#include "paths.h"
#include "problems.h"
#include "reopen.h"

#include <stdlib.h>
#include <string.h>

/* More open files than this are opened again for every read: descriptors are few. */
enum { MOST_OPEN = 128 };

/* ---- files ---- */

static fth_status take(fth_mem *mem, int64_t n, size_t each, const char *label, void *out,
                       fth_err *err)
{
    const uint64_t bytes = (uint64_t)(n > 0 ? n : 1) * each;
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, bytes, label, &block, err));
    memset(block, 0, bytes);
    memcpy(out, &block, sizeof block);
    return FTH_OK;
}

static bool is_one_plane(const fo_file *f)
{
    return f->size[FO_B] * f->size[FO_T] * f->size[FO_P] * f->size[FO_Z] == 1;
}

static fth_status open_files(fo_input *in, fo_problems *problems, fth_err *err)
{
    in->n_files = fth_texts_count(in->names);
    in->keep_open = in->n_files <= MOST_OPEN;
    FTH_TRY(take(in->mem, in->n_files, sizeof *in->file, "files", &in->file, err));
    for (int64_t i = 0; i < in->n_files; i++) {
        fth_err found = {0};
        const char *path = fth_texts_get(in->names, i);
        const fth_status s = fo_file_open(&in->file[i], in->mem, path, in->selection, &found);
        if (s == FTH_E_NOMEM || s == FTH_E_BUDGET) return FTH_FAIL(err, s, "%s", found.text);
        if (s != FTH_OK) {
            fo_problems_take(problems, &found);
            continue;
        }
        fo_channel_choose(&in->file[i], in->selection, problems);
        if (in->keep_open) continue;
        const fth_source shape = in->file[i].source;
        fo_file_close(&in->file[i]);
        in->file[i].source = (fth_source){.dtype = shape.dtype, .n_axes = shape.n_axes};
        memcpy(in->file[i].source.size, shape.size, sizeof shape.size);
        memcpy(in->file[i].source.part, shape.part, sizeof shape.part);
    }
    return FTH_OK;
}

static int by_nature(const void *a, const void *b)
{
    return fo_natural_compare(((const fo_file *)a)->path, ((const fo_file *)b)->path);
}

/* One stack of planes, or files of stacks: a mixture is neither. */
static void check_kinds(fo_input *in, fo_problems *problems)
{
    const fo_file *plane = NULL, *stack = NULL;
    for (int64_t i = 0; i < in->n_files; i++)
        *(is_one_plane(&in->file[i]) ? &plane : &stack) = &in->file[i];
    in->of_planes = stack == NULL;
    if (plane && stack)
        fo_problems_add(problems, true, "give files of one plane each, or files of stacks",
                        "%.200s has one plane and %.200s has %lld frames: a mixture", plane->path,
                        stack->path,
                        (long long)(stack->size[FO_B] * stack->size[FO_T] * stack->size[FO_P] *
                                    stack->size[FO_Z]));
}

/* With --channels all, channel i of one file is channel i of all. */
static void check_channels(fo_input *in, fo_problems *problems)
{
    const fo_file *a = &in->file[0];
    if (in->selection->channels != FO_CHANNELS_ALL || a->rgb) return;
    for (int64_t i = 1; i < in->n_files; i++)
        if (in->file[i].size[FO_C] != a->size[FO_C] || in->file[i].channel != a->channel)
            fo_problems_add(problems, true, "fuse them one by one, or use --channels each",
                            "%.200s: expected %lld channels as in %.200s, found %lld",
                            in->file[i].path, (long long)a->size[FO_C], a->path,
                            (long long)in->file[i].size[FO_C]);
    in->others = a->size[FO_C] - 1;
}

/* All files have the dtype and the size of the first. */
static void check_shapes(fo_input *in, fo_problems *problems)
{
    const fo_file *a = &in->file[0];
    for (int64_t i = 1; i < in->n_files; i++) {
        const fo_file *b = &in->file[i];
        if (b->size[FO_Y] != a->size[FO_Y] || b->size[FO_X] != a->size[FO_X])
            fo_problems_add(problems, true, NULL,
                            "%.200s: expected y=%lld x=%lld as in %.200s, found y=%lld x=%lld",
                            b->path, (long long)a->size[FO_Y], (long long)a->size[FO_X], a->path,
                            (long long)b->size[FO_Y], (long long)b->size[FO_X]);
        if (b->dtype != a->dtype)
            fo_problems_add(problems, true, NULL, "%.200s: expected %s as in %.200s, found %s",
                            b->path, fth_dtype_name(a->dtype), a->path, fth_dtype_name(b->dtype));
    }
    in->rows = a->size[FO_Y];
    in->columns = a->size[FO_X];
    in->dtype = a->dtype;
    in->significant_bits = a->significant_bits;
    in->um_per_px = a->um_per_px;
    in->z_step_um = a->z_step_um;
}

/* ---- what is selected ---- */

/* first_plane and planes: those of `have` planes that are kept. */
void fo_input_select_planes(fo_input *in, int64_t have, fo_problems *problems)
{
    const fo_selection *s = in->selection;
    int64_t first = 0, end = have;
    if (s->has_planes) {
        first = s->planes.first;
        end = s->planes.end < 0 ? have : s->planes.end;
        if (first >= have || end > have)
            fo_problems_add(problems, false, NULL,
                            "--z-range: planes %lld to %lld, but there are %lld", (long long)first,
                            (long long)end, (long long)have);
    } else if (s->z_keep > 0) {
        const int64_t cut = have > s->z_keep ? (have - s->z_keep) / 2 : 0;
        first = cut;
        end = have - cut;
    }
    in->file_planes = have;
    in->first_plane = first;
    in->planes = end - first;
}

/* Whether a position is one of "A01,B03". */
static bool is_named(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; at && *at;) {
        const size_t m = strcspn(at, ",");
        if (m == n && n > 0 && strncmp(at, name, n) == 0) return true;
        at += m;
        at += *at == ',';
    }
    return false;
}

static const char *position_of(const fo_file *f, int64_t p)
{
    const char *name = f->images ? fth_images_get_position(f->images, p).name : "";
    return name ? name : "";
}

static bool wants_position(const fo_input *in, const fo_file *f, int64_t p)
{
    if (!in->selection->wells[0]) return true;
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)p);
    return is_named(in->selection->wells, position_of(f, p)) ||
           is_named(in->selection->wells, number);
}

/* Every name of --wells is a position of some file. */
static void check_wells(const fo_input *in, fo_problems *problems)
{
    for (const char *at = in->selection->wells; *at;) {
        char name[64];
        const size_t n = strcspn(at, ",");
        bool found = false;
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        for (int64_t i = 0; i < in->n_files && !found; i++)
            for (int64_t p = 0; p < in->file[i].size[FO_P] && !found; p++) {
                char number[24];
                snprintf(number, sizeof number, "%lld", (long long)p);
                found =
                    strcmp(name, position_of(&in->file[i], p)) == 0 || strcmp(name, number) == 0;
            }
        if (!found)
            fo_problems_add(problems, false, "'fathom focus info FILE' lists the positions",
                            "--wells: no position is called '%.40s'", name);
        at += n;
        at += *at == ',';
    }
}

static void check_times(const fo_input *in, fo_problems *problems)
{
    const fo_range *r = &in->selection->times;
    for (int64_t i = 0; i < in->n_files; i++) {
        const int64_t have = in->file[i].size[FO_T];
        if (r->first >= have || r->end > have)
            fo_problems_add(problems, false, NULL, "--times: %lld to %lld, but %.200s has %lld",
                            (long long)r->first, (long long)(r->end < 0 ? have : r->end),
                            in->file[i].path, (long long)have);
    }
}

/* ---- the list of stacks ---- */

typedef struct listing {
    fo_input *in;
    int64_t n;
    bool count; /* only count */
} listing;

/* Marks which planes of a stack exist. */
static void mark_planes(fo_input *in, fo_stack *s, uint8_t *present)
{
    const fo_file *f = &in->file[s->file];
    const int64_t have = f->size[FO_Z] - in->first_plane;
    s->planes = (int32_t)(have < in->planes ? (have > 0 ? have : 0) : in->planes);
    for (int64_t z = 0; z < in->planes; z++) {
        present[z] = z < s->planes &&
                     (!f->images ||
                      fth_images_get_frame(f->images, s->t, s->p, z + in->first_plane).present);
        s->present += present[z];
    }
    in->missing_frames += s->planes - s->present;
}

static void widen(fo_input *in, fo_axis axis, int64_t n)
{
    if (n > in->size[axis]) in->size[axis] = n;
}

static void list_file(listing *l, int32_t i)
{
    fo_input *in = l->in;
    const fo_file *f = &in->file[i];
    int64_t positions = 0;
    const fo_range *t = &in->selection->times;
    const bool each = in->selection->channels == FO_CHANNELS_EACH && !f->rgb;
    const int64_t c_first = each ? 0 : f->channel, c_end = each ? f->size[FO_C] : f->channel + 1;
    for (int64_t b = 0; b < f->size[FO_B]; b++)
        for (int64_t p = 0; p < f->size[FO_P]; p++) {
            if (!wants_position(in, f, p)) continue;
            positions += b == 0;
            for (int64_t k = 0; k < fo_range_count(t, f->size[FO_T]); k++)
                for (int64_t c = c_first; c < c_end; c++) {
                    const int64_t at = l->n++;
                    if (l->count) continue;
                    in->stack[at] = (fo_stack){.file = i,
                                               .b = (int32_t)b,
                                               .t = (int32_t)(t->first + k * t->step),
                                               .p = (int32_t)p,
                                               .c = (int32_t)c};
                    mark_planes(in, &in->stack[at], in->present + at * in->planes);
                }
        }
    widen(in, FO_B, f->size[FO_B]);
    widen(in, FO_T, fo_range_count(t, f->size[FO_T]));
    widen(in, FO_P, positions);
    widen(in, FO_C, in->selection->channels == FO_CHANNELS_ONE || f->rgb ? 1 : f->size[FO_C]);
}

/* Frames and positions are asked of an open file. */
static fth_status look_into(listing *l, int32_t i, fth_err *err)
{
    fo_input *in = l->in;
    fo_file *f = &in->file[i];
    const bool open = !in->keep_open && f->is_images;
    if (open) FTH_TRY(fth_images_open(&f->images, in->mem, f->path, &in->selection->images, err));
    list_file(l, i);
    if (open) fth_images_close(f->images);
    if (open) f->images = NULL;
    return FTH_OK;
}

/* One stack whose planes are files. */
static void list_planes(fo_input *in)
{
    in->stack[0] = (fo_stack){.c = (int32_t)in->file[0].channel,
                              .planes = (int32_t)in->planes,
                              .present = (int32_t)in->planes};
    memset(in->present, 1, (size_t)in->planes);
}

static fth_status list_stacks(fo_input *in, fth_err *err)
{
    listing l = {.in = in, .count = true};
    const int32_t n = (int32_t)in->n_files;
    if (in->of_planes)
        l.n = 1, widen(in, FO_C, in->others + 1);
    else
        for (int32_t i = 0; i < n; i++) FTH_TRY(look_into(&l, i, err));
    in->n_stacks = l.n;
    FTH_TRY(take(in->mem, l.n, sizeof *in->stack, "stacks", &in->stack, err));
    FTH_TRY(take(in->mem, l.n * in->planes, 1, "present planes", &in->present, err));
    if (in->of_planes) {
        list_planes(in);
        return FTH_OK;
    }
    l = (listing){.in = in};
    for (int32_t i = 0; i < n; i++) FTH_TRY(look_into(&l, i, err));
    return FTH_OK;
}

/* ---- all together ---- */

static void check_files(fo_input *in, fo_problems *problems)
{
    int64_t deepest = 0;
    check_kinds(in, problems);
    check_shapes(in, problems);
    check_channels(in, problems);
    for (int64_t i = 0; i < in->n_files; i++)
        if (in->file[i].size[FO_Z] > deepest) deepest = in->file[i].size[FO_Z];
    if (in->of_planes) {
        qsort(in->file, (size_t)in->n_files, sizeof *in->file, by_nature);
        deepest = in->n_files;
    }
    fo_input_select_planes(in, deepest, problems);
    check_wells(in, problems);
    check_times(in, problems);
}

fth_status fo_input_take_grey(fo_input *in, fth_err *err)
{
    bool colours = false;
    for (int64_t i = 0; i < in->n_files; i++) colours = colours || in->file[i].rgb;
    if (!colours) return FTH_OK;
    const uint64_t bytes = (uint64_t)(3 * in->rows * in->columns * fth_dtype_size(in->dtype));
    return fth_mem_take(in->mem, FTH_MEM_ANY, bytes, "colours", &in->grey, err);
}

static fth_status open_all(fo_input *in, const char *const *path, int n_paths, fth_err *err)
{
    fo_problems problems = {0};
    FTH_TRY(fth_texts_create(&in->names, in->mem, err));
    for (int i = 0; i < n_paths; i++) {
        fth_err found = {0};
        const fth_status s = fo_paths_add(in->names, in->mem, path[i], &found);
        if (s == FTH_E_FILE_OPEN)
            fo_problems_take(&problems, &found);
        else if (s != FTH_OK)
            return FTH_FAIL(err, s, "%s", found.text);
    }
    if (fth_texts_count(in->names) > 0) FTH_TRY(open_files(in, &problems, err));
    FTH_TRY(fo_problems_end(&problems, err));
    check_files(in, &problems);
    FTH_TRY(fo_problems_end(&problems, err));
    FTH_TRY(fo_input_take_grey(in, err));
    if (!in->keep_open) FTH_TRY(fo_reopener_create(&in->reopener, in, err));
    return list_stacks(in, err);
}

fth_status fo_input_open(fo_input *in, fth_mem *mem, const char *const *path, int n_paths,
                         const fo_selection *selection, fth_err *err)
{
    *in = (fo_input){.mem = mem, .selection = selection};
    for (int a = 0; a < FO_AXES; a++) in->size[a] = 1;
    if (n_paths < 1) {
        FTH_FAIL(err, FTH_E_COMMAND, "no input file is given");
        fth_err_hint(err, "write 'fathom focus stack IN... -o OUT'");
        return FTH_E_COMMAND;
    }
    const fth_status s = open_all(in, path, n_paths, err);
    if (s != FTH_OK) fo_input_close(in);
    return s;
}

static fth_status open_array(fo_input *in, fth_dtype dtype, int n_axes, const int64_t *size,
                             const void *data, fth_err *err)
{
    fo_problems problems = {0};
    in->n_files = 1;
    in->keep_open = true;
    FTH_TRY(take(in->mem, 1, sizeof *in->file, "files", &in->file, err));
    FTH_TRY(fo_file_wrap(in->file, dtype, n_axes, size, data, in->selection, err));
    fo_channel_choose(in->file, in->selection, &problems);
    check_files(in, &problems);
    FTH_TRY(fo_problems_end(&problems, err));
    return list_stacks(in, err);
}

fth_status fo_input_open_array(fo_input *in, fth_mem *mem, fth_dtype dtype, int n_axes,
                               const int64_t *size, const void *data, const fo_selection *selection,
                               fth_err *err)
{
    *in = (fo_input){.mem = mem, .selection = selection};
    for (int a = 0; a < FO_AXES; a++) in->size[a] = 1;
    const fth_status s = open_array(in, dtype, n_axes, size, data, err);
    if (s != FTH_OK) fo_input_close(in);
    return s;
}

void fo_input_close(fo_input *in)
{
    for (int64_t i = 0; in->file && i < in->n_files; i++)
        if (in->keep_open) fo_file_close(&in->file[i]);
    fth_mem_release(in->mem, in->file, NULL);
    fth_mem_release(in->mem, in->stack, NULL);
    fth_mem_release(in->mem, in->present, NULL);
    fth_mem_release(in->mem, in->grey, NULL);
    fth_mem_release(in->mem, in->plane, NULL);
    fth_mem_release(in->mem, in->identity, NULL);
    fo_reopener_destroy(in->reopener);
    fth_texts_free(in->names);
    *in = (fo_input){0};
}

const char *fo_input_well(const fo_input *in, const fo_stack *s)
{
    return in->of_planes || in->plane ? "" : position_of(&in->file[s->file], s->p);
}
