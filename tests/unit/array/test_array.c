/* test_array.c - dtypes from their table, tensors and who frees them, rectangles of memory.
 * seconds: 1 */
#include "testing/test.h"

#include <fathom/array.h>

#include "array/rect.h"
#include "mem/inject.h"

static fth_mem *mem_of(uint64_t budget)
{
    fth_mem_options opt;
    fth_mem_options_default(&opt);
    opt.budget_bytes = budget;
    fth_mem *mem = NULL;
    OK(fth_mem_create(&mem, &opt, NULL));
    return mem;
}

TEST(dtypes_know_their_names_and_sizes)
{
    const struct {
        const char *name;
        int64_t bytes;
    } wanted[] = {{"bool", 1},  {"u8", 1},   {"u16", 2}, {"i32", 4}, {"i64", 8},
                  {"f16", 2},   {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"c64", 8},
                  {"c128", 16}, {"u32", 4},  {"i16", 2}, {"i8", 1}};
    EQ_I64(FTH_DTYPE_COUNT, (int64_t)(sizeof wanted / sizeof wanted[0]));
    for (int t = 0; t < FTH_DTYPE_COUNT; t++) {
        EQ_STR(fth_dtype_name((fth_dtype)t), wanted[t].name);
        EQ_I64(fth_dtype_size((fth_dtype)t), wanted[t].bytes);
        fth_dtype back = FTH_DTYPE_COUNT;
        IS_TRUE(fth_dtype_parse(wanted[t].name, &back));
        EQ_I64(back, t);
        const int kinds = fth_dtype_is_int((fth_dtype)t) + fth_dtype_is_real((fth_dtype)t) +
                          fth_dtype_is_complex((fth_dtype)t);
        EQ_I64(kinds, t == FTH_BOOL ? 0 : 1);
    }
    fth_dtype same = FTH_I32;
    IS_TRUE(!fth_dtype_parse("float32", &same));
    IS_TRUE(!fth_dtype_parse("", &same));
    IS_TRUE(!fth_dtype_parse(NULL, &same));
    EQ_I64(same, FTH_I32);
    EQ_STR(fth_dtype_name(FTH_DTYPE_COUNT), "?");
    EQ_I64(fth_dtype_real_of(FTH_C64), FTH_F32);
    EQ_I64(fth_dtype_real_of(FTH_C128), FTH_F64);
    EQ_I64(fth_dtype_real_of(FTH_I32), FTH_I32);
    EQ_I64(fth_dtype_complex_of(FTH_F32), FTH_C64);
    EQ_I64(fth_dtype_complex_of(FTH_F64), FTH_C128);
    EQ_I64(fth_dtype_complex_of(FTH_BOOL), FTH_BOOL);
}

TEST(a_tensor_lives_until_its_last_release)
{
    fth_mem *mem = mem_of(1 << 20);
    fth_tensor *t = NULL;
    OK(fth_tensor_create(&t, mem, "weights", FTH_F32, 2, ((int64_t[]){3, 4}), NULL));
    EQ_I64(fth_tensor_axes(t), 2);
    EQ_I64(fth_tensor_size(t, 1), 4);
    EQ_I64(fth_tensor_size(t, 2), 0);
    EQ_U64(fth_tensor_bytes(t), 48);
    fth_mem_block b;
    IS_TRUE(fth_mem_find(mem, fth_tensor_data(t), &b));
    EQ_STR(b.label, "weights");
    HAS(b.site.file, "test_array.c");
    fth_tensor *other = fth_tensor_retain(t);
    fth_tensor_release(t);
    IS_TRUE(fth_mem_find(mem, fth_tensor_data(other), &b));
    fth_tensor_release(other);
    fth_tensor_release(NULL);
    OK(fth_mem_destroy(mem, NULL));
}

static void count_drop(void *user)
{
    ++*(int *)user;
}

TEST(wrapped_memory_is_counted_and_never_freed)
{
    fth_mem *mem = mem_of(1 << 20);
    double v[6] = {0};
    int drops = 0;
    fth_tensor *t = NULL;
    OK(fth_tensor_wrap_(&t, mem, FTH_HERE, "mine", FTH_F64, 1, ((int64_t[]){6}), v, count_drop,
                        &drops, NULL));
    fth_mem_stats stats;
    fth_mem_get_stats(mem, &stats);
    EQ_U64(stats.by_how[FTH_MEM_FOREIGN], 48);
    EQ_I64(drops, 0);
    fth_tensor_release(t);
    EQ_I64(drops, 1);
    IS(fth_tensor_wrap(&t, mem, "null", FTH_F64, 1, ((int64_t[]){6}), NULL, NULL), FTH_E_USAGE);
    OK(fth_tensor_wrap(&t, mem, "empty", FTH_F64, 1, ((int64_t[]){0}), NULL, NULL));
    fth_tensor_release(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(sizes_that_make_no_sense_are_refused)
{
    fth_mem *mem = mem_of(1 << 20);
    fth_tensor *t = NULL;
    fth_err err = {0};
    IS(fth_tensor_create(&t, mem, "x", FTH_F32, 1, ((int64_t[]){-1}), &err), FTH_E_USAGE);
    HAS(err.text, "-1");
    EQ_PTR(t, NULL);
    fth_err_clear(&err);
    const int64_t huge[3] = {INT64_C(1) << 31, INT64_C(1) << 31, 4};
    IS(fth_tensor_create(&t, mem, "x", FTH_F32, 3, huge, &err), FTH_E_SIZE_OVERFLOW);
    HAS(err.text, "f32 [2147483648 2147483648 4]");
    /* An empty array with axes whose product overflows has no strides either. */
    const int64_t empty[4] = {INT64_C(1) << 31, INT64_C(1) << 31, 4, 0};
    IS(fth_tensor_create(&t, mem, "x", FTH_F32, 4, empty, NULL), FTH_E_SIZE_OVERFLOW);
    IS(fth_tensor_create(&t, mem, "x", FTH_F32, 9, empty, NULL), FTH_E_AXIS_LIMIT);
    IS(fth_tensor_create(&t, mem, "x", FTH_F32, 1, ((int64_t[]){1 << 20}), NULL), FTH_E_BUDGET);
    OK(fth_mem_destroy(mem, NULL));
}

/* Property: a rectangle read and written through runs is the one an index loop takes. */
TEST(rectangles_agree_with_an_index_loop)
{
    fth_mem *mem = mem_of(1 << 24);
    t_random rnd = t_random_make(1);
    for (int rep = 0; rep < 300; rep++) {
        const int axes = (int)t_random_i64(&rnd, 0, 4);
        int64_t size[4], lo[4], n[4], count = 1, total = 1;
        for (int a = 0; a < axes; a++) {
            size[a] = t_random_i64(&rnd, 0, 5);
            lo[a] = t_random_i64(&rnd, 0, size[a]);
            n[a] = t_random_i64(&rnd, 0, size[a] - lo[a]);
            if (t_random_i64(&rnd, 0, 2) == 0) lo[a] = 0, n[a] = size[a];
            count *= n[a];
            total *= size[a];
        }
        fth_tensor *t = NULL, *u = NULL;
        OK(fth_tensor_create(&t, mem, "t", FTH_I32, axes, size, NULL));
        OK(fth_tensor_create(&u, mem, "u", FTH_I32, axes, size, NULL));
        int32_t *v = fth_tensor_data(t), *w = fth_tensor_data(u), got[700];
        for (int64_t i = 0; i < total; i++) v[i] = (int32_t)i, w[i] = -1;
        const fth_source source = fth_tensor_source(t);
        OK(source.read(source.self, lo, n, got, NULL));
        const fth_sink sink = fth_tensor_sink(u);
        OK(sink.write(sink.self, lo, n, got, NULL));
        int64_t taken = 0, inside = 0;
        for (int64_t i = 0; i < total; i++) { /* i in row-major order is also the order of dst */
            int64_t rest = i;
            bool in = true;
            for (int a = axes; a-- > 0;) {
                const int64_t at = rest % size[a];
                rest /= size[a];
                in = in && at >= lo[a] && at < lo[a] + n[a];
            }
            if (in) EQ_I64(got[taken++], i);
            EQ_I64(w[i], in ? (int32_t)i : -1);
            inside += in;
        }
        EQ_I64(inside, count);
        fth_tensor_release(t);
        fth_tensor_release(u);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* What makes reading whole rows one read and not one per row. */
TEST(axes_taken_whole_are_merged_into_one_run)
{
    const int64_t size[3] = {5, 4, 3};
    fth__runs r;
    fth__runs_start(&r, 3, size, ((int64_t[]){1, 0, 0}), ((int64_t[]){2, 4, 3}));
    IS_TRUE(fth__runs_next(&r));
    EQ_I64(r.start, 12);
    EQ_I64(r.length, 24);
    IS_TRUE(!fth__runs_next(&r));
    fth__runs_start(&r, 3, size, ((int64_t[]){1, 1, 0}), ((int64_t[]){2, 2, 3}));
    EQ_I64(r.left, 2);
    EQ_I64(r.gap, 6);
}

TEST(rows_come_in_the_order_of_the_list)
{
    fth_mem *mem = mem_of(1 << 20);
    fth_tensor *t = NULL;
    OK(fth_tensor_create(&t, mem, "t", FTH_U16, 2, ((int64_t[]){5, 2}), NULL));
    uint16_t *v = fth_tensor_data(t), got[12];
    for (int i = 0; i < 10; i++) v[i] = (uint16_t)i;
    const fth_source s = fth_tensor_source(t);
    const int64_t index[6] = {3, 4, 0, 0, 2, 1};
    OK(s.read_rows(s.self, index, 6, got, NULL));
    for (int i = 0; i < 6; i++) {
        EQ_I64(got[2 * i], 2 * index[i]);
        EQ_I64(got[2 * i + 1], 2 * index[i] + 1);
    }
    fth_err err = {0};
    IS(s.read_rows(s.self, ((int64_t[]){1, 5}), 2, got, &err), FTH_E_INDEX_RANGE);
    HAS(err.text, "row 5");
    HAS(err.text, "0 to 4");
    IS(s.read(s.self, ((int64_t[]){4, 0}), ((int64_t[]){2, 2}), got, NULL), FTH_E_USAGE);
    IS(s.read(s.self, ((int64_t[]){-1, 0}), ((int64_t[]){2, 2}), got, NULL), FTH_E_USAGE);
    fth_tensor_release(t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(scalars_are_read_anew_every_time)
{
    double rate = 0.5, got = 0;
    const fth_source s = fth_scalar_source(FTH_F64, &rate);
    EQ_I64(s.n_axes, 0);
    EQ_PTR(s.data, &rate);
    OK(s.read(s.self, NULL, NULL, &got, NULL));
    EQ_F64(got, 0.5);
    rate = 0.25;
    OK(s.read(s.self, NULL, NULL, &got, NULL));
    EQ_F64(got, 0.25);
    uint8_t three[3] = {7, 7, 7};
    const fth_sink k = fth_scalar_sink(FTH_U8, &three[1]);
    OK(k.write(k.self, NULL, NULL, &(uint8_t){9}, NULL));
    EQ_I64(three[0], 7);
    EQ_I64(three[1], 9);
    EQ_I64(three[2], 7);
}

TEST(no_memory_leaves_nothing_behind)
{
    double v[4];
    for (int64_t fail = 1;; fail++) {
        fth_mem *mem = mem_of(1 << 20);
        fth__mem_inject(mem, fail, 0);
        fth_tensor *t = NULL, *w = NULL;
        fth_status s = fth_tensor_create(&t, mem, "t", FTH_F32, 1, ((int64_t[]){8}), NULL);
        if (s == FTH_OK) s = fth_tensor_wrap(&w, mem, "w", FTH_F64, 1, ((int64_t[]){4}), v, NULL);
        fth_tensor_release(t);
        fth_tensor_release(w);
        ONE_OF(s, FTH_OK, FTH_E_NOMEM);
        OK(fth_mem_destroy(mem, NULL));
        if (s == FTH_OK) break;
    }
}

TEST_MAIN()
