/* cache.c - a small table of decisions by plan identity, replaced in turn. Any thread. */
#include "plan/cache.h"

#include "base/assert.h"
#include "base/hash.h"
#include "mem/heap.h"
#include "plan/rates.h"

#include <pthread.h>
#include <string.h>

enum { ENTRIES = 128 }; /* about 50 KiB, and looked through one by one; the oldest is replaced */

struct fth__plan_cache {
    fth_mem *mem;
    pthread_mutex_t lock;
    uint64_t n_put, n_hit;
    uint64_t key[ENTRIES];
    fth__decision decision[ENTRIES];
};

fth_status fth__plan_cache_create(fth__plan_cache **out, fth_mem *mem, fth_err *err)
{
    *out = fth__heap_alloc(mem, sizeof **out);
    if (!*out) return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the plan cache");
    (*out)->mem = mem;
    pthread_mutex_init(&(*out)->lock, NULL);
    return FTH_OK;
}

void fth__plan_cache_destroy(fth__plan_cache *c)
{
    if (!c) return;
    pthread_mutex_destroy(&c->lock);
    fth__heap_free(c->mem, c);
}

static int find(const fth__plan_cache *c, uint64_t key)
{
    const uint64_t n = c->n_put < ENTRIES ? c->n_put : ENTRIES;
    for (uint64_t i = 0; i < n; i++)
        if (c->key[i] == key) return (int)i;
    return -1;
}

bool fth__plan_cache_get(fth__plan_cache *c, uint64_t key, fth__decision *out)
{
    if (!c) return false;
    pthread_mutex_lock(&c->lock);
    const int i = find(c, key);
    if (i >= 0) {
        *out = c->decision[i];
        c->n_hit++;
    }
    pthread_mutex_unlock(&c->lock);
    return i >= 0;
}

void fth__plan_cache_put(fth__plan_cache *c, uint64_t key, const fth__decision *d)
{
    if (!c) return;
    FTH_ASSERT(d->n_loops <= FTH__CACHE_LOOPS && d->n_kept <= FTH__CACHE_KEPT);
    pthread_mutex_lock(&c->lock);
    int i = find(c, key);
    if (i < 0) i = (int)(c->n_put++ % ENTRIES);
    c->key[i] = key;
    c->decision[i] = *d;
    pthread_mutex_unlock(&c->lock);
}

static void hash_desc(fth__hash *h, const fth_desc *d)
{
    const int32_t head[5] = {(int32_t)d->dtype, d->n_axes, (int32_t)d->triangle, d->row, d->col};
    fth__hash_add(h, head, sizeof head);
    fth__hash_add(h, d->axis, sizeof d->axis[0] * (size_t)d->n_axes);
    fth__hash_add(h, d->size, sizeof d->size[0] * (size_t)d->n_axes);
}

static void hash_node(fth__hash *h, const fth_node *n)
{
    fth__hash_add(h, n->op->name, strlen(n->op->name) + 1);
    fth__hash_add(h, n->attr, (size_t)n->attr_bytes);
    for (int k = 0; k < n->n_in; k++) fth__hash_add(h, &n->in_val[k].id, sizeof n->in_val[k].id);
    for (int o = 0; o < n->n_out; o++) {
        fth__hash_add(h, &n->out_val[o].id, sizeof n->out_val[o].id);
        hash_desc(h, &n->out[o]);
    }
}

uint64_t fth__plan_key(const fth_plan *p)
{
    fth__hash h;
    fth__hash_init(&h, 0);
    fth__hash_add(&h, p->ctx->backend->name, strlen(p->ctx->backend->name) + 1);
    const uint64_t head[8] = {p->ctx->rates->key,
                              p->budget,
                              p->limits.scratch_bytes,
                              (uint64_t)p->threads,
                              (uint64_t)p->n_outs,
                              (uint64_t)p->limits.min_pieces,
                              (uint64_t)p->ranks,
                              (uint64_t)(p->limits.no_fuse + 2 * p->limits.no_recompute +
                                         4 * p->limits.no_spill + 8 * p->limits.keep)};
    fth__hash_add(&h, head, sizeof head);
    if (p->limits.stream) fth__hash_add(&h, p->limits.stream, strlen(p->limits.stream) + 1);
    fth__hash_add(&h, p->out_value, sizeof *p->out_value * (size_t)p->n_outs);
    fth__hash_add(&h, p->out_direct, sizeof *p->out_direct * (size_t)p->n_outs);
    for (int64_t i = 0; i < p->graph->n_axes; i++) {
        const fth__axis *a = p->graph->axis[i];
        const uint64_t shape[2] = {(uint64_t)a->size, a->row_ptr ? a->row_hash : 0};
        fth__hash_add(&h, shape, sizeof shape);
    }
    for (int64_t i = 0; i < p->graph->n_inputs; i++) {
        const fth__input *in = &p->graph->input[i];
        const uint32_t from[2] = {in->value, in->source.data != NULL};
        fth__hash_add(&h, from, sizeof from);
    }
    for (int64_t i = 0; i < p->n_units; i++) hash_node(&h, p->unit[i].node);
    return fth__hash_get(&h);
}
