/* twins.c - views whose images, or results, would be one file. */
#include "parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *name;
    size_t n; /* bytes of it that count */
    int64_t view;
} entry;

static int by_name(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const int d = memcmp(x->name, y->name, x->n < y->n ? x->n : y->n);
    if (d != 0) return d;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return (x->view > y->view) - (x->view < y->view);
}

size_t gs_stem(const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    return dot && dot > (slash ? slash + 1 : name) ? (size_t)(dot - name) : strlen(name);
}

fth_status gs_scene_check_names(const gs_scene *s, bool stems, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->views * sizeof(entry), "names", &block,
                         err));
    entry *list = block;
    for (int64_t i = 0; i < s->views; i++) {
        const char *name = fth_texts_get(s->name, i);
        list[i] = (entry){name, stems ? gs_stem(name) : strlen(name), i};
    }
    qsort(list, (size_t)s->views, sizeof *list, by_name);
    fth_status st = FTH_OK;
    for (int64_t i = 1; i < s->views && st == FTH_OK; i++) {
        const entry *a = &list[i - 1], *b = &list[i];
        if (a->n != b->n || memcmp(a->name, b->name, a->n) != 0) continue;
        st = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                      "%s: expected another %s for each view, found '%.200s' for views %" PRId64
                      " and %" PRId64 " of %" PRId64,
                      s->images, stems ? "name without its ending" : "image", b->name, a->view,
                      b->view, s->views);
        fth_err_hint(err, stems ? "rename one of the images: their results would be one file"
                                : "leave one of the views out; images of one name lie in folders "
                                  "of their own");
    }
    (void)fth_mem_release(s->mem, block, NULL);
    return st;
}
