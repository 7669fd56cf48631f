/* fathom/config.h - settings from files, checked against a table before anything runs.
 *
 * A program describes its keys in a table, one row each. A config is made of layers of YAML or
 * JSON, later ones winning: files, then single values (--set). The check compares them with the
 * table and finds every mistake at once, each with its file:line:column; after a check without
 * mistakes every key has the value of its row's type, and reading it cannot fail. What YAML means
 * here (`2e-3` is a number, `yes` is a text) is written in docs/config.md.
 *
 * Ownership: a config owns what it hands out: texts live until it is destroyed. Tables, and the
 *            texts in them, are the caller's and outlive the config.
 * Threads:   one thread at a time until it is checked; then any number may read.
 * Failure:   hostile files are refused with a place. Nothing here reads the environment.
 */
#ifndef FATHOM_CONFIG_H
#define FATHOM_CONFIG_H

#include <fathom/memory.h>

FTH_BEGIN_DECLS

typedef struct fth_config fth_config;
struct fth_json_writer; /* fathom/json.h */

/* ---- the table ---- */

typedef enum fth_config_type {
    FTH_CONFIG_SECTION, /* only gives a section its line in the docs */
    FTH_CONFIG_BOOL,    /* true, false                               */
    FTH_CONFIG_INT,     /* 10, -3, 0x10, 2e4                         */
    FTH_CONFIG_REAL,    /* 2e-3, .5, 10, and .inf where the range has it */
    FTH_CONFIG_TEXT,    /* plain or quoted                           */
    FTH_CONFIG_PATH,    /* a text in which ${NAME} is looked up      */
    FTH_CONFIG_SIZE,    /* bytes: 8G, 1.5GiB, 4096, 50%              */
    FTH_CONFIG_CHOICE,  /* one word of `choices`                     */
    FTH_CONFIG_TYPE_COUNT
} fth_config_type;

typedef struct fth_config_key {
    const char *name;     /* "training.max_iter": what stands before the dots are sections     */
    fth_config_type type; /* of the value, or of each element                                  */
    bool list;            /* [a, b, c]; a single value is a list of one                        */
    bool required;        /* a config without it has a mistake                                 */
    const char *value;    /* default, as it would be written in a file; NULL: none             */
    const char *range;    /* INT, REAL: an interval, "[1, inf)" or "(0, 1]"; NULL: any finite  */
    const char *choices;  /* CHOICE: words, "exp softplus"                                     */
    const char *unit;     /* "deg"; for people                                                 */
    const char *doc;      /* one line                                                          */
    const char *aliases;  /* other full names, "training.x_batch training.xb"                  */
    const char *applies;  /* kinds that use it, "svgp lcgp"; NULL: all                         */
} fth_config_key;

typedef struct fth_schema {
    const char *name;  /* of the instrument */
    const char *brief; /* one line          */
    const fth_config_key *key;
    int64_t n_keys;
    /* Looks for what one row cannot say, with fth_config_complain; may be NULL. */
    void (*check)(fth_config *cfg, void *user);
} fth_schema;

/* One row: type, name, docs, then what else is set.
 *   FTH_KEY(REAL, "survey.size", "side of the square", .value = "10", .unit = "km") */
#define FTH_KEY(type_of_value, key, ...)                                                           \
    {                                                                                              \
        .name = (key), .type = FTH_CONFIG_##type_of_value, .doc = __VA_ARGS__                      \
    }

/* Rows that every table starts with. Relative paths follow the second one. */
#define FTH_CONFIG_COMMON_KEYS                                                                     \
    {.name = "instrument", .type = FTH_CONFIG_TEXT, .doc = "instrument that the config is for"},   \
    {                                                                                              \
        .name = "paths", .type = FTH_CONFIG_CHOICE, .choices = "cwd config", .value = "cwd",       \
        .doc = "relative paths start at the current directory or at the config's folder"           \
    }

/* ---- from files to a checked config ---- */

FTH_API FTH_MUST_USE fth_status fth_config_create(fth_config **out, fth_mem *mem, fth_err *err);
/* FTH_E_USAGE when a value was read that the table does not have, naming the line that asked: a
 * mistake of the program, not of its user. Destroyed all the same. NULL is allowed. */
FTH_API fth_status fth_config_destroy(fth_config *cfg, fth_err *err);

/* Add a layer: a file of at most 1 MiB, with layers below it for those that its `base` names,
 * `bytes` of text that errors call `name`, or one "key=value" whose value is written as in a file.
 * FTH_E_CONFIG_SYNTAX names the place; then nothing was added. */
FTH_API FTH_MUST_USE fth_status fth_config_read(fth_config *cfg, const char *path, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_config_parse(fth_config *cfg, const char *name,
                                                 const char *text, size_t bytes, fth_err *err);
FTH_API FTH_MUST_USE fth_status fth_config_set(fth_config *cfg, const char *assignment,
                                               fth_err *err);
/* A single value as it is written, before any check, to choose the table by; NULL when absent. */
FTH_API const char *fth_config_peek(const fth_config *cfg, const char *key);
/* The same of a list: how many elements it has, -1 when it is none; element i, NULL when that is no
 * single value. */
FTH_API int64_t fth_config_peek_count(const fth_config *cfg, const char *key);
FTH_API const char *fth_config_peek_at(const fth_config *cfg, const char *key, int64_t i);

typedef struct fth_config_options {
    bool lenient; /* unknown keys are notices */
    /* The value of ${name} in a path, NULL when it is not set. No function: paths stay as written,
     * as for a config that only rebuilds a model. */
    const char *(*lookup)(void *user, const char *name);
    const char *cwd; /* what relative paths are put behind; NULL: nothing */
    void *user;      /* of lookup and of the table's check */
} fth_config_options;
/* Once, after the last layer. FTH_E_CONFIG when there are mistakes; the config then serves only
 * to list them. FTH_E_USAGE when the table itself is wrong. `opt` may be NULL. */
FTH_API FTH_MUST_USE fth_status fth_config_check(fth_config *cfg, const fth_schema *schema,
                                                 const fth_config_options *opt, fth_err *err);

/* ---- several values of a key ---- */

/* Value number i of "4,8,'a,b',[1, 2]": what stands between commas outside of quotes and brackets,
 * written as in a file; NULL beyond the last. */
FTH_API const char *fth_config_split(const char *values, int64_t i, size_t *length);
/* "n_components-5" for model.n_components: fit for a folder. Like snprintf. */
FTH_API size_t fth_config_tag(const char *key, const char *value, size_t length, char *text,
                              size_t bytes);

/* ---- flags of a command that are keys ---- */

/* How a command asks for its flags (fth_verb): "" of a flag without a value, NULL: not given. */
typedef const char *fth_flag_value_fn(void *user, const char *flag);
/* Every --set as a layer. */
FTH_API FTH_MUST_USE fth_status fth_config_add_sets(fth_config *cfg, fth_flag_value_fn *value,
                                                    void *user, fth_err *err);
/* A flag that was given as the value of a key of `schema`: a text is taken as it is, whatever it
 * means to YAML, "a,b" is a list where the row is one, a switch without a value is true.
 * FTH_E_COMMAND names the flag. */
FTH_API FTH_MUST_USE fth_status fth_config_set_flag(fth_config *cfg, const fth_schema *schema,
                                                    const char *flag, const char *key,
                                                    const char *value, fth_err *err);
/* fth_config_check of a command: FTH_E_COMMAND lists the mistakes in its settings (`what`), those
 * of a flag by the flag that flag_of knows for the key; NULL from it: the key has none. */
FTH_API FTH_MUST_USE fth_status fth_config_check_flags(fth_config *cfg, const fth_schema *schema,
                                                       const char *what,
                                                       const char *(*flag_of)(const char *key),
                                                       fth_err *err);

/* ---- mistakes ---- */

typedef struct fth_place {
    const char *file; /* path, name, "--set #2", or "default" */
    int line, column; /* from 1; 0: the whole of `file`       */
} fth_place;

typedef enum fth_mistake {
    FTH_MISTAKE_UNKNOWN,  /* no such key                      */
    FTH_MISTAKE_TWICE,    /* a key of one layer, given before */
    FTH_MISTAKE_MISSING,  /* a required key                   */
    FTH_MISTAKE_TYPE,     /* not a value of that type         */
    FTH_MISTAKE_RANGE,    /* outside the row's interval       */
    FTH_MISTAKE_CHOICE,   /* not one of the row's words       */
    FTH_MISTAKE_VARIABLE, /* ${NAME} is not set, or damaged   */
    FTH_MISTAKE_CHECK,    /* found by the table's check       */
} fth_mistake;

typedef struct fth_config_mistake {
    fth_mistake kind;
    bool notice;          /* worth a word; the check does not fail        */
    fth_place at, first;  /* first: of the earlier one (TWICE)            */
    const char *key;      /* the full name, as written where it is written; "": all of the file */
    const char *expected; /* CHECK: the whole sentence                    */
    const char *found;    /* what is written there; may be ""             */
    const char *nearest;  /* known key or choice that was perhaps meant; NULL */
    const char *hint;     /* one thing to do; may be ""                   */
} fth_config_mistake;
/* In the order of the layers and their lines: number i of so many; false beyond the last. */
FTH_API bool fth_config_get_mistake(const fth_config *cfg, int64_t i, fth_config_mistake *out);
/* One line, "run.yaml:12:3: ...", like snprintf. */
FTH_API size_t fth_config_mistake_format(const fth_config_mistake *m, char *text, size_t bytes);

/* For the table's check: `keys` are those the sentence is about, and the first gives the place.
 * Nothing is added when one of them already has a mistake of its own. `hint` may be NULL. */
FTH_API void fth_config_complain(fth_config *cfg, const char *keys, const char *hint,
                                 const char *fmt, ...) FTH_PRINTF(4, 5);
FTH_API void fth_config_notify(fth_config *cfg, const char *keys, const char *hint, const char *fmt,
                               ...) FTH_PRINTF(4, 5);

/* ---- values of a checked config ---- */

/* Whether a key has a value at all, and whether it was given or is the default. */
FTH_API bool fth_config_has(const fth_config *cfg, const char *key);
FTH_API bool fth_config_is_given(const fth_config *cfg, const char *key);
FTH_API fth_place fth_config_where(const fth_config *cfg, const char *key);
/* Elements of a list; 1 or 0 for other keys. */
FTH_API int64_t fth_config_count(const fth_config *cfg, const char *key);

/* By the type of the row; a wrong name or type, or no value, gives zero or "" and is reported by
 * fth_config_destroy. A share (50%) is of `free_bytes`. A choice is a text, or its number. */
#define fth_config_bool(cfg, key) fth_config_bool_at((cfg), (key), 0)
#define fth_config_int(cfg, key) fth_config_int_at((cfg), (key), 0)
#define fth_config_real(cfg, key) fth_config_real_at((cfg), (key), 0)
#define fth_config_text(cfg, key) fth_config_text_at((cfg), (key), 0)
#define fth_config_choice(cfg, key) fth_config_choice_at((cfg), (key), 0)
#define fth_config_size(cfg, key, free_bytes) fth_config_size_at((cfg), (key), 0, (free_bytes))
/* A text, a path or a choice, or where the key has no value `otherwise`, which may be NULL. */
#define fth_config_text_or(cfg, key, otherwise)                                                    \
    (fth_config_has((cfg), (key)) ? fth_config_text((cfg), (key)) : (otherwise))
#define fth_config_bool_at(cfg, key, i) fth_config_bool_((cfg), FTH_HERE, (key), (i))
#define fth_config_int_at(cfg, key, i) fth_config_int_((cfg), FTH_HERE, (key), (i))
#define fth_config_real_at(cfg, key, i) fth_config_real_((cfg), FTH_HERE, (key), (i))
#define fth_config_text_at(cfg, key, i) fth_config_text_((cfg), FTH_HERE, (key), (i))
#define fth_config_choice_at(cfg, key, i) fth_config_choice_((cfg), FTH_HERE, (key), (i))
#define fth_config_size_at(cfg, key, i, free_bytes)                                                \
    fth_config_size_((cfg), FTH_HERE, (key), (i), (free_bytes))
FTH_API bool fth_config_bool_(const fth_config *cfg, fth_site site, const char *key, int64_t i);
FTH_API int64_t fth_config_int_(const fth_config *cfg, fth_site site, const char *key, int64_t i);
FTH_API double fth_config_real_(const fth_config *cfg, fth_site site, const char *key, int64_t i);
FTH_API const char *fth_config_text_(const fth_config *cfg, fth_site site, const char *key,
                                     int64_t i);
FTH_API int fth_config_choice_(const fth_config *cfg, fth_site site, const char *key, int64_t i);
FTH_API uint64_t fth_config_size_(const fth_config *cfg, fth_site site, const char *key, int64_t i,
                                  uint64_t free_bytes);

/* ---- a config as text; functions that return size_t are like snprintf ---- */

/* Every key with its value, defaults too, one line each in the order of the table. Equal configs
 * have equal texts, and the text parses to an equal config. Paths are as written. */
FTH_API size_t fth_config_canonical(const fth_config *cfg, char *text, size_t bytes);
/* The value of one key as its canonical line has it: 0.05, "waves", ~ where it has none; "" of a
 * key that the table does not have. */
FTH_API size_t fth_config_value(const fth_config *cfg, const char *key, char *text, size_t bytes);
/* "key": its value, a list as an array, a size as a text; nothing where it has none. Into an open
 * object. */
FTH_API void fth_config_put(const fth_config *cfg, const char *key, struct fth_json_writer *w);
/* xxh64 of the canonical lines of a section or of one key; NULL: of all. */
FTH_API uint64_t fth_config_hash(const fth_config *cfg, const char *section);
/* The values that were given, as a person would write the file: top keys first, then a block for
 * each section. Keys that do not apply to `kind` are left out; NULL: none are. `header` becomes
 * comment lines; may be NULL. */
FTH_API size_t fth_config_layout(const fth_config *cfg, const char *kind, const char *header,
                                 char *text, size_t bytes);
/* Put the layout in place of a file, whole or not at all. */
FTH_API FTH_MUST_USE fth_status fth_config_write(const fth_config *cfg, const char *kind,
                                                 const char *header, const char *path,
                                                 fth_err *err);
/* How many keys of a section (NULL: of all) have another value in `other`, which was checked with
 * the same table. The text has a line for each: both values and where they come from. */
FTH_API int64_t fth_config_compare(const fth_config *cfg, const fth_config *other,
                                   const char *section, char *text, size_t bytes);
/* Tables of all keys, in Markdown. */
FTH_API size_t fth_schema_docs(const fth_schema *schema, char *text, size_t bytes);
/* For hints: number of the word of `words` (between blanks) that is nearest to a written one; -1
 * when none is near. */
FTH_API int fth_word_nearest(const char *words, const char *word);

/* ---- paths ---- */

enum { FTH_VARIABLE_NAME = 100 };
typedef enum fth_path_start {
    FTH_PATH_PLAIN,    /* begins with no variable                    */
    FTH_PATH_VARIABLE, /* with one: `name` is set, HOME for ~        */
    FTH_PATH_OTHER     /* with the home of somebody else: ~name      */
} fth_path_start;
/* How a path begins: the same for configs and flags. `rest` is what follows the variable; "./~" is
 * a file called ~. */
FTH_API fth_path_start fth_path_look(const char *path, char name[FTH_VARIABLE_NAME],
                                     const char **rest);

FTH_END_DECLS
#endif /* FATHOM_CONFIG_H */
