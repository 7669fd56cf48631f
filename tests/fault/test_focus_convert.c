/* test_focus_convert.c - conversions that run out of memory or of disk at every point: a status
 * says so, nothing stays behind, and what was there before is whole.
 *
 * seconds: 5 */
#include "instruments/focus/convert/convert.h"
#include "testing/io/files.h"

#include <fathom/pictures.h>
#include <fathom/zarr.h>

enum { MOST = 12 };

typedef struct call {
    const char *in, *flag[MOST], *value[MOST];
    int64_t fail_alloc, fail_write;
    int threads;
} call;

static const char *value_of(void *user, const char *flag)
{
    const call *c = user;
    for (int i = 0; i < MOST && c->flag[i]; i++)
        if (strcmp(c->flag[i], flag) == 0) return c->value[i];
    return NULL;
}

static fth_status convert(call *c, fth_err *err)
{
    fth_context *ctx = NULL;
    fth_options opt;
    char *text = NULL, in[FTH_PATH], *arg[] = {in};
    size_t bytes = 0;
    fth_options_default(&opt);
    opt.mem.budget_bytes = 1 << 25;
    opt.mem.fail_alloc = c->fail_alloc;
    opt.mem.fail_write = c->fail_write;
    opt.threads = c->threads ? c->threads : 1;
    *err = (fth_err){0};
    fth_status s = fth_context_create(&ctx, &opt, err);
    if (s != FTH_OK) return s;
    snprintf(in, sizeof in, "%s", c->in);
    FILE *out = open_memstream(&text, &bytes);
    s = fo_verb_convert.run(ctx, 1, arg, value_of, c, out, err);
    fclose(out);
    free(text);
    OK(fth_context_destroy(ctx, NULL)); /* nothing stays allocated */
    return s;
}

static void remove_output(const char *path)
{
    if (fth_path_kind_of(path) == FTH_PATH_FOLDER)
        OK(fth_folder_remove(NULL, path, NULL));
    else
        OK(fth_path_remove(NULL, path, NULL));
}

/* Every `step`-th request, and every `writes`-th write, fails until one conversion gets through. */
static void survive(call c, const char *out, int64_t step, int64_t writes)
{
    fth_err err;
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s", out);
    const int64_t before = t_file_count();
    for (int kind = 0; kind < 2; kind++) {
        fth_status s = FTH_E_NOMEM;
        int64_t failures = 0;
        for (int64_t n = 1; s != FTH_OK; n += kind ? writes : step) {
            c.fail_alloc = kind ? 0 : n;
            c.fail_write = kind ? n : 0;
            s = convert(&c, &err);
            if (s == FTH_OK) break;
            if (!*err.text || strstr(err.text, "that is known"))
                FAIL("failure %lld says '%s'", (long long)n, err.text);
            if (kind && fth_status_get_info(s)->exit_code != 3) FAIL("%s", err.text);
            if (fth_path_exists(path)) FAIL("%s is there after: %s", path, err.text);
            EQ_I64(t_file_count(), before);
            failures++;
        }
        IS_TRUE(failures > 1);
        IS_TRUE(fth_path_exists(path));
        remove_output(path);
    }
}

static void make_pictures(fth_mem *mem, const char *folder)
{
    static const char *const names[] = {"A01_t0000_ch00_stitch.tif", "A01_t0001_ch00_stitch.tif",
                                        "B02_t0000_ch00_stitch.tif"};
    uint8_t pixels[20 * 16];
    OK(fth_folder_make_all(mem, folder, NULL));
    for (int i = 0; i < 3; i++) {
        char path[FTH_PATH];
        for (int k = 0; k < 20 * 16; k++) pixels[k] = (uint8_t)(k * (i + 3));
        OK(fth_path_join(path, folder, names[i], NULL));
        OK(fth_picture_save(
            mem, path,
            &(fth_picture){
                .dtype = FTH_U8, .height = 20, .width = 16, .channels = 1, .pixels = pixels},
            &(fth_picture_format){.kind = FTH_PICTURE_TIF}, NULL));
    }
}

TEST(fused_images)
{
    char in[FTH_PATH], out[FTH_PATH];
    fth_mem *mem = t_mem(1 << 24);
    snprintf(in, sizeof in, "%s", t_temp_path("in"));
    make_pictures(mem, in);
    snprintf(out, sizeof out, "%s", t_temp_path("plate.zarr"));
    survive((call){.in = in, .flag = {"output", "ngff"}, .value = {out, "0.5"}}, out, 7, 1);
    survive((call){.in = in, .flag = {"output"}, .value = {out}, .threads = 2}, out, 31, 5);
    snprintf(out, sizeof out, "%s", t_temp_path("wells"));
    char slash[FTH_PATH + 1];
    snprintf(slash, sizeof slash, "%s/", out);
    survive((call){.in = in, .flag = {"output"}, .value = {slash}}, out, 5, 1);
    OKE(fth_mem_destroy(mem, NULL), NULL);
}

TEST(raw_stacks)
{
    char out[FTH_PATH];
    snprintf(out, sizeof out, "%s", t_temp_path("raw.zarr"));
    survive((call){.in = "tests/golden/focus/synth_T2P3Z5.nd2",
                   .flag = {"output", "wells", "tile"},
                   .value = {out, "P2", "32"}},
            out, 11, 5);
    snprintf(out, sizeof out, "%s", t_temp_path("raw.ome.tif"));
    survive((call){.in = "tests/golden/focus/synth_T2P3Z5.nd2",
                   .flag = {"output", "wells"},
                   .value = {out, "P2"}},
            out, 5, 1);
}

/* The old files are there, as they were, until the new ones are complete. */
TEST(what_was_there_stays_whole)
{
    fth_err err;
    char in[FTH_PATH], slash[FTH_PATH], one[FTH_PATH];
    fth_mem *mem = t_mem(1 << 24);
    snprintf(in, sizeof in, "%s", t_temp_path("in"));
    make_pictures(mem, in);
    snprintf(slash, sizeof slash, "%s/", t_temp_path("wells"));
    OK(fth_folder_make_all(mem, slash, NULL));
    OK(fth_path_join(one, slash, "B02.ome.tif", NULL));
    call c = {.in = in, .flag = {"output", "overwrite"}, .value = {slash, ""}};
    fth_status s = FTH_E_NOMEM;
    for (int64_t n = 1; s != FTH_OK; n++) {
        t_file_write(one, "old", 3);
        c.fail_write = n;
        s = convert(&c, &err);
        char text[8] = "";
        FILE *f = fopen(one, "rb");
        IS_TRUE(f && fread(text, 1, 3, f) == 3);
        fclose(f);
        if ((strcmp(text, "old") == 0) != (s != FTH_OK)) FAIL("after %s", err.text);
    }
    OKE(fth_mem_destroy(mem, NULL), NULL);
}

TEST_MAIN()
