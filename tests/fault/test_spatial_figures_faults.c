/* test_spatial_figures_faults.c - drawing without memory, and with a disk that is full.
 *
 * After each failure: a status that says so, nothing held, no temporary file; and then the figures
 * are those of an undisturbed run.
 * seconds: 20 */
#include "instruments/spatial/figures/figures.h"
#include "testing/spatial/spatial_results.h"

#include <fathom/pictures.h>

#include <unistd.h>

static const char *const multi = "spatial: true, groups: true, prior: SVGP";

static t_results tiny(const char *name)
{
    static char dir[FTH_PATH];
    snprintf(dir, sizeof dir, "%s", t_temp_path(name));
    const t_results r = {.dir = dir,
                         .figures = "which: all",
                         .model = "mggp_svgp",
                         .cells = 12,
                         .genes = 4,
                         .factors = 2,
                         .groups = 2,
                         .points = 4,
                         .frames = 2,
                         .dpi = 30};
    t_results_make(&r);
    return r;
}

static fth_status draw(const t_results *r, const fth_mem_options *opt)
{
    t_stage s;
    t_stage_open(&s, r, multi, opt);
    const fth_status status = sp_figures_run(&s.call, NULL);
    fth_mem_stats stats;
    fth_mem_get_stats(fth_context_mem(s.ctx), &stats);
    EQ_U64(stats.used_bytes, 0);
    t_stage_close(&s);
    return status;
}

static int64_t temporary(const char *dir)
{
    DIR *d = opendir(dir);
    int64_t n = 0;
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += strstr(e->d_name, ".tmp") != NULL;
    if (d) closedir(d);
    return n;
}

static void check_clean(const t_results *r)
{
    char path[FTH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", r->dir, r->model);
    EQ_I64(temporary(path), 0);
    snprintf(path, sizeof path, "%s/%s/" SP_FIGURES, r->dir, r->model);
    EQ_I64(temporary(path), 0);
}

static uint64_t hash_of(const t_results *r, const char *name)
{
    char path[FTH_PATH + 64];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s/%s", r->dir, r->model, name);
    unsigned char *data = t_file_read(path, &bytes);
    const uint64_t hash = fth_hash_bytes(data, bytes, 0);
    free(data);
    return hash;
}

/* kind 0: requests for memory; 1: writes. */
static void fail_each(const t_results *r, int kind, int64_t step, int64_t least)
{
    fth_status s = FTH_E_NOMEM;
    int64_t runs = 0, first = kind == 0 ? 12 : 1; /* the first requests are of the context */
    for (int64_t n = first; s != FTH_OK; n += 1 + n / step, runs++) {
        fth_mem_options opt;
        fth_mem_options_default(&opt);
        opt.budget_bytes = 1 << 26;
        opt.fail_alloc = kind == 0 ? n : 0;
        opt.fail_write = kind == 1 ? n : 0;
        s = draw(r, &opt);
        if (s == FTH_OK) break;
        IS_TRUE(s == (kind == 0 ? FTH_E_NOMEM : FTH_E_FILE_WRITE));
        check_clean(r);
    }
    LE_F64(least, runs);
}

TEST(requests_for_memory_fail_one_after_the_other)
{
    const t_results r = tiny("memory");
    fail_each(&r, 0, 8, 25);
}

/* The same with an image under the cells, read and reduced. */
TEST(requests_for_an_image_fail_one_after_the_other)
{
    static char path[FTH_PATH], figures[FTH_PATH + 64];
    static uint8_t px[40][30][3];
    fth_mem *mem = t_mem(1 << 24);
    snprintf(path, sizeof path, "%s", t_temp_path("tissue.png"));
    OK(fth_picture_save(mem, path, &(fth_picture){FTH_U8, 40, 30, 3, px, 0},
                        &(fth_picture_format){.kind = FTH_PICTURE_PNG}, NULL));
    OK(fth_mem_destroy(mem, NULL));
    snprintf(figures, sizeof figures, "image_file: '%s'", path);
    t_results r = tiny("image");
    r.figures = figures;
    fail_each(&r, 0, 12, 25);
}

TEST(writes_fail_one_after_the_other)
{
    const t_results r = tiny("disk");
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 26;
    OK(draw(&r, &opt));
    const uint64_t map = hash_of(&r, "figures/factors_spatial.png"),
                   film = hash_of(&r, "training_animation.gif");
    fail_each(&r, 1, 4, 12);
    EQ_U64(hash_of(&r, "figures/factors_spatial.png"), map);
    EQ_U64(hash_of(&r, "training_animation.gif"), film);
}

/* A budget that is too small is refused, with the numbers. */
TEST(too_small_a_budget_is_refused)
{
    const t_results r = tiny("budget");
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 19;
    IS(draw(&r, &opt), FTH_E_BUDGET);
    check_clean(&r);
}

TEST_MAIN()
