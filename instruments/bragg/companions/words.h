/* words.h - flags with a single dash, from a table of rows: name, kind, where the value goes.
 *
 * Lenient reading is that of the reference programs (substring-flags): a word that contains the
 * name of a row is that flag, numbers are parsed as a prefix, unknown words are ignored. Strict
 * reading requires exact names and whole numbers of text.
 */
#ifndef BRAGG_WORDS_H
#define BRAGG_WORDS_H

#include <fathom/fathom.h>

typedef enum br_word_kind {
    BR_WORD_REAL,    /* double, times `scale` */
    BR_WORD_INT,     /* int64_t */
    BR_WORD_NEGATED, /* int64_t, stored negated: seeds */
    BR_WORD_TEXT,    /* char [scale] */
    BR_WORD_PUT,     /* no value: int64_t becomes `scale` */
    BR_WORD_LIST     /* br_word_list: one number more */
} br_word_kind;

enum { BR_WORD_LIST_MOST = 32 };
typedef struct br_word_list {
    int64_t n;
    double v[BR_WORD_LIST_MOST];
} br_word_list;

typedef struct br_word {
    const char *name; /* "-gain"; other spellings are rows of their own */
    br_word_kind kind;
    size_t at;    /* offset of the value */
    size_t also;  /* offset of an int64_t that is set to 1; 0: none */
    double scale; /* 0: 1 */
    double per;   /* REAL: the number is divided by it, to the bit as the original does; 0: 1 */
    bool meant;   /* `also` is set only by exact reading: the original does not set it */
    bool exact;   /* also where reading is lenient */
    bool lenient; /* a part of a name, matched only by lenient reading */
} br_word;

/* Read n words into the struct at `into`. `used` (may be NULL) marks words that were flags or their
 * values; unknown words are then left to the caller. */
fth_status br_words_read(const br_word *table, int rows, void *into, bool lenient, int n,
                         char *const *word, bool *used, fth_err *err);

#endif
