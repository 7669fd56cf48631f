/* fuzz_status.c - any bytes as run_status.json, and as live.json.
 * seconds: 5 */
#include "testing/io/fuzz_folder.h"

#include "job/ledger/ledger.h"
#include "job/ledger/view.h"

#include <string.h>

static fth_status count(void *user, const char *config_path, fth_err *err)
{
    (void)err;
    *(size_t *)user += strlen(config_path);
    return FTH_OK;
}

/* A view with one running task: live.json is about those. */
static void read_live(fth_mem *mem, const char *dir)
{
    fth_view *view = NULL;
    fth_task *task = NULL;
    if (fth__view_create(&view, mem, dir, NULL) != FTH_OK) abort();
    if (fth__view_add_task(view, &task, NULL) != FTH_OK) abort();
    if (fth__view_set(view, &task->id, "task", NULL) != FTH_OK ||
        fth__view_set(view, &task->output_dir, dir, NULL) != FTH_OK)
        abort();
    task->state = FTH_STATE_RUNNING;
    fth__live_read(view, dir, 0);
    fth_view_destroy(view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const fuzz_folder *folder = fuzz_folder_put("live.json", data, size);
    fth_mem *mem = NULL;
    fth__status_file *file = NULL;
    size_t paths = 0;
    if (fth_mem_create(&mem, NULL, NULL) != FTH_OK) abort();
    (void)fth__status_read_failed(mem, folder->path, count, &paths, NULL);
    if (fth__status_open(&file, mem, folder->path, NULL) == FTH_OK) {
        fth_view *view = NULL;
        if (fth__view_create(&view, mem, folder->dir, NULL) != FTH_OK) abort();
        (void)fth__status_save(file, view, NULL, NULL); /* entries of other runs are copied */
        fth_view_destroy(view);
    }
    fth__status_close(file);
    fuzz_folder_put("live.json", data, size);
    read_live(mem, folder->dir);
    if (fth_mem_destroy(mem, NULL) != FTH_OK) abort();
    return 0;
}
