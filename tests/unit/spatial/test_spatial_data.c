/* test_spatial_data.c - a preprocessed folder: what is read, what is chosen, what is refused.
 * seconds: 2 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_data.h"

#include "instruments/spatial/data/data.h"
#include "instruments/spatial/data/metadata.h"

#include <inttypes.h>

static const char *folder(void)
{
    const char *dir = t_temp_path("preprocessed");
    t_spatial_folder(dir);
    return dir;
}

TEST(the_golden_cells_are_read_back)
{
    fth_mem *mem = t_mem(1 << 24);
    sp_data d;
    fth_err err = {0};
    OKE(sp_data_open(&d, mem, folder(), &err), &err);
    EQ_I64(d.size.cells, 300);
    EQ_I64(d.rows, 300);
    EQ_I64(d.size.genes, 24);
    EQ_I64(d.size.groups, 4);
    EQ_I64(d.size.entries, 5285);
    IS_TRUE(!d.size.bound && d.row == NULL && d.cell_names == NULL);
    EQ_STR(fth_texts_get(d.gene_names, 23), "gene23");
    EQ_STR(fth_texts_get(d.group_names, 3), "type3");
    fth_tensor *y = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "Y"),
               *x = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "X"),
               *c = t_spatial_golden(mem, T_SPATIAL_GOLDEN "data.npz", "C");
    float row[24];
    int64_t most = 0;
    double v[2];
    fth_source dense = fth_csr_source(d.counts);
    for (int64_t i = 0; i < 300; i++) {
        const int64_t lo[2] = {i, 0}, n[2] = {1, 24};
        OK(dense.read(dense.self, lo, n, row, NULL));
        for (int64_t g = 0; g < 24; g++) {
            t_element(fth_tensor_dtype(y), fth_tensor_data(y), i * 24 + g, v);
            EQ_F64(row[g], v[0]);
        }
        const int64_t in_row = fth_csr_entries(d.counts, i, i + 1);
        if (in_row > most) most = in_row;
        t_element(fth_tensor_dtype(c), fth_tensor_data(c), i, v);
        EQ_I64(((int32_t *)fth_tensor_data(d.group))[i], (int64_t)v[0]);
        t_element(fth_tensor_dtype(x), fth_tensor_data(x), 2 * i + 1, v);
        EQ_F64(((float *)fth_tensor_data(d.xy))[2 * i + 1], (float)v[0]);
    }
    EQ_I64(d.size.most_entries, most);
    fth_tensor_release(x);
    fth_tensor_release(y);
    fth_tensor_release(c);
    sp_data_close(&d);
    sp_data_close(&d); /* an empty one */
    OK(fth_mem_destroy(mem, NULL));
}

TEST(chosen_cells_keep_their_rows)
{
    fth_mem *mem = t_mem(1 << 24);
    sp_data all, d;
    fth_err err = {0};
    const char *dir = folder();
    OKE(sp_data_open(&all, mem, dir, &err), &err);
    OKE(sp_data_open(&d, mem, dir, &err), &err);
    int64_t row[150];
    for (int64_t i = 0; i < 150; i++) row[i] = 2 * i + 1;
    IS(sp_data_choose(&d, (int64_t[]){3, 3}, 2, NULL), FTH_E_USAGE);
    IS(sp_data_choose(&d, (int64_t[]){300}, 1, NULL), FTH_E_USAGE);
    IS(sp_data_choose(&d, row, 0, NULL), FTH_E_USAGE);
    OKE(sp_data_choose(&d, row, 150, &err), &err);
    EQ_I64(d.size.cells, 150);
    EQ_I64(d.rows, 300);
    int64_t entries = 0;
    for (int64_t i = 0; i < 150; i++) {
        EQ_I64(d.row[i], 2 * i + 1);
        EQ_I64(d.absent[i], 2 * i);
        entries += fth_csr_entries(d.counts, 2 * i + 1, 2 * i + 2);
        SAME_BYTES((float *)fth_tensor_data(d.xy) + 2 * i,
                   (float *)fth_tensor_data(all.xy) + 2 * (2 * i + 1), 8);
        EQ_I64(((int32_t *)fth_tensor_data(d.group))[i],
               ((int32_t *)fth_tensor_data(all.group))[2 * i + 1]);
    }
    EQ_I64(d.size.entries, entries);
    EQ_U64(d.hash, all.hash); /* the model is tied to the folder, not to the choice */
    IS(sp_data_choose(&d, row, 150, NULL), FTH_E_USAGE);
    sp_data_close(&d);
    sp_data_close(&all);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(held_out_cells_are_the_same_for_a_seed)
{
    fth_mem *mem = t_mem(1 << 24);
    sp_data d[3];
    fth_err err = {0};
    const char *dir = folder();
    for (int k = 0; k < 3; k++) {
        OKE(sp_data_open(&d[k], mem, dir, &err), &err);
        OKE(sp_data_hold_out(&d[k], 0, SP_HOLDOUT_RANDOM, 1, &err), &err);
        IS_TRUE(d[k].row == NULL);
        OKE(sp_data_hold_out(&d[k], 0.05, SP_HOLDOUT_RANDOM, k < 2 ? 42 : 7, &err), &err);
        EQ_I64(d[k].size.cells, 285);
    }
    SAME_BYTES(d[0].absent, d[1].absent, 15 * 8);
    SAME_BYTES(d[0].row, d[1].row, 285 * 8);
    IS_TRUE(memcmp(d[0].absent, d[2].absent, 15 * 8) != 0);
    for (int k = 0; k < 3; k++) sp_data_close(&d[k]);
    OKE(sp_data_open(&d[0], mem, dir, &err), &err);
    OKE(sp_data_hold_out(&d[0], 0.05, SP_HOLDOUT_LAST, 42, &err), &err);
    for (int64_t i = 0; i < 285; i++) EQ_I64(d[0].row[i], i);
    for (int64_t i = 0; i < 15; i++) EQ_I64(d[0].absent[i], 285 + i);
    sp_data_close(&d[0]);
    OKE(sp_data_open(&d[0], mem, dir, &err), &err);
    IS(sp_data_hold_out(&d[0], 0.999, SP_HOLDOUT_LAST, 42, &err), FTH_E_CONFIG);
    sp_data_close(&d[0]);
    OK(fth_mem_destroy(mem, NULL));
}

static void write_text(const char *dir, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/metadata.json", dir);
    t_file_write(path, text, strlen(text));
}

static void refused(const char *dir, fth_status status, const char *part, const char *other)
{
    fth_mem *mem = t_mem(1 << 24);
    sp_data d;
    fth_err err = {0};
    IS(sp_data_open(&d, mem, dir, &err), status);
    HAS(err.text, part);
    HAS(err.text, other);
    IS_TRUE(err.hint[0] != '\0' || status == FTH_E_FILE_FORMAT || status == FTH_E_FILE_KEY);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(names_with_escapes_and_any_order_of_keys)
{
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("metadata.json");
    static const char text[] =
        "{\"group_names\":[\"a\\\"]b\",\"\\u00e9\\ud83d\\ude00\\n\"] , \"fathom\":{\"v\":[1,{}]},"
        "\"n_spots\": 2,\"n_genes\":1, \"spot_names\":[\"x,y\",\"\"], \"n_groups\" : 2 ,"
        "\"gene_names\":[\"G\"]}";
    t_file_write(path, text, sizeof text - 1);
    sp_metadata m;
    fth_err err = {0};
    OKE(sp_metadata_read(&m, mem, path, &err), &err);
    EQ_STR(fth_texts_get(m.group_names, 0), "a\"]b");
    EQ_STR(fth_texts_get(m.group_names, 1), "\xc3\xa9\xf0\x9f\x98\x80\n");
    EQ_STR(fth_texts_get(m.cell_names, 0), "x,y");
    EQ_STR(fth_texts_get(m.cell_names, 1), "");
    EQ_STR(fth_texts_get(m.gene_names, 0), "G");
    sp_metadata_clear(&m);
    fth_json *doc = NULL;
    OKE(sp_metadata_member(&doc, mem, path, "fathom", &err), &err);
    EQ_I64(fth_json_get_int(fth_json_at(fth_json_get(fth_json_root(doc), "v"), 0), NULL, 0), 1);
    fth_json_destroy(doc);
    OKE(sp_metadata_member(&doc, mem, path, "nothing", &err), &err);
    IS_TRUE(doc == NULL);
    for (size_t cut = 0; cut + 1 < sizeof text - 1; cut++) { /* cut short, anywhere */
        t_file_write(path, text, cut);
        fth_err why = {0};
        IS_TRUE(sp_metadata_read(&m, mem, path, &why) != FTH_OK);
        HAS(why.text, "metadata.json");
    }
    OK(fth_mem_destroy(mem, NULL));
}

/* How positions were rescaled: both numbers, whole, and a scale that can be undone. */
TEST(frames_of_positions)
{
    static const struct {
        const char *text;
        bool known, good;
    } t[] = {{"", false, true},
             {", \"offset\": [1.5, -2e1], \"scale\": 0.25", true, true},
             {", \"scale\": 0.25", false, false},
             {", \"offset\": [1, 2]", false, false},
             {", \"offset\": [1], \"scale\": 1", false, false},
             {", \"offset\": [1, 2, 3], \"scale\": 1", false, false},
             {", \"offset\": [1, 2], \"scale\": 0", false, false},
             {", \"offset\": [1, 2], \"scale\": -1", false, false},
             {", \"offset\": [1, 2], \"scale\": 1e999", false, false},
             {", \"offset\": [1, \"2\"], \"scale\": 1", false, false}};
    fth_mem *mem = t_mem(1 << 24);
    const char *path = t_temp_path("metadata.json");
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        char text[300];
        sp_metadata m;
        fth_err err = {0};
        const int n = snprintf(text, sizeof text,
                               "{\"n_spots\": 2, \"n_genes\": 1, \"n_groups\": 1, \"group_names\": "
                               "[\"a\"], \"gene_names\": [\"g\"]%s}",
                               t[i].text);
        t_file_write(path, text, (size_t)n);
        const fth_status s = sp_metadata_read(&m, mem, path, &err);
        if (!t[i].good) {
            IS(s, FTH_E_FILE_FORMAT);
            HAS(err.text, "'scale' one above 0");
            continue;
        }
        OKE(s, &err);
        IS_TRUE(m.frame.known == t[i].known);
        if (m.frame.known) {
            EQ_F64(m.frame.offset[0], 1.5);
            EQ_F64(m.frame.offset[1], -20);
            EQ_F64(m.frame.scale, 0.25);
        }
        sp_metadata_clear(&m);
    }
    OK(fth_mem_destroy(mem, NULL));
}

TEST(files_that_do_not_fit_together)
{
    const char *dir = folder();
    char path[4096];
    refused(t_temp_path("nowhere"), FTH_E_FILE_OPEN, "X.npy", "nowhere");
    write_text(dir, "{\"n_spots\": 299, \"n_genes\": 24, \"n_groups\": 4}");
    refused(dir, FTH_E_FILE_KEY, "metadata.json", "gene_names");
    write_text(dir, "{\"n_spots\": 300, \"n_genes\": 24.5, \"n_groups\": 4}");
    refused(dir, FTH_E_FILE_FORMAT, "metadata.json", "n_genes");
    write_text(dir, "{\"n_spots\": 300, \"n_genes\": 2, \"n_groups\": 4, \"group_names\":"
                    "[\"a\",\"b\",\"c\",\"d\"], \"gene_names\": [\"g\"]}");
    refused(dir, FTH_E_FILE_FORMAT, "gene_names", "1 names");
    write_text(dir, "{\"n_spots\": 299, \"n_genes\": 1, \"n_groups\": 4, \"group_names\":"
                    "[\"a\",\"b\",\"c\",\"d\"], \"gene_names\": [\"g\"]}");
    refused(dir, FTH_E_FILE_SHAPE, "n_spots is 299", "300");
    write_text(dir, "{\"n_spots\": 300, \"n_genes\": 1, \"n_groups\": 4, \"group_names\":"
                    "[\"a\",\"b\",\"c\",\"d\"], \"gene_names\": [\"g\"]}");
    refused(dir, FTH_E_FILE_SHAPE, "Y.npz", "24 genes");
    write_text(dir, "{\"n_spots\": 300, \"n_genes\": 1, \"n_groups\": 2, \"group_names\":"
                    "[\"a\",\"b\"], \"gene_names\": [\"g\"]}");
    refused(dir, FTH_E_FILE_FORMAT, "C.npy", "groups are 0 to 1");
    t_spatial_folder(dir);
    snprintf(path, sizeof path, "%s/C.npy", dir);
    remove(path);
    refused(dir, FTH_E_FILE_OPEN, "C.npy", "preprocessed");
}

TEST(positions_have_to_be_finite)
{
    const char *dir = t_temp_path("nan");
    float xy[6] = {0, 0, 1, 1, 2, 2}, counts[3] = {1, 0, 2};
    const int64_t group[3] = {0, 0, 0};
    xy[3] = (float)strtod("nan", NULL);
    t_spatial_write(dir, xy, counts, group, 3, 1, 1);
    refused(dir, FTH_E_FILE_FORMAT, "X.npy", "cell 1");
}

/* A request that fails is survived, and nothing is left. */
TEST(every_request_may_fail)
{
    const char *dir = folder();
    fth_status s = FTH_E_NOMEM;
    int64_t row[200], n = 0;
    for (int64_t i = 0; i < 200; i++) row[i] = i;
    while (s != FTH_OK) {
        fth_mem_options opt;
        fth_mem_options_default(&opt);
        opt.budget_bytes = 1 << 24;
        opt.fail_alloc = ++n;
        fth_mem *mem = NULL;
        s = fth_mem_create(&mem, &opt, NULL);
        sp_data d = {0};
        if (s == FTH_OK) s = sp_data_open(&d, mem, dir, NULL);
        if (s == FTH_OK) s = sp_data_choose(&d, row, 200, NULL);
        sp_data_close(&d);
        if (mem) OK(fth_mem_destroy(mem, NULL));
    }
    IS_TRUE(n > 20);
}

TEST_MAIN()
