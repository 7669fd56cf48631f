/* test_plot_faults.c - a figure without memory, and a disk that is full.
 *
 * After each failure: a status that says so, the old file byte for byte, nothing held.
 * seconds: 5 */
#include "testing/io/files.h"

#include "mem/inject.h"

#include <fathom/plot.h>

static fth_status draw(fth_mem *mem, const char *path, fth_err *err)
{
    static float v[21000];
    for (int i = 0; i < 21000; i++) v[i] = (float)(i * 7919 % 21000);
    const fth_column c = fth_column_of(FTH_F32, v, 21000);
    fth_figure *fig = NULL;
    double p99 = 0;
    FTH_TRY(fth_column_percentile(mem, &c, 1, 99, &p99, err));
    FTH_TRY(fth_figure_create(
        &fig, mem, &(fth_figure_options){.panels = 2, .title = "t", .colour_bar = "b", .dpi = 60},
        err));
    fth_panel *p = fth_figure_panel(fig, 0);
    fth_panel_set(p, &(fth_panel_options){.title = "points", .colour_bar = "own"});
    fth_panel_axis(p, FTH_AXIS_X, &(fth_axis_options){.label = "x"});
    fth_panel_points(p, (fth_column){0}, c,
                     &(fth_points){.values = c, .label = "l", .colours.high = p99});
    p = fth_figure_panel(fig, 1);
    fth_panel_histogram(p, c, &(fth_histogram){.label = "h"});
    fth_panel_text(p, 1, 1, "text", NULL);
    const fth_status s = fth_figure_save(fig, path, err);
    fth_figure_destroy(fig);
    return s;
}

static const char *const names[3] = {"f.png", "f.svg", "f.pdf"};

TEST(every_request_for_memory_may_fail)
{
    for (int k = 0; k < 3; k++) {
        const char *path = t_temp_path(names[k]);
        fth_status s = FTH_E_NOMEM;
        int64_t n = 1;
        for (; s != FTH_OK; n++) {
            fth_mem *mem = t_mem(1 << 24);
            fth_err err = {0};
            fth__mem_inject(mem, n, 0);
            s = draw(mem, path, &err);
            if (s != FTH_OK && s != FTH_E_NOMEM) FAIL("request %lld: %s", (long long)n, err.text);
            EQ_I64(err.status, s);
            EQ_I64(t_file_count(), s == FTH_OK);
            OK(fth_mem_destroy(mem, NULL));
        }
        IS_TRUE(n > 15);
        remove(path);
    }
}

TEST(every_write_may_fail)
{
    static const char old[] = "the old file";
    for (int k = 0; k < 3; k++) {
        const char *path = t_temp_path(names[k]);
        fth_status s = FTH_E_FILE_WRITE;
        int64_t n = 1;
        for (; s != FTH_OK; n++) {
            fth_mem *mem = t_mem(1 << 24);
            fth_err err = {0};
            t_file_write(path, old, sizeof old);
            fth__mem_inject(mem, 0, n);
            s = draw(mem, path, &err);
            if (s != FTH_OK) {
                IS(s, FTH_E_FILE_WRITE);
                HAS(err.text, path);
                size_t bytes = 0;
                unsigned char *now = t_file_read(path, &bytes);
                EQ_U64(bytes, sizeof old);
                SAME_BYTES(now, old, bytes);
                free(now);
            }
            EQ_I64(t_file_count(), 1);
            OK(fth_mem_destroy(mem, NULL));
        }
        IS_TRUE(n > 3); /* data, sync, rename */
        remove(path);
    }
}

TEST(a_budget_too_small_is_refused_before_a_file_is_made)
{
    fth_mem *mem = t_mem(600 << 10);
    fth_err err = {0};
    IS(draw(mem, t_temp_path("b.png"), &err), FTH_E_BUDGET);
    EQ_I64(t_file_count(), 0);
    OK(fth_mem_destroy(mem, NULL));
}

static fth_status read_nothing(void *self, const int64_t *lo, const int64_t *n, void *dst,
                               fth_err *err)
{
    (void)self, (void)lo, (void)n, (void)dst;
    return FTH_FAIL(err, FTH_E_FILE_READ, "the disk is gone");
}

TEST(a_source_that_fails_ends_the_drawing)
{
    for (int fixed = 0; fixed < 2; fixed++)
        for (int k = 0; k < 3; k++) {
            fth_mem *mem = t_mem(1 << 24);
            const fth_source source = {
                .kind = "none", .dtype = FTH_F32, .n_axes = 1, .size = {50}, .read = read_nothing};
            fth_figure *fig = NULL;
            OK(fth_figure_create(&fig, mem, NULL, NULL));
            fth_panel *p = fth_figure_panel(fig, 0);
            for (int side = 0; fixed && side < 2; side++)
                fth_panel_axis(p, (fth_axis_side)side, &(fth_axis_options){.high = 1});
            fth_panel_points(p, (fth_column){0}, fth_column_row(&source, 0), NULL);
            fth_err err = {0};
            IS(fth_figure_save(fig, t_temp_path(names[k]), &err), FTH_E_FILE_READ);
            IS_TRUE(err.origin.line > 0);
            EQ_I64(t_file_count(), 0);
            fth_figure_destroy(fig);
            OK(fth_mem_destroy(mem, NULL));
        }
}

TEST_MAIN()
