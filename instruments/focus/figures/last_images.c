/* last_images.c - see last_images.h. */
#include "last_images.h"

#include <string.h>

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
