/* ply_packed.c - see ply_packed.h. */
#include "ply_packed.h"

#include "formats.h"

#include <inttypes.h>
#include <string.h>

enum { CHUNK = 256, BOUNDS = 18, PLAIN_BOUNDS = 12, WORDS = 4 };

static const char *const bound_names[BOUNDS] = {
    "min_x",       "min_y",       "min_z",       "max_x",       "max_y",       "max_z",
    "min_scale_x", "min_scale_y", "min_scale_z", "max_scale_x", "max_scale_y", "max_scale_z",
    "min_r",       "min_g",       "min_b",       "max_r",       "max_g",       "max_b"};
static const char *const word_names[WORDS] = {"packed_position", "packed_rotation", "packed_scale",
                                              "packed_color"};

typedef struct bounds {
    float at[BOUNDS]; /* colours are from 0 to 1 where the file says nothing */
} bounds;

bool gs_ply_is_packed(const gs_ply *p)
{
    return gs_ply_element_named(p, "chunk") && gs_ply_find(p, word_names[0]) >= 0;
}

/* Columns by their names, all of them. */
static fth_status find_all(const gs_ply *p, const char *const *names, int n, int *column,
                           fth_err *err)
{
    for (int i = 0; i < n; i++) {
        column[i] = gs_ply_find(p, names[i]);
        if (column[i] < 0)
            return FTH_FAIL(err, FTH_E_FILE_KEY,
                            "%s, byte %" PRIu64 ": expected a property %s of a packed PLY, found "
                            "none",
                            p->bytes.path, p->start, names[i]);
    }
    return FTH_OK;
}

fth_status gs_ply_packed_degree(gs_ply *p, int *degree, fth_err *err)
{
    const gs_ply_element *vertex = gs_ply_element_named(p, "vertex"),
                         *sh = gs_ply_element_named(p, "sh"),
                         *chunk = gs_ply_element_named(p, "chunk");
    const int64_t least = vertex->rows / CHUNK + (vertex->rows % CHUNK > 0);
    *degree = 0;
    if (chunk->rows < least)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, byte %" PRIu64 ": expected %" PRId64 " chunks for %" PRId64
                        " Gaussians, found %" PRId64,
                        p->bytes.path, p->start, least, vertex->rows, chunk->rows);
    if (!sh) return FTH_OK;
    while (*degree < GS_DEGREES && 3 * gs_coefficients(*degree) != sh->columns) ++*degree;
    if (*degree == GS_DEGREES || sh->rows != vertex->rows)
        return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                        "%s, byte %" PRIu64 ": expected 0, 9, 24 or 45 coefficients of %" PRId64
                        " Gaussians in element sh, found %d of %" PRId64,
                        p->bytes.path, p->start, vertex->rows, sh->columns, sh->rows);
    return FTH_OK;
}

static fth_status read_chunks(gs_ply *p, bounds *to, fth_err *err)
{
    int column[BOUNDS];
    FTH_TRY(gs_ply_enter(p, gs_ply_element_named(p, "chunk"), err));
    const int n = gs_ply_find(p, bound_names[PLAIN_BOUNDS]) < 0 ? PLAIN_BOUNDS : BOUNDS;
    FTH_TRY(find_all(p, bound_names, n, column, err));
    for (int64_t i = 0; i < p->rows; i++) {
        FTH_TRY(gs_ply_next(p, err));
        for (int k = 0; k < BOUNDS; k++) {
            char text[GS_PLY_WHERE];
            const float v = k < n ? (float)gs_ply_real(p, column[k]) : k < 15 ? 0.0f : 1.0f;
            if (!isfinite(v))
                return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                                "%s: chunk %" PRId64 ": expected finite bounds, found %g as %s",
                                gs_ply_where(p, text), i, (double)v, bound_names[k]);
            to[i].at[k] = v;
        }
    }
    return FTH_OK;
}

/* `bits` bits from `low` on, as a number from 0 to 1. */
static double part(uint32_t word, int low, int bits)
{
    const uint32_t most = (1u << bits) - 1;
    return (double)(word >> low & most) / (double)most;
}

/* Three numbers between the bounds from `first` on. */
static void put_between(uint32_t word, const bounds *b, int first, float *to)
{
    const double at[3] = {part(word, 21, 11), part(word, 11, 10), part(word, 0, 11)};
    for (int k = 0; k < 3; k++) {
        const double low = (double)b->at[first + k], high = (double)b->at[first + 3 + k];
        to[k] = (float)(low * (1 - at[k]) + high * at[k]);
    }
}

static void put_rotation(uint32_t word, float *wxyz)
{
    const int left_out = (int)(word >> 30);
    double square = 0;
    for (int k = 0, low = 20; k < 4; k++) {
        if (k == left_out) continue;
        const double v = (part(word, low, 10) - 0.5) * sqrt(2);
        wxyz[k] = (float)v;
        square += v * v;
        low -= 10;
    }
    wxyz[left_out] = square < 1 ? (float)sqrt(1 - square) : 0;
}

static void put_colour(uint32_t word, const bounds *b, float *sh0, float *opacity)
{
    for (int c = 0; c < 3; c++) {
        const double t = part(word, 24 - 8 * c, 8), low = (double)b->at[12 + c],
                     high = (double)b->at[15 + c];
        sh0[c] = (float)((low * (1 - t) + high * t - 0.5) / GS_SH0);
    }
    *opacity = gs_logit(part(word, 0, 8));
}

static fth_status read_vertices(gs_ply *p, const bounds *chunk, gs_model *m, fth_err *err)
{
    int column[WORDS];
    FTH_TRY(gs_ply_enter(p, gs_ply_element_named(p, "vertex"), err));
    FTH_TRY(find_all(p, word_names, WORDS, column, err));
    for (int k = 0; k < WORDS; k++)
        if (p->column[column[k]].type != GS_PLY_U32)
            return FTH_FAIL(err, FTH_E_FILE_FORMAT,
                            "%s, byte %" PRIu64
                            ": expected a property %s of type uint, found another",
                            p->bytes.path, p->start, word_names[k]);
    for (int64_t g = 0; g < m->n; g++) {
        const bounds *b = &chunk[g / CHUNK];
        uint32_t word[WORDS];
        FTH_TRY(gs_ply_next(p, err));
        for (int k = 0; k < WORDS; k++) {
            const double v = gs_ply_real(p, column[k]);
            word[k] = v >= 0 && v <= (double)UINT32_MAX ? (uint32_t)v : 0; /* ASCII has any */
        }
        put_between(word[0], b, 0, m->at[GS_MEANS] + 3 * g);
        put_rotation(word[1], m->at[GS_ROTATION] + 4 * g);
        put_between(word[2], b, 6, m->at[GS_SCALING] + 3 * g);
        put_colour(word[3], b, m->at[GS_SH_0] + 3 * g, m->at[GS_OPACITY] + g);
    }
    return FTH_OK;
}

/* Bytes stand for the middles of 256 steps from -4 to 4, the first and the last for the ends. */
static fth_status read_sh(gs_ply *p, gs_model *m, fth_err *err)
{
    const int k = (int)gs_coefficients(m->degree);
    int column[3 * GS_COEFFICIENTS];
    FTH_TRY(gs_ply_enter(p, gs_ply_element_named(p, "sh"), err));
    for (int i = 0; i < 3 * k; i++) {
        column[i] = gs_ply_numbered(p, "f_rest_", i % 3 * k + i / 3);
        if (column[i] < 0)
            return FTH_FAIL(err, FTH_E_FILE_KEY,
                            "%s, byte %" PRIu64 ": expected properties f_rest_0 to f_rest_%d of "
                            "element sh, found others",
                            p->bytes.path, p->start, 3 * k - 1);
    }
    for (int64_t g = 0; g < m->n; g++) {
        FTH_TRY(gs_ply_next(p, err));
        for (int i = 0; i < 3 * k; i++) {
            const double v = gs_ply_real(p, column[i]), t = v <= 0     ? 0
                                                            : v >= 255 ? 1
                                                                       : (v + 0.5) / 256;
            m->at[GS_SH_N][3 * k * g + i] = (float)((t - 0.5) * 8);
        }
    }
    return FTH_OK;
}

fth_status gs_ply_packed_load(gs_model *m, fth_mem *mem, gs_ply *p, fth_err *err)
{
    const gs_ply_element *chunk = gs_ply_element_named(p, "chunk");
    void *block = NULL;
    int degree = 0;
    FTH_TRY(gs_ply_packed_degree(p, &degree, err));
    FTH_TRY(gs_ply_enter(p, chunk, err)); /* before memory is taken for it */
    FTH_TRY(gs_ply_enter(p, gs_ply_element_named(p, "vertex"), err));
    FTH_TRY(fth_mem_take(mem, FTH_MEM_ANY, (uint64_t)chunk->rows * sizeof(bounds),
                         "bounds of chunks", &block, err));
    fth_status s = read_chunks(p, block, err);
    if (s == FTH_OK)
        s = gs_model_create(m, mem, gs_ply_element_named(p, "vertex")->rows, degree, err);
    if (s == FTH_OK) s = read_vertices(p, block, m, err);
    (void)fth_mem_release(mem, block, NULL);
    return s == FTH_OK && degree > 0 ? read_sh(p, m, err) : s;
}
