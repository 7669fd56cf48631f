/* test_safetensors.c - checkpoints: strict reading, exact writing, damage found, the old file kept.
 * seconds: 2 */
#include "testing/io/files.h"

#include <inttypes.h>

static fth_safetensors *open_file(fth_mem *mem, const char *path)
{
    fth_safetensors *f = NULL;
    fth_err err = {0};
    OKE(fth_safetensors_open(&f, mem, path, &err), &err);
    return f;
}

TEST(a_file_of_another_program)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_safetensors *f = open_file(mem, GOLDEN("plain.safetensors"));
    EQ_I64(fth_safetensors_count(f), 5);
    const struct {
        const char *name;
        fth_dtype dtype;
        int64_t count;
    } t[] = {{"weight", FTH_F32, 12},
             {"step", FTH_I64, 1},
             {"mask", FTH_BOOL, 5},
             {"half", FTH_F16, 4},
             {"wave", FTH_C64, 6}};
    for (int i = 0; i < 5; i++) {
        EQ_STR(fth_safetensors_name(f, i), t[i].name);
        fth_source s;
        fth_tensor *v = NULL;
        OK(fth_safetensors_source(f, t[i].name, &s, NULL));
        EQ_I64(s.dtype, t[i].dtype);
        OK(fth_source_load(&s, mem, t[i].name, &v, NULL));
        t_golden_check(t[i].dtype, t[i].count, fth_tensor_data(v));
        t_source_check(&s, fth_tensor_data(v), 5, 20);
        fth_tensor_release(v);
        fth_source_close(&s);
    }
    EQ_PTR(fth_safetensors_name(f, 5), NULL);
    EQ_STR(fth_safetensors_meta(f, "axes.weight"), "cell factor");
    EQ_STR(fth_safetensors_meta(f, "made by"), "struct and json");
    EQ_PTR(fth_safetensors_meta(f, "axes"), NULL);
    EQ_I64(fth_safetensors_meta_count(f), 2);
    const char *key = NULL;
    EQ_STR(fth_safetensors_meta_at(f, 1, &key), "struct and json");
    EQ_STR(key, "made by");
    int64_t checked = -1;
    OK(fth_safetensors_verify(f, &checked, NULL));
    EQ_I64(checked, 0);
    fth_source s;
    fth_err err = {0};
    IS(fth_safetensors_source(f, "weights", &s, &err), FTH_E_FILE_KEY);
    HAS(err.text, "'weights'");
    HAS(err.text, "weight, step, mask");
    fth_safetensors_close(f);
    OK(fth_mem_destroy(mem, NULL));
}

static const fth_file_item items[] = {
    {.name = "b", .dtype = FTH_U8, .n_axes = 1, .size = {3}},
    {.name = "a", .dtype = FTH_U8, .n_axes = 1, .size = {5}, .axes = "cell"},
    {.name = "z", .dtype = FTH_C128, .n_axes = 2, .size = {2, 2}, .axes = "cell factor"},
    {.name = "y", .dtype = FTH_C128},
    {.name = "\"quoted\"\n\xc3\xa9", .dtype = FTH_F32, .n_axes = 2, .size = {3, 2}},
    {.name = "nothing", .dtype = FTH_F64, .n_axes = 2, .size = {0, 7}},
    {.name = "half", .dtype = FTH_BF16, .n_axes = 1, .size = {1}},
};
enum { ITEMS = sizeof items / sizeof items[0] };

static void fill(const fth_file_item *item, unsigned char *v, size_t bytes, unsigned seed)
{
    t_random r = t_random_make((uint64_t)(item - items) + 100 + seed);
    for (size_t i = 0; i < bytes; i++) v[i] = (unsigned char)t_random_u64(&r);
}

static size_t item_bytes(const fth_file_item *item)
{
    size_t n = (size_t)fth_dtype_size(item->dtype);
    for (int a = 0; a < item->n_axes; a++) n *= (size_t)item->size[a];
    return n;
}

/* Rows come last to first, so that the hash cannot follow the writes. */
static fth_status write_all(fth_mem *mem, const char *path, bool keep, unsigned seed, fth_err *err)
{
    const fth_file_meta meta[2] = {{"step", "12"}, {"fathom.config", "{\"k\": 1}"}};
    const fth_safetensors_options opt = {.meta = meta, .n_meta = 2, .keep_previous = keep};
    fth_safetensors_writer *w = NULL;
    FTH_TRY(fth_safetensors_create(&w, mem, path, items, ITEMS, &opt, err));
    for (int i = 0; i < ITEMS; i++) {
        unsigned char v[256];
        const size_t bytes = item_bytes(&items[i]);
        fill(&items[i], v, bytes, seed);
        fth_sink k;
        OK(fth_safetensors_sink(w, items[i].name, &k, err));
        if (k.n_axes == 0) OK(k.write(k.self, NULL, NULL, v, err));
        for (int64_t row = k.n_axes ? k.size[0] : 0; row-- > 0;) {
            const int64_t lo[2] = {row, 0}, n[2] = {1, k.size[1]};
            OK(k.write(k.self, lo, n, v + (size_t)row * (bytes / (size_t)k.size[0]), err));
        }
        OK(k.commit(k.self, err));
        fth_sink_close(&k);
    }
    return fth_safetensors_commit(w, err);
}

TEST(what_is_written_comes_back)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("model.safetensors");
    fth_err err = {0};
    OKE(write_all(mem, path, false, 0, &err), &err);
    EQ_I64(t_file_count(), 1);
    fth_safetensors *f = open_file(mem, path);
    EQ_I64(fth_safetensors_count(f), ITEMS);
    int64_t checked = 0;
    OKE(fth_safetensors_verify(f, &checked, &err), &err);
    EQ_I64(checked, ITEMS);
    /* Largest items first, then names; what is empty takes no room. */
    const char *order[ITEMS] = {"nothing", "y", "z", items[4].name, "half", "a", "b"};
    for (int i = 0; i < ITEMS; i++) EQ_STR(fth_safetensors_name(f, i), order[i]);
    EQ_STR(fth_safetensors_meta(f, "axes.a"), "cell");
    EQ_STR(fth_safetensors_meta(f, "axes.z"), "cell factor ri");
    EQ_STR(fth_safetensors_meta(f, "axes.y"), "ri");
    EQ_STR(fth_safetensors_meta(f, "step"), "12");
    for (int i = 0; i < ITEMS; i++) {
        fth_source s;
        fth_tensor *t = NULL;
        unsigned char v[256];
        const size_t bytes = item_bytes(&items[i]);
        fill(&items[i], v, bytes, 0);
        OK(fth_safetensors_source(f, items[i].name, &s, NULL));
        EQ_I64(s.dtype, items[i].dtype);
        EQ_I64(s.n_axes, items[i].n_axes);
        for (int a = 0; a < s.n_axes; a++) EQ_I64(s.size[a], items[i].size[a]);
        OK(fth_source_load(&s, mem, "t", &t, NULL));
        SAME_BYTES(fth_tensor_data(t), v, bytes);
        fth_tensor_release(t);
        fth_source_close(&s);
        OK(fth_safetensors_load(f, items[i].name, mem, &t, NULL));
        EQ_I64(fth_tensor_axes(t), items[i].n_axes);
        SAME_BYTES(fth_tensor_data(t), v, bytes);
        fth_tensor_release(t);
    }
    fth_tensor *none = NULL;
    IS(fth_safetensors_load(f, "none", mem, &none, &err), FTH_E_FILE_KEY);
    IS_TRUE(none == NULL);
    fth_safetensors_close(f);

    size_t bytes = 0, again = 0;
    unsigned char *file = t_file_read(path, &bytes);
    uint64_t length = 0;
    memcpy(&length, file, 8);
    EQ_U64((8 + length) % 64, 0);
    OK(write_all(mem, path, false, 0, NULL));
    unsigned char *same = t_file_read(path, &again);
    EQ_U64(bytes, again);
    SAME_BYTES(file, same, bytes);
    free(file);
    free(same);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(one_wrong_byte_is_found)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("damaged.safetensors");
    OK(write_all(mem, path, false, 0, NULL));
    size_t bytes = 0;
    unsigned char *file = t_file_read(path, &bytes);
    file[bytes - 1] ^= 1;
    t_file_write(path, file, bytes);
    free(file);
    fth_safetensors *f = open_file(mem, path);
    fth_err err = {0};
    IS(fth_safetensors_verify(f, NULL, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "'b' is damaged");
    fth_safetensors_close(f);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(the_previous_file_is_kept_when_asked)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("model.safetensors"),
               *prev = t_temp_path("model.prev.safetensors");
    OK(write_all(mem, path, true, 1, NULL));
    EQ_I64(t_file_count(), 1);
    for (unsigned round = 2; round < 4; round++) {
        size_t a = 0, b = 0;
        unsigned char *old = t_file_read(path, &a);
        OK(write_all(mem, path, true, round, NULL));
        unsigned char *kept = t_file_read(prev, &b);
        EQ_U64(a, b);
        SAME_BYTES(old, kept, a);
        free(old);
        free(kept);
        EQ_I64(t_file_count(), 2);
    }
    remove(path);
    remove(prev);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(an_unfinished_or_abandoned_file_never_appears)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("never.safetensors");
    fth_safetensors_writer *w = NULL;
    fth_sink a, b;
    fth_err err = {0};
    OK(fth_safetensors_create(&w, mem, path, items, 2, NULL, NULL));
    OK(fth_safetensors_sink(w, "a", &a, NULL));
    OK(a.write(a.self, ((int64_t[]){0}), ((int64_t[]){5}), "hello", NULL));
    OK(a.commit(a.self, NULL));
    IS(fth_safetensors_sink(w, "c", &b, &err), FTH_E_FILE_KEY);
    fth_err_clear(&err);
    IS(fth_safetensors_commit(w, &err), FTH_E_STATE);
    HAS(err.text, "'b'");
    OK(fth_safetensors_create(&w, mem, path, items, 2, NULL, NULL));
    OK(fth_safetensors_sink(w, "a", &a, NULL));
    a.abandon(a.self);
    fth_safetensors_abandon(w);
    fth_safetensors_abandon(NULL);
    EQ_I64(t_file_count(), 0);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(names_and_metadata_that_cannot_be_written)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("bad.safetensors");
    fth_safetensors_writer *w = NULL;
    const fth_file_item twice[2] = {{.name = "a"}, {.name = "a"}}, none[1] = {{.name = ""}},
                        meta[1] = {{.name = "__metadata__"}}, latin[1] = {{.name = "\xe9"}},
                        axes[1] = {{.name = "a", .n_axes = 2, .size = {1, 1}, .axes = "cell"}},
                        wide[1] = {{.name = "a",
                                    .dtype = FTH_C128,
                                    .n_axes = 8,
                                    .size = {1, 1, 1, 1, 1, 1, 1, 1}}};
    IS(fth_safetensors_create(&w, mem, path, twice, 2, NULL, NULL), FTH_E_USAGE);
    IS(fth_safetensors_create(&w, mem, path, none, 1, NULL, NULL), FTH_E_USAGE);
    IS(fth_safetensors_create(&w, mem, path, meta, 1, NULL, NULL), FTH_E_USAGE);
    IS(fth_safetensors_create(&w, mem, path, latin, 1, NULL, NULL), FTH_E_USAGE);
    IS(fth_safetensors_create(&w, mem, path, axes, 1, NULL, NULL), FTH_E_USAGE);
    IS(fth_safetensors_create(&w, mem, path, wide, 1, NULL, NULL), FTH_E_AXIS_LIMIT);
    const fth_file_meta ours[1] = {{"axes.a", "cell"}}, same[2] = {{"k", "1"}, {"k", "2"}};
    fth_safetensors_options opt = {.meta = ours, .n_meta = 1};
    IS(fth_safetensors_create(&w, mem, path, items, 1, &opt, NULL), FTH_E_USAGE);
    opt = (fth_safetensors_options){.meta = same, .n_meta = 2};
    IS(fth_safetensors_create(&w, mem, path, items, 1, &opt, NULL), FTH_E_USAGE);
    EQ_PTR(w, NULL);
    EQ_I64(t_file_count(), 0);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(cut_at_every_byte)
{
    fth_mem *mem = t_mem(1 << 24);
    size_t bytes = 0;
    unsigned char *file = t_file_read(GOLDEN("plain.safetensors"), &bytes);
    const char *path = t_temp_path("cut.safetensors");
    for (size_t cut = 0; cut < bytes; cut++) {
        t_file_write(path, file, cut);
        fth_safetensors *f = NULL;
        fth_err err = {0};
        IS(fth_safetensors_open(&f, mem, path, &err), FTH_E_FILE_SHORT);
        HAS(err.text, "cut.safetensors, byte ");
        EQ_PTR(f, NULL);
    }
    free(file);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

static fth_status open_header(fth_mem *mem, const char *json, size_t data, fth_err *err)
{
    char file[1200] = {0};
    const uint64_t length = strlen(json);
    memcpy(file, &length, 8);
    memcpy(file + 8, json, length);
    const char *path = t_temp_path("bent.safetensors");
    t_file_write(path, file, 8 + length + data);
    fth_safetensors *f = NULL;
    const fth_status s = fth_safetensors_open(&f, mem, path, err);
    fth_safetensors_close(f);
    remove(path);
    return s;
}

TEST(headers_bent_on_purpose)
{
    fth_mem *mem = t_mem(1 << 24);
#define T(name, dtype, shape, a, b)                                                                \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #a "," #b "]}"
    const struct {
        const char *json;
        size_t data;
        const char *says;
        fth_status status;
    } c[] = {
        {"{" T("a", "F32", "[2]", 0, 8) "," T("b", "U8", "[1]", 8, 9) "}  ", 9, "", FTH_OK},
        {"{}", 0, "", FTH_OK},
        {"{" T("a", "I8", "[2]", 0, 2) "}", 2, "", FTH_OK}, /* refused when asked for */
        {"{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[2]", 4, 12) "}", 12, "overlaps",
         FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[1]", 12, 16) "}", 16, "hole",
         FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[2]", 4, 12) "}", 12, "hole", FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[2]", 0, 8) "}", 9, "1 bytes follow", FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[2]", 0, 8) "}", 7, "should end at", FTH_E_FILE_SHORT},
        {"{" T("a", "F32", "[3]", 0, 8) "}", 8, "12 bytes", FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[2]", 8, 0) "}", 8, "data_offsets", FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[-2]", 0, 8) "}", 8, "shape", FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[2.0]", 0, 8) "}", 8, "shape", FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[4294967296,4294967296,4]", 0, 8) "}", 8, "63 bits", FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, "at most 8", FTH_E_FILE_FORMAT},
        {"{" T("a", "F32", "[2]", 0, 8) "," T("a", "F32", "[2]", 0, 8) "}", 8, "duplicate",
         FTH_E_FILE_FORMAT},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4, "exactly", FTH_E_FILE_FORMAT},
        {"{\"a\":3}", 0, "exactly", FTH_E_FILE_FORMAT},
        {"{\"__metadata__\":{\"a\":3}}", 0, "'a' should be a string", FTH_E_FILE_FORMAT},
        {"{\"__metadata__\":[]}", 0, "object of strings", FTH_E_FILE_FORMAT},
        {" {}", 0, "start with '{'", FTH_E_FILE_FORMAT},
        {"", 0, "start with '{'", FTH_E_FILE_FORMAT},
        {"{\"a\"", 0, "not JSON", FTH_E_FILE_FORMAT},
        {"{} {}", 0, "not JSON", FTH_E_FILE_FORMAT},
    };
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        fth_err err = {0};
        const fth_status s = open_header(mem, c[i].json, c[i].data, &err);
        if (s != c[i].status)
            FAIL("%s\n gave %s: %s", c[i].json, fth_status_get_info(s)->name, err.text);
        HAS(err.text, c[i].says);
        if (s != FTH_OK) HAS(err.text, "bent.safetensors, byte ");
    }
    const char *path = t_temp_path("huge.safetensors");
    t_file_write(path, "\xff\xff\xff\x7f\0\0\0\0{}", 10);
    fth_safetensors *f = NULL;
    IS(fth_safetensors_open(&f, mem, path, NULL), FTH_E_FILE_FORMAT);
    t_file_write(path, "\x10\0\0\0\0\0\0\0{\"a\":{\"dtype\":1}}", 24);
    IS(fth_safetensors_open(&f, mem, path, NULL), FTH_E_FILE_FORMAT);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(a_dtype_we_do_not_have_is_named_when_asked_for)
{
    fth_mem *mem = t_mem(1 << 24);
    const char json[] = "{" T("a", "F8_E4M3", "[2]", 0, 2) "}";
    char file[200] = {0};
    const uint64_t length = sizeof json - 1;
    memcpy(file, &length, 8);
    memcpy(file + 8, json, length);
    const char *path = t_temp_path("f8.safetensors");
    t_file_write(path, file, 8 + length + 2);
    fth_safetensors *f = open_file(mem, path);
    fth_source s;
    fth_err err = {0};
    IS(fth_safetensors_source(f, "a", &s, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "F8_E4M3");
    fth_safetensors_close(f);
    remove(path);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
