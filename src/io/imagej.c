/* imagej.c - the description that ImageJ gives its stacks: lines of key=value.
 *
 * Pages run over channels first, then planes, then time points. A stack that was too large for
 * TIFF has one page, and its planes follow each other behind it.
 */
#include "base/assert.h"
#include "base/checked.h"
#include "io/tiff.h"
#include "mem/heap.h"
#include "text/number.h"

#include <fathom/number.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool fth__imagej_is(const char *description)
{
    return strncmp(description, "ImageJ=", 7) == 0;
}

/* ---- reading ---- */

/* The text behind "key=" at the begin of a line; false when there is none. */
static bool find(const char *text, const char *key, char *out, size_t bytes)
{
    const size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) != 0 || line[n] != '=') continue;
        const size_t length = strcspn(line + n + 1, "\r\n");
        if (length >= bytes) return false;
        memcpy(out, line + n + 1, length);
        out[length] = 0;
        return true;
    }
    return false;
}

static int64_t find_int(const char *text, const char *key, int64_t otherwise)
{
    char value[40];
    int64_t v = 0;
    return find(text, key, value, sizeof value) && fth_int_parse(value, &v) && v > 0 ? v
                                                                                     : otherwise;
}

static double find_real(const char *text, const char *key)
{
    char value[40];
    double v = 0;
    return find(text, key, value, sizeof value) && fth_real_parse(value, &v) && v > 0 && v < 1e12
               ? v
               : 0;
}

/* Micrometres of its unit; 0: no length. */
static double unit_um(const char *text)
{
    static const struct {
        const char *name;
        double um;
    } units[] = {{"micron", 1}, {"microns", 1},  {"um", 1},         {"\xc2\xb5m", 1},
                 {"\xb5m", 1},  {"\\u00B5m", 1}, {"micrometer", 1}, {"nm", 1e-3},
                 {"mm", 1e3},   {"cm", 1e4},     {"inch", 25400},   {"m", 1e6}};
    char value[40];
    if (!find(text, "unit", value, sizeof value)) return 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, value) == 0) return units[i].um;
    return 0;
}

/* One page for each plane of a stack that has only its first. */
static fth_status spread(fth__tiff *t, int64_t images, fth_err *err)
{
    const uint64_t bytes = fth__tiff_plane_bytes(&t->page[0]) * (uint64_t)t->page[0].samples;
    uint64_t end = 0;
    FTH_ASSERT(images > 1 && t->n_pages == 1 && t->page[0].data);
    if (!fth__mul_u64(bytes, (uint64_t)images, &end) || !fth__add_u64(end, t->page[0].data, &end) ||
        end > fth_file_bytes(t->file))
        return FTH__FILE_FAIL(err, FTH_E_FILE_SHORT, t->file->path, t->page[0].data,
                              "%" PRId64 " planes of %" PRIu64
                              " bytes should follow here, the file has %" PRIu64,
                              images, bytes, fth_file_bytes(t->file));
    FTH_TRY(fth__grow(t->mem, &t->page, &t->capacity, images, err));
    for (int64_t i = 1; i < images; i++) {
        t->page[i] = t->page[0];
        t->page[i].data += (uint64_t)i * bytes;
    }
    t->n_pages = images;
    return FTH_OK;
}

static fth_status say_missing(fth__tiff_plan *plan, int64_t images, int64_t pages, fth_err *err)
{
    char text[120];
    snprintf(text, sizeof text, "its description names %" PRId64 " images, %" PRId64 " are there",
             images, pages);
    plan->damage = fth__heap_strdup(plan->mem, text);
    return plan->damage ? FTH_OK : FTH_FAIL(err, FTH_E_NOMEM, "no memory for a text");
}

fth_status fth__imagej_plan(fth__tiff_plan *plan, fth_err *err)
{
    fth__tiff *f = plan->file[0];
    const char *text = f->description;
    int64_t images = find_int(text, "images", 1), product = 0;
    int64_t c = find_int(text, "channels", 1), z = find_int(text, "slices", 1),
            t = find_int(text, "frames", 1);
    if (images < f->n_pages) images = f->n_pages;
    if (images > 1 && f->n_pages == 1 && f->page[0].data) FTH_TRY(spread(f, images, err));
    if (!fth__mul_i64(c, z, &product) || !fth__mul_i64(product, t, &product) || product != images)
        c = 1, t = 1, z = images;
    plan->format = "imagej";
    const double um = unit_um(text);
    plan->um_per_px = um > 0 && f->density > 0 ? um / f->density : 0;
    plan->z_step_um = um * find_real(text, "spacing");
    plan->period_ms = 1e3 * find_real(text, "finterval");
    FTH_TRY(fth__tiff_plan_sizes(plan, t, 1, z, c, err));
    FTH_ASSERT(plan->t * plan->z * plan->c == images);
    for (int64_t i = 0; i < images && i < f->n_pages; i++)
        plan->plane[i] = (fth__tiff_plane){0, (int32_t)i}; /* [t][z][c], as ImageJ has it */
    return images > f->n_pages ? say_missing(plan, images, f->n_pages, err) : FTH_OK;
}

/* ---- writing ---- */

void fth__imagej_describe(fth__text *text, const fth_tiff_stack *stack, const fth__tiff_sizes *n)
{
    const struct {
        const char *key;
        int64_t count;
    } axes[] = {
        {"images", n->t * n->z * n->c}, {"channels", n->c}, {"slices", n->z}, {"frames", n->t}};
    fth__text_add(text, "ImageJ=1.53t\n");
    for (int i = 0; i < 4; i++)
        if (axes[i].count > 1) fth__text_add(text, "%s=%" PRId64 "\n", axes[i].key, axes[i].count);
    if ((n->t > 1) + (n->z > 1) + (n->c > 1) > 1)
        fth__text_add(text, "hyperstack=true\nmode=grayscale\n");
    if (stack->um_per_px > 0) fth__text_add(text, "unit=micron\n");
    if (stack->z_step_um > 0) {
        fth__text_add(text, "spacing=");
        fth__number_print(text, stack->z_step_um);
        fth__text_add(text, "\n");
    }
    if (stack->period_s > 0) {
        fth__text_add(text, "finterval=");
        fth__number_print(text, stack->period_s);
        fth__text_add(text, "\n");
    }
    fth__text_add(text, "loop=false\n");
}
