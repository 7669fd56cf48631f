/* test_copy.c - whole arrays from one place to another: copies, stand-ins, files at once.
 * seconds: 2 */
#include "testing/io/files.h"
#include "testing/test.h"

#include "mem/inject.h"

#include <fathom/fathom.h>

#include <string.h>

/* ---- copies ---- */

/* A sink over memory that remembers its largest piece, and can fail. */
typedef struct slow_sink {
    fth_sink to;
    int64_t most, pieces, fail_at, commits;
} slow_sink;

static fth_status count_write(void *self, const int64_t *lo, const int64_t *n, const void *src,
                              fth_err *err)
{
    slow_sink *s = self;
    int64_t elements = 1;
    for (int a = 0; a < s->to.n_axes; a++) elements *= n[a];
    if (elements > s->most) s->most = elements;
    if (++s->pieces == s->fail_at) return FTH_FAIL(err, FTH_E_FILE_WRITE, "the disk is full");
    return s->to.write(s->to.self, lo, n, src, err);
}

static fth_status count_commit(void *self, fth_err *err)
{
    (void)err;
    ((slow_sink *)self)->commits++;
    return FTH_OK;
}

static fth_sink sink_over(slow_sink *s, fth_tensor *t)
{
    s->to = fth_tensor_sink(t);
    fth_sink k = s->to;
    k.self = s;
    k.data = NULL;
    k.write = count_write;
    k.commit = count_commit;
    return k;
}

static void copies(int n_axes, const int64_t *size, uint64_t budget)
{
    fth_mem *mem = t_mem(budget), *own = t_mem(1 << 24);
    fth_tensor *a, *b;
    OK(fth_tensor_create(&a, own, "from", FTH_I32, n_axes, size, NULL));
    OK(fth_tensor_create(&b, own, "to", FTH_I32, n_axes, size, NULL));
    const int64_t n = (int64_t)fth_tensor_bytes(a) / 4;
    int32_t *v = fth_tensor_data(a);
    for (int64_t i = 0; i < n; i++) v[i] = (int32_t)(i * 7 + 1);
    memset(fth_tensor_data(b), 0, (size_t)(4 * n));
    slow_sink s = {0};
    const fth_source from = fth_tensor_source(a);
    const fth_sink to = sink_over(&s, b);
    OK(fth_source_copy(&from, &to, mem, NULL, NULL, NULL));
    SAME_BYTES(v, fth_tensor_data(b), 4 * n);
    EQ_I64(s.commits, 1);
    IS_TRUE(4 * s.most <= 256 << 10);
    fth_mem_stats now;
    fth_mem_get_stats(mem, &now);
    EQ_U64(now.used_bytes, 0);
    LE_F64(now.peak_bytes, budget);
    fth_tensor_release(a);
    fth_tensor_release(b);
    OK(fth_mem_destroy(mem, NULL));
    OK(fth_mem_destroy(own, NULL));
}

TEST(every_shape_is_copied_through_a_bounded_buffer)
{
    static const struct {
        int n_axes;
        int64_t size[4];
    } shape[] = {{0, {0}},
                 {1, {1}},
                 {1, {200001}},
                 {2, {3, 70000}},
                 {2, {70000, 3}},
                 {2, {0, 5}},
                 {2, {5, 0}},
                 {3, {2, 3, 40000}},
                 {3, {300, 1, 301}},
                 {4, {3, 5, 7, 1100}},
                 {4, {2, 2, 2, 90000}}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        copies(shape[i].n_axes, shape[i].size, 1 << 24);
        copies(shape[i].n_axes, shape[i].size, 20 << 10); /* 256 KiB are refused, a part is not */
    }
}

static bool third_time_no(void *user, const fth_progress *p)
{
    LE_F64(p->fraction, 1);
    return ++*(int *)user < 3;
}

TEST(a_copy_can_be_cancelled_or_fail_and_is_then_not_committed)
{
    fth_mem *mem = t_mem(1 << 24);
    const int64_t n = 1 << 20;
    fth_tensor *b;
    fth_err err = {0};
    OK(fth_tensor_create(&b, mem, "to", FTH_F32, 1, &n, NULL));
    const fth_source zeros = fth_source_zeros(FTH_F32, 1, &n);
    slow_sink s = {0};
    fth_sink to = sink_over(&s, b);
    int asked = 0;
    IS(fth_source_copy(&zeros, &to, mem, third_time_no, &asked, &err), FTH_E_CANCELLED);
    EQ_I64(asked, 3);
    EQ_I64(s.pieces, 3);
    s = (slow_sink){.to = s.to, .fail_at = 5};
    IS(fth_source_copy(&zeros, &to, mem, NULL, NULL, &err), FTH_E_FILE_WRITE);
    EQ_I64(s.commits, 0);
    to.size[0]--;
    err = (fth_err){0};
    IS(fth_source_copy(&zeros, &to, mem, NULL, NULL, &err), FTH_E_USAGE);
    HAS(err.text, "the sink takes");
    to.size[0]++;
    to.dtype = FTH_I32;
    IS(fth_source_copy(&zeros, &to, mem, NULL, NULL, &err), FTH_E_USAGE);
    IS(fth_source_copy(NULL, &to, mem, NULL, NULL, &err), FTH_E_USAGE);
    to.dtype = FTH_F32;
    fth_source mute = zeros;
    mute.read = NULL;
    IS(fth_source_copy(&mute, &to, mem, NULL, NULL, &err), FTH_E_USAGE);
    to.write = NULL;
    IS(fth_source_copy(&zeros, &to, mem, NULL, NULL, &err), FTH_E_USAGE);
    const fth_source number = fth_source_planned(FTH_F32, 0, NULL);
    const fth_sink gone = fth_sink_discard(FTH_F32, 0, NULL);
    IS(fth_source_copy(&number, &gone, mem, NULL, NULL, &err), FTH_E_INTERNAL);
    fth_tensor_release(b);
    fth__mem_inject(mem, 1, 0);
    const fth_sink away = fth_sink_discard(FTH_F32, 1, &n);
    err = (fth_err){0};
    IS(fth_source_copy(&zeros, &away, mem, NULL, NULL, &err), FTH_E_NOMEM);
    EQ_I64(err.status, FTH_E_NOMEM);
    fth__mem_inject(mem, 0, 0);
    OK(fth_mem_destroy(mem, NULL));
}

static bool keep_last(void *user, const fth_progress *p)
{
    IS_TRUE(p->fraction > ((const fth_progress *)user)->fraction);
    *(fth_progress *)user = *p;
    return true;
}

TEST(a_copy_says_how_far_it_is)
{
    fth_mem *mem = t_mem(1 << 24);
    const int64_t n[2] = {3, 1 << 18};
    const fth_source zeros = fth_source_zeros(FTH_F32, 2, n);
    const fth_sink away = fth_sink_discard(FTH_F32, 2, n);
    fth_progress last = {0};
    OK(fth_source_copy(&zeros, &away, mem, keep_last, &last, NULL));
    EQ_F64(last.fraction, 1);
    EQ_F64(last.remaining_s, 0);
    OK(fth_mem_destroy(mem, NULL));
}

/* ---- stand-ins ---- */

TEST(stand_ins_have_a_shape_and_no_data)
{
    const int64_t size[8] = {2, 3, 1, 2, 1, 1, 2, 2}, lo[8] = {0};
    char v[64 * 16];
    fth_err err = {0};
    for (int d = 0; d < FTH_DTYPE_COUNT; d++)
        for (int n_axes = 0; n_axes <= 8; n_axes++) {
            const fth_dtype dtype = (fth_dtype)d;
            int64_t bytes = fth_dtype_size(dtype);
            for (int a = 0; a < n_axes; a++) bytes *= size[a];
            fth_source zeros = fth_source_zeros(dtype, n_axes, size),
                       planned = fth_source_planned(dtype, n_axes, size);
            fth_sink away = fth_sink_discard(dtype, n_axes, size),
                     later = fth_sink_planned(dtype, n_axes, size);
            EQ_I64(zeros.n_axes, n_axes);
            IS_TRUE(n_axes < 2 || (planned.size[1] == 3 && away.size[1] == 3));
            memset(v, 7, sizeof v);
            OK(zeros.read(zeros.self, lo, size, v, NULL));
            for (int64_t i = 0; i < bytes; i++) EQ_I64(v[i], 0);
            if (bytes < (int64_t)sizeof v) EQ_I64(v[bytes], 7);
            OK(away.write(away.self, lo, size, v, NULL));
            IS(planned.read(planned.self, lo, size, v, &err), FTH_E_INTERNAL);
            EQ_STR(err.text, "a plan was run that was made to be looked at");
            IS(later.write(later.self, lo, size, v, &err), FTH_E_INTERNAL);
            fth_source_close(&zeros); /* nothing to free, and no harm */
            fth_source_close(&planned);
            fth_sink_close(&away);
            fth_sink_close(&later);
            IS_TRUE(!zeros.read && !later.write);
        }
}

/* ---- files at once ---- */

TEST(an_array_goes_into_a_file_and_comes_back)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("whole.npy");
    const double v[6] = {1, 2, 3, 4, 5, 6};
    fth_tensor *t = NULL;
    OK(fth_npy_save(mem, path, FTH_F64, 2, ((int64_t[]){2, 3}), v, NULL));
    OK(fth_npy_load(mem, path, "whole", &t, NULL));
    EQ_I64(fth_tensor_size(t, 1), 3);
    SAME_BYTES(fth_tensor_data(t), v, sizeof v);
    fth_tensor_release(t);
    fth__mem_inject(mem, 0, 1);
    IS(fth_npy_save(mem, path, FTH_F64, 1, ((int64_t[]){2}), v, NULL), FTH_E_FILE_WRITE);
    fth__mem_inject(mem, 0, 0);
    OK(fth_npy_load(mem, path, "the old file is still there", &t, NULL));
    EQ_I64(fth_tensor_axes(t), 2);
    fth_tensor_release(t);
    IS(fth_npy_load(mem, t_temp_path("none.npy"), "none", &t, NULL), FTH_E_FILE_OPEN);
    EQ_PTR(t, NULL);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

static fth_status save_two(fth_mem *mem, const char *path, fth_err *err)
{
    const float w[3] = {1, 2, 3};
    const int64_t step[2] = {8, 9}, three = 3, size[2] = {1, 2};
    fth_tensor *a = NULL, *b = NULL;
    fth_status s = fth_tensor_create(&a, mem, "a", FTH_F32, 1, &three, err);
    if (s == FTH_OK) s = fth_tensor_create(&b, mem, "b", FTH_I64, 2, size, err);
    if (s == FTH_OK) {
        memcpy(fth_tensor_data(a), w, sizeof w);
        memcpy(fth_tensor_data(b), step, sizeof step);
        const fth_file_tensor t[2] = {{"weights", a, "term"}, {"steps", b, NULL}};
        const fth_file_meta meta = {"who", "me"};
        s = fth_safetensors_save(mem, path, t, 2,
                                 &(fth_safetensors_options){.meta = &meta, .n_meta = 1}, err);
    }
    fth_tensor_release(a);
    fth_tensor_release(b);
    return s;
}

TEST(tensors_and_facts_are_one_file)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("model.safetensors");
    const int64_t three = 3, four = 4, size[2] = {1, 2};
    fth_safetensors *f;
    fth_tensor *a, *b, *c;
    fth_err err = {0};
    OK(save_two(mem, path, NULL));
    OK(fth_safetensors_open(&f, mem, path, NULL));
    EQ_STR(fth_safetensors_meta(f, "who"), "me");
    EQ_STR(fth_safetensors_meta(f, "axes.weights"), "term");
    OK(fth_tensor_create(&a, mem, "a", FTH_F32, 1, &three, NULL));
    OK(fth_tensor_create(&b, mem, "b", FTH_I64, 2, size, NULL));
    OK(fth_tensor_create(&c, mem, "c", FTH_F32, 1, &four, NULL));
    OK(fth_safetensors_fill(f, "weights", a, NULL));
    OK(fth_safetensors_fill(f, "steps", b, NULL));
    EQ_F64(((const float *)fth_tensor_data(a))[2], 3);
    EQ_I64(((const int64_t *)fth_tensor_data(b))[1], 9);
    IS(fth_safetensors_fill(f, "weights", c, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "'weights'");
    IS(fth_safetensors_fill(f, "steps", a, &err), FTH_E_FILE_SHAPE);
    fth_tensor *d;
    OK(fth_tensor_create(&d, mem, "d", FTH_I32, 1, &three, NULL));
    IS(fth_safetensors_fill(f, "weights", d, &err), FTH_E_FILE_SHAPE); /* as many bytes */
    fth_tensor_release(d);
    IS(fth_safetensors_fill(f, "none", a, &err), FTH_E_FILE_KEY);
    fth_tensor_release(a);
    fth_tensor_release(b);
    fth_tensor_release(c);
    fth_safetensors_close(f);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(no_request_or_write_that_fails_leaves_anything_behind)
{
    const char *path = t_temp_path("fails.safetensors");
    for (int kind = 0; kind < 2; kind++) {
        fth_status s = FTH_E_NOMEM;
        int64_t n = 1;
        for (; s != FTH_OK; n++) {
            fth_mem *mem = t_mem(1 << 24);
            fth_err err = {0};
            const int64_t files = t_file_count();
            fth__mem_inject(mem, kind == 0 ? n : 0, kind == 1 ? n : 0);
            s = save_two(mem, path, &err);
            if (s != FTH_OK) IS(s, kind == 0 ? FTH_E_NOMEM : FTH_E_FILE_WRITE);
            if (s != FTH_OK) EQ_I64(t_file_count(), files);
            if (s == FTH_OK) remove(path);
            OK(fth_mem_destroy(mem, NULL));
        }
        IS_TRUE(n > 4);
    }
}

TEST_MAIN()
