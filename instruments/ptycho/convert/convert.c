/* convert.c - see convert.h. */
#include "convert.h"

#include "../scan/copy.h"
#include "../scan/write.h"
#include "../settings/verb.h"

#include <string.h>

static const struct {
    const char *ending, *name;
    fth_status (*write)(pt_scan *scan, const char *path, fth_err *err);
} targets[] = {{".npz", "NPZ scan", pt_convert_npz},
               {".h5", "product HDF5", pt_convert_product},
               {".hdf5", "product HDF5", pt_convert_product},
               {".cxi", "CXI", pt_convert_cxi}};
enum { TARGETS = sizeof targets / sizeof targets[0] };

fth_status pt_convert_npz(pt_scan *scan, const char *path, fth_err *err)
{
    const pt_meta *m = &scan->meta;
    const pt_metadata about = {.nphotons = m->nphotons,
                               .N = scan->N,
                               .gridsize = m->gridsize,
                               .n_images = scan->n,
                               .script = "fathom ptycho convert",
                               .intensity_scale = m->intensity_scale,
                               .energy_eV = m->energy_eV,
                               .distance_m = m->distance_m,
                               .detector_pixel_m = m->detector_pixel_m};
    fth_json_writer json = {0};
    fth_npz_writer *w = NULL;
    fth_sink sink;
    FTH_TRY(pt_metadata_make(scan->mem, &about, &json, err));
    const pt_scan_arrays a = {.n = scan->n,
                              .N = scan->N,
                              .kind = scan->kind,
                              .dtype = scan->patterns.dtype,
                              .x = scan->x,
                              .y = scan->y,
                              .start_x = scan->start_x,
                              .start_y = scan->start_y,
                              .index = scan->index,
                              .modes = scan->modes,
                              .probe = scan->probe,
                              .object = scan->object,
                              .mask = scan->mask,
                              .masks = scan->masks.n_axes ? &scan->masks : NULL,
                              .metadata = json.data};
    fth_status s = pt_scan_write_npz(&w, scan->mem, path, &a, &sink, err);
    if (s == FTH_OK) s = pt_copy_frames(scan, &scan->patterns, &sink, err);
    if (s == FTH_OK) s = sink.commit(sink.self, err);
    if (s == FTH_OK)
        s = fth_npz_commit(w, err);
    else
        fth_npz_abandon(w);
    fth_json_free(&json);
    return s;
}

static int target_of(const char *path)
{
    const size_t n = strlen(path);
    for (int i = 0; i < TARGETS; i++) {
        const size_t k = strlen(targets[i].ending);
        if (n > k && strcmp(path + n - k, targets[i].ending) == 0) return i;
    }
    return -1;
}

static fth_status convert(const pt_call *call, fth_err *err)
{
    const char *in = call->arg[0], *to = call->arg[1];
    fth_answer *a = call->answer;
    pt_scan scan;
    pt_scan_options opt;
    const int target = target_of(to);
    if (target < 0) {
        FTH_FAIL(err, FTH_E_COMMAND, "%s: the extension names no format", to);
        fth_err_hint(err, "scans are written as .npz, .h5 (product) and .cxi");
        return FTH_E_COMMAND;
    }
    const fth_path_use use[2] = {{FTH_FILE_INPUT, "IN", in}, {FTH_FILE_OUTPUT, "OUT", to}};
    FTH_TRY(fth_paths_check(use, 2, fth_context_mem(call->ctx), err));
    pt_scan_options_read(call->cfg, &opt);
    FTH_TRY(pt_scan_open(&scan, call->ctx, in, &opt, err));
    fth_answer_file(a, FTH_FILE_INPUT, in, -1, "%s scan", pt_format_names[scan.format]);
    const int64_t bytes = scan.n * scan.N * scan.N * fth_dtype_size(scan.patterns.dtype);
    fth_answer_file(a, FTH_FILE_OUTPUT, to, a->plan ? bytes : -1, "%s", targets[target].name);
    fth_status s = FTH_OK;
    if (a->plan) {
        fth_answer_memory(a, 64 << 20, "pieces of the patterns");
    } else {
        pt_survey survey;
        s = pt_scan_survey(&scan, NULL, NULL, &survey, err);
        if (s == FTH_OK) s = targets[target].write(&scan, to, err);
        for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(scan.notes); i++)
            fprintf(a->notes, "warning: %s\n", fth_texts_get(scan.notes, i));
        if (s == FTH_OK)
            fprintf(a->notes, "%s: %lld patterns of %lld x %lld, %s\n", to, (long long)scan.n,
                    (long long)scan.N, (long long)scan.N, pt_kind_names[scan.kind]);
        if (s == FTH_OK && a->json) fth_json_int(fth_answer_facts(a), "patterns", scan.n);
    }
    pt_scan_close(&scan);
    return s;
}

PT_RUN(2, "two files are", "fathom ptycho convert IN OUT", convert)

static const fth_flag flags[] = {
#define DATA(...) __VA_ARGS__,
#include "../settings/flags.inc"
    {0}};

const fth_verb pt_verb_convert = {
    .name = "convert",
    .args = "IN OUT",
    .brief = "write a scan in another format: .npz, .h5 (product) or .cxi",
    .doc = "IN is an NPZ of PtychoPINN, a CXI file, a .ptyd of ptypy, a product file of Ptychodus, "
           "or any HDF5 file with the keys hdf5.*. Frames can be cropped (--crop) and binned "
           "(--bin) on the way.\n"
           "\n"
           "Product and CXI files have lengths in metres: where IN lacks them, give --energy_eV, "
           "--distance_m and --detector_pixel_m. Positions are written after flips and signs are "
           "applied, so OUT needs neither.",
    .max_args = 2,
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
