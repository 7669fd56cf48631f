/* test_lines.c - texts of lines: numbers, fields of CSV, files, no memory.
 * seconds: 1 */
#include "testing/io/files.h"

#include "mem/inject.h"

#include <fathom/lines.h>
#include <math.h>

static void write_all(fth_lines *t)
{
    fth_lines_add(t, "%s,%d\n", "rank", 7);
    fth_lines_real(t, 0.1);
    fth_lines_add(t, ",");
    fth_lines_real(t, (double)NAN);
    fth_lines_add(t, ",");
    fth_lines_real(t, -(double)INFINITY);
    fth_lines_add(t, "\n");
    fth_lines_field(t, "Acta2");
    fth_lines_add(t, ",");
    fth_lines_field(t, "a \"b\", c");
    fth_lines_add(t, ",");
    fth_lines_field(t, NULL);
    fth_lines_add(t, ",");
    fth_lines_field(t, "");
    fth_lines_add(t, "\n");
}

static const char wanted[] = "rank,7\n0.1,nan,-inf\nActa2,\"a \"\"b\"\", c\",,\n";

TEST(numbers_are_short_and_fields_are_quoted_where_needed)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_lines t;
    fth_lines_begin(&t, mem);
    write_all(&t);
    EQ_STR(t.data, wanted);
    const char *path = t_temp_path("a.csv");
    OK(fth_lines_save(&t, path, NULL));
    char back[200] = {0};
    FILE *f = fopen(path, "r");
    IS_TRUE(f && fread(back, 1, sizeof back - 1, f) == sizeof wanted - 1);
    fclose(f);
    EQ_STR(back, wanted);
    fth_lines_free(&t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(what_ends_a_line_is_quoted)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_lines t;
    fth_lines_begin(&t, mem);
    fth_lines_field(&t, "a\rb");
    fth_lines_field(&t, "c\nd");
    EQ_STR(t.data, "\"a\rb\"\"c\nd\"");
    fth_lines_free(&t);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(an_empty_text_is_an_empty_file)
{
    fth_mem *mem = t_mem(1 << 20);
    fth_lines t;
    fth_lines_begin(&t, mem);
    const char *path = t_temp_path("empty.csv");
    OK(fth_lines_save(&t, path, NULL));
    FILE *f = fopen(path, "r");
    IS_TRUE(f && fgetc(f) == EOF);
    fclose(f);
    OK(fth_mem_destroy(mem, NULL));
}

TEST(no_memory_is_reported_by_save_and_leaves_no_file)
{
    const char *path = t_temp_path("none.csv");
    for (int64_t n = 1;; n++) {
        fth_mem *mem = t_mem(1 << 20);
        fth__mem_inject(mem, n, 0);
        fth_lines t;
        fth_lines_begin(&t, mem);
        for (int i = 0; i < 40; i++) write_all(&t);
        const fth_status s = fth_lines_save(&t, path, NULL);
        const bool over = fth__mem_alloc_count(mem) < n;
        IS(s, over ? FTH_OK : FTH_E_NOMEM);
        FILE *f = fopen(path, "r");
        IS_TRUE((f != NULL) == over);
        if (f) fclose(f);
        OK(fth_mem_destroy(mem, NULL));
        if (over) break;
    }
}

TEST_MAIN()
