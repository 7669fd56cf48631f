/* keyence.c - an experiment of a Keyence: its tree becomes the stacks of a job; see job.h. */
#include "job.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void check_times(const fo_keyence_tree *tree, const fo_range *r, fo_problems *problems)
{
    int64_t last = -1;
    for (int64_t i = 0; i < tree->n; i++)
        if (tree->image[i].t > last) last = tree->image[i].t;
    if (r->first > last || r->end > last + 1)
        fo_problems_add(problems, false, NULL,
                        "--times: %" PRId64 " to %" PRId64 ", but the last folder is T%04" PRId64,
                        r->first, r->end < 0 ? last + 1 : r->end, last);
}

/* When each time point was taken, for the figures: of the first well that has it. */
static fth_status collect_times(fo_job *e, fth_err *err)
{
    const fo_keyence_plate *p = &e->keyence;
    int32_t last = -1;
    for (int64_t i = 0; i < p->n; i++)
        if (p->stack[i].t > last) last = p->stack[i].t;
    const uint64_t bytes = (uint64_t)(last + 2) * sizeof(double);
    double *work = NULL;
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_POOL, bytes, "times", (void **)&e->seconds, err));
    FTH_TRY(fth_mem_take(e->mem, FTH_MEM_POOL, bytes, "work", (void **)&work, err));
    for (int32_t t = 0; t <= last; t++) {
        double first = (double)NAN;
        for (int64_t i = 0; i < p->n && isnan(first); i++)
            if (p->stack[i].t == t) first = p->seconds[i];
        if (!isnan(first)) e->seconds[e->n_times++] = first;
    }
    e->clock = fo_times_complete(e->seconds, e->n_times, false, false, work);
    fth_mem_release(e->mem, work, NULL);
    return FTH_OK;
}

/* The text of the microscope is what says how large pixels are. */
static void take_size(fo_job *e, fo_problems *problems)
{
    const fo_keyence_header *h = &e->keyence.header;
    if (e->selection.um_per_px <= 0) e->in.um_per_px = h->width_um / (double)h->width_px;
    if (h->width_px != e->in.columns || h->height_px != e->in.rows)
        fo_problems_add(problems, true, NULL,
                        "%.300s: the microscope's metadata have y=%" PRId64 " x=%" PRId64
                        ", and the images have y=%" PRId64 " x=%" PRId64,
                        e->in.file[0].path, h->height_px, h->width_px, e->in.rows, e->in.columns);
}

static fth_status open_stacks(fo_job *e, fo_keyence_tree *tree, fo_problems *problems, fth_err *err)
{
    fo_keyence_plate *p = &e->keyence;
    if (p->n == 0) {
        if (problems->n > 0) return FTH_OK; /* that is why */
        fo_problems_add(problems, true, NULL, "%.300s: no image of the selected wells and times",
                        e->place.raw);
        return FTH_OK;
    }
    FTH_TRY(collect_times(e, err));
    const fo_grid grid = {
        .paths = tree->paths, .stack = p->stack, .n = p->n, .planes = p->planes, .plane = p->plane};
    tree->paths = NULL;
    p->plane = NULL;
    FTH_TRY(fo_input_open_grid(&e->in, e->mem, &grid, &e->selection, &e->files, problems, err));
    if (e->in.mem) take_size(e, problems);
    return FTH_OK;
}

/* Wells with images that the plate's table does not describe, whatever else is wrong. */
static void check_plate(const fo_job *e, fo_problems *problems)
{
    const fo_keyence_plate *p = &e->keyence;
    fo_metadata_row row[FO_WELLS];
    fo_metadata m = {.plate = &e->plate, .row = row};
    fth_err found = {0};
    if (!e->plate.mem) return; /* there is none, which is reported */
    for (int64_t s = 0; s < p->n_series; s++)
        if (p->tiles[s] > 0) row[m.n++] = (fo_metadata_row){.well = p->well[s]};
    if (fo_metadata_check(&m, &found) != FTH_OK) fo_problems_take(problems, &found);
}

/* Before 2024 tiles of a well were in a column, since then in a row. */
static void choose_orientation(fo_job *e, fo_problems *problems)
{
    enum { AUTO, VERTICAL };
    const int word = fth_config_choice(e->cfg, "focus.orientation");
    const int year = fo_experiment_year(e->place.name);
    bool several = false;
    for (int s = 0; s < FO_WELLS; s++) several = several || e->keyence.tiles[s] > 1;
    e->vertical = word == AUTO ? year < 2024 : word == VERTICAL;
    if (word == AUTO && year == 0 && several && e->grid_rows == 0)
        fo_problems_add(
            problems, false, "give --orientation vertical or --orientation horizontal",
            "--orientation: the name \"%.100s\" has no year to choose the arrangement of tiles by",
            e->place.name);
}

int fo_job_tiles(const fo_job *e, int64_t series)
{
    const int own = e->keyence.tiles[series];
    return e->grid_rows > 0 && own > 0 ? e->grid_rows * e->grid_columns : own;
}

/* "2x3"; every well has room for its tiles. */
static void read_grid(fo_job *e, fo_problems *problems)
{
    enum { MOST = 32 }; /* 1024 tiles */
    const char *text = fth_config_text_or(e->cfg, "focus.grid", ""), *x = strchr(text, 'x');
    char rows[8];
    int64_t r = 0, c = 0;
    if (!*text) return;
    snprintf(rows, sizeof rows, "%.*s", x && x - text < 7 ? (int)(x - text) : 7, text);
    if (!x || !fth_int_parse(rows, &r) || !fth_int_parse(x + 1, &c) || r < 1 || c < 1 || r > MOST ||
        c > MOST) {
        fo_problems_add(problems, false, NULL,
                        "--grid: expected ROWSxCOLUMNS such as 2x3, at most %dx%d, found '%.40s'",
                        (int)MOST, (int)MOST, text);
        return;
    }
    e->grid_rows = (int)r;
    e->grid_columns = (int)c;
    for (int64_t s = 0; s < e->keyence.n_series; s++)
        if (e->keyence.tiles[s] > r * c)
            fo_problems_add(problems, false, NULL,
                            "--grid %s: folder %" PRId64 " has %d tiles, and the grid %" PRId64,
                            text, e->keyence.folder[s], e->keyence.tiles[s], r * c);
    if (fth_config_is_given(e->cfg, "focus.orientation"))
        fo_problems_add(problems, false, NULL,
                        "--orientation: --grid gives the arrangement of tiles");
    if (fth_config_choice(e->cfg, "focus.compat") == 1)
        fo_problems_add(problems, false, NULL, "--grid: compat morphseq has tiles only in a line");
}

static fth_status list_tiles(fo_job *e, fo_keyence_tree *tree, fo_problems *problems, fth_err *err)
{
    const char *wells = fth_config_text_or(e->cfg, "focus.wells", "");
    bool chosen[FO_WELLS];
    fo_keyence_wells(&e->keyence, tree);
    fo_job_check_wells(wells, e->keyence.well, e->keyence.n_series, problems);
    check_times(tree, &e->selection.times, problems);
    for (int w = 0; w < FO_WELLS; w++) chosen[w] = fo_job_wants(wells, w);
    const fo_keyence_choice choice = {
        .channel = e->selection.channel, .times = e->selection.times, .well = chosen};
    FTH_TRY(fo_keyence_plate_make(&e->keyence, e->mem, tree, &choice, problems, err));
    FTH_TRY(fo_map_take(&e->map, e->mem, e->keyence.well, e->keyence.n_series, err));
    check_plate(e, problems);
    read_grid(e, problems);
    choose_orientation(e, problems);
    return open_stacks(e, tree, problems, err);
}

fth_status fo_job_look_at_tiles(fo_job *e, fo_problems *problems, fth_err *err)
{
    fo_keyence_tree tree = {0};
    if (!e->place.raw[0]) return FTH_OK;
    FTH_TRY(fo_keyence_tree_read(&tree, e->mem, e->place.raw, problems, err));
    const fth_status s = tree.n > 0 ? list_tiles(e, &tree, problems, err) : FTH_OK;
    fo_keyence_tree_free(&tree);
    return s;
}
