/* selftest.c - see selftest.h. */
#include "selftest.h"

#include <string.h>
#include <unistd.h>

static fth_status check_device(fo_checks *c, fth_context *ctx, const char *device,
                               const fo_test_scene *scene, const fo_expected *table, fth_err *err)
{
    fth_context *own = NULL;
    fth_err why = {0};
    c->device = device;
    if (fo_device_open(&own, ctx, device, &why) != FTH_OK)
        return fo_check_failed(c, "the device", &why);
    const fth_status s = fo_check_fusions(c, own, scene, table, err);
    const fth_status closed = fth_context_destroy(own, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

static fth_status check_formats(fo_checks *c, fth_mem *mem, const fo_test_scene *scene,
                                const char *folder, fth_err *err)
{
    char path[FTH_PATH], name[60];
    snprintf(name, sizeof name, ".fathom-selftest-%ld", (long)getpid());
    FTH_TRY(fth_path_join(path, folder, name, err));
    FTH_TRY(fth_folder_make_all(mem, path, err));
    c->device = "cpu";
    const fth_status s = fo_check_formats(c, mem, scene, path, err);
    const fth_status removed = fth_folder_remove(mem, path, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? removed : s;
}

fth_status fo_selftest(fo_checks *c, fth_context *ctx, const fo_devices *devices,
                       const fo_expected *table, const char *folder, fth_err *err)
{
    fth_mem *mem = fth_context_mem(ctx);
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, sizeof(fo_test_scene), "scene", &block, err));
    fo_test_scene *scene = block;
    fo_test_scene_draw(scene);
    fth_status s = FTH_OK;
    for (int i = 0; s == FTH_OK && i < devices->n; i++)
        s = check_device(c, ctx, devices->name[i], scene, table, err);
    if (s == FTH_OK) s = check_formats(c, mem, scene, folder, err);
    fth_mem_release(mem, block, NULL);
    if (s != FTH_OK || c->failed == 0) return s;
    FTH_FAIL(err, FTH_E_JOB_FAILED, "%d of %d checks failed: %s", c->failed, c->n, c->failures);
    fth_err_hint(err, "results of this program cannot be trusted here; report the lines with FAIL "
                      "and 'fathom doctor --json'");
    return FTH_E_JOB_FAILED;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg,
                      const char *(*value)(void *user, const char *flag), void *user, FILE *out,
                      fth_err *err)
{
    const char *folder = value(user, "output");
    fo_devices devices;
    fth_answer a;
    fth_err own = {0};
    (void)n_args, (void)arg;
    if (!err) err = &own;
    FTH_TRY(fo_devices_list(&devices, value(user, "devices"), err));
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    fo_checks c = {.out = a.notes, .device = "cpu"};
    if (devices.no_gpu[0]) fprintf(a.notes, "skip  cuda     %s\n", devices.no_gpu);
    if (a.json) {
        c.w = fth_answer_facts(&a);
        fth_json_open(c.w, "checks", '[');
    }
    const fth_status s =
        fo_selftest(&c, ctx, &devices, fo_expected_table, folder ? folder : ".", err);
    if (a.json) {
        fth_json_close(c.w);
        fth_json_int(c.w, "failed", c.failed);
    }
    if (s == FTH_OK)
        fprintf(a.out, "%d checks on %d device%s: all ok\n", c.n, devices.n,
                devices.n == 1 ? "" : "s");
    return fth_answer_end(&a, s, err);
}

static const fth_flag flags[] = {
    {.name = "devices",
     .value = FTH_FLAG_WORD,
     .doc = "devices to test, cpu,cuda:0; default: the CPU and every GPU"},
    {.name = "output",
     .value = FTH_FLAG_DIR,
     .letter = 'o',
     .doc = "folder in which files of every format are written and removed; default: the "
            "current one"},
    {0}};

const fth_verb fo_verb_selftest = {
    .name = "selftest",
    .args = "",
    .brief = "check that fusions and formats give known results on this machine",
    .doc = "A small scene, the same on every machine, is fused by every method on the CPU and "
           "on every GPU, and compared to the bit with results that were compared with the public "
           "programs; three stacks at once, and in chunks, must give the bits of one; memory must "
           "be as planned, to 5 %. The scene goes through every format that is written, and "
           "back.\n"
           "\n"
           "One line for each check, ok or FAIL. Exit code 1 when one failed.",
    .flag = flags,
    .heeds = "json quiet",
    .run = run};
