/* allocate.c - how many inducing points each group gets: counts alone, in whole numbers (model
 * 11.2, 11.4).
 *
 * The sum is always exactly the requested one: each rule distributes the remainder one by one, or
 * moves a point from one group to another. Shares are compared as fractions with a common
 * denominator, so rounding never decides the order.
 */
#include "inducing.h"

#include <stdio.h>

/* ---- shares ---- */

typedef struct share {
    int64_t whole, part; /* of T points: whole + part / denominator */
} share;

static share share_of(const int64_t *n, int64_t g, int64_t total, int64_t present, int64_t T,
                      bool equal)
{
    if (n[g] <= 0) return (share){0, 0};
    const int64_t up = equal ? T : T * n[g], down = equal ? present : total;
    return (share){.whole = up / down, .part = up % down};
}

/* Whether a precedes b in the order of the remainder. Equal fractions: with `equal` the larger
 * group, which has more capacity; else the lower number. */
static bool ahead(share a, share b, const int64_t *n, int64_t ga, int64_t gb, bool equal)
{
    if (a.part != b.part) return a.part > b.part;
    if (equal && n[ga] != n[gb]) return n[ga] > n[gb];
    return ga < gb;
}

/* The group after `after` in that order (-1: the first); -1: there is none. */
static int64_t next_in_line(const int64_t *n, int64_t groups, int64_t total, int64_t present,
                            int64_t T, bool equal, int64_t after)
{
    int64_t best = -1;
    share best_share = {0, 0};
    const share last = after < 0 ? (share){0, 0} : share_of(n, after, total, present, T, equal);
    for (int64_t g = 0; g < groups; g++) {
        const share s = share_of(n, g, total, present, T, equal);
        if (n[g] <= 0 || g == after) continue;
        if (after >= 0 && !ahead(last, s, n, after, g, equal)) continue;
        if (best < 0 || ahead(s, best_share, n, g, best, equal)) best = g, best_share = s;
    }
    return best;
}

void sp_allocate_shares(int64_t *t, const int64_t *n, int64_t groups, int64_t T, bool equal,
                        bool compat)
{
    int64_t total = 0, present = 0;
    for (int64_t g = 0; g < groups; g++) {
        total += n[g] > 0 ? n[g] : 0;
        present += n[g] > 0;
    }
    int64_t left = T < total ? T : total;
    T = left;
    for (int64_t g = 0; g < groups; g++) {
        t[g] = share_of(n, g, total, present, T, equal).whole;
        if (t[g] > n[g]) t[g] = n[g] > 0 ? n[g] : 0;
        left -= t[g];
    }
    for (int64_t g = -1; left > 0;) {
        g = next_in_line(n, groups, total, present, T, equal, g);
        if (g < 0) continue; /* the end of the order: start again */
        int64_t give = compat ? left : 1;
        if (give > n[g] - t[g]) give = n[g] - t[g];
        t[g] += give;
        left -= give;
    }
}

static int64_t largest(const int64_t *t, int64_t groups)
{
    int64_t best = 0;
    for (int64_t g = 1; g < groups; g++)
        if (t[g] > t[best]) best = g;
    return best;
}

void sp_allocate_raise(int64_t *t, const int64_t *n, int64_t groups)
{
    for (int64_t g = 0; g < groups; g++) {
        if (n[g] <= 0 || t[g] > 0) continue;
        const int64_t from = largest(t, groups);
        if (t[from] <= 1) return; /* there are not enough for all */
        t[from]--;
        t[g] = 1;
    }
}

/* ---- groups that were left without points ---- */

/* T points for more than T groups: one for each of the largest. Returns the number of groups
 * without one. */
static int64_t only_largest(int64_t *d, const int64_t *n, int64_t groups, int64_t T, int64_t *some,
                            int64_t max_some)
{
    int64_t dropped = 0;
    for (int64_t g = 0; g < groups; g++) {
        int64_t larger = 0;
        for (int64_t h = 0; h < groups; h++) larger += n[h] > n[g] || (n[h] == n[g] && h < g);
        d[g] = n[g] > 0 && larger < T;
        if (n[g] > 0 && !d[g] && dropped++ < max_some) some[dropped - 1] = g;
    }
    return dropped;
}

static fth_status too_many_groups(int64_t *d, const int64_t *n, int64_t groups, int64_t T,
                                  bool allow_empty, const sp_group_names *names, fth_err *err)
{
    enum { SOME = 5 };
    int64_t some[SOME], present = 0;
    for (int64_t g = 0; g < groups; g++) present += n[g] > 0;
    const int64_t dropped = only_largest(d, n, groups, T, some, SOME);
    if (allow_empty) return FTH_OK;
    char list[(SP_GROUP_LABEL + 4) * SOME] = "", others[40] = "";
    size_t at = 0;
    for (int64_t i = 0; i < dropped && i < SOME; i++) {
        char name[SP_GROUP_LABEL];
        if (names)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s'%s'", i ? ", " : "",
                                   names->name(names->user, some[i], name));
        else
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%lld", i ? ", " : "",
                                   (long long)some[i]);
    }
    if (dropped > SOME)
        snprintf(others, sizeof others, " and %lld others", (long long)(dropped - SOME));
    const fth_status s = FTH_FAIL(
        err, FTH_E_CONFIG, "%lld inducing points for %lld groups: group%s %s%s would have none",
        (long long)T, (long long)present, dropped > 1 ? "s" : "", list, others);
    fth_err_hint(err,
                 "set model.num_inducing to at least %lld, or model.allow_empty_groups to true",
                 (long long)present);
    return s;
}

/* T n / N to the nearest whole number, halves to the even one; at least 1, at most n. */
static int64_t need_of(int64_t n, int64_t N, int64_t T)
{
    int64_t need = T * n / N;
    const int64_t twice = T * n % N * 2;
    if (twice > N || (twice == N && need % 2)) need++;
    if (need < 1) need = 1;
    return need < n ? need : n;
}

/* Gives each group without points what it needs; returns the total. */
static int64_t ask_for(int64_t *d, const int64_t *n, int64_t groups, int64_t N, int64_t T,
                       int64_t most)
{
    int64_t taken = 0;
    for (int64_t g = 0; g < groups; g++)
        if (n[g] > 0 && d[g] == 0) taken += need_of(n[g], N, T);
    /* Until the others have given, d of a missing group is minus its need. */
    for (int64_t g = 0; g < groups; g++)
        if (n[g] > 0 && d[g] == 0) d[g] = -need_of(n[g], N, T);
    for (; taken > most; taken--) {
        int64_t least = -1;
        for (int64_t g = 0; g < groups; g++)
            if (d[g] < -1 && (least < 0 || d[g] < d[least])) least = g;
        if (least < 0) break;
        d[least]++;
    }
    return taken;
}

/* Takes one point from the group that is farthest above its share of what remains. */
static void take_one(int64_t *d, const int64_t *n, int64_t groups, int64_t rest, int64_t cells)
{
    int64_t from = -1, most = 0;
    for (int64_t g = 0; g < groups; g++) {
        if (d[g] <= 1) continue;
        const int64_t above = d[g] * cells - rest * n[g]; /* d - share, times the cells */
        if (from < 0 || above > most) most = above, from = g;
    }
    if (from >= 0) d[from]--;
}

fth_status sp_allocate_missing(int64_t *d, const int64_t *n, int64_t groups, int64_t T,
                               bool allow_empty, const sp_group_names *names, fth_err *err)
{
    int64_t N = 0, present = 0, missing = 0, cells = 0;
    for (int64_t g = 0; g < groups; g++) {
        N += n[g];
        present += d[g] > 0;
        cells += d[g] > 0 ? n[g] : 0; /* only those of present groups: model 11.4b */
        missing += n[g] > 0 && d[g] == 0;
    }
    if (missing == 0) return FTH_OK;
    if (present + missing > T) return too_many_groups(d, n, groups, T, allow_empty, names, err);
    const int64_t taken = ask_for(d, n, groups, N, T, T - present);
    for (int64_t i = 0; i < taken; i++) take_one(d, n, groups, T - taken, cells);
    for (int64_t g = 0; g < groups; g++)
        if (d[g] < 0) d[g] = -d[g];
    return FTH_OK;
}
