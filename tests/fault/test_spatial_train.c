/* test_spatial_train.c - train without memory and without room on the disk.
 *
 * seconds: 20
 */
#include "testing/job/stage_faults.h"
#include "testing/spatial/spatial_training.h"

static void fail_train(sp_kind kind, int64_t requests, int64_t writes)
{
    char text[4000];
    ss_config(text, sizeof text, kind, "");
    char *iterations = strstr(text, "max_iter: 12"),
         *every = strstr(text, "checkpoint_interval: 4");
    memcpy(iterations, "max_iter: 3 ", 12);
    memcpy(every, "checkpoint_interval: 2", 22);
    const t_stage_faults of = {.instrument = &ss_instrument,
                               .model = sp_kinds[kind].name,
                               .config = text,
                               .budget = (uint64_t)64 << 20,
                               .request_step = 6,
                               .write_step = 8,
                               .except = " model.prev.safetensors "};
    t_stage_fail(&of, 1, requests, writes);
}

TEST(pnmf_survives_every_failure)
{
    fail_train(SP_PNMF, 20, 8);
}

TEST_MAIN()
