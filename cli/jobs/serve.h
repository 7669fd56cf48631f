/* serve.h - what the files of `fathom serve` share.
 *
 *   serve.c        requests and answers, starting and ending
 *   serve_rules.c  access control: tokens, hosts, ranges, files
 *   serve_data.c   page and data as texts: cached, compressed, with an ETag
 *   serve_links.c  connections, and how long a request may take
 */
#ifndef FATHOM_CLI_SERVE_H
#define FATHOM_CLI_SERVE_H

#include "../cli.h"

#include <pthread.h>

/* ---- serve_rules.c ---- */

/* Whether two texts are equal, in constant time. */
bool serve_same(const char *given, const char *secret);
/* Whether the Host of a request is a name of this machine for itself (localhost, 127.x.y.z, ::1):
 * protects against DNS rebinding. */
bool serve_host_is_local(const char *host);
/* "bytes=10-19", "bytes=10-", "bytes=-5" of a file. 0: all of it (no range, several, or none that
 * makes sense), 206: `from` and `n` are set, 416: there is no such part. */
int serve_range(const char *header, uint64_t size, uint64_t *from, uint64_t *n);
/* Whether Accept-Encoding takes gzip: "gzip, br;q=0.5"; not "gzip;q=0". */
bool serve_takes_gzip(const char *header);
/* Whether If-None-Match holds the tag, which has its quotes. */
bool serve_has_tag(const char *header, const char *tag);
/* A file that the view lists, as a figure (or, with `log`, as a log), below its root: the open
 * file and its size; -1 otherwise. Links that lead away are not followed. */
int serve_open(const fth_view *view, const char *path, bool log, uint64_t *size);
const char *serve_type(const char *path);

/* ---- serve_data.c ---- */

typedef struct serve_text {
    char *plain, *packed; /* packed: NULL, when there was no memory for it */
    size_t bytes, packed_bytes;
    char tag[24]; /* of all but the time of the view, with quotes */
} serve_text;

/* The page, or the data, of a view. */
fth_status serve_text_make(serve_text *t, const fth_view *view, bool page, fth_err *err);
void serve_text_free(serve_text *t);

/* ---- serve_links.c ---- */

/* A connection; the longest it may take for what it does now. */
typedef struct serve_link {
    int fd;
    double end; /* on the clock that only moves forward */
    struct serve_link *next;
} serve_link;

typedef struct serve_links {
    pthread_mutex_t lock;
    serve_link *first;
} serve_links;

double serve_now(void);
/* A connection begins; NULL: no memory for it. */
serve_link *serve_link_open(serve_links *all, int fd);
/* It ends: before its descriptor is closed, which could be another's then. */
void serve_link_close(serve_links *all, serve_link *link);
/* A request was answered, and so many bytes are on their way. */
void serve_link_answers(serve_links *all, serve_link *link, uint64_t bytes);
/* All is sent, and the next request may come. */
void serve_link_rests(serve_links *all, serve_link *link);
/* Shut down the connections that have taken too long. */
void serve_links_sweep(serve_links *all);

#endif
