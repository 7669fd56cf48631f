/* serve.h - what a request to `fathom serve` may see, apart from the library that answers it. */
#ifndef FATHOM_CLI_SERVE_H
#define FATHOM_CLI_SERVE_H

#include "cli.h"

/* Whether two texts are equal, in a time that does not tell where they differ. */
bool serve_same(const char *given, const char *secret);
/* Whether the Host of a request is a name of this machine for itself: a page of somebody else
 * whose name was made to lead here is refused. */
bool serve_host_is_local(const char *host);
/* "bytes=10-19", "bytes=10-", "bytes=-5" of a file. 0: all of it (no range, several, or none that
 * makes sense), 206: `from` and `n` are set, 416: there is no such part. */
int serve_range(const char *header, uint64_t size, uint64_t *from, uint64_t *n);
/* A file that the view lists, as a figure (or, with `log`, as a log), below its root: the open
 * file and its size; -1 otherwise. Links that lead away are not followed. */
int serve_open(const fth_view *view, const char *path, bool log, uint64_t *size);
const char *serve_type(const char *path);

#endif
