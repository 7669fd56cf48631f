/* test_focus_mosaics_faults.c - memory that ends at any request while tiles are fused and put
 * together: a status, nothing held, and the next run ends with the same bytes.
 *
 * seconds: 6 */
#include "testing/focus/focus_plate.h"

static tp_plate plate = {.exp = "20250101_toy", .microscope = "Keyence"};

static const fo_toy small = {.wells = 2,
                             .times = 1,
                             .planes = 2,
                             .rows = 48,
                             .columns = 64,
                             .seed = 5,
                             .keyence = true,
                             .tiles = 2};

TEST(every_request_for_memory_may_fail)
{
    fth_err err = {0};
    tp_make(&plate, "faults", &small);
    OKE(tp_call(&plate, &fo_verb_run, "--stitch-z", &err), &err);
    const uint64_t whole = tp_hash(&plate);
    fth_status s = FTH_E_NOMEM;
    int64_t n = 1, failed = 0;
    for (; s != FTH_OK; n += 1 + n / 12) { /* densely at first: the rest are many of a kind */
        tp_shell(&plate, "rm -rf built_image_data metadata/built_metadata_files");
        plate.fail_alloc = n;
        s = tp_call(&plate, &fo_verb_run, "--stitch-z", &err);
        plate.fail_alloc = 0;
        if (s == FTH_OK) break;
        failed++;
        ONE_OF(s, FTH_E_NOMEM, FTH_E_JOB_FAILED);
        IS_TRUE(!tp_there(&plate, "built_image_data/stitched_FF_images/20250101_toy/.ff_complete"));
        if (failed % 8) continue;
        OKE(tp_call(&plate, &fo_verb_run, "--stitch-z", &err), &err);
        EQ_U64(tp_hash(&plate), whole);
    }
    IS_TRUE(failed > 30);
    EQ_U64(tp_hash(&plate), whole);
}

TEST_MAIN()
