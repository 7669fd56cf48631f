/* sweep.c - rows of a tile along one axis: the longest axes of the others go along the lanes. */
#include "cpu/fft/sweep.h"

#include "ops/loop.h"

#include <string.h>

/* Rows of a task of a team: some vectors of each type, and some microseconds of work. FEWEST: a
 * vector of the widest type. */
enum { SHARE = 64, FEWEST = 16 };

void fth__fft_sweep_add(fth__fft_sweep *s, int64_t extent, int64_t in, int64_t out)
{
    if (extent == 1) return;
    if (s->n > 0 && s->in[s->n - 1] == in * extent && s->out[s->n - 1] == out * extent) {
        s->extent[s->n - 1] *= extent;
        s->in[s->n - 1] = in;
        s->out[s->n - 1] = out;
        return;
    }
    s->extent[s->n] = extent;
    s->in[s->n] = in;
    s->out[s->n++] = out;
}

/* The axis whose rows share vectors: one along which both arrays are contiguous, else the longest.
 * -1: there is one row. */
static int lane_axis(const fth__fft_sweep *s)
{
    int best = -1;
    for (int i = 0; i < s->n; i++) {
        if (s->in[i] == 1 && s->out[i] == 1 && s->extent[i] > 1) return i;
        if (best < 0 || s->extent[i] > s->extent[best]) best = i;
    }
    return best;
}

/* The spectrum of no points at all: zeros. */
static void clear(const fth__fft_rows_pass *p, char *to, int64_t row, int64_t step, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < p->n_out; i++)
            memset(to + (r * row + i * step) * p->out_size, 0, (size_t)p->out_size);
}

/* Rows that lie evenly: `in` and `out` numbers from one to the next, from these places on. */
typedef struct rows {
    int64_t at_in, at_out, in, out, count;
} rows;

static void run_rows(const fth__fft_sweep *s, const rows *r, int worker)
{
    const fth__fft_rows_pass *p = s->pass;
    char *there = s->to + r->at_out * p->out_size;
    union {
        const char *in;
        void *out;
    } cast = {s->from + r->at_in * p->in_size}; /* spans are one type for both sides */
    if (p->points == 0)
        clear(p, there, r->out, s->s_out, r->count);
    else
        fth__fft_transform_run(&p->transform[worker], &(fth__fft_span){cast.out, r->in, s->s_in},
                               &(fth__fft_span){there, r->out, s->s_out}, r->count);
}

void fth__fft_sweep_run(const fth__fft_sweep *s, int worker)
{
    const int lane = lane_axis(s);
    rows r = {.count = 1};
    if (lane >= 0) r = (rows){0, 0, s->in[lane], s->out[lane], s->extent[lane]};
    fth__loop l = {0};
    for (int i = 0; i < s->n; i++)
        if (i != lane) fth__loop_add(&l, s->extent[i], s->in[i], s->out[i], 0, 0);
    for (bool go = fth__loop_start(&l); go; go = fth__loop_next(&l)) {
        r.at_in = l.at[0];
        r.at_out = l.at[1];
        run_rows(s, &r, worker);
    }
}

/* ---- by a team ---- */

typedef struct shares {
    const fth__fft_sweep *s;
    int lane;
    int64_t rows;  /* of a task, along the axis of lanes, */
    int64_t along; /* and its tasks */
} shares;

static void run_share(void *arg, int64_t task, int worker)
{
    const shares *w = arg;
    const fth__fft_sweep *s = w->s;
    const int64_t first = task % w->along * w->rows, rest = s->extent[w->lane] - first;
    rows r = {first * s->in[w->lane], first * s->out[w->lane], s->in[w->lane], s->out[w->lane],
              rest < w->rows ? rest : w->rows};
    int64_t outer = task / w->along;
    for (int i = s->n - 1; i >= 0; i--) {
        if (i == w->lane) continue;
        r.at_in += outer % s->extent[i] * s->in[i];
        r.at_out += outer % s->extent[i] * s->out[i];
        outer /= s->extent[i];
    }
    run_rows(s, &r, worker);
}

void fth__fft_sweep_team(const fth__fft_sweep *s, fth_team *team, bool alone)
{
    const int lane = lane_axis(s);
    if (!team || lane < 0) {
        fth__fft_sweep_run(s, 0);
        return;
    }
    shares w = {.s = s, .lane = lane, .rows = SHARE};
    if (alone) {
        const bool direct = s->s_in == 1 && s->s_out == 1; /* rows are not taken together */
        w.rows = direct && s->pass->points >= FTH__FFT_ASK ? 1 : FEWEST;
        while (w.rows * (s->pass->points + 1) < FTH__FFT_ASK) w.rows *= 2;
    }
    w.along = (s->extent[lane] + w.rows - 1) / w.rows;
    int64_t tasks = w.along;
    for (int i = 0; i < s->n; i++)
        if (i != lane) tasks *= s->extent[i];
    fth_team_run(team, tasks, run_share, &w);
}
