/* test_spatial_store.c - AnnData and SpatialData in folders of Zarr, versions 2 and 3, as anndata
 * writes them (tests/golden/h5ad/make_zarr.py).
 * seconds: 4 */
#include "testing/io/files.h"
#include "testing/spatial/spatial_data.h"

#include "instruments/spatial/read/anndata.h"

#include <fathom/zarr.h>

#include <string.h>

#define FILES "tests/golden/h5ad/"
enum { CELLS = 12, GENES = 6 };

/* The formula of tests/golden/h5ad/make.py. */
static float count_of(int64_t cell, int64_t gene)
{
    const int64_t v = (cell * 7 + gene * 3) % 5;
    return v > 1 ? (float)v : 0;
}

static void check_counts(const sp_anndata *a)
{
    sp_matrix m;
    sp_block b;
    fth_err err = {0};
    OKE(sp_matrix_open_store(&m, &a->store, a->path, "/X", &err), &err);
    EQ_I64(m.rows, CELLS);
    EQ_I64(m.cols, GENES);
    OKE(sp_matrix_prepare(&m, &err), &err);
    for (int64_t step = 1; step <= CELLS; step += 4) {
        OKE(sp_block_create(&b, &m, step, step * GENES, &err), &err);
        for (int64_t first = 0; first < CELLS; first += step) {
            const int64_t n = CELLS - first < step ? CELLS - first : step;
            OKE(sp_matrix_read(&m, first, n, &b, &err), &err);
            for (int64_t r = 0; r < n; r++) {
                int64_t at = b.ptr[r];
                for (int64_t g = 0; g < GENES; g++) {
                    if (count_of(first + r, g) == 0) continue;
                    EQ_I64(b.col[at], g);
                    EQ_F64(b.val[at++], count_of(first + r, g));
                }
                EQ_I64(at, b.ptr[r + 1]);
            }
        }
        sp_block_free(&b);
    }
    sp_matrix_close(&m);
}

static void check_frames(const sp_anndata *a)
{
    sp_labels l;
    fth_texts *names = NULL;
    fth_err err = {0};
    float xy[2 * CELLS];
    bool frame = true;
    OKE(sp_anndata_labels(a, "/obs", "type", CELLS, &l, &err), &err);
    EQ_I64(fth_texts_count(l.names), 4);
    EQ_STR(fth_texts_get(l.names, 0), "b");
    for (int64_t i = 0; i < CELLS; i++) EQ_I64(l.code[i], i == 5 ? -1 : i % 3);
    sp_labels_free(&l);
    OKE(sp_anndata_labels(a, "/obs", "maybe", CELLS, &l, &err), &err);
    for (int64_t i = 0; i < CELLS; i++) EQ_I64(l.code[i], i == 2 ? -1 : i - (i > 2));
    sp_labels_free(&l);
    OKE(sp_anndata_names(a, "/var", GENES, &names, &err), &err);
    EQ_STR(fth_texts_get(names, 5), "g5");
    fth_texts_free(names);
    OKE(sp_anndata_places(a, "spatial", CELLS, NULL, xy, &frame, &err), &err);
    IS_TRUE(!frame);
    for (int64_t i = 0; i < CELLS; i++) {
        EQ_F64(xy[2 * i], 10.0 * (double)i);
        EQ_F64(xy[2 * i + 1], 3.0 * (double)(i % 4));
    }
    IS(sp_anndata_places(a, "X_pca", CELLS, NULL, xy, &frame, &err), FTH_E_FILE_KEY);
    HAS(err.text, "obsm has no 'X_pca'");
    HAS(err.hint, "keys of obsm: spatial");
    err = (fth_err){0};
    IS(sp_anndata_labels(a, "/obs", "../var", CELLS, &l, &err), FTH_E_FILE_KEY); /* no way up */
}

TEST(stores_of_anndata)
{
    static const char *const paths[] = {FILES "v2.zarr", FILES "v3.zarr"};
    for (int i = 0; i < 2; i++) {
        fth_mem *mem = t_mem(1 << 26);
        sp_anndata a;
        fth_err err = {0};
        OKE(sp_anndata_open(&a, mem, paths[i], &err), &err);
        check_counts(&a);
        check_frames(&a);
        sp_anndata_close(&a);
        OK(fth_mem_destroy(mem, NULL));
    }
}

TEST(tables_of_spatialdata)
{
    fth_mem *mem = t_mem(1 << 26);
    sp_anndata a;
    fth_texts *tables = NULL;
    fth_err err = {0};
    OKE(sp_store_tables(mem, FILES "store.zarr", &tables, &err), &err);
    EQ_I64(fth_texts_count(tables), 2);
    fth_texts_free(tables);
    IS(sp_anndata_open(&a, mem, FILES "store.zarr", &err), FTH_E_FILE_KEY);
    HAS(err.text, "store.zarr: it has 2 tables");
    HAS(err.hint, "preprocessing.table is one of: counts, other");
    err = (fth_err){0};
    IS(sp_anndata_open_table(&a, mem, FILES "store.zarr", "cells", &err), FTH_E_FILE_KEY);
    HAS(err.text, "there is no table 'cells'");
    err = (fth_err){0};
    OKE(sp_anndata_open_table(&a, mem, FILES "store.zarr", "counts", &err), &err);
    check_counts(&a);
    check_frames(&a);
    OKE(sp_store_strings(&a.store, SP_REGIONS, NULL, &tables, &err), &err);
    EQ_I64(fth_texts_count(tables), 2);
    EQ_STR(fth_texts_get(tables, 1), "right");
    fth_texts_free(tables);
    OKE(sp_store_strings(&a.store, SP_REGION_KEY, NULL, &tables, &err), &err);
    EQ_STR(fth_texts_get(tables, 0), "region");
    fth_texts_free(tables);
    sp_anndata_close(&a);
    IS(sp_anndata_open(&a, mem, FILES "store.zarr/tables", &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "no AnnData");
    OK(fth_mem_destroy(mem, NULL));
}

/* `before`, the folder, `after`, as a command. */
static void shell(const char *before, const char *dir, const char *after)
{
    char command[2 * FTH_PATH];
    snprintf(command, sizeof command, "%s'%s'%s", before, dir, after);
    if (system(command) != 0) FAIL("%s", command);
}

static void copy_of(const char *store, const char *dir)
{
    char before[FTH_PATH];
    snprintf(before, sizeof before, "cp -r %s ", store);
    shell("rm -rf ", dir, "");
    shell(before, dir, "");
}

TEST(damaged_strings_are_named)
{
    fth_mem *mem = t_mem(1 << 26);
    sp_anndata a;
    sp_labels l;
    fth_texts *names = NULL;
    fth_err err = {0};
    const char *dir = t_temp_path("copy.zarr");
    copy_of(FILES "v3.zarr", dir);
    shell("printf 'no frame of zstd' > ", dir, "/obs/_index/c/0");
    OKE(sp_anndata_open(&a, mem, dir, &err), &err);
    IS(sp_anndata_names(&a, "/obs", CELLS, &names, &err), FTH_E_FILE_FORMAT);
    HAS(err.text, "copy.zarr/obs/_index/c/0: ");
    HAS(err.text, "packed by zstd do not unpack");
    err = (fth_err){0};
    shell("rm ", dir, "/obs/type/codes/c/0"); /* a missing chunk is its fill value */
    OKE(sp_anndata_labels(&a, "/obs", "type", CELLS, &l, &err), &err);
    EQ_I64(l.code[7], 0);
    sp_labels_free(&l);
    sp_anndata_close(&a);
    shell("rm -rf ", dir, "");
    OK(fth_mem_destroy(mem, NULL));
}

/* Strings of a fixed length in either byte order, and integers of every width. */
TEST(other_elements)
{
    static const char *const types[] = {"<U3", ">U3", "|i1", "<i2", ">u4", "<u8"};
    fth_mem *mem = t_mem(1 << 26);
    const char *dir = t_temp_path("one.zarr");
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        char path[FTH_PATH], doc[400];
        fth_err err = {0};
        const bool big = types[k][0] == '>', text = types[k][1] == 'U';
        const int item = text ? 4 : types[k][2] - '0', n = text ? 6 : 3;
        unsigned char raw[64] = {0};
        shell("rm -rf ", dir, "");
        shell("mkdir ", dir, "");
        snprintf(doc, sizeof doc,
                 "{\"zarr_format\":2,\"shape\":[%d],\"chunks\":[%d],\"dtype\":\"%s\",\"order\":"
                 "\"C\",\"filters\":null,\"compressor\":null,\"fill_value\":null}",
                 text ? 2 : 3, text ? 2 : 3, types[k]);
        snprintf(path, sizeof path, "%s/.zarray", dir);
        OKE(fth_file_save(mem, path, doc, strlen(doc), &err), &err);
        const uint32_t letters[] = {'a', 0xE9, 0x1F600, 'z', 0, 0};
        for (int i = 0; i < n; i++) {
            /* -1 where there is a sign, the largest of 31 bits or fewer elsewhere */
            const uint64_t v = text                 ? letters[i]
                               : types[k][1] == 'i' ? (uint64_t)(i - 1)
                                                    : 4000000000u + (uint64_t)i;
            for (int b = 0; b < item; b++)
                raw[i * item + (big ? item - 1 - b : b)] = (unsigned char)(v >> 8 * b);
        }
        snprintf(path, sizeof path, "%s/0", dir);
        OKE(fth_file_save(mem, path, raw, (uint64_t)(n * item), &err), &err);
        fth_texts *t = NULL;
        fth_zarr *z = NULL;
        if (text) {
            OKE(fth_zarr_strings(&t, mem, dir, &err), &err);
            EQ_STR(fth_texts_get(t, 0), "a\xC3\xA9\xF0\x9F\x98\x80");
            EQ_STR(fth_texts_get(t, 1), "z");
            fth_texts_free(t);
            IS(fth_zarr_open(&z, mem, dir, &err), FTH_E_FILE_SHAPE);
            continue;
        }
        IS(fth_zarr_strings(&t, mem, dir, &err), FTH_E_FILE_SHAPE);
        fth_source s;
        union {
            int8_t i8[3];
            int16_t i16[3];
            uint32_t u32[3];
            int64_t large[3];
        } got;
        const int64_t zero = 0, three = 3;
        OKE(fth_zarr_open(&z, mem, dir, &err), &err);
        OKE(fth_zarr_source(z, &s, &err), &err);
        fth_zarr_close(z);
        EQ_I64(s.dtype, item == 1 ? FTH_I8 : item == 2 ? FTH_I16 : item == 4 ? FTH_U32 : FTH_I64);
        OKE(s.read(s.self, &zero, &three, &got, &err), &err);
        for (int i = 0; i < 3; i++)
            EQ_I64(item == 1   ? got.i8[i]
                   : item == 2 ? got.i16[i]
                   : item == 4 ? (int64_t)got.u32[i]
                               : got.large[i],
                   types[k][1] == 'i' ? i - 1 : INT64_C(4000000000) + i);
        fth_source_close(&s);
    }
    shell("rm -rf ", dir, "");
    OK(fth_mem_destroy(mem, NULL));
}

/* A byte or a name that changes changes the hash. */
TEST(a_hash_of_all_files)
{
    fth_mem *mem = t_mem(1 << 26);
    uint64_t one = 0, two = 0, three = 0;
    int64_t bytes[3];
    fth_err err = {0};
    const char *dir = t_temp_path("copy.zarr");
    copy_of(FILES "v2.zarr", dir);
    OKE(sp_store_hash(mem, FILES "v2.zarr", &one, &bytes[0], &err), &err);
    OKE(sp_store_hash(mem, dir, &two, &bytes[1], &err), &err);
    EQ_U64(one, two);
    EQ_I64(bytes[0], bytes[1]);
    shell("cd ", dir, "/X/data && mv 0 1");
    OKE(sp_store_hash(mem, dir, &three, &bytes[2], &err), &err);
    IS_TRUE(three != one);
    EQ_I64(bytes[2], bytes[0]);
    shell("rm -rf ", dir, "");
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
