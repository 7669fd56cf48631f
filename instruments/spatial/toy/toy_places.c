/* toy_places.c - a lattice of cells in sectors of cell types, half of them mixed.
 *
 * Missing groups are a few cells each, scattered: no inducing point is labelled with them (model
 * 11.3).
 */
#include "toy.h"

#include "../data/permute.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SCATTERED = 10 }; /* cells of a missing group: the default of min_group_size */
static const double half = 100, pi = 3.14159265358979323846;

int64_t sp_toy_section(const sp_toy *t, int64_t cell)
{
    return t->sections > 1 ? cell / (t->cells / t->sections) : 0;
}

static void lattice(sp_toy *t)
{
    const double step = t->side > 1 ? 2 * half / (double)(t->side - 1) : 0;
    const int64_t each = t->sections > 1 ? t->cells / t->sections : t->cells;
    for (int64_t i = 0; i < t->cells; i++) {
        t->xy[2 * i] = (float)(-half + step * (double)(i % each % t->side));
        t->xy[2 * i + 1] = (float)(-half + step * (double)(i % each / t->side));
    }
}

/* Sections into one plane, where they keep their scale (model 21.1). */
static fth_status arrange(sp_toy *t, fth_err *err)
{
    fth_texts *names = NULL;
    int32_t *section = NULL;
    double scale = 1;
    if (t->sections == 0) return FTH_OK;
    FTH_TRY(fth_texts_create(&names, t->mem, err));
    fth_status s = FTH_OK;
    for (int64_t i = 0; s == FTH_OK && i < t->sections; i++) {
        char name[32];
        snprintf(name, sizeof name, "section_%lld", (long long)i);
        s = fth_texts_add(names, name, strlen(name), err);
    }
    if (s == FTH_OK) s = sp_sections_create(&t->plane, t->mem, names, err);
    if (s == FTH_OK)
        s = fth_mem_take(t->mem, FTH_MEM_ANY, sizeof *section * (uint64_t)t->cells, "sections",
                         (void **)&section, err);
    for (int64_t i = 0; s == FTH_OK && i < t->cells; i++)
        section[i] = (int32_t)sp_toy_section(t, i);
    if (s == FTH_OK)
        s = sp_sections_arrange(&t->plane, t->xy, section, t->cells, 0, "toy", &scale, err);
    for (int64_t i = 0; s == FTH_OK && i < t->cells; i++) t->plane.of[section[i]].cells++;
    fth_mem_release(t->mem, section, NULL);
    fth_texts_free(names);
    return s;
}

static int64_t below(const sp_toy *t, int64_t stream, int64_t index, int64_t n)
{
    const int64_t v = (int64_t)(fth_random_uniform_at(t->seed, 0, stream, index) * (double)n);
    return v < n ? v : n - 1;
}

/* Sectors of equal angle, one for each group. */
static void sectors(sp_toy *t, int64_t common)
{
    for (int64_t i = 0; i < t->cells; i++) {
        const double angle = atan2((double)t->xy[2 * i + 1], (double)t->xy[2 * i]);
        const int64_t at = (int64_t)floor((angle + pi) / (2 * pi) * (double)common);
        t->group[i] = (int32_t)(at < common ? at : common - 1);
    }
}

/* Half of the cells, and a group at random for each. `chosen` has room for them. */
static void mix(sp_toy *t, int64_t common, int64_t *chosen)
{
    const int64_t n = t->cells / 2;
    sp_permute_first(chosen, n, t->cells, t->seed, SP_TOY_HALF, 0);
    for (int64_t k = 0; k < n; k++)
        t->group[chosen[k]] = (int32_t)below(t, SP_TOY_GROUP, chosen[k], common);
}

static void scatter(sp_toy *t, int64_t common, int64_t *chosen)
{
    if (t->missing == 0) return;
    int64_t each = t->cells / (8 * t->missing);
    if (each > SCATTERED) each = SCATTERED;
    if (each < 1) each = 1;
    const int64_t n = each * t->missing < t->cells / 2 ? each * t->missing : t->cells / 2;
    sp_permute_first(chosen, n, t->cells, t->seed, SP_TOY_MISSING, 0);
    /* Cells come in ascending order: neighbours in it are of different groups. */
    for (int64_t k = 0; k < n; k++) t->group[chosen[k]] = (int32_t)(common + k % t->missing);
}

/* Larger groups first; ties: the one that was first. `chosen` is room for a number per group. */
static void renumber(sp_toy *t, int64_t *number)
{
    memset(t->size_of, 0, sizeof *t->size_of * (size_t)t->groups);
    for (int64_t i = 0; i < t->cells; i++) t->size_of[t->group[i]]++;
    for (int64_t g = 0; g < t->groups; g++) {
        number[g] = 0;
        for (int64_t h = 0; h < t->groups; h++)
            number[g] += t->size_of[h] > t->size_of[g] || (t->size_of[h] == t->size_of[g] && h < g);
    }
    for (int64_t i = 0; i < t->cells; i++) t->group[i] = (int32_t)number[t->group[i]];
    memset(t->size_of, 0, sizeof *t->size_of * (size_t)t->groups);
    for (int64_t i = 0; i < t->cells; i++) t->size_of[t->group[i]]++;
}

fth_status sp_toy_place(sp_toy *t, fth_err *err)
{
    const int64_t common = t->groups - t->missing;
    const int64_t room = t->cells > t->groups ? t->cells : t->groups;
    int64_t *chosen = NULL;
    FTH_TRY(fth_mem_take(t->mem, FTH_MEM_ANY, sizeof *chosen * (uint64_t)room, "chosen cells",
                         (void **)&chosen, err));
    lattice(t);
    sectors(t, common);
    mix(t, common, chosen);
    scatter(t, common, chosen);
    renumber(t, chosen);
    fth_mem_release(t->mem, chosen, NULL);
    return arrange(t, err);
}
