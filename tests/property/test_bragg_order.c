/* test_bragg_order.c - the order of flags matters only where the rules say so.
 *
 * The command lines of the golden cases are cut into flags with their values and shuffled: the
 * experiment must stay the same to the bit, in both modes. Left out are those whose meaning is in
 * their order: requests of a pivot with vectors, and -misset_seed, which takes what follows for
 * angles. The last flag stays where it is: -curved_det is none at the end of a line. A flag that
 * stands twice counts as its last. seconds: 4 */
#include "testing/bragg/bragg_golden.h"
#include "testing/bragg/bragg_resolve.h"
#include "testing/full.h"

enum { PARTS = 40, SHUFFLES = 3 };

typedef struct parts {
    int n, first[PARTS], words[PARTS];
} parts;

static bool starts_part(const char *w)
{
    return w[0] == '-' && !(w[1] >= '0' && w[1] <= '9') && w[1] != '.';
}

static void cut(parts *p, const bgr_line *l)
{
    p->n = 0;
    for (int i = 0; i < l->n; i++) {
        if (starts_part(l->word[i])) {
            p->first[p->n] = i;
            p->words[p->n++] = 0;
        }
        p->words[p->n - 1]++;
    }
    for (int k = 0; k < p->n; k++) /* the last of two counts */
        for (int j = k + 1; j < p->n; j++)
            if (strcmp(l->word[p->first[k]], l->word[p->first[j]]) == 0) p->words[k] = 0;
}

static void join(char *text, size_t bytes, const bgr_line *l, const parts *p, const int *order)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < p->n; k++)
        for (int i = 0; i < p->words[order[k]]; i++)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? " " : "",
                                     l->word[p->first[order[k]] + i]);
}

/* What the order may not change. */
typedef struct result {
    br_scene scene;
    double param[BR_PARAMS];
    int64_t seed[3];
    double xbeam, ybeam, osc, sample[3];
} result;

static void resolve(const char *args, bool spec, result *r)
{
    static bgr b;
    bgr_start(&b, args, spec, NULL);
    if (b.status != FTH_OK) FAIL("%s: %s", args, b.err.text);
    memset(r, 0, sizeof *r);
    r->scene = b.e.scene;
    memcpy(r->param, b.e.param, sizeof r->param);
    r->seed[0] = b.e.noise_seed, r->seed[1] = b.e.mosaic_seed, r->seed[2] = b.e.misset_seed;
    r->xbeam = b.e.xbeam, r->ybeam = b.e.ybeam, r->osc = b.e.osc;
    memcpy(r->sample, b.e.sample, sizeof r->sample);
    bgr_end(&b);
}

static bool by_order(const char *args)
{
    return strstr(args, "_vector") || strstr(args, "-misset_seed");
}

TEST(shuffled_flags_give_the_same_experiment)
{
    static bgr_line l;
    const bg_manifest m = bg_open();
    t_random random = t_random_make(1);
    int lines = 0;
    for (int i = 0; i < BG_CASES; i += t_one_in(1, 4)) {
        if (by_order(m.at[i].args)) continue;
        parts p;
        int order[PARTS];
        char text[3000];
        bgr_split(&l, m.at[i].args);
        cut(&p, &l);
        for (int k = 0; k < p.n; k++) order[k] = k;
        for (int spec = 0; spec < 2; spec++) {
            result wanted, got;
            resolve(m.at[i].args, spec, &wanted);
            for (int s = 0; s < SHUFFLES; s++) {
                for (int k = p.n - 2; k > 0; k--) {
                    const int j = (int)t_random_i64(&random, 0, k), t = order[k];
                    order[k] = order[j];
                    order[j] = t;
                }
                join(text, sizeof text, &l, &p, order);
                resolve(text, spec, &got);
                if (memcmp(&got, &wanted, sizeof got) != 0) FAIL("%s: %s", m.at[i].name, text);
                lines++;
            }
        }
    }
    IS_TRUE(lines > 240 / t_one_in(1, 4));
    json_decref(m.root);
}

TEST_MAIN()
