/* files.c - which files a stage reads and leaves, and whether they are still the same. */
#include "job/stage/files.h"

#include "base/assert.h"
#include "base/hash.h"
#include "config/schema.h"
#include "io/file.h"
#include "job/find/path.h"
#include "mem/disk.h"
#include "mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* PIECE: read at once; it is memory beside the plan, so it stays small. END: of each end of a large
 * file that is hashed. Files up to 1 GiB are hashed whole: about a second from a disk. */
enum { PIECE = 256 << 10, END = 1 << 20 };
static const uint64_t whole_up_to = (uint64_t)1 << 30;

void fth__file_list_init(fth_file_list *list, fth_mem *mem)
{
    *list = (fth_file_list){.mem = mem, .texts = {.mem = mem}};
}

void fth__file_list_clear(fth_file_list *list)
{
    fth__heap_free(list->mem, list->file);
    fth__store_clear(&list->texts);
    *list = (fth_file_list){.mem = list->mem, .texts = {.mem = list->mem}};
}

int64_t fth__file_list_find(const fth_file_list *list, const char *path)
{
    for (int64_t i = 0; i < list->n; i++)
        if (strcmp(list->file[i].path, path) == 0) return i;
    return -1;
}

static fth_status no_memory(fth_err *err)
{
    return FTH_FAIL(err, FTH_E_NOMEM, "no memory for the list of files");
}

/* The canonical form of the first n characters of `path`, kept for the next one. */
static fth_status find_folder(fth_file_list *list, const char *path, size_t n, fth_err *err)
{
    if (list->folder && strlen(list->folder) == n && strncmp(list->folder, path, n) == 0)
        return FTH_OK;
    char cwd[PATH_MAX];
    fth__canonical canonical;
    const char *folder = fth__store_text(&list->texts, path, n);
    if (!folder) return no_memory(err);
    if (!getcwd(cwd, sizeof cwd))
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "the current directory: %s", strerror(errno));
    FTH_TRY(fth__path_canonical(&list->texts, cwd, folder, &canonical, err));
    if (canonical.block)
        return FTH_FAIL(err, FTH_E_FILE_OPEN, "%s: %s: %s", path, canonical.block,
                        strerror(ENOTDIR));
    list->folder = folder;
    list->canonical = canonical.path;
    return FTH_OK;
}

fth_status fth_file_list_add(fth_file_list *list, fth_file_kind kind, const char *path,
                             const char *title, fth_err *err)
{
    if (!list || !path || (unsigned)kind >= FTH_FILE_KIND_COUNT)
        return FTH_FAIL(err, FTH_E_USAGE, "a list, a kind and a path are needed");
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return FTH_FAIL(err, FTH_E_USAGE, "'%s' is a folder, and a file is needed", path);
    FTH_TRY(find_folder(list, path, (size_t)(name - path), err));
    const char *full =
        fth__store_print(&list->texts, "%s/%s", list->canonical[1] ? list->canonical : "", name);
    const char *label =
        full ? fth__store_text(&list->texts, title ? title : "", title ? strlen(title) : 0) : NULL;
    if (!label) return no_memory(err);
    FTH_ASSERT(full[0] == '/');
    const int64_t at = fth__file_list_find(list, full);
    if (at >= 0) {
        if ((list->file[at].kind == FTH_FILE_INPUT) == (kind == FTH_FILE_INPUT)) return FTH_OK;
        return FTH_FAIL(err, FTH_E_USAGE, "%s would be both read and left by one stage", full);
    }
    FTH_TRY(fth__grow(list->mem, &list->file, &list->cap, list->n + 1, err));
    list->file[list->n++] = (fth_task_file){.kind = kind, .path = full, .title = label};
    return FTH_OK;
}

fth_status fth__stage_list_files(const fth_stage_call *call, fth_file_list *list, fth_err *err)
{
    const fth_stage *stage = call->stage;
    for (const fth_stage_file *f = stage->leaves; f && f->name; f++) {
        char path[FTH_PATH];
        FTH_TRY(fth_path_join(path, call->model_dir, f->name, err));
        FTH_TRY(fth_file_list_add(list, f->figure ? FTH_FILE_FIGURE : FTH_FILE_OUTPUT, path,
                                  f->title, err));
    }
    size_t n;
    const char *word;
    for (int i = 0; (word = fth__word(stage->reads, i, &n)) != NULL; i++) {
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)n, word);
        const char *path = fth_config_text_or(call->config, key, NULL);
        if (path) FTH_TRY(fth_file_list_add(list, FTH_FILE_INPUT, path, key, err));
    }
    return stage->files ? stage->files(call, list, err) : FTH_OK;
}

static int64_t mtime_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

bool fth__file_look(const char *path, uint64_t *bytes, int64_t *mtime_ns)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    *bytes = (uint64_t)st.st_size;
    *mtime_ns = mtime_of(&st);
    return true;
}

/* From `at` on, up to the end or to so many bytes. */
static fth_status hash_pieces(const fth_file *f, uint64_t at, uint64_t bytes, void *piece,
                              fth__hash *h, fth_err *err)
{
    for (const uint64_t end = at + bytes; at < end;) {
        const uint64_t want = end - at < PIECE ? end - at : PIECE;
        uint64_t got;
        const int why = fth__disk_read(f->fd, at, want, piece, &got);
        if (why) return FTH__FILE_FAIL(err, FTH_E_FILE_READ, f->path, at, "%s", strerror(why));
        if (got == 0) return FTH_OK;
        if (f->stream) (void)posix_fadvise(f->fd, (off_t)at, (off_t)got, POSIX_FADV_DONTNEED);
        fth__hash_add(h, piece, (size_t)got);
        at += got;
    }
    return FTH_OK;
}

fth_status fth__file_hash(fth_mem *mem, const char *path, bool whole, fth_task_file *out,
                          fth_err *err)
{
    fth_file *f = NULL;
    void *piece = NULL;
    struct stat st;
    fth__hash h;
    fth__hash_init(&h, 0);
    fth_status s = fth_file_open(&f, mem, path, err);
    if (s == FTH_OK) s = fth__heap_take(mem, PIECE, 1, &piece, err);
    /* The time first: a change while it is read shows as another time later. */
    if (s == FTH_OK && fstat(f->fd, &st) != 0)
        s = FTH_FAIL(err, FTH_E_FILE_READ, "%s: %s", path, strerror(errno));
    const bool ends = s == FTH_OK && !whole && (uint64_t)st.st_size > whole_up_to;
    if (s == FTH_OK) s = hash_pieces(f, 0, ends ? END : INT64_MAX, piece, &h, err);
    if (s == FTH_OK && ends) s = hash_pieces(f, (uint64_t)st.st_size - END, END, piece, &h, err);
    if (s == FTH_OK) {
        out->ends = ends;
        out->bytes = (uint64_t)st.st_size;
        out->mtime_ns = mtime_of(&st);
        out->hash = fth__hash_get(&h);
    }
    fth__heap_free(mem, piece);
    fth_file_close(f);
    return s;
}

fth_status fth_file_hash(fth_mem *mem, const char *path, uint64_t *hash, fth_err *err)
{
    fth_task_file file = {0};
    const fth_status s = fth__file_hash(mem, path, true, &file, err);
    *hash = file.hash;
    return s;
}
