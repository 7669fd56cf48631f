/* testing/io/nd2_made.h - ND2 files whose every pixel is known, for tests. */
#ifndef FATHOM_TESTING_ND2_MADE_H
#define FATHOM_TESTING_ND2_MADE_H

#include "testing/io/files.h"

#include <fathom/nd2.h>

/* Pixels count on over t p z c y x, in steps that no byte repeats soon. */
static inline double t_nd2_value(const fth_nd2_options *o, const int64_t at[6])
{
    int64_t k = 0;
    for (int a = 0; a < 6; a++) k = k * o->size[a] + at[a];
    return (double)((k * 7919 + 13) % (o->dtype == FTH_U8 ? 251 : 65521));
}

static inline void t_nd2_put(fth_dtype dtype, void *to, int64_t i, double v)
{
    if (dtype == FTH_U8) ((uint8_t *)to)[i] = (uint8_t)v;
    if (dtype == FTH_U16) ((uint16_t *)to)[i] = (uint16_t)v;
    if (dtype == FTH_F32) ((float *)to)[i] = (float)v;
}

typedef struct t_nd2_scene {
    const fth_nd2_options *o;
    const int64_t *missing; /* numbers over t p z, as many as `n_missing` */
    int64_t n_missing;
} t_nd2_scene;

static inline bool t_nd2_is_missing(const t_nd2_scene *s, int64_t t, int64_t p, int64_t z)
{
    const int64_t number = (t * s->o->size[1] + p) * s->o->size[2] + z;
    for (int64_t i = 0; i < s->n_missing; i++)
        if (s->missing[i] == number) return true;
    return false;
}

static inline fth_status t_nd2_draw(void *user, int64_t t, int64_t p, int64_t z, void *pixels,
                                    bool *present, fth_err *err)
{
    const t_nd2_scene *s = user;
    const int64_t *size = s->o->size;
    int64_t i = 0;
    (void)err;
    for (int64_t c = 0; c < size[3]; c++)
        for (int64_t y = 0; y < size[4]; y++)
            for (int64_t x = 0; x < size[5]; x++, i++)
                t_nd2_put(s->o->dtype, pixels, i,
                          t_nd2_value(s->o, (const int64_t[]){t, p, z, c, y, x}));
    *present = !t_nd2_is_missing(s, t, p, z);
    return FTH_OK;
}

/* All pixels that a source should give, to be freed; missing frames are zero. */
static inline void *t_nd2_whole(const t_nd2_scene *s)
{
    const int64_t *size = s->o->size;
    const int64_t frame = size[3] * size[4] * size[5] * fth_dtype_size(s->o->dtype);
    char *all = calloc((size_t)(size[0] * size[1] * size[2]), (size_t)frame);
    char *to = all;
    for (int64_t t = 0; t < size[0]; t++)
        for (int64_t p = 0; p < size[1]; p++)
            for (int64_t z = 0; z < size[2]; z++, to += frame) {
                bool present;
                (void)t_nd2_draw((void *)(uintptr_t)s, t, p, z, to, &present, NULL);
                if (!present) memset(to, 0, (size_t)frame);
            }
    return all;
}

#endif /* FATHOM_TESTING_ND2_MADE_H */
