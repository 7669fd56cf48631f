/* test_spatial_figures.c - the stage that draws: which files, the same bytes, the right pixels.
 *
 * seconds: 30 */
#include "instruments/spatial/figures/figures.h"
#include "instruments/spatial/preprocess/display.h"
#include "testing/io/pictures.h"
#include "testing/spatial/spatial_results.h"

#include "job/stage/files.h"

#include <fathom/pictures.h>

#include <dirent.h>
#include <unistd.h>

static const t_results small = {.figures = "which: all",
                                .model = "mggp_svgp",
                                .cells = 60,
                                .genes = 9,
                                .factors = 3,
                                .groups = 3,
                                .points = 8,
                                .frames = 3};

static const char *const multi = "spatial: true, groups: true, prior: SVGP";

static fth_mem_options plain(void)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 1 << 28;
    return opt;
}

static fth_status draw(const t_results *r, const char *kind, const char *flag, fth_err *err)
{
    t_stage s;
    const fth_mem_options opt = plain();
    t_stage_open(&s, r, kind, &opt);
    s.flags[0] = flag;
    const fth_status status = sp_figures_run(&s.call, err);
    t_stage_close(&s);
    return status;
}

static bool exists(const t_results *r, const char *name)
{
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s/%s/%s", r->dir, r->model, name);
    return access(path, F_OK) == 0;
}

/* The same folder for every case of a model; drawn into afresh. */
static t_results made(t_results r, const char *name)
{
    static char dir[8][FTH_PATH];
    static int next;
    char *path = dir[next++ % 8];
    snprintf(path, FTH_PATH, "%s", t_temp_path(name));
    r.dir = path;
    t_results_make(&r);
    return r;
}

/* ---- files ---- */

static const char *const all[] = {"factors_spatial.png",
                                  "scales_spatial.png",
                                  "points.png",
                                  "top_genes.png",
                                  "factors_with_genes.png",
                                  "loadings_heatmap.png",
                                  "factors_by_group.png",
                                  "gene_enrichment.png",
                                  "gene_fit.png",
                                  "diagnostics.png",
                                  "elbo_curve.png",
                                  "inducing_points.png",
                                  "factors_spatial_3d.png",
                                  "lu_scales_inducing.png",
                                  "groupwise_factors.png",
                                  "groupwise_factors_3d.png",
                                  "groupwise_factors_3d_complete.png",
                                  "enrichment_factor_1.png",
                                  "enrichment_factor_2.png",
                                  "enrichment_factor_3.png",
                                  "enrichment_by_group/top_genes_group_0.png",
                                  "enrichment_by_group/top_genes_group_2.png",
                                  "celltype_gene_loadings/factor_1.png",
                                  "celltype_gene_loadings/factor_3.png",
                                  "factor_gene_loadings/celltype_group_1.png",
                                  "celltype_summary/celltype_group_0.png",
                                  "celltype_summary_Wc/celltype_group_2.png",
                                  "../training_animation.gif"};
enum { MAIN = 10 }; /* the first so many are drawn without being asked for */
enum { ALL = sizeof all / sizeof all[0] };

static char *read_all(const t_results *r, const char *name, size_t *bytes)
{
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s/%s/figures/%s", r->dir, r->model, name);
    return (char *)t_file_read(path, bytes);
}

TEST_REPEAT(every_figure_is_drawn_twice_with_the_same_bytes)
{
    const t_results r = made(small, "all");
    fth_err err = {0};
    char *first[ALL];
    size_t bytes[ALL];
    OKE(draw(&r, multi, NULL, &err), &err);
    for (int i = 0; i < ALL; i++) first[i] = read_all(&r, all[i], &bytes[i]);
    OKE(draw(&r, multi, NULL, &err), &err);
    for (int i = 0; i < ALL; i++) {
        size_t again = 0;
        char *second = read_all(&r, all[i], &again);
        EQ_U64(again, bytes[i]);
        SAME_BYTES(first[i], second, again);
        free(first[i]);
        free(second);
    }
    IS_TRUE(!exists(&r, "figures/enrichment_factor_4.png"));
}

static int64_t files_in(const t_results *r, const char *folder)
{
    char path[FTH_PATH];
    int64_t n = 0;
    snprintf(path, sizeof path, "%s/%s/%s", r->dir, r->model, folder);
    DIR *d = opendir(path);
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

TEST(ten_figures_are_drawn_unless_more_are_asked_for)
{
    t_results r = small;
    r.figures = NULL;
    r = made(r, "main");
    OK(draw(&r, multi, NULL, NULL));
    for (int i = 0; i < MAIN; i++) {
        char name[128];
        snprintf(name, sizeof name, "figures/%s", all[i]);
        IS_TRUE(exists(&r, name));
    }
    EQ_I64(files_in(&r, "figures"), MAIN);
    IS_TRUE(exists(&r, "training_animation.gif")); /* of frames that were asked for */
}

TEST(figures_are_written_in_every_format)
{
    t_results r = small;
    r.frames = 0;
    r.figures = "formats: [svg, png, pdf]";
    r = made(r, "formats");
    OK(draw(&r, multi, NULL, NULL));
    EQ_I64(files_in(&r, "figures"), 3 * MAIN);
    size_t bytes = 0;
    char *text = read_all(&r, "factors_spatial.svg", &bytes);
    IS_TRUE(bytes > 1000 && memcmp(text, "<?xml", 5) == 0);
    free(text);
    text = read_all(&r, "factors_by_group.pdf", &bytes);
    IS_TRUE(bytes > 1000 && memcmp(text, "%PDF", 4) == 0);
    free(text);
    r.figures = "formats: [svg]";
    t_results alone = made(r, "svg_alone");
    OK(draw(&alone, multi, NULL, NULL));
    EQ_I64(files_in(&alone, "figures"), MAIN);
    IS_TRUE(!exists(&alone, "figures/points.png"));
}

TEST(heat_maps_can_be_left_out)
{
    const t_results r = made(small, "plain");
    OK(draw(&r, multi, "no-heatmap", NULL));
    IS_TRUE(exists(&r, "figures/gene_enrichment.png"));
    IS_TRUE(!exists(&r, "figures/celltype_gene_loadings"));
    IS_TRUE(!exists(&r, "figures/factor_gene_loadings"));
}

TEST(a_model_gets_the_figures_that_it_has)
{
    t_results r = small;
    r.model = "pnmf";
    r.groups = 1;
    r.frames = 0;
    r = made(r, "pnmf_run");
    fth_err err = {0};
    OKE(draw(&r, "spatial: false", NULL, &err), &err);
    IS_TRUE(exists(&r, "figures/points.png"));
    IS_TRUE(!exists(&r, "figures/lu_scales_inducing.png"));
    IS_TRUE(!exists(&r, "figures/groupwise_factors.png"));
    IS_TRUE(!exists(&r, "figures/gene_enrichment.png"));
    IS_TRUE(!exists(&r, "training_animation.gif"));
}

/* Every model leaves what it said it would, in every format. */
TEST(what_is_listed_is_drawn)
{
    static const struct {
        const char *model, *kind;
        bool local;
    } cases[] = {
        {"pnmf", "spatial: false", false},
        {"svgp", "spatial: true, prior: SVGP", false},
        {"mggp_svgp", "spatial: true, groups: true, prior: SVGP", false},
        {"lcgp", "spatial: true, local: true, prior: LCGP", true},
        {"mggp_lcgp", "spatial: true, groups: true, local: true, prior: LCGP", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        t_results r = small;
        t_stage s;
        fth_err err = {0};
        fth_file_list list;
        const fth_mem_options opt = plain();
        r.model = cases[i].model, r.frames = 0, r.dpi = 30;
        r.groups = 2, r.genes = 4;
        r.points = cases[i].local ? r.cells : r.points;
        r.figures = i % 2 ? "which: all, formats: [png, svg]" : "which: all";
        r = made(r, cases[i].model);
        OKE(draw(&r, cases[i].kind, NULL, &err), &err);
        t_stage_open(&s, &r, cases[i].kind, &opt);
        fth__file_list_init(&list, s.mem);
        OK(sp_figures_files(&s.call, &list, NULL));
        IS_TRUE(list.n >= 10);
        for (int64_t k = 0; k < list.n; k++)
            if (access(list.file[k].path, F_OK) != 0)
                FAIL("%s: there is no %s", cases[i].model, list.file[k].path);
        fth__file_list_clear(&list);
        t_stage_close(&s);
    }
}

/* Frames are as training had the factors; analysis says in which order they are shown. */
TEST(the_film_follows_the_order_of_the_analysis)
{
    static const int64_t order[3] = {2, 0, 1};
    static const char metrics[] = "{\"moran_i\": {\"sorted_indices\": [2, 0, 1]}}";
    const t_results r = made(small, "film");
    const int64_t n = r.cells * r.factors, size[3] = {r.frames, r.cells, r.factors};
    char path[FTH_PATH];
    size_t bytes[2];
    OK(draw(&r, multi, "no-heatmap", NULL));
    char *plain_film = read_all(&r, "../training_animation.gif", &bytes[0]);
    /* factor order[i] of the frames becomes panel i: put factor i there */
    float *v = malloc((size_t)(r.frames * n) * sizeof *v);
    for (int64_t k = 0; k < r.frames * n; k++)
        for (int64_t i = 0; i < 3; i++)
            if (order[i] == k % 3) v[k] = (float)(k / n + 1) * t_results_factor(&r, k % n / 3, i);
    fth_mem *mem = t_mem(1 << 24);
    t_results_npy(&r, mem, r.model, SP_FRAMES, FTH_F32, 3, size, v);
    OK(fth_mem_destroy(mem, NULL));
    free(v);
    snprintf(path, sizeof path, "%s/%s/" SP_METRICS, r.dir, r.model);
    t_file_write(path, metrics, sizeof metrics - 1);
    OK(draw(&r, multi, "no-heatmap", NULL));
    char *film = read_all(&r, "../training_animation.gif", &bytes[1]);
    EQ_U64(bytes[0], bytes[1]);
    SAME_BYTES(plain_film, film, bytes[0]);
    free(plain_film);
    free(film);
}

/* ---- pixels ---- */

typedef struct box {
    int64_t x0, y0, x1, y1;
} box;

/* Where the dots of the only panel are: left of the colour bar, which is ink from top to bottom. */
static box dots_of(const t_picture *p)
{
    box b = {p->w, p->h, 0, 0};
    int64_t bar = 0;
    for (int64_t n = 0; bar < p->w && n < p->h / 2; bar++) {
        n = 0;
        for (int64_t y = 0; y < p->h; y++)
            n += t_pixel(p, (double)bar, (double)y) != fth_rgb(255, 255, 255);
    }
    for (int64_t y = 0; y < p->h; y++)
        for (int64_t x = 0; x < bar - 3; x++) {
            const fth_colour c = t_pixel(p, (double)x, (double)y);
            if (abs((int)(c & 255) - (int)(c >> 16 & 255)) < 12) continue; /* white, or a letter */
            b.x0 = x < b.x0 ? x : b.x0, b.x1 = x + 1 > b.x1 ? x + 1 : b.x1;
            b.y0 = y < b.y0 ? y : b.y0, b.y1 = y + 1 > b.y1 ? y + 1 : b.y1;
        }
    return b;
}

/* Every cell in its place, y down, in the colour of its factor. */
TEST(a_map_shows_each_cell_where_it_is)
{
    t_results r = small;
    r.model = "pnmf", r.figures = NULL;
    r.cells = 25, r.factors = 1, r.groups = 1, r.frames = 0, r.dpi = 150;
    r = made(r, "map");
    OK(draw(&r, "spatial: false", NULL, NULL));
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s/pnmf/figures/factors_spatial.png", r.dir);
    const t_picture p = t_png_read(path);
    const double reach = 9.0 / 2 * 150 / 72; /* few cells have the largest dots */
    const box b = dots_of(&p);
    float low[2] = {1e9f, 1e9f}, high[2] = {-1e9f, -1e9f}, top[25];
    for (int64_t i = 0; i < r.cells; i++) {
        float xy[2];
        t_results_place(&r, i, xy);
        for (int k = 0; k < 2; k++) low[k] = fminf(low[k], xy[k]), high[k] = fmaxf(high[k], xy[k]);
        top[i] = t_results_factor(&r, i, 0);
    }
    for (int64_t i = 1; i < 25; i++) /* sorted, for the percentile */
        for (int64_t k = i; k > 0 && top[k] < top[k - 1]; k--) {
            const float swap = top[k];
            top[k] = top[k - 1], top[k - 1] = swap;
        }
    const double most = (double)top[23] + 0.76 * ((double)top[24] - (double)top[23]);
    const double from[2] = {(double)b.x0 + reach, (double)b.y0 + reach},
                 to[2] = {(double)b.x1 - reach, (double)b.y1 - reach};
    for (int64_t i = 0; i < r.cells; i++) {
        float xy[2];
        t_results_place(&r, i, xy);
        double at[2];
        for (int k = 0; k < 2; k++)
            at[k] = from[k] + (double)((xy[k] - low[k]) / (high[k] - low[k])) * (to[k] - from[k]);
        const fth_colour seen = t_pixel(&p, at[0], at[1]);
        const double part = (double)t_results_factor(&r, i, 0) / most * 256;
        const fth_colour wanted = fth_colour_map_get(FTH_MAP_EMBER, (int)fmin(part, 255));
        for (int shift = 0; shift <= 16; shift += 8)
            NEAR(seen >> shift & 255, wanted >> shift & 255, 3);
    }
    free(p.px);
}

/* Factors of very different size use the whole of their scale, each by itself. */
TEST(each_panel_has_a_scale_of_its_own)
{
    const t_results r = made(small, "own_scale");
    const fth_mem_options opt = plain();
    t_stage s;
    fth_err err = {0};
    t_stage_open(&s, &r, multi, &opt);
    sp_drawing d = {.call = &s.call, .mem = fth_context_mem(s.ctx), .cells = r.cells};
    float v[3][60];
    for (int i = 0; i < 60; i++) {
        v[0][i] = (float)i;
        v[1][i] = 1000 + (float)i;
        v[2][i] = i == 59 ? 7 : 0;
    }
    sp_rows rows = {.d = &d, .room = 3, .count = 3, .together = 1, .block = v[0]};
    rows.source = (fth_source){.dtype = FTH_F32, .n_axes = 2, .size = {3, 60}, .self = &rows};
    sp_rows made_rows;
    sp_rows_open(&made_rows, &d, 3, 60, 1, 0, NULL, NULL);
    rows.source.read = made_rows.source.read;
    fth_colours c;
    OKE(sp_rows_colours(&rows, 0, FTH_MAP_EMBER, 0, 99, &c, &err), &err);
    EQ_F64(c.low, 0);
    NEAR(c.high, 0.99 * 59, 1e-6);
    IS_TRUE(c.above && !c.below);
    OKE(sp_rows_colours(&rows, 1, FTH_MAP_EMBER, 1, 99, &c, &err), &err);
    NEAR(c.low, 1000 + 0.01 * 59, 1e-3);
    NEAR(c.high, 1000 + 0.99 * 59, 1e-3);
    IS_TRUE(c.above && c.below);
    OKE(sp_rows_colours(&rows, 2, FTH_MAP_EMBER, 0, 95, &c, &err), &err);
    EQ_F64(c.high, 7); /* its 95th percentile is zero */
    IS_TRUE(!c.above);
    sp_rows_close(&made_rows);
    t_stage_close(&s);
}

/* A round number of the file's unit, about a third of the tissue, and as long as it says. */
TEST(the_scale_bar_is_in_the_units_of_the_data)
{
    static const struct {
        sp_shown shown;
        const char *figures, *label;
        double length; /* of the bar, in units of the folder; the tissue is 200 wide */
    } cases[] = {
        {{.unit = "px", .length = 20}, NULL, "1000 px", 50},
        {{.unit = "px", .length = 20, .microns = 0.25}, NULL, "200 \xc2\xb5m", 40},
        {{.unit = "um", .length = 20}, NULL, "1 mm", 50},
        {{.length = 20}, NULL, "1000 units", 50},
        {{.length = 20}, "unit: um", "1 mm", 50},
        {{.length = 20}, "microns: 0.5", "500 \xc2\xb5m", 50},
        {{.unit = "px", .length = 20, .microns = 0.25}, "unit: px", "1000 px", 50},
        {{.length = 0}, NULL, "50 rescaled", 50},
        {{.unit = "px", .length = 1e-4}, NULL, "0.005 px", 50},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        t_results r = small;
        const fth_mem_options opt = plain();
        t_stage s;
        r.dir = t_temp_path("bar");
        r.figures = cases[i].figures;
        t_stage_open(&s, &r, multi, &opt);
        sp_drawing d = {.call = &s.call, .low = {-100, -100}, .high = {100, 100}};
        sp_scale_choose(&d, &cases[i].shown);
        EQ_STR(d.scale_label, cases[i].label);
        NEAR(d.scale_bar, cases[i].length, 1e-9);
        t_stage_close(&s);
    }
}

/* Panels are as the tissue is, dots as dense as the cells are. */
TEST(sheets_fit_the_tissue)
{
    sp_drawing d = {.low = {0, 0}, .high = {100, 400}, .planning = false};
    sp_sheet_choose(&d);
    EQ_F64(d.ratio, 0.25);
    const sp_sheet tall = sp_sheet_of(&d, 10, 1, 2, true);
    NEAR(tall.box[0] / tall.box[1], 0.25, 1e-12);
    EQ_I64(tall.columns, 5); /* even rows, although more would fit */
    d.high[0] = 4000;
    sp_sheet_choose(&d);
    EQ_F64(d.ratio, 4);
    EQ_I64(sp_sheet_of(&d, 10, 1, 2, true).columns, 2);
    EQ_I64(sp_sheet_of(&d, 40, 4, 2, true).columns, 4); /* whole blocks, however wide */
    d.high[0] = 380;
    sp_sheet_choose(&d);
    EQ_F64(d.ratio, 1);
    const sp_sheet s = sp_sheet_of(&d, 1, 1, 2, false);
    NEAR(sp_sheet_dot(&d, &s, 10), pow(1.15 * 10 * 72 * 2 / 400, 2), 1e-9);
    EQ_F64(sp_sheet_dot(&d, &s, 1e-3), 0.7 * 0.7);
    EQ_F64(sp_sheet_dot(&d, &s, 1e3), 81);
    fth_mem *mem = t_mem(1 << 22);
    static float xy[2 * 40 * 40];
    for (int i = 0; i < 1600; i++) /* a grid of pitch 5 in a quarter of the field */
        xy[2 * i] = 5 * (float)(i % 40), xy[2 * i + 1] = 5 * (float)(i / 40);
    double spacing = 0;
    d.mem = mem;
    d.low[0] = d.low[1] = 0, d.high[0] = d.high[1] = 400;
    OK(sp_spacing(&d, xy, 1600, &spacing, NULL));
    NEAR(spacing, 5, 0.4);
    OK(fth_mem_destroy(mem, NULL));
}

/* Groups are drawn in the colours of the file. */
TEST(groups_have_the_colours_of_the_file)
{
    t_results r = small;
    r.figures = NULL, r.frames = 0, r.dpi = 100;
    r.display = "{\"group_colors\": [\"#123456\", \"#fedcba\", \"#0a0\"], \"unit_length\": 2}";
    r = made(r, "colours");
    OK(draw(&r, multi, NULL, NULL));
    static const fth_colour want[3] = {0xff123456u, 0xfffedcbau, 0xff00aa00u};
    int64_t seen[3] = {0};
    char path[FTH_PATH];
    snprintf(path, sizeof path, "%s/%s/figures/points.png", r.dir, r.model);
    const t_picture p = t_png_read(path);
    for (int64_t y = 0; y < p.h; y++)
        for (int64_t x = 0; x < p.w; x++)
            for (int k = 0; k < 3; k++) seen[k] += t_pixel(&p, (double)x, (double)y) == want[k];
    for (int k = 0; k < 3; k++) IS_TRUE(seen[k] > 200);
    free(p.px);
}

/* ---- names ---- */

TEST(names_of_groups_become_names_of_files)
{
    const char *const name[] = {"T/cell 1",
                                "T_cell_1",
                                "b.c-d",
                                "T cell 1",
                                "T_cell_1_3",
                                "\xc3\xa4",
                                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    char file[7][64];
    sp_draw_file_names(file, name, 7);
    EQ_STR(file[0], "T_cell_1");
    EQ_STR(file[1], "T_cell_1_1");
    EQ_STR(file[2], "b.c-d");
    EQ_STR(file[3], "T_cell_1_3");
    EQ_STR(file[4], "T_cell_1_3_4");
    EQ_STR(file[5], "__");
    EQ_U64(strlen(file[6]), 50);
}

TEST(groups_with_one_file_name_get_two_files)
{
    const char *const names[] = {"a b", "a_b", "c"};
    t_results r = small;
    r.group_names = names;
    r = made(r, "collide");
    OK(draw(&r, multi, NULL, NULL));
    IS_TRUE(exists(&r, "figures/celltype_summary/celltype_a_b.png"));
    IS_TRUE(exists(&r, "figures/celltype_summary/celltype_a_b_1.png"));
    IS_TRUE(exists(&r, "figures/celltype_summary/celltype_c.png"));
}

/* ---- numbers ---- */

TEST(the_top_of_a_list_goes_to_the_lower_number_on_ties)
{
    const float v[] = {1, 5, NAN, 5, 0, 7, 0};
    int64_t out[3];
    sp_draw_top(v, 1, 7, true, out, 3);
    EQ_I64(out[0], 5);
    EQ_I64(out[1], 1);
    EQ_I64(out[2], 3);
    sp_draw_top(v, 1, 7, false, out, 3);
    EQ_I64(out[0], 4);
    EQ_I64(out[1], 6);
    EQ_I64(out[2], 0);
}

TEST(a_long_text_is_cut_at_a_character)
{
    char out[32];
    EQ_STR(sp_draw_short("short", 10, out, sizeof out), "short");
    EQ_STR(sp_draw_short("a longer text", 6, out, sizeof out), "a lon\xe2\x80\xa6");
    EQ_STR(sp_draw_short("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 3, out, sizeof out),
           "\xc3\xa4\xc3\xa4\xe2\x80\xa6");
}

/* ---- rows ---- */

/* Rows of a drawing whose room is two of them: every row is made, in any order. */
static void check_rows(const sp_rows *rows, float (*wanted)(const t_results *r, int64_t, int64_t),
                       const t_results *r)
{
    const fth_source *s = &rows->source;
    float *v = malloc((size_t)s->size[1] * sizeof *v);
    EQ_I64(rows->room, 2);
    for (int64_t k = 0; k < 2 * s->size[0]; k++) { /* in their order, then in another */
        const int64_t row = k < s->size[0] ? k : (k * 5 + 1) % s->size[0];
        OK(s->read(s->self, (int64_t[]){row, 0}, (int64_t[]){1, s->size[1]}, v, NULL));
        for (int64_t i = 0; i < s->size[1]; i++) EQ_F64(v[i], wanted(r, i, row));
    }
    free(v);
}

static float as_group(const t_results *r, int64_t cell, int64_t row)
{
    const int64_t group[2] = {2, 0};
    return (0.5f + 0.25f * (float)group[row / 3]) * t_results_factor(r, cell, row % 3);
}

static float log_count(const t_results *r, int64_t cell, int64_t row)
{
    static const int64_t gene[4] = {8, 8, 3, 0};
    (void)r;
    return log1pf(t_results_count(cell, gene[row]));
}

static float loadings[27];

static float fitted(const t_results *r, int64_t cell, int64_t row)
{
    static const int64_t gene[4] = {8, 8, 3, 0};
    double rate = 0;
    for (int64_t l = 0; l < 3; l++)
        rate += (double)t_results_factor(r, cell, l) * (double)loadings[gene[row] * 3 + l];
    return (float)log1p(rate);
}

/* What the model makes of genes, and the means of counts and factors. */
static void check_means(sp_drawing *d, const t_results *r)
{
    static const int64_t genes[4] = {8, 8, 3, 0};
    sp_fitted_rows f;
    double count[9], factor[3];
    for (int i = 0; i < 27; i++) loadings[i] = (float)(i * i % 7);
    d->loadings = loadings;
    sp_fitted_rows_open(&f, d, genes, 4);
    check_rows(&f.rows, fitted, r);
    sp_rows_close(&f.rows);
    OK(sp_mean_counts(d, count, NULL));
    OK(sp_mean_factors(d, factor, NULL));
    for (int64_t g = 0; g < 9; g++) {
        double sum = 0;
        for (int64_t i = 0; i < r->cells; i++) sum += (double)t_results_count(i, g);
        NEAR(count[g], sum / (double)r->cells, 1e-12);
    }
    for (int64_t l = 0; l < 3; l++) {
        double sum = 0;
        for (int64_t i = 0; i < r->cells; i++) sum += (double)t_results_factor(r, i, l);
        NEAR(factor[l], sum / (double)r->cells, 1e-12);
    }
    d->loadings = NULL;
}

TEST(rows_are_made_when_they_are_read)
{
    static const int64_t groups[2] = {2, 0}, genes[4] = {8, 8, 3, 0};
    const t_results r = made(small, "rows");
    const fth_mem_options opt = plain();
    t_stage s;
    fth_err err = {0};
    char dir[FTH_PATH];
    t_stage_open(&s, &r, multi, &opt);
    sp_drawing d = {.call = &s.call,
                    .mem = fth_context_mem(s.ctx),
                    .cells = r.cells,
                    .genes = r.genes,
                    .factors = r.factors,
                    .groups = r.groups,
                    .room = 2 * (uint64_t)r.cells * sizeof(float)};
    snprintf(dir, sizeof dir, "%s/" SP_PREPROCESSED, r.dir);
    OKE(sp_data_open(&d.data, d.mem, dir, &err), &err);
    OKE(sp_draw_open_cells(&d, SP_FACTORS, &d.factor_file, &err), &err);
    sp_transposed t;
    sp_groupwise w;
    sp_gene_rows g;
    sp_transposed_open(&t, &d, &d.factor_file, 0);
    check_rows(&t.rows, t_results_factor, &r);
    sp_rows_close(&t.rows);
    sp_groupwise_open(&w, &d, groups, 2);
    check_rows(&w.rows, as_group, &r);
    sp_rows_close(&w.rows);
    sp_gene_rows_open(&g, &d, genes, 4, true);
    check_rows(&g.rows, log_count, &r);
    sp_rows_close(&g.rows);
    check_means(&d, &r);
    EQ_U64(d.held, 0);
    fth_source_close(&d.factor_file);
    sp_data_close(&d.data);
    t_stage_close(&s);
}

/* ---- memory ---- */

static void check_memory(const t_results *r, const char *kind)
{
    t_stage s;
    fth_err err = {0};
    fth_stage_plan plan = {0};
    fth_mem_stats stats;
    const fth_mem_options opt = plain();
    t_stage_open(&s, r, kind, &opt);
    OKE(sp_figures_plan(&s.call, &plan, NULL, &err), &err);
    fth_mem_mark(fth_context_mem(s.ctx));
    OKE(sp_figures_run(&s.call, &err), &err);
    fth_mem_get_stats(fth_context_mem(s.ctx), &stats);
    LE_F64(stats.peak_bytes, plan.host_bytes);
    EQ_U64(stats.used_bytes, 0);
    t_stage_close(&s);
}

TEST_REPEAT(memory_is_as_planned)
{
    t_results r = small;
    r.cells = 20000;
    r.frames = 0;
    r = made(r, "many");
    check_memory(&r, multi);
    r.model = "svgp";
    r.cells = 300;
    r.genes = 200;
    r = made(r, "genes");
    check_memory(&r, "spatial: true, prior: SVGP");
    r.figures = "formats: [pdf, svg, png]";
    check_memory(&r, "spatial: true, prior: SVGP");
}

/* With an image under the cells, in every format. */
TEST_REPEAT(memory_of_an_image_is_as_planned)
{
    static char path[FTH_PATH], figures[FTH_PATH + 64];
    t_results r = small;
    fth_mem *mem = t_mem(1 << 26);
    uint8_t *px = calloc(2100 * 1500, 3);
    snprintf(path, sizeof path, "%s", t_temp_path("tissue.png"));
    OK(fth_picture_save(mem, path, &(fth_picture){FTH_U8, 1500, 2100, 3, px, 0},
                        &(fth_picture_format){.kind = FTH_PICTURE_PNG}, NULL));
    free(px);
    OK(fth_mem_destroy(mem, NULL));
    snprintf(figures, sizeof figures, "formats: [pdf, svg, png], image_file: '%s'", path);
    r.figures = figures;
    r.frames = 0;
    r = made(r, "image");
    check_memory(&r, multi);
}

/* ---- what is missing ---- */

static void spoil(const t_results *r, const char *name, int64_t rows, int64_t cols)
{
    fth_mem *mem = t_mem(1 << 24);
    t_results_pattern(r, mem, name, rows, cols, 0);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_does_not_fit_is_named)
{
    const t_results r = made(small, "broken");
    char path[FTH_PATH];
    fth_err err = {0};
    spoil(&r, SP_SCALES, r.cells, r.factors + 1);
    IS(draw(&r, multi, NULL, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, SP_SCALES);
    HAS(err.text, "factor=3");
    spoil(&r, SP_FACTORS, r.cells - 1, r.factors);
    fth_err_clear(&err);
    IS(draw(&r, multi, NULL, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "cell=60");
    snprintf(path, sizeof path, "%s/%s/" SP_FACTORS, r.dir, r.model);
    OK(unlink(path) == 0 ? FTH_OK : FTH_E_INTERNAL);
    fth_err_clear(&err);
    IS(draw(&r, multi, NULL, &err), FTH_E_FILE_OPEN);
    HAS(err.text, SP_FACTORS);
    HAS(err.hint, "analyze");
}

TEST_MAIN()
