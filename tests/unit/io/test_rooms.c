/* test_rooms.c - rooms that readers share: apart from each other, and waited for.
 * seconds: 1 */
#include "io/rooms.h"
#include "testing/io/files.h"

#include <stdatomic.h>
#include <time.h>

TEST(rooms_lie_apart)
{
    fth_mem *mem = t_mem(16 << 20);
    fth__rooms r;
    char *room[FTH__ROOMS];
    OK(fth__rooms_open(&r, mem, "rooms", 1000, NULL));
    EQ_I64(r.n, FTH__ROOMS);
    for (int i = 0; i < r.n; i++) {
        room[i] = fth__rooms_take(&r);
        memset(room[i], i + 1, 1000);
    }
    for (int i = 0; i < r.n; i++)
        for (int k = 0; k < 1000; k++) EQ_I64(room[i][k], i + 1);
    for (int i = 0; i < r.n; i++) fth__rooms_give(&r, room[i]);
    fth__rooms_close(&r);
    /* a room that is a large part of the budget is alone */
    OK(fth__rooms_open(&r, mem, "rooms", 2 << 20, NULL));
    EQ_I64(r.n, 1);
    fth__rooms_close(&r);
    OK(fth_mem_destroy(mem, NULL));
}

typedef struct guest {
    fth__rooms *rooms;
    atomic_int inside;
    void *room;
} guest;

static void *visit(void *arg)
{
    guest *g = arg;
    g->room = fth__rooms_take(g->rooms);
    atomic_store(&g->inside, 1);
    return NULL;
}

/* Who finds none waits until one is given back. */
TEST(a_room_is_waited_for)
{
    fth_mem *mem = t_mem(16 << 20);
    fth__rooms r;
    OK(fth__rooms_open(&r, mem, "rooms", 2 << 20, NULL));
    void *own = fth__rooms_take(&r);
    guest g = {.rooms = &r};
    pthread_t thread;
    IS_TRUE(pthread_create(&thread, NULL, visit, &g) == 0);
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    EQ_I64(atomic_load(&g.inside), 0);
    fth__rooms_give(&r, own);
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 5;
    if (pthread_timedjoin_np(thread, NULL, &end) != 0) FAIL("nobody was called");
    EQ_PTR(g.room, own);
    fth__rooms_give(&r, g.room);
    fth__rooms_close(&r);
    OK(fth_mem_destroy(mem, NULL));
}

TEST_MAIN()
