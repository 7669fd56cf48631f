/* test_spatial_joined.c - counts of several files as one matrix: bounds, rows across files, columns
 * by another's names. tests/python/test_spatial_sections.py runs the stage on such files.
 * seconds: 1 */
#include "instruments/spatial/read/matrix.h"
#include "testing/full.h"
#include "testing/io/files.h"
#include "testing/spatial/spatial_data.h"

enum { PARTS = 3 };

typedef struct bench {
    fth_mem *mem;
    sp_matrix part[PARTS], m;
} bench;

/* A narrow table, the sparse rows of a folder, a wide table. */
static void start(bench *b)
{
    static const char
        narrow[] = "cell,a,b\n1,2,3\n2,0,14\n",
        wide[] = "cell,a,b,c,d,e,f,g,h,i,j\n1,1,2,3,4,5,6,7,8,9,1\n2,0,0,0,0,0,0,0,0,0,7\n";
    char dir[FTH_PATH], path[FTH_PATH];
    *b = (bench){.mem = t_mem(1 << 24)};
    snprintf(dir, sizeof dir, "%s", t_temp_path("folder"));
    t_spatial_folder(dir);
    OK(fth_path_join(path, dir, "Y.npz", NULL));
    OK(sp_matrix_open_npz(&b->part[1], b->mem, path, NULL));
    t_file_write(t_temp_path("narrow.csv"), narrow, sizeof narrow - 1);
    OK(sp_matrix_open_table(&b->part[0], b->mem, t_temp_path("narrow.csv"), false, NULL));
    t_file_write(t_temp_path("wide.csv"), wide, sizeof wide - 1);
    OK(sp_matrix_open_table(&b->part[2], b->mem, t_temp_path("wide.csv"), false, NULL));
    OK(sp_joined_open(&b->m, b->mem, (sp_matrix *const[]){&b->part[0], &b->part[1], &b->part[2]},
                      PARTS, NULL));
}

static void drop(bench *b)
{
    sp_matrix_close(&b->m);
    for (int i = 0; i < PARTS; i++) sp_matrix_close(&b->part[i]);
    OK(fth_mem_destroy(b->mem, NULL));
}

TEST(bounds_are_those_of_all_files)
{
    bench b;
    start(&b);
    const int64_t n = b.part[1].rows;
    OK(sp_matrix_prepare(&b.m, NULL));
    EQ_I64(b.m.rows, n + 4);
    EQ_I64(b.m.cols, 2);
    EQ_I64(b.m.entries, 4 + b.part[1].entries + 20);
    int64_t most = 10;
    for (int64_t r = 0; r < n; r++) {
        const int64_t in_row = sp_matrix_entries(&b.part[1], r, r + 1);
        if (in_row > most) most = in_row;
        EQ_I64(sp_matrix_entries(&b.m, 2 + r, 3 + r), in_row);
        EQ_I64(sp_matrix_entries(&b.m, 1, 2 + r), 2 + sp_matrix_entries(&b.part[1], 0, r));
        EQ_I64(sp_matrix_entries(&b.m, 2 + r, n + 3),
               sp_matrix_entries(&b.part[1], r, n) + 10); /* across two files */
    }
    EQ_I64(sp_matrix_fullest(&b.m), most);
    EQ_I64(sp_matrix_fit(&b.m, 0, 1000), 2); /* to the end of its file */
    EQ_I64(sp_matrix_fit(&b.m, n + 2, 19), 1);
    uint64_t bytes = 0;
    for (int i = 0; i < PARTS; i++)
        if (sp_block_bytes(&b.part[i], 5, 50) > bytes) bytes = sp_block_bytes(&b.part[i], 5, 50);
    IS_TRUE(sp_joined_block_bytes(&b.m, 5, 50) >= bytes);
    IS_TRUE(!sp_joined_has_columns(&b.m));
    b.part[2].layout = SP_LAYOUT_COLUMNS;
    IS_TRUE(sp_joined_has_columns(&b.m));
    b.part[2].layout = SP_LAYOUT_TABLE;
    drop(&b);
}

TEST(rows_of_each_file_by_the_names_of_the_first)
{
    bench b;
    sp_block block;
    fth_err err = {0};
    static const int32_t column[10] = {-1, 0, -1, -1, -1, -1, -1, -1, -1, 1}, both[] = {0, 1};
    static const float first[] = {2, 3}, last[] = {2, 1, 7};
    start(&b);
    const int64_t n = b.part[1].rows;
    sp_joined_columns(&b.m, 2, column);
    OK(sp_matrix_prepare(&b.m, NULL));
    OK(sp_block_create(&block, &b.m, 2, 50, NULL));
    for (int k = 0; k < 2; k++) { /* and back */
        OK(sp_matrix_read(&b.m, 0, 1, &block, NULL));
        EQ_I64(block.ptr[1], 2);
        SAME_BYTES(block.col, both, sizeof both);
        SAME_BYTES(block.val, first, sizeof first);
        OK(sp_matrix_read(&b.m, n + 2, 2, &block, NULL));
        EQ_I64(block.ptr[1], 2);
        EQ_I64(block.ptr[2], 3);
        SAME_BYTES(block.col, both, sizeof both);
        EQ_I64(block.col[2], 1);
        SAME_BYTES(block.val, last, sizeof last);
    }
    IS(sp_matrix_read(&b.m, 1, 2, &block, &err), FTH_E_USAGE);
    HAS(err.text, "rows 1 to 3 are of two files");
    sp_block_free(&block);
    drop(&b);
}

TEST_MAIN()
