/* tree.c - see tree.h. */
#include "tree.h"

#include "../plate/well.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* Digits at the front of a text, at most `most` of them; -1: there are none. */
static int64_t digits(const char *text, int most)
{
    int64_t v = 0;
    int n = 0;
    for (; n < most && text[n] >= '0' && text[n] <= '9'; n++) v = 10 * v + (text[n] - '0');
    return n ? v : -1;
}

enum { MOST_DIGITS = 9 };

int64_t fo_keyence_plane(const char *name)
{
    const char *last = strrchr(name, '_'), *before = last;
    if (!last) return -1;
    while (before > name && before[-1] != '_') before--;
    /* "Z003": the field before the last, without its letter */
    return before < last && digits(before, 1) < 0 ? digits(before + 1, MOST_DIGITS) : -1;
}

int64_t fo_keyence_tile(const char *name, const char *well_folder)
{
    const size_t n = strlen(well_folder);
    const char *tag = n > 4 ? well_folder + n - 4 : well_folder;
    const char *at = strstr(name, tag);
    if (!at) return -1;
    at += strlen(tag);
    return *at ? digits(at + 1, 5) : -1;
}

int64_t fo_keyence_channel(const char *name)
{
    const char *at = strstr(name, "CH");
    return at ? digits(at + 2, MOST_DIGITS) : -1;
}

/* ---- folders ---- */

/* State of the walk: the path, and what the folders above determined. */
typedef struct walk {
    fo_keyence_tree *tree;
    const char *well_folder; /* its name */
    fo_keyence_image at;
    fo_problems *problems; /* NULL: the first mistake ends it */
} walk;

/* A mistake in a name is one of many, where they are collected. */
static fth_status taken(walk *w, fth_status s, const fth_err *found, fth_err *err)
{
    if (s == FTH_OK) return FTH_OK;
    if (w->problems && (s == FTH_E_FILE_FORMAT || s == FTH_E_FILE_KEY)) {
        fo_problems_take(w->problems, found);
        return FTH_OK;
    }
    if (err) *err = *found;
    return s;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static fth_status add_image(walk *w, const char *folder, const char *name, fth_err *err)
{
    fo_keyence_tree *tree = w->tree;
    fo_keyence_image image = w->at;
    char path[FTH_PATH];
    FTH_TRY(fth_path_join(path, folder, name, err));
    image.plane = fo_keyence_plane(name);
    image.channel = fo_keyence_channel(name);
    if (!tree->cytometer) image.tile = fo_keyence_tile(name, w->well_folder);
    if (image.plane < 1)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: no plane number before the last \"_\"; expected ..._Z003_CH1.tif",
                        path);
    if (image.tile < 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: no tile number after the name of the well folder \"%s\"; expected "
                        "..._XY01_00002_Z003_CH1.tif",
                        path, w->well_folder);
    if (image.channel < 0) image.channel = 0;
    if (tree->n == tree->capacity) {
        const int64_t room = tree->capacity ? 2 * tree->capacity : 256;
        void *larger = NULL;
        FTH_TRY(fth_mem_take(tree->mem, FTH_MEM_META, (uint64_t)room * sizeof image,
                             "Keyence images", &larger, err));
        if (tree->n) memcpy(larger, tree->image, (size_t)tree->n * sizeof image);
        if (tree->image) fth_mem_release(tree->mem, tree->image, NULL);
        tree->image = larger;
        tree->capacity = room;
    }
    image.path = fth_texts_count(tree->paths);
    FTH_TRY(fth_texts_add(tree->paths, path, strlen(path), err));
    tree->image[tree->n++] = image;
    return FTH_OK;
}

static fth_status add_images(walk *w, const char *folder, fth_err *err)
{
    fth_texts *names = NULL;
    FTH_TRY(fth_folder_list(&names, w->tree->mem, folder, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        const char *name = fth_texts_get(names, i);
        fth_err found = {0};
        if (strstr(name, "CH") && name[0] != '_' && name[0] != '.')
            s = taken(w, add_image(w, folder, name, &found), &found, err);
    }
    fth_texts_free(names);
    return s;
}

/* Call `each` for the folders in `folder` whose names begin with `with`; *n says how many there
 * are. */
static fth_status each_folder(walk *w, const char *folder, const char *with, int64_t *n,
                              fth_status (*each)(walk *w, const char *path, const char *name,
                                                 int64_t i, fth_err *err),
                              fth_err *err)
{
    fth_texts *names = NULL;
    *n = 0;
    FTH_TRY(fth_folder_list(&names, w->tree->mem, folder, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        const char *name = fth_texts_get(names, i);
        char path[FTH_PATH];
        if (!begins(name, with)) continue;
        fth_err found = {0};
        s = fth_path_join(path, folder, name, err);
        if (s == FTH_OK && fth_path_kind_of(path) == FTH_PATH_FOLDER)
            s = taken(w, each(w, path, name, (*n)++, &found), &found, err);
    }
    fth_texts_free(names);
    return s;
}

static fth_status add_time(walk *w, const char *path, const char *name, int64_t i, fth_err *err)
{
    (void)i;
    w->at.t = digits(name + 1, MOST_DIGITS);
    if (w->at.t < 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s: no number after the T of a time folder; expected T0001", path);
    return add_images(w, path, err);
}

static fth_status add_times(walk *w, const char *path, fth_err *err)
{
    int64_t n;
    w->at.t = 0;
    FTH_TRY(each_folder(w, path, "T", &n, add_time, err));
    return n ? FTH_OK : add_images(w, path, err);
}

static fth_status add_position(walk *w, const char *path, const char *name, int64_t i, fth_err *err)
{
    (void)name;
    w->at.tile = i;
    return add_times(w, path, err);
}

static fth_status find_well(walk *w, const char *folder, fth_err *err)
{
    fth_texts *names = NULL;
    FTH_TRY(fth_folder_list(&names, w->tree->mem, folder, err));
    const char *marker = NULL;
    for (int64_t i = 0; !marker && i < fth_texts_count(names); i++)
        if (fth_texts_get(names, i)[0] == '_') marker = fth_texts_get(names, i);
    fth_status s = FTH_OK;
    const size_t n = marker ? strlen(marker) : 0;
    w->at.well = n > 3 ? fo_well_parse(marker + n - 3) : -1;
    if (!marker)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s: no entry that begins with \"_\" names the well; expected _A01", folder);
    else if (w->at.well < 0)
        s = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                     "%s/%s: the last three characters are not a well; expected A01 to H12", folder,
                     marker);
    fth_texts_free(names);
    return s;
}

static fth_status add_well(walk *w, const char *path, const char *name, int64_t i, fth_err *err)
{
    int64_t n;
    w->at.series = (int)i;
    w->at.folder = digits(name + strcspn(name, "0123456789"), MOST_DIGITS);
    w->well_folder = name;
    w->at.tile = 0;
    const int64_t before = w->tree->n;
    const int told = w->problems ? w->problems->n : 0;
    FTH_TRY(find_well(w, path, err));
    FTH_TRY(each_folder(w, path, "P", &n, add_position, err));
    if (n == 0) FTH_TRY(add_times(w, path, err));
    if (w->tree->n > before || (w->problems && w->problems->n > told)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_KEY,
                    "%s: no images; expected files with CH in their names, in it or in its "
                    "folders P* and T*",
                    path);
}

/* ---- all ---- */

static int by_place(const void *a, const void *b)
{
    const fo_keyence_image *x = a, *y = b;
    const int64_t p[5] = {x->series, x->t, x->tile, x->channel, x->plane};
    const int64_t q[5] = {y->series, y->t, y->tile, y->channel, y->plane};
    for (int i = 0; i < 5; i++)
        if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
    return 0;
}

/* Image i against the one before it, and its well against those before. */
static fth_status check_image(const fo_keyence_tree *tree, int64_t i, int64_t first_of[FO_WELLS],
                              fth_err *err)
{
    const fo_keyence_image *now = &tree->image[i];
    const int64_t first = first_of[now->well];
    const char *path = fth_texts_get(tree->paths, now->path);
    if (i > 0 && by_place(now - 1, now) == 0)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s and %s have the same well, time, tile and plane",
                        fth_texts_get(tree->paths, now[-1].path), path);
    if (first < 0)
        first_of[now->well] = i;
    else if (tree->image[first].series != now->series && now[-1].series != now->series)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT, "%s and %s are folders of the same well",
                        fth_texts_get(tree->paths, tree->image[first].path), path);
    return FTH_OK;
}

static fth_status check(walk *w, const char *folder, int64_t folders, fth_err *err)
{
    const fo_keyence_tree *tree = w->tree;
    int64_t first_of[FO_WELLS];
    fth_err found = {0};
    if (folders == 0)
        return taken(
            w,
            FTH_FAIL(&found, FTH_E_FILE_KEY,
                     "%s: no well folder; expected folders XY* or W0* with images in them, "
                     "that is files with CH in their names",
                     folder),
            &found, err);
    for (int i = 0; i < FO_WELLS; i++) first_of[i] = -1;
    for (int64_t i = 0; i < tree->n; i++) {
        fth_err wrong = {0};
        FTH_TRY(taken(w, check_image(tree, i, first_of, &wrong), &wrong, err));
    }
    return FTH_OK;
}

fth_status fo_keyence_tree_read(fo_keyence_tree *tree, fth_mem *mem, const char *folder,
                                fo_problems *problems, fth_err *err)
{
    walk w = {.tree = tree, .problems = problems};
    int64_t n = 0;
    *tree = (fo_keyence_tree){.mem = mem};
    fth_status s = fth_texts_create(&tree->paths, mem, err);
    if (s == FTH_OK) s = each_folder(&w, folder, "XY", &n, add_well, err);
    if (s == FTH_OK && n == 0) {
        tree->cytometer = true;
        s = each_folder(&w, folder, "W0", &n, add_well, err);
    }
    if (s == FTH_OK && tree->n) qsort(tree->image, (size_t)tree->n, sizeof *tree->image, by_place);
    if (s == FTH_OK) s = check(&w, folder, n, err);
    if (s != FTH_OK) fo_keyence_tree_free(tree);
    return s;
}

void fo_keyence_tree_free(fo_keyence_tree *tree)
{
    if (tree->image) fth_mem_release(tree->mem, tree->image, NULL);
    fth_texts_free(tree->paths);
    *tree = (fo_keyence_tree){0};
}
