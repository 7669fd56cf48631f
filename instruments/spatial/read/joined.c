/* joined.c - counts of several files as one matrix: rows one after the other, columns those of the
 * first file.
 *
 * A block lies in one part. It is read into a block of that part, whose columns are then renamed;
 * those that the first file does not have are left out.
 */
#include "matrix.h"

#include <string.h>

typedef struct part {
    sp_matrix *m;
    int64_t first;         /* row */
    const int32_t *column; /* of ours, for each of its columns; -1: none. NULL: the same */
} part;

struct sp_joined {
    int64_t n;
    part of[];
};

fth_status sp_joined_open(sp_matrix *m, fth_mem *mem, sp_matrix *const *of, int64_t n, fth_err *err)
{
    void *block = NULL;
    *m = (sp_matrix){.mem = mem, .layout = SP_LAYOUT_JOINED, .dtype = FTH_F32};
    FTH_TRY(fth_mem_take(mem, FTH_MEM_META, sizeof(sp_joined) + (uint64_t)n * sizeof(part),
                         "joined counts", &block, err));
    m->joined = block;
    m->joined->n = n;
    m->cols = of[0]->cols;
    for (int64_t i = 0; i < n; i++) {
        m->joined->of[i] = (part){.m = of[i], .first = m->rows};
        m->rows += of[i]->rows;
        m->entries += of[i]->entries;
        m->libraries |= of[i]->libraries;
    }
    snprintf(m->label, sizeof m->label, "%.*s", FTH_PATH, of[0]->label);
    if (n > 1)
        snprintf(m->label, sizeof m->label, "%.*s and %lld more", FTH_PATH, of[0]->label,
                 (long long)(n - 1));
    return FTH_OK;
}

void sp_joined_close(sp_matrix *m)
{
    if (m->mem) (void)fth_mem_release(m->mem, m->joined, NULL);
    m->joined = NULL;
}

void sp_joined_columns(sp_matrix *m, int64_t i, const int32_t *column)
{
    m->joined->of[i].column = column;
}

fth_status sp_joined_prepare(sp_matrix *m, fth_err *err)
{
    for (int64_t i = 0; i < m->joined->n; i++) FTH_TRY(sp_matrix_prepare(m->joined->of[i].m, err));
    return FTH_OK;
}

static int64_t part_of(const sp_matrix *m, int64_t row)
{
    int64_t i = m->joined->n - 1;
    while (i > 0 && m->joined->of[i].first > row) i--;
    return i;
}

int64_t sp_joined_entries(const sp_matrix *m, int64_t first, int64_t end)
{
    int64_t sum = 0;
    for (int64_t at = first; at < end;) {
        const part *p = &m->joined->of[part_of(m, at)];
        const int64_t stop = p->first + p->m->rows < end ? p->first + p->m->rows : end;
        sum += sp_matrix_entries(p->m, at - p->first, stop - p->first);
        at = stop;
    }
    return sum;
}

int64_t sp_joined_fit(const sp_matrix *m, int64_t first, int64_t room)
{
    const part *p = &m->joined->of[part_of(m, first)];
    return sp_matrix_fit(p->m, first - p->first, room);
}

int64_t sp_joined_fullest(const sp_matrix *m)
{
    int64_t most = 1;
    for (int64_t i = 0; i < m->joined->n; i++) {
        const int64_t n = sp_matrix_fullest(m->joined->of[i].m);
        if (n > most) most = n;
    }
    return most;
}

bool sp_joined_has_columns(const sp_matrix *m)
{
    for (int64_t i = 0; i < m->joined->n; i++)
        if (m->joined->of[i].m->layout == SP_LAYOUT_COLUMNS) return true;
    return false;
}

uint64_t sp_joined_block_bytes(const sp_matrix *m, int64_t rows, int64_t room)
{
    uint64_t most = 0;
    for (int64_t i = 0; i < m->joined->n; i++) {
        const uint64_t bytes = sp_block_bytes(m->joined->of[i].m, rows, room);
        if (bytes > most) most = bytes;
    }
    return most + sizeof(sp_block);
}

/* The block of part i, in place of that of the part before. */
static fth_status open_block(const sp_matrix *m, int64_t i, sp_block *b, fth_err *err)
{
    if (b->part_of == i && b->inner) return FTH_OK;
    void *block = b->inner;
    if (!block) {
        FTH_TRY(
            fth_mem_take(m->mem, FTH_MEM_META, sizeof(sp_block), "block of a file", &block, err));
        b->inner = block;
    } else
        sp_block_free(b->inner);
    *b->inner = (sp_block){0};
    b->part_of = i;
    return sp_block_create(b->inner, m->joined->of[i].m, b->rows, b->room, err);
}

fth_status sp_joined_read(sp_matrix *m, int64_t first, int64_t n, sp_block *b, fth_err *err)
{
    const int64_t i = part_of(m, first);
    const part *p = &m->joined->of[i];
    if (first + n > p->first + p->m->rows)
        return FTH_FAIL(err, FTH_E_USAGE, "%s: rows %lld to %lld are of two files", m->label,
                        (long long)first, (long long)(first + n));
    FTH_TRY(open_block(m, i, b, err));
    FTH_TRY(sp_matrix_read(p->m, first - p->first, n, b->inner, err));
    int64_t to = 0;
    b->ptr[0] = 0;
    for (int64_t r = 0; r < n; r++) {
        for (int64_t k = b->inner->ptr[r]; k < b->inner->ptr[r + 1]; k++) {
            const int32_t c = p->column ? p->column[b->inner->col[k]] : b->inner->col[k];
            if (c < 0) continue;
            b->col[to] = c;
            b->val[to++] = b->inner->val[k];
        }
        b->ptr[r + 1] = to;
    }
    return FTH_OK;
}
