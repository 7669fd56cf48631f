/* test_random_device.c - random programs keep every promise on a device with memory of its own: one
 * made of the host, or the one whose backend FATHOM_TEST_DEVICE names.
 * seconds: 25 labels: gpu alone
 *
 * Programs are drawn from the operations that the device has kernels for, so all of them run.
 */
#include "graph/graph.h"
#include "testing/engine/host_device.h"
#include "testing/engine/op_device.h"
#include "testing/engine/random_check.h"
#include "testing/full.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { GRAPHS = 15, FULL = 15 };
#else
enum { GRAPHS = 30, FULL = 100 };
#endif
enum { MOST = 100 }; /* until some plan spilled and some had nested loops */
enum { PROBES = 4, LEAST_OPS = 40 };

static bool has_kernels(const fth_backend *backend, const fth_graph *g)
{
    for (int64_t i = 0; i < g->n_nodes; i++) {
        const fth_node *node = g->node[i];
        if (node->op->run && !(node->op->flags & FTH_OP_ALIAS) && !backend->find(node))
            return false;
    }
    return true;
}

static bool has_op(const rg *g, int op)
{
    bool has = false;
    for (int i = 0; i < g->n_values; i++) has |= g->value[i].op == op;
    return has;
}

/* Some graphs of each operation tell: all have kernels, and some have it. Elementwise ones are a
 * kernel for all. */
static void choose_ops(const fth_backend *backend, bool *may)
{
    char why[RG_TEXT + 4096];
    int left = 0;
    for (int op = 0; op < rg_op_count(); op++) {
        bool only[RG_OPS] = {false};
        only[op] = may[op] = true;
        bool drawn = op < FTH_EW_COUNT;
        rg_use_ops(only);
        for (int i = 1; op >= FTH_EW_COUNT && may[op] && i <= PROBES; i++) {
            rg *g = rg_make((uint64_t)(op + i * rg_op_count()), why, sizeof why);
            if (!g) FAIL("%s: %s", rg_op_name(op), why);
            may[op] = has_kernels(backend, g->g);
            drawn |= has_op(g, op);
            rg_free(g);
        }
        may[op] &= drawn;
        if (!may[op]) printf("%s%s", left++ ? ", " : "no kernels: ", rg_op_name(op));
    }
    if (left) printf("\n");
    IS_TRUE(rg_op_count() - FTH_EW_COUNT - left >= LEAST_OPS);
}

TEST(random_graphs_on_a_device)
{
    const char *path = getenv("FATHOM_TEST_DEVICE");
    const rg_device made = {.backend = &t_host_backend}, real = {.path = path};
    rg_stats stats = {0};
    bool may[RG_OPS];
    fth_device *device;
    int64_t failed = 0;
    choose_ops(path ? t_device_backend(&device) : &t_host_backend, may);
    rg_use_ops(may);
    rg_use_device(path ? real : made);
    int graphs = 0;
    for (int least = t_full() ? FULL : GRAPHS;
         graphs < least || (graphs < MOST && (stats.spilled == 0 || stats.nested == 0)); graphs++) {
        const int i = graphs;
        t_host_device_delay(i % 10 == 0 ? 20 : 0);
        failed += !rg_check_seed((uint64_t)(i + 1), &stats);
    }
    rg_use_device((rg_device){0});
    rg_use_ops(NULL);
    t_host_device_delay(0);
    printf("%d graphs, %lld of them without kernels, %lld runs\n", graphs, (long long)stats.lacking,
           (long long)stats.runs);
    EQ_I64(failed, 0);
    EQ_I64(stats.lacking, 0);
    IS_TRUE(stats.runs > graphs && stats.spilled > 0 && stats.nested > 0);
}

TEST_MAIN()
