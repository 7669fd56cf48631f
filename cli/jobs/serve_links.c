/* serve_links.c - connections, and how long a request may take.
 *
 * libmicrohttpd closes silent connections, but one that sends a byte now and then would stay open
 * forever, and enough of them would exhaust the server. So each has a deadline: ten seconds for a
 * request, and enough for a response over a slow line. The main thread shuts down late ones, and
 * libmicrohttpd closes them.
 */
#include "serve.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static const double request_s = 10;     /* from the first byte, or the end of the one before */
static const double rest_s = 30;        /* between requests */
static const double slowest = 32 << 10; /* bytes of an answer in a second */

double serve_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

serve_link *serve_link_open(serve_links *all, int fd)
{
    serve_link *link = malloc(sizeof *link);
    if (!link) return NULL;
    *link = (serve_link){.fd = fd, .end = serve_now() + request_s};
    pthread_mutex_lock(&all->lock);
    link->next = all->first;
    all->first = link;
    pthread_mutex_unlock(&all->lock);
    return link;
}

void serve_link_close(serve_links *all, serve_link *link)
{
    pthread_mutex_lock(&all->lock);
    for (serve_link **at = &all->first; *at; at = &(*at)->next) {
        if (*at != link) continue;
        *at = link->next;
        break;
    }
    pthread_mutex_unlock(&all->lock);
    free(link);
}

static void set_end(serve_links *all, serve_link *link, double seconds)
{
    if (!link) return;
    pthread_mutex_lock(&all->lock);
    link->end = serve_now() + seconds;
    pthread_mutex_unlock(&all->lock);
}

void serve_link_answers(serve_links *all, serve_link *link, uint64_t bytes)
{
    set_end(all, link, request_s + (double)bytes / slowest);
}

void serve_link_rests(serve_links *all, serve_link *link)
{
    set_end(all, link, rest_s + request_s);
}

void serve_links_sweep(serve_links *all)
{
    const double now = serve_now();
    pthread_mutex_lock(&all->lock);
    for (serve_link *l = all->first; l; l = l->next)
        if (now > l->end) shutdown(l->fd, SHUT_RDWR);
    pthread_mutex_unlock(&all->lock);
}
