/* test_bragg_inputs.c - every request for memory of the readers fails once, and every write of a
 * dump.
 * seconds: 2 */
#include "testing/bragg/bragg_scene.h"
#include "testing/io/files.h"

#include "instruments/bragg/experiment/mosaic.h"
#include "instruments/bragg/experiment/sources.h"
#include "mem/inject.h"

#define INPUT(name) "tests/golden/bragg/inputs/" name

typedef fth_status job(fth_mem *mem, fth_err *err);

/* Fail the 1st, 2nd, 3rd... request until the job succeeds; at least `least` fail. */
static void fail_each(job *run, int64_t least)
{
    fth_status s = FTH_E_NOMEM;
    int64_t n = 1;
    for (; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 24);
        fth_err err = {0};
        fth__mem_inject(mem, n, 0);
        s = run(mem, &err);
        if (s != FTH_OK) IS(s, FTH_E_NOMEM);
        if (s == FTH_OK && fth__mem_alloc_count(mem) >= n) s = FTH_E_NOMEM; /* it managed without */
        OK(fth_mem_destroy(mem, NULL));                                     /* nothing is held */
    }
    IS_TRUE(n - 2 >= least);
}

static fth_status list(fth_mem *mem, fth_err *err)
{
    br_reflections r;
    const fth_status s = br_hkl_read(&r, mem, INPUT("P1_tiny.hkl"), 1, true, err);
    br_reflections_clear(&r);
    return s;
}

static fth_status dump(fth_mem *mem, fth_err *err)
{
    br_reflections r;
    const fth_status s = br_dump_read(&r, mem, t_temp_path("dump"), err);
    br_reflections_clear(&r);
    return s;
}

static fth_status matrix(fth_mem *mem, fth_err *err)
{
    double m[9];
    return br_matrix_read(INPUT("A.mat"), mem, m, err);
}

static fth_status columns(fth_mem *mem, fth_err *err)
{
    br_columns c;
    const fth_status s = br_columns_read(&c, mem, INPUT("sources.txt"), 5, false, err);
    fth_tensor_release(c.table);
    return s;
}

static fth_status sources(fth_mem *mem, fth_err *err)
{
    const double beam[3] = {1, 0, 0};
    fth_tensor *t;
    const fth_status s = br_sources_read(&t, mem, INPUT("sources.txt"), beam, true, err);
    fth_tensor_release(t);
    return s;
}

static fth_status fan(fth_mem *mem, fth_err *err)
{
    br_scene scene;
    double p[BR_PARAMS];
    t_scene(&scene, p, BR_XDS);
    const br_fan f = {.hs = 2, .vs = 1, .wavelengths = 2, .h_range = 0.1, .h_step = 0.1};
    fth_tensor *t;
    const fth_status s = br_sources_make(&t, mem, &scene, &f, NULL, NULL, err);
    fth_tensor_release(t);
    return s;
}

static fth_status domains(fth_mem *mem, fth_err *err)
{
    br_ran1 r;
    br_ran1_clear(&r);
    int64_t seed = -5;
    fth_tensor *t;
    const fth_status s = br_mosaic_make(&t, mem, 5, 0.1, &r, &seed, err);
    fth_tensor_release(t);
    return s;
}

static fth_status image(fth_mem *mem, fth_err *err)
{
    br_image_header h;
    FTH_TRY(br_image_header_read(&h, mem, INPUT("mask64.img"), true, err));
    fth_source s;
    FTH_TRY(br_image_open(&s, mem, INPUT("mask64.img"), &h, err));
    fth_source_close(&s);
    return FTH_OK;
}

static fth_status write_dump(fth_mem *mem, fth_err *err)
{
    br_reflections r;
    FTH_TRY(br_hkl_read(&r, mem, INPUT("P1_tiny.hkl"), 1, false, err));
    const fth_status s = br_dump_write(&r, mem, t_temp_path("dump"), err);
    br_reflections_clear(&r);
    return s;
}

static fth_status note(fth_mem *mem, fth_err *err)
{
    return br_dump_note(t_temp_path("noted"), INPUT("P1_tiny.hkl"), mem, err);
}

TEST(every_reader_without_memory)
{
    fail_each(write_dump, 3);
    fail_each(list, 2);
    fail_each(dump, 3);
    fail_each(note, 2);
    remove(t_temp_path("noted.sha256"));
    fail_each(matrix, 1);
    fail_each(columns, 2);
    fail_each(sources, 3);
    fail_each(fan, 1);
    fail_each(domains, 1);
    fail_each(image, 2);
}

TEST(a_dump_is_written_whole_or_not_at_all)
{
    static const char old[] = "the old file";
    fth_status s = FTH_E_FILE_WRITE;
    int64_t n = 1;
    for (; s != FTH_OK; n++) {
        fth_mem *mem = t_mem(1 << 24);
        fth_err err = {0};
        t_file_write(t_temp_path("dump"), old, sizeof old);
        fth__mem_inject(mem, 0, n);
        s = write_dump(mem, &err);
        if (s != FTH_OK) {
            IS(s, FTH_E_FILE_WRITE);
            size_t bytes;
            unsigned char *now = t_file_read(t_temp_path("dump"), &bytes);
            EQ_U64(bytes, sizeof old);
            SAME_BYTES(now, old, bytes);
            free(now);
        }
        EQ_I64(t_file_count(), 1);
        OK(fth_mem_destroy(mem, NULL));
    }
    IS_TRUE(n - 2 >= 3);
}

TEST_MAIN()
