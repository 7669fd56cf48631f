/* test_focus_selftest.c - the self-test passes here, and sees what is broken.
 *
 * seconds: 2
 * labels: gpu */
#include "instruments/focus/fuse/fuse.h"
#include "instruments/focus/selftest/selftest.h"
#include "mem/inject.h"
#include "testing/engine/host_device.h"
#include "testing/engine/op_device.h"
#include "testing/io/files.h"

enum { ROWS = 40 };

/* What the checks say, and what becomes of them. */
typedef struct tested {
    char said[20000];
    fth_err err;
    fth_status status;
    fo_checks c;
} tested;

static void test_table(tested *t, const fo_expected *table, const char *devices, int64_t fail_alloc,
                       int64_t fail_write)
{
    fth_context *ctx = NULL;
    fth_options opt;
    fo_devices list;
    char *text = NULL;
    size_t bytes = 0;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.mem.budget_bytes = 1 << 26;
    *t = (tested){.c = {.device = "cpu"}};
    OK(fth_context_create(&ctx, &opt, NULL));
    OK(fo_devices_list(&list, devices, NULL));
    t->c.out = open_memstream(&text, &bytes);
    fth__mem_inject(fth_context_mem(ctx), fail_alloc, fail_write);
    t->status = fo_selftest(&t->c, ctx, &list, table, t_temp_dir(), &t->err);
    fclose(t->c.out);
    snprintf(t->said, sizeof t->said, "%s", text);
    free(text);
    OK(fth_context_destroy(ctx, NULL));
}

static tested t;

TEST(all_is_well_here)
{
    test_table(&t, fo_expected_table, "cpu,cpu", 0, 0);
    OKE(t.status, &t.err);
    EQ_I64(t.c.failed, 0);
    IS_TRUE(t.c.n > 80 && !strstr(t.said, "FAIL"));
    HAS(t.said, "ok    cpu      cwt, index");
    HAS(t.said, "ok    cpu      memory as planned");
    HAS(t.said, "ok    cpu      OME-NGFF 0.5");
    EQ_I64(t_file_count(), 0);
    /* every method that there is */
    for (int m = 0; m < FO_METHODS; m++) {
        char word[60];
        snprintf(word, sizeof word, "method=%s", fo_method_names[m]);
        bool found = false;
        for (const fo_expected *e = fo_expected_table; e->name; e++)
            found = found || strncmp(e->options, word, strlen(word)) == 0;
        if (!found) FAIL("no row with %s", word);
    }
}

/* Each thing that a row says is looked at. */
TEST(what_is_broken_is_seen)
{
    static const char *const says[] = {"FAIL  cpu      log-smooth, image: expected ",
                                       "FAIL  cpu      log-smooth, index: expected ",
                                       "FAIL  cpu      log-smooth, depth: expected ",
                                       "FAIL  cpu      log-smooth: the stack is ",
                                       "FAIL  cpu      log-smooth: black and white are ",
                                       "FAIL  cpu      log-smooth: 1 mistake"};
    fo_expected table[ROWS] = {{0}}, row = {0};
    for (const fo_expected *e = fo_expected_table; e->name; e++)
        if (strcmp(e->name, "log-smooth") == 0) row = *e;
    for (int i = 0; i < 6; i++) {
        fo_expected *e = &table[0];
        *e = row;
        if (i == 0) e->image ^= 1;
        if (i == 1) e->index ^= 1u << 31;
        if (i == 2) e->depth++;
        if (i == 3) e->stack--;
        if (i == 4) e->hi *= 1 + 1e-8;
        if (i == 5) e->options = "method=log-smoth";
        test_table(&t, table, "cpu", 0, 0);
        IS(t.status, FTH_E_JOB_FAILED);
        EQ_I64(t.c.failed, 1);
        HAS(t.said, says[i]);
        HAS(t.err.text, "1 of ");
        HAS(t.err.text, "log-smooth");
    }
    test_table(&t, &table[1], "cpu,tpu", 0, 0);
    IS(t.status, FTH_E_JOB_FAILED);
    HAS(t.said, "FAIL  tpu      the device: 'tpu' is not a device");
}

/* A card, its emulation, or a device made of the host: to the bit what the processor gives. */
TEST(a_device_gives_the_same)
{
    static fo_test_scene scene;
    fth_context *ctx = NULL;
    fth_options opt;
    fth_err err = {0};
    char *text = NULL;
    size_t bytes = 0;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cuda";
    opt.backend_path = getenv("FATHOM_TEST_DEVICE");
    if (!opt.backend_path)
        opt.backend = &t_host_backend;
    else if (!t_device())
        return; /* there is no card: skipped */
    OKE(fth_context_create(&ctx, &opt, &err), &err);
    fo_checks c = {.out = open_memstream(&text, &bytes), .device = "cuda:0"};
    fo_test_scene_draw(&scene);
    OKE(fo_check_fusions(&c, ctx, &scene, fo_expected_table, &err), &err);
    fclose(c.out);
    if (c.failed > 0) FAIL("%s", text);
    HAS(text, "ok    cuda:0   kernels ran");
    IS_TRUE(c.n > 40);
    free(text);
    OK(fth_context_destroy(ctx, NULL));
}

/* Memory and disks that fail make checks fail, and leave nothing. */
TEST(requests_and_writes_may_fail)
{
    static const int64_t at[] = {1, 4, 30, 90};
    const fo_expected none = {0};
    for (int i = 0; i < 8; i++) {
        const bool disk = i >= 4;
        test_table(&t, &none, "cpu", disk ? 0 : at[i % 4], disk ? at[i % 4] : 0);
        if (t.status == FTH_OK)
            FAIL("%s %lld was not seen", disk ? "write" : "request", (long long)at[i % 4]);
        IS_TRUE(t.err.text[0] != 0);
        EQ_I64(t_file_count(), 0);
    }
}

TEST_MAIN()
