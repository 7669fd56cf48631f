/* places.c - elements and rows taken from places, and added to places, that an index array says,
 * against NumPy's take and add.at on one thread. */
#include "bench.h"

#include <stdlib.h>

typedef struct places_case {
    const char *name;
    fth_dtype dtype;
    int64_t places, table, row; /* indices; rows of the table; numbers of a row, 1: elements */
    bool add;
} places_case;

enum { MI = 1 << 20 };
/* In a cache of a core, in the shared one or beside it, and in memory; NumPy is not to be faster.
 */
#define TABLES(name, dtype, add)                                                                   \
    {name, dtype, MI, 1 << 16, 1, add}, {name, dtype, MI, MI, 1, add},                             \
    {                                                                                              \
        name, dtype, MI, 16 * MI, 1, add                                                           \
    }
#define ROWS(name, dtype, add)                                                                     \
    {name, dtype, MI / 4, MI, 4, add}, {name, dtype, MI / 16, MI, 16, add},                        \
    {                                                                                              \
        name, dtype, MI / 64, MI / 4, 64, add                                                      \
    }
static const places_case cases[] = {
    TABLES("gather_f32", FTH_F32, false),        TABLES("gather_f64", FTH_F64, false),
    TABLES("gather_i64", FTH_I64, false),        ROWS("gather_rows_f32", FTH_F32, false),
    ROWS("gather_rows_f64", FTH_F64, false),     TABLES("scatter_add_f32", FTH_F32, true),
    TABLES("scatter_add_f64", FTH_F64, true),    TABLES("scatter_add_i64", FTH_I64, true),
    ROWS("scatter_add_rows_f32", FTH_F32, true), ROWS("scatter_add_rows_f64", FTH_F64, true),
};

typedef struct running {
    bench_program p;
    peer_python *numpy;
} running;

/* Without a report, which asks the system how much memory there is: that is half of a short run. */
static void run_ours(void *arg)
{
    bench_program *p = &((running *)arg)->p;
    if (p->status == FTH_OK) p->status = fth_run(p->plan, p->sink, NULL, NULL, &p->err);
}
static double run_numpy(void *arg)
{
    return peer_python_run(((running *)arg)->numpy);
}

static void fill(fth_dtype t, void *x, int64_t n)
{
    if (t == FTH_F32) bench_fill_f32(x, n, 1, 0, 1);
    if (t == FTH_F64) bench_fill_f64(x, n, 1, 0, 1);
    for (int64_t i = 0; t == FTH_I64 && i < n; i++) ((int64_t *)x)[i] = i * 40503 % 977;
}

/* Anywhere in the table, none after the other. */
static int64_t *places_of(const places_case *c)
{
    int64_t *at = bench_array((uint64_t)c->places * sizeof *at);
    uint64_t state = 1;
    for (int64_t i = 0; i < c->places; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        at[i] = (int64_t)((state >> 33) % (uint64_t)c->table);
    }
    return at;
}

static void one(bench *b, const places_case *c)
{
    const int64_t of_x = (c->add ? c->places : c->table) * c->row,
                  of_y = (c->add ? c->table : c->places) * c->row;
    const uint64_t size = (uint64_t)fth_dtype_size(c->dtype);
    void *x = bench_array((uint64_t)of_x * size), *y = bench_array((uint64_t)of_y * 8);
    int64_t *at = places_of(c);
    running r = {0};
    char shape[80], name[120], places[24], table[24], row[24];
    fill(c->dtype, x, of_x);
    snprintf(places, sizeof places, "%lld", (long long)c->places);
    snprintf(table, sizeof table, "%lld", (long long)c->table);
    snprintf(row, sizeof row, "%lld", (long long)c->row);
    snprintf(shape, sizeof shape, "%lldKi of %lldKi x%s", (long long)c->places >> 10,
             (long long)c->table >> 10, row);
    snprintf(name, sizeof name, "%s, %s", c->name, shape);
    bench_predict_name(name); /* several cases have one, which --predict tells apart */
    bench_open(&r.p, 1);
    fth_axis(r.p.g, "place", c->places);
    fth_axis(r.p.g, "table", c->table);
    if (c->row > 1) fth_axis(r.p.g, "j", c->row);
    const char *from =
        c->add ? (c->row > 1 ? "place j" : "place") : (c->row > 1 ? "table j" : "table");
    const fth_val X = bench_input(&r.p, "x", c->dtype, from, x),
                  at_ = bench_input(&r.p, "at", FTH_I64, "place", at);
    bench_output(
        &r.p, c->add ? fth_scatter_add(X, "place", at_, "table") : fth_gather(X, "table", at_), y);
    bench_plan(&r.p, 0, true);
    const char *const args[] = {c->add ? "add" : "take",
                                places,
                                table,
                                row,
                                c->dtype == FTH_F32   ? "f4"
                                : c->dtype == FTH_F64 ? "f8"
                                                      : "i8",
                                b->cpu_clock ? "cpu" : "wall",
                                NULL};
    const char *why = NULL;
    r.numpy = peer_python_start(b->peers, "peer_places.py", args, &why);
    const bench_pair pair = {.name = c->name,
                             .shape = shape,
                             .peer_name = "NumPy",
                             .threads = 1,
                             .amount = 1e-9 * (double)(c->places * c->row),
                             .unit = "elements/s",
                             .bar = 0.9,
                             .ours = run_ours,
                             .peer = run_numpy,
                             .arg = &r,
                             .planned = r.p.planned,
                             .measured = r.p.measured};
    bench_against_python(b, &pair, &r.p, r.numpy, why);
    free(x);
    free(y);
    free(at);
}

void bench_places(bench *b)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (bench_wants(b, cases[i].name)) one(b, &cases[i]);
}
