/* arrays.c - tasks into job arrays: see arrays.h. */
#include "job/slurm/arrays.h"

#include "base/assert.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <stdlib.h>

/* Whether item `a` waits for `b`, directly or not. */
static bool waits_for(const fth__slurm_item *item, int64_t a, int64_t b)
{
    for (int k = 0; k < item[a].n_before; k++)
        if (item[a].before[k] == b || waits_for(item, item[a].before[k], b)) return true;
    return false;
}

static void reduce(fth__slurm_item *item, int64_t i)
{
    fth__slurm_item *it = &item[i];
    int kept = 0;
    for (int k = 0; k < it->n_before; k++) {
        bool implied = false;
        for (int m = 0; m < it->n_before && !implied; m++)
            implied = m != k && waits_for(item, it->before[m], it->before[k]);
        if (!implied) it->before[kept++] = it->before[k];
    }
    it->n_before = kept;
}

/* ---- order ---- */

typedef struct row {
    const fth__slurm_item *item; /* all of them */
    fth__slurm_item *it;
} row;

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* By kind and the arrays that are waited for. */
static int by_arrays(const row *a, const row *b)
{
    int c = compare(a->it->kind, b->it->kind);
    if (!c) c = compare(a->it->n_before, b->it->n_before);
    for (int k = 0; !c && k < a->it->n_before; k++)
        c = compare(a->item[a->it->before[k]].array, b->item[b->it->before[k]].array);
    return c;
}

static int by_elements(const row *a, const row *b)
{
    int c = by_arrays(a, b);
    for (int k = 0; !c && k < a->it->n_before; k++)
        c = compare(a->item[a->it->before[k]].index, b->item[b->it->before[k]].index);
    return c;
}

static int by_all(const void *a, const void *b)
{
    const int c = by_elements(a, b);
    return c ? c
             : compare(((const row *)a)->it - ((const row *)a)->item,
                       ((const row *)b)->it - ((const row *)b)->item);
}

/* ---- arrays ---- */

static fth_status add_array(fth__slurm_arrays *out, const row *first, fth__slurm_wait wait,
                            int64_t next, fth_err *err)
{
    FTH_TRY(fth__grow(out->mem, &out->array, &out->cap, out->n + 1, err));
    fth__slurm_array *a = &out->array[out->n];
    *a = (fth__slurm_array){.number = next + out->n, .kind = first->it->kind, .wait = wait};
    for (int k = 0; k < first->it->n_before; k++) {
        const fth__slurm_item *before = &first->item[first->it->before[k]];
        a->on[a->n_on] = before->array;
        a->on_index[a->n_on++] = before->index;
    }
    out->n++;
    return FTH_OK;
}

static void put(fth__slurm_array *a, const row *r, int64_t index)
{
    r->it->array = a->number;
    r->it->index = index;
    r->it->placed = true;
    a->n++;
}

/* Indices from 0, as many arrays as it takes. */
static fth_status place_in_order(fth__slurm_arrays *out, const row *r, int64_t n, int64_t next,
                                 int64_t most, fth_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (i % most == 0)
            FTH_TRY(add_array(out, r, r->it->n_before ? FTH__SLURM_WAIT_OK : FTH__SLURM_WAIT_NONE,
                              next, err));
        put(&out->array[out->n - 1], &r[i], i % most);
    }
    return FTH_OK;
}

/* Number `j` of those that wait for one element is in array number j. */
static fth_status place_by_index(fth__slurm_arrays *out, const row *r, int64_t n, int64_t arrays,
                                 int64_t next, fth_err *err)
{
    const int64_t first = out->n;
    for (int64_t j = 0; j < arrays; j++)
        FTH_TRY(add_array(out, r, FTH__SLURM_WAIT_CORR, next, err));
    for (int64_t i = 0, j = 0; i < n; i++) {
        j = i > 0 && by_elements(&r[i - 1], &r[i]) == 0 ? j + 1 : 0;
        FTH_ASSERT(j < arrays);
        put(&out->array[first + j], &r[i], r[i].item[r[i].it->before[0]].index);
    }
    return FTH_OK;
}

/* Rows of one kind that wait for the same arrays. */
static fth_status place_group(fth__slurm_arrays *out, const row *r, int64_t n, int64_t next,
                              int64_t most, fth_err *err)
{
    if (r->it->n_before == 0) return place_in_order(out, r, n, next, most, err);
    bool same_index = true;
    int64_t elements = 0, largest = 0, run = 0;
    for (int64_t i = 0; i < n; i++) {
        const fth__slurm_item *it = r[i].it, *item = r[i].item;
        for (int k = 1; k < it->n_before; k++)
            same_index = same_index && item[it->before[k]].index == item[it->before[0]].index;
        run = i > 0 && by_elements(&r[i - 1], &r[i]) == 0 ? run + 1 : 1;
        elements += run == 1;
        if (run > largest) largest = run;
    }
    if (same_index && elements >= largest) return place_by_index(out, r, n, largest, next, err);
    for (int64_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && by_elements(&r[i], &r[j]) == 0;) j++;
        FTH_TRY(place_in_order(out, r + i, j - i, next, most, err));
    }
    return FTH_OK;
}

fth_status fth__slurm_place(fth__slurm_arrays *out, fth_mem *mem, fth__slurm_item *item, int64_t n,
                            int64_t next, int64_t most, fth_err *err)
{
    void *block = NULL;
    *out = (fth__slurm_arrays){.mem = mem};
    FTH_ASSERT(most > 0);
    FTH_TRY(fth__heap_take(mem, n + 1, sizeof(row), &block, err));
    row *rows = block;
    fth_status s = FTH_OK;
    for (int64_t i = 0; i < n; i++) reduce(item, i);
    for (int stage = 0; stage < FTH__GRAPH_STAGES && s == FTH_OK; stage++) {
        int64_t m = 0;
        for (int64_t i = 0; i < n; i++)
            if (item[i].stage == stage && !item[i].placed)
                rows[m++] = (row){.item = item, .it = &item[i]};
        if (m > 0) qsort(rows, (size_t)m, sizeof *rows, by_all);
        for (int64_t i = 0, j; i < m && s == FTH_OK; i = j) {
            for (j = i + 1; j < m && by_arrays(&rows[i], &rows[j]) == 0;) j++;
            s = place_group(out, rows + i, j - i, next, most, err);
        }
    }
    fth__heap_free(mem, block);
    return s;
}

void fth__slurm_arrays_clear(fth__slurm_arrays *a)
{
    if (a->mem) fth__heap_free(a->mem, a->array);
    *a = (fth__slurm_arrays){0};
}

void fth__slurm_format_indices(fth__text *t, const int64_t *index, int64_t n)
{
    for (int64_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && index[j] == index[j - 1] + 1;) j++;
        fth__text_add(t, "%s%" PRId64, i ? "," : "", index[i]);
        if (j - i > 1) fth__text_add(t, "-%" PRId64, index[j - 1]);
    }
}
