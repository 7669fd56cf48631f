/* testing/bragg/bragg_founding.h - what must hold for the founding image, however much of it is
 * rendered.
 */
#ifndef FATHOM_TESTING_BRAGG_FOUNDING_H
#define FATHOM_TESTING_BRAGG_FOUNDING_H

#include "testing/bragg/bragg.h"

/* Image and table and 64 MiB, whatever is in place and whatever is not. */
static inline void founding_bounds(const tb_case *c, const tb_run *run)
{
    const br_scene *s = &c->s;
    const int64_t table =
        8 * (s->h_max - s->h_min + 2) * (s->k_max - s->k_min + 2) * (s->l_max - s->l_min + 2);
    const double image = 4.0 * (double)(s->slow * s->fast);
    printf("%d domains, %d threads: arena %llu, foreign %llu, %lld chunks\n", (int)s->mosaics,
           run->threads, (unsigned long long)run->info.peak_bytes,
           (unsigned long long)run->info.foreign_bytes, (long long)run->info.chunks);
    LE_F64(run->info.peak_bytes + run->info.foreign_bytes,
           image + (double)table + (double)(64 << 20));
}

static inline void founding_run(const tb_case *c, tb_run *run)
{
    tb_render(c, run);
    founding_bounds(c, run);
    EQ_U64(run->report.ledger_bytes, run->report.planned_bytes);
    IS_TRUE(run->report.kept || T_SANITIZED);
}

/* The same bytes on one thread, on two, in pieces, and with 32 MiB for everything. */
static inline void founding_runs(int64_t domains, int64_t rows)
{
    tb_case c;
    tb_founding(&c, domains, rows);
    const size_t bytes = sizeof(float) * (size_t)(c.s.slow * c.s.fast);
    float *first = malloc(bytes), *other = malloc(bytes);
    if (!first || !other) FAIL("no memory for two images");
    tb_run run = {.dtype = FTH_F32, .image = first, .threads = 1};
    founding_run(&c, &run);
    double sum = 0;
    for (int64_t i = 0; i < c.s.slow * c.s.fast; i++) sum += (double)first[i];
    IS_TRUE(sum > 0);
    const tb_run more[] = {{.threads = 2},
                           {.threads = 2, .memory_bytes = 1 << 20, .through_a_file = true},
                           {.threads = 2, .budget_bytes = 32 << 20, .through_a_file = true},
                           {.threads = 1, .budget_bytes = 32 << 20, .through_a_file = true}};
    for (int i = 0; i < 4; i++) {
        run = more[i];
        run.dtype = FTH_F32;
        run.image = other;
        memset(other, 0xff, bytes);
        founding_run(&c, &run);
        SAME_BYTES(first, other, bytes);
    }
    free(first);
    free(other);
    tb_free(&c);
}

#endif
