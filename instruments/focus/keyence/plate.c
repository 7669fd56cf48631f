/* plate.c - see plate.h. */
#include "plate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static fth_status take(fth_mem *mem, int64_t n, size_t each, const char *label, void *out,
                       fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(mem, FTH_MEM_POOL, (uint64_t)(n > 0 ? n : 1) * each, label, &block, err));
    memcpy(out, &block, sizeof block);
    return FTH_OK;
}

void fo_keyence_wells(fo_keyence_plate *plate, const fo_keyence_tree *tree)
{
    *plate = (fo_keyence_plate){0};
    for (int w = 0; w < FO_WELLS; w++) plate->well[w] = -1;
    for (int64_t i = 0; i < tree->n; i++) {
        const fo_keyence_image *m = &tree->image[i];
        if (m->series >= FO_WELLS) continue; /* then two are of one well, which is reported */
        plate->well[m->series] = m->well;
        plate->folder[m->series] = m->folder > 0 ? m->folder : m->series + 1;
        if (m->series >= plate->n_series) plate->n_series = m->series + 1;
    }
}

/* ---- the channel ---- */

enum { MOST_CHANNELS = 16 };

static bool is_brightfield(const char *name)
{
    static const char *const parts[] = {"bright", "bf", "phase"};
    for (int i = 0; i < 3; i++)
        if (strcasestr(name, parts[i])) return true;
    return false;
}

/* Whether a channel of this number and name is the wanted one. */
static bool is_wanted(const char *wanted, int64_t number, const char *name)
{
    int64_t n = -1;
    const char *digits = strncasecmp(wanted, "CH", 2) == 0 ? wanted + 2 : wanted;
    if (!*wanted) return is_brightfield(name);
    return (fth_int_parse(digits, &n) && n == number) || strcasecmp(wanted, name) == 0;
}

/* Channels of the tree, each with its first image. */
static int list_channels(const fo_keyence_tree *tree, const fo_keyence_image *first[MOST_CHANNELS])
{
    int n = 0;
    for (int64_t i = 0; i < tree->n; i++) {
        int k = 0;
        while (k < n && first[k]->channel != tree->image[i].channel) k++;
        if (k == n && n < MOST_CHANNELS) first[n++] = &tree->image[i];
    }
    return n;
}

/* The number of the channel that is fused; it stays -1 after a problem. */
static fth_status choose_channel(fth_mem *mem, const fo_keyence_tree *tree, const char *wanted,
                                 int64_t *channel, fo_problems *problems, fth_err *err)
{
    const fo_keyence_image *first[MOST_CHANNELS];
    char list[400] = "";
    const int n = list_channels(tree, first);
    *channel = n == 1 && !*wanted ? first[0]->channel : -1;
    for (int k = 0; k < n && *channel < 0; k++) {
        fo_keyence_header h = {0};
        const char *path = fth_texts_get(tree->paths, first[k]->path);
        const fth_status s = fo_keyence_header_read(&h, mem, path, err);
        if (s == FTH_E_NOMEM || s == FTH_E_BUDGET) return s;
        if (s != FTH_OK) h.channel[0] = '\0'; /* its absence is reported with the others */
        if (s != FTH_OK && err) fth_err_clear(err);
        if (is_wanted(wanted, first[k]->channel, h.channel)) *channel = first[k]->channel;
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%" PRId64 " '%s'", k ? ", " : "",
                 first[k]->channel, h.channel);
    }
    if (*channel >= 0) return FTH_OK;
    if (*wanted)
        fo_problems_add(problems, false, NULL, "--channel: no channel '%.60s'; the channels are %s",
                        wanted, list);
    else
        fo_problems_add(problems, false, "choose one with --channel",
                        "no channel is recognised as brightfield: %s", list);
    return FTH_OK;
}

/* ---- stacks ---- */

typedef struct listing {
    fo_keyence_plate *plate;
    const fo_keyence_tree *tree;
    const fo_keyence_choice *choice;
    int64_t channel;
    int64_t least[FO_WELLS], most[FO_WELLS]; /* tiles of each folder */
} listing;

static bool is_chosen(const listing *l, const fo_keyence_image *m)
{
    const fo_range *r = &l->choice->times;
    return m->channel == l->channel && m->series < FO_WELLS && l->choice->well[m->well] &&
           m->t >= r->first && (r->end < 0 || m->t < r->end) && (m->t - r->first) % r->step == 0;
}

static void find_tiles(listing *l)
{
    for (int s = 0; s < FO_WELLS; s++) l->least[s] = INT64_MAX, l->most[s] = -1;
    for (int64_t i = 0; i < l->tree->n; i++) {
        const fo_keyence_image *m = &l->tree->image[i];
        if (!is_chosen(l, m)) continue;
        if (m->tile < l->least[m->series]) l->least[m->series] = m->tile;
        if (m->tile > l->most[m->series]) l->most[m->series] = m->tile;
        if (m->plane > l->plate->planes) l->plate->planes = m->plane;
    }
    for (int s = 0; s < FO_WELLS; s++)
        l->plate->tiles[s] = l->most[s] < 0 ? 0 : (int)(l->most[s] - l->least[s] + 1);
}

/* Count the stacks, or fill them in: images come by series, time and tile. */
static int64_t list_stacks(listing *l, bool fill)
{
    fo_keyence_plate *p = l->plate;
    const fo_keyence_image *last = NULL;
    int64_t n = 0;
    for (int64_t i = 0; i < l->tree->n; i++) {
        const fo_keyence_image *m = &l->tree->image[i];
        if (!is_chosen(l, m)) continue;
        if (!last || last->series != m->series || last->t != m->t || last->tile != m->tile) n++;
        last = m;
        if (!fill) continue;
        p->stack[n - 1].b = (int32_t)(m->tile - l->least[m->series]);
        p->stack[n - 1].t = (int32_t)m->t;
        p->stack[n - 1].p = (int32_t)m->series;
        p->plane[(n - 1) * p->planes + m->plane - 1] = (int32_t)m->path;
    }
    return n;
}

static bool same_place(const fo_stack *a, const fo_stack *b)
{
    return a->p == b->p && a->t == b->t;
}

/* Tiles of a well and time are as deep as the deepest of them. */
static void set_depths(fo_keyence_plate *p)
{
    for (int64_t i = 0; i < p->n;) {
        int64_t end = i;
        int32_t deepest = 0;
        for (; end < p->n && same_place(&p->stack[i], &p->stack[end]); end++)
            for (int64_t z = 0; z < p->planes; z++)
                if (p->plane[end * p->planes + z] >= 0 && z >= deepest) deepest = (int32_t)z + 1;
        for (; i < end; i++) p->stack[i].planes = deepest;
    }
}

/* The first image that a stack has. */
static int32_t first_image(const fo_keyence_plate *p, int64_t i)
{
    int64_t z = 0;
    while (z + 1 < p->planes && p->plane[i * p->planes + z] < 0) z++;
    return p->plane[i * p->planes + z];
}

static fth_status read_texts(fo_keyence_plate *p, const fo_keyence_tree *tree,
                             fo_problems *problems, fth_err *err)
{
    for (int64_t i = 0; i < p->n; i++) {
        fo_keyence_header h;
        fth_err found = {0};
        if (i > 0 && same_place(&p->stack[i - 1], &p->stack[i])) {
            p->seconds[i] = p->seconds[i - 1];
            continue;
        }
        const char *path = fth_texts_get(tree->paths, first_image(p, i));
        p->seconds[i] = (double)NAN;
        const fth_status s = fo_keyence_header_read(&h, p->mem, path, &found);
        FTH_TRY(fo_problems_or(problems, s, &found, err));
        if (s != FTH_OK) continue;
        p->seconds[i] = h.time_s;
        if (!p->header.width_px) p->header = h;
        if (h.width_px != p->header.width_px || h.width_um != p->header.width_um)
            fo_problems_add(problems, true, NULL,
                            "%.300s: expected an image of %" PRId64 " px and %g um across as in "
                            "the first image, found %" PRId64 " px and %g um",
                            path, p->header.width_px, p->header.width_um, h.width_px, h.width_um);
    }
    return FTH_OK;
}

fth_status fo_keyence_plate_make(fo_keyence_plate *plate, fth_mem *mem, const fo_keyence_tree *tree,
                                 const fo_keyence_choice *choice, fo_problems *problems,
                                 fth_err *err)
{
    enum { MOST_PLANES = 65535, MOST_TILES = 1024 };
    listing l = {.plate = plate, .tree = tree, .choice = choice};
    fo_keyence_wells(plate, tree);
    plate->mem = mem;
    FTH_TRY(choose_channel(mem, tree, choice->channel, &l.channel, problems, err));
    if (l.channel < 0) return FTH_OK;
    find_tiles(&l);
    plate->n = list_stacks(&l, false);
    for (int s = 0; s < FO_WELLS; s++)
        if (plate->tiles[s] > MOST_TILES || plate->planes > MOST_PLANES) {
            fo_problems_add(problems, true, NULL,
                            "numbers of tiles up to %" PRId64 " and of planes up to %" PRId64
                            "; expected at most %d tiles of a well and %d planes",
                            l.most[s], plate->planes, MOST_TILES, MOST_PLANES);
            return FTH_OK;
        }
    FTH_TRY(take(mem, plate->n, sizeof *plate->stack, "tiles", &plate->stack, err));
    FTH_TRY(take(mem, plate->n, sizeof *plate->seconds, "times of tiles", &plate->seconds, err));
    FTH_TRY(take(mem, plate->n * plate->planes, sizeof *plate->plane, "planes of tiles",
                 &plate->plane, err));
    memset(plate->stack, 0, (size_t)plate->n * sizeof *plate->stack);
    memset(plate->plane, -1, (size_t)(plate->n * plate->planes) * sizeof *plate->plane);
    list_stacks(&l, true);
    set_depths(plate);
    return read_texts(plate, tree, problems, err);
}

void fo_keyence_plate_free(fo_keyence_plate *plate)
{
    if (!plate->mem) return;
    fth_mem_release(plate->mem, plate->stack, NULL);
    fth_mem_release(plate->mem, plate->seconds, NULL);
    fth_mem_release(plate->mem, plate->plane, NULL);
    *plate = (fo_keyence_plate){0};
}
