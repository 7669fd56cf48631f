/* data.c - see data.h. */
#include "data.h"

#include "../scene/scene.h"
#include "../toy/toy.h"

#include <stdio.h>
#include <string.h>

static const char toy_folder[] = "toy";

static const char *named(const fth_stage_call *call)
{
    return fth_config_has(call->config, "data_path") ? fth_config_text(call->config, "data_path")
                                                     : NULL;
}

fth_status gs_data_path(const fth_stage_call *call, char path[FTH_PATH], fth_err *err)
{
    if (!named(call)) return fth_path_join(path, call->output_dir, toy_folder, err);
    if (snprintf(path, FTH_PATH, "%s", named(call)) < FTH_PATH) return FTH_OK;
    return FTH_FAIL(err, FTH_E_FILE_OPEN, "data_path is too long");
}

bool gs_data_is_there(const fth_stage_call *call)
{
    char path[FTH_PATH];
    return named(call) || (gs_data_path(call, path, NULL) == FTH_OK &&
                           gs_scene_is(fth_context_mem(call->context), path));
}

/* ---- files of a stage ---- */

static fth_status add_folder(fth_mem *mem, const char *folder, fth_file_list *list, fth_err *err)
{
    fth_texts *names = NULL;
    if (fth_path_kind_of(folder) != FTH_PATH_FOLDER) return FTH_OK;
    FTH_TRY(fth_folder_list(&names, mem, folder, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; i < fth_texts_count(names) && s == FTH_OK; i++) {
        char path[FTH_PATH];
        s = fth_path_join(path, folder, fth_texts_get(names, i), err);
        if (s == FTH_OK && fth_path_kind_of(path) == FTH_PATH_FILE)
            s = fth_file_list_add(list, FTH_FILE_INPUT, path, NULL, err);
    }
    fth_texts_free(names);
    return s;
}

/* Cameras and poses, wherever they lie, and the images. */
fth_status gs_data_inputs(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    const char *base = named(call);
    const char *images =
        fth_config_has(call->config, "images") ? fth_config_text(call->config, "images") : "images";
    const char *masks =
        fth_config_has(call->config, "masks") ? fth_config_text(call->config, "masks") : "masks";
    const char *const folders[] = {"sparse/0", "sparse", "", images, masks};
    char path[FTH_PATH];
    fth_mem *mem = NULL;
    if (fth_config_has(call->config, "init_ply"))
        FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, fth_config_text(call->config, "init_ply"),
                                  "model to start from", err));
    if (!base) return FTH_OK;
    if (fth_path_kind_of(base) == FTH_PATH_FILE)
        return fth_file_list_add(list, FTH_FILE_INPUT, base, "capture", err);
    FTH_TRY(fth_mem_create(&mem, NULL, err));
    fth_status s = FTH_OK;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && s == FTH_OK; i++) {
        s = fth_path_join(path, base, folders[i], err);
        if (s == FTH_OK) s = add_folder(mem, path, list, err);
    }
    const fth_status closed = fth_mem_destroy(mem, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

fth_status gs_data_stage_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    static const char *const names[] = {"sparse/0/cameras.bin", "sparse/0/images.bin",
                                        "sparse/0/points3D.bin", "truth.ply"};
    char folder[FTH_PATH], path[FTH_PATH];
    if (named(call)) return FTH_OK;
    FTH_TRY(gs_data_path(call, folder, err));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        FTH_TRY(fth_path_join(path, folder, names[i], err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, NULL, err));
    }
    for (int64_t v = 0; v < fth_config_int(call->config, "toy.views"); v++) {
        char name[48];
        snprintf(name, sizeof name, "images/view_%04d.png", (int)v);
        FTH_TRY(fth_path_join(path, folder, name, err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_OUTPUT, path, NULL, err));
    }
    return FTH_OK;
}

/* ---- the stage ---- */

static gs_toy toy_of(const fth_config *cfg)
{
    return (gs_toy){.gaussians = fth_config_int(cfg, "toy.gaussians"),
                    .views = fth_config_int(cfg, "toy.views"),
                    .width = fth_config_int(cfg, "toy.width"),
                    .height = fth_config_int(cfg, "toy.height"),
                    .seed = fth_config_int(cfg, "seed")};
}

fth_status gs_data_stage_plan(const fth_stage_call *call, fth_stage_plan *out, FILE *show,
                              fth_err *err)
{
    (void)show, (void)err;
    if (named(call)) return FTH_OK;
    const gs_toy toy = toy_of(call->config);
    fth_stage_plan_hold(call, out, gs_toy_bytes(&toy), 0);
    return FTH_OK;
}

fth_status gs_data_stage_run(const fth_stage_call *call, fth_err *err)
{
    char folder[FTH_PATH];
    if (named(call)) return FTH_OK;
    const gs_toy toy = toy_of(call->config);
    FTH_TRY(gs_data_path(call, folder, err));
    FTH_TRY(gs_toy_write(call->context, &toy, folder, err));
    fth_stage_say(call, "%s: a synthetic capture of %lld views", folder, (long long)toy.views);
    return FTH_OK;
}
