/* path.c - where the paths of a config lead.
 *
 * First ${NAME}, and $NAME or ~ at the beginning, become what the caller's function says, then a
 * relative path is put behind a folder: the config's when `paths: config` says so and a file gave
 * the path, and the caller's current directory before that. `$${` is a plain `${`.
 */
#include "base/assert.h"
#include "config/schema.h"
#include "config/state.h"

#include <string.h>

typedef struct where {
    fth_config *cfg;
    const fth_config_key *row;
    const fth__config_value *value;
} where;

static bool refuse(const where *w, const char *expected, const char *found, const char *hint)
{
    const fth_config_mistake m = {.kind = FTH_MISTAKE_VARIABLE,
                                  .at = w->value->given ? w->value->given->at
                                                        : (fth_place){.file = "default"},
                                  .key = w->row->name,
                                  .expected = expected,
                                  .found = found,
                                  .hint = hint};
    fth__config_note(w->cfg, w->value->layer, &m);
    return false;
}

fth_path_start fth_path_look(const char *path, char name[FTH_VARIABLE_NAME], const char **rest)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    *rest = path;
    if (path[0] == '~') {
        strcpy(name, "HOME");
        *rest = path + 1;
        return path[1] == '/' || path[1] == '\0' ? FTH_PATH_VARIABLE : FTH_PATH_OTHER;
    }
    const bool braces = path[0] == '$' && path[1] == '{';
    const char *start = path + 1 + braces;
    if (path[0] != '$' || !*start || !strchr(letters, *start)) return FTH_PATH_PLAIN;
    size_t n = 1;
    while (start[n] && (strchr(letters, start[n]) || (start[n] >= '0' && start[n] <= '9'))) n++;
    if (n >= FTH_VARIABLE_NAME || (braces && start[n] != '}')) return FTH_PATH_PLAIN;
    memcpy(name, start, n);
    name[n] = '\0';
    *rest = start + n + braces;
    return FTH_PATH_VARIABLE;
}

static const char *value_of(const where *w, const char *name)
{
    char found[120], expected[160];
    const char *v = w->cfg->opt.lookup(w->cfg->opt.user, name);
    if (v && v[0]) return v;
    snprintf(expected, sizeof expected, "the variable %s to be set", name);
    snprintf(found, sizeof found, "%s", v ? "an empty one" : "it unset");
    refuse(w, expected, found, NULL);
    return NULL;
}

/* The value of the variable whose name starts at `s`; *end is behind the closing brace. */
static const char *look_up(const where *w, const char *s, const char **end)
{
    char name[FTH_VARIABLE_NAME];
    const size_t n = strcspn(s, "}");
    if (s[n] != '}' || n == 0 || n >= sizeof name) {
        refuse(w, "a variable like ${NAME}", "a '${' without a name and '}'",
               "write $${ for a plain ${");
        return NULL;
    }
    memcpy(name, s, n);
    name[n] = '\0';
    *end = s + n + 1;
    return value_of(w, name);
}

/* What the path begins with; *from is behind it. */
static bool expand_start(const where *w, const char **from, fth__text *t)
{
    char name[FTH_VARIABLE_NAME];
    const char *rest;
    if (strncmp(*from, "${", 2) == 0) return true; /* as anywhere */
    const fth_path_start start = fth_path_look(*from, name, &rest);
    if (start == FTH_PATH_PLAIN) return true;
    if (start == FTH_PATH_OTHER)
        return refuse(w, "~/ for your home, or a whole path", "the home of somebody else",
                      "write its path; ./~name is a file called ~name");
    const char *v = value_of(w, name);
    if (!v) return false;
    fth__text_add_chars(t, v, strlen(v));
    *from = rest;
    return true;
}

/* Once to measure, once to write. */
static bool expand(const where *w, const char *from, fth__text *t)
{
    if (!expand_start(w, &from, t)) return false;
    while (*from) {
        if (strncmp(from, "$${", 3) == 0) {
            fth__text_add_chars(t, "${", 2);
            from += 3;
        } else if (strncmp(from, "${", 2) == 0) {
            const char *v = look_up(w, from + 2, &from);
            if (!v) return false;
            fth__text_add_chars(t, v, strlen(v));
        } else {
            fth__text_add_chars(t, from++, 1);
        }
    }
    return true;
}

/* Length of what stands before the file name; its slash included. */
static size_t folder_length(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static const char *join(fth_config *cfg, const char *folder, size_t n, const char *path)
{
    if (n == 0 || path[0] == '/' || path[0] == '\0') return path;
    return fth__store_print(&cfg->store, "%.*s%s%s", (int)n, folder,
                            folder[n - 1] == '/' ? "" : "/", path);
}

/* False when a variable is missing; out of memory leaves *path NULL. */
static bool resolve(const where *w, const char *text, bool from_config, const char **path)
{
    fth_config *cfg = w->cfg;
    if (!cfg->opt.lookup) return *path = text, true;
    fth__text t;
    fth__text_init(&t, NULL, 0);
    if (!expand(w, text, &t)) return false;
    const size_t bytes = t.wanted + 1;
    char *out = fth__store_take(&cfg->store, bytes);
    *path = out;
    if (!out) return true;
    fth__text_init(&t, out, bytes);
    expand(w, text, &t);
    const fth__config_layer *file = w->value->given ? w->value->layer : fth__config_document(cfg);
    if (from_config && file && !file->set)
        *path = join(cfg, file->name, folder_length(file->name), out);
    const char *cwd = cfg->opt.cwd ? cfg->opt.cwd : "";
    if (*path) *path = join(cfg, cwd, strlen(cwd), *path);
    return true;
}

bool fth__config_starts_at_files(const fth_config *cfg)
{
    const int64_t rule = fth__schema_find(cfg->schema, "paths");
    return rule >= 0 && cfg->value[rule].n > 0 && cfg->value[rule].item->text &&
           strcmp(cfg->value[rule].item->text, "config") == 0;
}

void fth__config_resolve_paths(fth_config *cfg)
{
    const bool from_config = fth__config_starts_at_files(cfg);
    for (int64_t k = 0; k < cfg->schema->n_keys; k++) {
        fth__config_value *v = &cfg->value[k];
        const where w = {cfg, &cfg->schema->key[k], v};
        if (w.row->type != FTH_CONFIG_PATH) continue;
        for (int64_t i = 0; i < v->n; i++) {
            fth__scalar *item = &v->item[i];
            FTH_ASSERT(item->text); /* read_text set it */
            item->path = item->text;
            if (v->broken) continue; /* the default stands in for it */
            if (!resolve(&w, item->text, from_config, &item->path)) {
                v->broken = true;
                item->path = item->text;
            }
            if (!item->path) cfg->no_memory = true;
        }
    }
}
