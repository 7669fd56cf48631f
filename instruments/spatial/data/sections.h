/* sections.h - several tissue sections in one plane: names, where each lies, how far apart.
 *
 * Each section is centred by itself, all have one scale, and they lie in tiles of one plane, so far
 * apart that cells of one section are nearer to each other than `gap` and to all others farther.
 * So nearest neighbours are of the same section, and a covariance that is 0 from the gap on makes
 * sections independent (model 21). No other place in the program has to know of sections.
 */
#ifndef SPATIAL_SECTIONS_H
#define SPATIAL_SECTIONS_H

#include "../spatial.h"

typedef struct sp_section {
    double offset[2];       /* x = (x of the source - offset) scale */
    double low[2], high[2]; /* of its cells, in the plane */
    int64_t cells;          /* that were written; 0: not known */
    int64_t entries;        /* counts above 0 of these, while preprocessing; else 0 */
} sp_section;

typedef struct sp_sections {
    fth_mem *mem;
    int64_t n; /* 0: the data name none */
    fth_texts *names;
    sp_section *of; /* [n] */
    double gap;
} sp_sections;

/* Room for n sections with these names, which are copied; on failure it is empty. */
fth_status sp_sections_create(sp_sections *s, fth_mem *mem, const fth_texts *names, fth_err *err);
fth_status sp_sections_copy(sp_sections *to, fth_mem *mem, const sp_sections *from, fth_err *err);
void sp_sections_clear(sp_sections *s); /* an empty one is allowed */
/* The number of the section of this name; -1: there is none. */
int64_t sp_sections_find(const sp_sections *s, const char *name);
const char *sp_sections_name(const sp_sections *s, int64_t i);

/* A remedy for one that cannot be used. */
#define SP_LEAVE_SECTION_OUT                                                                       \
    "leave it out: of preprocessing.paths where it is a file, else of preprocessing.sections, "    \
    "which lists those that are taken"

/* Positions of the source, f32 [cell][2], to those of the plane: centred, scaled and in tiles
 * (model 21.1). `extent` is what a typical extent becomes; 0: positions keep their scale. `section`
 * is i32 [cell]. Places that are not finite stay as they are. *scale receives the scale. A section
 * without cells or without extent is an error; `label` names the positions in it. */
fth_status sp_sections_arrange(sp_sections *s, float *xy, const int32_t *section, int64_t n,
                               double extent, const char *label, double *scale, fth_err *err);
/* A place so far from all sections that its covariance with all of them is 0 for every kernel of
 * this lengthscale: of cells of unknown sections. */
void sp_sections_nowhere(const sp_sections *s, double lengthscale, float xy[2]);
/* Whether a place is near enough to section i for `gap` to tell it from the others. */
bool sp_sections_holds(const sp_sections *s, int64_t i, const float xy[2]);

/* For drawings: sections side by side, without the space between them that the model needs. `to` is
 * a copy of `from`, whose boxes are moved; y grows downwards, and each has room for its name above
 * it, whose height is returned. Then a place of a section, from the plane to there. */
double sp_sections_pack(sp_sections *to, const sp_sections *from);
void sp_sections_shift(const sp_sections *to, const sp_sections *from, int64_t section,
                       float xy[2]);

/* As two values of JSON under these keys (NULL: none): a list of names, and an object with the
 * rest. And back; without the rest the sections are not arranged yet, and the gap is 0. Errors say
 * what is wrong with which key of `path`. */
#define SP_SECTION_NAMES "section_names"
#define SP_SECTIONS "sections"
void sp_sections_put_names(fth_json_writer *w, const char *key, const sp_sections *s);
void sp_sections_put(fth_json_writer *w, const char *key, const sp_sections *s);
fth_status sp_sections_parse(sp_sections *out, fth_mem *mem, const fth_json_value *names,
                             const fth_json_value *rest, const char *path, fth_err *err);

#endif
