/* names.c - names of views: their order, and collisions between images or results. */
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

/* All names in their order; give it back with fth_mem_release. */
static fth_status sort_names(const gs_scene *s, bool stems, entry **out, fth_err *err)
{
    void *block = NULL;
    FTH_TRY(fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->views * sizeof(entry), "names", &block,
                         err));
    *out = block;
    for (int64_t i = 0; i < s->views; i++) {
        const char *name = fth_texts_get(s->name, i);
        (*out)[i] = (entry){name, stems ? gs_stem(name) : strlen(name), i};
    }
    qsort(*out, (size_t)s->views, sizeof **out, by_name);
    return FTH_OK;
}

static fth_status put_in_order(gs_scene *s, const entry *list, fth_texts *names, fth_texts *masks,
                               gs_view *views, fth_err *err)
{
    for (int64_t i = 0; i < s->views; i++) {
        const char *mask = s->mask ? fth_texts_get(s->mask, list[i].view) : "";
        FTH_TRY(fth_texts_add(names, list[i].name, list[i].n, err));
        FTH_TRY(fth_texts_add(masks, mask, strlen(mask), err));
        views[i] = s->view[list[i].view];
    }
    return FTH_OK;
}

fth_status gs_scene_sort(gs_scene *s, fth_err *err)
{
    entry *list = NULL;
    fth_texts *names = NULL, *masks = NULL;
    void *views = NULL;
    if (s->views == 0) return FTH_OK;
    FTH_TRY(sort_names(s, false, &list, err));
    fth_status st = fth_texts_create(&names, s->mem, err);
    if (st == FTH_OK) st = fth_texts_create(&masks, s->mem, err);
    if (st == FTH_OK)
        st = fth_mem_take(s->mem, FTH_MEM_ANY, (uint64_t)s->views * sizeof(gs_view), "views",
                          &views, err);
    if (st == FTH_OK) st = put_in_order(s, list, names, masks, views, err);
    (void)fth_mem_release(s->mem, list, NULL);
    if (st != FTH_OK) {
        if (views) (void)fth_mem_release(s->mem, views, NULL);
        fth_texts_free(names);
        fth_texts_free(masks);
        return st;
    }
    fth_texts_free(s->name);
    fth_texts_free(s->mask ? s->mask : masks);
    if (s->mask) s->mask = masks;
    (void)fth_mem_release(s->mem, s->view, NULL);
    s->name = names;
    s->view = views;
    return FTH_OK;
}

fth_status gs_scene_check_names(const gs_scene *s, bool stems, fth_err *err)
{
    entry *list = NULL;
    FTH_TRY(sort_names(s, stems, &list, err));
    fth_status st = FTH_OK;
    for (int64_t i = 1; i < s->views && st == FTH_OK; i++) {
        const entry *a = &list[i - 1], *b = &list[i];
        if (a->n != b->n || memcmp(a->name, b->name, a->n) != 0) continue;
        st = FTH_FAIL(err, FTH_E_FILE_FORMAT,
                      "%s: expected another %s for each view, found '%.200s' for views %" PRId64
                      " and %" PRId64 " of %" PRId64,
                      s->images, stems ? "name without its ending" : "image", b->name, a->view,
                      b->view, s->views);
        fth_err_hint(err, stems ? "rename one of the images: their results would have one name"
                                : "leave one of the views out; images of one name lie in folders "
                                  "of their own");
    }
    (void)fth_mem_release(s->mem, list, NULL);
    return st;
}
