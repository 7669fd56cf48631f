/* match.c - assignments of rows to columns: greedy, and of least cost (model 15.2). */
#include "match.h"

#include <math.h>
#include <string.h>

static bool is_used(const int64_t *column, int64_t rows, int64_t j)
{
    for (int64_t i = 0; i < rows; i++)
        if (column[i] == j) return true;
    return false;
}

void sp_match_greedy(int64_t *column, const double *cost, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) column[i] = -1;
    for (int64_t n = 0; n < rows && n < cols; n++) {
        int64_t row = -1, col = -1;
        for (int64_t i = 0; i < rows; i++) {
            if (column[i] >= 0) continue;
            for (int64_t j = 0; j < cols; j++) {
                if (is_used(column, rows, j)) continue;
                const double c = cost[i * cols + j];
                if (row < 0 || c < cost[row * cols + col] ||
                    (isfinite(c) && !isfinite(cost[row * cols + col])))
                    row = i, col = j;
            }
        }
        column[row] = col;
    }
}

/* ---- least cost: shortest augmenting paths with potentials, rows one by one ---- */

typedef struct state {
    int64_t n; /* size of the padded square matrix: padding costs nothing */
    int64_t rows, cols;
    const double *cost;
    double worst;              /* cost in place of non-finite ones */
    double *row_price, *price; /* potentials, from 1 */
    double *least;             /* of the path to each column */
    int64_t *row_of, *before;  /* row in each column, and the column before on the path */
    bool *seen;
} state;

static double cost_of(const state *s, int64_t i, int64_t j)
{
    if (i > s->rows || j > s->cols) return 0.0;
    const double c = s->cost[(i - 1) * s->cols + j - 1];
    return isfinite(c) ? c : s->worst;
}

/* Extends the path by one column and returns it. */
static int64_t extend(state *s, int64_t at)
{
    const int64_t i = s->row_of[at];
    double delta = (double)INFINITY;
    int64_t next = 0;
    s->seen[at] = true;
    for (int64_t j = 1; j <= s->n; j++) {
        if (s->seen[j]) continue;
        const double c = cost_of(s, i, j) - s->row_price[i] - s->price[j];
        if (c < s->least[j]) s->least[j] = c, s->before[j] = at;
        if (s->least[j] < delta) delta = s->least[j], next = j;
    }
    for (int64_t j = 0; j <= s->n; j++) {
        if (!s->seen[j]) {
            s->least[j] -= delta;
            continue;
        }
        s->row_price[s->row_of[j]] += delta;
        s->price[j] -= delta;
    }
    return next;
}

static void place_row(state *s, int64_t i)
{
    int64_t at = 0;
    s->row_of[0] = i;
    for (int64_t j = 0; j <= s->n; j++) s->least[j] = (double)INFINITY, s->seen[j] = false;
    do at = extend(s, at);
    while (s->row_of[at] != 0);
    for (; at != 0; at = s->before[at]) s->row_of[at] = s->row_of[s->before[at]];
}

static double worst_of(const double *cost, int64_t n)
{
    double worst = 0.0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(cost[i])) worst = fmax(worst, fabs(cost[i]));
    return 1e3 * (worst + 1.0);
}

fth_status sp_match_best(int64_t *column, fth_mem *mem, const double *cost, int64_t rows,
                         int64_t cols, fth_err *err)
{
    const int64_t n = rows > cols ? rows : cols, k = n + 1;
    void *room = NULL;
    const uint64_t bytes = (uint64_t)k * (3 * sizeof(double) + 2 * sizeof(int64_t) + sizeof(bool));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, bytes, "match", &room, err));
    memset(room, 0, bytes);
    double *d = room;
    int64_t *l = (int64_t *)(void *)(d + 3 * k);
    state s = {.n = n, .rows = rows, .cols = cols, .cost = cost, .row_price = d, .price = d + k};
    s.least = d + 2 * k;
    s.row_of = l;
    s.before = l + k;
    s.seen = (bool *)(void *)(l + 2 * k);
    s.worst = worst_of(cost, rows * cols);
    for (int64_t i = 1; i <= n; i++) place_row(&s, i);
    for (int64_t i = 0; i < rows; i++) column[i] = -1;
    for (int64_t j = 1; j <= cols; j++)
        if (s.row_of[j] <= rows) column[s.row_of[j] - 1] = j - 1;
    return fth_mem_release(mem, room, err);
}
