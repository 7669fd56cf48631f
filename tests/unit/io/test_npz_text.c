/* test_npz_text.c - strings in NPZ files: of NumPy, of pickles, of ours; numbers at their edges.
 * seconds: 2 */
#include "ops/scalar.h"
#include "testing/io/files.h"

#include <fathom/json.h>

#include <inttypes.h>

static fth_npz *open_file(fth_mem *mem, const char *path)
{
    fth_npz *npz = NULL;
    fth_err err = {0};
    OKE(fth_npz_open(&npz, mem, path, &err), &err);
    return npz;
}

static void check_one(fth_npz *npz, const char *name, const char *expected)
{
    fth_texts *texts = NULL;
    fth_err err = {0};
    OKE(fth_npz_strings(npz, name, &texts, &err), &err);
    EQ_I64(fth_texts_count(texts), 1);
    EQ_STR(fth_texts_get(texts, 0), expected);
    fth_texts_free(texts);
}

TEST(strings_of_numpy_are_utf8)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_npz *npz = open_file(mem, GOLDEN("texts.npz"));
    fth_texts *texts = NULL;
    check_one(npz, "bytes", "csr");
    check_one(npz, "plain", "\xce\xbb/2 \xf0\x9f\x94\xac");
    check_one(npz, "big", "swap");
    OK(fth_npz_strings(npz, "list", &texts, NULL));
    EQ_I64(fth_texts_count(texts), 3);
    EQ_STR(fth_texts_get(texts, 0), "ab");
    EQ_STR(fth_texts_get(texts, 1), "");
    EQ_STR(fth_texts_get(texts, 2), "cde");
    fth_texts_free(texts);
    fth_npz_close(npz);
    OK(fth_mem_destroy(mem, NULL));
}

/* Both lengths of a pickle's texts: one byte and four. */
TEST(json_is_found_in_a_pickle)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_npz *npz = open_file(mem, GOLDEN("texts.npz"));
    fth_texts *texts = NULL;
    check_one(npz, "short", "{\"a\": 1}");
    check_one(npz, "later", "{\"b\": 2}");
    OK(fth_npz_strings(npz, "object", &texts, NULL));
    EQ_I64(fth_texts_count(texts), 1);
    fth_json *doc = NULL;
    const char *text = fth_texts_get(texts, 0);
    OK(fth_json_parse(&doc, mem, "text", text, strlen(text), NULL));
    NEAR(fth_json_get_real(fth_json_get(fth_json_root(doc), "physics_parameters"), "nphotons", 0),
         1e5, 0);
    fth_json_destroy(doc);
    fth_texts_free(texts);
    fth_npz_close(npz);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_is_no_text_is_refused)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_npz *npz = open_file(mem, GOLDEN("texts.npz"));
    fth_texts *texts = NULL;
    fth_err err = {0};
    IS(fth_npz_strings(npz, "number", &texts, &err), FTH_E_FILE_SHAPE);
    HAS(err.text, "'<f8'");
    EQ_PTR(texts, NULL);
    fth_err_clear(&err);
    IS(fth_npz_strings(npz, "absent", &texts, &err), FTH_E_FILE_KEY);
    HAS(err.text, "plain");
    fth_npz_close(npz);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(whole_numbers_at_their_edges)
{
    fth_mem *mem = t_mem(1 << 24);
    fth_npz *npz = open_file(mem, GOLDEN("edges.npz"));
    const struct {
        const char *name;
        fth_dtype dtype;
        int64_t lo, hi;
    } e[] = {{"i1", FTH_I8, -128, 127},
             {"i2", FTH_I16, -32768, 32767},
             {"u4", FTH_U32, 0, INT64_C(4294967295)},
             {"u8", FTH_I64, 0, INT64_MAX}};
    for (int i = 0; i < 4; i++) {
        fth_source s;
        fth_tensor *t = NULL;
        OK(fth_npz_source(npz, e[i].name, &s, NULL));
        OK(fth_source_load(&s, mem, "edges", &t, NULL));
        EQ_I64(fth_tensor_dtype(t), e[i].dtype);
        for (int k = 0; k < 2; k++)
            EQ_I64(
                fth__load(e[i].dtype, (char *)fth_tensor_data(t) + k * fth_dtype_size(e[i].dtype))
                    .i,
                k ? e[i].hi : e[i].lo);
        fth_tensor_release(t);
        fth_source_close(&s);
    }
    fth_source s;
    fth_tensor *t = NULL;
    fth_err err = {0};
    OK(fth_npz_source(npz, "over", &s, NULL));
    IS(fth_source_load(&s, mem, "over", &t, &err), FTH_E_FILE_FEATURE);
    HAS(err.text, "9223372036854775808");
    fth_source_close(&s);
    fth_npz_close(npz);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(texts_that_are_written_come_back)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("texts.npz");
    const double v[3] = {1, 2, 3};
    const fth_file_item item = {"x", FTH_F64, 1, {3}, NULL};
    const fth_file_meta text[] = {
        {"_metadata", "{\"\xce\xbb\": \"\xf0\x9f\x94\xac\"}"}, {"empty", ""}, {"bent", "a\xff"}};
    fth_npz_writer *w = NULL;
    fth_sink sink;
    fth_err err = {0};
    OKE(fth_npz_create_with_texts(&w, mem, path, &item, 1, text, 3, &err), &err);
    OK(fth_npz_sink(w, "x", &sink, NULL));
    OK(fth_sink_put(&sink, v, NULL));
    OKE(fth_npz_commit(w, &err), &err);
    fth_npz *npz = open_file(mem, path);
    check_one(npz, "_metadata", text[0].value);
    check_one(npz, "empty", "");
    check_one(npz, "bent", "a\xef\xbf\xbd");
    IS_TRUE(fth_npz_is_in_place(npz, "x"));
    IS_TRUE(!fth_npz_is_in_place(npz, "y"));
    fth_npz_close(npz);
    npz = open_file(mem, GOLDEN("deflated.npz"));
    IS_TRUE(!fth_npz_is_in_place(npz, "images"));
    fth_npz_close(npz);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
