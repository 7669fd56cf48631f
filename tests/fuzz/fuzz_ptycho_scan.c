/* fuzz_ptycho_scan.c - any bytes as a scan: NPZ, CXI, ptyd, product, and HDF5 with a mapping.
 * seconds: 20 */
#include "instruments/ptycho/scan/scan.h"
#include "testing/io/fuzz_file.h"

#include <fathom/fathom.h>
#include <math.h>
#include <stdlib.h>

static void read_all(fth_context *ctx, const char *path, const pt_scan_options *opt)
{
    pt_scan scan;
    pt_survey survey;
    fth_source view;
    fth_tensor *object = NULL;
    if (pt_scan_open(&scan, ctx, path, opt, NULL) != FTH_OK) return;
    if (pt_scan_survey(&scan, NULL, NULL, &survey, NULL) == FTH_OK &&
        !(isfinite(survey.mean_power) && survey.mean_power > 0))
        abort(); /* what was accepted can be scaled to */
    if (pt_scan_view(&scan, PT_COUNTS, FTH_F32, &view, NULL) == FTH_OK)
        fuzz_source(&view, scan.mem);
    if (pt_scan_load_object(&scan, &object, NULL) == FTH_OK) fth_tensor_release(object);
    for (int64_t i = 0; i < scan.n; i++)
        if (!isfinite(scan.start_x[i]) || !isfinite(scan.y[i])) abort();
    pt_scan_close(&scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file f = fuzz_file_open(data, size);
    fth_options opt;
    fth_context *ctx = NULL;
    fth_err err = {0};
    fth_options_default(&opt);
    opt.mem.budget_bytes = 4 << 20;
    opt.threads = 1;
    if (fth_context_create(&ctx, &opt, NULL) != FTH_OK) abort();
    pt_scan_options o = pt_scan_options_default();
    o.random = true;
    read_all(ctx, f.path, &o);
    o.guess = PT_GUESS_DEFAULT; /* a bad probe is not looked at */
    o.random = false;
    o.crop = 6;
    o.energy_eV = 8000;
    o.distance_m = 1;
    o.detector_pixel_m = 1e-4;
    read_all(ctx, f.path, &o);
    o.data = "data";
    o.x = "x";
    o.y = "y";
    o.mask_path = "mask";
    o.crop = 0;
    read_all(ctx, f.path, &o);
    if (fth_context_destroy(ctx, &err) != FTH_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    fuzz_file_close(&f);
    return 0;
}
