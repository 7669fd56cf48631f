/* names.c - names of the images of a plate, and its tables; see job.h. */
#include "job.h"

#include <string.h>
#include <strings.h>

/* ---- names ---- */

static int channel_of(const fo_stack *s, fo_port port)
{
    const int other = port - FO_OUT_KINDS;
    return other < 0 ? s->c : other + (other >= s->c);
}

/* "BF" of "EYES - Dia": what the channels of different microscopes are called in the new layout. */
static const char *plain_channel(const char *name)
{
    static const struct {
        const char *part, *plain;
    } rules[] = {{"dia", "BF"},      {"empty", "BF"}, {"brightfield", "BF"}, {"bf", "BF"},
                 {"bright", "BF"},   {"phase", "BF"}, {"gfp", "GFP"},        {"rfp", "RFP"},
                 {"mcherry", "RFP"}, {"cfp", "CFP"},  {"yfp", "YFP"}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcasestr(name, rules[i].part)) return rules[i].plain;
    return name[0] ? name : "BF";
}

/* As a word of a file's name: slashes and blanks become underscores. */
static void name_channel(const fo_job *e, int64_t channel, char *word, size_t bytes)
{
    const fth_images *images = e->in.file[0].images;
    const char *name = fo_job_is_tiled(e) ? e->keyence.header.channel
                       : images           ? fth_images_channel(images, channel)
                                          : "";
    snprintf(word, bytes, "%s", plain_channel(name ? name : ""));
    for (char *c = word; *c; c++)
        if (*c == '/' || *c == ' ') *c = '_';
}

bool fo_job_is_of_one_channel(const fo_job *e)
{
    return fo_job_is_tiled(e) || e->in.file[0].rgb || e->selection.channels == FO_CHANNELS_ONE;
}

/* Where several are fused, one that is called as another before it gets its number, too: their
 * images have names of their own. */
void fo_job_channel(const fo_job *e, const fo_stack *s, fo_port port, char *word, size_t bytes)
{
    const int own = channel_of(s, port);
    name_channel(e, own, word, bytes);
    for (int c = 0; c < own && !fo_job_is_of_one_channel(e); c++) {
        char other[64];
        name_channel(e, c, other, sizeof other);
        if (strcmp(other, word) != 0) continue;
        const size_t n = strlen(word);
        snprintf(word + n, bytes - n, "_ch%02d", own);
        return;
    }
}

fth_status fo_job_path_of(const fo_job *e, const fo_stack *s, fo_port port, char path[FTH_PATH],
                          fth_err *err)
{
    static const char *const endings[FO_OUT_KINDS] = {NULL, ".index.tif", ".depth.tif",
                                                      ".confidence.tif"};
    const int well = e->map.well[s->p];
    const char *ending = endings[fo_port_kind(port)];
    char channel[64], own[16];
    fo_job_channel(e, s, port, channel, sizeof channel);
    snprintf(own, sizeof own, ".%s", e->format.ending);
    if (fo_job_is_tiled(e))
        return fo_experiment_tile(&e->place, well, s->t, s->b, ending ? ending : own, path, err);
    const fo_image_name name = {.well = well,
                                .t = s->t,
                                .c = channel_of(s, port),
                                .channel = channel,
                                .ending = ending ? ending : own};
    return fo_experiment_image(&e->place, &name, path, err);
}

fth_status fo_job_path(const fo_job *e, int64_t stack, fo_port port, char path[FTH_PATH],
                       fth_err *err)
{
    return fo_job_path_of(e, &e->in.stack[stack], port, path, err);
}

void fo_job_stem(const fo_job *e, int64_t stack, char *stem, size_t bytes)
{
    if (fo_job_is_tiled(e)) { /* the name of a tile is not its own without its folder */
        char name[60];
        fo_job_mosaic_name(e, stack, name, sizeof name);
        snprintf(stem, bytes, "ff_%s/im_p%04d", name, (int)e->in.stack[stack].b);
        return;
    }
    fo_job_stem_of(e, &e->in.stack[stack], stem, bytes);
}

void fo_job_stem_of(const fo_job *e, const fo_stack *s, char *stem, size_t bytes)
{
    char path[FTH_PATH];
    if (fo_job_path_of(e, s, FO_OUT_IMAGE, path, NULL) != FTH_OK) path[0] = '\0';
    snprintf(stem, bytes, "%s", fth_path_name(path));
    char *dot = strrchr(stem, '.');
    if (dot) *dot = '\0';
}

/* ---- mosaics ---- */

void fo_job_mosaic_name(const fo_job *e, int64_t stack, char *text, size_t bytes)
{
    char well[FO_WELL_NAME];
    snprintf(text, bytes, "%s_t%04d", fo_well_name(fo_job_well(e, stack), well),
             (int)e->in.stack[stack].t);
}

fth_status fo_job_mosaic_path(const fo_job *e, int64_t stack, char path[FTH_PATH], fth_err *err)
{
    char channel[64], ending[16];
    fo_job_channel(e, &e->in.stack[stack], FO_OUT_IMAGE, channel, sizeof channel);
    snprintf(ending, sizeof ending, ".%s", e->format.ending);
    const fo_image_name name = {.well = fo_job_well(e, stack),
                                .t = e->in.stack[stack].t,
                                .channel = channel,
                                .ending = ending};
    return fo_experiment_image(&e->place, &name, path, err);
}

fth_status fo_job_zstack_path(const fo_job *e, int64_t stack, char path[FTH_PATH], fth_err *err)
{
    char name[60], file[80];
    fo_job_mosaic_name(e, stack, name, sizeof name);
    snprintf(file, sizeof file, "%s_stack.tif", name);
    return fth_path_join(path, e->place.zstacks, file, err);
}

/* ---- tables ---- */

/* One row for each well and time, whatever channels and tiles there are. */
bool fo_job_has_row(const fo_job *e, int64_t i)
{
    return i == 0 || e->in.stack[i].p != e->in.stack[i - 1].p ||
           e->in.stack[i].t != e->in.stack[i - 1].t;
}

/* ---- what was not chosen ---- */

/* All wells and times are chosen. */
static bool is_everything(const fo_job *e)
{
    return !fth_config_has(e->cfg, "focus.wells") && !fth_config_has(e->cfg, "focus.times");
}

/* Mosaics are made of all that are chosen together, so there are no others. */
static bool is_all(const fo_job *e)
{
    return fo_job_is_tiled(e) || is_everything(e);
}

bool fo_job_is_part(const fo_job *e)
{
    return !is_all(e);
}

static bool is_chosen(const fo_job *e, int64_t p, int64_t t)
{
    for (int64_t i = 0; i < e->in.n_stacks; i++)
        if (e->in.stack[i].p == p && e->in.stack[i].t == t) return true;
    return false;
}

/* An image of an earlier run, which the table of the plate still describes. */
static bool is_there(const fo_job *e, int64_t p, int64_t t)
{
    char path[FTH_PATH];
    fth_path_info info;
    const fo_stack s = {.p = (int32_t)p, .t = (int32_t)t, .c = e->in.stack[0].c};
    return e->map.well[p] >= 0 && e->plate.has_well[e->map.well[p]] &&
           fo_job_path_of(e, &s, FO_OUT_IMAGE, path, NULL) == FTH_OK &&
           fth_path_stat(path, &info, NULL) == FTH_OK && info.bytes > 0;
}

bool fo_job_has_others(const fo_job *e)
{
    for (int64_t p = 0; p < e->map.n && !is_all(e); p++)
        for (int64_t t = 0; t < e->n_times; t++)
            if (is_there(e, p, t) && !is_chosen(e, p, t)) return true;
    return false;
}

bool fo_job_is_whole(const fo_job *e)
{
    if (fo_job_is_tiled(e)) return is_everything(e);
    for (int64_t p = 0; p < e->map.n && !is_all(e); p++)
        for (int64_t t = 0; t < e->n_times; t++)
            if (e->map.well[p] >= 0 && !is_there(e, p, t)) return false;
    return true;
}

/* ---- rows ---- */

static int64_t count_chosen(const fo_job *e)
{
    int64_t n = 0;
    for (int64_t i = 0; i < e->in.n_stacks; i++) n += fo_job_has_row(e, i);
    return n;
}

int64_t fo_job_rows(const fo_job *e)
{
    int64_t n = count_chosen(e);
    for (int64_t p = 0; p < e->map.n && !is_all(e); p++)
        for (int64_t t = 0; t < e->n_times; t++) n += is_there(e, p, t) && !is_chosen(e, p, t);
    return n;
}

static void fill_chosen(const fo_job *e, fo_metadata_row *row, int64_t *n)
{
    for (int64_t i = 0; i < e->in.n_stacks; i++) {
        const fo_stack *s = &e->in.stack[i];
        if (!fo_job_has_row(e, i)) continue;
        row[(*n)++] = (fo_metadata_row){
            .well = fo_job_well(e, i), .series = s->p + 1, .t = s->t, .time_s = fo_job_time(e, i)};
    }
}

/* Rows of what was chosen, and of images that were made before: a table of all that are there. */
static fth_status fill_rows(const fo_job *e, fo_metadata_row **out, int64_t *n, fth_err *err)
{
    *n = 0;
    const int64_t all = is_all(e) ? e->in.n_stacks : e->map.n * e->n_times;
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_POOL, (uint64_t)(all + 1) * sizeof **out, "rows",
                         (void **)out, err));
    if (is_all(e)) {
        fill_chosen(e, *out, n);
        return FTH_OK;
    }
    for (int64_t p = 0; p < e->map.n; p++)
        for (int64_t t = 0; t < e->n_times; t++)
            if (is_chosen(e, p, t) || is_there(e, p, t))
                (*out)[(*n)++] = (fo_metadata_row){
                    .well = e->map.well[p], .series = p + 1, .t = t, .time_s = e->seconds[t]};
    return FTH_OK;
}

fth_status fo_job_tables(const fo_job *e, bool save, fth_err *err)
{
    const bool tiled = fo_job_is_tiled(e);
    const fth_images_info *info = tiled ? NULL : fth_images_get_info(e->in.file[0].images);
    const fo_keyence_header *h = &e->keyence.header;
    fo_metadata_row *row = NULL;
    fo_metadata m = {.experiment = e->place.name,
                     .keyence = tiled,
                     .height_px = e->in.rows,
                     .width_px = e->in.columns,
                     .height_um = tiled ? h->height_um : (double)e->in.rows * e->in.um_per_px,
                     .width_um = tiled ? h->width_um : (double)e->in.columns * e->in.um_per_px,
                     .channel = e->in.file[0].channel,
                     .channel_name = tiled ? h->channel : "",
                     .objective = tiled             ? h->objective
                                  : info->objective ? info->objective
                                                    : "",
                     .plate = &e->plate};
    char csv[FTH_PATH], json[FTH_PATH];
    FTH_TRY(fill_rows(e, &row, &m.n, err));
    m.row = row;
    fth_status s = fo_metadata_check(&m, err);
    if (s == FTH_OK && save)
        s = e->place.layout == FO_LAYOUT_V2 ? fo_job_save_scope(e, row, m.n, err)
                                            : fo_metadata_save(&m, e->mem, e->place.metadata, err);
    if (s == FTH_OK && save) s = fth_path_join(csv, e->place.run, "series_well_mapping.csv", err);
    if (s == FTH_OK && save) s = fth_path_join(json, e->place.run, "mapping_provenance.json", err);
    if (s == FTH_OK && save) s = fo_map_save(&e->map, csv, json, err);
    fth_mem_release(e->mem, row, NULL);
    return s;
}
