/* files.c - the files of an image: checked before anything is computed, renamed into place after
 * everything is.
 *
 * Each is written under a hidden name in its folder, and later passes read the float image back
 * from there. When all are complete they are renamed together: a failed run or a full disk leaves
 * the files of the run before.
 */
#include "cbf.h"
#include "image.h"
#include "smv_header.h"

#include <stdio.h>
#include <string.h>

enum { PATHS = 7 };
static void paths_of(const br_outputs *out, const char *path[PATHS])
{
    path[0] = out->float_file;
    path[1] = out->int_file;
    path[2] = out->pgm_file;
    path[3] = out->noise_file;
    path[4] = out->smv32_file;
    path[5] = out->cbf_file;
    path[6] = out->dump_file;
}

br_wanted br_outputs_wanted(const br_outputs *out)
{
    return (br_wanted){.ints = out->int_file[0] != 0,
                       .pgm = out->pgm_file[0] != 0,
                       .noise = out->noise_file[0] != 0,
                       .smv32 = out->smv32_file[0] != 0,
                       .cbf = out->cbf_file[0] != 0};
}

/* /dev/null and other devices: pixels are discarded. */
static bool is_device(const char *path)
{
    return fth_path_kind_of(path) == FTH_PATH_DEVICE;
}

bool br_output_is_file(const char *path)
{
    return path[0] && !is_device(path);
}

fth_status br_output_check(const char *path, fth_mem *mem, fth_err *err)
{
    if (!br_output_is_file(path)) return FTH_OK;
    if (fth_path_exists(path) && !fth_path_is_writable(path)) {
        FTH_FAIL(err, FTH_E_FILE_WRITE, "%s exists and is not writable", path);
        fth_err_hint(err, "give another name, or make it writable");
        return FTH_E_FILE_WRITE;
    }
    const fth_raw_layout nothing = {.dtype = FTH_U8, .n_axes = 1};
    fth_sink sink;
    FTH_TRY(fth_raw_create(&sink, mem, path, &nothing, NULL, err));
    fth_sink_close(&sink);
    return FTH_OK;
}

fth_status br_outputs_distinct(const br_outputs *out, const fth_path_use *more, int n, fth_mem *mem,
                               fth_err *err)
{
    static const char *const name[PATHS] = {"-floatfile", "-intfile", "-pgmfile", "-noisefile",
                                            "--smv32",    "--cbf",    "-dump"};
    const char *path[PATHS];
    fth_path_use use[PATHS + BR_MORE_FILES];
    paths_of(out, path);
    for (int i = 0; i < PATHS; i++) use[i] = (fth_path_use){FTH_FILE_OUTPUT, name[i], path[i]};
    for (int i = 0; i < n; i++) use[PATHS + i] = more[i];
    return fth_paths_check(use, PATHS + n, mem, err);
}

fth_status br_outputs_check(const br_outputs *out, fth_mem *mem, fth_err *err)
{
    const char *path[PATHS];
    paths_of(out, path);
    FTH_TRY(br_outputs_distinct(out, NULL, 0, mem, err));
    for (int i = 0; i < PATHS; i++) FTH_TRY(br_output_check(path[i], mem, err));
    return FTH_OK;
}

void br_outputs_tell(const br_experiment *e, fth_answer *a)
{
    static const fth_dtype dtype[PATHS] = {FTH_F32, FTH_U16, FTH_U8, FTH_U16, FTH_I32, FTH_I32};
    const br_scene *s = &e->scene;
    const char *path[PATHS];
    char pgm[128];
    br_smv_head u16, i32;
    paths_of(&e->out, path);
    br_smv_header(e, 16, 0, &u16);
    br_smv_header(e, 32, 0, &i32);
    /* The scale of a PGM, and so the length of its header, is known after the render. */
    const int64_t header[PATHS] = {0, u16.bytes,
                                   (int64_t)br_pgm_header(pgm, sizeof pgm, s->fast, s->slow, 1),
                                   u16.bytes, i32.bytes};
    for (int i = 0; i < PATHS - 1; i++) {
        const bool packed = path[i] == e->out.cbf_file || path[i] == e->out.pgm_file;
        const int64_t bytes = header[i] + fth_dtype_size(dtype[i]) * s->fast * s->slow;
        if (br_output_is_file(path[i]))
            fth_answer_file(a, FTH_FILE_OUTPUT, path[i], packed ? -1 : bytes, "%s %lld x %lld%s",
                            fth_dtype_name(dtype[i]), (long long)s->slow, (long long)s->fast,
                            path[i] == e->out.cbf_file ? ", packed" : "");
    }
}

/* ---- sinks ---- */

fth_status br_output_create(fth_sink *out, fth_mem *mem, const char *path,
                            const fth_raw_layout *layout, const void *header, fth_err *err)
{
    if (br_output_is_file(path)) return fth_raw_create(out, mem, path, layout, header, err);
    *out = fth_sink_discard(layout->dtype, layout->n_axes, layout->size);
    return FTH_OK;
}

static fth_raw_layout layout_of(const br_scene *s, fth_dtype dtype, uint64_t offset)
{
    return (fth_raw_layout){
        .dtype = dtype, .n_axes = 2, .size = {s->slow, s->fast}, .offset = offset};
}

/* The temporary name of a file until all are complete. */
static fth_status hidden_name(br_files *f, const char *path, const char **temp, fth_err *err)
{
    if (!f->set) FTH_TRY(fth_file_set_create(&f->set, f->mem, err));
    return fth_file_set_add(f->set, path, temp, err);
}

/* *own keeps the file's sink, *out is the sink for a run. */
static fth_status open_pixels(br_files *f, const char *path, const fth_raw_layout *layout,
                              const char *header, fth_sink *own, fth_sink *out, fth_err *err)
{
    const char *temp;
    *out = fth_sink_discard(layout->dtype, layout->n_axes, layout->size);
    if (!br_output_is_file(path)) return FTH_OK;
    FTH_TRY(hidden_name(f, path, &temp, err));
    FTH_TRY(fth_raw_create(own, f->mem, temp, layout, header, err));
    *out = *own;
    return FTH_OK;
}

fth_status br_files_hold(br_files *f, const br_experiment *e, fth_err *err)
{
    const int64_t size[2] = {e->scene.slow, e->scene.fast};
    if (f->held || br_output_is_file(e->out.float_file)) return FTH_OK;
    FTH_TRY(fth_mem_check_room(f->mem, sizeof(float) * (uint64_t)(size[0] * size[1]),
                               "the image, which goes to no file,", err));
    return fth_tensor_create(&f->held, f->mem, "image", FTH_F32, 2, size, err);
}

fth_status br_files_image(br_files *f, const br_experiment *e, fth_sink *out, fth_err *err)
{
    const br_scene *s = &e->scene;
    const char *path = e->out.float_file;
    FTH_TRY(br_files_hold(f, e, err));
    if (f->held) {
        *out = fth_tensor_sink(f->held);
        return FTH_OK;
    }
    FTH_TRY(hidden_name(f, path, &f->part, err));
    const fth_raw_layout layout = layout_of(s, FTH_F32, 0);
    FTH_TRY(fth_raw_create(&f->image, f->mem, f->part, &layout, NULL, err));
    *out = f->image;
    return FTH_OK;
}

fth_status br_files_source(br_files *f, const br_experiment *e, fth_source *out, fth_err *err)
{
    if (f->held) {
        *out = fth_tensor_source(f->held);
        out->data = NULL; /* the passes were planned for a file */
        return FTH_OK;
    }
    const fth_raw_layout layout = layout_of(&e->scene, FTH_F32, 0);
    return fth_raw_open(out, f->mem, f->part, &layout, err);
}

static fth_status open_smv(br_files *f, const br_experiment *e, br_pixel_sinks *out, fth_err *err)
{
    br_smv_head u16, i32;
    br_smv_header(e, 16, 0, &u16);
    br_smv_header(e, 32, 0, &i32);
    const fth_raw_layout narrow = layout_of(&e->scene, FTH_U16, (uint64_t)u16.bytes),
                         wide = layout_of(&e->scene, FTH_I32, (uint64_t)i32.bytes);
    FTH_TRY(open_pixels(f, e->out.int_file, &narrow, u16.text, &f->ints, &out->ints, err));
    FTH_TRY(open_pixels(f, e->out.noise_file, &narrow, u16.text, &f->noise, &out->noise, err));
    return open_pixels(f, e->out.smv32_file, &wide, i32.text, &f->smv32, &out->smv32, err);
}

fth_status br_files_pixels(br_files *f, const br_experiment *e, const br_statistics *s,
                           br_pixel_sinks *out, fth_err *err)
{
    const br_scene *scene = &e->scene;
    const char *cbf = e->out.cbf_file;
    char pgm[128];
    const size_t bytes = br_pgm_header(pgm, sizeof pgm, scene->fast, scene->slow, s->pgm_scale);
    const fth_raw_layout u8 = layout_of(scene, FTH_U8, bytes), i32 = layout_of(scene, FTH_I32, 0);
    FTH_TRY(open_smv(f, e, out, err));
    FTH_TRY(open_pixels(f, e->out.pgm_file, &u8, pgm, &f->pgm, &out->pgm, err));
    if (!br_output_is_file(cbf))
        return open_pixels(f, cbf, &i32, NULL, &f->unpacked, &out->cbf, err);
    FTH_TRY(hidden_name(f, cbf, &f->packed, err));
    FTH_TRY(fth_path_beside(f->raw, f->packed, "raw", err));
    FTH_TRY(fth_raw_create(&f->unpacked, f->mem, f->raw, &i32, NULL, err));
    out->cbf = f->unpacked;
    return FTH_OK;
}

fth_status br_files_pack(br_files *f, const br_experiment *e, fth_err *err)
{
    if (!f->packed) return FTH_OK;
    const fth_raw_layout i32 = layout_of(&e->scene, FTH_I32, 0);
    fth_source pixels;
    FTH_TRY(fth_raw_open(&pixels, f->mem, f->raw, &i32, err));
    fth_status s = br_cbf_write(&f->cbf, f->packed, e, &pixels, err);
    fth_source_close(&pixels);
    if (s == FTH_OK) s = f->cbf.commit(f->cbf.self, err);
    return s;
}

fth_status br_files_commit(br_files *f, fth_err *err)
{
    return f->set ? fth_file_set_commit(f->set, err) : FTH_OK;
}

void br_files_close(br_files *f)
{
    fth_sink_close(&f->image);
    fth_sink_close(&f->ints);
    fth_sink_close(&f->pgm);
    fth_sink_close(&f->noise);
    fth_sink_close(&f->smv32);
    fth_sink_close(&f->unpacked);
    fth_sink_close(&f->cbf);
    if (f->packed) fth_path_discard(f->mem, f->raw);
    fth_file_set_destroy(f->set);
    fth_tensor_release(f->held);
    *f = (br_files){.mem = f->mem};
}
