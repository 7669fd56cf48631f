/* folder.c - read the folder of a runner that is gone: .fathom/slurm, its lists, its numbers. */
#include "job/slurm/slurm.h"

#include "base/str.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MARK = 8192, NUMBERS = 64 << 20 };

fth_status fth__slurm_read_mark(fth__slurm *s, const char *dir, fth__slurm_folder *out,
                                fth_err *err)
{
    char path[FTH_PATH], *text = NULL;
    uint64_t bytes = 0;
    if (!fth__fathom_path(path, dir, "slurm"))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: the path is too long", dir);
    FTH_TRY(fth_file_load(s->mem, path, MARK, &text, &bytes, err));
    *out = (fth__slurm_folder){.path = fth__store_text(&s->store, text, strlen(text))};
    (void)fth_mem_release(s->mem, text, NULL);
    if (!out->path) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for a path");
    fth__str_copy(out->token, sizeof out->token, fth_path_name(out->path));
    return FTH_OK;
}

fth_status fth__slurm_each_list(const fth__slurm *s, const fth__slurm_folder *folder,
                                fth__slurm_list_fn *each, void *user, fth_err *err)
{
    fth_status t = FTH_OK;
    DIR *dir = opendir(folder->path);
    for (const struct dirent *e; dir && t == FTH_OK && (e = readdir(dir)) != NULL;) {
        char *end, path[FTH_PATH];
        fth_json *doc = NULL;
        if (strncmp(e->d_name, "array", 5) != 0) continue;
        const int64_t number = strtoll(e->d_name + 5, &end, 10);
        if (strcmp(end, ".json") != 0) continue;
        t = fth_path_join(path, folder->path, e->d_name, err);
        if (t != FTH_OK) break;
        t = fth_json_load(&doc, s->mem, path, NULL);
        if (t == FTH_E_NOMEM)
            (void)FTH_FAIL(err, t, "no memory for %s", path);
        else if (t != FTH_OK)
            t = FTH_OK; /* cut short: then nothing of it was submitted */
        else
            t = each(user, number, path, fth_json_root(doc), err);
        fth_json_destroy(doc);
    }
    if (dir) closedir(dir);
    return t;
}

fth_status fth__slurm_each_id(const fth__slurm *s, const fth__slurm_folder *folder,
                              void (*each)(void *user, int64_t number, int64_t id), void *user,
                              fth_err *err)
{
    char path[FTH_PATH], *text = NULL;
    uint64_t bytes = 0;
    FTH_TRY(fth_path_join(path, folder->path, "jobs", err));
    if (!fth_path_exists(path)) return FTH_OK;
    FTH_TRY(fth_file_load(s->mem, path, NUMBERS, &text, &bytes, err));
    char *rest = text;
    for (char *line; (line = fth__slurm_line(&rest)) != NULL;) {
        char *end;
        const int64_t number = strtoll(line, &end, 10);
        each(user, number, strtoll(end, NULL, 10));
    }
    (void)fth_mem_release(s->mem, text, NULL);
    return FTH_OK;
}
