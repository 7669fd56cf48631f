/* tiff_stack.c - stacks written as TIFF: heads first, then all pixels as one array.
 *
 * So a stack is a head and a dense array, and sinks of dense arrays do the rest.
 */
#include "array/rect.h"
#include "base/assert.h"
#include "base/checked.h"
#include "io/dense.h"
#include "io/images.h"
#include "io/tiff.h"
#include "mem/heap.h"

#include <inttypes.h>
#include <string.h>

/* Sizes by name; false when the axes are not some of "tzc" in this order, then "yx". */
static bool find_sizes(const fth_tiff_stack *s, fth__tiff_sizes *n)
{
    static const char known[] = "tzcyx";
    int64_t size[5] = {1, 1, 1, 0, 0};
    int last = -1, count = 0;
    if (!s->axes) return false;
    for (const char *a = s->axes; *a; a++, count++) {
        const char *at = strchr(known, *a);
        if (!at || (int)(at - known) <= last || s->size[count] < 1) return false;
        last = (int)(at - known);
        size[last] = s->size[count];
    }
    *n = (fth__tiff_sizes){size[0], size[1], size[2], size[3], size[4]};
    return n->y > 0 && n->x > 0;
}

static fth_status check(const fth_tiff_stack *s, fth__tiff_sizes *n, uint64_t *bytes, fth_err *err)
{
    if (!find_sizes(s, n))
        return FTH_FAIL(err, FTH_E_USAGE,
                        "the axes of a TIFF are some of t, z and c in this order, then yx, each of "
                        "at least 1; these are '%s'",
                        s->axes ? s->axes : "");
    if (s->flavour == FTH_TIFF_IMAGEJ && !fth__images_common(s->dtype))
        return FTH_FAIL(err, FTH_E_USAGE, "a TIFF of ImageJ holds u8, u16 or f32, not %s",
                        fth_dtype_name(s->dtype));
    if (!fth__images_dtype(s->dtype))
        return FTH_FAIL(err, FTH_E_USAGE,
                        "a TIFF holds integers of 8, 16 or 32 bits, or f32, not %s",
                        fth_dtype_name(s->dtype));
    const int64_t size[5] = {n->t, n->z, n->c, n->y, n->x};
    FTH_TRY(fth__shape_check(s->dtype, 5, size, NULL, bytes, err));
    if (n->y > INT32_MAX || n->x > INT32_MAX || n->t * n->z * n->c > INT32_MAX)
        return FTH_FAIL(err, FTH_E_USAGE,
                        "a TIFF of %" PRId64 " pages of %" PRId64 " x %" PRId64 " pixels",
                        n->t * n->z * n->c, n->y, n->x);
    return FTH_OK;
}

typedef void describe_fn(fth__text *text, const fth_tiff_stack *s, const fth__tiff_sizes *n);

/* The description, of the heap; NULL where there is none. */
static fth_status describe(fth_mem *mem, const fth_tiff_stack *s, const fth__tiff_sizes *n,
                           char **out, fth_err *err)
{
    describe_fn *fn = s->flavour == FTH_TIFF_OME      ? fth__ome_describe
                      : s->flavour == FTH_TIFF_IMAGEJ ? fth__imagej_describe
                                                      : NULL;
    void *block = NULL;
    fth__text text;
    *out = NULL;
    if (!fn) return FTH_OK;
    fth__text_init(&text, NULL, 0);
    fn(&text, s, n);
    const size_t bytes = text.wanted + 1;
    FTH_TRY(fth__heap_take(mem, (int64_t)bytes, 1, &block, err));
    fth__text_init(&text, block, bytes);
    fn(&text, s, n);
    FTH_ASSERT(!fth__text_is_cut(&text) && text.wanted + 1 == bytes);
    *out = block;
    return FTH_OK;
}

static fth__tiff_spec spec_of(const fth_tiff_stack *s, const fth__tiff_sizes *n,
                              const char *description, uint64_t bytes)
{
    const bool imagej = s->flavour == FTH_TIFF_IMAGEJ;
    const double um = s->um_per_px;
    fth__tiff_spec spec = {.dtype = s->dtype,
                           .width = n->x,
                           .height = n->y,
                           .samples = 1,
                           .pages = n->t * n->z * n->c,
                           .density = um > 0 ? (imagej ? 1 : 1e4) / um : 0,
                           .unit = imagej ? FTH__TIFF_UNIT_NONE : FTH__TIFF_UNIT_CM,
                           .description = description};
    if (bytes + fth__tiff_head(NULL, &spec, 0, NULL) > FTH__TIFF_CLASSIC_MOST) {
        spec.big = !imagej;
        if (imagej) spec.pages = 1;
    }
    return spec;
}

fth_status fth_tiff_create(fth_sink *out, fth_mem *mem, const char *path,
                           const fth_tiff_stack *stack, fth_err *err)
{
    static const char *const kinds[] = {"tiff", "imagej", "ome-tiff"};
    fth__tiff_sizes n;
    uint64_t bytes = 0;
    char *description = NULL;
    void *head = NULL;
    *out = (fth_sink){0};
    if (!mem) return FTH_FAIL(err, FTH_E_USAGE, "a file needs memory to be created");
    FTH_TRY(check(stack, &n, &bytes, err));
    FTH_TRY(describe(mem, stack, &n, &description, err));
    const fth__tiff_spec spec = spec_of(stack, &n, description, bytes);
    const uint64_t data = fth__tiff_head(NULL, &spec, 0, NULL);
    fth_status s = fth__heap_take(mem, (int64_t)data, 1, &head, err);
    if (s == FTH_OK) {
        fth__layout layout = {
            .dtype = stack->dtype, .n_axes = (int)strlen(stack->axes), .offset = data};
        memcpy(layout.size, stack->size, sizeof layout.size);
        const uint64_t written = fth__tiff_head(head, &spec, data, NULL);
        FTH_ASSERT(written == data);
        s = fth__dense_create(out, kinds[stack->flavour], mem, path, &layout, head, err);
    }
    fth__heap_free(mem, head);
    fth__heap_free(mem, description);
    return s;
}
