/* context.h - what every part of one process shares: memory, log, workers, device, timeline.
 *
 * The context is passed, never found: there are no globals. Fields are set once by
 * fth_context_create and only read afterwards.
 */
#ifndef FTH_GRAPH_CONTEXT_H
#define FTH_GRAPH_CONTEXT_H

#include <fathom/graph.h>
#include <fathom/op.h>

/* A device's table of kernels; the CPU's is linked in, others come from dlopen. A device with
 * memory of its own will add here how to take and release it, how to copy, and its streams: src/run
 * and src/mem then ask this table where they call the system today. A member is added with its use.
 */
typedef struct fth_backend {
    uint32_t abi;
    const char *name; /* "cpu" */
    /* The kernel for this node; NULL: none, which is an error while planning. */
    const fth_kernel *(*find)(const fth_node *node);
} fth_backend;
enum { FTH_BACKEND_ABI = 1 };

struct fth_context {
    fth_mem *mem;
    fth_log log;
    int threads;
    char device[32];
    char reason[128];      /* why that device */
    char scratch_dir[512]; /* empty: never spill */
    const fth_backend *backend;
    struct fth__plan_cache *plans; /* decisions of earlier searches */
    fth_team *team;                /* workers; made and joined with the context */
    fth_trace *trace;
};

#endif
