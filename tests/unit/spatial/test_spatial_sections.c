/* test_spatial_sections.c - tissue sections: tiles of the plane, covariances that end at the gap,
 * points and drawn neighbours within sections, the description in JSON.
 * seconds: 3 */
#include "testing/test.h"

#include "instruments/spatial/inducing/inducing.h"
#include "instruments/spatial/neighbours/neighbours.h"

#include <fathom/fathom.h>
#include <math.h>

enum { CELLS = 600, SECTIONS = 5, GROUPS = 3 };

typedef struct bench {
    fth_context *ctx;
    fth_mem *mem;
    sp_data data;
    float *xy;
    int32_t *section, *group;
} bench;

static fth_texts *names_of(fth_mem *mem, const char *const *name, int64_t n)
{
    fth_texts *t = NULL;
    OK(fth_texts_create(&t, mem, NULL));
    for (int64_t i = 0; i < n; i++) OK(fth_texts_add(t, name[i], strlen(name[i]), NULL));
    return t;
}

/* Sections of different sizes, places and shapes; the fourth has few cells. */
static bench start(void)
{
    static const char *const name[SECTIONS] = {"a", "b \"quoted\"", "c", "d", "\xc3\xa4"};
    bench b = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    opt.mem.budget_bytes = 256 << 20;
    OK(fth_context_create(&b.ctx, &opt, NULL));
    b.mem = fth_context_mem(b.ctx);
    const int64_t size[2] = {CELLS, 2};
    b.data = (sp_data){.mem = b.mem, .size = {.cells = CELLS, .genes = 3, .groups = GROUPS}};
    OK(fth_tensor_create(&b.data.xy, b.mem, "xy", FTH_F32, 2, size, NULL));
    OK(fth_tensor_create(&b.data.group, b.mem, "C", FTH_I32, 1, size, NULL));
    OK(fth_tensor_create(&b.data.section, b.mem, "S", FTH_I32, 1, size, NULL));
    b.xy = fth_tensor_data(b.data.xy);
    b.group = fth_tensor_data(b.data.group);
    b.section = fth_tensor_data(b.data.section);
    t_random r = t_random_make(3);
    for (int i = 0; i < CELLS; i++) {
        const int s = i % 50 == 0 ? 3 : i % 10 < 5 ? 0 : i % 10 < 7 ? 1 : i % 10 < 9 ? 2 : 4;
        b.section[i] = s;
        b.group[i] = (int32_t)(t_random_f64(&r) * GROUPS);
        b.xy[2 * i] = (float)(1000 * s + (3 + s) * t_random_f64(&r));
        b.xy[2 * i + 1] = (float)(7 * s + (9 - s) * t_random_f64(&r));
    }
    fth_texts *t = names_of(b.mem, name, SECTIONS);
    OK(sp_sections_create(&b.data.sections, b.mem, t, NULL));
    fth_texts_free(t);
    return b;
}

static double arrange(bench *b, double extent)
{
    fth_err err = {0};
    double scale = 0;
    OKE(sp_sections_arrange(&b->data.sections, b->xy, b->section, CELLS, extent, "here", &scale,
                            &err),
        &err);
    for (int i = 0; i < CELLS; i++) b->data.sections.of[b->section[i]].cells++;
    return scale;
}

static void drop(bench *b)
{
    fth_err err = {0};
    fth_tensor_release(b->data.xy);
    fth_tensor_release(b->data.group);
    fth_tensor_release(b->data.section);
    sp_sections_clear(&b->data.sections);
    OKE(fth_context_destroy(b->ctx, &err), &err);
}

static double distance(const float *a, const float *b)
{
    return hypot((double)a[0] - (double)b[0], (double)a[1] - (double)b[1]);
}

/* ---- the plane ---- */

TEST(sections_are_farther_apart_than_the_gap_and_cells_of_one_nearer)
{
    bench b = start();
    float was[2 * CELLS];
    memcpy(was, b.xy, sizeof was);
    const double scale = arrange(&b, 200);
    const sp_sections *s = &b.data.sections;
    double logs = 0;
    for (int i = 0; i < CELLS; i++)
        for (int j = 0; j < i; j++) {
            const double d = distance(b.xy + 2 * i, b.xy + 2 * j);
            EQ_I64(d < s->gap, b.section[i] == b.section[j]);
        }
    for (int k = 0; k < SECTIONS; k++)
        for (int a = 0; a < 2; a++) logs += log(s->of[k].high[a] - s->of[k].low[a]);
    NEAR(exp(logs / (2 * SECTIONS)), 200, 1e-9); /* the typical extent */
    for (int i = 0; i < 2 * CELLS; i++) {        /* and back */
        const sp_section *of = &s->of[b.section[i / 2]];
        NEAR((double)b.xy[i] / scale + of->offset[i % 2], (double)was[i], 1e-3);
        IS_TRUE((double)b.xy[i] >= of->low[i % 2] - 1e-3 &&
                (double)b.xy[i] <= of->high[i % 2] + 1e-3);
    }
    drop(&b);
}

TEST(tiles_are_a_grid_around_zero)
{
    bench b = start();
    arrange(&b, 200);
    const sp_sections *s = &b.data.sections;
    double middle[SECTIONS][2], sum = 0;
    for (int k = 0; k < SECTIONS; k++)
        for (int a = 0; a < 2; a++) middle[k][a] = (s->of[k].low[a] + s->of[k].high[a]) / 2;
    for (int k = 0; k < 3; k++) sum += middle[k][0];
    NEAR(sum, 0, 1e-6); /* three columns */
    NEAR(middle[3][0], middle[0][0], 1e-6);
    NEAR(middle[4][0], middle[1][0], 1e-6);
    IS_TRUE(middle[0][0] < middle[1][0] && middle[1][0] < middle[2][0]);
    NEAR(middle[0][1], -middle[3][1], 1e-6); /* two rows, the first above */
    IS_TRUE(middle[0][1] > middle[3][1]);
    drop(&b);
}

TEST(positions_keep_their_scale_where_they_are_to)
{
    bench b = start();
    b.xy[4] = 1e6f;
    b.xy[5] = NAN; /* dropped later: it stays what it is, and no box reaches for it */
    EQ_F64(arrange(&b, 0), 1);
    IS_TRUE(isnan(b.xy[5]));
    EQ_F64(b.xy[4], 1e6f);
    const sp_section *of = &b.data.sections.of[b.section[2]];
    LE_F64(of->high[0] - of->low[0], 3 + b.section[2]);
    drop(&b);
}

TEST(a_section_without_cells_or_extent_is_refused)
{
    bench b = start();
    fth_err err = {0};
    double scale;
    for (int i = 0; i < CELLS; i++)
        if (b.section[i] == 3) b.xy[2 * i + 1] = 4;
    EQ_I64(sp_sections_arrange(&b.data.sections, b.xy, b.section, CELLS, 200, "here", &scale, &err),
           FTH_E_FILE_FORMAT);
    HAS(err.text, "section 'd' has no extent on axis 1");
    HAS(err.hint, "preprocessing.sections");
    for (int i = 0; i < CELLS; i++)
        if (b.section[i] == 3) b.section[i] = 0;
    fth_err_clear(&err);
    EQ_I64(sp_sections_arrange(&b.data.sections, b.xy, b.section, CELLS, 200, "here", &scale, &err),
           FTH_E_FILE_FORMAT);
    HAS(err.text, "section 'd' has no cells");
    drop(&b);
}

TEST(places_near_a_section_are_in_it_and_others_are_not)
{
    bench b = start();
    arrange(&b, 200);
    const sp_sections *s = &b.data.sections;
    const double diagonal = s->gap / 1.5;
    for (int k = 0; k < SECTIONS; k++) {
        const float inside[2] = {(float)s->of[k].low[0], (float)s->of[k].high[1]},
                    near[2] = {(float)(s->of[k].high[0] + 0.48 * diagonal), (float)s->of[k].low[1]},
                    far[2] = {(float)(s->of[k].high[0] + 0.51 * diagonal), (float)s->of[k].low[1]};
        float nowhere[2];
        sp_sections_nowhere(s, 8, nowhere);
        for (int j = 0; j < SECTIONS; j++) {
            EQ_I64(sp_sections_holds(s, j, inside), j == k);
            EQ_I64(sp_sections_holds(s, j, near), j == k);
            EQ_I64(sp_sections_holds(s, j, nowhere), 0);
        }
        EQ_I64(sp_sections_holds(s, k, far), 0);
        for (int i = 0; i < CELLS; i++) /* what the margin is for */
            EQ_I64(distance(near, b.xy + 2 * i) < s->gap, b.section[i] == k);
    }
    drop(&b);
}

TEST(drawings_have_sections_side_by_side)
{
    bench b = start();
    sp_sections to;
    arrange(&b, 200);
    OK(sp_sections_copy(&to, b.mem, &b.data.sections, NULL));
    const double above = sp_sections_pack(&to, &b.data.sections);
    IS_TRUE(above > 0);
    for (int j = 0; j < SECTIONS; j++)
        for (int k = 0; k < j; k++) /* names and boxes do not overlap */
            IS_TRUE(to.of[j].low[0] >= to.of[k].high[0] || to.of[k].low[0] >= to.of[j].high[0] ||
                    to.of[j].low[1] - above >= to.of[k].high[1] ||
                    to.of[k].low[1] - above >= to.of[j].high[1]);
    for (int k = 0; k < SECTIONS; k++) { /* three columns: they end alike, and share a middle */
        NEAR(to.of[k].high[1], to.of[k / 3 * 3].high[1], 1e-9);
        NEAR(to.of[k].low[0] + to.of[k].high[0], to.of[k % 3].low[0] + to.of[k % 3].high[0], 1e-9);
    }
    for (int i = 0; i < CELLS; i++) {
        float at[2] = {b.xy[2 * i], b.xy[2 * i + 1]};
        sp_sections_shift(&to, &b.data.sections, b.section[i], at);
        for (int a = 0; a < 2; a++)
            IS_TRUE((double)at[a] >= to.of[b.section[i]].low[a] - 1e-3 &&
                    (double)at[a] <= to.of[b.section[i]].high[a] + 1e-3);
    }
    sp_sections_clear(&to);
    drop(&b);
}

/* ---- covariances ---- */

typedef enum shape { BLOCK, BLOCK_NU, BLOCK_GROUPS, SHAPES } shape;

static fth_val values_of(fth_graph *g, shape how, const sp_cov *c, fth_val a, fth_val ga)
{
    const fth_val z = fth_rename(a, "cell", "cell2"), gz = fth_rename(ga, "cell", "cell2");
    return how == BLOCK      ? sp_cov_block(g, c, FTH_F64, a, ga, "cell", z, gz, "cell2")
           : how == BLOCK_NU ? sp_cov_block_nu(g, c, FTH_F64, a, "cell", z, 0.25)
                             : sp_cov_block_groups(g, c, FTH_F64, a, "cell", z, gz, "cell2");
}

static void compare(bench *b, const sp_cov *c, shape how)
{
    enum { N = 60 };
    fth_err err = {0};
    fth_tensor *out = NULL;
    const int64_t groups = how == BLOCK_GROUPS ? GROUPS : 1, size[3] = {groups, N, N};
    OK(fth_tensor_create(&out, b->mem, "k", FTH_F64, 3, size, NULL));
    fth_graph *g = fth_graph_create(b->ctx);
    fth_axis(g, "cell", N);
    fth_axis_like(g, "cell2", "cell");
    fth_axis(g, "dim", 2);
    fth_axis(g, "group", GROUPS);
    fth_axis_like(g, "group2", "group");
    fth_axis(g, "one", 1);
    const fth_source
        at = {.kind = "memory", .dtype = FTH_F32, .n_axes = 2, .size = {N, 2}, .data = b->xy},
        of = {.kind = "memory", .dtype = FTH_I32, .n_axes = 1, .size = {N}, .data = b->group};
    const fth_val a = fth_input(g, "a", FTH_F32, "cell dim", at),
                  ga = fth_input(g, "ga", FTH_I32, "cell", of);
    fth_val k = values_of(g, how, c, a, ga);
    k = how == BLOCK_GROUPS ? fth_layout(k, "group cell cell2")
                            : fth_layout(fth_expand(k, "one"), "one cell cell2");
    fth_plan *plan = fth_plan_make(g, &k, 1, NULL, &err);
    if (!plan) t_status(err.status, FTH_OK, "plan", &err, T_AT);
    const fth_sink sink = fth_tensor_sink(out);
    OKE(fth_run(plan, &sink, NULL, NULL, &err), &err);
    const double *v = fth_tensor_data(out);
    for (int64_t q = 0; q < groups; q++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                sp_cov plain = *c;
                if (how == BLOCK_NU) plain.distance = NULL, plain.alpha = 3 / 1.000002;
                const int64_t gi = how == BLOCK_GROUPS ? q : b->group[i];
                const double host =
                    how == BLOCK_NU ? sp_cov_at(&plain, b->xy + 2 * i, 0, b->xy + 2 * j, 1)
                                    : sp_cov_at(c, b->xy + 2 * i, gi, b->xy + 2 * j, b->group[j]);
                NEAR(v[(q * N + i) * N + j], host, 1e-14);
                if (b->section[i] != b->section[j]) EQ_F64(v[(q * N + i) * N + j], 0);
                if (b->section[i] == b->section[j]) IS_TRUE(host > 0);
            }
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    fth_tensor_release(out);
}

TEST(covariances_end_at_the_gap_on_the_host_and_in_graphs)
{
    bench b = start();
    fth_tensor *table = NULL;
    arrange(&b, 200);
    OK(fth_tensor_create(&table, b.mem, "d2", FTH_F64, 2, ((int64_t[]){GROUPS, GROUPS}), NULL));
    for (int i = 0; i < GROUPS * GROUPS; i++)
        ((double *)fth_tensor_data(table))[i] = fabs((double)(i / GROUPS - i % GROUPS));
    for (int k = 0; k < SP_KERNEL_COUNT; k++)
        for (int groups = 0; groups < 3; groups++) { /* none, equally far, at given distances */
            const sp_cov c = {.kernel = (sp_kernel)k,
                              .sigma = 1.5,
                              .lengthscale = 1e4, /* far beyond the gap */
                              .groups = groups > 0,
                              .alpha = 0.5,
                              .distance = groups > 1 ? fth_tensor_data(table) : NULL,
                              .table = groups > 1 ? table : NULL,
                              .gap = b.data.sections.gap,
                              .n_groups = GROUPS};
            compare(&b, &c, BLOCK);
            if (groups == 1) compare(&b, &c, BLOCK_NU);
            if (groups > 0) compare(&b, &c, BLOCK_GROUPS);
        }
    fth_tensor_release(table);
    drop(&b);
}

/* ---- points and neighbours ---- */

static void place(bench *b, sp_model *m, int64_t M, bool groups, sp_allocation how)
{
    fth_err err = {0};
    *m = (sp_model){.mem = b->mem, .set = {.seed = 1, .M = M, .spatial = true, .groups = groups}};
    m->set.inducing_allocation = how;
    m->set.n_groups = GROUPS;
    OK(fth_tensor_create(&m->Z, b->mem, "Z", FTH_F32, 2, ((int64_t[]){M, 2}), NULL));
    if (groups) OK(fth_tensor_create(&m->groupsZ, b->mem, "gZ", FTH_I32, 1, &M, NULL));
    int64_t per[GROUPS] = {0}, total = 0;
    OKE(sp_inducing_place(m, b->ctx, &b->data, NULL, per, &err), &err);
    for (int g = 0; g < GROUPS; g++) total += per[g];
    EQ_I64(total, groups ? M : 0);
}

static void points_of(const bench *b, const sp_model *m, int64_t n[SECTIONS][GROUPS])
{
    memset(n, 0, SECTIONS * GROUPS * sizeof n[0][0]);
    const float *z = fth_tensor_data(m->Z);
    for (int64_t i = 0; i < fth_tensor_size(m->Z, 0); i++) {
        int64_t s = 0;
        while (s < SECTIONS && !sp_sections_holds(&b->data.sections, s, z + 2 * i)) s++;
        IS_TRUE(s < SECTIONS);
        n[s][m->groupsZ ? ((const int32_t *)fth_tensor_data(m->groupsZ))[i] : 0]++;
    }
}

TEST(every_section_has_points_by_its_share)
{
    bench b = start();
    sp_model m;
    int64_t n[SECTIONS][GROUPS];
    arrange(&b, 200);
    place(&b, &m, 60, false, SP_PROPORTIONAL);
    points_of(&b, &m, n);
    for (int s = 0; s < SECTIONS; s++) {
        const double share = 60 * (double)b.data.sections.of[s].cells / CELLS;
        NEAR((double)n[s][0], share, 1);
    }
    fth_tensor_release(m.Z);
    drop(&b);
}

TEST(every_type_of_every_section_has_points)
{
    bench b = start();
    arrange(&b, 200);
    for (int how = SP_PROPORTIONAL; how <= SP_DERIVED; how++) {
        sp_model m;
        int64_t n[SECTIONS][GROUPS];
        place(&b, &m, 40, true, (sp_allocation)how);
        points_of(&b, &m, n);
        int64_t cells[SECTIONS][GROUPS] = {{0}};
        for (int i = 0; i < CELLS; i++) cells[b.section[i]][b.group[i]]++;
        for (int s = 0; s < SECTIONS; s++)
            for (int g = 0; g < GROUPS; g++) EQ_I64(n[s][g] > 0, cells[s][g] > 0);
        fth_tensor_release(m.Z);
        fth_tensor_release(m.groupsZ);
    }
    drop(&b);
}

TEST(drawn_neighbours_are_of_the_section)
{
    bench b = start();
    fth_err err = {0};
    arrange(&b, 200);
    sp_model m = {.mem = b.mem,
                  .set = {.neighbors = SP_PROBABILISTIC,
                          .sigma = 1,
                          .lengthscale = 0.5, /* nearly all weights are the least one */
                          .seed = 2,
                          .section_gap = b.data.sections.gap}};
    sp_nbr_conditional lists;
    OK(fth_tensor_create(&m.nbr_kl, b.mem, "kl", FTH_I32, 2, ((int64_t[]){CELLS, 11}), NULL));
    OKE(sp_neighbours_conditional(&lists, b.ctx, &m, b.xy, NULL, &err), &err);
    const int32_t *list = fth_tensor_data(m.nbr_kl);
    for (int i = 0; i < CELLS * 11; i++) EQ_I64(b.section[list[i]], b.section[i / 11]);
    fth_tensor_release(m.nbr_kl);
    drop(&b);
}

/* ---- JSON ---- */

static fth_status parse(fth_mem *mem, const char *names, const char *rest, sp_sections *out,
                        fth_err *err)
{
    fth_json *list = NULL, *doc = NULL;
    OK(fth_json_parse(&list, mem, "names", names, strlen(names), NULL));
    OK(fth_json_parse(&doc, mem, "rest", rest, strlen(rest), NULL));
    const fth_status s =
        sp_sections_parse(out, mem, fth_json_root(list), fth_json_root(doc), "m.json", err);
    fth_json_destroy(list);
    fth_json_destroy(doc);
    return s;
}

TEST(a_description_is_read_as_it_was_written)
{
    bench b = start();
    fth_json_writer names, rest;
    sp_sections back;
    fth_err err = {0};
    arrange(&b, 200);
    fth_json_begin(&names, b.mem, false);
    fth_json_begin(&rest, b.mem, false);
    sp_sections_put_names(&names, NULL, &b.data.sections);
    sp_sections_put(&rest, NULL, &b.data.sections);
    OK(fth_json_end(&names, NULL));
    OK(fth_json_end(&rest, NULL));
    OKE(parse(b.mem, names.data, rest.data, &back, &err), &err);
    EQ_I64(back.n, SECTIONS);
    EQ_F64(back.gap, b.data.sections.gap);
    EQ_I64(memcmp(back.of, b.data.sections.of, sizeof *back.of * SECTIONS), 0);
    for (int i = 0; i < SECTIONS; i++)
        EQ_I64(sp_sections_find(&back, sp_sections_name(&b.data.sections, i)), i);
    EQ_I64(sp_sections_find(&back, "e"), -1);
    sp_sections_clear(&back);
    fth_json_free(&names);
    fth_json_free(&rest);
    drop(&b);
}

TEST(a_damaged_description_is_refused)
{
    bench b = start();
    static const struct {
        const char *names, *rest, *says;
    } row[] = {{"[]", "{}", "'section_names' is not a list of names"},
               {"[1]", "{}", "'section_names' is not a list of names"},
               {"[\"a\"]", "{}", "'gap' of 'sections' should be a number above 0"},
               {"[\"a\"]", "{\"gap\": -1}", "'gap' of 'sections'"},
               {"[\"a\"]", "{\"gap\": 1}", "'offsets' of 'sections' should have two numbers"},
               {"[\"a\"]", "{\"gap\": 1, \"offsets\": [[1]]}", "'offsets' of 'sections'"},
               {"[\"a\"]", "{\"gap\": 1, \"offsets\": [[1, 2]], \"boxes\": [[1, 2, 3]]}",
                "'boxes' of 'sections' should have four numbers"},
               {"[\"a\"]", "{\"gap\": 1, \"offsets\": [[1, 2]], \"boxes\": [[1, 2, 3, 4]]}",
                "'cells' of 'sections' should have the number of cells"},
               {"[\"a\", \"b\"]",
                "{\"gap\": 1, \"offsets\": [[1, 2]], \"boxes\": [[1, 2, 3, 4]], \"cells\": [9]}",
                "for each of 2 sections"}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        sp_sections s;
        fth_err err = {0};
        EQ_I64(parse(b.mem, row[i].names, row[i].rest, &s, &err), FTH_E_FILE_FORMAT);
        HAS(err.text, row[i].says);
        HAS(err.text, "m.json");
        EQ_I64(s.n, 0);
    }
    drop(&b);
}

TEST_MAIN()
