/* test_bragg_jobs.c - requests for memory and writes of a job of diffraction images fail, one by
 * one.
 *
 * After each failure: a status that says so, no temporary file, nothing held; and the next run ends
 * with the bytes of an undisturbed one.
 * seconds: 20 */
#include "testing/job/stage_faults.h"
#include "testing/test.h"

extern const fth_instrument fth_instrument_bragg;

static const char config[] =
    "instrument: bragg\n"
    "name: faults\n"
    "crystal: {cell: [30, 40, 50], default_F: 10, N: 2}\n"
    "detector: {pixel: 4, pixels: [16, 12]}\n"
    "scan: {osc: 1, steps: 2, frames: 2}\n"
    "sampling: {oversample: 1}\n"
    "output: {counts: true, gzip: 1, int: true, noise: true, pgm: true, cbf: true, "
    "float: true}\n"
    "figures: {dpi: 30, bins: 9}\n";

static const t_stage_faults series = {.instrument = &fth_instrument_bragg,
                                      .model = "series",
                                      .config = config,
                                      .budget = 1 << 26,
                                      .request_step = 25,
                                      .write_step = 8};

TEST(render)
{
    t_stage_fail(&series, 0, 100, 25);
}

TEST(figures)
{
    t_stage_fail(&series, 1, 60, 8);
}

TEST_MAIN()
