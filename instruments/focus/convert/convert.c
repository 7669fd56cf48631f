/* convert.c - see convert.h. A copy is a plan like any other: read, written, within the budget. */
#include "convert.h"

#include "../devices/devices.h"
#include "../experiment/experiment.h"
#include "../input/paths.h"
#include "../run/enough.h"
#include "target.h"

#include <inttypes.h>
#include <string.h>

typedef const char *value_fn(void *user, const char *flag);

/* All that one call of the command holds. */
typedef struct command {
    fth_context *ctx;
    fth_answer *a;
    value_fn *value;
    void *user;
    char in[FTH_PATH], table[FTH_PATH], name[FTH_PATH];
    bool overwrite;
    fo_series_options want;
    fo_target_options to;
    fo_series series;
    fth_run_report report;
    bool quiet; /* print nothing: only planned, to find how much memory is enough */
} command;

static const char *get(const command *c, const char *flag)
{
    return c->value(c->user, flag);
}

static const char *text_of(const command *c, const char *flag)
{
    const char *text = get(c, flag);
    return text ? text : "";
}

/* ---- flags ---- */

/* One of the words between blanks; its number. */
static fth_status read_word(const command *c, const char *flag, const char *words, int *out,
                            fth_err *err)
{
    const char *text = get(c, flag);
    if (!text) return FTH_OK;
    const char *at = words;
    for (int i = 0; *at; i++) {
        const size_t n = strcspn(at, " ");
        if (strlen(text) == n && strncmp(at, text, n) == 0) {
            *out = i;
            return FTH_OK;
        }
        at += n;
        at += *at == ' ';
    }
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: expected one of %s, found '%.60s'", flag, words,
                    text);
}

static fth_status read_count(const command *c, const char *flag, int64_t least, int64_t most,
                             int64_t *out, fth_err *err)
{
    const char *text = get(c, flag);
    if (!text || (fth_int_parse(text, out) && *out >= least && *out <= most)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: expected %" PRId64 " to %" PRId64 ", found '%.40s'",
                    flag, least, most, text);
}

static fth_status read_um(const command *c, const char *flag, double *out, fth_err *err)
{
    const char *text = get(c, flag);
    if (!text || (fth_real_parse(text, out) && *out > 0 && *out <= 1e6)) return FTH_OK;
    return FTH_FAIL(err, FTH_E_COMMAND, "--%s: expected a number of um, found '%.40s'", flag, text);
}

static fth_status read_target(command *c, fth_err *err)
{
    static const fth_zarr_packing packings[] = {FTH_ZARR_PLAIN, FTH_ZARR_ZSTD, FTH_ZARR_BLOSC,
                                                FTH_ZARR_GZIP};
    int version = 1, packing = 1;
    int64_t tile = 0, levels = 3;
    FTH_TRY(fo_target_kind_of(c->to.path, &c->to.kind, err));
    FTH_TRY(read_word(c, "ngff", "0.4 0.5", &version, err));
    FTH_TRY(read_word(c, "compressor", "none zstd blosc gzip", &packing, err));
    FTH_TRY(read_count(c, "tile", 0, 1 << 20, &tile, err));
    FTH_TRY(read_count(c, "levels", 1, 8, &levels, err));
    static const char *const of_zarr[] = {"ngff", "compressor", "tile", "levels"};
    for (size_t i = 0; i < sizeof of_zarr / sizeof of_zarr[0]; i++)
        if (c->to.kind != FO_TO_ZARR && get(c, of_zarr[i]))
            return FTH_FAIL(err, FTH_E_COMMAND, "--%s is for OUT.zarr, not for OME-TIFF",
                            of_zarr[i]);
    c->to.version = version == 0 ? 4 : 5;
    c->to.packing = packings[packing];
    c->to.tile = tile;
    c->to.levels = (int)levels;
    c->to.only_plan = c->a->plan || c->quiet;
    c->overwrite = get(c, "overwrite") != NULL;
    return FTH_OK;
}

static fth_status read_selection(command *c, fth_err *err)
{
    c->want.wells = text_of(c, "wells");
    c->want.channels = text_of(c, "channels");
    c->want.times = (fo_range){0, -1, 1};
    if (get(c, "times") && !fo_range_parse(get(c, "times"), &c->want.times))
        return FTH_FAIL(err, FTH_E_COMMAND,
                        "--times: expected A:B or A:B:STEP with A below B, found '%.60s'",
                        get(c, "times"));
    FTH_TRY(read_um(c, "um-per-px", &c->want.um_per_px, err));
    return read_um(c, "z-step", &c->want.z_step_um, err);
}

/* ---- from where ---- */

static fth_status wrong_words(fth_err *err)
{
    FTH_FAIL(err, FTH_E_COMMAND, "one input and one output are needed");
    fth_err_hint(err, "write 'fathom focus convert IN -o OUT.zarr', or --data-root D --exp E in "
                      "place of IN");
    return FTH_E_COMMAND;
}

/* Of the options of a run those that say where an experiment is, and which position is which well.
 */
static const char *place_value(void *user, const char *flag)
{
    static const char *const ours[] = {"data-root", "exp", "microscope", "layout", "map", "ref-xy"};
    const command *c = user;
    const char *microscope = get(c, "microscope");
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strcmp(ours[i], flag) == 0) return get(c, flag);
    if (!microscope || strcmp(microscope, "Keyence") != 0) return NULL; /* chosen in the file */
    if (strcmp(flag, "wells") == 0 || strcmp(flag, "times") == 0) return get(c, flag);
    if (strcmp(flag, "channel") == 0) return get(c, "channels");
    return strcmp(flag, "orientation") == 0 ? "horizontal" : NULL; /* tiles stay apart */
}

static fth_status open_stacks(command *c, fth_err *err)
{
    fth_mem *mem = fth_context_mem(c->ctx);
    fth_config *cfg = NULL;
    FTH_TRY(fo_settings_from_flags(&cfg, mem, false, place_value, c, err));
    const fth_status s = fo_series_open_stacks(&c->series, mem, cfg, &c->want, err);
    const fth_status closed = fth_config_destroy(cfg, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

static fth_status find_input(command *c, int n_args, char *const *arg, fth_err *err)
{
    const char *root = get(c, "data-root"), *exp = get(c, "exp");
    int layout = 0;
    fo_experiment e;
    c->to.path = get(c, "output");
    if (!c->to.path || (root != NULL) != (exp != NULL) || (root != NULL) == (n_args > 0))
        return wrong_words(err);
    static const char *const of_stacks[] = {"microscope", "map", "ref-xy"};
    for (size_t i = 0; i < sizeof of_stacks / sizeof of_stacks[0]; i++)
        if (get(c, of_stacks[i]) && !get(c, "stacks"))
            return FTH_FAIL(err, FTH_E_COMMAND, "--%s needs --stacks", of_stacks[i]);
    if (get(c, "stacks") && !root)
        return FTH_FAIL(err, FTH_E_COMMAND, "--stacks needs an experiment: --data-root and --exp");
    FTH_TRY(read_word(c, "layout", "legacy v2", &layout, err));
    if (n_args > 0) {
        snprintf(c->in, sizeof c->in, "%s", arg[0]);
        fo_path_stem(c->in, c->name, sizeof c->name);
        return FTH_OK;
    }
    FTH_TRY(fo_experiment_results(
        &e,
        &(fo_experiment_options){
            .root = root, .name = exp, .layout = layout == 1 ? FO_LAYOUT_V2 : FO_LAYOUT_LEGACY},
        err));
    snprintf(c->in, sizeof c->in, "%s", e.images);
    snprintf(c->table, sizeof c->table, "%s", e.metadata);
    snprintf(c->name, sizeof c->name, "%s", e.name);
    c->want.table = c->table;
    return FTH_OK;
}

/* A folder of no known format may hold fused images. */
static fth_status open_input(command *c, fth_err *err)
{
    fth_mem *mem = fth_context_mem(c->ctx);
    if (get(c, "stacks")) return open_stacks(c, err);
    const fth_path_kind kind = fth_path_kind_of(c->in);
    bool known = kind != FTH_PATH_FOLDER;
    if (kind == FTH_PATH_ABSENT) {
        FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: there is no such file or folder", c->in);
        if (c->want.table)
            fth_err_hint(err, "'fathom focus run' creates the images of an experiment");
        return FTH_E_FILE_OPEN;
    }
    if (!known && !c->want.table) {
        fth_images *images = NULL;
        fth_err why = {0};
        const fth_status s = fth_images_open(&images, mem, c->in, NULL, &why);
        fth_images_close(images);
        known = s == FTH_OK;
        if (!known && fth_status_get_info(s)->exit_code != 3) { /* not for what is in it */
            *err = why;
            return s;
        }
    }
    if (!known) return fo_series_open_folder(&c->series, mem, c->in, &c->want, err);
    return fo_series_open_file(&c->series, mem, c->in, &c->want, err);
}

/* ---- checks ---- */

static fth_status check_wells(const command *c, fth_err *err)
{
    const fo_series *s = &c->series;
    if (s->wells == 1 || c->to.kind == FO_TO_FOLDER || (c->to.kind == FO_TO_ZARR && s->is_plate))
        return FTH_OK;
    FTH_FAIL(err, FTH_E_COMMAND,
             c->to.kind == FO_TO_TIFF ? "%s: one file holds one well, and there are %lld"
                                      : "%s: a plate needs wells such as A01, and %lld positions "
                                        "have no such names, or the same",
             c->to.path, (long long)s->wells);
    fth_err_hint(err, "end OUT with a slash for a file each, or choose one with --wells");
    return FTH_E_COMMAND;
}

static fth_status check_output(const command *c, fth_err *err)
{
    const fth_path_use use[] = {{FTH_FILE_INPUT, "IN", c->series.path},
                                {FTH_FILE_OUTPUT, "-o", c->to.path}};
    char path[FTH_PATH], parent[FTH_PATH];
    FTH_TRY(fth_paths_check(use, 2, c->series.mem, err));
    FTH_TRY(fth_path_parent(parent, c->to.path, err));
    if (c->to.kind != FO_TO_FOLDER && fth_path_kind_of(parent) != FTH_PATH_FOLDER)
        return FTH_FAIL(err, FTH_E_FILE_WRITE, "%s: there is no such folder", parent);
    for (int64_t w = 0; w < (c->to.kind == FO_TO_FOLDER ? c->series.wells : 1); w++) {
        FTH_TRY(fo_target_path(&c->series, &c->to, w, path, err));
        if (c->overwrite || !fth_path_exists(path)) continue;
        FTH_FAIL(err, FTH_E_COMMAND, "%s exists", path);
        fth_err_hint(err, "--overwrite replaces it once the new one is complete");
        return FTH_E_COMMAND;
    }
    return FTH_OK;
}

/* Existing output stays until the new one is complete. */
static fth_status check_room(command *c, fth_err *err)
{
    fo_room room = {0};
    char path[FTH_PATH], beside[FTH_PATH];
    FTH_TRY(fo_target_path(&c->series, &c->to, 0, path, err));
    FTH_TRY(fth_path_beside(beside, path, "new", err));
    FTH_TRY(fo_room_add(&room, beside, fo_target_amount(&c->series, &c->to), err));
    fth_texts *notes = NULL;
    FTH_TRY(fth_texts_create(&notes, c->series.mem, err));
    const fth_status s = fo_room_check(&room, get(c, "ignore-space") != NULL, notes, err);
    for (int64_t i = 0; s == FTH_OK && !c->quiet && i < fth_texts_count(notes); i++)
        fprintf(c->a->notes, "note    %s\n", fth_texts_get(notes, i));
    fth_texts_free(notes);
    return s;
}

/* ---- doing it ---- */

static void tell_files(const command *c)
{
    const fo_series *s = &c->series;
    char path[FTH_PATH];
    fth_answer_file(c->a, FTH_FILE_INPUT, s->path, -1, "%" PRId64 " file%s", s->files,
                    s->files == 1 ? "" : "s");
    for (int64_t w = 0; w < (c->to.kind == FO_TO_FOLDER ? s->wells : 1); w++) {
        if (fo_target_path(s, &c->to, w, path, NULL) != FTH_OK) continue;
        fth_answer_file(c->a, FTH_FILE_OUTPUT, path, -1,
                        "wells=%" PRId64 " t=%" PRId64 " c=%" PRId64 " z=%" PRId64 " y=%" PRId64
                        " x=%" PRId64 " %s",
                        c->to.kind == FO_TO_ZARR ? s->wells / s->fields : 1, s->t, s->c, s->z, s->y,
                        s->x, fth_dtype_name(s->dtype));
    }
}

static void tell_result(const command *c)
{
    const fo_series *s = &c->series;
    FILE *out = c->a->notes;
    char text[1000];
    fprintf(out,
            "%s: %" PRId64 " well%s, t=%" PRId64 " c=%" PRId64 " z=%" PRId64 " y=%" PRId64
            " x=%" PRId64 " %s\n",
            c->to.path, s->wells / s->fields, s->wells == s->fields ? "" : "s", s->t, s->c, s->z,
            s->y, s->x, fth_dtype_name(s->dtype));
    if (s->fields > 1) fprintf(out, "%" PRId64 " tiles of each become its fields\n", s->fields);
    if (s->missing) fprintf(out, "%" PRId64 " images are missing and are black\n", s->missing);
    fth_run_report_format(&c->report, text, sizeof text);
    fprintf(out, "%s", text);
    if (!c->a->json) return;
    fth_json_writer *w = fth_answer_facts(c->a);
    fth_json_text(w, "output", c->to.path);
    fth_json_int(w, "wells", s->wells / s->fields);
    fth_json_int(w, "fields", s->fields);
    fth_json_int(w, "times", s->t);
    fth_json_int(w, "channels", s->c);
    fth_json_int(w, "planes", s->z);
    fth_json_int(w, "missing", s->missing);
    fth_json_u64(w, "planned_bytes", c->report.planned_bytes);
    fth_json_u64(w, "peak_bytes", c->report.ledger_bytes);
}

static fth_status copy(command *c, fth_context *ctx, const fth_sink *sink, fth_err *err)
{
    const fo_series *s = &c->series;
    fth_graph *g = fth_graph_create(ctx);
    fth_axis(g, "plane", s->source.size[0]);
    fth_axis(g, "y", s->y);
    fth_axis(g, "x", s->x);
    const fth_val pixels = fth_input(g, "pixels", s->dtype, "plane y x", s->source);
    const fth_limits limits = {.stream = s->source.size[0] > 1 ? "plane" : NULL,
                               .sinks = sink,
                               .min_pieces = FTH_PIECES_AUTO};
    const fth_val same = fth_max(pixels, pixels); /* a step: without one nothing is cut */
    fth_plan *plan = fth_plan_make(g, &same, 1, &limits, err);
    fth_status status = plan ? FTH_OK : err->status;
    if (status == FTH_OK && !c->quiet)
        status = c->a->plan ? fth_answer_plan(c->a, "copy", plan, err)
                            : fth_run(plan, sink, NULL, &c->report, err);
    fth_plan_destroy(plan);
    fth_graph_destroy(g);
    return status;
}

/* There is nothing to compute, so no device is used. */
static fth_status copy_on_cpu(command *c, const fth_sink *sink, fth_err *err)
{
    fth_context *own = NULL;
    if (strcmp(fth_context_device(c->ctx), "cpu") == 0) return copy(c, c->ctx, sink, err);
    FTH_TRY(fo_device_open(&own, c->ctx, "cpu", err));
    const fth_status s = copy(c, own, sink, err);
    const fth_status closed = fth_context_destroy(own, s == FTH_OK ? err : NULL);
    return s == FTH_OK ? closed : s;
}

static void nothing(void *arg, int64_t i, int worker)
{
    (void)arg, (void)i, (void)worker;
}

static fth_status work(command *c, int n_args, char *const *arg, fth_err *err)
{
    fo_target *target = NULL;
    FTH_TRY(find_input(c, n_args, arg, err));
    FTH_TRY(read_target(c, err));
    FTH_TRY(read_selection(c, err));
    FTH_TRY(open_input(c, err));
    FTH_TRY(check_wells(c, err));
    FTH_TRY(check_output(c, err));
    FTH_TRY(check_room(c, err));
    c->to.name = c->name;
    /* From here on Ctrl+C ends the command cleanly: no temporary folder is left behind. */
    FTH_TRY(fth_context_loop(c->ctx, "convert", 1, nothing, NULL, err));
    FTH_TRY(fo_target_create(&target, &c->series, &c->to, err));
    const fth_sink sink = fo_target_sink(target);
    if (c->a->plan && !c->quiet) tell_files(c);
    const fth_status s = copy_on_cpu(c, &sink, err);
    fo_target_destroy(target);
    if (s != FTH_OK || c->a->plan || c->quiet) return s;
    tell_files(c);
    tell_result(c);
    return FTH_OK;
}

/* Tried again with more memory. */
typedef struct words {
    const command *c;
    int n;
    char *const *arg;
} words;

static fth_status try_it(void *user, fth_context *ctx, fth_err *err)
{
    const words *w = user;
    command c = {.ctx = ctx, .a = w->c->a, .value = w->c->value, .user = w->c->user, .quiet = true};
    const fth_status s = work(&c, w->n, w->arg, err);
    fo_series_close(&c.series);
    return s;
}

static fth_status run(fth_context *ctx, int n_args, char *const *arg, value_fn *value, void *user,
                      FILE *out, fth_err *err)
{
    fth_err own = {0};
    fth_answer a;
    if (!err) err = &own;
    FTH_TRY(fth_answer_begin(&a, ctx, value, user, out, err));
    command c = {.ctx = ctx, .a = &a, .value = value, .user = user};
    fth_status s = work(&c, n_args, arg, err);
    fo_series_close(&c.series);
    words again = {&c, n_args, arg};
    s = fo_enough(ctx, s, try_it, &again, err);
    return fth_answer_end(&a, s, err);
}

static const fth_flag flags[] = {
    {.name = "output",
     .value = FTH_FLAG_PATH,
     .letter = 'o',
     .doc = "OUT.zarr, OUT.ome.tif, or with a slash a folder of OME-TIFF files, one for each well"},
    {.name = "data-root",
     .value = FTH_FLAG_DIR,
     .doc = "root folder of the data with the images of an experiment, in place of IN"},
    {.name = "exp", .value = FTH_FLAG_WORD, .doc = "name of the experiment in it"},
    {.name = "layout",
     .value = FTH_FLAG_WORD,
     .doc = "names of files and folders: legacy or v2; default: legacy"},
    {.name = "stacks", .doc = "the raw stacks of the experiment in place of its fused images"},
    {.name = "microscope", .value = FTH_FLAG_WORD, .doc = "with --stacks: YX1 or Keyence"},
    {.name = "map",
     .value = FTH_FLAG_WORD,
     .doc = "with --stacks: how positions are mapped to wells (auto xy sheet implicit); default: "
            "auto"},
    {.name = "ref-xy",
     .value = FTH_FLAG_PATH,
     .doc = "with --stacks: table well,x_um,y_um of the stage"},
    {.name = "ngff",
     .value = FTH_FLAG_WORD,
     .doc = "version of OME-NGFF: 0.4 or 0.5; default: 0.5"},
    {.name = "compressor",
     .value = FTH_FLAG_WORD,
     .doc = "compression of the chunks of a Zarr: none, zstd, blosc or gzip; default: zstd"},
    {.name = "tile",
     .value = FTH_FLAG_COUNT,
     .doc = "side of a chunk in px, as 512; default: whole planes"},
    {.name = "levels",
     .value = FTH_FLAG_COUNT,
     .doc = "levels of the image pyramid, each half the size of the one before; default: 3"},
    {.name = "wells", .value = FTH_FLAG_WORD, .doc = "wells to convert: A01,B03"},
    {.name = "times",
     .value = FTH_FLAG_WORD,
     .doc = "time points A:B or A:B:STEP to convert, counted from 0, B excluded"},
    {.name = "channels",
     .value = FTH_FLAG_WORD,
     .doc = "channels to convert, by name or number: BF,GFP"},
    {.name = "um-per-px",
     .value = FTH_FLAG_WORD,
     .doc = "pixel size in um, where the files lack it or are wrong"},
    {.name = "z-step",
     .value = FTH_FLAG_WORD,
     .doc = "distance of planes in um, where the file lacks it or is wrong"},
    {.name = "overwrite", .doc = "replace existing output"},
    {.name = "ignore-space", .doc = "continue although the disk is likely too full"},
    {0}};

const fth_verb fo_verb_convert = {
    .name = "convert",
    .args = "[IN]",
    .brief = "write fused images or raw stacks as OME-NGFF or OME-TIFF",
    .doc = "IN is a folder of fused images as 'run' writes them, or a file of stacks: ND2, TIFF, "
           "OME-TIFF, ImageJ, Zarr, OME-NGFF. With --data-root and --exp the images of that "
           "experiment are converted, with times and pixel size from its table; with "
           "--stacks and --microscope its raw stacks, their positions mapped to wells; tiles of a "
           "Keyence are fields of their well, or files OUT/A01_p0000.ome.tif.\n"
           "\n"
           "Wells become one plate, OUT.zarr, with smaller copies of each image; or files "
           "OUT/A01.ome.tif with the time of each image. One well, or one position without a "
           "name, may be one file OUT.ome.tif. Missing images are black.\n"
           "\n"
           "Pixels are streamed within the memory budget; the bytes do not depend on it. The "
           "output appears when it is complete, or not at all.",
    .max_args = 1,
    .flag = flags,
    .heeds = "plan json quiet",
    .run = run};
