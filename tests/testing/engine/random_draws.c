/* random_draws.c - random numbers in random graphs: a function of seed, stream and place alone. */
#include "testing/engine/random_graph.h"

/* A 0-axis i64: a constant, or an input that is read in every run. */
static fth_val number(rg *g)
{
    if (rg_chance(g, 50)) return fth_const_i64(g->g, FTH_I64, rg_int(g, 0, 1000));
    rg_data *d = rg_data_new(g, FTH_I64, 0, NULL);
    if (!d) return (fth_val){0};
    *(int64_t *)d->data = rg_int(g, 0, 1000);
    const int v = rg_input_from(g, d, "");
    return v >= 0 ? rg_val(g, v) : (fth_val){0};
}

static bool random_of(rg *g, fth_random_kind kind)
{
    static const char *const lists[] = {"s", "s a", "a s", "t", "a b", "t s", "b s"};
    const char *axes = lists[rg_int(g, 0, 6)];
    const fth_dtype t = kind == FTH_RANDOM_BITS ? FTH_I64 : rg_chance(g, 50) ? FTH_F32 : FTH_F64;
    double n = 1.0;
    for (const char *c = axes; *c; c++)
        if (*c != ' ') n *= (double)rg_size(g, (const char[]){*c, '\0'});
    if (!rg_room(g, n)) return false;
    const fth_val seed = number(g), iteration = number(g);
    return rg_add(g, fth_random_(FTH_HERE, kind, t, axes, seed, iteration, rg_int(g, 0, 3)), true,
                  kind == FTH_RANDOM_BITS ? 1e19 : 6.0, 0, NULL, "random %d", (int)kind);
}

bool rg_bits(rg *g)
{
    return random_of(g, FTH_RANDOM_BITS);
}
bool rg_uniform(rg *g)
{
    return random_of(g, FTH_RANDOM_UNIFORM);
}
bool rg_normal(rg *g)
{
    return random_of(g, FTH_RANDOM_NORMAL);
}

bool rg_poisson(rg *g)
{
    int x = rg_want(g, RG_REAL, true);
    const fth_dtype t = x >= 0 ? fth_val_dtype(rg_val(g, x)) : FTH_F16;
    if ((t != FTH_F32 && t != FTH_F64) || (x = rg_tame(g, x, 30.0)) < 0 ||
        (x = rg_positive(g, x)) < 0)
        return false;
    if (!rg_room(g, (double)rg_count(rg_val(g, x)))) return false;
    const fth_val seed = number(g), iteration = number(g);
    return rg_add(g, fth_poisson(rg_val(g, x), seed, iteration, rg_int(g, 0, 3)), true, 60.0, 1, &x,
                  "poisson");
}
