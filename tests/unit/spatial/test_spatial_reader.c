/* test_spatial_reader.c - batches of counts, read ahead: from memory or from the file the same.
 * seconds: 3
 */
#include "instruments/spatial/data/data.h"
#include "testing/spatial/spatial_data.h"
#include "testing/test.h"

#include <math.h>
#include <unistd.h>

enum { N = 211, D = 37, CELLS = 60, GENES = 9 };

/* Counts of a folder, dense: some rows empty, one full, fractions and large ones among them. */
static void make_counts(float *y)
{
    t_random r = t_random_make(1);
    for (int i = 0; i < N; i++)
        for (int g = 0; g < D; g++) {
            const bool stored = i == 17 || (i % 10 != 3 && t_random_f64(&r) < 0.3);
            const int64_t kind = t_random_i64(&r, 0, 9);
            y[i * D + g] = !stored     ? 0.0f
                           : kind == 0 ? 0.5f + (float)t_random_i64(&r, 0, 3)
                           : kind == 1 ? (float)t_random_i64(&r, 1000, 1000000)
                                       : (float)t_random_i64(&r, 1, 9);
        }
}

static const char *folder(const float *y)
{
    float xy[2 * N];
    int64_t group[N];
    for (int i = 0; i < N; i++) {
        xy[2 * i] = (float)i;
        xy[2 * i + 1] = (float)(i % 7);
        group[i] = i % 3;
    }
    const char *dir = t_temp_path("cells");
    t_spatial_write(dir, xy, y, group, N, D, 3);
    return dir;
}

typedef struct bench {
    fth_mem *mem;
    sp_data data;
    float y[N * D];
} bench;

static void bench_open(bench *b)
{
    fth_err err = {0};
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = 64u << 20;
    OKE(fth_mem_create(&b->mem, &opt, &err), &err);
    make_counts(b->y);
    OKE(sp_data_open(&b->data, b->mem, folder(b->y), &err), &err);
}

static void bench_close(bench *b)
{
    fth_err err = {0};
    sp_data_close(&b->data);
    OKE(fth_mem_destroy(b->mem, &err), &err);
}

/* Distinct numbers below `most`, in no order. */
static void choose(t_random *r, int64_t *list, int64_t n, int64_t most)
{
    int64_t all[N];
    for (int64_t i = 0; i < most; i++) all[i] = i;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = t_random_i64(r, i, most - 1), t = all[k];
        all[k] = all[i];
        list[i] = all[i] = t;
    }
}

/* A batch against the dense counts. */
static void check(const bench *b, const sp_counts *c, const int64_t *cell, int64_t cells,
                  const int64_t *gene, int64_t genes)
{
    const int64_t *row_ptr = fth_tensor_data(c->row_ptr);
    const int32_t *place = fth_tensor_data(c->gene);
    const float *value = fth_tensor_data(c->value);
    double constant = 0.0;
    EQ_I64(row_ptr[0], 0);
    for (int64_t i = 0; i < cells; i++) {
        float row[D] = {0};
        const int64_t at = cell ? cell[i] : i, from = b->data.row ? b->data.row[at] : at;
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++) {
            IS_TRUE(place[k] >= 0 && place[k] < genes);
            EQ_F64(row[place[k]], 0.0);
            row[place[k]] = value[k];
            constant += lgamma((double)value[k] + 1.0);
        }
        for (int64_t g = 0; g < genes; g++) EQ_F64(row[g], b->y[from * D + (gene ? gene[g] : g)]);
    }
    NEAR(c->constant, constant, 1e-12 * (1.0 + constant));
    EQ_I64(fth_tensor_size(c->row_ptr, 0), cells + 1);
    IS_TRUE(fth_tensor_size(c->gene, 0) <= sp_reader_entries(&b->data.size, cells, genes));
}

static void same(const sp_counts *a, const sp_counts *b, int64_t cells)
{
    const int64_t n = ((int64_t *)fth_tensor_data(a->row_ptr))[cells];
    SAME_BYTES(fth_tensor_data(a->row_ptr), fth_tensor_data(b->row_ptr), 8 * (cells + 1));
    SAME_BYTES(fth_tensor_data(a->gene), fth_tensor_data(b->gene), 4 * n);
    SAME_BYTES(fth_tensor_data(a->value), fth_tensor_data(b->value), 4 * n);
    SAME_BYTES(&a->constant, &b->constant, sizeof a->constant);
}

static void batches_of(bench *b, int threads)
{
    fth_err err = {0};
    t_random r = t_random_make(2);
    sp_reader *memory = NULL, *file = NULL;
    OKE(sp_reader_create(&memory, &b->data, CELLS, GENES, 1u << 20, &err), &err);
    if (threads > 1) OKE(sp_reader_share(memory, threads, &err), &err);
    OKE(sp_reader_create(&file, &b->data, CELLS, GENES, 0, &err), &err);
    int64_t cell[2][CELLS], gene[2][GENES];
    sp_counts one[2], other;
    for (int k = 0; k < 12; k++) {
        const int now = k % 2, before = 1 - now;
        choose(&r, cell[now], CELLS, b->data.size.cells);
        choose(&r, gene[now], GENES, D);
        OKE(sp_reader_ask(memory, cell[now], gene[now], &err), &err);
        OKE(sp_reader_ask(file, cell[now], gene[now], &err), &err);
        if (k > 0) check(b, &one[before], cell[before], CELLS, gene[before], GENES); /* in use */
        OKE(sp_reader_take(memory, &one[now], &err), &err);
        OKE(sp_reader_take(file, &other, &err), &err);
        check(b, &one[now], cell[now], CELLS, gene[now], GENES);
        same(&one[now], &other, CELLS);
    }
    sp_reader_destroy(memory);
    sp_reader_destroy(file);
}

TEST(batches_from_memory_and_from_the_file)
{
    bench b;
    bench_open(&b);
    for (int threads = 1; threads < 5; threads++) batches_of(&b, threads);
    bench_close(&b);
}

TEST(batches_of_chosen_cells)
{
    fth_err err = {0};
    bench b;
    int64_t row[N], n = 0;
    for (int64_t i = 0; i < N; i++)
        if (i % 3 != 1) row[n++] = i;
    bench_open(&b);
    OKE(sp_data_choose(&b.data, row, n, &err), &err);
    for (int threads = 1; threads < 5; threads++) batches_of(&b, threads);
    bench_close(&b);
}

TEST(all_of_it_is_gathered_once)
{
    fth_err err = {0};
    bench b;
    bench_open(&b);
    for (int resident = 0; resident < 2; resident++) {
        sp_reader *r = NULL;
        sp_counts c, again;
        OKE(sp_reader_create(&r, &b.data, N, D, resident ? 1u << 20 : 0, &err), &err);
        OKE(sp_reader_ask(r, NULL, NULL, &err), &err);
        OKE(sp_reader_take(r, &c, &err), &err);
        check(&b, &c, NULL, N, NULL, D);
        OKE(sp_reader_ask(r, NULL, NULL, &err), &err);
        OKE(sp_reader_take(r, &again, &err), &err);
        EQ_PTR(c.value, again.value);
        int64_t turned[N];
        for (int i = 0; i < N; i++) turned[i] = N - 1 - i;
        OKE(sp_reader_ask(r, turned, NULL, &err), &err);
        OKE(sp_reader_take(r, &c, &err), &err);
        check(&b, &c, turned, N, NULL, D);
        check(&b, &again, NULL, N, NULL, D);
        OKE(sp_reader_ask(r, NULL, NULL, &err), &err);
        OKE(sp_reader_take(r, &c, &err), &err);
        check(&b, &c, NULL, N, NULL, D);
        sp_reader_destroy(r);
    }
    bench_close(&b);
}

/* What a plan sets apart is enough, and not far from what is taken. */
TEST(bytes_are_bounded_beforehand)
{
    fth_err err = {0};
    bench b;
    bench_open(&b);
    const uint64_t limits[] = {0, 1u << 20};
    for (int k = 0; k < 2; k++)
        for (int some = 0; some < 2; some++) {
            const int64_t cells = some ? CELLS : N, genes = some ? GENES : D;
            fth_mem_stats before, after;
            fth_mem_get_stats(b.mem, &before);
            fth_mem_mark(b.mem);
            sp_reader *r = NULL;
            OKE(sp_reader_create(&r, &b.data, cells, genes, limits[k], &err), &err);
            fth_mem_get_stats(b.mem, &after);
            const uint64_t most = sp_reader_bytes(&b.data.size, cells, genes, limits[k]);
            IS_TRUE(after.peak_bytes - before.used_bytes <= most);
            IS_TRUE(after.peak_bytes - before.used_bytes + 100000 > most);
            sp_reader_destroy(r);
        }
    bench_close(&b);
}

TEST(wrong_questions_are_refused)
{
    fth_err err = {0};
    bench b;
    sp_reader *r = NULL;
    sp_counts c;
    int64_t cell[CELLS], gene[GENES];
    t_random random = t_random_make(3);
    bench_open(&b);
    IS(sp_reader_create(&r, &b.data, N + 1, GENES, 0, &err), FTH_E_USAGE);
    IS(sp_reader_create(&r, &b.data, CELLS, 0, 0, &err), FTH_E_USAGE);
    EQ_PTR(r, NULL);
    fth_err_clear(&err);
    OKE(sp_reader_create(&r, &b.data, CELLS, GENES, 0, &err), &err);
    choose(&random, cell, CELLS, N);
    choose(&random, gene, GENES, D);
    IS(sp_reader_take(r, &c, NULL), FTH_E_USAGE);
    IS(sp_reader_ask(r, NULL, gene, NULL), FTH_E_USAGE);
    IS(sp_reader_ask(r, cell, NULL, NULL), FTH_E_USAGE);
    cell[5] = N;
    IS(sp_reader_ask(r, cell, gene, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "place 5 of the batch asks for cell 211");
    fth_err_clear(&err);
    cell[5] = -1;
    IS(sp_reader_ask(r, cell, gene, NULL), FTH_E_INDEX_RANGE);
    cell[5] = 0;
    gene[3] = gene[8];
    IS(sp_reader_ask(r, cell, gene, &err), FTH_E_USAGE);
    HAS(err.text, "twice");
    fth_err_clear(&err);
    choose(&random, gene, GENES, D);
    choose(&random, cell, CELLS, N);
    OKE(sp_reader_ask(r, cell, gene, &err), &err);
    IS(sp_reader_ask(r, cell, gene, NULL), FTH_E_USAGE);
    OKE(sp_reader_take(r, &c, &err), &err);
    check(&b, &c, cell, CELLS, gene, GENES);
    for (int i = 0; i < CELLS; i++) cell[i] = 17; /* the full row, sixty times */
    OKE(sp_reader_ask(r, cell, gene, &err), &err);
    IS(sp_reader_take(r, &c, &err), FTH_OK); /* no row has more, so there is room for that too */
    OKE(sp_reader_ask(r, cell, gene, &err), &err);
    sp_reader_destroy(r); /* in the middle of it */
    bench_close(&b);
}

/* ---- files that are not as they should be ---- */

/* Y.npz of four rows with these entries, in the place of the folder's. */
static void write_rows(fth_mem *mem, const char *dir, const int64_t *row_ptr, const int32_t *col,
                       const float *val)
{
    fth_err err = {0};
    fth_csr_writer *w = NULL;
    char path[FTH_PATH];
    OKE(fth_path_join(path, dir, SP_Y, &err), &err);
    OKE(fth_csr_create_npz(&w, mem, path, 4, 3, row_ptr[4], FTH_F32, &err), &err);
    OKE(fth_csr_append(w, 4, row_ptr, col, val, &err), &err);
    OKE(fth_csr_commit(w, &err), &err);
}

static const char *small_folder(fth_mem *mem, const float *val)
{
    const float xy[8] = {0, 0, 1, 0, 0, 1, 1, 1}, y[12] = {1};
    const int64_t group[4] = {0}, row_ptr[5] = {0, 3, 3, 6, 7};
    const int32_t col[7] = {2, 0, 2, 1, 1, 1, 0};
    const char *dir = t_temp_path("small");
    t_spatial_write(dir, xy, y, group, 4, 3, 1);
    write_rows(mem, dir, row_ptr, col, val);
    return dir;
}

TEST(entries_of_one_place_are_added_and_zeros_left_out)
{
    fth_err err = {0};
    fth_mem *mem = NULL;
    sp_data d;
    sp_reader *r = NULL;
    sp_counts c;
    OKE(fth_mem_create(&mem, NULL, &err), &err);
    const float val[7] = {1, 5, 2, 0, 3, 4, 0};
    OKE(sp_data_open(&d, mem, small_folder(mem, val), &err), &err);
    OKE(sp_reader_create(&r, &d, 4, 3, 0, &err), &err);
    OKE(sp_reader_ask(r, NULL, NULL, &err), &err);
    OKE(sp_reader_take(r, &c, &err), &err);
    const int64_t row_ptr[5] = {0, 2, 2, 3, 3};
    const int32_t gene[3] = {2, 0, 1};
    const float value[3] = {3, 5, 7};
    SAME_BYTES(fth_tensor_data(c.row_ptr), row_ptr, sizeof row_ptr);
    SAME_BYTES(fth_tensor_data(c.gene), gene, sizeof gene);
    SAME_BYTES(fth_tensor_data(c.value), value, sizeof value);
    NEAR(c.constant, lgamma(4) + lgamma(6) + lgamma(8), 1e-12);
    sp_reader_destroy(r);
    sp_data_close(&d);
    OKE(fth_mem_destroy(mem, &err), &err);
}

TEST(counts_that_are_none_are_named)
{
    const float wrong[] = {-1.0f, NAN, INFINITY};
    for (int k = 0; k < 3; k++) {
        fth_err err = {0};
        fth_mem *mem = NULL;
        sp_data d;
        sp_reader *r = NULL;
        sp_counts c;
        OKE(fth_mem_create(&mem, NULL, &err), &err);
        const float val[7] = {1, 5, 2, 1, wrong[k], 1, 1};
        OKE(sp_data_open(&d, mem, small_folder(mem, val), &err), &err);
        OKE(sp_reader_create(&r, &d, 4, 3, 1u << 20, &err), &err);
        OKE(sp_reader_ask(r, NULL, NULL, &err), &err);
        IS(sp_reader_take(r, &c, &err), FTH_E_FILE_FORMAT);
        HAS(err.text, "cell 2, gene 1 (gene1)");
        HAS(err.text, SP_Y);
        fth_err_clear(&err);
        int64_t good[] = {0, 1, 3, 1}; /* the next batch is read all the same */
        OKE(sp_reader_ask(r, good, NULL, &err), &err);
        OKE(sp_reader_take(r, &c, &err), &err);
        EQ_I64(((int64_t *)fth_tensor_data(c.row_ptr))[4], 3);
        sp_reader_destroy(r);
        sp_data_close(&d);
        OKE(fth_mem_destroy(mem, &err), &err);
    }
}

TEST(a_file_cut_short_is_told)
{
    fth_err err = {0};
    bench b;
    sp_reader *r = NULL;
    sp_counts c;
    char path[FTH_PATH];
    bench_open(&b);
    OKE(fth_path_join(path, b.data.dir, SP_Y, &err), &err);
    OKE(sp_reader_create(&r, &b.data, N, D, 0, &err), &err);
    IS_TRUE(truncate(path, 4000) == 0);
    OKE(sp_reader_ask(r, NULL, NULL, &err), &err);
    const fth_status s = sp_reader_take(r, &c, &err);
    IS_TRUE(s == FTH_E_FILE_SHORT || s == FTH_E_FILE_READ || s == FTH_E_FILE_FORMAT);
    HAS(err.text, SP_Y);
    sp_reader_destroy(r);
    fth_err_clear(&err);
    IS_TRUE(sp_reader_create(&r, &b.data, N, D, 1u << 20, &err) != FTH_OK);
    EQ_PTR(r, NULL);
    bench_close(&b);
}

/* Every request of memory fails once. */
TEST(without_memory)
{
    bench whole;
    bench_open(&whole);
    for (int resident = 0; resident < 2; resident++) {
        int64_t failed = 0;
        for (int64_t n = 1;; n++) {
            fth_err err = {0};
            fth_mem_options opt;
            fth_mem_options_default(&opt);
            opt.budget_bytes = 64u << 20;
            opt.fail_alloc = n;
            fth_mem *mem = NULL;
            sp_reader *r = NULL;
            sp_counts c;
            OKE(fth_mem_create(&mem, &opt, &err), &err);
            sp_data d = whole.data; /* opened with other memory: only the reader's can fail */
            d.mem = mem;
            const fth_status s =
                sp_reader_create(&r, &d, CELLS, GENES, resident ? 1u << 20 : 0, &err);
            if (s == FTH_OK) {
                int64_t cell[CELLS], gene[GENES];
                t_random random = t_random_make(9);
                choose(&random, cell, CELLS, N);
                choose(&random, gene, GENES, D);
                OKE(sp_reader_ask(r, cell, gene, &err), &err);
                OKE(sp_reader_take(r, &c, &err), &err);
                check(&whole, &c, cell, CELLS, gene, GENES);
            } else {
                failed++;
                EQ_PTR(r, NULL);
                EQ_I64(s, FTH_E_NOMEM);
            }
            sp_reader_destroy(r);
            fth_err_clear(&err);
            OKE(fth_mem_destroy(mem, &err), &err); /* nothing is left */
            if (s == FTH_OK) break;
        }
        IS_TRUE(failed >= 14);
    }
    bench_close(&whole);
}

TEST_MAIN()
