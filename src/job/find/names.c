/* names.c - short names of jobs: the last parts of the folder, and the model.
 *
 * All names start with one part of the folder. Those that are equal get one more, from the right,
 * until they differ or no part is left; then a number distinguishes them. Folders have names
 * as well, for the stages that their models share; they may not be equal to any other name either.
 */
#include "job/find/jobs.h"

#include "base/assert.h"
#include "mem/heap.h"

#include <string.h>

/* A folder, or a job in one. */
typedef struct item {
    const char *path;
    const char *model; /* NULL: the folder itself */
    int64_t folder;    /* number of the folder's item */
    char *name;        /* in its own block */
} item;

typedef struct naming {
    fth_jobs *jobs;
    item *item;
    int64_t n, cap;
    int *depth; /* of a folder's item: parts that are used */
    bool *longer;
    fth__index folder, name;
} naming;

/* The last `depth` parts of a path; false: there are not so many. */
static bool tail(const char *path, int depth, const char **out)
{
    const char *s = path + strlen(path);
    for (; depth > 0 && s > path; depth--) {
        do s--;
        while (s > path && *s != '/');
    }
    *out = *s == '/' ? s + 1 : s;
    return depth == 0 && **out;
}

/* Write the name of an item anew, in a block that is large enough for the longest. */
static void print_name(const naming *n, item *it)
{
    const char *parts = "";
    (void)tail(it->path, n->depth[it->folder], &parts);
    if (!parts[0]) parts = "root";
    FTH_ASSERT(!n->item[it->folder].model); /* a folder's own item */
    sprintf(it->name, "%s%s%s", parts, it->model ? "_" : "", it->model ? it->model : "");
    const size_t length = strlen(parts);
    for (size_t i = 0; i < length; i++)
        if (it->name[i] == '/') it->name[i] = '_';
}

static fth_status add_item(naming *n, const char *path, const char *model, int64_t folder,
                           fth_err *err)
{
    const size_t bytes = strlen(path) + (model ? strlen(model) : 0) + 32; /* with "root", "#123" */
    char *name = fth__store_take(&n->jobs->texts, bytes);
    if (!name) return fth__jobs_no_memory(err);
    FTH_TRY(fth__grow(n->jobs->mem, &n->item, &n->cap, n->n + 1, err));
    n->item[n->n++] = (item){path, model, folder, name};
    return FTH_OK;
}

static fth_status add_items(naming *n, fth_err *err)
{
    for (int64_t i = 0; i < n->jobs->n; i++) {
        const fth_job *job = &n->jobs->row[i].job;
        int64_t folder = n->n;
        FTH_TRY(fth__index_add(&n->folder, job->output_dir, &folder, err));
        if (folder == n->n) FTH_TRY(add_item(n, job->output_dir, NULL, folder, err));
        FTH_TRY(add_item(n, job->output_dir, job->model, folder, err));
    }
    void *depth = NULL, *longer = NULL;
    FTH_TRY(fth__heap_take(n->jobs->mem, n->n, sizeof *n->depth, &depth, err));
    n->depth = depth;
    for (int64_t i = 0; i < n->n; i++) n->depth[i] = 1;
    FTH_TRY(fth__heap_take(n->jobs->mem, n->n, sizeof *n->longer, &longer, err));
    n->longer = longer;
    return FTH_OK;
}

/* One round: equal names want to be longer. *more is whether one can be. */
static fth_status lengthen(naming *n, bool *more, fth_err *err)
{
    *more = false;
    fth__index_empty(&n->name);
    memset(n->longer, 0, (size_t)n->n * sizeof *n->longer);
    for (int64_t i = 0; i < n->n; i++) {
        int64_t other = i;
        print_name(n, &n->item[i]);
        FTH_TRY(fth__index_add(&n->name, n->item[i].name, &other, err));
        if (other != i) n->longer[n->item[i].folder] = n->longer[n->item[other].folder] = true;
    }
    for (int64_t i = 0; i < n->n; i++) {
        const char *unused;
        if (!n->longer[i] || !tail(n->item[i].path, n->depth[i] + 1, &unused)) continue;
        n->depth[i]++;
        *more = true;
    }
    return FTH_OK;
}

/* What is still equal gets a number; the first keeps its name. */
static fth_status number_equals(naming *n, fth_err *err)
{
    fth__index_empty(&n->name);
    for (int64_t i = 0; i < n->n; i++) {
        int64_t other = i;
        const size_t length = strlen(n->item[i].name);
        FTH_TRY(fth__index_add(&n->name, n->item[i].name, &other, err));
        for (int number = 2; other != i; number++) {
            other = i;
            sprintf(n->item[i].name + length, "#%d", number);
            FTH_TRY(fth__index_add(&n->name, n->item[i].name, &other, err));
        }
    }
    return FTH_OK;
}

static fth_status name_all(naming *n, fth_err *err)
{
    FTH_TRY(add_items(n, err));
    for (bool more = true; more;) FTH_TRY(lengthen(n, &more, err));
    FTH_TRY(number_equals(n, err));
    int64_t row = 0;
    for (int64_t i = 0; i < n->n; i++) {
        if (!n->item[i].model) continue;
        n->jobs->row[row].job.name = n->item[i].name;
        n->jobs->row[row++].job.dir_name = n->item[n->item[i].folder].name;
    }
    FTH_ASSERT(row == n->jobs->n);
    return FTH_OK;
}

fth_status fth__jobs_name(fth_jobs *jobs, fth_err *err)
{
    naming n = {.jobs = jobs, .folder = {.mem = jobs->mem}, .name = {.mem = jobs->mem}};
    const fth_status s = name_all(&n, err);
    fth__heap_free(jobs->mem, n.item);
    fth__heap_free(jobs->mem, n.depth);
    fth__heap_free(jobs->mem, n.longer);
    fth__index_clear(&n.folder);
    fth__index_clear(&n.name);
    return s;
}
