/* toy_image.c - a made-up picture of the tissue: stained ground, and nuclei around the cells. */
#include "toy.h"

#include <math.h>

enum { SIDE = 1000, NUCLEI = 9, MOST = 40000 /* cells that have nuclei */ };
static const double edge = 112; /* of the picture; cells reach to 100 */

/* Random numbers of a nucleus: its place, and its size. */
static double draw(const sp_toy *t, int64_t cell, int64_t nucleus, int64_t k)
{
    return fth_random_uniform_at(t->seed, k, SP_TOY_NUCLEI, cell * NUCLEI + nucleus);
}

static void put(sp_image *i, int64_t x, int64_t y, const double rgb[3], double alpha)
{
    if (x < 0 || y < 0 || x >= i->width || y >= i->height) return;
    uint8_t *px = i->rgb + (y * i->width + x) * 3;
    for (int k = 0; k < 3; k++) px[k] = (uint8_t)(alpha * rgb[k] + (1 - alpha) * px[k] + 0.5);
}

/* White, and pink in bands where the tissue is. */
static void stain(sp_image *i)
{
    static const double white[3] = {246, 244, 246};
    for (int64_t y = 0; y < SIDE; y++)
        for (int64_t x = 0; x < SIDE; x++) {
            const double u = ((double)x + 0.5) / SIDE * 2 - 1, v = ((double)y + 0.5) / SIDE * 2 - 1;
            const double reach =
                fmax(fabs(u), fabs(v)) + 0.02 * sin(9 * u + 2 * v) * cos(7 * v - 3 * u);
            const double band = 0.5 + 0.5 * sin(11 * u + 4 * sin(3 * v)) * cos(5 * v + 2 * u);
            const double pink[3] = {238 - 14 * band, 196 - 44 * band, 216 - 18 * band};
            put(i, x, y, reach < 0.95 ? pink : white, 1);
        }
}

static void nucleus(sp_image *i, double x, double y, double radius)
{
    static const double purple[3] = {104, 66, 148};
    for (int64_t b = (int64_t)floor(y - radius); (double)b <= y + radius; b++)
        for (int64_t a = (int64_t)floor(x - radius); (double)a <= x + radius; a++) {
            const double far = hypot((double)a + 0.5 - x, (double)b + 0.5 - y);
            put(i, a, b, purple, 0.8 * fmin(fmax(radius - far + 0.5, 0), 1));
        }
}

/* Groups have different numbers of them. */
static void add_nuclei(sp_image *i, const sp_toy *t, double pitch)
{
    const int64_t step = (t->cells + MOST - 1) / MOST;
    for (int64_t c = 0; c < t->cells; c += step)
        for (int64_t k = 0; k < 1 + 4 * (t->group[c] % 3); k++) {
            const double x = (double)t->xy[2 * c] + pitch * (draw(t, c, k, 0) - 0.5),
                         y = (double)t->xy[2 * c + 1] + pitch * (draw(t, c, k, 1) - 0.5);
            nucleus(i, (x + edge) / (2 * edge) * SIDE, (y + edge) / (2 * edge) * SIDE,
                    1.6 + 1.4 * draw(t, c, k, 2));
        }
}

void sp_toy_image_place(const sp_toy *t, sp_image *out)
{
    const double pitch = t->side > 1 ? 200.0 / (double)(t->side - 1) : 1;
    *out = (sp_image){.width = SIDE,
                      .height = SIDE,
                      .low = {-edge, -edge},
                      .high = {edge, edge},
                      .spot = 0.55 * pitch};
}

fth_status sp_toy_write_image(const sp_toy *t, const char *dir, fth_err *err)
{
    sp_image i;
    void *block = NULL;
    sp_toy_image_place(t, &i);
    FTH_TRY(
        fth_mem_take(t->mem, FTH_MEM_ANY, (uint64_t)SIDE * SIDE * 3, "tissue image", &block, err));
    i.rgb = block;
    stain(&i);
    add_nuclei(&i, t, i.spot / 0.55);
    const fth_status s = sp_image_save(&i, t->mem, dir, SP_IMAGE, err);
    (void)fth_mem_release(t->mem, block, NULL);
    return s;
}
