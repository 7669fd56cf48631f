/* test_spatial_inducing.c - inducing points of a model: how many, where, of which group.
 * seconds: 3 */
#include "testing/test.h"

#include "instruments/spatial/inducing/inducing.h"
#include "instruments/spatial/neighbours/neighbours.h"

#include <fathom/fathom.h>
#include <math.h>

enum { CELLS = 5000, GROUPS = 64 };

/* Cells and a model by hand: what sp_inducing_place looks at, and nothing else. */
typedef struct bench {
    fth_context *ctx;
    fth_config *cfg;
    sp_data data;
    sp_model m;
    float *xy;
    int32_t *group;
    int64_t n[GROUPS], per_group[GROUPS];
    fth_err err;
} bench;

static bench start(int64_t cells, int64_t groups, int64_t M, const char *model)
{
    bench b = {0};
    fth_options opt;
    fth_options_default(&opt);
    opt.threads = 2;
    opt.device = "cpu";
    opt.mem.budget_bytes = 256 << 20;
    OK(fth_context_create(&b.ctx, &opt, NULL));
    fth_mem *mem = fth_context_mem(b.ctx);
    b.data = (sp_data){.mem = mem, .size = {.cells = cells, .genes = 3, .groups = groups}};
    OK(fth_tensor_create(&b.data.xy, mem, "xy", FTH_F32, 2, ((int64_t[]){cells, 2}), NULL));
    OK(fth_tensor_create(&b.data.group, mem, "C", FTH_I32, 1, &cells, NULL));
    b.xy = fth_tensor_data(b.data.xy);
    b.group = fth_tensor_data(b.data.group);
    char text[400];
    snprintf(
        text, sizeof text,
        "name: a\npreprocessing: {path: a.h5ad}\nmodel: {spatial: true, num_inducing: %lld%s}\n",
        (long long)M, model);
    OK(fth_config_create(&b.cfg, mem, NULL));
    OK(fth_config_parse(b.cfg, "test", text, strlen(text), NULL));
    OKE(fth_config_check(b.cfg, &sp_schema, &(fth_config_options){0}, &b.err), &b.err);
    OKE(sp_settings_from(&b.m.set, b.cfg, &b.data.size, 200, NULL, &b.err), &b.err);
    b.m.mem = mem;
    const int64_t rows = b.m.set.M;
    OK(fth_tensor_create(&b.m.Z, mem, "Z", FTH_F32, 2, ((int64_t[]){rows, 2}), NULL));
    if (b.m.set.groups) OK(fth_tensor_create(&b.m.groupsZ, mem, "gZ", FTH_I32, 1, &rows, NULL));
    return b;
}

static void drop(bench *b)
{
    fth_tensor_release(b->data.xy);
    fth_tensor_release(b->data.group);
    fth_tensor_release(b->m.Z);
    fth_tensor_release(b->m.groupsZ);
    OK(fth_config_destroy(b->cfg, NULL));
    fth_err err = {0};
    OKE(fth_context_destroy(b->ctx, &err), &err);
}

static fth_status place(bench *b)
{
    fth_err_clear(&b->err);
    return sp_inducing_place(&b->m, b->ctx, &b->data, b->cfg, b->per_group, &b->err);
}

static const float *z_of(const bench *b)
{
    return fth_tensor_data(b->m.Z);
}

static const int32_t *groups_of(const bench *b)
{
    return fth_tensor_data(b->m.groupsZ);
}

/* Bands of three kinds of cells, and `rare` groups of single cells scattered among them. */
static void tissue(bench *b, int64_t rare)
{
    t_random r = t_random_make(13);
    const int64_t cells = b->data.size.cells, common = b->data.size.groups - rare;
    for (int64_t i = 0; i < cells; i++) {
        b->xy[2 * i] = (float)(t_random_f64(&r) * 200 - 100);
        b->xy[2 * i + 1] = (float)(t_random_f64(&r) * 200 - 100);
        const int64_t band = (int64_t)(((double)b->xy[2 * i] + 100) / 200 * (double)common);
        b->group[i] = (int32_t)(band < common ? band : common - 1);
    }
    for (int64_t k = 0; k < rare; k++) b->group[(k + 1) * 97 % cells] = (int32_t)(common + k);
    for (int64_t i = 0; i < cells; i++) b->n[b->group[i]]++;
}

/* Exactly M, counted right, each group with cells at least once. */
static void check_counts(const bench *b)
{
    int64_t got[GROUPS] = {0}, total = 0;
    for (int64_t i = 0; i < b->m.set.M; i++) {
        const int32_t g = groups_of(b)[i];
        IS_TRUE(g >= 0 && g < b->data.size.groups);
        got[g]++;
        IS_TRUE(isfinite(z_of(b)[2 * i]) && isfinite(z_of(b)[2 * i + 1]));
    }
    for (int64_t g = 0; g < b->data.size.groups; g++) {
        EQ_I64(got[g], b->per_group[g]);
        EQ_I64(got[g] > 0, b->n[g] > 0);
        total += got[g];
    }
    EQ_I64(total, b->m.set.M);
    EQ_I64(total, fth_tensor_size(b->m.Z, 0));
}

TEST(without_groups_they_are_the_centres_of_all_cells)
{
    bench b = start(CELLS, 3, 150, "");
    tissue(&b, 0);
    OKE(place(&b), &b.err);
    float *want = malloc(150 * 8);
    if (!want) FAIL("no memory");
    OK(sp_kmeans_run(want, b.ctx, b.xy, CELLS, &(sp_kmeans){.k = 150, .seed = 42, .stream = 8},
                     NULL, NULL));
    SAME_BYTES(z_of(&b), want, 150 * 8);
    EQ_PTR(b.m.groupsZ, NULL);
    free(want);
    drop(&b);
}

TEST(shares_lie_among_their_own_cells)
{
    for (int equal = 0; equal < 2; equal++) {
        bench b = start(CELLS, 9, 200,
                        equal ? ", groups: true, inducing_allocation: equal"
                              : ", groups: true, inducing_allocation: proportional");
        tissue(&b, 4);
        OKE(place(&b), &b.err);
        check_counts(&b);
        int64_t want[9];
        sp_allocate_shares(want, b.n, 9, 200, equal, false);
        sp_allocate_raise(want, b.n, 9);
        SAME_BYTES(b.per_group, want, sizeof want);
        for (int64_t i = 0; i < 200; i++) {
            const int32_t g = groups_of(&b)[i];
            if (g > 4) continue;
            const double x = (double)z_of(&b)[2 * i];
            IS_TRUE(x >= -100 + 40 * g - 1e-3 && x <= -60 + 40 * g + 1e-3);
        }
        drop(&b);
    }
}

/* The group that most of the five nearest cells are of, nearer ones counting more. */
static int32_t voted(const bench *b, const float *z)
{
    int32_t near[5];
    double sum[GROUPS] = {0};
    OK(sp_neighbours_of(near, b->ctx, b->m.mem, b->xy, b->data.size.cells, z, 1, 5, NULL));
    int32_t best = 0;
    for (int k = 0; k < 5; k++) {
        const float *c = b->xy + 2 * near[k];
        const double d = hypot((double)c[0] - (double)z[0], (double)c[1] - (double)z[1]);
        sum[b->group[near[k]]] += d > 0 ? 1 / d : 1e30;
    }
    for (int32_t g = 1; g < b->data.size.groups; g++)
        if (sum[g] > sum[best]) best = g;
    return best;
}

/* Eleven groups of one cell each: no centre falls to them by a vote. */
TEST(missing_groups_get_points_and_none_is_lost)
{
    bench b = start(CELLS, 14, 200, ", groups: true, inducing_allocation: derived");
    tissue(&b, 11);
    OKE(place(&b), &b.err);
    check_counts(&b);
    for (int64_t i = 0; i < 189; i++) EQ_I64(groups_of(&b)[i], voted(&b, z_of(&b) + 2 * i));
    for (int64_t k = 0; k < 11; k++) { /* at the end, at the cell itself, in order */
        EQ_I64(groups_of(&b)[189 + k], 3 + k);
        SAME_BYTES(z_of(&b) + 2 * (189 + k), b.xy + 2 * ((k + 1) * 97), 8);
    }
    drop(&b);
}

TEST(what_is_taken_away_lay_closest_to_another)
{
    bench b = start(CELLS, 2, 60, ", groups: true, inducing_allocation: derived");
    tissue(&b, 1);
    float all[120];
    OK(sp_kmeans_run(all, b.ctx, b.xy, CELLS, &(sp_kmeans){.k = 60, .seed = 42, .stream = 8}, NULL,
                     NULL));
    int64_t gone = 0;
    double least = HUGE_VAL;
    for (int64_t i = 0; i < 60; i++)
        for (int64_t j = 0; j < 60; j++) {
            const double dx = (double)all[2 * i] - (double)all[2 * j];
            const double dy = (double)all[2 * i + 1] - (double)all[2 * j + 1];
            if (i != j && dx * dx + dy * dy < least) least = dx * dx + dy * dy, gone = i;
        }
    OKE(place(&b), &b.err);
    SAME_BYTES(z_of(&b), all, 8 * gone);
    SAME_BYTES(z_of(&b) + 2 * gone, all + 2 * (gone + 1), 8 * (59 - gone));
    drop(&b);
}

TEST(donors_give_one_each)
{
    bench b = start(CELLS, 5, 100,
                    ", groups: true, inducing_allocation: derived, missing_group_rule: donors");
    tissue(&b, 2);
    for (int64_t i = 0; i < 40; i++) { /* one rare group has cells, all over the place */
        const int64_t cell = i * 111 + 5;
        if (b.group[cell] > 2) continue;
        b.n[b.group[cell]]--;
        b.group[cell] = 4;
        b.n[4]++;
    }
    OKE(place(&b), &b.err);
    check_counts(&b);
    EQ_I64(b.per_group[3], 1); /* it has no more cells */
    EQ_I64(b.per_group[4], 3); /* three groups had more than one */
    drop(&b);
}

TEST(more_groups_than_points_are_refused_unless_allowed)
{
    static const char *const kind[3] = {"derived", "proportional", "equal"};
    for (int k = 0; k < 3; k++) {
        char model[160];
        snprintf(model, sizeof model, ", groups: true, inducing_allocation: %s", kind[k]);
        bench b = start(CELLS, 14, 8, model);
        tissue(&b, 9);
        IS(place(&b), FTH_E_CONFIG);
        HAS(b.err.text, "8 inducing points for 14 groups");
        HAS(b.err.hint, "at least 14");
        drop(&b);
        strcat(model, ", allow_empty_groups: true");
        b = start(CELLS, 14, 8, model);
        tissue(&b, 9);
        OKE(place(&b), &b.err);
        for (int64_t g = 0; g < 14; g++) EQ_I64(b.per_group[g], g < 8);
        drop(&b);
    }
}

TEST(a_cell_at_the_point_decides_alone)
{
    bench b = start(6, 2, 6, ", groups: true, inducing_allocation: derived");
    const float at[12] = {0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0};
    memcpy(b.xy, at, sizeof at);
    for (int i = 0; i < 6; i++) b.group[i] = i == 2; /* alone among others */
    for (int i = 0; i < 6; i++) b.n[b.group[i]]++;
    OKE(place(&b), &b.err); /* as many centres as cells: they lie on them */
    for (int i = 0; i < 6; i++) EQ_I64(groups_of(&b)[i], z_of(&b)[2 * i] == 2);
    drop(&b);
}

TEST(a_local_model_has_a_point_at_every_cell)
{
    bench b = start(300, 3, 50, ", groups: true, local: true, prior: LCGP");
    tissue(&b, 0);
    OKE(place(&b), &b.err);
    SAME_BYTES(z_of(&b), b.xy, 300 * 8);
    SAME_BYTES(groups_of(&b), b.group, 300 * 4);
    SAME_BYTES(b.per_group, b.n, 3 * 8);
    drop(&b);
}

/* ---- points from a file ---- */

static void write_points(bench *b, const char *path, const float *xy, int64_t rows, int64_t cols)
{
    fth_sink s;
    OK(fth_npy_create(&s, b->m.mem, path, FTH_F32, 2, (int64_t[]){rows, cols}, NULL));
    OK(s.write(s.self, (int64_t[]){0, 0}, (int64_t[]){rows, cols}, xy, NULL));
    OK(s.commit(s.self, NULL));
    fth_sink_close(&s);
}

TEST(points_can_come_from_a_file)
{
    const char *path = t_temp_path("points.npy");
    char model[4400];
    snprintf(model, sizeof model, ", groups: true, inducing_file: %s", path);
    bench b = start(900, 3, 6, model);
    tissue(&b, 0);
    float p[16] = {-90, 0, -80, 3, 0, 0, 5, 5, 90, -4, 70, 2};
    write_points(&b, path, p, 6, 2);
    OKE(place(&b), &b.err);
    SAME_BYTES(z_of(&b), p, 48);
    const int32_t want[6] = {0, 0, 1, 1, 2, 2};
    SAME_BYTES(groups_of(&b), want, sizeof want);

    p[8] = p[10] = -95; /* nothing near the third group */
    write_points(&b, path, p, 6, 2);
    IS(place(&b), FTH_E_CONFIG);
    HAS(b.err.text, "no inducing point among those of");
    write_points(&b, path, p, 8, 2);
    IS(place(&b), FTH_E_CONFIG);
    HAS(b.err.text, "has 8 inducing points, the model has 6");
    HAS(b.err.hint, "num_inducing to 8");
    write_points(&b, path, p, 4, 4);
    IS(place(&b), FTH_E_FILE_SHAPE);
    p[3] = NAN;
    write_points(&b, path, p, 6, 2);
    IS(place(&b), FTH_E_FILE_FORMAT);
    HAS(b.err.text, "inducing point 1 is not finite");
    drop(&b);
}

/* The second section has two cells, so voters of a point there are cells of the first too: three
 * of them at one place, which together weigh more than the nearest cell. */
TEST(cells_of_other_sections_do_not_vote)
{
    enum { N = 8 };
    static const float xy[2 * N] = {0, 0, 10, 10, 0, 10, 10, 0, 10, 0, 10, 0, 0, 10, 10, 0};
    static const int32_t section[N] = {0, 0, 0, 0, 0, 0, 1, 1}, group[N] = {1, 1, 1, 1, 1, 1, 0, 1};
    const char *path = t_temp_path("sections.npy");
    char model[4400];
    snprintf(model, sizeof model, ", groups: true, inducing_file: %s", path);
    bench b = start(N, 2, 3, model);
    fth_texts *names = NULL;
    double scale;
    memcpy(b.xy, xy, sizeof xy);
    memcpy(b.group, group, sizeof group);
    OK(fth_tensor_create(&b.data.section, b.m.mem, "S", FTH_I32, 1, (int64_t[]){N}, NULL));
    memcpy(fth_tensor_data(b.data.section), section, sizeof section);
    OK(fth_texts_create(&names, b.m.mem, NULL));
    OK(fth_texts_add(names, "a", 1, NULL));
    OK(fth_texts_add(names, "b", 1, NULL));
    OK(sp_sections_create(&b.data.sections, b.m.mem, names, NULL));
    fth_texts_free(names);
    OKE(sp_sections_arrange(&b.data.sections, b.xy, section, N, 0, "here", &scale, &b.err), &b.err);
    /* in the first section, left of the lower left corner of the second, at its other cell */
    const sp_section *of = &b.data.sections.of[1];
    const float p[6] = {b.xy[0],           b.xy[1],  (float)of->low[0] - 3,
                        (float)of->low[1], b.xy[14], b.xy[15]};
    write_points(&b, path, p, 3, 2);
    OKE(place(&b), &b.err);
    const int32_t want[3] = {1, 0, 1};
    SAME_BYTES(groups_of(&b), want, sizeof want);
    sp_sections_clear(&b.data.sections);
    fth_tensor_release(b.data.section);
    drop(&b);
}

/* ---- real cells ---- */

static void *column(fth_h5 *h5, const char *name, fth_dtype dtype)
{
    fth_source s;
    fth_err err = {0};
    OKE(fth_h5_source(h5, name, &s, &err), &err);
    EQ_STR(fth_dtype_name(s.dtype), fth_dtype_name(dtype));
    const int64_t count = s.size[0] * (s.n_axes > 1 ? s.size[1] : 1);
    void *v = malloc((size_t)(count * fth_dtype_size(dtype)));
    if (!v) FAIL("no memory");
    OKE(s.read(s.self, (int64_t[]){0, 0}, s.size, v, &err), &err);
    fth_source_close(&s);
    return v;
}

/* osmFISH with 200 points: votes leave groups out, as in the founding report. */
TEST(osmfish_keeps_every_group_and_every_point)
{
    const char *path = t_data_path("spatial/osmfish.h5ad");
    bench b = start(4839, 31, 200, ", groups: true, inducing_allocation: derived");
    fth_h5 *h5 = NULL;
    OKE(fth_h5_open(&h5, b.m.mem, path, &b.err), &b.err);
    float *xy = column(h5, "/obsm/spatial", FTH_F32);
    int8_t *code = column(h5, "/obs/ClusterName/codes", FTH_I8);
    fth_h5_close(h5);
    memcpy(b.xy, xy, 8 * 4839);
    for (int64_t i = 0; i < 4839; i++) b.n[b.group[i] = code[i]]++;
    OKE(place(&b), &b.err);
    check_counts(&b);
    bool seen[GROUPS] = {false};
    int64_t missing = 31;
    float *all = malloc(200 * 8);
    if (!all) FAIL("no memory");
    OK(sp_kmeans_run(all, b.ctx, b.xy, 4839, &(sp_kmeans){.k = 200, .seed = 42, .stream = 8}, NULL,
                     NULL));
    for (int64_t i = 0; i < 200; i++) {
        const int32_t g = voted(&b, all + 2 * i);
        missing -= !seen[g];
        seen[g] = true;
    }
    IS_TRUE(missing > 0); /* else this test would say nothing */
    free(xy), free(code), free(all);
    drop(&b);
}

TEST_MAIN()
