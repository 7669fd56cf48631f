/* test_ptycho_solve.c - solvers that run out of memory or of disk at many points: a status says so,
 * and nothing stays allocated or half written.
 *
 * seconds: 5 */
#include "instruments/ptycho/simulate/simulate.h"
#include "instruments/ptycho/solve/job.h"
#include "testing/ptycho/ptycho_faults.h"

static const char *const scan_flags[] = {"size", "40",    "N", "16", "n_images",
                                         "6",    "lines", "9", NULL};
static const char *const lsqml[] = {
    "algorithm", "lsqml", "iterations", "2", "modes",    "2",     "momentum",       "0.5",
    "opr",       "1",     "force",      "",  "pictures", "false", "position_start", "0",
    NULL};
static const char *const constrained[] = {"algorithm",
                                          "epie",
                                          "iterations",
                                          "1",
                                          "object_smooth",
                                          "0.1",
                                          "object_tv",
                                          "0.1",
                                          "raster_period",
                                          "4,5",
                                          "phase_max",
                                          "1",
                                          "probe_mask",
                                          "true",
                                          "probe_threshold",
                                          "0.1",
                                          "probe_aperture",
                                          "12",
                                          "centre_probe",
                                          "true",
                                          "force",
                                          "",
                                          "pictures",
                                          "false",
                                          NULL};
static const char *const waves[] = {"algorithm", "dm",       "iterations", "1", "force",
                                    "",          "pictures", "false",      NULL};
static const char *const mpie[] = {"algorithm",      "mpie",  "iterations", "1",
                                   "momentum_every", "4",     "force",      "",
                                   "pictures",       "false", NULL};

TEST(solve)
{
    static const char *const *const ways[] = {lsqml, constrained, waves, mpie};
    static const int64_t step[] = {13, 5, 11, 7};
    char scan[FTH_PATH], out[FTH_PATH];
    fth_err err;
    snprintf(scan, sizeof scan, "%s", t_temp_path("scan.npz"));
    snprintf(out, sizeof out, "%s", t_temp_path("solved"));
    pf_call simulate = {.verb = &pt_verb_simulate, .word = {scan}, .flag = scan_flags};
    OKE(pf_run(&simulate, &err), &err);
    for (int i = 0; i < 4; i++) {
        pf_survive((pf_call){.verb = &pt_verb_solve, .word = {scan}, .flag = ways[i], .out = out},
                   step[i], 1, NULL);
        pf_no_remains(out);
    }
}

TEST_MAIN()
