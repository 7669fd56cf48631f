/* last_images.c - see last_images.h. */
#include "last_images.h"

#include <string.h>

static bool is_picture(const char *name)
{
    static const char *const endings[] = {".jpg", ".png", ".tif"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (n > 4 && strcmp(name + n - 4, endings[i]) == 0) return true;
    return false;
}

bool fo_image_name_parse(const char *name, int *well, int64_t *t)
{
    char word[FO_WELL_NAME] = "", digits[20];
    if (!is_picture(name) || strlen(name) < 6 || name[3] != '_') return false;
    memcpy(word, name, 3);
    *well = fo_well_parse(word);
    const char *at = strstr(name, "_t");
    while (at && !(at[2] >= '0' && at[2] <= '9')) at = strstr(at + 1, "_t");
    if (*well < 0 || !at) return false;
    const size_t n = strspn(at + 2, "0123456789");
    if (n >= sizeof digits) return false;
    memcpy(digits, at + 2, n);
    digits[n] = 0;
    /* maps of planes and depths have a word more: A01_t0012_ch00_stitch.depth.tif */
    return strchr(at, '.') == strrchr(at, '.') && fth_int_parse(digits, t);
}

static fth_status take(fo_last_images *out, const char *folder, const char *name, fth_err *err)
{
    char path[FTH_PATH];
    int well;
    int64_t t;
    if (!fo_image_name_parse(name, &well, &t) || (out->path[well] >= 0 && out->t[well] >= t))
        return FTH_OK;
    FTH_TRY(fth_path_join(path, folder, name, err));
    out->wells += out->path[well] < 0;
    out->path[well] = fth_texts_count(out->paths);
    out->t[well] = t;
    return fth_texts_add(out->paths, path, strlen(path), err);
}

enum { DEEPEST = 2 }; /* folders of wells, and of channels in them */

static fth_status walk(fo_last_images *out, fth_mem *mem, const char *folder, int depth,
                       fth_err *err)
{
    fth_texts *names = NULL;
    FTH_TRY(fth_folder_list(&names, mem, folder, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(names); i++) {
        char path[FTH_PATH];
        const char *name = fth_texts_get(names, i);
        s = take(out, folder, name, err);
        if (s == FTH_OK) s = fth_path_join(path, folder, name, err);
        if (s == FTH_OK && depth < DEEPEST && name[0] != '.' &&
            fth_path_kind_of(path) == FTH_PATH_FOLDER)
            s = walk(out, mem, path, depth + 1, err);
    }
    fth_texts_free(names);
    return s;
}

fth_status fo_last_images_find(fo_last_images *out, fth_mem *mem, const char *folder, fth_err *err)
{
    *out = (fo_last_images){0};
    for (int w = 0; w < FO_WELLS; w++) out->path[w] = -1;
    FTH_TRY(fth_texts_create(&out->paths, mem, err));
    const fth_status s = walk(out, mem, folder, 0, err);
    if (s != FTH_OK) fo_last_images_free(out);
    return s;
}

void fo_last_images_free(fo_last_images *images)
{
    fth_texts_free(images->paths);
    *images = (fo_last_images){0};
}
