/* draw.c - see draw.h. */
#include "draw.h"

#include "../figures/plate_figures.h"

#include <string.h>

static const fth_stage_file files[] = {{"sheet.png", "contact sheet", true},
                                       {"sharpness.png", "sharpness of the wells", true},
                                       {"focus.png", "sharpest plane over time", true},
                                       {"times.png", "steps between time points", true}};
enum { SHEET, SHARPNESS, FOCUS, TIMES, FILES };

fth_status fo_draw_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    char path[FTH_PATH];
    for (int i = 0; i < FILES; i++) {
        FTH_TRY(fth_path_join(path, call->model_dir, files[i].name, err));
        FTH_TRY(fth_file_list_add(list, FTH_FILE_FIGURE, path, files[i].title, err));
    }
    return FTH_OK;
}

static fth_status image_of(const fo_job *job, int64_t i, char path[FTH_PATH], fth_err *err)
{
    return fo_job_is_tiled(job) ? fo_job_mosaic_path(job, i, path, err)
                                : fo_job_path(job, i, FO_OUT_IMAGE, path, err);
}

/* The image of the last time point of each well that has one. */
static fth_status draw_sheet(const fo_job *job, const char *path, fth_err *err)
{
    fth_texts *names = NULL;
    const char *image[FO_WELLS] = {NULL};
    int64_t of[FO_WELLS];
    char title[300], file[FTH_PATH];
    for (int w = 0; w < FO_WELLS; w++) of[w] = -1;
    for (int64_t i = 0; i < job->in.n_stacks; i++) {
        FTH_TRY(image_of(job, i, file, err));
        if (fth_path_exists(file)) of[fo_job_well(job, i)] = i;
    }
    FTH_TRY(fth_texts_create(&names, job->mem, err));
    fth_status s = FTH_OK;
    for (int w = 0; s == FTH_OK && w < FO_WELLS; w++) {
        if (of[w] < 0) continue;
        s = image_of(job, of[w], file, err);
        if (s == FTH_OK) s = fth_texts_add(names, file, strlen(file), err);
        of[w] = fth_texts_count(names) - 1;
        if (s != FTH_OK) of[w] = -1;
    }
    for (int w = 0; w < FO_WELLS; w++) image[w] = of[w] < 0 ? NULL : fth_texts_get(names, of[w]);
    snprintf(title, sizeof title, "%s", job->place.name);
    if (s == FTH_OK) s = fo_draw_sheet(job->mem, image, title, path, NULL, err);
    fth_texts_free(names);
    return s;
}

fth_status fo_draw_plate(const fth_stage_call *call, const fo_job *job, fth_err *err)
{
    char path[FILES][FTH_PATH], metrics[FTH_PATH];
    fo_quality q;
    for (int i = 0; i < FILES; i++)
        FTH_TRY(fth_path_join(path[i], call->model_dir, files[i].name, err));
    FTH_TRY(fth_path_join(metrics, job->place.run, "metrics.csv", err));
    FTH_TRY(fo_quality_read(&q, job->mem, metrics, err));
    fth_status s = fo_draw_sharpness(&q, path[SHARPNESS], NULL, err);
    if (s == FTH_OK) s = fo_draw_focus(&q, path[FOCUS], NULL, err);
    fo_quality_free(&q);
    if (s == FTH_OK)
        s = fo_draw_times(job->mem, job->seconds, job->n_times, path[TIMES], NULL, err);
    if (s == FTH_OK) s = draw_sheet(job, path[SHEET], err);
    return s;
}
