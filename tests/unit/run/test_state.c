/* test_state.c - a model or a checkpoint as one file: what comes back, what is refused, and what it
 * was made with. seconds: 1 */
#include "testing/io/files.h"
#include "testing/test.h"

#include <fathom/stage.h>

#include <math.h>
#include <string.h>

static const fth_config_key keys[] = {
    FTH_KEY(REAL, "fit.rate", "rate", .value = "0.1"),
    FTH_KEY(TEXT, "fit.name", "name", .value = "short"),
};
static const fth_schema schema = {.name = "t", .brief = "t", .key = keys, .n_keys = 2};
static const char *const tied[] = {"fit.rate", "fit.name"};

typedef struct state {
    fth_tensor *weights, *square, *loss;
    int64_t step;
    double size;
} state;
enum { ROWS = 5 };

static void rows_of(state *s, fth_state_row row[ROWS])
{
    const fth_state_row all[ROWS] = {
        {.name = "weights", .tensor = &s->weights, .dtype = FTH_F32, .axes = "term"},
        {.name = "step", .count = &s->step},
        {.name = "square", .tensor = &s->square, .dtype = FTH_F32, .axes = "term column"},
        {.name = "loss", .tensor = &s->loss, .dtype = FTH_F64, .axes = "iteration"},
        {.name = "size", .number = &s->size}};
    memcpy(row, all, sizeof all);
}

static fth_tensor *made(fth_mem *mem, fth_dtype dtype, int n_axes, int64_t a, int64_t b)
{
    fth_tensor *t = NULL;
    fth_err err = {0};
    OKE(fth_tensor_create(&t, mem, "t", dtype, n_axes, ((int64_t[]){a, b}), &err), &err);
    memset(fth_tensor_data(t), 0x3f, (size_t)fth_tensor_bytes(t));
    return t;
}

static void release(state *s)
{
    fth_tensor_release(s->weights);
    fth_tensor_release(s->square);
    fth_tensor_release(s->loss);
    *s = (state){0};
}

/* What a config with this layer ties a state to. */
static void tie(fth_mem *mem, const char *layer, int algorithm, fth_ties *t)
{
    const fth_stage stage = {.name = "fit", .algorithm = algorithm};
    fth_config *cfg = NULL;
    fth_err err = {0};
    OKE(fth_config_create(&cfg, mem, &err), &err);
    if (layer) OKE(fth_config_set(cfg, layer, &err), &err);
    OKE(fth_config_check(cfg, &schema, NULL, &err), &err);
    fth_ties_init(t, &(fth_stage_call){.stage = &stage, .config = cfg}, tied, 2);
    fth_ties_add(t, "input", NULL);
    OK(fth_config_destroy(cfg, NULL));
}

static fth_status save(fth_mem *mem, const char *path, state *s, const fth_ties *t, fth_err *err)
{
    fth_state_row row[ROWS];
    rows_of(s, row);
    return fth_state_save(mem, path, row, ROWS, t, err);
}

static fth_status load(fth_mem *mem, const char *path, state *s, const fth_ties *t, fth_err *err)
{
    fth_state_row row[ROWS];
    *s = (state){0};
    rows_of(s, row);
    return fth_state_load(mem, path, row, ROWS, t, err);
}

TEST(what_is_saved_comes_back)
{
    fth_mem *mem = t_mem(1 << 22);
    const char *path = t_temp_path("state.safetensors");
    fth_err err = {0};
    state b, a = {made(mem, FTH_F32, 1, 3, 0), made(mem, FTH_F32, 2, 3, 2),
                  made(mem, FTH_F64, 1, 7, 0), 12, 1.0 / 3};
    OKE(save(mem, path, &a, NULL, &err), &err);
    OKE(load(mem, path, &b, NULL, &err), &err);
    EQ_I64(b.step, a.step);
    EQ_F64(b.size, a.size);
    EQ_I64(fth_tensor_size(b.square, 1), 2);
    SAME_BYTES(fth_tensor_data(b.square), fth_tensor_data(a.square), fth_tensor_bytes(a.square));
    SAME_BYTES(fth_tensor_data(b.loss), fth_tensor_data(a.loss), fth_tensor_bytes(a.loss));
    release(&a);
    release(&b);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_new_one_is_zero)
{
    fth_mem *mem = t_mem(1 << 22);
    const fth_extent extent[] = {{"iteration", 7}, {"term", 3}, {"column", 2}};
    fth_state_row row[ROWS];
    fth_err err = {0};
    state s = {0};
    rows_of(&s, row);
    OKE(fth_state_create(mem, row, ROWS, extent, 3, &err), &err);
    EQ_I64(fth_tensor_size(s.square, 0), 3);
    EQ_I64(fth_tensor_size(s.square, 1), 2);
    EQ_I64(fth_tensor_size(s.loss, 0), 7);
    for (int i = 0; i < 6; i++) EQ_F64(((const float *)fth_tensor_data(s.square))[i], 0);
    release(&s);
    IS(fth_state_create(mem, row, ROWS, extent, 2, &err), FTH_E_USAGE);
    HAS(err.text, "tensor 'square' [term column]");
    IS_TRUE(!s.weights && !s.square && !s.loss);
    OK(fth_mem_destroy(mem, NULL));
}

/* Two arrays of one number of rows; the same shapes before the file exists. */
TEST(arrays_are_opened_and_planned_alike)
{
    static const fth_file_item items[] = {{"places", FTH_F32, 2, {0, 2}, "cell dim"},
                                          {"depths", FTH_F32, 1, {0}, "cell"}};
    static const struct {
        int64_t rows, columns, depths;
        fth_dtype dtype;
        bool good;
    } row[] = {{5, 2, 5, FTH_F32, true},
               {5, 2, 4, FTH_F32, false},
               {5, 3, 5, FTH_F32, false},
               {5, 2, 5, FTH_F64, false}};
    fth_mem *mem = t_mem(1 << 22);
    const char *path = t_temp_path("arrays.safetensors");
    fth_arrays a, b;
    fth_err err = {0};
    fth_arrays_plan(&b, items, 2, 5, fth_source_planned);
    for (int i = 0; i < 4; i++) {
        state s = {made(mem, FTH_F32, 2, row[i].rows, row[i].columns), NULL,
                   made(mem, row[i].dtype, 1, row[i].depths, 0), 0, 0};
        const fth_file_tensor t[] = {{"places", s.weights, NULL}, {"depths", s.loss, NULL}};
        OKE(fth_safetensors_save(mem, path, t, 2, &(fth_safetensors_options){0}, &err), &err);
        const fth_status got = fth_arrays_open(&a, mem, path, items, 2, &err);
        IS(got, row[i].good ? FTH_OK : FTH_E_FILE_SHAPE);
        if (row[i].good) {
            EQ_I64(a.rows, 5);
            EQ_I64(b.rows, 5);
            for (int k = 0; k < 2; k++) {
                EQ_I64(a.source[k].n_axes, b.source[k].n_axes);
                EQ_I64(a.source[k].size[0], b.source[k].size[0]);
                EQ_I64(a.source[k].size[1], b.source[k].size[1]);
            }
        } else {
            HAS(err.text,
                i == 2 ? "'places' should be f32 [cell dim]" : "'depths' should be f32 [cell]");
            IS_TRUE(a.file == NULL);
        }
        fth_err_clear(&err);
        fth_arrays_close(&a);
        release(&s);
    }
    fth_arrays_close(&b);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_it_was_made_with_is_compared)
{
    fth_mem *mem = t_mem(1 << 22);
    const char *path = t_temp_path("state.safetensors");
    char long_name[200], other[200];
    fth_err err = {0};
    fth_ties t;
    state b, a = {made(mem, FTH_F32, 1, 3, 0), made(mem, FTH_F32, 2, 3, 2),
                  made(mem, FTH_F64, 1, 7, 0), 12, 4};
    tie(mem, NULL, 3, &t);
    OKE(save(mem, path, &a, &t, &err), &err);
    OKE(load(mem, path, &b, &t, &err), &err);
    release(&b);
    OKE(load(mem, path, &b, NULL, &err), &err); /* any will do */
    release(&b);
    tie(mem, "fit.rate=0.2", 3, &t);
    fth_err_clear(&err);
    IS(load(mem, path, &b, &t, &err), FTH_E_STATE);
    HAS(err.text, "fit.rate was 0.1, is 0.2");
    IS_TRUE(b.weights == NULL);
    tie(mem, NULL, 4, &t);
    fth_err_clear(&err);
    IS(load(mem, path, &b, &t, &err), FTH_E_STATE);
    HAS(err.text, "algorithm was 3, is 4");
    tie(mem, NULL, 3, &t);
    fth_ties_add(&t, "more", "7");
    fth_err_clear(&err);
    IS(load(mem, path, &b, &t, &err), FTH_E_STATE);
    HAS(err.text, "more was not given, is 7");
    /* Long values that begin alike are told apart. */
    memset(long_name, 'x', sizeof long_name);
    memcpy(long_name, "fit.name=", 9);
    long_name[150] = '\0';
    memcpy(other, long_name, sizeof other);
    other[149] = 'y';
    tie(mem, long_name, 3, &t);
    OKE(save(mem, path, &a, &t, &err), &err);
    tie(mem, other, 3, &t);
    fth_err_clear(&err);
    IS(load(mem, path, &b, &t, &err), FTH_E_STATE);
    HAS(err.text, "fit.name was xxh64 ");
    while (t.n <= FTH_TIES) fth_ties_add(&t, "one too many", "");
    fth_err_clear(&err);
    IS(load(mem, path, &b, &t, &err), FTH_E_USAGE);
    fth_err_clear(&err);
    IS(save(mem, path, &a, &t, &err), FTH_E_USAGE);
    release(&a);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(other_shapes_are_refused)
{
    fth_mem *mem = t_mem(1 << 22);
    const char *path = t_temp_path("state.safetensors");
    fth_err err = {0};
    state b;
    state bad[] = {
        {made(mem, FTH_F32, 1, 3, 0), made(mem, FTH_F32, 2, 4, 2), made(mem, FTH_F64, 1, 7, 0), 1,
         4},
        {made(mem, FTH_F64, 1, 3, 0), made(mem, FTH_F32, 2, 3, 2), made(mem, FTH_F64, 1, 7, 0), 1,
         4},
        {made(mem, FTH_F32, 1, 3, 0), made(mem, FTH_F32, 1, 3, 0), made(mem, FTH_F64, 1, 7, 0), 1,
         4},
        {made(mem, FTH_F32, 1, 3, 0), made(mem, FTH_F32, 2, 3, 2), made(mem, FTH_F64, 2, 7, 1), 1,
         4},
    };
    static const char *const text[] = {
        "tensor 'square' should be f32 [term column]", "tensor 'weights' should be f32 [term]",
        "tensor 'square' should be", "tensor 'loss' should be f64 [iteration]"};
    for (int i = 0; i < 4; i++) {
        const fth_file_tensor tensor[] = {{"weights", bad[i].weights, NULL},
                                          {"square", bad[i].square, NULL},
                                          {"loss", bad[i].loss, NULL}};
        const fth_file_meta meta[] = {{"step", "1"}, {"size", "4"}};
        const fth_safetensors_options opt = {.meta = meta, .n_meta = 2};
        fth_err_clear(&err);
        OKE(fth_safetensors_save(mem, path, tensor, 3, &opt, &err), &err);
        IS(load(mem, path, &b, NULL, &err), FTH_E_FILE_SHAPE);
        HAS(err.text, text[i]);
        IS_TRUE(!b.weights && !b.square && !b.loss);
        release(&bad[i]);
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* As another program may have written it. */
TEST(an_empty_axis_is_refused)
{
    fth_mem *mem = t_mem(1 << 22);
    const char *path = t_temp_path("state.safetensors");
    const fth_file_item item = {.name = "loss", .dtype = FTH_F64, .n_axes = 1};
    fth_tensor *loss = NULL;
    fth_err err = {0};
    fth_safetensors_writer *w = NULL;
    fth_sink sink;
    OKE(fth_safetensors_create(&w, mem, path, &item, 1, NULL, &err), &err);
    OKE(fth_safetensors_sink(w, "loss", &sink, &err), &err);
    OKE(sink.commit(sink.self, &err), &err);
    OKE(fth_safetensors_commit(w, &err), &err);
    const fth_state_row row = {
        .name = "loss", .tensor = &loss, .dtype = FTH_F64, .axes = "iteration"};
    IS(fth_state_load(mem, path, &row, 1, NULL, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "tensor 'loss' should be f64 [iteration]");
    OK(fth_mem_destroy(mem, NULL));
}

/* A number that is missing, and a byte that was changed. */
TEST(damage_is_found)
{
    fth_mem *mem = t_mem(1 << 22);
    const char *path = t_temp_path("state.safetensors");
    fth_err err = {0};
    state b, a = {made(mem, FTH_F32, 1, 3, 0), made(mem, FTH_F32, 2, 3, 2),
                  made(mem, FTH_F64, 1, 7, 0), 12, 4};
    fth_state_row row[ROWS];
    rows_of(&a, row);
    OKE(fth_state_save(mem, path, row, ROWS - 1, NULL, &err), &err);
    fth_err_clear(&err);
    IS(load(mem, path, &b, NULL, &err), FTH_E_FILE_KEY);
    HAS(err.text, "size is expected to be a number, found nothing");
    row[1] = (fth_state_row){.name = "step", .number = &a.size};
    a.size = 0.5;
    fth_err_clear(&err);
    OKE(fth_state_save(mem, path, row, ROWS, NULL, &err), &err);
    IS(load(mem, path, &b, NULL, &err), FTH_E_FILE_KEY); /* half a step */
    fth_err_clear(&err);
    OKE(save(mem, path, &a, NULL, &err), &err);
    size_t bytes = 0;
    unsigned char *data = t_file_read(path, &bytes);
    data[bytes - 1] ^= 1;
    t_file_write(path, data, bytes);
    free(data);
    fth_err_clear(&err);
    IS_TRUE(load(mem, path, &b, NULL, &err) != FTH_OK);
    HAS(err.text, "xxh64");
    release(&a);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
