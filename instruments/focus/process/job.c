/* job.c - see job.h. */
#include "job.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static fth_status note(fo_job *e, const char *text, fth_err *err)
{
    return fth_texts_add(e->notes, text, strlen(text), err);
}

/* ---- places ---- */

static fth_status find_places(fo_job *e, fo_problems *problems, fth_err *err)
{
    const fo_experiment_options opt = {
        .root = fth_config_text_or(e->cfg, "input.data_root", ""),
        .name = fth_config_text_or(e->cfg, "input.exp", ""),
        .microscope = fth_config_text_or(e->cfg, "input.microscope", ""),
        .layout = fth_config_choice(e->cfg, "focus.layout") == 1 ? FO_LAYOUT_V2 : FO_LAYOUT_LEGACY,
        .run_dir = fth_config_text_or(e->cfg, "focus.run_dir", "")};
    return fo_experiment_find(&e->place, e->mem, &opt, problems, e->notes, err);
}

/* Checks that output folders are writable. */
static void check_writable(const fo_job *e, fo_problems *problems)
{
    const char *const wanted[] = {e->place.images, e->place.metadata, e->place.run};
    for (int i = 0; i < 3; i++) {
        char path[FTH_PATH], parent[FTH_PATH];
        if (!wanted[i][0]) continue;
        snprintf(path, sizeof path, "%s", wanted[i]);
        while (fth_path_kind_of(path) == FTH_PATH_ABSENT &&
               fth_path_parent(parent, path, NULL) == FTH_OK && strcmp(parent, path) != 0)
            snprintf(path, sizeof path, "%s", parent);
        if (!fth_path_is_writable(path))
            fo_problems_add(problems, true, NULL, "%.300s is not writable", path);
    }
}

/* ---- wells ---- */

static fth_status read_plate(fo_job *e, fo_problems *problems, fth_err *err)
{
    fth_err found = {0};
    if (!e->place.plate[0]) return FTH_OK;
    const fth_status s = fo_plate_read(&e->plate, e->mem, e->place.layout, e->place.plate, &found);
    return fo_problems_or(problems, s, &found, err);
}

/* Places of the stage at the first frame of each position. */
static void read_stage(const fth_images *images, fo_stage_place *place, int64_t n)
{
    for (int64_t p = 0; p < n; p++) {
        const fth_images_position at = fth_images_get_position(images, p);
        const fth_images_frame frame = fth_images_get_frame(images, 0, p, 0);
        place[p] = (fo_stage_place){isnan(frame.x_um) ? at.x_um : frame.x_um,
                                    isnan(frame.y_um) ? at.y_um : frame.y_um};
    }
}

static fth_status map_wells(fo_job *e, const fth_images *images, fo_problems *problems,
                            fth_err *err)
{
    const int64_t n = fth_images_get_info(images)->size[FTH_IMAGES_P];
    fo_stage_place reference[FO_WELLS], *place = NULL;
    const bool table = fth_config_has(e->cfg, "focus.ref_xy");
    fth_err found = {0};
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_POOL, (uint64_t)n * sizeof *place, "stage",
                         (void **)&place, err));
    read_stage(images, place, n);
    fth_status s = table ? fo_map_read_reference(reference, e->mem,
                                                 fth_config_text(e->cfg, "focus.ref_xy"), &found)
                         : FTH_OK;
    const fo_map_input in = {.method = (fo_map_method)fth_config_choice(e->cfg, "focus.map"),
                             .n = n,
                             .position = place,
                             .reference = table ? reference : NULL,
                             .sheet = e->plate.has_series ? e->plate.series : NULL,
                             .allow_duplicates =
                                 fth_config_bool(e->cfg, "focus.allow_duplicate_wells"),
                             .allow_implicit = e->place.layout == FO_LAYOUT_V2};
    if (s == FTH_OK) s = fo_map_make(&e->map, e->mem, &in, &found);
    const bool follows = !e->plate.mem && !table; /* from a plate's table that cannot be read */
    const fth_status told = follows ? FTH_OK : fo_problems_or(problems, s, &found, err);
    fth_mem_release(e->mem, place, NULL);
    if (told != FTH_OK) return told;
    for (int64_t i = 0; s == FTH_OK && i < fth_texts_count(e->map.notes); i++)
        FTH_TRY(note(e, fth_texts_get(e->map.notes, i), err));
    return FTH_OK;
}

bool fo_job_wants(const char *list, int well)
{
    if (!*list) return true;
    for (const char *at = list; *at;) {
        char name[32];
        const size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < 31 ? n : 31), at);
        if (fo_well_parse(name) == well) return true;
        at += n;
        at += *at == ',';
    }
    return false;
}

void fo_job_check_wells(const char *list, const int *of, int64_t n_of, fo_problems *problems)
{
    for (const char *at = list; *at;) {
        char name[32];
        bool found = false;
        const size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < 31 ? n : 31), at);
        const int well = fo_well_parse(name);
        for (int64_t p = 0; p < n_of; p++) found = found || (well >= 0 && of[p] == well);
        if (!found)
            fo_problems_add(problems, false, NULL, "--wells: %s '%s'",
                            well < 0 ? "there is no well" : "no position shows well", name);
        at += n;
        at += *at == ',';
    }
}

/* Positions with a well that is wanted, as a list of numbers. */
static void choose_positions(fo_job *e, fo_problems *problems)
{
    const char *wells = fth_config_text_or(e->cfg, "focus.wells", "");
    size_t used = 0;
    fo_job_check_wells(wells, e->map.well, e->map.n, problems);
    for (int64_t p = 0; p < e->map.n && used < sizeof e->positions; p++)
        if (e->map.well[p] >= 0 && fo_job_wants(wells, e->map.well[p]))
            used += (size_t)snprintf(e->positions + used, sizeof e->positions - used, "%s%lld",
                                     used ? "," : "", (long long)p);
    e->selection.wells = e->positions;
    if (used == 0 && problems->n == 0)
        fo_problems_add(problems, true, "check the mapping with --map and --ref-xy",
                        "no position of %.300s shows a well", e->place.raw);
}

/* ---- times ---- */

/* Of the first, middle or last mapped position, whichever has one; NaN: none has. */
static double time_of(const fth_images *images, const fo_map *map, int64_t t)
{
    int64_t mapped[3] = {-1, -1, -1}, count = 0;
    for (int64_t p = 0; p < map->n; p++) count += map->well[p] >= 0;
    for (int64_t p = 0, i = 0; p < map->n; p++) {
        if (map->well[p] < 0) continue;
        if (i == 0) mapped[0] = p;
        if (i == count / 2) mapped[1] = p;
        if (i == count - 1) mapped[2] = p;
        i++;
    }
    for (int k = 0; k < 3; k++) {
        if (mapped[k] < 0) continue;
        const fth_images_frame f = fth_images_get_frame(images, t, mapped[k], 0);
        if (f.present && !isnan(f.time_ms)) return f.time_ms / 1000;
    }
    return (double)NAN;
}

static fth_status read_times(fo_job *e, const fth_images *images, fth_err *err)
{
    const int64_t n = fth_images_get_info(images)->size[FTH_IMAGES_T];
    double *work = NULL;
    e->n_times = n;
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_POOL, (uint64_t)n * sizeof(double), "times",
                         (void **)&e->seconds, err));
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_POOL, (uint64_t)n * sizeof(double), "work", (void **)&work,
                         err));
    for (int64_t t = 0; t < n; t++) e->seconds[t] = time_of(images, &e->map, t);
    const bool compat = fth_config_choice(e->cfg, "focus.compat") == 1;
    e->clock = fo_times_complete(e->seconds, n, compat,
                                 fth_config_bool(e->cfg, "focus.fix_time_jumps"), work);
    fth_mem_release(e->mem, work, NULL);
    char line[200];
    if (e->clock.jumps > 0) {
        snprintf(line, sizeof line, "the clock jumps at %lld time points, first before t=%lld",
                 (long long)e->clock.jumps, (long long)e->clock.first_jump);
        FTH_TRY(note(e, line, err));
    }
    return FTH_OK;
}

/* ---- all together ---- */

static fth_status look_at_nd2(fo_job *e, fo_problems *problems, fth_err *err)
{
    fth_images *images = NULL;
    fth_err found = {0};
    if (!e->place.raw[0]) return FTH_OK;
    fth_status s = fth_images_open(&images, e->mem, e->place.raw, &e->selection.images, &found);
    if (s != FTH_OK) return fo_problems_or(problems, s, &found, err);
    s = map_wells(e, images, problems, err);
    if (s == FTH_OK && e->map.well) {
        choose_positions(e, problems);
        s = read_times(e, images, err);
    }
    fth_images_close(images);
    return s;
}

/* Options that do not apply to this microscope. */
static void refuse_options(const fo_job *e, fo_problems *problems)
{
    static const struct {
        const char *key, *flag;
        bool tiled; /* is for a Keyence, and not for a stage */
        const char *why;
    } only[] = {
        {"focus.overlap", "overlap", true, "an ND2 file has no tiles that overlap"},
        {"focus.blend", "blend", true, "an ND2 file has no tiles that overlap"},
        {"focus.orientation", "orientation", true, "an ND2 file has no tiles that overlap"},
        {"focus.grid", "grid", true, "an ND2 file has no tiles that overlap"},
        {"focus.map", "map", false, "folders of a Keyence name their wells"},
        {"focus.ref_xy", "ref-xy", false, "folders of a Keyence name their wells"},
        {"focus.allow_duplicate_wells", "allow-duplicate-wells", false,
         "a Keyence has one folder for each well"},
        {"focus.fix_time_jumps", "fix-time-jumps", false, "images of a Keyence have the real time"},
        {"focus.compat_batch", "compat-batch", false,
         "tiles of a well are normalised together, and no others"}};
    for (size_t i = 0; i < sizeof only / sizeof only[0]; i++)
        if (only[i].tiled != fo_job_is_tiled(e) && fth_config_is_given(e->cfg, only[i].key))
            fo_problems_add(problems, false, NULL, "--%s: %s", only[i].flag, only[i].why);
    if (!fo_job_is_tiled(e)) return;
    if (fth_config_choice(e->cfg, "focus.channels") != 0)
        fo_problems_add(problems, false, NULL,
                        "--channels: a Keyence is fused one channel at a time");
    if (strcmp(fth_config_text(e->cfg, "focus.scale"), "none") == 0)
        fo_problems_add(problems, false, NULL,
                        "--scale none: images are stitched from scaled tiles");
}

static fth_status open_all(fo_job *e, fth_err *err)
{
    fo_problems problems = {0};
    fth_err found = {0};
    FTH_TRY(fo_selection_read(e->cfg, &e->selection, err));
    const bool compat = fth_config_choice(e->cfg, "focus.compat") == 1;
    FTH_TRY(fo_format_choose(fth_config_text_or(e->cfg, "focus.image_format", ""), "",
                             fth_config_choice(e->cfg, "focus.layout") == 1 ? "tif"
                             : compat                                       ? "jpg:75"
                                                                            : "jpg:90",
                             &e->format, err));
    FTH_TRY(find_places(e, &problems, err));
    FTH_TRY(read_plate(e, &problems, err));
    refuse_options(e, &problems);
    if (fo_job_is_tiled(e))
        FTH_TRY(fo_job_look_at_tiles(e, &problems, err));
    else
        FTH_TRY(look_at_nd2(e, &problems, err));
    if (!fo_job_is_tiled(e) && (problems.n == 0 || !problems.data)) {
        const char *path = e->place.raw;
        const fth_status s = e->positions[0]
                                 ? fo_input_open(&e->in, e->mem, &path, 1, &e->selection, &found)
                                 : FTH_OK;
        FTH_TRY(fo_problems_or(&problems, s, &found, err));
    }
    if (e->in.mem && problems.n == 0)
        FTH_TRY(fo_problems_or(&problems, fo_job_tables(e, false, &found), &found, err));
    check_writable(e, &problems);
    return fo_problems_end(&problems, err);
}

fth_status fo_job_open(fo_job *e, fth_mem *mem, const fth_config *cfg, fth_err *err)
{
    *e = (fo_job){.mem = mem, .cfg = cfg};
    FTH_TRY(fth_texts_create(&e->notes, mem, err));
    const fth_status s = open_all(e, err);
    if (s != FTH_OK) fo_job_close(e);
    return s;
}

void fo_job_close(fo_job *e)
{
    if (!e->mem) return;
    if (e->in.mem) fo_input_close(&e->in);
    fo_map_free(&e->map);
    fo_plate_free(&e->plate);
    fth_mem_release(e->mem, e->seconds, NULL);
    fo_keyence_plate_free(&e->keyence);
    fth_texts_free(e->notes);
    *e = (fo_job){0};
}

bool fo_job_is_tiled(const fo_job *e)
{
    return fth_config_choice(e->cfg, "input.microscope") == FO_KEYENCE;
}

double fo_job_time(const fo_job *e, int64_t stack)
{
    return fo_job_is_tiled(e) ? e->keyence.seconds[stack] : e->seconds[e->in.stack[stack].t];
}

int fo_job_well(const fo_job *e, int64_t stack)
{
    return e->map.well[e->in.stack[stack].p];
}
